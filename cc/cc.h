/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * cc.h - the contract between a congestion control and its host.
 *
 * A host carries packets: the Linux kernel (bpf/), the simulator (crates/fullpipe-sim), or a replay
 * of recorded calls (crates/fullpipe-cc). The host calls the algorithm with facts and applies its
 * decisions:
 *
 *     facts                                            decisions
 *     struct cc_conn, the connection at this call
 *     struct cc_ack,  the rate sample of an ACK    ->  struct cc_ctl: window, pacing rate, ...
 *     struct cc_event, anything else
 *
 * Before each call the host fills cc_ctl with the values in force; defaults.h decides what the
 * algorithm leaves unset. An algorithm is a pure function of its state, its parameters and these
 * facts. It must not know its host, read a clock, or keep data outside its state. It uses integers
 * only, no libc, no unbounded loop, and no signed division (eBPF has none).
 *
 * An algorithm NAME is one file that defines:
 */
/* clang-format off */
/*
 *   struct NAME          its state; the host clears it before NAME_init
 *   NAME_PARAMS(P)       its parameters (params.h), from which struct NAME_params is made
 *   NAME_STATE(S)        its own variables, which recordings and reports show (state.h)
 *   NAME_FLAGS           what it asks of the host: CC_OWNS_CWND and the other flags, or 0
 *   NAME_FLAGS_IF(F)     optional: which of them only some constants need (flags.h)
 *
 *   void NAME_init    (struct NAME *, const struct NAME_params *,
 *                      const struct cc_conn *, struct cc_ctl *);
 *   void NAME_on_ack  (struct NAME *, const struct NAME_params *,
 *                      const struct cc_conn *, const struct cc_ack *, struct cc_ctl *);
 *   void NAME_on_event(struct NAME *, const struct NAME_params *,
 *                      const struct cc_conn *, const struct cc_event *, struct cc_ctl *);
 *
 * reno.h is the shortest example. Built-in algorithms have a line in registry.h; an external one is
 * named by its path.
 */
/* clang-format on */
#ifndef FULLPIPE_CC_H
#define FULLPIPE_CC_H

#include "cc_types.h"

/* The version increases when the contract gains a fact, an event or a flag, or changes the meaning
 * of one. A file may state the version it was written for, `#define NAME_CONTRACT 2`. A host
 * refuses a later version, and an earlier one if something the file may rely on has changed since.
 *   2  events LOST, TLP_RECOVERY and ACK; is_cwnd_full, is_probe_answer; flags CC_WANTS_ACKS and
 *      CC_ECHOES_CE
 *   3  age_us
 *   4  flag CC_SEND_IS_PURE
 *   5  a timer (CC_WANTS_TIMER), more facts (CC_WANTS_DETAILS, CC_WANTS_EVERY_RTT, value of
 *      CC_EVENT_ACK), recovery by the host for an algorithm that sees every ACK
 *      (CC_HOST_RECOVERS); bytes.h, fixed.h, flags.h, losses.h and state.h */
#define CC_CONTRACT_VERSION 5

/* Gains and ratios are fixed point: CC_ONE is 1.0. Linux's 1/256 are exact in it; a draft's 0.9
 * becomes 922/1024. */
#define CC_ONE 1024u
#define CC_GAIN_SHIFT 10
#define CC_INFINITE 0x7fffffffu /* "no bound"; also Linux's TCP_INFINITE_SSTHRESH */

/* Linux's enum tcp_ca_state. */
enum cc_ca_state { CC_OPEN, CC_DISORDER, CC_CWR, CC_RECOVERY, CC_LOSS };

/* Units: times are in us where the name ends in _us, in ns where it ends in _ns; rates in bytes/s
 * (_Bps); sequence numbers (snd_una, snd_nxt, high_seq, last_end_seq) and names that end in _bytes
 * in bytes; every other volume in packets of mss_bytes. Counters wrap at 2^32. bytes.h converts for
 * a host that counts bytes. */

