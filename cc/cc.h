/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * cc.h - the contract between a congestion control and its host (the Linux kernel, the simulator,
 * a replay), as far as a first algorithm needs it; the rest is cc_more.h. The host calls the
 * algorithm with facts, struct cc_conn and cc_ack or cc_event, and applies what it decides, struct
 * cc_ctl, which has the values in force before each call (defaults.h: what holds by default).
 *
 * An algorithm is a pure function of its state, its parameters and these facts. It must not know
 * its host, read a clock, or keep data outside its state. It uses integers only, no libc, no
 * unbounded loop, and no signed division. NAME is one file (reno.h is the shortest) that defines:
 *
 *   struct NAME     its state; the host clears it before NAME_init
 *   NAME_PARAMS(P)  its parameters (params.h), from which struct NAME_params is made
 *   NAME_STATE(S)   its own variables, which recordings and reports show (state.h)
 *   NAME_FLAGS      what it asks of the host: CC_OWNS_CWND, others of cc_more.h, or 0
 *
 *   void NAME_init(struct NAME *, const struct NAME_params *, const struct cc_conn *,
 *                  struct cc_ctl *);
 *   void NAME_on_ack(struct NAME *, const struct NAME_params *, const struct cc_conn *,
 *                    const struct cc_ack *, struct cc_ctl *);
 *   void NAME_on_event(struct NAME *, const struct NAME_params *, const struct cc_conn *,
 *                      const struct cc_event *, struct cc_ctl *);
 */
#ifndef FULLPIPE_CC_H
#define FULLPIPE_CC_H

#include "cc_types.h"

#define CC_CONTRACT_VERSION 5 /* a file may state its own, NAME_CONTRACT (cc_more.h) */
#define CC_GAIN_SHIFT 10
#define CC_ONE 1024u            /* 1.0 of gains and ratios; Linux's 1/256 are exact in it */
#define CC_INFINITE 0x7fffffffu /* "no bound"; also Linux's TCP_INFINITE_SSTHRESH */

enum cc_ca_state { CC_OPEN, CC_DISORDER, CC_CWR, CC_RECOVERY, CC_LOSS }; /* as in Linux */

/* Times are in us or ns, rates in bytes/s, as the name ends; sequence numbers and names that end in
 * _bytes in bytes; every other volume in packets of mss_bytes. Counters wrap at 2^32. */

/* The connection at the time of the call. */
struct cc_conn {
	u64 now_us, now_ns;      /* time of this call; now_ns is not cached by the ACK */
	u64 edt_ns;              /* earliest departure time of the next packet */
	u64 delivered_us;        /* when `delivered` last grew */
	u64 last_send_us;        /* when data was last sent */
	u64 pacing_rate_cap_Bps; /* limit set by application or host */
	u32 mss_bytes;
	u32 delivered, delivered_ce; /* packets delivered so far; of those, marked CE */
	u32 lost;                    /* packets marked lost so far */
	u32 packets_out;             /* sent and not cumulatively acknowledged */
	u32 inflight;                /* packets in the network */
	u32 snd_una, snd_nxt;        /* sequence numbers */
	u32 srtt_us;                 /* smoothed RTT; 0: no sample yet */
	u32 app_limited;             /* nonzero: the application does not keep the pipe full */
	u32 cwnd_clamp;              /* upper bound of cwnd */
	u32 gso_max_segs;            /* largest burst the host can send at once */
	u32 seed;                    /* for the algorithm's own random numbers; read at init only */
	u8 ca_state, prior_ca_state; /* enum cc_ca_state: now, and before the last change */
	u8 is_cwnd_limited;          /* the window may grow */
	u8 ecn_ok, ecn_low;          /* ECN was negotiated; the path is known to mark early */
	u8 is_paced;                 /* the host spaces departures at ctl->pacing_rate_Bps */
	u8 is_cwnd_full; /* the window stopped the sender, without slow start's allowance */
	u8 unused_[5];
	/* With CC_WANTS_DETAILS, else 0 (cc_more.h). */
	u32 min_rtt_us, rttvar_us, unsent_bytes, unsent_packets, acks, rcv_tsval, rcv_tsecr;
	u32 ts_tick_us, sacked_out, lost_out, retrans_out, max_packets_out, high_seq, reordering;
	u32 prior_cwnd, lost_age_us;
};

/* One ACK's rate sample. "That packet" is the most recently sent one that the ACK acknowledges. */
struct cc_ack {
	u64 prior_us; /* `delivered_us` when that packet was sent; 0: no sample */
	u32 prior_delivered, prior_delivered_ce; /* `delivered` and `delivered_ce` then */
	s32 delivered,
	    delivered_ce;      /* packets over the sample, < 0: invalid; of those, marked CE */
	s32 interval_us;       /* length of the sample; < 0: invalid */
	s32 rtt_us;            /* of that packet; < 0: none (it was retransmitted) */
	u32 losses;            /* packets newly marked lost by this ACK */
	u32 acked_sacked;      /* packets newly delivered by this ACK */
	u32 prior_inflight;    /* in flight just before this ACK */
	u32 last_end_seq;      /* end of that packet */
	u32 tx_inflight, lost; /* CC_WANTS_RING: in flight just after its sending, lost since */
	u8 is_app_limited;     /* that packet was sent while application-limited */
	u8 is_retrans;         /* that packet was a retransmission */
	u8 is_ack_delayed;     /* the RTT sample probably contains a delayed ACK */
	u8 is_probe_answer;    /* the ACK answers a tail loss probe that retransmitted data */
	u32 age_us;            /* since that packet was last sent */
};

/* Anything else that happens; cc_more.h has more events, and what `packets` and the union are. */
enum cc_event_kind {
	CC_EVENT_RTO = 4,      /* retransmission timeout: all in flight is lost */
	CC_EVENT_STATE = 6,    /* ca_state changes to `value`; conn still has the old one */
	CC_EVENT_SSTHRESH = 7, /* about to reduce: set ctl->ssthresh */
	CC_EVENT_UNDO = 8,     /* the reduction was spurious: set ctl->cwnd */
};

struct cc_event {
	u32 kind, value, packets;
	union {
		u32 is_app_limited, delivered_since;
	};
};

/* What an algorithm sets. */
struct cc_ctl {
	u64 pacing_rate_Bps; /* with CC_OWNS_CWND; 0: the rate follows the window */
	u32 cwnd, ssthresh;
	u32 tso_segs;               /* least packets per burst when pacing allows (CC_EVENT_SEND) */
	u32 sndbuf_factor;          /* send buffer in windows */
	u32 cwnd_cnt;               /* Reno's and CUBIC's fraction of a packet */
	u16 tso_most;               /* most packets per burst; 0: the host's limit */
	u8 is_scalable, enters_cwr; /* cc_more.h, as timer_us */
	u64 timer_us;
};

/* NAME_FLAGS: cwnd and pacing are the algorithm's, and on_ack comes with every ACK. Without it the
 * host runs recovery (PRR), and on_ack comes with acked_sacked alone when the window may grow. */
#define CC_OWNS_CWND 1

#endif
