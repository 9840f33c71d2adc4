/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * cc.h - the contract between a congestion control and its host.
 *
 * A host is whatever carries packets: the Linux kernel (bpf/), the simulator
 * (crates/fullpipe-sim) or a replay (crates/fullpipe-cc). An algorithm is a
 * pure function of its state, its parameters and what the host tells it here;
 * it must never know which host that is, read a clock, or keep anything
 * outside its state. Integers only, no libc, no unbounded loop, no division of
 * signed values (eBPF has none).
 *
 * Every call has the same shape: facts in (struct cc_conn, and struct cc_ack or
 * struct cc_event), decisions out (struct cc_ctl, which the host fills with the
 * values in force before the call and applies afterwards).
 */
#ifndef FULLPIPE_CC_H
#define FULLPIPE_CC_H

#include "cc_types.h"

/* Raised by one when the contract gains a fact, an event or a flag, or changes the meaning of one.
 * A file may say which one it was written for, `#define NAME_CONTRACT 2`: a later one is refused,
 * and an earlier one where something that it may rely on has changed since (what was only added
 * changes nothing for who ignores it). 2 added the events LOST, TLP_RECOVERY and ACK, is_cwnd_full,
 * is_probe_answer, and the flags CC_WANTS_ACKS and CC_ECHOES_CE; 3 added age_us; 4 the flag
 * CC_SEND_IS_PURE. */
#define CC_CONTRACT_VERSION 4

/* Gains and ratios are fixed point: CC_ONE is 1.0. Linux writes them in 1/256,
 * which is exact here; a draft's 0.9 becomes 922/1024. */
#define CC_ONE 1024u
#define CC_GAIN_SHIFT 10
#define CC_INFINITE 0x7fffffffu /* "no bound"; also Linux's TCP_INFINITE_SSTHRESH */

/* Linux's enum tcp_ca_state, which is what a Linux-like host has. */
enum cc_ca_state { CC_OPEN, CC_DISORDER, CC_CWR, CC_RECOVERY, CC_LOSS };

/* The connection as it stands at this call. Volumes are in packets of mss_bytes. */
struct cc_conn {
	u64 now_us;       /* time of this call (Linux tcp_mstamp) */
	u64 now_ns;       /* the same clock in ns, not cached by the ACK (Linux tcp_clock_cache) */
	u64 edt_ns;       /* earliest departure time of the next packet (Linux tcp_wstamp_ns) */
	u64 delivered_us; /* when `delivered` last grew (Linux delivered_mstamp) */
	u64 last_send_us; /* when data was last sent (Linux lsndtime) */
	u64 pacing_rate_cap_Bps; /* application's or host's ceiling (Linux sk_max_pacing_rate) */
	u32 mss_bytes;
	u32 delivered;        /* packets delivered so far, wraps (Linux tp->delivered) */
	u32 delivered_ce;     /* of those, marked CE */
	u32 lost;             /* packets marked lost so far, wraps */
	u32 packets_out;      /* sent and not cumulatively acknowledged */
	u32 inflight;         /* packets in the network (tcp_packets_in_flight) */
	u32 snd_una, snd_nxt; /* sequence numbers, in bytes */
	u32 srtt_us;          /* smoothed RTT; 0: no sample yet */
	u32 app_limited;      /* nonzero: the pipe is not kept full by the application */
	u32 cwnd_clamp;       /* ceiling on cwnd (Linux snd_cwnd_clamp) */
	u32 gso_max_segs;     /* largest burst the host can send at once */
	u32 seed;             /* of the algorithm's own random numbers; read at init only */
	u8 ca_state;          /* enum cc_ca_state */
	u8 prior_ca_state;    /* the one before the last change */
	u8 is_cwnd_limited;   /* may the window grow (Linux tcp_is_cwnd_limited())? */
	u8 ecn_ok;            /* ECN was negotiated */
	u8 ecn_low;           /* the path is known to mark early (Google's TCP_ECN_LOW) */
	u8 is_paced;          /* the host spaces departures at ctl->pacing_rate_Bps */
	u8 is_cwnd_full;      /* the window stopped the sender (Linux's bit is_cwnd_limited, which
			       * slow start does not widen) */
	u8 unused_[5];
};

/* One ACK's rate sample: draft-ietf-ccwg-bbr section 4.1, Linux struct rate_sample. */
struct cc_ack {
	u64 prior_us; /* send-time `delivered_us` of the newest packet acknowledged; 0: no sample */
	u32 prior_delivered; /* `delivered` when that packet was sent */
	u32 prior_delivered_ce;
	s32 delivered;      /* packets delivered over the sample; < 0: invalid */
	s32 delivered_ce;   /* of those, marked CE */
	s32 interval_us;    /* over which they were delivered; < 0: invalid */
	s32 rtt_us;         /* of that packet; < 0: none (retransmitted) */
	u32 losses;         /* packets newly marked lost by this ACK */
	u32 acked_sacked;   /* packets newly delivered by this ACK */
	u32 prior_inflight; /* in flight just before this ACK */
	u32 last_end_seq;   /* end of the newest packet acknowledged */
	u32 tx_inflight; /* in flight just after that packet was sent \ the host's own, or from the
			  */
	u32 lost;        /* packets lost between its sending and now  / snapshot ring (ring.h) */
	u8 is_app_limited;  /* that packet was sent while application-limited */
	u8 is_retrans;      /* ... was a retransmission */
	u8 is_ack_delayed;  /* the RTT sample probably contains a delayed ACK */
	u8 is_probe_answer; /* of a tail loss probe that sent data again, and perhaps of the data */
	u32 age_us;         /* since that packet was sent last (Linux first_tx_mstamp) */
};

