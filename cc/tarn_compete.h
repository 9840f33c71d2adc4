/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * tarn_compete.h - beside flows that fill the buffer: when competition begins, CUBIC's window while
 * it lasts (RFC 9438, cubic.h), and when it ends. The drains themselves are tarn.h's.
 *
 * Two findings begin it. Drains that leave half of the queue, some in a row, once flows of this
 * kind have had the time to drain together. Or a queue that stands for three seconds at three times
 * what flows of this kind make at most: the law then leaves half a packet in a min_rtt.
 *
 * A drain that finds the path empty ends it.
 */
#ifndef FULLPIPE_CC_TARN_COMPETE_H
#define FULLPIPE_CC_TARN_COMPETE_H

#include "tarn_model.h"

#define TARN_LEFT_OF_QUEUE 2 /* a drain of our kind alone leaves less than a half, */
#define TARN_NOISE_US 1500   /* or this, or what jitter adds, */
#define TARN_NOISE_OF_RTT 32 /* or this part of min_rtt */
#define TARN_CLEAR_OF_RTT 8  /* an eighth of min_rtt left, and the path is drained */
#define TARN_LEAST_WINDOW 4  /* packets: below two, no ACK is of a full window */
#define TARN_MOST_DOUBTS 4   /* at most 16 empty drains in a row are needed */

/* RFC 9438's constants; cubic.h's time in microseconds. */
CC_INLINE struct cubic_params tarn_cubic_params(void)
{
	struct cubic_params params = {0};

	params.beta = CC_RATIO(7, 10);
	params.scale = 41;
	params.fast_convergence = 1;
	params.reno_friendly = 1;
	params.min_ssthresh = 2;
	params.clock_us = 1;
	return params;
}

/* Back to the window of before the drain. */
CC_INLINE void tarn_stop_drain(struct tarn *s, const struct cc_conn *conn)
{
	s->is_probing = 0;
	s->window = s->saved_window;
	s->low_us = s->probe_rtt_us;
	s->low_stamp_us =
	    s->phase == CC_PHASE_CRUISE && s->probe_stamp_us ? s->probe_stamp_us : conn->now_us;
	s->settling = 2; /* the window comes back faster than the link carries it away */
	tarn_begin_stretch(&s->gauge, conn);
}

CC_INLINE void tarn_begin_competition(struct tarn *s, const struct cc_conn *conn)
{
	if (s->left_us && conn->now_us - s->left_us < TARN_DOUBT_US)
		s->doubts = (u8)cc_min_u32(s->doubts + 1u, TARN_MOST_DOUBTS);
	else if (s->doubts)
		s->doubts--;
	s->phase = CC_PHASE_AVOIDANCE;
	s->drained = 0;
	s->undrained = 0;
	s->pressed_us = 0;
	s->low_stamp_us = conn->now_us;
	s->is_recovering = 0;
	s->window = cc_max_u32(s->window, TARN_LEAST_WINDOW * CC_ONE);
	cubic_reset(&s->cubic, conn);
}

CC_INLINE void tarn_end_competition(struct tarn *s, const struct cc_conn *conn)
{
	s->left_us = conn->now_us;
	s->phase = CC_PHASE_CRUISE;
	s->window = tarn_in_path(s, s->standing_us) + s->wanted;
	s->calm = 0;
	s->window_lost = s->window_delivered = 0;
}

/* Once a round in CRUISE, drains included. */
CC_INLINE void tarn_watch_press(struct tarn *s, const struct tarn_params *p,
				const struct cc_conn *conn)
{
	/* Only what stands although we have given way: an own queue goes within a round. */
	if (!p->press ||
	    tarn_queue_us(s, s->standing_us) <= tarn_scale(tarn_bound_us(s, p), p->press) ||
	    (!s->is_probing && tarn_own_queue(s) > 2 * s->wanted)) {
		s->pressed_us = 0;
		return;
	}
	if (!s->pressed_us)
		s->pressed_us = conn->now_us;
	if (conn->now_us - s->pressed_us < p->press_time_us)
		return;
	if (s->is_probing)
		tarn_stop_drain(s, conn);
	tarn_begin_competition(s, conn);
}

