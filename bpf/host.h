/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * host.h - what the glue needs of eBPF: storage of sockets, settings, counters, the log of calls,
 * helpers. glue.h includes it where its struct fp_socket is known. A loader sets the variables of
 * .rodata before the load; one object thus serves every parameter set.
 */
#ifndef FULLPIPE_BPF_HOST_H
#define FULLPIPE_BPF_HOST_H

#include "settings.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fp_socket);
} fp_sockets SEC(".maps");

/* Every call, for replay; a page where nobody traces. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} fp_trace SEC(".maps");

#define FP_PARAM_DEFAULT(name, dflt, min, max, scale, unit, zero, source, meaning, ...) dflt,
#define FP_TEXT2(text) #text
#define FP_TEXT(text) FP_TEXT2(text)

/* What a loader sets before the load (all of .rodata). Constants to the verifier too, which drops
 * the code that they switch off. */
const volatile struct {
	FP_SETTINGS
	struct FP_CC(_params) params;
} fp_settings = {
    .algorithm = FP_TEXT(FP_ALGORITHM),
    .flags = FP_FLAGS,
    .state_bytes = sizeof(struct FP_ALGORITHM),
    .tick_us = 4000,
    .cong_control_args = 4,
    .param_count = sizeof(struct FP_CC(_params)) / sizeof(u32),
    .params = {FP_CC(_PARAMS)(FP_PARAM_DEFAULT)},
};

/* What user space reads, and the one thing that it may write behind the load (all of .bss). */
struct {
	u32 live;       /* sockets that use it now */
	u32 opened;     /* sockets that ever used it */
	u32 trace_lost; /* calls that found the ring buffer full */
	u32 seed;       /* of the algorithm's random numbers; 0: the kernel's */
} fp_counters;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The compiler must not take the defaults for the values. */
static __always_inline const struct FP_CC(_params) * fp_parameters(const struct fp_socket *s)
{
	const void *params = (const void *)&fp_settings.params;

	barrier_var(params);
	return params;
}

/* Whether the algorithm asks for these events with its constants. The verifier knows them, and
 * drops the rest of a program that they switch off. */
#define fp_wants(flag) (FP_CC(_flags_of)(fp_parameters(0)) & (flag))

static __always_inline struct fp_socket *fp_find(struct sock *sk)
{
	return bpf_sk_storage_get(&fp_sockets, sk, 0, 0);
}

static __always_inline struct fp_socket *fp_make(struct sock *sk)
{
	return bpf_sk_storage_get(&fp_sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void fp_drop(struct sock *sk) { bpf_sk_storage_delete(&fp_sockets, sk); }

#define fp_counts(s) (&fp_counters)
#define fp_is_traced(s) fp_settings.is_traced
#define fp_tick_us() fp_settings.tick_us
#define fp_jiffies() (u32) bpf_jiffies64()
#define fp_random() bpf_get_prandom_u32()
#define fp_send_ack(sk, rcv_nxt) bpf_tcp_send_ack((struct tcp_sock *)sk, rcv_nxt)

static __always_inline _Bool fp_has_accecn(const struct tcp_sock *tp)
{
	const struct tcp_sock___accecn *newer = (const void *)tp;

	return bpf_core_field_exists(newer->accecn_fail_mode);
}

/* Whether its timestamps count us (the route's feature tcp_usec_ts, since 6.7). */
static __always_inline _Bool fp_has_us_timestamps(const struct tcp_sock *tp)
{
	const struct tcp_sock___usec *newer = (const void *)tp;

	return bpf_core_field_exists(newer->tcp_usec_ts) &&
	       BPF_CORE_READ_BITFIELD(newer, tcp_usec_ts);
}

/* Packets have no records of their own: the ring stands in, and no loss is told. */
#define fp_sample(sk, s) cc_ring_sample(&(s)->ring, &(s)->call.conn, &(s)->call.ack)
#define fp_report_losses(sk, s)

/* Nonzero: there was no room. Nobody is woken: who reads the trace looks often enough. */
static __always_inline long fp_put_call(struct fp_socket *s)
{
	return bpf_ringbuf_output(&fp_trace, &s->call, sizeof(s->call), BPF_RB_NO_WAKEUP);
}

/* The verifier refuses one load of either of two kinds of memory, which is what the compiler would
 * make of `s->call.after` in one branch and of the socket in the other. */
#define fp_keep(value) barrier_var(value)

static __always_inline const struct rate_sample *fp_rate_sample(u64 *context)
{
	const struct rate_sample *rs;

	/* The verifier knows which; one load of a chosen address would be refused. */
	if (fp_settings.cong_control_args == 2) {
		rs = (void *)context[1];
		fp_keep(rs);
	} else {
		rs = (void *)context[3];
		fp_keep(rs);
	}
	return rs;
}

#endif
