/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * tarn.h - tarn: a standing queue that is small and the same for all.
 *
 * A flow of rate x that sees the queueing delay q has x q packets in the queue. Each flow moves its
 * window, once a round, to where x q = sqrt(area x), so that x q^2 = area. Flows that share a
 * bottleneck see the same q: they get the same rate, whatever their RTTs. N of them on a path of
 * rate C make q = sqrt(area N / C): the queue grows with the root of their number.
 *
 *    STARTUP -> CRUISE <-------> COMPETE        CRUISE   the law
 *                  |                |           COMPETE  CUBIC's window (tarn_compete.h)
 *                  +-> drain <------+
 *
 * The law needs the true least RTT. So each flow drains: it holds a little less than the path
 * carries for it for a round. Whoever sees the least RTT waits an interval from there, as in BBR,
 * and so all flows come to drain at once. After a drain the window leaps by the mean error of
 * the rounds before. What a drain leaves, or a queue that the law does not make, tells whether
 * somebody fills the buffer (COMPETE).
 *
 * Loss is the path's own where the delay shows that the law is kept (tarn_judge_loss()).
 *
 * Sources: the window rule is FAST's (Wei et al., 2006) and Copa's (Arun and Balakrishnan, 2018)
 * with another target; the drain is ProbeRTT of draft-ietf-ccwg-bbr. docs/background/algorithms/
 * tarn.md derives the law. Parts: tarn_model.h measures, tarn_compete.h competes.
 */
#ifndef FULLPIPE_CC_TARN_H
#define FULLPIPE_CC_TARN_H

#include "state.h"
#include "tarn_compete.h"

#define tarn_FLAGS (CC_OWNS_CWND | CC_SEND_IS_PURE)
#define tarn_CONTRACT 5

#define TARN_PACING_GAIN CC_RATIO(5, 4) /* the window decides, pacing spreads */
#define TARN_STARTUP_GAIN (2 * CC_ONE)
#define TARN_PACING_SHIFT 10  /* a burst is about 1 ms (Linux sk_pacing_shift) */
#define TARN_MOST_BURST 44    /* packets of 64 KB */
#define TARN_SNDBUF_FACTOR 3  /* the window may double (Linux sndbuf_expand) */
#define TARN_CALM_ROUNDS 3    /* without a queue, before growth is faster than a step */
#define TARN_SEVERE_PERCENT 5 /* loss that counts after 20 packets already, five of them lost */
#define TARN_AFTER_TIMEOUT CC_RATIO(87, 100) /* of the window, to which slow start returns */

/* clang-format off */
#define tarn_STATE(S)                                                                              \
	S(phase, "phase", 1, s->is_probing ? CC_PHASE_PROBE_RTT : s->phase,                        \
	  "probe_rtt: a drain; avoidance: competition")                                            \
	S(bw, "bytes/s", 1, cc_unless((u64)s->rate * s->mss_bytes * 15625 >> 14, 0),               \
	  "delivered in the last round")                                                           \
	S(min_rtt, "us", 1, cc_unless(tarn_min_rtt(s), TARN_NONE), "least RTT of 30 to 60 s")      \
	S(standing_delay, "us", 1, tarn_queue_us(s, s->standing_us), "mean queueing delay of the last round") \
	S(wanted, "packets", CC_ONE, s->wanted, "own part of the queue by the law")                \
	S(queue, "packets", CC_ONE, tarn_own_queue(s), "own part of the queue") \
	S(jitter, "us", 1, s->jitter_us, "mean less least RTT without a queue")                    \
	S(undrained, "", 1, s->undrained, "drains in a row that left a queue")                     \
	S(held_window, "packets", CC_ONE, cc_unless(s->held_window, TARN_NONE), "bound after too much loss")
/* clang-format on */

/* Moves the window by the mean error of the rounds since the last drain. In sum over the flows of a
 * bottleneck this error is 0 while the queue neither grows nor falls, so the leap moves rate from
 * flow to flow and leaves the queue. A step does the same at a rate of q / RTT, which is slow where
 * the queue is small. */
