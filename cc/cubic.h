/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * cubic.h - CUBIC: RFC 9438 in the integer arithmetic of Linux (tcp_cubic.c), with its fast
 * convergence, Reno-friendly region and HyStart.
 *
 * After a reduction the window follows W(t) = C (t - K)^3 + W_max (RFC 9438 section 4.2): concave
 * up to the window of the last loss, flat around it, convex beyond. The host detects loss and runs
 * recovery; this file says how the window grows and what a reduction leaves. How the first slow
 * start grows and ends is start.h's where `start` is not "linux".
 *
 * Differences from Linux: time comes from the connection's clock in steps of `clock_us` (a tick
 * of HZ=250, as Debian builds it) and not from jiffies, so its phase is the connection's.
 */
#ifndef FULLPIPE_CC_CUBIC_H
#define FULLPIPE_CC_CUBIC_H

#include "cc_more.h"
#include "fixed.h"
#include "params.h"
#include "start.h"
#include "state.h"
#include "window.h"

#define cubic_FLAGS CC_WANTS_RTT

/* clang-format off */
#define cubic_PARAMS(P)                                                                            \
	P(beta, 717, CC_RATIO(1, 10), CC_RATIO(99, 100), CC_ONE, "of cwnd", "not allowed",         \
	  "RFC 9438 section 4.6 (0.7), tcp_cubic.c `beta`", "what a reduction leaves of the window")  \
	P(scale, 41, 1, 1024, 1, "C in 1/102.4 packets/s^3", "not allowed",                            \
	  "RFC 9438 section 4.1 (C = 0.4), tcp_cubic.c `bic_scale`", "steepness of the cubic function") \
	P(fast_convergence, 1, 0, 1, 1, "switch", "off", "RFC 9438 section 4.7",                      \
	  "a flow that shrinks twice gives up more, for newcomers")                                    \
	P(reno_friendly, 1, 0, 1, 1, "switch", "off", "RFC 9438 section 4.3",                         \
	  "never grow more slowly than Reno would")                                                    \
	P(hystart, 1, 0, 1, 1, "switch", "off", "tcp_cubic.c `hystart`",                              \
	  "leave slow start when ACK trains or delays say that the pipe is full")                     \
	P(hystart_low_window, 16, 0, 10000, 1, "packets", "any window", "tcp_cubic.c",                \
	  "below this window HyStart does not look")                                                   \
	P(hystart_ack_delta_us, 2000, 0, 1000000, 1, "us", "no trains", "tcp_cubic.c",                \
	  "ACKs closer than this belong to a train")                                                   \
	P(hystart_samples, 8, 1, 255, 1, "samples", "not allowed", "tcp_cubic.c HYSTART_MIN_SAMPLES", \
	  "RTT samples of a round before its delay counts")                                            \
	P(hystart_delay_min_us, 4000, 0, 1000000, 1, "us", "no floor", "tcp_cubic.c",                 \
	  "least rise of the delay that ends slow start")                                              \
	P(hystart_delay_max_us, 16000, 0, 1000000, 1, "us", "not allowed", "tcp_cubic.c",             \
	  "largest rise of the delay that is needed")                                                  \
	P(min_ssthresh, 2, 1, 1000, 1, "packets", "not allowed", "tcp_cubic.c",                       \
	  "floor of the slow-start threshold")                                                         \
	P(clock_us, 4000, 1, 10000, 1, "us", "not allowed", "Linux HZ=250 (Debian)",                  \
	  "resolution of the epoch's clock")                                                           \
	CC_START_PARAMS(P)
/* clang-format on */

/* W_max, K and W_est as RFC 9438 names them; a reduction ends their epoch. */
#define cubic_STATE(S)                                                                             \
	S(phase, "phase", 1, s->slow_start ? CC_PHASE_SLOW_START : CC_PHASE_AVOIDANCE,             \
	  "slow start or avoidance")                                                               \
	S(min_rtt, "us", 1, cc_unless(s->delay_min_us, 0), "least RTT seen")                       \
	S(w_max, "packets", 1, s->epoch_start ? (s64)s->origin : CC_NONE,                          \
	  "plateau of the running epoch's cubic function")                                         \
	S(k, "s", 1u << CUBIC_HZ_SHIFT, s->epoch_start ? (s64)s->k : CC_NONE,                      \
	  "from the epoch's start to W_max")                                                       \
	S(w_est, "packets", 1, s->epoch_start ? (s64)s->reno_cwnd : CC_NONE,                       \
	  "window that Reno would have")                                                           \
	S(hystart_found, "", 1, s->found, "1: HyStart ended slow start")                           \
	CC_START_STATE(S)

