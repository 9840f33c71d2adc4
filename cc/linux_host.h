/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_host.h - a file of the Linux kernel as an algorithm of cc.h: fills the sockets of
 * linux_tcp.h with a call's facts, calls the file's struct tcp_congestion_ops as the kernel's TCP
 * would, and reads what it decided. It must not know which file it carries: the one that
 * `fullpipe cc import` writes includes linux_base.h and linux_tcp.h, then the kernel's file, then
 * this one, and defines
 *
 *   LINUX_PKTS_ACKED, LINUX_CONG_CONTROL, LINUX_GET_INFO
 *                       a function of the file that stands for the type of that member, if it has
 *                       one: kernels disagree on it
 *
 * Where a kernel's TCP and this differ:
 * - sk_pacing_rate and cwnd outlive a call within the contract's bounds (defaults.h).
 * - srtt_us has whole microseconds.
 * - A file that sets tp->app_limited marks the packets that it sends from there on by itself
 *   (bubble.h).
 */
#ifndef FULLPIPE_CC_LINUX_HOST_H
#define FULLPIPE_CC_LINUX_HOST_H

#include "bubble.h"
#include "cc_more.h"
#include "state.h"
#include "linux_tcp.h"

struct linux_socket {
	struct tcp_sock tp;
	u64 random;
	u32 timestamp_offset; /* of the receiver's clock: each connection has its own since 4.10
			       * (secure_tcp_ts_off()) */
	struct cc_bubble bubble;
	struct linux_heap heap;
};

/* Linux's sk_gso_max_size of a device without limits: 64 KiB less the room for headers and 1. */
#define LINUX_GSO_BYTES (GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER)
/* sysctl tcp_min_rtt_wlen */
#define LINUX_MIN_RTT_WINDOW (300u * HZ)

/* What the decisions were before the call. */
struct linux_before {
	u32 app_limited;
};

CC_INLINE void linux_see_rtt(struct tcp_sock *tp, s64 rtt_us)
{
	if (rtt_us >= 0)
		minmax_running_min(&tp->rtt_min, LINUX_MIN_RTT_WINDOW, tcp_jiffies32,
				   (u32)max_t(s64, rtt_us, 1));
}

CC_INLINE struct linux_before linux_enter(struct linux_socket *s, const struct cc_conn *conn,
					  const struct cc_ctl *ctl)
{
	struct tcp_sock *tp = &s->tp;
	struct inet_connection_sock *icsk = inet_csk(tp);
	struct sock *sk = &icsk->sk;
	struct linux_before before_call;

	linux_current =
	    (struct linux_current){.now_ns = conn->now_ns, .random = &s->random, .heap = &s->heap};
	jiffies_64 = LINUX_TICKS(conn->now_ns);
	jiffies = (unsigned long)jiffies_64;
	tcp_time_stamp = (u32)jiffies;

	tp->tcp_mstamp = LINUX_STAMP(conn->now_us);
	tp->tcp_clock_cache = conn->now_ns;
	tp->tcp_wstamp_ns = conn->edt_ns;
	tp->delivered_mstamp = LINUX_STAMP(conn->delivered_us);
	tp->lsndtime = (u32)LINUX_TICKS(conn->last_send_us * 1000);
	tp->mss_cache = tp->advmss = conn->mss_bytes;
	tp->delivered = conn->delivered;
	tp->delivered_ce = conn->delivered_ce;
	tp->lost = conn->lost;
	tp->packets_out = conn->packets_out;
	tp->sacked_out = conn->sacked_out;
	tp->lost_out = conn->lost_out;
	tp->retrans_out = conn->retrans_out;
	tp->max_packets_out = conn->max_packets_out;
	tp->high_seq = conn->high_seq;
	tp->reordering = conn->reordering;
	tp->reord_seen = conn->reordering > TCP_FASTRETRANS_THRESH;
	tp->mdev_us = conn->rttvar_us << 2;
	tp->rx_opt.rcv_tsval = conn->rcv_tsval + s->timestamp_offset;
	tp->rx_opt.rcv_tsecr = conn->rcv_tsecr;
	tp->rx_opt.tstamp_ok = tp->rx_opt.saw_tstamp = conn->ts_tick_us != 0;
	tp->bytes_acked += conn->snd_una - tp->snd_una;
	tp->snd_una = conn->snd_una;
	tp->snd_nxt = conn->snd_nxt;
	tp->write_seq = conn->snd_nxt + conn->unsent_bytes;
	tp->srtt_us = conn->srtt_us << 3;
	tp->app_limited = conn->app_limited;
	if (!tp->app_limited && cc_bubble_is_open(&s->bubble, conn))
		tp->app_limited = s->bubble.until ? s->bubble.until : 1;
	tp->snd_cwnd_clamp = min(tp->snd_cwnd_clamp, conn->cwnd_clamp);
	tp->is_cwnd_limited = conn->is_cwnd_full;
	tp->ecn_flags = (u8)((conn->ecn_ok ? TCP_ECN_OK | TCP_ECN_SEEN : 0) |
			     (conn->ecn_low ? TCP_ECN_LOW : 0));
	tp->snd_cwnd = ctl->cwnd;
	tp->snd_ssthresh = ctl->ssthresh;
	tp->snd_cwnd_cnt = ctl->cwnd_cnt;
	icsk->icsk_ca_state = conn->ca_state;
	sk->linux_mss = conn->mss_bytes;
	sk->sk_pacing_rate = ctl->pacing_rate_Bps;
	sk->sk_max_pacing_rate = conn->pacing_rate_cap_Bps;
	sk->sk_gso_max_segs = conn->gso_max_segs;
	sk->sk_gso_max_size = LINUX_GSO_BYTES;
	if (sk->sk_pacing_status == SK_PACING_NONE && conn->is_paced)
		sk->sk_pacing_status = SK_PACING_FQ;
	before_call.app_limited = tp->app_limited;
	return before_call;
}