CC_INLINE void tarn_leap(struct tarn *s, const struct tarn_params *p)
{
	u32 rounds = s->sums.rounds, rtt_us, queue_us;
	u64 queue, ratio;

	/* Where a buffer is too small for the queue wanted, all errors have one sign. */
	if (rounds >= TARN_LEAP_ROUNDS && !s->has_cut) {
		rtt_us = (u32)(s->sums.rtt_us / rounds);
		queue_us = tarn_delay_us(s, rtt_us);
		queue = s->sums.window / rounds * queue_us / cc_max_u32(rtt_us, 1);
		ratio = s->sums.wanted / rounds * CC_ONE / cc_max_u64(queue, 1);
		ratio = cc_min_u64(cc_max_u64(ratio, CC_ONE / 2), 2 * CC_ONE);
		/* Less than half of the queue wanted, and hardly any delay: the path is not full,
		 * and nobody else's queue shrinks for ours. Growth of the rounds fills it. */
		if (ratio == 2 * CC_ONE && queue_us <= TARN_STARVED_US)
			ratio = CC_ONE;
		ratio =
		    (CC_ONE * (u64)(CC_ONE - p->leap_gain) + ratio * p->leap_gain) >> CC_GAIN_SHIFT;
		s->window = (u32)cc_min_u64(s->window * ratio >> CC_GAIN_SHIFT, TARN_MOST_WINDOW);
	}
	s->sums.rtt_us = s->sums.window = s->sums.wanted = 0;
	s->sums.rounds = 0;
	s->has_cut = 0;
}

/* A buffer too small for the queue wanted shows itself: a queue stands, but a smaller one. */
CC_INLINE int tarn_is_small_buffer(const struct tarn *s)
{
	u32 queue = tarn_own_queue(s);

	return queue >= s->wanted / 8 && queue < s->wanted / 4 * 3;
}

/* Two packets and more than loss_thresh of what is judged next are already lost there. A judgement
 * takes many rounds where windows are small, and growth would overflow the buffer in each. */
CC_INLINE int tarn_is_overflowing(const struct tarn *s, const struct tarn_params *p)
{
	u64 all = s->window_lost + s->window_delivered;

	return s->window_lost >= 2 && s->window_lost * (u64)CC_ONE > all * p->loss_thresh &&
	       tarn_is_small_buffer(s);
}

/* The law, once a round. */
CC_INLINE void tarn_step(struct tarn *s, const struct tarn_params *p, const struct cc_conn *conn)
{
	u32 path = tarn_in_path(s, s->standing_us), queue = s->window - path, wanted = s->wanted;
	u32 is_held = conn->now_us < s->hold_until_us;
	u64 step;

	s->sums.rtt_us += s->standing_us;
	s->sums.window += s->window;
	s->sums.wanted += wanted;
	s->sums.rounds++;
	if (queue >= wanted) {
		s->calm = 0;
		s->window = queue > 3 * wanted
				? path + wanted
				: s->window - tarn_scale(queue - wanted, p->step_gain);
	} else {
		step = tarn_scale(wanted - queue, p->step_gain);
		s->calm = queue < wanted / 2 ? (u8)cc_min_u32(s->calm + 1u, 30) : 0;
		if (!s->was_full)
			return;
		if (tarn_is_overflowing(s, p)) {
			s->calm = 0;
			return;
		}
		if (s->held_window != TARN_NONE) {
			if (s->window > s->held_window + s->held_window / 8)
				s->held_window = TARN_NONE;
			else if (s->window >= s->held_window - s->held_window / 32)
				s->calm = 0;
		}
		if (s->calm > TARN_CALM_ROUNDS)
			step = cc_max_u64(
			    step, cc_min_u64(step << cc_min_u32(s->calm - TARN_CALM_ROUNDS, 20),
					     tarn_scale(s->window, p->most_growth)));
		if (is_held)
			s->calm = 0;
		else
			tarn_grow(s, step);
	}
	if (is_held)
		s->window = cc_min_u32(s->window, s->held_window);
}

/* Loss in CRUISE. Windows overflow only a buffer that they keep full, so loss_thresh is the bound
 * in a buffer too small for the queue wanted. Where the queue wanted stands, or none at all, delay
 * rules, and what is lost is the path's own, up to `forgiven`. */
CC_INLINE void tarn_judge_loss(struct tarn *s, const struct tarn_params *p,
			       const struct cc_conn *conn)
{
	u32 all = s->window_lost + s->window_delivered, limit = p->loss_thresh, least;
	u64 lost = (u64)s->window_lost * CC_ONE;

	if (s->settling) {
		s->settling--;
		s->window_lost = s->window_delivered = 0;
		return;
	}
	if (all < 20 ||
	    (all < 200 && (s->window_lost < 5 || s->window_lost * 100 < all * TARN_SEVERE_PERCENT)))
		return;
	if (!tarn_is_small_buffer(s))
		limit += p->forgiven;
	if (s->window_lost >= 5 && lost > (u64)all * limit) {
		/* To what the path carries: by 5 to 30 %. */
		least = tarn_bdp(s, cc_max_u32(s->rate, s->rate_before));
		least = cc_max_u32(least, tarn_scale(s->window, CC_RATIO(7, 10)));
		s->window = cc_min_u32(least, tarn_scale(s->window, CC_RATIO(95, 100)));
		s->held_window = s->window;
		s->has_cut = 1;
		s->hold_until_us =
		    conn->now_us + TARN_HOLD_US + cc_random_below(&s->random, TARN_HOLD_US / 2 + 1);
		s->calm = 0;
		s->settling = 2;
	}
	s->window_lost = s->window_delivered = 0;
}

