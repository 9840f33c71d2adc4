/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* aimd.h - additive increase, and 0.85 of the window after a loss: the file of `fullpipe cc new`
 * with one constant changed. fullpipe compare ./aimd.h cubic */
#include "cc.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define aimd_CONTRACT 5
#define aimd_TITLE "AIMD with beta 0.85"
#define aimd_FLAGS 0

#define aimd_PARAMS(P)                                                                             \
	P(beta, CC_RATIO(85, 100), CC_RATIO(1, 10), CC_RATIO(99, 100), CC_ONE, "of cwnd",          \
	  "not allowed", "mine", "what a reduction leaves of the window")

struct aimd_params {
	aimd_PARAMS(CC_PARAM_FIELD)
};

struct aimd {
	u32 prior_cwnd; /* packets, before the last reduction */
};

#define aimd_STATE(S) S(prior_cwnd, "packets", 1, s->prior_cwnd, "window before the last reduction")

CC_INLINE void aimd_init(struct aimd *s, const struct aimd_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	s->prior_cwnd = ctl->cwnd;
}

CC_INLINE void aimd_on_ack(struct aimd *s, const struct aimd_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	u32 left = ack->acked_sacked;

	if (!conn->is_cwnd_limited)
		return;
	if (ctl->cwnd < ctl->ssthresh)
		left = cc_slow_start(conn, ctl, left);
	cc_additive_increase(conn, ctl, ctl->cwnd, left);
}

CC_INLINE void aimd_on_event(struct aimd *s, const struct aimd_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	if (event->kind == CC_EVENT_SSTHRESH) {
		s->prior_cwnd = ctl->cwnd;
		ctl->ssthresh = cc_max_u32((u32)((u64)ctl->cwnd * p->beta / CC_ONE), 2);
	} else if (event->kind == CC_EVENT_UNDO) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	}
}
