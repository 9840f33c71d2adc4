/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* window.h - the window growth that loss-based algorithms share: RFC 5681 section 3.1 in the
 * packet-counting form of Linux (tcp_cong.c). */
#ifndef FULLPIPE_CC_WINDOW_H
#define FULLPIPE_CC_WINDOW_H

#include "cc.h"

/* One packet for each acknowledged, up to ssthresh; returns the packets left for avoidance. */
CC_INLINE u32 cc_slow_start(const struct cc_conn *conn, struct cc_ctl *ctl, u32 acked)
{
	u32 cwnd = (u32)cc_min_u64((u64)ctl->cwnd + acked, ctl->ssthresh);

	acked -= cwnd - ctl->cwnd;
	ctl->cwnd = cc_min_u32(cwnd, conn->cwnd_clamp);
	return acked;
}

/* One packet for every `per` acknowledged, or for each if that is 0; the fraction is kept in
 * ctl->cwnd_cnt. */
CC_INLINE void cc_additive_increase(const struct cc_conn *conn, struct cc_ctl *ctl, u32 per,
				    u32 acked)
{
	per = cc_max_u32(per, 1);
	/* Credits gathered at a larger `per` are spent first (Linux tcp_cong_avoid_ai()). */
	if (ctl->cwnd_cnt >= per) {
		ctl->cwnd_cnt = 0;
		ctl->cwnd++;
	}
	ctl->cwnd_cnt += acked;
	if (ctl->cwnd_cnt >= per) {
		u32 grow = ctl->cwnd_cnt / per;

		ctl->cwnd_cnt -= grow * per;
		ctl->cwnd += grow;
	}
	ctl->cwnd = cc_min_u32(ctl->cwnd, conn->cwnd_clamp);
}

/* Standard growth on an ACK: slow start, then a packet a round trip (tcp_reno_cong_avoid()). */
CC_INLINE void cc_standard_growth(const struct cc_conn *conn, const struct cc_ack *ack,
				  struct cc_ctl *ctl)
{
	u32 acked = ack->acked_sacked;

	if (!conn->is_cwnd_limited)
		return;
	if (ctl->cwnd < ctl->ssthresh)
		acked = cc_slow_start(conn, ctl, acked);
	if (acked)
		cc_additive_increase(conn, ctl, ctl->cwnd, acked);
}

#endif
