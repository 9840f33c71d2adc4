/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* ops.c - the calls of glue.h as a struct tcp_congestion_ops, and the algorithm's entry in the
 * package. The glue takes its arguments as eBPF programs do, in an array. */
#include "../cc/table.h"

#if FP_WANTS_RING
#include "sent.c"
#endif

#define FP_ARGUMENTS(...) ((u64[]){__VA_ARGS__})
#define FP_ADDRESS(pointer) ((u64)(unsigned long)(pointer))

/* What a file of the kernel is called with (linux/linux_host.h). Others get facts alone. */
#ifdef LINUX_FILE
static void fp_hand_over(struct sock *sk, const void *sample, u32 ack, int flag)
{
	struct fp_socket *s = fp_find(sk);

	if (s)
		s->state.socket.rest.call = (struct linux_call){sk, sample, ack, flag};
}

/* Where it asked for it, at the end of its call. */
static void fp_enter_cwr(struct sock *sk)
{
	struct fp_socket *s = fp_find(sk);

	if (!s || !s->is_live || !s->call.after.enters_cwr)
		return;
	s->call.after.enters_cwr = 0;
	(tcp_enter_cwr)(sk);
}

static void fp_op_init(struct sock *sk)
{
	fp_make(sk);
	fp_hand_over(sk, NULL, 0, 0);
	fp_init(FP_ARGUMENTS(FP_ADDRESS(sk)));
	/* tcp_dctcp.c hands sockets without ECN to operations of its own. */
	if (inet_csk(sk)->icsk_ca_ops->init != fp_op_init)
		fp_drop(sk);
}
#else
#define fp_hand_over(sk, sample, ack, flag)
#define fp_enter_cwr(sk)

static void fp_op_init(struct sock *sk) { fp_init(FP_ARGUMENTS(FP_ADDRESS(sk))); }
#endif

static void fp_op_release(struct sock *sk) { fp_release(FP_ARGUMENTS(FP_ADDRESS(sk))); }
static u32 fp_op_ssthresh(struct sock *sk) { return fp_ssthresh(FP_ARGUMENTS(FP_ADDRESS(sk))); }
static u32 fp_op_undo_cwnd(struct sock *sk) { return fp_undo_cwnd(FP_ARGUMENTS(FP_ADDRESS(sk))); }

static void fp_op_set_state(struct sock *sk, u8 state)
{
	fp_set_state(FP_ARGUMENTS(FP_ADDRESS(sk), state));
}

static void fp_op_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
#ifdef LINUX_FILE
	/* The receiving end is the file's own, and no call of the contract. */
	if (event == CA_EVENT_ECN_NO_CE || event == CA_EVENT_ECN_IS_CE) {
		if (fp_find(sk))
			fp_linux_cwnd_event(linux_registered, sk, event);
		return;
	}
#endif
	fp_cwnd_event(FP_ARGUMENTS(FP_ADDRESS(sk), event));
}

/* Since 7.1, instead of cwnd_event with CA_EVENT_TX_START (commit d1e59a469737). */
#ifdef FP_HAS_TX_START
static void fp_op_cwnd_event_tx_start(struct sock *sk)
{
	fp_cwnd_event_tx_start(FP_ARGUMENTS(FP_ADDRESS(sk)));
}
#endif

#if FP_WANTS_ACKS
static void fp_op_in_ack_event(struct sock *sk, u32 flags)
{
	fp_in_ack_event(FP_ARGUMENTS(FP_ADDRESS(sk), flags));
	fp_enter_cwr(sk);
}
#endif

#if FP_WANTS_RTT
static void fp_op_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	fp_hand_over(sk, sample, 0, 0);
	fp_pkts_acked(FP_ARGUMENTS(FP_ADDRESS(sk), FP_ADDRESS(sample)));
	fp_enter_cwr(sk);
}
#endif

#if FP_OWNS_CWND
static void fp_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	fp_hand_over(sk, rs, ack, flag);
	fp_cong_control(FP_ARGUMENTS(FP_ADDRESS(sk), FP_ADDRESS(rs)));
	fp_enter_cwr(sk);
}

static __maybe_unused void fp_op_cong_control_2(struct sock *sk, const struct rate_sample *rs)
{
	fp_control(sk, 0, 0, rs);
}

/* Since 6.10. */
static __maybe_unused void fp_op_cong_control_4(struct sock *sk, u32 ack, int flag,
						const struct rate_sample *rs)
{
	fp_control(sk, ack, flag, rs);
}

#define FP_CONG_CONTROL                                                                            \
	__builtin_choose_expr(FP_IS_LIKE(((struct tcp_congestion_ops *)0)->cong_control,           \
					 void (*)(struct sock *, const struct rate_sample *)),     \
			      fp_op_cong_control_2, fp_op_cong_control_4)

static u32 fp_op_min_tso_segs(struct sock *sk)
{
	return fp_min_tso_segs(FP_ARGUMENTS(FP_ADDRESS(sk)));
}

static u32 fp_op_sndbuf_expand(struct sock *sk)
{
	return fp_sndbuf_expand(FP_ARGUMENTS(FP_ADDRESS(sk)));
}
#else
static void fp_op_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	fp_hand_over(sk, NULL, ack, 0);
	fp_cong_avoid(FP_ARGUMENTS(FP_ADDRESS(sk), ack, acked));
	fp_enter_cwr(sk);
}
#endif

