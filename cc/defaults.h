/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * defaults.h - what holds where an algorithm decides nothing, and the bounds of what it may decide.
 *
 * Every host makes a call of an algorithm in four steps, so that what is left alone means the same
 * in the kernel, in the simulator and in a replay:
 *
 *   open    cc_open_ctl(): decisions as they stand
 *   call    NAME_init(), NAME_on_ack() or NAME_on_event()
 *   settle  cc_settle_ack() after on_ack(), cc_settle_event() after on_event(): the host's part
 *   close   cc_close_ctl(): bounds, and what was left alone
 *
 * The steps stand where calls differ in form, and only there: table.h (C in a program), bpf/glue.h
 * (kernels) and decide() of crates/fullpipe-cc/src/controller.rs (other languages). What a step
 * does is here alone.
 *
 * decision         left alone                                      bounds
 * pacing_rate_Bps  follows the window, as Linux paces without       the cap of application and host
 *                  being told; so too at every call that says 0
 * cwnd             stays                                           1 to CC_CWND_MAX; 0 with
 *                                                                  CC_MAY_CLOSE
 * ssthresh         stays; at first CC_INFINITE                     at least 1; 0 with CC_MAY_CLOSE
 * tso_segs         CC_DEFAULT_TSO_SEGS, at every send              at least 1
 * sndbuf_factor    CC_DEFAULT_SNDBUF_FACTOR                        -
 * cwnd_cnt         stays                                           -
 * tso_most         stays; at first 0                               -
 * is_scalable      stays; at first 0                               -
 * timer_us         stays until it comes (CC_WANTS_TIMER)           later than now
 *
 * Without CC_OWNS_CWND an algorithm gets no CC_EVENT_SEND and its pacing rate is not asked for. An
 * event that it ignores changes nothing: no CC_EVENT_SSTHRESH, no reduction; no CC_EVENT_UNDO, a
 * spurious reduction stays.
 */
#ifndef FULLPIPE_CC_DEFAULTS_H
#define FULLPIPE_CC_DEFAULTS_H

#include "cc_more.h"
#include "recovery.h"

#define CC_DEFAULT_TSO_SEGS 2u      /* Linux sysctl tcp_min_tso_segs */
#define CC_DEFAULT_SNDBUF_FACTOR 2u /* Linux tcp_sndbuf_expand() */
#define CC_PACING_SS_PERCENT 200u   /* Linux sysctl tcp_pacing_ss_ratio */
#define CC_PACING_CA_PERCENT 120u   /* Linux sysctl tcp_pacing_ca_ratio */

/* What of a connection the contract remembers between calls. Zeroed by the host before init. */
struct cc_kept {
	u32 sndbuf_factor;
	u32 sets_pacing;             /* the algorithm named a rate at its last call */
	u64 timer_us;                /* CC_WANTS_TIMER */
	struct cc_recovery recovery; /* CC_HOST_RECOVERS */
};

/* Linux tcp_update_pacing_rate(): a percentage of the window in a round trip, in slow start and
 * after it, so that the window and not the pacing decides. `srtt_us8` is eight round trips. */
CC_INLINE u64 cc_window_rate_Bps(const struct cc_ctl *ctl, u32 packets_out, u32 mss_bytes,
				 u64 srtt_us8, u32 ss_percent, u32 ca_percent)
{
	u64 window = (u64)cc_max_u32(ctl->cwnd, packets_out) * mss_bytes;
	u32 percent = ctl->cwnd < ctl->ssthresh / 2 ? ss_percent : ca_percent;

	return window * percent * (CC_USEC_PER_SEC / 100 * 8) / cc_max_u64(srtt_us8, 1);
}

CC_INLINE u64 cc_default_pacing_rate(const struct cc_conn *conn, const struct cc_ctl *ctl)
{
	return cc_window_rate_Bps(ctl, conn->packets_out, conn->mss_bytes,
				  (u64)cc_max_u32(conn->srtt_us, 1) * 8, CC_PACING_SS_PERCENT,
				  CC_PACING_CA_PERCENT);
}

/* `event_kind` is 0 where the call is of no event. A timer that has come is off. */
CC_INLINE void cc_open_ctl(struct cc_kept *kept, u32 flags, u32 event_kind, struct cc_ctl *ctl)
{
	if ((flags & CC_WANTS_TIMER) && event_kind == CC_EVENT_TIMER)
		kept->timer_us = 0;
	ctl->tso_segs = CC_DEFAULT_TSO_SEGS;
	ctl->sndbuf_factor = kept->sndbuf_factor;
	if ((flags & CC_OWNS_CWND) && !kept->sets_pacing)
		ctl->pacing_rate_Bps = 0;
	if (flags & CC_WANTS_TIMER)
		ctl->timer_us = kept->timer_us;
}

/* Whether CC_EVENT_TIMER is due. */
CC_INLINE int cc_is_timer_due(const struct cc_kept *kept, u64 now_us)
{
	return kept->timer_us && kept->timer_us <= now_us;
}

/* `host_rate_Bps` is what the host paced at before the call. */
CC_INLINE void cc_close_ctl(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			    u64 host_rate_Bps, struct cc_ctl *ctl)
{
	u32 least = flags & CC_MAY_CLOSE ? 0 : 1;

	ctl->cwnd = cc_min_u32(cc_max_u32(ctl->cwnd, least), CC_CWND_MAX);
	ctl->ssthresh = cc_max_u32(ctl->ssthresh, least);
	ctl->tso_segs = ctl->tso_segs ? ctl->tso_segs : CC_DEFAULT_TSO_SEGS;
	ctl->sndbuf_factor = ctl->sndbuf_factor ? ctl->sndbuf_factor : CC_DEFAULT_SNDBUF_FACTOR;
	kept->sndbuf_factor = ctl->sndbuf_factor;
	if (flags & CC_OWNS_CWND) {
		kept->sets_pacing = ctl->pacing_rate_Bps != 0;
		if (!kept->sets_pacing)
			ctl->pacing_rate_Bps = cc_default_pacing_rate(conn, ctl);
		ctl->pacing_rate_Bps = cc_min_u64(ctl->pacing_rate_Bps, conn->pacing_rate_cap_Bps);
	} else {
		ctl->pacing_rate_Bps = host_rate_Bps;
	}
	if (flags & CC_WANTS_TIMER) {
		if (ctl->timer_us && ctl->timer_us <= conn->now_us)
			ctl->timer_us = conn->now_us + 1;
		kept->timer_us = ctl->timer_us;
	}
}

/* Between on_ack() and cc_close_ctl(): what the host does itself. `cwnd` is the window before the
 * call. */
CC_INLINE void cc_settle_ack(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			     const struct cc_ack *ack, u32 cwnd, struct cc_ctl *ctl)
{
	if (flags & CC_HOST_RECOVERS)
		cc_recover_ack(&kept->recovery, conn, ack, cwnd, ctl);
}

/* The same between on_event() and cc_close_ctl(). */
CC_INLINE void cc_settle_event(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			       const struct cc_event *event, struct cc_ctl *ctl)
{
	if (flags & CC_HOST_RECOVERS)
		cc_recover_event(&kept->recovery, conn, event, ctl);
}

#endif
