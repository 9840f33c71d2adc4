/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * episodes.bpf.c - counts for each TCP socket what the kernel's TCP_INFO does not: how often it
 * entered Recovery, and how often it undid a reduction. Samples of the state miss what begins and
 * ends between two of them.
 */
#include "kernel.h"

/* crates/fullpipe-agent/src/kernel_cc/episodes.rs reads it by the socket's descriptor. */
struct fp_episodes {
	u32 recoveries;
	u32 undos;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fp_episodes);
} fp_episodes SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline struct fp_episodes *fp_episodes_of(u64 *context)
{
	return bpf_sk_storage_get(&fp_episodes, (void *)context[0], 0, BPF_SK_STORAGE_GET_F_CREATE);
}

SEC("fentry/tcp_enter_recovery")
int fp_recovery(u64 *context)
{
	struct fp_episodes *episodes = fp_episodes_of(context);

	if (episodes)
		episodes->recoveries++;
	return 0;
}

SEC("fentry/tcp_undo_cwnd_reduction")
int fp_undo(u64 *context)
{
	struct fp_episodes *episodes = fp_episodes_of(context);

	if (episodes)
		episodes->undos++;
	return 0;
}