/* The connection at the time of the call. */
struct cc_conn {
	u64 now_us;       /* time of this call (Linux tcp_mstamp) */
	u64 now_ns;       /* the same clock in ns, not cached by the ACK (Linux tcp_clock_cache) */
	u64 edt_ns;       /* earliest departure time of the next packet (Linux tcp_wstamp_ns) */
	u64 delivered_us; /* when `delivered` last grew (Linux delivered_mstamp) */
	u64 last_send_us; /* when data was last sent (Linux lsndtime) */
	u64 pacing_rate_cap_Bps; /* limit set by application or host (Linux sk_max_pacing_rate) */
	u32 mss_bytes;
	u32 delivered;        /* packets delivered so far, wraps (Linux tp->delivered) */
	u32 delivered_ce;     /* of those, marked CE */
	u32 lost;             /* packets marked lost so far, wraps */
	u32 packets_out;      /* sent and not cumulatively acknowledged */
	u32 inflight;         /* packets in the network (tcp_packets_in_flight) */
	u32 snd_una, snd_nxt; /* sequence numbers, in bytes */
	u32 srtt_us;          /* smoothed RTT; 0: no sample yet */
	u32 app_limited;      /* nonzero: the application does not keep the pipe full */
	u32 cwnd_clamp;       /* upper bound of cwnd (Linux snd_cwnd_clamp) */
	u32 gso_max_segs;     /* largest burst the host can send at once */
	u32 seed;             /* for the algorithm's own random numbers; read at init only */
	u8 ca_state;          /* enum cc_ca_state */
	u8 prior_ca_state;    /* the state before the last change */
	u8 is_cwnd_limited;   /* the window may grow (Linux tcp_is_cwnd_limited()) */
	u8 ecn_ok;            /* ECN was negotiated */
	u8 ecn_low;           /* the path is known to mark early (Google's TCP_ECN_LOW) */
	u8 is_paced;          /* the host spaces departures at ctl->pacing_rate_Bps */
	u8 is_cwnd_full;      /* the window stopped the sender (Linux's bit is_cwnd_limited,
			       * without the allowance of slow start) */
	u8 unused_[5];
	/* With CC_WANTS_DETAILS only, else 0. `min_rtt_us` and timestamps are 0 too where the host
	 * has none. */
	u32 min_rtt_us;      /* the host's least RTT, of 5 minutes (Linux tcp_min_rtt()) */
	u32 rttvar_us;       /* mean deviation of the RTT (Linux mdev_us / 4) */
	u32 unsent_bytes;    /* written by the application, not yet sent */
	u32 unsent_packets;  /* the same, rounded up */
	u32 acks;            /* ACKs that came so far */
	u32 rcv_tsval;       /* the newest segment's timestamp (RFC 7323): the receiver's clock, in
			      * ticks that it chooses, of Linux 1 ms */
	u32 rcv_tsecr;       /* what it echoes: when a packet of ours was sent, in ts_tick_us */
	u32 ts_tick_us;      /* of our timestamps; 0: the connection has none */
	u32 sacked_out;      /* packets SACKed and not acknowledged */
	u32 lost_out;        /* packets marked lost and not acknowledged */
	u32 retrans_out;     /* retransmissions in the network */
	u32 max_packets_out; /* most packets_out of the last window (Linux max_packets_out) */
	u32 high_seq;        /* snd_nxt when ca_state last changed to another episode */
	u32 reordering;      /* packets by which the path reorders, 3 at first */
	u32 prior_cwnd;      /* cwnd before the last reduction */
	u32 lost_age_us;     /* CC_EVENT_LOST: since the packet that was lost was last sent */
};

/* One ACK's rate sample: draft-ietf-ccwg-bbr section 4.1, Linux struct rate_sample. "That packet"
 * is the most recently sent packet that this ACK acknowledges. */
struct cc_ack {
	u64 prior_us;        /* `delivered_us` when that packet was sent; 0: no sample */
	u32 prior_delivered; /* `delivered` when that packet was sent */
	u32 prior_delivered_ce;
	s32 delivered;      /* packets delivered over the sample; < 0: invalid */
	s32 delivered_ce;   /* of those, marked CE */
	s32 interval_us;    /* length of the sample; < 0: invalid */
	s32 rtt_us;         /* of that packet; < 0: none (it was retransmitted) */
	u32 losses;         /* packets newly marked lost by this ACK */
	u32 acked_sacked;   /* packets newly delivered by this ACK */
	u32 prior_inflight; /* in flight just before this ACK */
	u32 last_end_seq;   /* end of that packet */
	/* The host's own record, or the snapshot ring's (ring.h), with CC_WANTS_RING only: */
	u32 tx_inflight;    /* in flight just after that packet was sent */
	u32 lost;           /* packets lost since then */
	u8 is_app_limited;  /* that packet was sent while application-limited */
	u8 is_retrans;      /* that packet was a retransmission */
	u8 is_ack_delayed;  /* the RTT sample probably contains a delayed ACK */
	u8 is_probe_answer; /* the ACK answers a tail loss probe that retransmitted data */
	u32 age_us;         /* since that packet was last sent (Linux first_tx_mstamp) */
};