struct cubic_params {
	cubic_PARAMS(CC_PARAM_FIELD)
};

#define CUBIC_HZ_SHIFT 10 /* the cubic function counts time in 2^-10 s (BICTCP_HZ) */
#define CUBIC_NO_RTT 0xffffffffu

struct cubic {
	u64 epoch_start;    /* in ticks; 0: no epoch */
	u64 last_time;      /* of the last computation, in ticks */
	u64 round_start_us; /* HyStart: when this round began */
	u64 last_ack_us;    /* HyStart: the train's last ACK */
	u32 cnt;            /* packets acknowledged per packet of growth */
	u32 last_max_cwnd;
	u32 last_cwnd;
	u32 origin;       /* W_max of the running epoch */
	u32 k;            /* time from the epoch's start to W_max, in 2^-10 s */
	u32 delay_min_us; /* least RTT seen; 0: none */
	u32 ack_cnt;      /* acknowledged since reno_cwnd grew */
	u32 reno_cwnd;    /* what Reno's window would be */
	u32 end_seq;      /* HyStart: the round ends when this is acknowledged */
	u32 round_rtt_us; /* HyStart: least RTT of the round */
	u32 prior_cwnd;
	u8 sample_cnt;
	u8 found;      /* HyStart ended slow start */
	u8 slow_start; /* for the recording only */
	u8 unused_;
	struct cc_start start;
};

CC_INLINE u64 cubic_ticks(const struct cubic_params *p, u64 us) { return us / p->clock_us; }

CC_INLINE void cubic_hystart_reset(struct cubic *s, const struct cc_conn *conn)
{
	s->round_start_us = s->last_ack_us = conn->now_us;
	s->end_seq = conn->snd_nxt;
	s->round_rtt_us = CUBIC_NO_RTT;
	s->sample_cnt = 0;
}

CC_INLINE void cubic_reset(struct cubic *s, const struct cc_conn *conn)
{
	s->cnt = 0;
	s->last_max_cwnd = 0;
	s->last_cwnd = 0;
	s->last_time = 0;
	s->origin = 0;
	s->k = 0;
	s->delay_min_us = 0;
	s->epoch_start = 0;
	s->ack_cnt = 0;
	s->reno_cwnd = 0;
	s->found = 0;
	cubic_hystart_reset(s, conn);
}

CC_INLINE void cubic_init(struct cubic *s, const struct cubic_params *p, const struct cc_conn *conn,
			  struct cc_ctl *ctl)
{
	cubic_reset(s, conn);
	cc_start_init(&s->start, CC_START_PARAMS_OF(p), ctl);
	s->prior_cwnd = ctl->cwnd;
	s->slow_start = 1;
}

/* The cubic function: the window at which the running epoch aims (bictcp_update()). */
CC_INLINE u32 cubic_target(const struct cubic *s, const struct cubic_params *p, u64 now)
{
	/* usecs_to_jiffies() rounds up. */
	u64 rtt_us = (u64)s->delay_min_us + p->clock_us - 1;
	u64 us = (now - s->epoch_start + cubic_ticks(p, rtt_us)) * p->clock_us;
	u64 t = (us << CUBIC_HZ_SHIFT) / CC_USEC_PER_SEC;
	u64 distance = t < s->k ? s->k - t : t - s->k;
	u64 delta;

	/* 2^21 in 2^-10 s is 34 minutes, and more than any K: beyond it the cube would not fit 64
	 * bits. */
	distance = cc_min_u64(distance, 1u << 21);
	delta =
	    cc_mul_shift(distance * distance * distance, p->scale * 10, 10 + 3 * CUBIC_HZ_SHIFT);
	if (t < s->k)
		return delta < s->origin ? s->origin - (u32)delta : 0;
	return (u32)cc_min_u64(s->origin + delta, CC_INFINITE);
}

