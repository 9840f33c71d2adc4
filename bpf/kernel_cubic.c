/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * kernel_cubic.c - the kernel's own CUBIC, called from eBPF programs that do nothing else, so that
 * the kernel's statistics of programs (kernel.bpf_stats_enabled) tell what its functions cost as
 * they tell it of ours. tcp_cubic.c offers them to such programs (tcp_cubic_check_kfunc_ids).
 *
 * fp_min_tso_segs does nothing at all and gives what holds without it (tcp_min_tso_segs: 2): what a
 * call of it takes is what the statistics themselves cost a call.
 */
#include "kernel.h"
#include "settings.h"

/* Asked for which of two functions a kernel has: the verifier of 6.1 lets no program take the
 * address of a function. */
struct tcp_congestion_ops___tx_start {
	void (*cwnd_event_tx_start)(struct sock *sk);
} FP_KERNEL;

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
/* Since 7.1 the one event that CUBIC wants, a start after idle, has a function of its own. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

const volatile struct {
	FP_SETTINGS
} fp_settings = {.algorithm = "kernel_cubic"};

/* A loader asks every object for it; nobody puts a state there. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} fp_sockets SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("struct_ops")
void fp_init(u64 *context) { cubictcp_init((void *)context[0]); }

SEC("struct_ops")
u32 fp_ssthresh(u64 *context) { return cubictcp_recalc_ssthresh((void *)context[0]); }

SEC("struct_ops")
void fp_cong_avoid(u64 *context)
{
	cubictcp_cong_avoid((void *)context[0], (u32)context[1], (u32)context[2]);
}

SEC("struct_ops")
void fp_set_state(u64 *context) { cubictcp_state((void *)context[0], (u8)context[1]); }

SEC("struct_ops")
void fp_cwnd_event(u64 *context)
{
	if (!bpf_core_field_exists(struct tcp_congestion_ops___tx_start, cwnd_event_tx_start))
		cubictcp_cwnd_event((void *)context[0], (enum tcp_ca_event)context[1]);
}

SEC("struct_ops")
void fp_cwnd_event_tx_start(u64 *context) { cubictcp_cwnd_event_tx_start((void *)context[0]); }

SEC("struct_ops")
void fp_pkts_acked(u64 *context)
{
	cubictcp_acked((void *)context[0], (const struct ack_sample *)context[1]);
}

SEC("struct_ops")
u32 fp_undo_cwnd(u64 *context) { return tcp_reno_undo_cwnd((void *)context[0]); }

SEC("struct_ops")
u32 fp_min_tso_segs(u64 *context) { return 2; }

SEC(".struct_ops.link")
struct tcp_congestion_ops fp_ops = {
    .name = "fp_unnamed",
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)fp_init,
    .ssthresh = (void *)fp_ssthresh,
    .cong_avoid = (void *)fp_cong_avoid,
    .set_state = (void *)fp_set_state,
    .cwnd_event = (void *)fp_cwnd_event,
    .cwnd_event_tx_start = (void *)fp_cwnd_event_tx_start,
    .pkts_acked = (void *)fp_pkts_acked,
    .undo_cwnd = (void *)fp_undo_cwnd,
    .min_tso_segs = (void *)fp_min_tso_segs,
};
