/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * reno.h - NewReno's window: RFC 5681 (slow start, congestion avoidance) with the per-ACK
 * growth of Linux (tcp_cong.c: tcp_slow_start(), tcp_cong_avoid_ai(), tcp_reno_*()).
 *
 * The host detects loss and runs recovery (RFC 6675, PRR); this file only says how the window
 * grows and what a reduction leaves. It keeps almost no state of its own beside that of the first
 * slow start (start.h): the fraction of a packet lives in ctl->cwnd_cnt, where the kernel keeps it
 * too.
 */
#ifndef FULLPIPE_CC_RENO_H
#define FULLPIPE_CC_RENO_H

#include "cc_more.h"
#include "params.h"
#include "start.h"
#include "state.h"
#include "window.h"

#define reno_FLAGS CC_WANTS_RTT
#define reno_FLAGS_IF(F) CC_START_FLAGS_IF(F)

#define reno_PARAMS(P)                                                                             \
	P(beta, CC_RATIO(1, 2), CC_RATIO(1, 10), CC_RATIO(99, 100), CC_ONE, "of cwnd",             \
	  "not allowed", "RFC 5681 section 3.1, equation 4",                                       \
	  "what a reduction leaves of the window")                                                 \
	P(min_ssthresh, 2, 1, 1000, 1, "packets", "not allowed",                                   \
	  "RFC 5681 section 3.1, equation 4", "floor of the slow-start threshold")                 \
	CC_START_PARAMS(P)

#define reno_STATE(S)                                                                              \
	S(prior_cwnd, "packets", 1, s->prior_cwnd, "window before the last reduction")             \
	CC_START_STATE(S)

struct reno_params {
	reno_PARAMS(CC_PARAM_FIELD)
};

struct reno {
	u32 prior_cwnd; /* before the last reduction, for its undoing */
	struct cc_start start;
};

CC_INLINE void reno_init(struct reno *s, const struct reno_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	(void)conn;
	cc_start_init(&s->start, CC_START_PARAMS_OF(p), ctl);
	s->prior_cwnd = ctl->cwnd;
}

CC_INLINE void reno_on_ack(struct reno *s, const struct reno_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	u32 acked = ack->acked_sacked;

	if (!conn->is_cwnd_limited)
		return;
	if (ctl->cwnd < ctl->ssthresh)
		acked = cc_start_growth(&s->start, CC_START_PARAMS_OF(p), conn, ctl, acked);
	if (acked)
		cc_additive_increase(conn, ctl, ctl->cwnd, acked);
}

CC_INLINE void reno_on_event(struct reno *s, const struct reno_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	const struct cc_start_params *start = CC_START_PARAMS_OF(p);

	if (event->kind == CC_EVENT_RTT) {
		cc_start_on_rtt(&s->start, start, conn, event, p->beta, p->min_ssthresh, ctl);
	} else if (event->kind == CC_EVENT_SSTHRESH) {
		s->prior_cwnd = ctl->cwnd;
		ctl->ssthresh =
		    cc_max_u32((u32)((u64)ctl->cwnd * p->beta >> CC_GAIN_SHIFT), p->min_ssthresh);
		cc_start_on_reduce(&s->start, start, conn, p->beta, p->min_ssthresh, ctl);
	} else if (event->kind == CC_EVENT_UNDO) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	}
	cc_start_on_event(&s->start, start, conn, event, p->min_ssthresh, ctl);
}

#endif
