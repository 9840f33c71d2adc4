/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* @.h - additive increase, multiplicative decrease. Try it: fullpipe compare ./@.h cubic
 * What a function is told and may set: cc.h; what holds where it sets nothing: defaults.h. */
#include "cc.h"     /* the contract: struct cc_conn, cc_ack, cc_event, cc_ctl */
#include "params.h" /* constants */
#include "window.h" /* cc_slow_start(), cc_additive_increase() */

#define @_CONTRACT @V
#define @_TITLE "additive increase, multiplicative decrease"
#define @_FLAGS 0 /* CC_OWNS_CWND: no recovery by the host, every ACK comes here, you pace */

/* name, default, least, most, what 1.0 is stored as, unit, what 0 means, source, meaning.
 * [cc.@] beta = 0.7 in a scenario, or --set cc.@.beta=0.7, changes one. */
#define @_PARAMS(P)                                                                              \
	P(beta, CC_RATIO(1, 2), CC_RATIO(1, 10), CC_RATIO(99, 100), CC_ONE, "of cwnd",             \
	  "not allowed", "mine", "what a reduction leaves of the window")

struct @_params {
	@_PARAMS(CC_PARAM_FIELD)
};

/* What a connection remembers; zeroed before init. Nothing else outlives a call. */
struct @ {
	u32 prior_cwnd; /* packets, before the last reduction */
};

CC_INLINE void @_init(struct @ *s, const struct @_params *p, const struct cc_conn *conn,
			struct cc_ctl *ctl)
{
}

/* The window may grow. (With CC_OWNS_CWND: every ACK, with its rate sample in *ack.) */
CC_INLINE void @_on_ack(struct @ *s, const struct @_params *p, const struct cc_conn *conn,
			  const struct cc_ack *ack, struct cc_ctl *ctl)
{
	u32 left = ack->acked_sacked;

	if (!conn->is_cwnd_limited)
		return; /* the application, not the window, held it back */
	if (ctl->cwnd < ctl->ssthresh)
		left = cc_slow_start(conn, ctl, left);
	cc_additive_increase(conn, ctl, ctl->cwnd, left); /* a packet a round trip */
}

CC_INLINE void @_on_event(struct @ *s, const struct @_params *p, const struct cc_conn *conn,
			    const struct cc_event *event, struct cc_ctl *ctl)
{
	if (event->kind == CC_EVENT_SSTHRESH) { /* loss, ECN or timeout: how much is left? */
		s->prior_cwnd = ctl->cwnd;
		ctl->ssthresh = cc_max_u32((u32)((u64)ctl->cwnd * p->beta / CC_ONE), 2);
	} else if (event->kind == CC_EVENT_UNDO) { /* it was no loss after all */
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	}
}

/* What recordings show of it (cc_samples). */
CC_INLINE void @_info(const struct @ *s, const struct @_params *p, struct cc_info *info)
{
	info->cwnd_gain = p->beta;
}
