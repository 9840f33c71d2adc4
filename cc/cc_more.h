/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * cc_more.h - the contract's details: what the facts are in Linux, the facts that few need, further
 * events and flags. cc.h has what a first algorithm needs. A host needs both.
 */
#ifndef FULLPIPE_CC_MORE_H
#define FULLPIPE_CC_MORE_H

#include "cc.h"

/* CC_CONTRACT_VERSION increases when the contract gains a fact, an event or a flag, or changes the
 * meaning of one. A file may state the version it was written for, `#define NAME_CONTRACT 5`. A
 * host refuses a later version, and an earlier one if something the file may rely on has changed
 * since: versions 2 to 4 run, as later ones only added something.
 *
 * NAME_FLAGS_IF(F) lists which of NAME_FLAGS only some constants need (flags.h). Built-in
 * algorithms have a line in registry.h; an external one is named by its path. bytes.h converts for
 * a host that counts bytes. */

/* Hosts bound ctl->cwnd to this. A window of 16 million packets is none; beyond some hundred
 * million the kernel's own arithmetic of rates (tcp_update_pacing_rate()) overflows. */
#define CC_CWND_MAX (1u << 24)

/* Facts of struct cc_conn in Linux:
 *   now_us                 tcp_mstamp
 *   now_ns                 tcp_clock_cache
 *   edt_ns                 tcp_wstamp_ns
 *   delivered_us           delivered_mstamp
 *   last_send_us           lsndtime
 *   pacing_rate_cap_Bps    sk_max_pacing_rate
 *   delivered              tp->delivered
 *   inflight               tcp_packets_in_flight()
 *   cwnd_clamp             snd_cwnd_clamp
 *   is_cwnd_limited        tcp_is_cwnd_limited()
 *   is_cwnd_full           the bit is_cwnd_limited, without the allowance of slow start
 *   ecn_low                Google's TCP_ECN_LOW
 *
 * With CC_WANTS_DETAILS only, else 0. `min_rtt_us` and timestamps are 0 too where the host has
 * none.
 *   min_rtt_us             the host's least RTT, of 5 minutes (tcp_min_rtt())
 *   rttvar_us              mean deviation of the RTT (mdev_us / 4)
 *   unsent_bytes           written by the application, not yet sent
 *   unsent_packets         the same, rounded up
 *   acks                   ACKs that came so far
 *   rcv_tsval              the newest segment's timestamp (RFC 7323): the receiver's clock, in
 *                          ticks that it chooses, of Linux 1 ms
 *   rcv_tsecr              what it echoes: when a packet of ours was sent, in ts_tick_us
 *   ts_tick_us             of our timestamps; 0: the connection has none
 *   sacked_out             packets SACKed and not acknowledged
 *   lost_out               packets marked lost and not acknowledged
 *   retrans_out            retransmissions in the network
 *   max_packets_out        most packets_out of the last window (max_packets_out)
 *   high_seq               snd_nxt when ca_state last changed to another episode
 *   reordering             packets by which the path reorders, 3 at first
 *   prior_cwnd             cwnd before the last reduction
 *   lost_age_us            CC_EVENT_LOST: since the packet that was lost was last sent
 *
 * struct cc_ack is the rate sample of draft-ietf-ccwg-bbr section 4.1, Linux struct rate_sample;
 * age_us is of first_tx_mstamp. With CC_WANTS_RING tx_inflight and lost are the host's own record,
 * or the snapshot ring's (ring.h).
 *
 * Of struct cc_ctl, sndbuf_factor is Linux's sndbuf_expand and cwnd_cnt its snd_cwnd_cnt. Stock
 * kernels ignore tso_most.
 *   is_scalable            reduces in proportion to marks: may send ECT(1) (RFC 9331 section 4.3)
 *   enters_cwr             the host reduces as after an ECN mark, once (Linux tcp_enter_cwr()); the
 *                          simulator, and files of the kernel in its module
 *   timer_us               with CC_WANTS_TIMER: when CC_EVENT_TIMER is wanted, on the clock of
 *                          conn->now_us; 0: not at all. One that has passed is due 1 us from now */

/* Further events. The host applies cc_ctl as after an ACK. In Linux CC_EVENT_SSTHRESH is
 * ssthresh(), and CC_EVENT_UNDO undo_cwnd(). */
