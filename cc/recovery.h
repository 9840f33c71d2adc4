/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * recovery.h - the window in CWR and Recovery for CC_HOST_RECOVERS: proportional rate reduction
 * (RFC 9937, which replaces RFC 6937; Linux tcp_cwnd_reduction()). Hosts call it through
 * defaults.h; it must not know an algorithm.
 *
 * Linux counts what is sent during an episode (prr_out). Here it follows from what was sent until
 * now, which is in flight, delivered or lost. An original that is delivered after its packet was
 * marked lost counts once more, and the window is then a packet smaller for the rest of the
 * episode.
 */
#ifndef FULLPIPE_CC_RECOVERY_H
#define FULLPIPE_CC_RECOVERY_H

#include "cc_more.h"

struct cc_recovery {
	u32 prior_cwnd; /* before the reduction */
	u32 delivered;  /* since then (prr_delivered) */
	u32 sent;       /* what cc_sent() was then */
	u32 snd_una;    /* at the last ACK */
	u8 is_reducing;
	u8 is_undone;
	u8 unused_[6];
};

/* Packets sent so far, but for a constant. */
CC_INLINE u32 cc_sent(const struct cc_conn *conn)
{
	return conn->inflight + conn->delivered + conn->lost;
}

/* Behind the algorithm's on_ack(); `cwnd` is the window before it. */
CC_INLINE void cc_recover_ack(struct cc_recovery *r, const struct cc_conn *conn,
			      const struct cc_ack *ack, u32 cwnd, struct cc_ctl *ctl)
{
	u32 sent = cc_sent(conn) - r->sent, room, more;
	u32 has_advanced = conn->snd_una != r->snd_una;
	u64 due;

	r->snd_una = conn->snd_una;
	if (!r->is_reducing)
		return;
	ctl->cwnd = cwnd;
	if (!ack->acked_sacked || !r->prior_cwnd)
		return;
	r->delivered += ack->acked_sacked;
	if (conn->inflight > ctl->ssthresh) {
		due = ((u64)ctl->ssthresh * r->delivered + r->prior_cwnd - 1) / r->prior_cwnd;
		more = due > sent ? (u32)due - sent : 0;
	} else {
		more = cc_max_u32(r->delivered > sent ? r->delivered - sent : 0, ack->acked_sacked);
		more += has_advanced && !ack->losses;
		room = ctl->ssthresh - conn->inflight;
		more = cc_min_u32(more, room);
	}
	/* The first retransmission of an episode is always sent. */
	ctl->cwnd = conn->inflight + cc_max_u32(more, !sent);
}

/* Behind the algorithm's on_event(). */
CC_INLINE void cc_recover_event(struct cc_recovery *r, const struct cc_conn *conn,
				const struct cc_event *event, struct cc_ctl *ctl)
{
	u32 will_reduce = event->value == CC_CWR || event->value == CC_RECOVERY;

	if (event->kind == CC_EVENT_SSTHRESH) {
		r->prior_cwnd = ctl->cwnd;
		r->delivered = 0;
		r->sent = cc_sent(conn);
		r->is_undone = 0;
	} else if (event->kind == CC_EVENT_UNDO) {
		r->is_undone = 1;
	} else if (event->kind == CC_EVENT_STATE) {
		/* tcp_end_cwnd_reduction() */
		if (r->is_reducing && event->value < CC_CWR && !r->is_undone &&
		    ctl->ssthresh < CC_INFINITE)
			ctl->cwnd = ctl->ssthresh;
		r->is_reducing = (u8)will_reduce;
	}
}

#endif
