/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * westwood.h - TCP Westwood+ (Grieco and Mascolo, ACM CCR 34(2), 2004; Linux tcp_westwood.c):
 * Reno's growth, and after a loss the window that the measured bandwidth fills at the least RTT.
 *
 * A skeleton for algorithms that set a window and let the host recover: CC_HOST_RECOVERS shows
 * every ACK and keeps PRR.
 */
#include "cc_more.h"
#include "fixed.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define westwood_CONTRACT 5
#define westwood_TITLE "Westwood+: bandwidth estimation sets the window after a loss"
#define westwood_FLAGS (CC_OWNS_CWND | CC_HOST_RECOVERS | CC_WANTS_DETAILS)

#define westwood_PARAMS(P)                                                                         \
	P(least_us, 50000, 1000, 1000000, 1, "us", "not allowed",                                  \
	  "tcp_westwood.c TCP_WESTWOOD_RTT_MIN", "least time over which bandwidth is measured")    \
	P(gain_shift, 3, 1, 8, 1, "log2", "not allowed", "tcp_westwood.c westwood_do_filter()",    \
	  "gain of each of the two filters")

#define westwood_STATE(S)                                                                          \
	S(bw, "bytes/s", 1, cc_unless(westwood_bandwidth_Bps(s, p), 0), "measured bandwidth")

struct westwood_params {
	westwood_PARAMS(CC_PARAM_FIELD)
};

struct westwood {
	u64 begin_us;            /* of this measurement */
	u64 once_Bps, twice_Bps; /* filtered once and twice, times 2^gain_shift */
	u32 delivered;           /* conn->delivered at its beginning */
	u32 unused_;
};

CC_INLINE u64 westwood_bandwidth_Bps(const struct westwood *s, const struct westwood_params *p)
{
	return s->twice_Bps >> p->gain_shift;
}

CC_INLINE void westwood_measure(struct westwood *s, const struct westwood_params *p,
				const struct cc_conn *conn)
{
	u64 elapsed_us = conn->now_us - s->begin_us, sample_Bps;

	if (elapsed_us < cc_max_u32(conn->srtt_us, p->least_us))
		return;
	sample_Bps =
	    (u64)(conn->delivered - s->delivered) * conn->mss_bytes * CC_USEC_PER_SEC / elapsed_us;
	if (!s->once_Bps)
		s->once_Bps = s->twice_Bps = sample_Bps << p->gain_shift;
	s->once_Bps = cc_ewma(s->once_Bps, sample_Bps, p->gain_shift);
	s->twice_Bps = cc_ewma(s->twice_Bps, s->once_Bps >> p->gain_shift, p->gain_shift);
	s->begin_us = conn->now_us;
	s->delivered = conn->delivered;
}

CC_INLINE void westwood_init(struct westwood *s, const struct westwood_params *p,
			     const struct cc_conn *conn, struct cc_ctl *ctl)
{
	(void)p;
	(void)ctl;
	s->begin_us = conn->now_us;
	s->delivered = conn->delivered;
}

CC_INLINE void westwood_on_ack(struct westwood *s, const struct westwood_params *p,
			       const struct cc_conn *conn, const struct cc_ack *ack,
			       struct cc_ctl *ctl)
{
	westwood_measure(s, p, conn);
	cc_standard_growth(conn, ack, ctl);
}

CC_INLINE void westwood_on_event(struct westwood *s, const struct westwood_params *p,
				 const struct cc_conn *conn, const struct cc_event *event,
				 struct cc_ctl *ctl)
{
	u64 bytes;

	if (event->kind == CC_EVENT_SSTHRESH) {
		bytes = westwood_bandwidth_Bps(s, p) * conn->min_rtt_us / CC_USEC_PER_SEC;
		ctl->ssthresh = cc_max_u32((u32)cc_min_u64(bytes / conn->mss_bytes, ctl->cwnd), 2);
	} else if (event->kind == CC_EVENT_UNDO) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, conn->prior_cwnd);
	}
}
