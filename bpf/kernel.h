/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * kernel.h - the few fields of the kernel's structures that the glue touches. Names are the
 * kernel's; offsets and sizes are the running kernel's, filled in at load from its BTF (CO-RE), so
 * one object serves Linux 6.1 and later.
 */
#ifndef FULLPIPE_BPF_KERNEL_H
#define FULLPIPE_BPF_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
#define CC_HAVE_TYPES

#define FP_ENTRY SEC("struct_ops")
#define FP_HOST_FIELDS
#define FP_KERNEL __attribute__((preserve_access_index))

#define SK_PACING_NONE 0 /* enum sk_pacing */
#define SK_PACING_NEEDED 1
#define TCP_CONG_NON_RESTRICTED 1 /* tcp_congestion_ops.flags */
#define TCP_CONG_NEEDS_ECN 2
#define TCP_ECN_OK 1 /* tcp_sock.ecn_flags; TCP_ECN_MODE_RFC3168 since 6.18 */
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_MODE_ACCECN 16
#define ICSK_ACK_TIMER 2 /* inet_connection_sock.icsk_ack.pending */
#define ICSK_ACK_NOW 16

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u16 sk_gso_max_segs;
} FP_KERNEL;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[1];
	struct {
		u8 pending;
	} icsk_ack;
} FP_KERNEL;

struct minmax_sample {
	u32 v;
} FP_KERNEL;

struct minmax {
	struct minmax_sample s[3];
} FP_KERNEL;

struct tcp_options_received {
	u32 rcv_tsval;
	u32 rcv_tsecr;
	u16 tstamp_ok : 1;
} FP_KERNEL;

struct tcp_sock {
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 srtt_us; /* times 8 */
	u32 mdev_us; /* times 4 */
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
	u32 segs_in;
	u32 data_segs_in;
	u32 high_seq;
	u32 prior_cwnd;
	u32 reordering;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 lsndtime; /* jiffies */
	u32 tlp_high_seq;
	u64 tcp_mstamp;
	u64 first_tx_mstamp;
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u64 delivered_mstamp;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
	u8 tlp_retrans : 1;
} FP_KERNEL;

/* Accurate ECN, since 6.18. */
struct tcp_sock___accecn {
	u8 accecn_fail_mode : 4;
} FP_KERNEL;

/* Timestamps in microseconds, since 6.7. */
struct tcp_sock___usec {
	u8 tcp_usec_ts : 1;
} FP_KERNEL;

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	_Bool is_app_limited;
	_Bool is_retrans;
	_Bool is_ack_delayed;
} FP_KERNEL;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
} FP_KERNEL;

/* Matched to the kernel's by member names; the name comes first so that a loader finds it, and then
 * what it takes away where the kernel knows no such call. */
struct tcp_congestion_ops {
	char name[16];
	/* Since 7.1, instead of cwnd_event with CA_EVENT_TX_START (commit d1e59a469737). */
	void (*cwnd_event_tx_start)(struct sock *);
	u32 flags;
	u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, u32, u32);
	void (*set_state)(struct sock *, u8);
	void (*cwnd_event)(struct sock *, enum tcp_ca_event);
	void (*in_ack_event)(struct sock *, u32);
	void (*pkts_acked)(struct sock *, const struct ack_sample *);
	u32 (*min_tso_segs)(struct sock *);
	void (*cong_control)(struct sock *, u32, int, const struct rate_sample *);
	u32 (*undo_cwnd)(struct sock *);
	u32 (*sndbuf_expand)(struct sock *);
	void (*init)(struct sock *);
	void (*release)(struct sock *);
};

#endif