/* Everything else that happens to a connection. The host applies cc_ctl as after an ACK. */
/* clang-format off */
enum cc_event_kind {
	CC_EVENT_TX_START = 1, /* first packet after idling: nothing was in flight */
	CC_EVENT_CWND_RESTART, /* window restarted after idle (RFC 2861) */
	CC_EVENT_COMPLETE_CWR, /* a recovery or CWR episode ended */
	CC_EVENT_RTO,          /* retransmission timeout: all in flight is lost */
	CC_EVENT_ECN_CE,       /* a data packet arrived here with CE (receiver side) */
	CC_EVENT_STATE,        /* ca_state changes to `value`; conn still has the old one */
	CC_EVENT_SSTHRESH,     /* about to reduce: set ctl->ssthresh (Linux ssthresh()) */
	CC_EVENT_UNDO,         /* the reduction was spurious: set ctl->cwnd (Linux undo_cwnd()) */
	CC_EVENT_RTT,          /* an RTT sample for HyStart: `value` us, `packets` acknowledged
	                        * (Linux pkts_acked()); CC_WANTS_RTT only */
	CC_EVENT_SEND,         /* about to send: set ctl->tso_segs (Linux min_tso_segs());
	                        * CC_OWNS_CWND only */
	CC_EVENT_LOST,         /* a packet was marked lost. It was sent with `value` in flight, itself
	                        * included; `packets` were lost since then. Only hosts that keep a
	                        * record per packet send this; elsewhere conn->lost counts losses */
	CC_EVENT_TLP_RECOVERY, /* a tail loss probe repaired the loss of one packet */
	CC_EVENT_ACK,          /* an ACK was processed and its sample is not yet reported
	                        * (Linux in_ack_event()); CC_WANTS_ACKS only. `value`: CC_ACK_SLOW
	                        * and the other bits */
	CC_EVENT_TIMER,        /* ctl->timer_us has come, `value` us ago; CC_WANTS_TIMER only. The
	                        * timer is off: ctl->timer_us is 0 */
};
/* clang-format on */

struct cc_event {
	u32 kind;
	u32 value;
	u32 packets;
	union {
		u32 is_app_limited;  /* of that packet (CC_EVENT_LOST, CC_EVENT_TLP_RECOVERY) */
		u32 delivered_since; /* packets, since the newest one acknowledged was sent
				      * (CC_EVENT_RTT with CC_WANTS_EVERY_RTT; Linux
				      * ack_sample.in_flight) */
	};
};

/* Bits of CC_EVENT_ACK (Linux enum tcp_ca_ack_event_flags). */
#define CC_ACK_SLOW 1u   /* header prediction failed: SACKs, marks, another window */
#define CC_ACK_WINDOW 2u /* it may change the window */
#define CC_ACK_ECE 4u    /* it echoes marks */

/* What an algorithm sets. defaults.h has the values that hold where it sets nothing. */
struct cc_ctl {
	u64 pacing_rate_Bps; /* with CC_OWNS_CWND; 0: the rate follows the window */
	u32 cwnd;
	u32 ssthresh;
	u32 tso_segs;      /* least packets per burst when pacing allows (CC_EVENT_SEND only) */
	u32 sndbuf_factor; /* send buffer in windows (Linux sndbuf_expand) */
	u32 cwnd_cnt;      /* Reno's and CUBIC's fraction of a packet (Linux snd_cwnd_cnt) */
	u16 tso_most;   /* most packets per burst; 0: the host's limit. Stock kernels ignore it */
	u8 is_scalable; /* reduces in proportion to marks: may send ECT(1) (RFC 9331 section 4.3) */
	u8 enters_cwr;  /* the host reduces as after an ECN mark, once (Linux tcp_enter_cwr()); the
			 * simulator, and files of the kernel in its module */
	u64 timer_us;   /* with CC_WANTS_TIMER: when CC_EVENT_TIMER is wanted, on the clock of
			 * conn->now_us; 0: not at all. One that has passed is due 1 us from now */
};

/* NAME_FLAGS. They are macros, so that a host can leave out unused code at compile time.
 *
 * CC_OWNS_CWND: the algorithm owns cwnd and pacing in every state. on_ack comes with every ACK
 * (Linux cong_control) and CC_EVENT_SEND before every transmission. Without this flag the host runs
 * recovery (PRR) and calls on_ack only when the window may grow (Linux cong_avoid); then only
 * ack->acked_sacked is meaningful.
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
 * when it is over. */
#define CC_OWNS_CWND 1
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

#define CC_NO_RTT 0xffffffffu

/* A variable of unit "phase" (state.h). */
enum cc_phase {
	CC_PHASE_NONE,
	CC_PHASE_STARTUP,
	CC_PHASE_DRAIN,
	CC_PHASE_PROBE_RTT,
	CC_PHASE_UP,
	CC_PHASE_DOWN,
	CC_PHASE_CRUISE,
	CC_PHASE_REFILL,
	CC_PHASE_SLOW_START,
	CC_PHASE_AVOIDANCE,
};

/* Files up to version 4 have no NAME_STATE. They fill this instead; unset ones are 0 or
 * CC_INFINITE: void NAME_info(const struct NAME *, const struct NAME_params *, struct cc_info *);
 */
struct cc_info {
	u64 bw_Bps; /* the bandwidth from which the model paces */
	u64 max_bw_Bps;
	u64 bw_shortterm_Bps;   /* Linux bw_lo; 0: unset */
	u32 min_rtt_us;         /* the algorithm's own; 0: none */
	u32 phase;              /* enum cc_phase */
	u32 pacing_gain;        /* of CC_ONE */
	u32 cwnd_gain;          /* of CC_ONE */
	u32 inflight_longterm;  /* Linux inflight_hi; CC_INFINITE: unset */
	u32 inflight_shortterm; /* Linux inflight_lo; CC_INFINITE: unset */
	u32 extra_acked;        /* packets */
	u32 round_count;
};

#endif
