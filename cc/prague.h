/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * prague.h - Prague (draft-briscoe-iccrg-prague-congestion-control, and the numbers of the
 * reference tcp_prague.c): DCTCP made for the Internet. Its packets are ECT(1), so an L4S queue
 * marks them early and often, and it gives way a little each time.
 *
 * What differs from dctcp.h:
 * - The window has a fraction and grows with every packet that was not marked, also in an episode
 *   of marks, so that an AQM that marks at random does not stop it.
 * - Below a virtual round trip of 25 ms it grows, averages and gives way as a flow of that length
 *   would, once it is older than some hundred rounds: short flows no longer starve long ones.
 * - It paces at its window in a round trip, in bursts of a quarter of a millisecond.
 * - Loss halves it.
 *
 * It owns its window because the host's recovery would take a whole window's worth of time for each
 * mark. Not here: finding out by itself that the AQM is a classic one (optional in the draft, off
 * in the reference).
 */
#ifndef FULLPIPE_CC_PRAGUE_H
#define FULLPIPE_CC_PRAGUE_H

#include "cc_more.h"
#include "fixed.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define prague_FLAGS (CC_OWNS_CWND | CC_WANTS_ECN | CC_ECHOES_CE)

#define PRAGUE_SHIFT 20 /* fractions of a packet and of 1: 2^-20 */
#define PRAGUE_ONE (1ull << PRAGUE_SHIFT)
#define PRAGUE_MIN_CWND 2u
#define PRAGUE_MAX_CWND (1u << 20)
#define PRAGUE_MAX_SCALED_RTT_US 100000u
#define PRAGUE_MAX_GAIN (4 * CC_ONE)

#define prague_PARAMS(P)                                                                           \
	P(gain_shift, 4, 0, 10, 1, "log2", "alpha is the last round's part",                       \
	  "draft, moving average of ECN feedback; PRAGUE_SHIFT_G",                                 \
	  "a round of packets weighs 1/2^this in alpha")                                           \
	P(alpha_init, CC_ONE, 0, CC_ONE, CC_ONE, "of packets", "the first mark costs nothing",     \
	  "draft; PRAGUE_MAX_ALPHA", "alpha before any mark was seen")                             \
	P(rtt_virtual_us, 25000, 0, PRAGUE_MAX_SCALED_RTT_US, 1, "us",                             \
	  "as its round trip lets it", "draft, reduced RTT-dependence; prague_rtt_target",         \
	  "with a shorter round trip it behaves as with this one")                                 \
	P(rtt_virtual_rounds, 500, 0, 1000000, 1, "rounds", "from the end of slow start",          \
	  "prague_rtt_transition", "rounds after slow start before it does")                       \
	P(loss_beta, CC_RATIO(1, 2), CC_RATIO(1, 10), CC_RATIO(99, 100), CC_ONE, "of cwnd",        \
	  "not allowed", "draft, behaviour on loss; prague_enter_loss()",                          \
	  "what a loss leaves of the window")                                                      \
	P(startup_pacing_gain, 2 * CC_ONE, CC_ONE, PRAGUE_MAX_GAIN, CC_ONE, "of cwnd a round",     \
	  "not allowed", "prague_update_pacing_rate()", "pacing far below ssthresh")               \
	P(pacing_gain, CC_ONE, CC_RATIO(1, 2), PRAGUE_MAX_GAIN, CC_ONE, "of cwnd a round",         \
	  "not allowed", "draft, pacing; prague_update_pacing_rate()", "pacing otherwise")         \
	P(burst_us, 250, 0, 10000, 1, "us", "bursts as the host has them",                         \
	  "draft, pacing; prague_burst_shift", "longest burst, in time at the pacing rate")        \
	P(min_burst, 1, 1, 64, 1, "packets", "not allowed",                                        \
	  "prague_update_pacing_rate() of version 0.7; before, sysctl tcp_min_tso_segs (2)",       \
	  "a burst is no shorter, however long it lasts")

#define prague_STATE(S)                                                                            \
	S(phase, "phase", 1, s->in_slow_start ? CC_PHASE_SLOW_START : CC_PHASE_AVOIDANCE,          \
	  "slow start or avoidance")                                                               \
	S(round_count, "", 1, s->round, "rounds since slow start")                                 \
	S(alpha, "", (u32)PRAGUE_ONE, s->alpha >> p->gain_shift,                                   \
	  "estimated part of marked packets")                                                      \
	S(window, "packets", (u32)PRAGUE_ONE, s->window,                                           \
	  "window with its fraction, before pacing and host")                                      \
	S(in_loss, "", 1, s->in_loss, "1: in a loss episode, in which marks do not count")