CC_INLINE void linux_leave(struct linux_socket *s, const struct linux_before *before_call,
			   const struct cc_conn *conn, struct cc_ctl *ctl)
{
	struct tcp_sock *tp = &s->tp;
	const struct tcp_congestion_ops *ops = inet_csk(tp)->icsk_ca_ops;

	if (tp->app_limited != before_call->app_limited && tp->app_limited)
		cc_bubble_extend(&s->bubble, conn);
	ctl->cwnd = tp->snd_cwnd;
	ctl->ssthresh = tp->snd_ssthresh;
	ctl->cwnd_cnt = tp->snd_cwnd_cnt;
	ctl->pacing_rate_Bps = inet_csk(tp)->sk.sk_pacing_rate;
	if (ops->sndbuf_expand)
		ctl->sndbuf_factor = ops->sndbuf_expand(&inet_csk(tp)->sk);
	ctl->is_scalable = !!(ops->flags & TCP_CONG_ECT_1_NEGOTIATION);
	ctl->enters_cwr = tp->linux_wants_cwr;
	tp->linux_wants_cwr = false;
}

/* The kernel's TCP leaves a rate that nobody sets without a bound. */
CC_INLINE void linux_init(struct linux_socket *s, const struct cc_conn *conn, struct cc_ctl *ctl)
{
	struct tcp_sock *tp = &s->tp;
	struct sock *sk = &inet_csk(tp)->sk;
	struct linux_before before_call;

	s->random = conn->seed;
	s->timestamp_offset = (u32)linux_mix(~(u64)conn->seed);
	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_family = AF_INET;
	sk->sk_pacing_shift = 10;
	tp->snd_cwnd_clamp = conn->cwnd_clamp;
	tp->snd_una = conn->snd_una;
	minmax_reset(&tp->rtt_min, tcp_jiffies32, conn->srtt_us ? conn->srtt_us : ~0u);
	inet_csk(tp)->icsk_ca_ops = linux_registered;
	inet_csk(tp)->icsk_ca_initialized = 1;
	before_call = linux_enter(s, conn, ctl);
	if (!sk->sk_pacing_rate)
		sk->sk_pacing_rate = ~0ul;
	if (linux_registered->init)
		linux_registered->init(sk);
	linux_leave(s, &before_call, conn, ctl);
}

/* The members whose type changed. */
typedef void linux_control_of_4_9(struct sock *sk, const struct rate_sample *rs);
typedef void linux_control_of_6_10(struct sock *sk, u32 ack, int flag,
				   const struct rate_sample *rs);
typedef void linux_acked_of_4_7(struct sock *sk, const struct ack_sample *sample);
typedef void linux_acked_of_2_6_19(struct sock *sk, u32 packets, s32 rtt_us);
typedef size_t linux_info_of_4_2(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);

static __attribute__((unused)) void linux_control_2(const void *call, struct sock *sk, u32 ack,
						    const struct rate_sample *rs)
{
	(void)ack;
	((linux_control_of_4_9 *)(unsigned long)call)(sk, rs);
}
static __attribute__((unused)) void linux_control_4(const void *call, struct sock *sk, u32 ack,
						    const struct rate_sample *rs)
{
	((linux_control_of_6_10 *)(unsigned long)call)(sk, ack, 0, rs);
}
static __attribute__((unused)) void linux_acked_2(const void *call, struct sock *sk,
						  const struct ack_sample *sample)
{
	((linux_acked_of_4_7 *)(unsigned long)call)(sk, sample);
}
static __attribute__((unused)) void linux_acked_3(const void *call, struct sock *sk,
						  const struct ack_sample *sample)
{
	((linux_acked_of_2_6_19 *)(unsigned long)call)(sk, sample->pkts_acked, sample->rtt_us);
}

