/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_host.h - a file of the kernel's net/ipv4 as an algorithm of cc.h in the kernel itself: each
 * call of the contract becomes the call of the file's struct tcp_congestion_ops that TCP made, with
 * the arguments that TCP gave (ops.h hands them over), on the socket itself. The glue logs what TCP
 * knew before it and what the socket holds after it; cc/linux_host.h, for which this stands in a
 * package, must give the same from the same facts. It must not know which file it carries.
 */
#ifndef FULLPIPE_MODULE_LINUX_HOST_H
#define FULLPIPE_MODULE_LINUX_HOST_H

#include "cc_more.h"
#include "state.h"
#include "linux_tcp.h"

#define LINUX_FILE

/* Nothing else may draw random numbers on this processor meanwhile. */
CC_INLINE void linux_enter(struct linux_socket *s)
{
	local_bh_disable();
	this_cpu_write(linux_random, &s->random);
}

/* What the call decided. */
CC_INLINE void linux_leave(struct linux_socket *s, struct cc_ctl *ctl)
{
	struct sock *sk = s->call.sk;
	const struct tcp_sock *tp = tcp_sk(sk);

	if (linux_registered->sndbuf_expand)
		ctl->sndbuf_factor = linux_registered->sndbuf_expand(sk);
	local_bh_enable();
	s->mss = tp->mss_cache;
	ctl->cwnd = tp->snd_cwnd;
	ctl->ssthresh = tp->snd_ssthresh;
	ctl->cwnd_cnt = tp->snd_cwnd_cnt;
	ctl->pacing_rate_Bps = READ_ONCE(sk->sk_pacing_rate);
	ctl->enters_cwr = s->wants_cwr;
	s->wants_cwr = false;
}

CC_INLINE void linux_init(struct linux_socket *s, const struct cc_conn *conn, struct cc_ctl *ctl)
{
	s->random = conn->seed;
	linux_enter(s);
	if (linux_registered->init)
		linux_registered->init(s->call.sk);
	linux_leave(s, ctl);
}

/* Since 6.10 with four arguments; the call that is not chosen goes to a function that there is not,
 * as in kernel.h. */
typedef void linux_control_of_4_9(struct sock *, const struct rate_sample *);
typedef void linux_control_of_6_10(struct sock *, u32, int, const struct rate_sample *);
linux_control_of_4_9 linux_no_control_2;
linux_control_of_6_10 linux_no_control_4;
#define LINUX_CONTROLS_WITH_2                                                                      \
	FP_IS_LIKE(((struct tcp_congestion_ops *)0)->cong_control, linux_control_of_4_9 *)
#define linux_control(call, sk, ack, flag, rs)                                                     \
	__builtin_choose_expr(                                                                     \
	    LINUX_CONTROLS_WITH_2,                                                                 \
	    __builtin_choose_expr(LINUX_CONTROLS_WITH_2, call, linux_no_control_2)(sk, rs),        \
	    __builtin_choose_expr(LINUX_CONTROLS_WITH_2, linux_no_control_4, call)(sk, ack, flag,  \
										   rs))

CC_INLINE void linux_on_ack(struct linux_socket *s, const struct cc_conn *conn,
			    const struct cc_ack *ack, struct cc_ctl *ctl)
{
	const struct linux_call *call = &s->call;

	linux_enter(s);
	if (linux_registered->cong_control)
		linux_control(linux_registered->cong_control, call->sk, call->ack, call->flag,
			      call->sample);
	else if (linux_registered->cong_avoid)
		linux_registered->cong_avoid(call->sk, call->ack, ack->acked_sacked);
	linux_leave(s, ctl);
}

CC_INLINE void linux_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
#ifdef FP_HAS_TX_START
	if (event == CA_EVENT_TX_START && linux_registered->cwnd_event_tx_start)
		return linux_registered->cwnd_event_tx_start(sk);
#endif
	if (linux_registered->cwnd_event)
		linux_registered->cwnd_event(sk, event);
}

CC_INLINE void linux_on_event(struct linux_socket *s, const struct cc_conn *conn,
			      const struct cc_event *event, struct cc_ctl *ctl)
{
	const struct tcp_congestion_ops *ops = linux_registered;
	struct sock *sk = s->call.sk;
	u32 ssthresh = 0, cwnd = 0, tso_segs = 0;
	bool has_ssthresh = false, has_cwnd = false; /* 0 is an answer like others */

	linux_enter(s);
	switch (event->kind) {
	case CC_EVENT_TX_START:
		linux_cwnd_event(sk, CA_EVENT_TX_START);
		break;
	case CC_EVENT_CWND_RESTART:
		linux_cwnd_event(sk, CA_EVENT_CWND_RESTART);
		break;
	case CC_EVENT_COMPLETE_CWR:
		linux_cwnd_event(sk, CA_EVENT_COMPLETE_CWR);
		break;
	case CC_EVENT_RTO:
		linux_cwnd_event(sk, CA_EVENT_LOSS);
		break;
	case CC_EVENT_STATE:
		if (ops->set_state)
			ops->set_state(sk, event->value);
		break;
	case CC_EVENT_SSTHRESH:
		has_ssthresh = true;
		ssthresh = ops->ssthresh(sk);
		break;
	case CC_EVENT_UNDO:
		has_cwnd = ops->undo_cwnd != NULL;
		cwnd = has_cwnd ? ops->undo_cwnd(sk) : 0;
		break;
	case CC_EVENT_RTT:
		if (ops->pkts_acked)
			ops->pkts_acked(sk, s->call.sample);
		break;
	case CC_EVENT_ACK:
		if (ops->in_ack_event)
			ops->in_ack_event(sk, event->value);
		break;
	case CC_EVENT_SEND:
		if (ops->min_tso_segs)
			tso_segs = ops->min_tso_segs(sk);
		break;
	}
	linux_leave(s, ctl);
	if (has_ssthresh)
		ctl->ssthresh = ssthresh;
	if (has_cwnd)
		ctl->cwnd = cwnd;
	if (tso_segs)
		ctl->tso_segs = tso_segs;
}

/* `ss -i` asks the file itself (ops.h). */
CC_INLINE void linux_info(const struct linux_socket *s, struct cc_info *info) {}

#endif