struct prague_params {
	prague_PARAMS(CC_PARAM_FIELD)
};

struct prague {
	u64 window;       /* of PRAGUE_ONE a packet */
	u64 prior_window; /* before the last reduction by loss, for its undoing */
	u64 alpha;        /* of PRAGUE_ONE << gain_shift, so that its remainder is kept */
	u64 alpha_us;     /* when it was last updated */
	u64 turn_end_us;  /* until then marks have reduced the window */
	u32 round_end;    /* sequence number */
	u32 delivered;    /* counters at the beginning of the round */
	u32 delivered_ce;
	u32 ce_seen; /* conn->delivered_ce at the last ACK */
	u32 round;   /* since slow start */
	u32 prior_cwnd;
	u8 saw_mark;
	u8 in_loss;
	u8 in_slow_start;
};

CC_INLINE void prague_start_round(struct prague *s, const struct cc_conn *conn)
{
	s->round_end = conn->snd_nxt;
	s->delivered = conn->delivered;
	s->delivered_ce = conn->delivered_ce;
	if (!s->in_slow_start)
		s->round++;
}

/* It behaves as with a longer round trip; 0: it does not. */
CC_INLINE u32 prague_virtual_rtt_us(const struct prague *s, const struct prague_params *p,
				    const struct cc_conn *conn)
{
	if (s->in_slow_start || s->round < p->rtt_virtual_rounds || !conn->srtt_us ||
	    conn->srtt_us >= p->rtt_virtual_us)
		return 0;
	return p->rtt_virtual_us;
}

/* Once a round trip, and no more often than once a virtual one. */
CC_INLINE void prague_update_alpha(struct prague *s, const struct prague_params *p,
				   const struct cc_conn *conn)
{
	u64 marked;

	if (cc_before(conn->snd_una, s->round_end) ||
	    conn->now_us - s->alpha_us < prague_virtual_rtt_us(s, p, conn))
		return;
	/* Before the first mark there may be no AQM to measure. */
	if (s->saw_mark) {
		marked = (u64)(conn->delivered_ce - s->delivered_ce) << PRAGUE_SHIFT;
		marked /= cc_max_u32(conn->delivered - s->delivered, 1);
		s->alpha = cc_min_u64(cc_ewma(s->alpha, marked, p->gain_shift),
				      PRAGUE_ONE << p->gain_shift);
		s->alpha_us = conn->now_us;
	}
	prague_start_round(s, conn);
}

CC_INLINE u64 prague_bounded(u64 window)
{
	return cc_min_u64(window, (u64)PRAGUE_MAX_CWND << PRAGUE_SHIFT);
}

/* A packet a round trip, of the virtual one by the square: fewer round trips, and a window that is
 * smaller for the same rate. */
CC_INLINE void prague_grow(struct prague *s, const struct prague_params *p,
			   const struct cc_conn *conn, const struct cc_ctl *ctl, u32 packets)
{
	u64 step = PRAGUE_ONE, target_us = prague_virtual_rtt_us(s, p, conn), cwnd, more;

	/* Rounded to the nearest, and at least 2^-20 of a packet for one, as tcp_prague.c: below
	 * some hundred us a step rounded down is nothing, and the window would never grow again. */
	if (target_us)
		step = ((((u64)conn->srtt_us * conn->srtt_us) << PRAGUE_SHIFT) +
			target_us * target_us / 2) /
		       (target_us * target_us);
	cwnd = cc_max_u32(ctl->cwnd, 1);
	more = cc_max_u64((packets * step + cwnd / 2) / cwnd, packets);
	s->window = prague_bounded(s->window + more);
}

CC_INLINE u32 prague_whole_window(const struct prague *s)
{
	return cc_max_u32((u32)((s->window + PRAGUE_ONE - 1) >> PRAGUE_SHIFT), PRAGUE_MIN_CWND);
}

/* A mark came: by half of the marked part, once in each round trip, or virtual round trip. Turns
 * follow one another without a gap, where the reference waits for the next mark behind its turn:
 * the window is then 2 / p of the marking probability p. */
CC_INLINE void prague_give_way(struct prague *s, const struct prague_params *p,
			       const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u64 alpha = s->alpha >> p->gain_shift;
	u32 turn_us = cc_max_u32(prague_virtual_rtt_us(s, p, conn), conn->srtt_us);

	if (conn->now_us < s->turn_end_us)
		return;
	if (conn->now_us - s->turn_end_us < turn_us)
		s->turn_end_us += turn_us;
	else
		s->turn_end_us = conn->now_us + turn_us;
	s->window -= (s->window >> 10) * alpha >> (PRAGUE_SHIFT - 10 + 1);
	ctl->ssthresh = prague_whole_window(s);
	s->in_slow_start = 0;
}

