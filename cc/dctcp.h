/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * dctcp.h - Data Center TCP (RFC 8257, Linux tcp_dctcp.c): Reno that measures which part of its
 * packets is marked, alpha, and gives way by half of that part instead of by half of its window.
 *
 * The host answers marks as it answers any ECN echo, once a round trip (CWR, PRR); here is only how
 * much to give way. The estimate is made from CC_EVENT_ACK, before the window answers the ACK. It
 * needs an echo of each mark: its receiver's state machine (RFC 8257 section 3.2) is the host's
 * part, CC_ECHOES_CE.
 */
#ifndef FULLPIPE_CC_DCTCP_H
#define FULLPIPE_CC_DCTCP_H

#include "cc_more.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define dctcp_FLAGS (CC_WANTS_ECN | CC_WANTS_ACKS | CC_ECHOES_CE)

#define DCTCP_MIN_SSTHRESH 2u

#define dctcp_PARAMS(P)                                                                            \
	P(gain_shift, 4, 0, 10, 1, "log2", "alpha is the last window's part",                      \
	  "RFC 8257 section 4.2, g = 1/16; Linux dctcp_shift_g",                                   \
	  "a window of packets weighs 1/2^this in alpha")                                          \
	P(alpha_init, CC_ONE, 0, CC_ONE, CC_ONE, "of packets", "the first mark costs nothing",     \
	  "Linux dctcp_alpha_on_init", "alpha before any window was seen")

#define dctcp_STATE(S)                                                                             \
	S(alpha, "", CC_ONE, s->is_plain ? CC_NONE : (s64)s->alpha,                                \
	  "estimated part of marked packets")                                                      \
	S(prior_cwnd, "packets", 1, s->prior_cwnd, "window before the last reduction")

struct dctcp_params {
	dctcp_PARAMS(CC_PARAM_FIELD)
};

struct dctcp {
	u32 alpha;      /* of CC_ONE */
	u32 window_end; /* sequence number at which the observed window ends */
	u32 delivered;  /* counters at its beginning */
	u32 delivered_ce;
	u32 prior_cwnd; /* before the last reduction, for its undoing */
	u32 is_plain;   /* ECN was refused: Reno */
};

CC_INLINE void dctcp_observe_anew(struct dctcp *s, const struct cc_conn *conn)
{
	s->window_end = conn->snd_nxt;
	s->delivered = conn->delivered;
	s->delivered_ce = conn->delivered_ce;
}

/* alpha = (1 - g) alpha + g M (RFC 8257 section 3.3, step 6), by a window. What rounds down to
 * nothing is taken whole, so that alpha can reach 0. */
CC_INLINE void dctcp_update_alpha(struct dctcp *s, const struct dctcp_params *p,
				  const struct cc_conn *conn)
{
	u64 marked;
	u32 less;

	if (cc_before(conn->snd_una, s->window_end))
		return;
	less = s->alpha >> p->gain_shift;
	s->alpha -= less ? less : s->alpha;
	marked = conn->delivered_ce - s->delivered_ce;
	if (marked) {
		marked <<= CC_GAIN_SHIFT - p->gain_shift;
		marked /= cc_max_u32(conn->delivered - s->delivered, 1);
		s->alpha = (u32)cc_min_u64(s->alpha + marked, CC_ONE);
	}
	dctcp_observe_anew(s, conn);
}

CC_INLINE void dctcp_halve(struct dctcp *s, struct cc_ctl *ctl)
{
	s->prior_cwnd = ctl->cwnd;
	ctl->ssthresh = cc_max_u32(ctl->cwnd >> 1, DCTCP_MIN_SSTHRESH);
}

CC_INLINE void dctcp_init(struct dctcp *s, const struct dctcp_params *p, const struct cc_conn *conn,
			  struct cc_ctl *ctl)
{
	(void)ctl;
	s->alpha = p->alpha_init;
	s->is_plain = !conn->ecn_ok;
	dctcp_observe_anew(s, conn);
}

CC_INLINE void dctcp_on_ack(struct dctcp *s, const struct dctcp_params *p,
			    const struct cc_conn *conn, const struct cc_ack *ack,
			    struct cc_ctl *ctl)
{
	(void)s;
	(void)p;
	cc_standard_growth(conn, ack, ctl);
}

CC_INLINE void dctcp_on_event(struct dctcp *s, const struct dctcp_params *p,
			      const struct cc_conn *conn, const struct cc_event *event,
			      struct cc_ctl *ctl)
{
	switch (event->kind) {
	case CC_EVENT_ACK:
		if (!s->is_plain)
			dctcp_update_alpha(s, p, conn);
		break;
	case CC_EVENT_SSTHRESH:
		if (s->is_plain) {
			dctcp_halve(s, ctl);
			break;
		}
		s->prior_cwnd = ctl->cwnd;
		ctl->ssthresh =
		    cc_max_u32(ctl->cwnd - (u32)((u64)ctl->cwnd * s->alpha >> (CC_GAIN_SHIFT + 1)),
			       DCTCP_MIN_SSTHRESH);
		break;
	case CC_EVENT_STATE:
		/* Loss is answered as by Reno (RFC 8257 section 3.5), also inside an episode of
		 * marks, to which no further CC_EVENT_SSTHRESH comes. */
		if (event->value == CC_RECOVERY && conn->ca_state != CC_RECOVERY && !s->is_plain)
			dctcp_halve(s, ctl);
		break;
	case CC_EVENT_RTO:
		if (!s->is_plain)
			dctcp_halve(s, ctl);
		break;
	case CC_EVENT_UNDO:
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
		break;
	default:
		break;
	}
}

#endif