/* Recomputes cnt (bictcp_update()). */
CC_INLINE void cubic_update(struct cubic *s, const struct cubic_params *p,
			    const struct cc_conn *conn, u32 cwnd, u32 acked)
{
	u64 now = cubic_ticks(p, conn->now_us);
	u32 target, missing;

	s->ack_cnt += acked;
	/* HZ / 32: about 31 ms without a change of the window. */
	if (s->last_cwnd == cwnd && (now - s->last_time) * p->clock_us <= CC_USEC_PER_SEC / 32)
		return;
	if (!s->epoch_start || now != s->last_time) {
		s->last_cwnd = cwnd;
		s->last_time = now;
		if (!s->epoch_start) {
			s->epoch_start = now;
			s->ack_cnt = acked;
			s->reno_cwnd = cwnd;
			if (s->last_max_cwnd <= cwnd) {
				s->k = 0;
				s->origin = cwnd;
			} else {
				u64 factor = (1ull << (10 + 3 * CUBIC_HZ_SHIFT)) / (p->scale * 10);

				s->k = cc_cbrt(factor * (s->last_max_cwnd - cwnd));
				s->origin = s->last_max_cwnd;
			}
		}
		target = cubic_target(s, p, now);
		missing = target > cwnd ? target - cwnd : 0;
		s->cnt = missing ? cwnd / missing : 100 * cwnd;
		/* Without a known maximum the window grows at least 5 % an RTT. */
		if (!s->last_max_cwnd && s->cnt > 20)
			s->cnt = 20;
	}
	if (p->reno_friendly) {
		/* One packet for every 8 (1 + beta) / (3 (1 - beta)) / 8 windows acknowledged:
		 * RFC 9438 section 4.3 with alpha = 3 (1 - beta) / (1 + beta). */
		u32 per_eighth = 8 * (CC_ONE + p->beta) / 3 / (CC_ONE - p->beta);
		u32 per = cc_max_u32((u32)((u64)cwnd * per_eighth >> 3), 1);
		u32 grow = s->ack_cnt > per ? (s->ack_cnt - 1) / per : 0;

		s->ack_cnt -= grow * per;
		s->reno_cwnd += grow;
		missing = s->reno_cwnd > cwnd ? s->reno_cwnd - cwnd : 0;
		if (missing)
			s->cnt = cc_min_u32(s->cnt, cwnd / missing);
	}
	/* At most one packet for every two acknowledged. */
	s->cnt = cc_max_u32(s->cnt, 2);
}

CC_INLINE void cubic_on_ack(struct cubic *s, const struct cubic_params *p,
			    const struct cc_conn *conn, const struct cc_ack *ack,
			    struct cc_ctl *ctl)
{
	u32 acked = ack->acked_sacked;

	s->slow_start = ctl->cwnd < ctl->ssthresh;
	if (!conn->is_cwnd_limited)
		return;
	if (s->slow_start) {
		acked = cc_start_growth(&s->start, CC_START_PARAMS_OF(p), conn, ctl, acked);
		if (!acked)
			return;
	}
	cubic_update(s, p, conn, ctl->cwnd, acked);
	cc_additive_increase(conn, ctl, s->cnt, acked);
}

/* HyStart (hystart_update()): a train of ACKs as long as half the least RTT, or a round whose RTT
 * rose by an eighth, means that the pipe is full. */