/* The rate fell, where even the least RTT of two slots of a min_rtt is half above it: a round takes
 * as long as the queue. What the slot delivered is what the path now carries. */
CC_INLINE void tarn_watch_fall(struct tarn *s, const struct cc_conn *conn)
{
	u32 min_rtt_us = tarn_min_rtt(s), standing_us;
	u64 took_us = conn->now_us - s->slot.begin_us;
	u64 carried = conn->delivered - s->slot.delivered;

	if (took_us < min_rtt_us || s->slot.min_rtt_us == TARN_NONE)
		return;
	standing_us = cc_min_u32(s->slot.min_rtt_us, s->slot_rtt_us);
	carried = tarn_packets(carried) * (u64)min_rtt_us / cc_max_u64(took_us, 1);
	s->slot_rtt_us = s->slot.min_rtt_us;
	tarn_begin_stretch(&s->slot, conn);
	if (s->phase != CC_PHASE_CRUISE || s->is_probing ||
	    cc_before(conn->delivered, s->fell_until) || standing_us < min_rtt_us + min_rtt_us / 2)
		return;
	if (s->window > (carried + s->wanted) / 2 * 3) {
		s->window = (u32)carried + s->wanted;
		s->calm = 0;
		s->fell_until = conn->delivered + conn->inflight;
	}
}

CC_INLINE void tarn_leave_startup(struct tarn *s, u32 rtt_us)
{
	s->phase = CC_PHASE_CRUISE;
	s->window = tarn_in_path(s, rtt_us) + s->wanted;
	s->calm = 0;
	s->window_lost = s->window_delivered = 0;
	s->settling = 2; /* slow start's overflow is cut already */
}

/* Slow start, until a queue stands (HyStart) or too much is lost (BBR). Where the rate no longer
 * grows, one of the two happens. */
CC_INLINE void tarn_startup(struct tarn *s, const struct cc_conn *conn, u32 acked, int round_start)
{
	u32 min_rtt_us = tarn_min_rtt(s);
	u32 rise_us = cc_min_u32(cc_max_u32(min_rtt_us / 4, TARN_STARTUP_DELAY_US),
				 TARN_MOST_STARTUP_DELAY_US);

	if (s->round.samples >= TARN_STARTUP_SAMPLES &&
	    s->round.min_rtt_us > min_rtt_us + rise_us) {
		tarn_leave_startup(s, s->round.min_rtt_us);
		return;
	}
	if (round_start) {
		if (s->window_lost >= 6 &&
		    s->window_lost * 50ull > s->window_lost + s->window_delivered) {
			s->window = cc_min_u32(s->window, tarn_bdp(s, s->rate));
			tarn_leave_startup(s, min_rtt_us);
			return;
		}
		s->window_lost = s->window_delivered = 0;
	}
	if (conn->is_cwnd_limited)
		tarn_grow(s, tarn_packets(acked));
}

/* Below a packet a round trip the pacing decides. */
CC_INLINE void tarn_bound_window(struct tarn *s)
{
	s->window = cc_max_u32(s->window, s->restore_window ? CC_ONE : CC_ONE / 4);
	s->window = cc_min_u32(s->window, TARN_MOST_WINDOW);
}

CC_INLINE void tarn_cut_for_drain(struct tarn *s, const struct tarn_params *p, u32 rtt_us)
{
	s->window = tarn_scale(tarn_in_path(s, rtt_us), p->probe_gain);
	tarn_bound_window(s);
	s->probe_done_us = 0;
	s->probe_round = 0;
	s->probe_rtt_us = s->probe_mark_us = TARN_NONE;
	s->probe_stamp_us = 0;
}