/* Everything else that happens to a connection. What the host does with ctl
 * afterwards is the same as for an ACK. */
enum cc_event_kind {
	CC_EVENT_TX_START = 1, /* first packet after idling: nothing was in flight */
	CC_EVENT_CWND_RESTART, /* window restarted after idle (RFC 2861) */
	CC_EVENT_COMPLETE_CWR, /* a recovery or CWR episode ended */
	CC_EVENT_RTO,          /* retransmission timeout: all in flight is lost */
	CC_EVENT_ECN_CE,       /* a data packet arrived here with CE (receiver side) */
	CC_EVENT_STATE,        /* ca_state changes to `value`; conn still has the old one */
	CC_EVENT_SSTHRESH,     /* about to reduce: set ctl->ssthresh (Linux ssthresh()) */
	CC_EVENT_UNDO,         /* the reduction was spurious: set ctl->cwnd (Linux undo_cwnd()) */
	CC_EVENT_RTT, /* an RTT sample for HyStart: `value` us, `packets` acked (Linux pkts_acked())
		       */
	CC_EVENT_SEND, /* about to send: set ctl->tso_segs (Linux min_tso_segs()); CC_OWNS_CWND only
			*/
	/* A packet was marked lost that was sent with `value` in flight, itself included; `packets`
	 * were lost since then. From hosts that know; conn->lost tells the others' losses. */
	CC_EVENT_LOST,
	CC_EVENT_TLP_RECOVERY, /* a tail loss probe repaired the loss of one packet */
	CC_EVENT_ACK,          /* an ACK was taken in and not answered yet (Linux in_ack_event());
				* CC_WANTS_ACKS only */
};

struct cc_event {
	u32 kind;
	u32 value;
	u32 packets;
	u32 is_app_limited; /* that packet was (CC_EVENT_LOST, CC_EVENT_TLP_RECOVERY) */
};

/* What an algorithm sets. What holds where it sets nothing is in defaults.h, for every host. */
struct cc_ctl {
	u64 pacing_rate_Bps; /* with CC_OWNS_CWND; 0: it follows the window */
	u32 cwnd;
	u32 ssthresh;
	u32 tso_segs;      /* least packets per burst when pacing allows (CC_EVENT_SEND only) */
	u32 sndbuf_factor; /* send buffer in windows (Linux sndbuf_expand) */
	u32 cwnd_cnt;      /* Reno's and CUBIC's fraction of a packet (Linux snd_cwnd_cnt) */
	u16 tso_most;   /* most packets per burst; 0: as the host has it. Stock kernels have it */
	u8 is_scalable; /* gives way by the part that is marked: its packets may be ECT(1) (RFC 9331
			 * section 4.3) */
	u8 unused_;
};

/* How an algorithm wants to be driven: NAME_FLAGS. Macros, so that a host can leave out at compile
 * time what is not wanted.
 *
 * CC_OWNS_CWND: the algorithm owns cwnd and pacing in every state: on_ack comes with every ACK
 * (Linux cong_control), CC_EVENT_SEND before sending. Without it the host runs recovery (PRR) and
 * calls on_ack only when the window may grow (Linux cong_avoid); only ack->acked_sacked is then
 * meaningful.
 * CC_WANTS_RING: fill cc_ack.tx_inflight and .lost: a host that does not keep them for each packet,
 * and so sends no CC_EVENT_LOST, keeps a struct cc_ring. Needs CC_OWNS_CWND.
 * CC_WANTS_ECN: negotiate ECN even where the system does not.
 * CC_WANTS_RTT: send CC_EVENT_RTT.
 * CC_WANTS_ACKS: send CC_EVENT_ACK, for those who do not own their window.
 * CC_ECHOES_CE: the receiving end says of each packet whether it was marked (RFC 8257 section 3.2)
 * instead of repeating one mark until it is answered. Both ends run the algorithm.
 * CC_SEND_IS_PURE: CC_EVENT_SEND sets ctl->tso_segs and changes nothing else, so that a host need
 * not ask where nothing will be sent. Kernels always do. */
#define CC_OWNS_CWND 1
#define CC_WANTS_RING 2
#define CC_WANTS_ECN 4
#define CC_WANTS_RTT 8
#define CC_WANTS_ACKS 16
#define CC_ECHOES_CE 32
#define CC_SEND_IS_PURE 64

/* What every algorithm lets others see, for recordings. "Unset" is CC_INFINITE or 0. */
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

struct cc_info {
	u64 bw_Bps; /* the bandwidth the model paces from */
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

/*
 * An algorithm is one file that defines, for its NAME:
 *   struct NAME      its state, zeroed by the host before init
 *   NAME_PARAMS(P)   its parameters (params.h); struct NAME_params is made from it
 *   NAME_FLAGS       CC_OWNS_CWND and the others, or 0
 *   NAME_init    (struct NAME *, const struct NAME_params *, const struct cc_conn *, struct cc_ctl
 * *) NAME_on_ack  (... , const struct cc_ack *, struct cc_ctl *) NAME_on_event(... , const struct
 * cc_event *, struct cc_ctl *) NAME_info    (const struct NAME *, const struct NAME_params *,
 * struct cc_info *) Those of this folder have a line in registry.h; a file from outside is named by
 * its path.
 */

#endif