/* More than that left, and a drain did not find the path empty. */
CC_INLINE u32 tarn_left_limit(const struct tarn *s)
{
	u32 min_rtt_us = tarn_min_rtt(s);
	u32 noise_us = cc_max_u32(TARN_NOISE_US, min_rtt_us / TARN_NOISE_OF_RTT);

	noise_us = cc_max_u32(noise_us, TARN_MOST_SPREADS * tarn_spread_us(s));
	return cc_max_u32(s->queue_before_us / TARN_LEFT_OF_QUEUE, noise_us);
}

/* A drain in CRUISE has ended. */
CC_INLINE void tarn_conclude(struct tarn *s, const struct tarn_params *p,
			     const struct cc_conn *conn, int has_emptied)
{
	if (has_emptied || s->drains < TARN_FIRST_DRAINS)
		s->undrained = 0;
	else
		s->undrained = (u8)cc_min_u32(s->undrained + 1u, 200);
	s->drains = (u8)cc_min_u32(s->drains + 1u, TARN_FIRST_DRAINS);
	if (p->undrained_probes && s->undrained >= p->undrained_probes)
		tarn_begin_competition(s, conn);
}

/* A drain in COMPETE has ended. */
CC_INLINE void tarn_reconsider(struct tarn *s, const struct cc_conn *conn, u32 left_us)
{
	s->drained = left_us < cc_max_u32(TARN_NOISE_US, tarn_min_rtt(s) / TARN_CLEAR_OF_RTT)
			 ? (u8)cc_min_u32(s->drained + 1u, 200)
			 : 0;
	if (s->drained >= 1u << cc_min_u32(s->doubts, TARN_MOST_DOUBTS))
		tarn_end_competition(s, conn);
}

CC_INLINE void tarn_cubic_lost(struct tarn *s, const struct cc_conn *conn)
{
	struct cubic_params params = tarn_cubic_params();
	struct cc_ctl ctl = {0};

	ctl.cwnd = cc_max_u32(s->window >> CC_GAIN_SHIFT, 1);
	cubic_reduce(&s->cubic, &params, &ctl);
	/* CUBIC halves a window of one packet to 0, which says that there was no loss yet. */
	s->cubic.last_max_cwnd = cc_max_u32(s->cubic.last_max_cwnd, 1);
	s->window = tarn_scale(s->window, params.beta);
	s->is_recovering = 1;
	s->recovery_point = conn->delivered + conn->inflight;
}

/* Before its first loss the window doubles up to what carries, behind the queue that now stands,
 * the rate that was there before competition began; then it grows by a quarter a round. */
CC_INLINE void tarn_reclaim(struct tarn *s, const struct cc_conn *conn, u32 acked)
{
	u64 rate = cc_max_u32(s->max_rate[0], s->max_rate[1]);
	u64 before = rate * conn->srtt_us >> (TARN_RATE_SHIFT - CC_GAIN_SHIFT);

	tarn_grow(s, (u64)acked * CC_ONE / (s->window < before ? 1 : 4));
}

CC_INLINE void tarn_cubic_ack(struct tarn *s, const struct cc_conn *conn, u32 acked)
{
	struct cubic_params params = tarn_cubic_params();

	if (!conn->is_cwnd_limited || s->is_recovering)
		return;
	if (!s->cubic.last_max_cwnd) {
		tarn_reclaim(s, conn, acked);
		return;
	}
	s->cubic.delay_min_us = tarn_min_rtt(s);
	cubic_update(&s->cubic, &params, conn, cc_max_u32(s->window >> CC_GAIN_SHIFT, 1), acked);
	tarn_grow(s, (u64)acked * CC_ONE / cc_max_u32(s->cubic.cnt, 1));
}

#endif
