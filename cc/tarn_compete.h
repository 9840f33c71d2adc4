/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * tarn_compete.h - beside flows that fill the buffer: when competition begins, CUBIC's window while
 * it lasts (RFC 9438, cubic.h), and when it ends. The drains themselves are tarn.h's.
 *
 * Two findings begin it. A drain that leaves half of the queue, some times in a row: flows of this
 * kind drain together. Or a queue that stands for two seconds where the law would have pressed each
 * of its own flows to less than area / press_us^2: 0.7 Mbit/s.
 *
 * A drain that finds the path empty ends it. Flows of this kind may hold one another for the
 * others; so they drain when the buffer overflows, which many see at once, and when the queue falls
 * to half, because then somebody drains.
 */
#ifndef FULLPIPE_CC_TARN_COMPETE_H
#define FULLPIPE_CC_TARN_COMPETE_H

#include "tarn_model.h"

#define TARN_LEFT_OF_QUEUE 2  /* a drain of our kind alone leaves less than a half, */
#define TARN_NOISE_US 1500    /* or this, */
#define TARN_NOISE_OF_RTT 32  /* or this part of min_rtt */
#define TARN_CLEAR_OF_RTT 5   /* a fifth of min_rtt left, and the path is drained */
#define TARN_HEAVY_PERCENT 40 /* of min_rtt left: counts twice */
#define TARN_MOST_DOUBTS 4    /* at most 16 empty drains in a row are needed */

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

CC_INLINE void tarn_begin_competition(struct tarn *s, const struct cc_conn *conn)
{
	if (s->left_us && conn->now_us - s->left_us < 3 * TARN_COMPETE_PROBE_US)
		s->doubts = (u8)cc_min_u32(s->doubts + 1u, TARN_MOST_DOUBTS);
	else if (s->doubts)
		s->doubts--;
	s->phase = CC_PHASE_AVOIDANCE;
	s->drained = 0;
	s->undrained = 0;
	s->press_us = 0;
	s->is_recovering = 0;
	s->peak_us = 0;
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

/* Once a round in CRUISE. */
CC_INLINE void tarn_watch_press(struct tarn *s, const struct tarn_params *p,
				const struct cc_conn *conn)
{
	u32 limit_us =
	    cc_max_u32(p->press_us, tarn_scale(tarn_min_rtt(s), p->press_rtt)) + tarn_jitter_us(s);
	/* A short and large queue is no standing one. */
	u32 queue_us = cc_min_u32(tarn_delay_us(s, s->standing_us), 2 * limit_us);
	u64 past_us = conn->now_us - s->press_stamp_us;
	u32 weight = (u32)(cc_min_u64(past_us, CC_USEC_PER_SEC) * CC_ONE / (2 * CC_USEC_PER_SEC));

	/* Only what stands although we have given way: an own queue goes within a round. */
	if (s->window - tarn_in_path(s, s->standing_us) > 2 * s->wanted)
		weight = 0;
	s->press_stamp_us = conn->now_us;
	s->press_us =
	    (u32)(((u64)s->press_us * (CC_ONE - weight) + (u64)queue_us * weight) >> CC_GAIN_SHIFT);
	if (p->press_us && s->press_us >= limit_us)
		tarn_begin_competition(s, conn);
}

/* A drain has ended that left `left_us` of queue. */
CC_INLINE void tarn_conclude(struct tarn *s, const struct tarn_params *p,
			     const struct cc_conn *conn, u32 left_us)
{
	u32 min_rtt_us = tarn_min_rtt(s), limit_us, enough = p->undrained_probes;

	if (s->phase != CC_PHASE_AVOIDANCE) {
		limit_us = cc_max_u32(s->queue_before_us / TARN_LEFT_OF_QUEUE, TARN_NOISE_US);
		limit_us = cc_max_u32(limit_us, min_rtt_us / TARN_NOISE_OF_RTT);
		s->undrained = left_us > limit_us ? (u8)cc_min_u32(s->undrained + 1u, 200) : 0;
		if ((u64)left_us * 100 > (u64)min_rtt_us * TARN_HEAVY_PERCENT)
			s->undrained++;
		if (s->left_us && conn->now_us - s->left_us < TARN_RETURN_US)
			enough = cc_min_u32(enough, 1);
		if (enough && s->undrained >= enough)
			tarn_begin_competition(s, conn);
		return;
	}
	s->drained =
	    left_us < min_rtt_us / TARN_CLEAR_OF_RTT ? (u8)cc_min_u32(s->drained + 1u, 200) : 0;
	if (s->drained >= 1u << cc_min_u32(s->doubts, TARN_MOST_DOUBTS))
		tarn_end_competition(s, conn);
}

/* Asks for a drain, unless one was there lately. */
CC_INLINE void tarn_drain_now(struct tarn *s, const struct cc_conn *conn)
{
	if (conn->now_us - s->probed_us > TARN_OVERFLOW_PROBE_US)
		s->low_stamp_us = 0;
}

/* Once a round in COMPETE: somebody drains, and it may be our own kind. */
CC_INLINE void tarn_join_drain(struct tarn *s, const struct cc_conn *conn)
{
	u32 queue_us = tarn_delay_us(s, s->standing_us);

	s->peak_us = cc_max_u32(s->peak_us, queue_us);
	if (queue_us < s->peak_us / 2)
		tarn_drain_now(s, conn);
}

CC_INLINE void tarn_cubic_lost(struct tarn *s, const struct cc_conn *conn)
{
	struct cubic_params params = tarn_cubic_params();
	struct cc_ctl ctl = {0};

	ctl.cwnd = s->window >> CC_GAIN_SHIFT;
	cubic_reduce(&s->cubic, &params, &ctl);
	s->window = tarn_scale(s->window, params.beta);
	s->is_recovering = 1;
	s->recovery_point = conn->delivered + conn->inflight;
	tarn_drain_now(s, conn);
}

/* Before its first loss the window doubles up to what carries, behind the queue that now stands,
 * the rate that was there before competition began; then it grows by a quarter a round. */
CC_INLINE void tarn_reclaim(struct tarn *s, const struct cc_conn *conn, u32 acked)
{
	u64 rate = cc_max_u32(s->max_rate[0], s->max_rate[1]);
	u64 before = rate * conn->srtt_us >> (TARN_RATE_SHIFT - CC_GAIN_SHIFT);

	s->window += (u32)((u64)acked * CC_ONE / (s->window < before ? 1 : 4));
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
	s->window += (u32)((u64)acked * CC_ONE / cc_max_u32(s->cubic.cnt, 1));
}

#endif
