/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * bubble.h - samples that an algorithm itself made application-limited.
 *
 * ProbeRTT keeps the pipe empty on purpose, and must not let its own low rate into the model. Linux
 * writes tp->app_limited for that, which marks every packet until what is in flight then is
 * delivered; where a host's counter cannot be written, the same packets are known by the
 * `delivered` at their sending. A packet of the bubble may be delivered late, after a loss and
 * after packets sent behind the bubble: so the bubble is remembered, not only until it is passed.
 */
#ifndef FULLPIPE_CC_BUBBLE_H
#define FULLPIPE_CC_BUBBLE_H

#include "cc.h"

#define CC_BUBBLE_FORGOTTEN (1u << 30) /* packets behind it, before the counters wrap */

struct cc_bubble {
	u32 from, until; /* `delivered` when its packets were sent */
	u32 is_known;    /* there was one */
};

/* As Linux's tp->app_limited: not all that was in flight is delivered yet. */
CC_INLINE int cc_bubble_is_open(const struct cc_bubble *bubble, const struct cc_conn *conn)
{
	return bubble->is_known && !cc_after(conn->delivered, bubble->until);
}

/* What is in flight, and what will be sent until it is delivered, belongs to the bubble. */
CC_INLINE void cc_bubble_extend(struct cc_bubble *bubble, const struct cc_conn *conn)
{
	if (!cc_bubble_is_open(bubble, conn))
		bubble->from = conn->delivered;
	bubble->until = conn->delivered + conn->inflight;
	bubble->is_known = 1;
}

/* The bubble lies so far back that the counters could wrap onto it. */
CC_INLINE int cc_bubble_is_forgotten(const struct cc_bubble *bubble, const struct cc_conn *conn)
{
	return conn->delivered - bubble->until - 1 >= CC_BUBBLE_FORGOTTEN &&
	       !cc_bubble_is_open(bubble, conn);
}

/* With every ACK, before cc_bubble_has(). */
CC_INLINE void cc_bubble_update(struct cc_bubble *bubble, const struct cc_conn *conn)
{
	if (cc_bubble_is_forgotten(bubble, conn))
		bubble->is_known = 0;
}

/* Was the newest packet that this ACK acknowledges sent in the bubble? */
CC_INLINE int cc_bubble_has(const struct cc_bubble *bubble, const struct cc_ack *ack)
{
	return bubble->is_known && !cc_before(ack->prior_delivered, bubble->from) &&
	       !cc_after(ack->prior_delivered, bubble->until);
}

/* Both at once, for files that were written for release 0.2.0. */
CC_INLINE int cc_bubble_holds(struct cc_bubble *bubble, const struct cc_conn *conn,
			      const struct cc_ack *ack)
{
	cc_bubble_update(bubble, conn);
	return cc_bubble_has(bubble, ack);
}

#endif
