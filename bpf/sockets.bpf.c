/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * sockets.bpf.c - what the kernel's TCP_INFO does not tell of a TCP socket: how often it entered
 * Recovery, how often it undid a reduction (samples of the state miss what begins and ends between
 * two of them), and the private state of its congestion control, whatever that is.
 */
#include "kernel.h"

/* crates/fullpipe-agent/src/kernel_cc/sockets.rs reads it by the socket's descriptor. */
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

/* inet_csk_ca(sk): 104 bytes in Linux, 144 in Google's v3 kernel. */
struct fp_ca_priv {
	u64 words[18];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fp_ca_priv);
} fp_ca_priv SEC(".maps");

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

/* The agent asks for TCP_INFO at each sample: the state is that of the same moment. */
SEC("fentry/tcp_get_info")
int fp_info(u64 *context)
{
	struct inet_connection_sock *connection = (void *)context[0];
	struct fp_ca_priv *state;
	u32 bytes = bpf_core_field_size(connection->icsk_ca_priv);

	state = bpf_sk_storage_get(&fp_ca_priv, (void *)context[0], 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (state && bytes <= sizeof(*state))
		bpf_probe_read_kernel(state, bytes, &connection->icsk_ca_priv);
	return 0;
}