CC_INLINE void linux_on_ack(struct linux_socket *s, const struct cc_conn *conn,
			    const struct cc_ack *ack, struct cc_ctl *ctl)
{
	struct sock *sk = &inet_csk(&s->tp)->sk;
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	struct linux_before before_call = linux_enter(s, conn, ctl);

	if (ops->cong_control) {
#ifdef LINUX_CONG_CONTROL
		struct rate_sample rs;

		cc_bubble_update(&s->bubble, conn);
		rs = (struct rate_sample){
		    .prior_mstamp = LINUX_STAMP(ack->prior_us),
		    .prior_delivered = ack->prior_delivered,
		    .prior_delivered_ce = ack->prior_delivered_ce,
		    .prior_lost = conn->lost - ack->lost,
		    .tx_in_flight = ack->tx_inflight,
		    .lost = (s32)ack->lost,
		    .delivered = ack->delivered,
		    .delivered_ce = ack->delivered_ce,
		    .interval_us = ack->interval_us,
		    .snd_interval_us = (u32)ack->interval_us,
		    .rcv_interval_us = (u32)(conn->now_us - ack->prior_us),
		    .rtt_us = ack->rtt_us,
		    .losses = (int)ack->losses,
		    .acked_sacked = ack->acked_sacked,
		    .prior_in_flight = ack->prior_inflight,
		    .last_end_seq = ack->last_end_seq,
		    .is_app_limited = ack->is_app_limited || cc_bubble_has(&s->bubble, ack),
		    .is_retrans = ack->is_retrans,
		    .is_ack_delayed = ack->is_ack_delayed,
		    .is_acking_tlp_retrans_seq = ack->is_probe_answer,
		    .is_ece = ack->delivered_ce > 0,
		};

		linux_see_rtt(&s->tp, ack->rtt_us);
		if (after(ack->last_end_seq, s->tp.linux_sack_end))
			s->tp.linux_sack_end = ack->last_end_seq;
		s->tp.first_tx_mstamp = LINUX_STAMP(conn->now_us - ack->age_us);
		_Generic(&LINUX_CONG_CONTROL, linux_control_of_4_9 *
			 : linux_control_2, linux_control_of_6_10 *
			 : linux_control_4)(ops->cong_control, sk, conn->snd_una, &rs);
#endif
	} else if (ops->cong_avoid) {
		ops->cong_avoid(sk, conn->snd_una, ack->acked_sacked);
	}
	linux_leave(s, &before_call, conn, ctl);
}

CC_INLINE void linux_cwnd_event(const struct tcp_congestion_ops *ops, struct sock *sk,
				enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START && ops->cwnd_event_tx_start)
		ops->cwnd_event_tx_start(sk);
	else if (ops->cwnd_event)
		ops->cwnd_event(sk, event);
}

CC_INLINE void linux_pkts_acked(const struct tcp_congestion_ops *ops, struct sock *sk,
				const struct ack_sample *sample)
{
	linux_see_rtt(tcp_sk(sk), sample->rtt_us);
#ifdef LINUX_PKTS_ACKED
	if (ops->pkts_acked)
		_Generic(&LINUX_PKTS_ACKED, linux_acked_of_4_7 *
			 : linux_acked_2, linux_acked_of_2_6_19 *
			 : linux_acked_3)(ops->pkts_acked, sk, sample);
#else
	(void)ops;
#endif
}

/* What the kernel's TCP notes before it asks for ssthresh: tcp_init_cwnd_reduction(),
 * tcp_enter_loss(). */
CC_INLINE void linux_note_reduction(struct tcp_sock *tp)
{
	tp->prior_ssthresh = tcp_current_ssthresh(&inet_csk(tp)->sk);
	tp->prior_cwnd = tp->snd_cwnd;
}