CC_INLINE void tarn_end_drain(struct tarn *s, const struct tarn_params *p,
			      const struct cc_conn *conn, u32 left_us)
{
	int has_emptied = left_us <= tarn_left_limit(s);

	tarn_stop_drain(s, conn);
	if (has_emptied && s->probe_mean_us != TARN_NONE)
		tarn_keep_mean(s);
	if (s->phase == CC_PHASE_CRUISE) {
		tarn_leap(s, p);
		tarn_conclude(s, p, conn, has_emptied);
	} else {
		tarn_reconsider(s, conn, left_us);
	}
}

CC_INLINE void tarn_drain(struct tarn *s, const struct tarn_params *p, const struct cc_conn *conn,
			  int round_start)
{
	u32 left_us;

	if (!s->is_probing) {
		if (s->phase == CC_PHASE_STARTUP || s->restore_window ||
		    conn->now_us < s->low_stamp_us + p->probe_interval_us)
			return;
		s->is_probing = 1;
		s->probe_cuts = 0;
		s->saved_window = s->window;
		s->queue_before_us = tarn_queue_us(s, s->standing_us);
		s->probe_mean_us = TARN_NONE;
		tarn_begin_stretch(&s->gauge, conn);
		tarn_cut_for_drain(s, p, s->standing_us);
		return;
	}
	if (!s->probe_done_us) {
		/* One packet may be there always, though less than one a round trip is sent. */
		if (conn->inflight <= cc_max_u32(s->window >> CC_GAIN_SHIFT, 1)) {
			s->probe_done_us = conn->now_us + TARN_PROBE_US;
			s->next_round = conn->delivered + conn->inflight; /* a whole round */
		}
		return;
	}
	s->probe_round |= (u8)round_start;
	if (!s->probe_round || conn->now_us < s->probe_done_us)
		return;
	left_us = s->probe_rtt_us == TARN_NONE ? 0 : tarn_delay_us(s, s->probe_rtt_us);
	/* Behind a rate that fell what stands may be ours: give way once more. */
	if (!s->probe_cuts && left_us > cc_max_u32(s->queue_before_us / 2, tarn_min_rtt(s) / 16)) {
		s->probe_cuts = 1;
		tarn_cut_for_drain(s, p, s->probe_rtt_us);
		return;
	}
	tarn_end_drain(s, p, conn, left_us);
}

/* The RTT by which a window becomes a rate. A drain's window is of a path without a queue. After an
 * outage srtt is long, and falls by an eighth of the difference an ACK; where the window is small,
 * ACKs are far apart, and the rate would stay low for seconds. */
CC_INLINE u32 tarn_pacing_rtt_us(const struct tarn *s, const struct cc_conn *conn)
{
	u32 rtt_us = s->is_probing ? tarn_min_rtt(s) : conn->srtt_us, last_us = s->last_rtt_us[0];

	return last_us && last_us < rtt_us / 2 ? last_us : rtt_us;
}

CC_INLINE void tarn_apply(struct tarn *s, const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u32 gain = s->phase == CC_PHASE_STARTUP ? TARN_STARTUP_GAIN : TARN_PACING_GAIN;
	u32 rtt_us = tarn_pacing_rtt_us(s, conn);
	u64 rate;

	tarn_bound_window(s);
	ctl->cwnd = cc_min_u32(cc_max_u32(s->window >> CC_GAIN_SHIFT, 2), conn->cwnd_clamp);
	if (s->window < 2 * CC_ONE)
		gain = CC_ONE;
	if (rtt_us) {
		/* 10^6 / 2^10 is 15625 / 16; the product fits 64 bits. */
		rate = ((u64)s->window * gain >> CC_GAIN_SHIFT) * conn->mss_bytes * 15625;
		ctl->pacing_rate_Bps = cc_max_u64((rate >> 4) / rtt_us, 1);
	}
	s->mss_bytes = conn->mss_bytes;
}

CC_INLINE void tarn_init(struct tarn *s, const struct tarn_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	(void)p;
	s->phase = CC_PHASE_STARTUP;
	s->window = tarn_packets(ctl->cwnd);
	/* The handshake's RTT is of short packets, and of whole ms where timestamps measured it. */
	s->min_rtt_us[0] = s->min_rtt_us[1] = TARN_NONE;
	s->low_us = s->probe_rtt_us = s->held_window = s->slot_rtt_us = TARN_NONE;
	s->standing_us = conn->srtt_us;
	tarn_begin_stretch(&s->round, conn);
	tarn_begin_stretch(&s->slot, conn);
	tarn_begin_stretch(&s->gauge, conn);
	s->mean_us[0] = s->mean_us[1] = s->mean_us[2] = TARN_NONE;
	s->low_stamp_us = s->min_rtt_stamp_us = conn->now_us;
	s->fell_until = s->next_round = conn->delivered;
	s->lost = conn->lost;
	s->random = (conn->seed ^ 0x9e3779b9u) | 1;
	ctl->ssthresh = CC_INFINITE;
	ctl->sndbuf_factor = TARN_SNDBUF_FACTOR;
	tarn_apply(s, conn, ctl);
}