#ifdef LINUX_FILE
/* Of its state the front end's (cc/linux_host.h) has only the begin. */
#define FP_STATE_BYTES offsetof(struct linux_socket, rest.call)

static size_t fp_op_get_info(struct sock *sk, u32 wanted, int *attribute, union tcp_cc_info *info)
{
	size_t bytes = 0;

	rcu_read_lock();
	if (linux_registered->get_info && fp_find(sk))
		bytes = linux_registered->get_info(sk, wanted, attribute, info);
	rcu_read_unlock();
	return bytes;
}
#else
#define FP_STATE_BYTES sizeof(struct FP_ALGORITHM)

#define FP_VARIABLES(name) CC_VARIABLES(name)
FP_VARIABLES(FP_ALGORITHM)

/* The value of a variable in fixed point of `scale`; 0: the algorithm has none of that name. */
static u64 fp_variable(const s64 *values, const char *name, u32 scale)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(FP_CC(_variables)); i++)
		if (!strcmp(FP_CC(_variables)[i].name, name) && values[i] > 0)
			return (u64)values[i] * scale / FP_CC(_variables)[i].scale;
	return 0;
}

/* For `ss -i`, as tcp_bbr.c tells it; what else an algorithm knows comes through the device. The
 * kernel asks without the socket's lock. */
static size_t fp_op_get_info(struct sock *sk, u32 wanted, int *attribute, union tcp_cc_info *info)
{
	s64 values[ARRAY_SIZE(FP_CC(_variables))] = {};
	const u32 unit = 256; /* BBR_UNIT */
	struct fp_socket *s;
	u64 bw_Bps;

	if (!(wanted & (1 << (INET_DIAG_BBRINFO - 1))) &&
	    !(wanted & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	rcu_read_lock();
	s = READ_ONCE(*fp_socket_place(sk));
	if (s)
		FP_CC(_read_values)(&s->state, fp_parameters(s), values);
	rcu_read_unlock();
	bw_Bps = fp_variable(values, "bw", 1);
	if (!bw_Bps)
		return 0;
	memset(&info->bbr, 0, sizeof(info->bbr));
	info->bbr.bbr_bw_lo = (u32)bw_Bps;
	info->bbr.bbr_bw_hi = (u32)(bw_Bps >> 32);
	info->bbr.bbr_min_rtt = fp_variable(values, "min_rtt", 1);
	info->bbr.bbr_pacing_gain = fp_variable(values, "pacing_gain", unit);
	info->bbr.bbr_cwnd_gain = fp_variable(values, "cwnd_gain", unit);
	*attribute = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}
#endif

static const struct tcp_congestion_ops fp_ops = {
    .owner = THIS_MODULE,
    /* Any program may choose it, as it may the kernel's own. */
    .flags = TCP_CONG_NON_RESTRICTED | ((FP_FLAGS)&CC_WANTS_ECN ? TCP_CONG_NEEDS_ECN : 0),
    .init = fp_op_init,
    .release = fp_op_release,
    .ssthresh = fp_op_ssthresh,
    .undo_cwnd = fp_op_undo_cwnd,
    .set_state = fp_op_set_state,
    .cwnd_event = fp_op_cwnd_event,
#ifdef FP_HAS_TX_START
    .cwnd_event_tx_start = fp_op_cwnd_event_tx_start,
#endif
    .get_info = fp_op_get_info,
#if FP_WANTS_ACKS
    .in_ack_event = fp_op_in_ack_event,
#endif
#if FP_WANTS_RTT
    .pkts_acked = fp_op_pkts_acked,
#endif
#if FP_OWNS_CWND
    .cong_control = FP_CONG_CONTROL,
    .min_tso_segs = fp_op_min_tso_segs,
    .sndbuf_expand = fp_op_sndbuf_expand,
#else
    .cong_avoid = fp_op_cong_avoid,
#endif
};

static u32 fp_flags_of(const u32 *params) { return FP_CC(_flags_of)((const void *)params); }

#define FP_PARAM(name, dflt, min, max, scale, unit, zero, source, meaning, ...)                    \
	{#name, min, max, scale, __VA_ARGS__ + 0},

static const struct fp_param fp_params[] = {FP_CC(_PARAMS)(FP_PARAM){}};

/* Places in fp_params. */
#define FP_PARAM_PLACE(name, ...) FP_PASTE(fp_param_, name),
enum { FP_CC(_PARAMS)(FP_PARAM_PLACE) fp_param_places };

extern const struct fp_algorithm FP_PASTE(fp_algorithm_, FP_ALGORITHM);
const struct fp_algorithm FP_PASTE(fp_algorithm_, FP_ALGORITHM) = {
    .name = FP_IDENTITY,
    .ops = &fp_ops,
    .params = fp_params,
    .param_count = ARRAY_SIZE(fp_params) - 1,
    .flags = FP_FLAGS,
    .flags_of = fp_flags_of,
    .state_bytes = FP_STATE_BYTES,
    .call_bytes = sizeof(struct fp_call),
#ifdef LINUX_FILE
    .has_one_set = true,
#endif
};