CC_INLINE void linux_on_event(struct linux_socket *s, const struct cc_conn *conn,
			      const struct cc_event *event, struct cc_ctl *ctl)
{
	struct tcp_sock *tp = &s->tp;
	struct sock *sk = &inet_csk(tp)->sk;
	const struct tcp_congestion_ops *ops = inet_csk(tp)->icsk_ca_ops;
	struct linux_before before_call = linux_enter(s, conn, ctl);
	u32 ssthresh = 0, cwnd = 0;
	int has_ssthresh = 0, has_cwnd = 0; /* 0 is an answer like others */

	switch (event->kind) {
	case CC_EVENT_TX_START:
		linux_cwnd_event(ops, sk, CA_EVENT_TX_START);
		break;
	case CC_EVENT_CWND_RESTART:
		linux_cwnd_event(ops, sk, CA_EVENT_CWND_RESTART);
		break;
	case CC_EVENT_COMPLETE_CWR:
		linux_cwnd_event(ops, sk, CA_EVENT_COMPLETE_CWR);
		break;
	case CC_EVENT_RTO:
		linux_cwnd_event(ops, sk, CA_EVENT_LOSS);
		break;
	case CC_EVENT_TLP_RECOVERY:
		tp->tlp_orig_data_app_limited = event->is_app_limited;
		linux_cwnd_event(ops, sk, CA_EVENT_TLP_RECOVERY);
		break;
	case CC_EVENT_STATE:
		if (ops->set_state)
			ops->set_state(sk, (u8)event->value);
		break;
	case CC_EVENT_SSTHRESH:
		linux_note_reduction(tp);
		has_ssthresh = ops->ssthresh != NULL;
		ssthresh = has_ssthresh ? ops->ssthresh(sk) : 0;
		break;
	case CC_EVENT_UNDO:
		has_cwnd = ops->undo_cwnd != NULL;
		cwnd = has_cwnd ? ops->undo_cwnd(sk) : 0;
		break;
	case CC_EVENT_RTT:
		linux_pkts_acked(
		    ops, sk,
		    &(struct ack_sample){.pkts_acked = event->packets,
					 .rtt_us = (s32)event->value,
					 .in_flight = event->delivered_since * tp->mss_cache});
		break;
	case CC_EVENT_ACK:
		if (ops->in_ack_event)
			ops->in_ack_event(sk, event->value);
		break;
	case CC_EVENT_SEND:
		if (ops->min_tso_segs)
			ctl->tso_segs = ops->min_tso_segs(sk);
		else if (ops->tso_segs)
			ctl->tso_segs = ops->tso_segs(sk, tp->mss_cache);
		else if (ops->tso_segs_goal)
			ctl->tso_segs = ops->tso_segs_goal(sk);
		break;
	case CC_EVENT_LOST:
		if (ops->skb_marked_lost)
			ops->skb_marked_lost(
			    sk,
			    &(struct sk_buff){
				.cb.tx = {.in_flight = event->value,
					  .lost = conn->lost - event->packets,
					  .delivered_mstamp = LINUX_STAMP(conn->delivered_us + 1),
					  .is_app_limited = event->is_app_limited}});
		break;
	}
	linux_leave(s, &before_call, conn, ctl);
	/* What these return, TCP applies after what they wrote. */
	if (has_ssthresh)
		ctl->ssthresh = ssthresh;
	if (has_cwnd)
		ctl->cwnd = cwnd;
}

/* For the variables of the importing file: what inet_csk_ca() points to. */
#define LINUX_PRIVATE(s) ((const void *)(s)->socket.tp.inet_conn.sk.linux_private)

/* What `ss -i` would show. */
CC_INLINE void linux_info(const struct linux_socket *s, struct cc_info *info)
{
#ifdef LINUX_GET_INFO
	union tcp_cc_info shown = {0};
	struct sock *sk = (struct sock *)(unsigned long)&s->tp;
	int kind = 0;

	/* Of a state that a kernel has sent, this and what inet_csk_ca() points to are known. */
	tcp_sk(sk)->mss_cache = (u32)sk->linux_mss;
	_Static_assert(_Generic(&LINUX_GET_INFO, linux_info_of_4_2 * : 1), "get_info()");
	LINUX_GET_INFO(sk, ~0u, &kind, &shown);
	if (kind == INET_DIAG_VEGASINFO) {
		info->min_rtt_us = shown.vegas.tcpv_minrtt;
	} else if (kind == INET_DIAG_BBRINFO) { /* that of v2 begins alike */
		info->bw_Bps = info->max_bw_Bps =
		    (u64)shown.bbr.bbr_bw_hi << 32 | shown.bbr.bbr_bw_lo;
		info->min_rtt_us = shown.bbr.bbr_min_rtt;
		info->pacing_gain = shown.bbr.bbr_pacing_gain * (CC_ONE / 256);
		info->cwnd_gain = shown.bbr.bbr_cwnd_gain * (CC_ONE / 256);
	}
#else
	(void)s;
	(void)info;
#endif
}

#endif
