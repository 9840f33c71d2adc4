/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * losses.h - when the packets were sent that were newly marked lost. An algorithm with
 * CC_OWNS_CWND keeps a struct cc_losses in its state. It must not know an algorithm or a host.
 *
 * TCP marks packets lost in the order of their sending (RACK, RFC 8985 section 6.2): those that
 * were sent a reordering window or more before the newest packet that was delivered. So what is
 * newly marked at an ACK was sent before the newest packet delivered, and no more than a reordering
 * window, which is at most a smoothed RTT, before the one that was the newest at the ACK before.
 * Where nothing was reordered, to_us is close: docs/reference/own-algorithms.md has figures.
 *
 * That holds for every host that runs TCP. A host with a record of each packet says the very time
 * (CC_EVENT_LOST, conn->lost_age_us).
 */
#ifndef FULLPIPE_CC_LOSSES_H
#define FULLPIPE_CC_LOSSES_H

#include "cc.h"

struct cc_losses {
	u64 newest_us; /* when the newest packet delivered was sent */
	u64 from_us;   /* the packets of the last answer were sent from here */
	u64 to_us;     /* to here */
	u32 lost;      /* conn->lost at the last ACK */
	u32 unused_;
};

CC_INLINE void cc_losses_init(struct cc_losses *l, const struct cc_conn *conn)
{
	l->newest_us = l->from_us = l->to_us = conn->now_us;
	l->lost = conn->lost;
}

/* At each ACK: how many packets were marked lost since the last one. If any, they were sent between
 * l->from_us and l->to_us. */
CC_INLINE u32 cc_losses_take(struct cc_losses *l, const struct cc_conn *conn,
			     const struct cc_ack *ack)
{
	u32 lost = conn->lost - l->lost;
	u64 prior_us = l->newest_us;

	l->lost = conn->lost;
	if (ack->acked_sacked)
		l->newest_us = cc_max_u64(prior_us, conn->now_us - ack->age_us);
	l->from_us = prior_us - cc_min_u64(conn->srtt_us, prior_us);
	l->to_us = l->newest_us + 1; /* clocks are rounded down */
	/* A timeout marked the whole flight. */
	if (lost != ack->losses && conn->ca_state == CC_LOSS)
		l->to_us = conn->now_us;
	return lost;
}

#endif
