/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * reno.h - NewReno's window: RFC 5681 (slow start, congestion avoidance) with the per-ACK
 * growth of Linux (tcp_cong.c: tcp_slow_start(), tcp_cong_avoid_ai(), tcp_reno_*()).
 *
 * The host detects loss and runs recovery (RFC 6675, PRR); this file only says how the window
 * grows and what a reduction leaves. It keeps almost no state of its own: the fraction of a
 * packet lives in ctl->cwnd_cnt, where the kernel keeps it too.
 */
#ifndef FULLPIPE_CC_RENO_H
#define FULLPIPE_CC_RENO_H

#include "cc.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define reno_FLAGS 0

#define reno_PARAMS(P)                                                                             \
	P(beta, CC_RATIO(1, 2), CC_RATIO(1, 10), CC_RATIO(99, 100), CC_ONE, "of cwnd",             \
	  "not allowed", "RFC 5681 section 3.1, equation 4",                                       \
	  "what a reduction leaves of the window")                                                 \
	P(min_ssthresh, 2, 1, 1000, 1, "packets", "not allowed",                                   \
	  "RFC 5681 section 3.1, equation 4", "floor of the slow-start threshold")

#define reno_STATE(S) S(prior_cwnd, "packets", 1, s->prior_cwnd, "window before the last reduction")

struct reno_params {
	reno_PARAMS(CC_PARAM_FIELD)
};

struct reno {
	u32 prior_cwnd; /* before the last reduction, for its undoing */
};

CC_INLINE void reno_init(struct reno *s, const struct reno_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	(void)p;
	(void)conn;
	s->prior_cwnd = ctl->cwnd;
}

CC_INLINE void reno_on_ack(struct reno *s, const struct reno_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	(void)s;
	(void)p;
	cc_standard_growth(conn, ack, ctl);
}

CC_INLINE void reno_on_event(struct reno *s, const struct reno_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	(void)conn;
	if (event->kind == CC_EVENT_SSTHRESH) {
		s->prior_cwnd = ctl->cwnd;
		ctl->ssthresh =
		    cc_max_u32((u32)((u64)ctl->cwnd * p->beta >> CC_GAIN_SHIFT), p->min_ssthresh);
	} else if (event->kind == CC_EVENT_UNDO) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	}
}

#endif