CC_INLINE void prague_take_loss(struct prague *s, const struct prague_params *p, struct cc_ctl *ctl)
{
	s->prior_cwnd = ctl->cwnd;
	s->prior_window = s->window;
	s->window = (s->window >> CC_GAIN_SHIFT) * p->loss_beta;
	s->in_loss = 1;
	s->in_slow_start = 0;
	ctl->ssthresh = prague_whole_window(s);
}

CC_INLINE void prague_set_pacing(struct prague *s, const struct prague_params *p,
				 const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u64 rate, burst;

	if (!conn->srtt_us)
		return;
	rate = cc_max_u64(s->window, (u64)PRAGUE_MIN_CWND << PRAGUE_SHIFT) >> 12;
	rate = rate * conn->mss_bytes * CC_USEC_PER_SEC / conn->srtt_us >> (PRAGUE_SHIFT - 12);
	rate = cc_mul_shift(rate,
			    ctl->cwnd < ctl->ssthresh / 2 ? p->startup_pacing_gain : p->pacing_gain,
			    CC_GAIN_SHIFT);
	ctl->pacing_rate_Bps = cc_max_u64(rate, 1);
	if (p->burst_us) {
		/* Bursts are counted in 16 bits, which 2^50 bytes/s exceed. */
		burst = cc_min_u64(rate, 1ull << 50) * p->burst_us / CC_USEC_PER_SEC;
		burst /= cc_max_u32(conn->mss_bytes, 1);
		ctl->tso_most = (u16)cc_min_u64(cc_max_u64(burst, p->min_burst), 0xffff);
	}
}

CC_INLINE void prague_init(struct prague *s, const struct prague_params *p,
			   const struct cc_conn *conn, struct cc_ctl *ctl)
{
	s->window = prague_bounded((u64)ctl->cwnd << PRAGUE_SHIFT);
	s->alpha = ((u64)p->alpha_init << (PRAGUE_SHIFT - CC_GAIN_SHIFT)) << p->gain_shift;
	s->alpha_us = conn->now_us;
	s->ce_seen = conn->delivered_ce;
	s->in_slow_start = 1;
	ctl->is_scalable = conn->ecn_ok;
	prague_start_round(s, conn);
	prague_set_pacing(s, p, conn, ctl);
}

CC_INLINE void prague_on_ack(struct prague *s, const struct prague_params *p,
			     const struct cc_conn *conn, const struct cc_ack *ack,
			     struct cc_ctl *ctl)
{
	u32 marked = conn->delivered_ce - s->ce_seen, clean = 0, target;

	s->ce_seen = conn->delivered_ce;
	if (marked) {
		s->saw_mark = 1;
		if (!s->in_loss)
			prague_give_way(s, p, conn, ctl);
	}
	if (ack->acked_sacked > marked)
		clean = ack->acked_sacked - marked;
	if (clean && !s->in_loss && conn->is_cwnd_limited) {
		if (s->in_slow_start) {
			clean = cc_slow_start(conn, ctl, clean);
			s->window = prague_bounded((u64)ctl->cwnd << PRAGUE_SHIFT);
			s->in_slow_start = ctl->cwnd < ctl->ssthresh;
		}
		if (clean)
			prague_grow(s, p, conn, ctl, clean);
	}
	CC_STEP();
	/* A packet an ACK, so that a reduction thins out what is sent and does not stop it. */
	target = prague_whole_window(s);
	if (ctl->cwnd > target)
		ctl->cwnd--;
	else if (ctl->cwnd < target && ctl->cwnd < conn->cwnd_clamp)
		ctl->cwnd++;
	CC_STEP();
	prague_update_alpha(s, p, conn);
	CC_STEP();
	prague_set_pacing(s, p, conn, ctl);
}

CC_INLINE void prague_on_event(struct prague *s, const struct prague_params *p,
			       const struct cc_conn *conn, const struct cc_event *event,
			       struct cc_ctl *ctl)
{
	switch (event->kind) {
	case CC_EVENT_STATE:
		if (event->value == conn->ca_state)
			break;
		if (event->value == CC_RECOVERY)
			prague_take_loss(s, p, ctl);
		else if (event->value == CC_OPEN)
			s->in_loss = 0;
		break;
	case CC_EVENT_RTO:
		prague_take_loss(s, p, ctl);
		break;
	case CC_EVENT_UNDO:
		s->window = cc_max_u64(s->window, s->prior_window);
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
		break;
	default:
		break;
	}
}

#endif
