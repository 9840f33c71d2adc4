/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * kernel_file.c - the functions of linux_base.h, linux_tcp.h and linux_host.h, once for all files
 * of the kernel in a package. It must not know a file, nor how large the file's own state is.
 */
#include "../core.h"
#include "linux_host.h"

DEFINE_PER_CPU(bool, fp_linux_is_starting);

void fp_linux_begin_start(void)
{
	local_bh_disable();
	this_cpu_write(fp_linux_is_starting, true);
}

void fp_linux_end_start(void)
{
	this_cpu_write(fp_linux_is_starting, false);
	local_bh_enable();
}

/* Of the connection that has this processor. */
static DEFINE_PER_CPU(u64 *, fp_linux_random);

u64 fp_linux_draw(void)
{
	u64 x = *this_cpu_read(fp_linux_random) += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

void fp_linux_draw_bytes(void *to, size_t count)
{
	u8 *byte = to;

	while (count--)
		*byte++ = fp_linux_draw() >> 56;
}

u32 fp_linux_draw_below(u32 ceiling)
{
	return (u32)((u64)(u32)(fp_linux_draw() >> 32) * ceiling >> 32);
}

void *fp_linux_state(const struct sock *sk)
{
	static const u64 nothing[FP_LINUX_WORDS_MOST];
	void *state = READ_ONCE(*fp_socket_place(sk));

	return state ? state : (void *)nothing;
}

/* Nothing else may draw random numbers on this processor meanwhile. */
static void fp_linux_enter(struct linux_rest *s)
{
	local_bh_disable();
	this_cpu_write(fp_linux_random, &s->random);
}

/* What the call decided. */
static void fp_linux_leave(const struct tcp_congestion_ops *ops, struct linux_rest *s,
			   struct cc_ctl *ctl)
{
	struct sock *sk = s->call.sk;
	const struct tcp_sock *tp = tcp_sk(sk);

	if (ops->sndbuf_expand)
		ctl->sndbuf_factor = ops->sndbuf_expand(sk);
	local_bh_enable();
	s->mss = tp->mss_cache;
	ctl->cwnd = tp->snd_cwnd;
	ctl->ssthresh = tp->snd_ssthresh;
	ctl->cwnd_cnt = tp->snd_cwnd_cnt;
	ctl->pacing_rate_Bps = READ_ONCE(sk->sk_pacing_rate);
	ctl->enters_cwr = s->wants_cwr;
	s->wants_cwr = false;
}

void fp_linux_init(const struct tcp_congestion_ops *ops, struct linux_rest *s,
		   const struct cc_conn *conn, struct cc_ctl *ctl)
{
	s->random = conn->seed;
	fp_linux_enter(s);
	if (ops->init)
		ops->init(s->call.sk);
	fp_linux_leave(ops, s, ctl);
}

/* Since 6.10 with four arguments; the call that is not chosen goes to a function that there is not,
 * as in kernel.h. */
typedef void fp_linux_control_of_4_9(struct sock *, const struct rate_sample *);
typedef void fp_linux_control_of_6_10(struct sock *, u32, int, const struct rate_sample *);
fp_linux_control_of_4_9 fp_linux_no_control_2;
fp_linux_control_of_6_10 fp_linux_no_control_4;
#define FP_LINUX_CONTROLS_WITH_2                                                                   \
	FP_IS_LIKE(((struct tcp_congestion_ops *)0)->cong_control, fp_linux_control_of_4_9 *)
#define fp_linux_control(call, sk, ack, flag, rs)                                                  \
	__builtin_choose_expr(                                                                     \
	    FP_LINUX_CONTROLS_WITH_2,                                                              \
	    __builtin_choose_expr(FP_LINUX_CONTROLS_WITH_2, call, fp_linux_no_control_2)(sk, rs),  \
	    __builtin_choose_expr(FP_LINUX_CONTROLS_WITH_2, fp_linux_no_control_4,                 \
				  call)(sk, ack, flag, rs))

void fp_linux_on_ack(const struct tcp_congestion_ops *ops, struct linux_rest *s,
		     const struct cc_ack *ack, struct cc_ctl *ctl)
{
	const struct linux_call *call = &s->call;

	fp_linux_enter(s);
	if (ops->cong_control)
		fp_linux_control(ops->cong_control, call->sk, call->ack, call->flag, call->sample);
	else if (ops->cong_avoid)
		ops->cong_avoid(call->sk, call->ack, ack->acked_sacked);
	fp_linux_leave(ops, s, ctl);
}

void fp_linux_cwnd_event(const struct tcp_congestion_ops *ops, struct sock *sk,
			 enum tcp_ca_event event)
{
#ifdef FP_HAS_TX_START
	if (event == CA_EVENT_TX_START && ops->cwnd_event_tx_start)
		return ops->cwnd_event_tx_start(sk);
#endif
	if (ops->cwnd_event)
		ops->cwnd_event(sk, event);
}

void fp_linux_on_event(const struct tcp_congestion_ops *ops, struct linux_rest *s,
		       const struct cc_event *event, struct cc_ctl *ctl)
{
	struct sock *sk = s->call.sk;
	u32 ssthresh = 0, cwnd = 0, tso_segs = 0;
	bool has_ssthresh = false, has_cwnd = false; /* 0 is an answer like others */

	fp_linux_enter(s);
	switch (event->kind) {
	case CC_EVENT_TX_START:
		fp_linux_cwnd_event(ops, sk, CA_EVENT_TX_START);
		break;
	case CC_EVENT_CWND_RESTART:
		fp_linux_cwnd_event(ops, sk, CA_EVENT_CWND_RESTART);
		break;
	case CC_EVENT_COMPLETE_CWR:
		fp_linux_cwnd_event(ops, sk, CA_EVENT_COMPLETE_CWR);
		break;
	case CC_EVENT_RTO:
		fp_linux_cwnd_event(ops, sk, CA_EVENT_LOSS);
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
	fp_linux_leave(ops, s, ctl);
	if (has_ssthresh)
		ctl->ssthresh = ssthresh;
	if (has_cwnd)
		ctl->cwnd = cwnd;
	if (tso_segs)
		ctl->tso_segs = tso_segs;
}