/* After a timeout: slow start to what the window was. */
CC_INLINE void tarn_restore(struct tarn *s, u32 acked)
{
	tarn_grow(s, tarn_packets(acked));
	if (s->window >= s->restore_window) {
		s->window = cc_max_u32(s->restore_window, CC_ONE);
		s->restore_window = 0;
	}
	s->window_lost = s->window_delivered = 0;
}

CC_INLINE void tarn_compete(struct tarn *s, const struct cc_conn *conn, u32 acked, u32 lost)
{
	if (s->is_probing)
		return;
	if (lost && !s->is_recovering)
		tarn_cubic_lost(s, conn);
	else
		tarn_cubic_ack(s, conn, acked);
}

CC_INLINE void tarn_on_ack(struct tarn *s, const struct tarn_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	u32 lost = conn->lost - s->lost, acked = ack->acked_sacked;
	u32 rtt_us = tarn_rtt_us(s, ack);
	int round_start;

	s->lost = conn->lost;
	s->window_lost += lost;
	s->window_delivered += acked;
	s->was_full |= conn->is_cwnd_full;
	if (rtt_us)
		tarn_take_rtt(s, conn, rtt_us);
	s->ca_state = conn->ca_state;
	CC_STEP();
	if (tarn_min_rtt(s) == TARN_NONE)
		return;
	round_start = tarn_update_round(s, p, conn, ack);
	CC_STEP();
	tarn_watch_fall(s, conn);
	CC_STEP();
	if (s->is_recovering && !cc_before(conn->delivered, s->recovery_point))
		s->is_recovering = 0;
	if (s->phase == CC_PHASE_STARTUP) {
		tarn_startup(s, conn, acked, round_start);
	} else if (s->restore_window) {
		tarn_restore(s, acked);
	} else if (s->phase == CC_PHASE_AVOIDANCE) {
		tarn_compete(s, conn, acked, lost);
	} else if (round_start && !s->is_probing) {
		tarn_step(s, p, conn);
		CC_STEP();
		tarn_judge_loss(s, p, conn);
	}
	CC_STEP();
	if (round_start && s->phase == CC_PHASE_CRUISE && !s->restore_window)
		tarn_watch_press(s, p, conn);
	CC_STEP();
	tarn_drain(s, p, conn, round_start);
	CC_STEP();
	if (round_start) {
		tarn_begin_stretch(&s->round, conn);
		s->was_full = 0;
	}
	tarn_apply(s, conn, ctl);
}

/* Slow start again, to a little less than the window was; to half where a timeout follows another
 * one before that. */
CC_INLINE void tarn_on_timeout(struct tarn *s)
{
	if (s->is_probing) {
		s->is_probing = 0;
		s->window = s->saved_window;
	}
	s->restore_window =
	    s->restore_window ? s->restore_window / 2 : tarn_scale(s->window, TARN_AFTER_TIMEOUT);
	s->restore_window = cc_max_u32(s->restore_window, 1);
	s->window = CC_ONE;
	s->calm = 0;
	s->settling = 2;
	s->is_recovering = 0;
	s->cubic.epoch_start = 0;
	if (s->phase == CC_PHASE_AVOIDANCE && !s->cubic.last_max_cwnd)
		s->cubic.last_max_cwnd = cc_max_u32(s->restore_window >> CC_GAIN_SHIFT, 1);
	if (s->phase == CC_PHASE_STARTUP)
		s->phase = CC_PHASE_CRUISE;
}

CC_INLINE void tarn_on_event(struct tarn *s, const struct tarn_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	(void)p;
	if (event->kind == CC_EVENT_SEND) {
		u64 burst =
		    (ctl->pacing_rate_Bps >> TARN_PACING_SHIFT) / cc_max_u32(conn->mss_bytes, 1);

		burst = cc_max_u64(cc_min_u64(burst, TARN_MOST_BURST), 2);
		ctl->tso_segs = cc_min_u32((u32)burst, cc_max_u32(conn->gso_max_segs, 1));
	} else if (event->kind == CC_EVENT_RTO) {
		tarn_on_timeout(s);
		s->low_stamp_us = conn->now_us;
		tarn_apply(s, conn, ctl);
	}
}

#endif