CC_INLINE void cubic_hystart(struct cubic *s, const struct cubic_params *p,
			     const struct cc_conn *conn, u32 rtt_us, struct cc_ctl *ctl)
{
	u32 rise;

	if (cc_after(conn->snd_una, s->end_seq))
		cubic_hystart_reset(s, conn);
	if (ctl->cwnd < p->hystart_low_window)
		return;
	if (conn->now_us - s->last_ack_us <= p->hystart_ack_delta_us) {
		u64 limit_us = s->delay_min_us;

		s->last_ack_us = conn->now_us;
		/* Bursts of GSO stretch a train by up to four of them (hystart_ack_delay()). */
		if (ctl->pacing_rate_Bps)
			limit_us += cc_min_u64(CC_USEC_PER_MSEC,
					       (u64)conn->gso_max_segs * conn->mss_bytes * 4 *
						   CC_USEC_PER_SEC / ctl->pacing_rate_Bps);
		if (!conn->is_paced)
			limit_us >>= 1;
		if (conn->now_us - s->round_start_us > limit_us)
			s->found = 1;
	}
	s->round_rtt_us = cc_min_u32(s->round_rtt_us, rtt_us);
	if (s->sample_cnt < p->hystart_samples) {
		s->sample_cnt++;
	} else {
		rise = cc_max_u32(s->delay_min_us >> 3, p->hystart_delay_min_us);
		rise = cc_min_u32(rise, p->hystart_delay_max_us);
		if (s->round_rtt_us > s->delay_min_us + rise)
			s->found = 1;
	}
	if (s->found)
		ctl->ssthresh = ctl->cwnd;
	cc_start_watch(&s->start, ctl);
}

/* bictcp_acked() */
CC_INLINE void cubic_on_rtt(struct cubic *s, const struct cubic_params *p,
			    const struct cc_conn *conn, u32 rtt_us, struct cc_ctl *ctl)
{
	u64 now = cubic_ticks(p, conn->now_us);

	/* Right after a recovery delays say little: a second is left out. */
	if (s->epoch_start && (now - s->epoch_start) * p->clock_us < CC_USEC_PER_SEC)
		return;
	rtt_us = cc_max_u32(rtt_us, 1);
	if (!s->delay_min_us || rtt_us < s->delay_min_us)
		s->delay_min_us = rtt_us;
	if (p->hystart && !s->found && ctl->cwnd < ctl->ssthresh &&
	    cc_start_is_usual(&s->start, CC_START_PARAMS_OF(p)))
		cubic_hystart(s, p, conn, rtt_us, ctl);
}

CC_INLINE void cubic_reduce(struct cubic *s, const struct cubic_params *p, struct cc_ctl *ctl)
{
	u32 cwnd = ctl->cwnd;

	s->epoch_start = 0;
	s->prior_cwnd = cwnd;
	if (cwnd < s->last_max_cwnd && p->fast_convergence)
		s->last_max_cwnd = (u32)((u64)cwnd * (CC_ONE + p->beta) / (2 * CC_ONE));
	else
		s->last_max_cwnd = cwnd;
	ctl->ssthresh = cc_max_u32((u32)((u64)cwnd * p->beta / CC_ONE), p->min_ssthresh);
}

CC_INLINE void cubic_on_event(struct cubic *s, const struct cubic_params *p,
			      const struct cc_conn *conn, const struct cc_event *event,
			      struct cc_ctl *ctl)
{
	const struct cc_start_params *start = CC_START_PARAMS_OF(p);

	if (event->kind == CC_EVENT_RTT) {
		cc_start_on_rtt(&s->start, start, conn, event, p->beta, p->min_ssthresh, ctl);
		cubic_on_rtt(s, p, conn, event->value, ctl);
	} else if (event->kind == CC_EVENT_SSTHRESH) {
		cubic_reduce(s, p, ctl);
		cc_start_on_reduce(&s->start, start, conn, p->beta, p->min_ssthresh, ctl);
	} else if (event->kind == CC_EVENT_UNDO) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	} else if (event->kind == CC_EVENT_STATE && event->value == CC_LOSS) {
		cubic_reset(s, conn);
	} else if (event->kind == CC_EVENT_TX_START && s->epoch_start) {
		/* An idle application must not let the epoch run on (tcp_cubic.c, TX_START). */
		u64 now = cubic_ticks(p, conn->now_us);
		u64 last = cubic_ticks(p, conn->last_send_us);

		if (now > last)
			s->epoch_start = cc_min_u64(s->epoch_start + (now - last), now);
	}
	cc_start_on_event(&s->start, start, conn, event, p->min_ssthresh, ctl);
}

#endif
