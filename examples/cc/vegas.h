/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * vegas.h - a window by delay, after Brakmo and Peterson, "TCP Vegas: End to End Congestion
 * Avoidance on a Global Internet" (1995): once a round trip it compares the packets that it keeps
 * in the queue, cwnd * (RTT - base RTT) / RTT, with alpha and beta.
 *
 * It owns its window, so that a packet lost by chance costs it little; a loss takes a quarter, once
 * a round trip, as the paper does after a loss that a duplicate ACK told early.
 */
#include "cc.h"
#include "params.h"
#include "state.h"

#define vegas_CONTRACT 5
#define vegas_TITLE "Vegas-like: 2 to 4 packets in the queue"
#define vegas_FLAGS CC_OWNS_CWND

#define vegas_PARAMS(P)                                                                            \
	P(alpha, 2, 1, 1000, 1, "packets", "not allowed", "paper, section 3.2",                    \
	  "fewer of its packets in the queue: the window grows")                                   \
	P(beta, 4, 1, 1000, 1, "packets", "not allowed", "paper, section 3.2",                     \
	  "more of them: it shrinks")                                                              \
	P(gamma, 1, 1, 1000, 1, "packets", "not allowed", "paper, section 3.3",                    \
	  "more of them: slow start ends")

struct vegas_params {
	vegas_PARAMS(CC_PARAM_FIELD)
};

struct vegas {
	u32 base_us;    /* least RTT of the connection; 0: none */
	u32 least_us;   /* least RTT of this round; 0: none */
	u32 round_ends; /* `delivered` at which this round ends */
	u32 loss_ends;  /* ... and the round that paid for a loss */
	u8 in_slow_start;
	u8 grows; /* slow start doubles every other round only (section 3.3) */
	u8 unused_[2];
	u32 queued; /* of its packets, at the end of the last round */
};

#define vegas_STATE(S)                                                                             \
	S(phase, "phase", 1, s->in_slow_start ? CC_PHASE_SLOW_START : CC_PHASE_AVOIDANCE,          \
	  "slow start or avoidance")                                                               \
	S(min_rtt, "us", 1, cc_unless(s->base_us, 0), "base RTT")                                  \
	S(queued, "packets", 1, s->queued, "of its packets in the queue, by the last round's RTT")

CC_INLINE void vegas_init(struct vegas *s, const struct vegas_params *p, const struct cc_conn *conn,
			  struct cc_ctl *ctl)
{
	s->round_ends = s->loss_ends = conn->delivered;
	s->in_slow_start = s->grows = 1;
}

/* A round trip is over: the window follows the queue. */
CC_INLINE void vegas_round(struct vegas *s, const struct vegas_params *p, struct cc_ctl *ctl)
{
	u32 queued;

	if (!s->least_us)
		return;
	queued = (u32)((u64)ctl->cwnd * (s->least_us - s->base_us) / s->least_us);
	s->queued = queued;
	if (s->in_slow_start) {
		s->grows = !s->grows;
		if (queued > p->gamma) {
			s->in_slow_start = 0;
			ctl->cwnd = cc_max_u32(ctl->cwnd - queued, 2);
		}
	} else if (queued < p->alpha) {
		ctl->cwnd++;
	} else if (queued > p->beta) {
		ctl->cwnd = cc_max_u32(ctl->cwnd - 1, 2);
	}
	s->least_us = 0;
}

CC_INLINE void vegas_on_ack(struct vegas *s, const struct vegas_params *p,
			    const struct cc_conn *conn, const struct cc_ack *ack,
			    struct cc_ctl *ctl)
{
	if (ack->rtt_us > 0 && !ack->is_ack_delayed) {
		u32 rtt_us = (u32)ack->rtt_us;

		s->base_us = s->base_us ? cc_min_u32(s->base_us, rtt_us) : rtt_us;
		s->least_us = s->least_us ? cc_min_u32(s->least_us, rtt_us) : rtt_us;
	}
	if (ack->losses && (s32)(conn->delivered - s->loss_ends) >= 0) {
		s->loss_ends = conn->delivered + conn->inflight;
		s->in_slow_start = 0;
		ctl->cwnd = cc_max_u32(ctl->cwnd - ctl->cwnd / 4, 2);
	}
	if (s->in_slow_start && s->grows && conn->is_cwnd_limited)
		ctl->cwnd += ack->acked_sacked;
	if ((s32)(conn->delivered - s->round_ends) >= 0) {
		s->round_ends = conn->delivered + conn->inflight;
		vegas_round(s, p, ctl);
	}
	ctl->ssthresh = s->in_slow_start ? CC_INFINITE : ctl->cwnd;
}

CC_INLINE void vegas_on_event(struct vegas *s, const struct vegas_params *p,
			      const struct cc_conn *conn, const struct cc_event *event,
			      struct cc_ctl *ctl)
{
	if (event->kind == CC_EVENT_RTO) {
		ctl->ssthresh = cc_max_u32(ctl->cwnd / 2, 2);
		ctl->cwnd = 2;
		s->in_slow_start = s->grows = 1;
		s->round_ends = conn->delivered + 1;
	}
}