enum cc_more_event_kind {
	CC_EVENT_TX_START = 1,     /* first packet after idling: nothing was in flight */
	CC_EVENT_CWND_RESTART = 2, /* window restarted after idle (RFC 2861) */
	CC_EVENT_COMPLETE_CWR = 3, /* a recovery or CWR episode ended */
	CC_EVENT_ECN_CE = 5,       /* a data packet arrived here with CE (receiver side) */
	/* An RTT sample for HyStart: `value` us, `packets` acknowledged (Linux pkts_acked());
	 * CC_WANTS_RTT only. With CC_WANTS_EVERY_RTT `delivered_since` has the packets delivered
	 * since the newest one acknowledged was sent (Linux ack_sample.in_flight). */
	CC_EVENT_RTT = 9,
	/* About to send: set ctl->tso_segs (Linux min_tso_segs()); CC_OWNS_CWND only. */
	CC_EVENT_SEND = 10,
	/* A packet was marked lost. It was sent with `value` in flight, itself included; `packets`
	 * were lost since then; `is_app_limited` is its own. Only hosts that keep a record per
	 * packet send this; elsewhere conn->lost counts losses. */
	CC_EVENT_LOST = 11,
	/* A tail loss probe repaired the loss of one packet; `is_app_limited` is that packet's. */
	CC_EVENT_TLP_RECOVERY = 12,
	/* An ACK was processed and its sample is not yet reported (Linux in_ack_event());
	 * CC_WANTS_ACKS only. `value`: CC_ACK_SLOW and the other bits. */
	CC_EVENT_ACK = 13,
	/* ctl->timer_us has come, `value` us ago; CC_WANTS_TIMER only. The timer is off:
	 * ctl->timer_us is 0. */
	CC_EVENT_TIMER = 14,
};

/* Bits of CC_EVENT_ACK (Linux enum tcp_ca_ack_event_flags). */
#define CC_ACK_SLOW 1u   /* header prediction failed: SACKs, marks, another window */
#define CC_ACK_WINDOW 2u /* it may change the window */
#define CC_ACK_ECE 4u    /* it echoes marks */

/* NAME_FLAGS. They are macros, so that a host can leave out unused code at compile time.
 *
 * CC_OWNS_CWND (cc.h): Linux's split between cong_control, for every ACK, and cong_avoid, when the
 * window may grow. With it CC_EVENT_SEND comes before every transmission.
 * CC_WANTS_RING: fill cc_ack.tx_inflight and .lost. A host without a record per packet keeps a
 * struct cc_ring and sends no CC_EVENT_LOST. Needs CC_OWNS_CWND.
 * CC_WANTS_ECN: negotiate ECN even if the system's default is not to.
 * CC_WANTS_RTT: send CC_EVENT_RTT.
 * CC_WANTS_ACKS: send CC_EVENT_ACK; for algorithms without CC_OWNS_CWND.
 * CC_ECHOES_CE: the receiver reports the mark of each packet (RFC 8257 section 3.2) instead of
 * repeating one mark until the sender answers it. Both ends run the algorithm.
 * CC_SEND_IS_PURE: CC_EVENT_SEND sets ctl->tso_segs and changes nothing else, so that a host may
 * skip it where nothing will be sent. Kernels always send it.
 * CC_WANTS_EVERY_RTT: with CC_WANTS_RTT, send CC_EVENT_RTT at ACKs without an RTT sample too, with
 * `value` CC_NO_RTT.
 * CC_WANTS_TIMER: send CC_EVENT_TIMER. The simulator sends it at that very time. eBPF in a kernel
 * has no call to wait for: it comes before the first ACK or CC_EVENT_SEND at or after that time, so
 * while a flow sends or receives, and not while it idles. (A bpf_timer may not lie in socket
 * storage, and its callback holds neither the socket nor its lock.) Without CC_OWNS_CWND it comes
 * before an ACK only.
 * CC_WANTS_DETAILS: fill the second part of struct cc_conn.
 * CC_HOST_RECOVERS: between the other two ways, with CC_OWNS_CWND: on_ack comes with every ACK and
 * its sample, pacing is the algorithm's, and in CWR and Recovery the window is the host's, which
 * brings it to ctl->ssthresh by PRR (recovery.h). CC_EVENT_SSTHRESH asks for that threshold;
 * what on_ack does to cwnd then is dropped. There is no CC_EVENT_COMPLETE_CWR; CC_EVENT_STATE says
 * when it is over.
 * CC_MAY_CLOSE: a window or threshold of 0 holds, as in a kernel, whose TCP then sends nothing but
 * what its timers send. For files of a kernel (linux_host.h). */
#define CC_WANTS_RING 2
#define CC_WANTS_ECN 4
#define CC_WANTS_RTT 8
#define CC_WANTS_ACKS 16
#define CC_ECHOES_CE 32
#define CC_SEND_IS_PURE 64
#define CC_WANTS_TIMER 128
#define CC_WANTS_DETAILS 256
#define CC_HOST_RECOVERS 512
#define CC_WANTS_EVERY_RTT 1024
#define CC_MAY_CLOSE 2048

#define CC_NO_RTT 0xffffffffu

#endif
