/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * copa.h - Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet"
 * (NSDI 2018), section 2.1: the window moves towards the rate 1/(delta * queueing delay) by v/delta
 * packets a round trip. This is its default mode alone, without the one against flows that fill the
 * buffer (section 2.2).
 *
 * Departures: a sliding window's least is kept in two halves, so it looks back over half to all of
 * it; the velocity falls to 1 where the window turns and not only at the end of that round trip.
 */
#include "cc.h"
#include "params.h"
#include "state.h"

#define copa_CONTRACT 5
#define copa_TITLE "Copa"
#define copa_FLAGS CC_OWNS_CWND

#define copa_PARAMS(P)                                                                             \
	P(delta, CC_RATIO(1, 2), CC_RATIO(1, 100), CC_RATIO(4, 1), CC_ONE, "1/packets",            \
	  "not allowed", "paper, section 2", "a flow keeps about 1/delta packets in the queue")    \
	P(min_rtt_window_us, 10000000, 100000, 100000000, 1, "us", "not allowed",                  \
	  "paper, section 2", "over which the least RTT is the path's")

struct copa_params {
	copa_PARAMS(CC_PARAM_FIELD)
};

/* The least of a sliding window, in two halves. */
struct copa_half {
	u32 began_us, now, before;
};

struct copa {
	u32 cwnd;          /* in 1/CC_ONE packets */
	u32 inverse_delta; /* in 1/CC_ONE packets */
	u32 velocity;
	u32 same_rounds; /* that the window moved the same way */
	u32 round_cwnd;  /* at this round's beginning */
	u32 round_ends;  /* `delivered` at which it ends */
	u32 rounds;
	struct copa_half standing, least;
	u8 in_slow_start;
	u8 went_up;
	u8 unused_[2];
};

CC_INLINE void copa_turn(struct copa_half *h, u32 now_us, u32 half_us)
{
	if (now_us - h->began_us >= half_us) {
		h->before = h->now;
		h->now = 0;
		h->began_us = now_us;
	}
}

CC_INLINE void copa_least(struct copa_half *h, u32 now_us, u32 half_us, u32 rtt_us)
{
	copa_turn(h, now_us, half_us);
	h->now = h->now ? cc_min_u32(h->now, rtt_us) : rtt_us;
}

CC_INLINE u32 copa_min(const struct copa_half *h)
{
	return h->before ? cc_min_u32(h->before, h->now) : h->now;
}

#define copa_STATE(S)                                                                              \
	S(phase, "phase", 1, s->in_slow_start ? CC_PHASE_SLOW_START : CC_PHASE_AVOIDANCE,          \
	  "slow start or avoidance")                                                               \
	S(min_rtt, "us", 1, cc_unless(copa_min(&s->least), 0), "least RTT of the window")          \
	S(standing_rtt, "us", 1, cc_unless(copa_min(&s->standing), 0),                             \
	  "least RTT of half an srtt")                                                             \
	S(window, "packets", CC_ONE, s->cwnd, "window with its fraction")                          \
	S(velocity, "", 1, s->velocity, "1 after a turn, doubled each round of one direction")     \
	S(round_count, "", 1, s->rounds, "rounds since slow start")

CC_INLINE void copa_init(struct copa *s, const struct copa_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	s->cwnd = s->round_cwnd = ctl->cwnd * CC_ONE;
	s->inverse_delta = CC_ONE * CC_ONE / p->delta;
	s->velocity = 1;
	s->round_ends = conn->delivered;
	s->in_slow_start = s->went_up = 1;
}

/* Section 2.1: the velocity doubles each round trip once the window moved one way for three, and
 * falls to 1 where it turns. */
CC_INLINE void copa_round(struct copa *s)
{
	u8 went_up = s->cwnd > s->round_cwnd;

	if (went_up == s->went_up) {
		s->same_rounds++;
		if (s->same_rounds >= 3)
			s->velocity = cc_min_u32(s->velocity * 2, 1u << 16);
	} else {
		s->same_rounds = 0;
		s->velocity = 1;
	}
	s->went_up = went_up;
	s->round_cwnd = s->cwnd;
	s->rounds++;
}

CC_INLINE void copa_on_ack(struct copa *s, const struct copa_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	u32 now_us = (u32)conn->now_us, standing_us, least_us, queue_us, step;
	u32 srtt_us = cc_max_u32(conn->srtt_us, 1);
	u8 below;

	if (ack->rtt_us > 0) {
		u32 rtt_us = (u32)ack->rtt_us;

		copa_least(&s->standing, now_us, srtt_us / 4, rtt_us);
		copa_least(&s->least, now_us, p->min_rtt_window_us / 2, rtt_us);
	}
	standing_us = copa_min(&s->standing);
	least_us = copa_min(&s->least);
	if (!standing_us || !least_us)
		return;
	queue_us = standing_us > least_us ? standing_us - least_us : 0;
	below = (u64)s->cwnd * queue_us <= (u64)s->inverse_delta * standing_us;
	if (s->velocity > 1 && below != s->went_up) {
		s->velocity = 1;
		s->same_rounds = 0;
		s->went_up = below;
	}
	step = (u32)((u64)s->velocity * ack->acked_sacked * s->inverse_delta * CC_ONE /
		     cc_max_u32(s->cwnd, CC_ONE));
	if (below && s->in_slow_start) {
		s->cwnd += ack->acked_sacked * CC_ONE;
	} else if (below) {
		s->cwnd += conn->is_cwnd_limited ? step : 0;
	} else {
		s->in_slow_start = 0;
		s->cwnd = s->cwnd > step + 2 * CC_ONE ? s->cwnd - step : 2 * CC_ONE;
	}
	s->cwnd = cc_min_u32(s->cwnd, (1u << 21) * CC_ONE);
	if ((s32)(conn->delivered - s->round_ends) >= 0) {
		s->round_ends = conn->delivered + conn->inflight;
		if (!s->in_slow_start)
			copa_round(s);
	}
	ctl->cwnd = cc_max_u32(s->cwnd / CC_ONE, 2);
	/* Twice the window in a standing RTT, so that the ACKs and not the pacing decide. */
	ctl->pacing_rate_Bps = 2ull * ctl->cwnd * conn->mss_bytes * CC_USEC_PER_SEC / standing_us;
}

CC_INLINE void copa_on_event(struct copa *s, const struct copa_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	if (event->kind == CC_EVENT_RTO) {
		s->cwnd = cc_max_u32(s->cwnd / 2, 2 * CC_ONE);
		s->velocity = 1;
		s->same_rounds = 0;
		ctl->cwnd = s->cwnd / CC_ONE;
	}
}
