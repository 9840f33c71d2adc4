/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* ops.h - the calls of glue.h as the struct_ops that a loader names and registers. */
#ifndef FULLPIPE_BPF_OPS_H
#define FULLPIPE_BPF_OPS_H

SEC(".struct_ops.link")
struct tcp_congestion_ops fp_ops = {
    .name = "fp_unnamed",
    /* Any program may choose it, as it may the kernel's own. */
    .flags = TCP_CONG_NON_RESTRICTED | ((FP_FLAGS)&CC_WANTS_ECN ? TCP_CONG_NEEDS_ECN : 0),
    .init = (void *)fp_init,
    .release = (void *)fp_release,
    .ssthresh = (void *)fp_ssthresh,
    .undo_cwnd = (void *)fp_undo_cwnd,
    .set_state = (void *)fp_set_state,
    .cwnd_event = (void *)fp_cwnd_event,
    .cwnd_event_tx_start = (void *)fp_cwnd_event_tx_start,
#if FP_WANTS_ACKS
    .in_ack_event = (void *)fp_in_ack_event,
#endif
#if FP_WANTS_RTT
    .pkts_acked = (void *)fp_pkts_acked,
#endif
#if FP_OWNS_CWND
    .cong_control = (void *)fp_cong_control,
    .min_tso_segs = (void *)fp_min_tso_segs,
    .sndbuf_expand = (void *)fp_sndbuf_expand,
#else
    .cong_avoid = (void *)fp_cong_avoid,
#endif
};

#endif
