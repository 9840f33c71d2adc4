/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * glue.h - the Linux kernel as a host of cc/cc.h: the calls of a tcp_congestion_ops, which read the
 * connection, call the algorithm and apply what it decided. It must never know which algorithm it
 * carries, nor in which form: algorithm.bpf.c (eBPF) or the file of a package (module/) includes
 * the algorithm, defines FP_ALGORITHM, its name, and FP_HOST, the header with what differs between
 * the forms (host.h here, module/host.c there), and includes this one. The algorithm's flags decide
 * what is compiled: cong_control or cong_avoid, the ring, RTT samples. What holds where it decides
 * nothing is cc/defaults.h's.
 *
 * What a stock kernel (6.1 and later) forces to differ from Google's own kernel:
 * - State lives beside the socket: icsk_ca_priv has 104 bytes, BBRv3 needs more.
 * - No tx_in_flight and no lost count per packet: the contract's snapshot ring (cc/ring.h) stands
 *   in, fed by min_tso_segs, which TCP calls before it sends, and by what precedes a timeout's
 *   retransmission. The module keeps records of its own (module/sent.c).
 * - No call for each packet marked lost: losses are judged on the next ACK. The module finds them
 * at the next call of any kind.
 * - None for a tail loss probe's recovery: it is known by its states, CWR and back within one ACK
 *   and before the congestion control sees that (tcp_process_tlp_ack()).
 * - tp->app_limited cannot be written before 6.11: algorithms remember what they sent while they
 *   kept the pipe empty (cc/bbr1.h, cc/bbr3_model.h).
 * - No TCP_ECN_LOW: a path is never known to mark early, so BBRv3's ECN response stays off.
 * - No timer: CC_EVENT_TIMER waits for the next ACK or sending (cc/cc_more.h, CC_WANTS_TIMER).
 * - TSO bursts can be raised (min_tso_segs) but not lowered, and sk_pacing_shift is the host's.
 */
#ifndef FULLPIPE_BPF_GLUE_H
#define FULLPIPE_BPF_GLUE_H

#include "../cc/bytes.h"
#include "../cc/defaults.h"
#include "../cc/flags.h"
#include "../cc/ring.h"

#define FP_PASTE2(a, b) a##b
#define FP_PASTE(a, b) FP_PASTE2(a, b)
#define FP_CC(what) FP_PASTE(FP_ALGORITHM, what)
#define FP_FLAGS FP_CC(_FLAGS)
#define FP_OWNS_CWND ((FP_FLAGS)&CC_OWNS_CWND)
#define FP_WANTS_RING ((FP_FLAGS)&CC_WANTS_RING)
#define FP_WANTS_RTT ((FP_FLAGS)&CC_WANTS_RTT)
#define FP_WANTS_ACKS ((FP_FLAGS)&CC_WANTS_ACKS)
#define FP_ECHOES_CE ((FP_FLAGS)&CC_ECHOES_CE)
#define FP_WANTS_TIMER ((FP_FLAGS)&CC_WANTS_TIMER)
#define FP_WANTS_DETAILS ((FP_FLAGS)&CC_WANTS_DETAILS)

_Static_assert(!FP_WANTS_RING || FP_OWNS_CWND, "CC_WANTS_RING needs CC_OWNS_CWND");
_Static_assert(!((FP_FLAGS)&CC_HOST_RECOVERS) || FP_OWNS_CWND,
	       "CC_HOST_RECOVERS needs CC_OWNS_CWND");

#define FP_DEFINE_FLAGS_OF(name) CC_DEFINE_FLAGS_OF(name)
FP_DEFINE_FLAGS_OF(FP_ALGORITHM)

/* One call of the algorithm, whole: what the trace logs and a replay repeats. It lives with the
 * socket, not on the stack: 512 bytes are too few, and what the verifier does not know of memory it
 * need not follow. */
enum fp_call_kind { FP_CALL_INIT, FP_CALL_ACK, FP_CALL_EVENT, FP_CALL_RELEASE };

struct fp_call {
	u32 socket;   /* number of this socket, from 1 */
	u32 sequence; /* of this call among the socket's, from 0 */
	u32 kind;     /* enum fp_call_kind */
	u32 unused_;
	struct cc_conn conn;
	struct cc_ack ack;     /* FP_CALL_ACK */
	struct cc_event event; /* FP_CALL_EVENT */
	struct cc_ctl before;
	struct cc_ctl after;
};

struct fp_socket {
	struct FP_ALGORITHM state; /* first: user space reads it */
	struct fp_call call;
#if FP_WANTS_RING
	struct cc_ring ring;
#endif
	u64 cwr_us; /* when CWR began, if no ACK was seen since; 0: none */
	struct cc_kept kept;
	u8 prior_ca_state;
	u8 is_live; /* init was called */
#if FP_ECHOES_CE
	u8 came_marked;    /* the last data packet was */
	u32 prior_rcv_nxt; /* after it */
#endif
	FP_HOST_FIELDS
};

#include FP_HOST

/* tcp_is_cwnd_limited() */
static __always_inline u8 fp_is_cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* What was negotiated, TCP_ECN_OK or TCP_ECN_MODE_ACCECN; 0: nothing. */
static __always_inline u8 fp_ecn_modes(const struct tcp_sock *tp)
{
	u8 modes = TCP_ECN_OK;

	if (fp_has_accecn(tp))
		modes |= TCP_ECN_MODE_ACCECN;
	return tp->ecn_flags & modes;
}

#if FP_WANTS_DETAILS
/* Of the connection's own timestamps, in us. */
static __always_inline u32 fp_timestamp_tick_us(const struct tcp_sock *tp)
{
	if (!BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok))
		return 0;
	return fp_has_us_timestamps(tp) ? 1 : CC_USEC_PER_MSEC;
}

static __always_inline void fp_read_details(const struct tcp_sock *tp, struct cc_conn *conn)
{
	u32 min_rtt_us = tp->rtt_min.s[0].v;

	conn->min_rtt_us = min_rtt_us == ~0u ? 0 : min_rtt_us;
	conn->rttvar_us = tp->mdev_us >> 2;
	conn->unsent_bytes = tp->write_seq - tp->snd_nxt;
	conn->unsent_packets = cc_packets_up(conn->unsent_bytes, conn->mss_bytes);
	conn->acks = tp->segs_in - tp->data_segs_in;
	conn->rcv_tsval = tp->rx_opt.rcv_tsval;
	conn->rcv_tsecr = tp->rx_opt.rcv_tsecr;
	conn->ts_tick_us = fp_timestamp_tick_us(tp);
	conn->sacked_out = tp->sacked_out;
	conn->lost_out = tp->lost_out;
	conn->retrans_out = tp->retrans_out;
	conn->max_packets_out = tp->max_packets_out;
	conn->high_seq = tp->high_seq;
	conn->reordering = tp->reordering;
	conn->prior_cwnd = tp->prior_cwnd;
}
#endif

static __always_inline void fp_read_conn(struct sock *sk, struct fp_socket *s)
{
	const struct inet_connection_sock *icsk = (const void *)sk;
	const struct tcp_sock *tp = (const void *)sk;
	struct cc_conn *conn = &s->call.conn;
	u64 idle_us = (u64)(fp_jiffies() - tp->lsndtime) * fp_tick_us();

	conn->now_us = tp->tcp_mstamp;
	conn->now_ns = tp->tcp_clock_cache;
	conn->edt_ns = tp->tcp_wstamp_ns;
	conn->delivered_us = tp->delivered_mstamp;
	conn->last_send_us = conn->now_us - cc_min_u64(conn->now_us, idle_us);
	conn->pacing_rate_cap_Bps = sk->sk_max_pacing_rate;
	conn->mss_bytes = tp->mss_cache;
	conn->delivered = tp->delivered;
	conn->delivered_ce = tp->delivered_ce;
	conn->lost = tp->lost;
	conn->packets_out = tp->packets_out;
	conn->inflight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	conn->snd_una = tp->snd_una;
	conn->snd_nxt = tp->snd_nxt;
	conn->srtt_us = tp->srtt_us >> 3;
	conn->app_limited = tp->app_limited;
	conn->cwnd_clamp = tp->snd_cwnd_clamp;
	conn->gso_max_segs = sk->sk_gso_max_segs;
	conn->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	conn->prior_ca_state = s->prior_ca_state;
	conn->is_cwnd_limited = fp_is_cwnd_limited(tp);
	conn->is_cwnd_full = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	conn->ecn_ok = !!fp_ecn_modes(tp);
	conn->is_paced = sk->sk_pacing_status != SK_PACING_NONE;
#if FP_WANTS_DETAILS
	fp_read_details(tp, conn);
#endif
}

static __always_inline void fp_read_ctl(struct sock *sk, struct fp_socket *s, u32 event_kind)
{
	const struct tcp_sock *tp = (const void *)sk;
	struct cc_ctl *ctl = &s->call.after;

	ctl->pacing_rate_Bps = sk->sk_pacing_rate;
	/* tcp_cwnd_reduction() can leave 0, with a warning in the kernel's log (seen on 6.18). */
	ctl->cwnd = cc_max_u32(tp->snd_cwnd, 1);
	ctl->ssthresh = tp->snd_ssthresh;
	ctl->cwnd_cnt = tp->snd_cwnd_cnt;
	cc_open_ctl(&s->kept, FP_FLAGS, event_kind, ctl);
}

/* The facts of a call that is about to be made; `event_kind` is 0 where it is no event. */
static __always_inline void fp_begin(struct sock *sk, struct fp_socket *s, u32 kind, u32 event_kind)
{
	fp_read_conn(sk, s);
	fp_read_ctl(sk, s, event_kind);
	s->call.kind = kind;
	if (fp_is_traced(s))
		s->call.before = s->call.after;
	CC_STEP();
}

static __always_inline void fp_log(struct fp_socket *s)
{
	if (!fp_is_traced(s))
		return;
	if (fp_put_call(s))
		__sync_fetch_and_add(&fp_counts(s)->trace_lost, 1);
	s->call.sequence++;
}

/* Its decisions. The kernel itself applies what ssthresh and undo_cwnd return. */
static __always_inline void fp_end(struct sock *sk, struct fp_socket *s)
{
	struct tcp_sock *tp = (void *)sk;
	struct cc_ctl *ctl = &s->call.after;

	CC_STEP();
	cc_close_ctl(&s->kept, FP_FLAGS, &s->call.conn, sk->sk_pacing_rate, ctl);
	CC_STEP();
#if FP_OWNS_CWND
	sk->sk_pacing_rate = ctl->pacing_rate_Bps;
#endif
	tp->snd_cwnd = ctl->cwnd;
	tp->snd_cwnd_cnt = ctl->cwnd_cnt;
	tp->snd_ssthresh = ctl->ssthresh;
	fp_log(s);
}

/* What follows fp_begin(): the algorithm's call of an event, and what is due after it. */
static __always_inline void fp_call_event(struct sock *sk, struct fp_socket *s,
					  const struct cc_event *event)
{
	if (fp_is_traced(s))
		s->call.event = *event;
	FP_CC(_on_event)(&s->state, fp_parameters(s), &s->call.conn, event, &s->call.after);
	cc_settle_event(&s->kept, FP_FLAGS, &s->call.conn, event, &s->call.after);
	fp_end(sk, s);
}

/* The same of an ACK, with the facts in s->call.ack. */
static __always_inline void fp_call_ack(struct sock *sk, struct fp_socket *s)
{
	u32 cwnd = s->call.after.cwnd;

	FP_CC(_on_ack)(&s->state, fp_parameters(s), &s->call.conn, &s->call.ack, &s->call.after);
	cc_settle_ack(&s->kept, FP_FLAGS, &s->call.conn, &s->call.ack, cwnd, &s->call.after);
	fp_end(sk, s);
}

/* Anything but an ACK; false: this socket is not ours to control. */
static __always_inline _Bool fp_tell_of(struct sock *sk, struct fp_socket *s, u32 kind, u32 value,
					u32 packets, u32 delivered_since)
{
	/* On the stack, so that a constant kind leaves only its branch of the algorithm. */
	struct cc_event event = {
	    .kind = kind, .value = value, .packets = packets, .delivered_since = delivered_since};

	if (!s || !s->is_live)
		return 0;
	fp_report_losses(sk, s);
	fp_begin(sk, s, FP_CALL_EVENT, kind);
	if (kind == CC_EVENT_TLP_RECOVERY)
		event.is_app_limited = s->call.conn.app_limited != 0;
#if FP_WANTS_RING
	if (cc_ring_is_fed_by(kind, value))
		cc_ring_push(&s->ring, &s->call.conn);
	CC_STEP();
#endif
	fp_call_event(sk, s, &event);
	return 1;
}

static __always_inline _Bool fp_tell(struct sock *sk, struct fp_socket *s, u32 kind, u32 value,
				     u32 packets)
{
	return fp_tell_of(sk, s, kind, value, packets, 0);
}

#if FP_WANTS_TIMER
/* The timer's event, if it is due. */
static __always_inline void fp_wake(struct sock *sk, struct fp_socket *s)
{
	u64 now_us = ((struct tcp_sock *)sk)->tcp_mstamp;

	if (!s || !cc_is_timer_due(&s->kept, now_us))
		return;
	fp_tell(sk, s, CC_EVENT_TIMER, (u32)(now_us - s->kept.timer_us), 0);
	CC_STEP();
}
#endif

FP_ENTRY
void fp_init(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s = fp_make(sk);
	u32 number;

	if (!s || s->is_live)
		return;
	number = __sync_fetch_and_add(&fp_counts(s)->opened, 1) + 1;
	__sync_fetch_and_add(&fp_counts(s)->live, 1);
	s->is_live = 1;
	s->call.socket = number;
#if FP_ECHOES_CE
	s->prior_rcv_nxt = ((struct tcp_sock *)sk)->rcv_nxt;
#endif
#if FP_OWNS_CWND
	/* Without fq the kernel then paces by itself. */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
#endif
	/* Multiplied by the golden ratio: seeds of neighbours must differ in every bit. */
	s->call.conn.seed =
	    fp_counts(s)->seed ? fp_counts(s)->seed + number * 0x9e3779b9u : fp_random();
	fp_begin(sk, s, FP_CALL_INIT, 0);
	FP_CC(_init)(&s->state, fp_parameters(s), &s->call.conn, &s->call.after);
	fp_end(sk, s);
}

FP_ENTRY
void fp_release(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s = fp_find(sk);

	if (!s || !s->is_live)
		return;
	__sync_fetch_and_add(&fp_counts(s)->live, -1);
	s->is_live = 0;
	s->call.kind = FP_CALL_RELEASE;
	fp_log(s);
	/* A socket that returns to this algorithm starts with fresh state. */
	fp_drop(sk);
}

FP_ENTRY
u32 fp_ssthresh(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s = fp_find(sk);
	u32 ssthresh = ((struct tcp_sock *)sk)->snd_ssthresh;

	fp_keep(ssthresh);
	if (fp_tell(sk, s, CC_EVENT_SSTHRESH, 0, 0))
		ssthresh = s->call.after.ssthresh;
	return ssthresh;
}

FP_ENTRY
u32 fp_undo_cwnd(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s = fp_find(sk);
	u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd;

	fp_keep(cwnd);
	if (fp_tell(sk, s, CC_EVENT_UNDO, 0, 0))
		cwnd = s->call.after.cwnd;
	return cwnd;
}

FP_ENTRY
void fp_set_state(u64 *context)
{
	struct sock *sk = (void *)context[0];
	u8 state = (u8)context[1];
	struct fp_socket *s = fp_find(sk);

	if (!fp_tell(sk, s, CC_EVENT_STATE, state, 0))
		return;
	s->prior_ca_state = s->call.conn.ca_state;
#if FP_OWNS_CWND
	if (state == CC_CWR) {
		s->cwr_us = s->call.conn.now_us;
	} else if (s->prior_ca_state == CC_CWR && s->cwr_us == s->call.conn.now_us &&
		   state < CC_CWR) {
		s->cwr_us = 0;
		fp_tell(sk, s, CC_EVENT_TLP_RECOVERY, 0, 0);
	}
#endif
}

#if FP_ECHOES_CE
static __always_inline void fp_echo(struct tcp_sock *tp, u8 is_marked)
{
	if (is_marked)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= (u8)~TCP_ECN_DEMAND_CWR;
}

/* The receiving end of classic ECN (RFC 8257 section 3.2, tcp_dctcp.h); with accurate ECN TCP
 * itself counts marks. Every ACK is of packets that were all marked or all not. What waits for a
 * delayed ACK is acknowledged when that changes, and the packet that changed it at once. */
static __always_inline void fp_take_mark(struct sock *sk, struct fp_socket *s, u8 is_marked)
{
	struct inet_connection_sock *icsk = (void *)sk;
	struct tcp_sock *tp = (void *)sk;

	if (s->came_marked != is_marked) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			fp_echo(tp, s->came_marked);
			fp_send_ack(sk, s->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	s->prior_rcv_nxt = tp->rcv_nxt;
	s->came_marked = is_marked;
	fp_echo(tp, is_marked);
}
#endif

FP_ENTRY
void fp_cwnd_event(u64 *context)
{
	struct sock *sk = (void *)context[0];
	u32 event = (u32)context[1], kind;
	struct fp_socket *s;

#if FP_ECHOES_CE
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE) {
		s = fp_find(sk);
		if (s && s->is_live && !(fp_ecn_modes((void *)sk) & TCP_ECN_MODE_ACCECN))
			fp_take_mark(sk, s, event == CA_EVENT_ECN_IS_CE);
		return;
	}
#endif
	if (event == CA_EVENT_TX_START)
		kind = CC_EVENT_TX_START;
	else if (event == CA_EVENT_CWND_RESTART)
		kind = CC_EVENT_CWND_RESTART;
	else if (event == CA_EVENT_COMPLETE_CWR)
		kind = CC_EVENT_COMPLETE_CWR;
	else if (event == CA_EVENT_LOSS)
		kind = CC_EVENT_RTO;
	else if (event == CA_EVENT_ECN_IS_CE)
		kind = CC_EVENT_ECN_CE;
	else
		return;
	s = fp_find(sk);
	fp_tell(sk, s, kind, 0, 0);
}

FP_ENTRY
void fp_cwnd_event_tx_start(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s = fp_find(sk);

	fp_tell(sk, s, CC_EVENT_TX_START, 0, 0);
}

#if FP_WANTS_ACKS
FP_ENTRY
void fp_in_ack_event(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s;

	if (!fp_wants(CC_WANTS_ACKS))
		return;
	s = fp_find(sk);
	fp_tell(sk, s, CC_EVENT_ACK, (u32)context[1], 0);
}
#endif

#if FP_WANTS_RTT
FP_ENTRY
void fp_pkts_acked(u64 *context)
{
	struct sock *sk = (void *)context[0];
	const struct ack_sample *sample = (void *)context[1];
	s32 rtt_us = sample->rtt_us;
	struct fp_socket *s;
	u32 since = 0;

	if (!fp_wants(CC_WANTS_RTT) || (rtt_us < 0 && !((FP_FLAGS)&CC_WANTS_EVERY_RTT)))
		return;
#if (FP_FLAGS) & CC_WANTS_EVERY_RTT
	since = sample->in_flight / ((struct tcp_sock *)sk)->mss_cache;
#endif
	s = fp_find(sk);
	fp_tell_of(sk, s, CC_EVENT_RTT, (u32)rtt_us, sample->pkts_acked, since);
}
#endif

#if FP_OWNS_CWND
/* tcp_process_tlp_ack() keeps the episode only where it cannot yet say what was repaired. */
static __always_inline u8 fp_is_probe_answer(const struct tcp_sock *tp)
{
	return tp->tlp_high_seq && tp->tlp_high_seq == tp->snd_una &&
	       BPF_CORE_READ_BITFIELD(tp, tlp_retrans);
}

static __always_inline void fp_read_ack(const struct tcp_sock *tp, const struct rate_sample *rs,
					struct cc_ack *ack)
{
	ack->prior_us = rs->prior_mstamp;
	ack->prior_delivered = rs->prior_delivered;
	ack->prior_delivered_ce = rs->prior_delivered_ce;
	ack->delivered = rs->delivered;
	ack->delivered_ce = rs->delivered_ce;
	ack->interval_us = (s32)rs->interval_us;
	ack->rtt_us = (s32)rs->rtt_us;
	ack->losses = (u32)rs->losses;
	ack->acked_sacked = rs->acked_sacked;
	ack->prior_inflight = rs->prior_in_flight;
	ack->last_end_seq = rs->last_end_seq;
	ack->is_app_limited = rs->is_app_limited;
	ack->is_retrans = rs->is_retrans;
	ack->is_ack_delayed = rs->is_ack_delayed;
	ack->is_probe_answer = fp_is_probe_answer(tp);
	/* tcp_rate_skb_delivered() keeps when the newest packet delivered was sent. */
	ack->age_us = (u32)(tp->tcp_mstamp - tp->first_tx_mstamp);
}

FP_ENTRY
void fp_cong_control(u64 *context)
{
	struct sock *sk = (void *)context[0];
	const struct rate_sample *rs;
	struct fp_socket *s;

	rs = fp_rate_sample(context);
	s = fp_find(sk);
	if (!s || !s->is_live)
		return;
	fp_report_losses(sk, s);
#if FP_WANTS_TIMER
	fp_wake(sk, s);
#endif
	fp_begin(sk, s, FP_CALL_ACK, 0);
	s->cwr_us = 0;
	fp_read_ack((const void *)sk, rs, &s->call.ack);
#if FP_WANTS_RING
	CC_STEP();
	fp_sample(sk, s);
#endif
	CC_STEP();
	fp_call_ack(sk, s);
}

FP_ENTRY
u32 fp_min_tso_segs(u64 *context)
{
	struct sock *sk = (void *)context[0];
	struct fp_socket *s = fp_find(sk);

#if FP_WANTS_TIMER
	fp_wake(sk, s);
#endif
	if (!fp_tell(sk, s, CC_EVENT_SEND, 0, 0))
		return CC_DEFAULT_TSO_SEGS;
	return s->call.after.tso_segs;
}

FP_ENTRY
u32 fp_sndbuf_expand(u64 *context)
{
	struct fp_socket *s = fp_find((void *)context[0]);

	return s && s->is_live ? s->kept.sndbuf_factor : CC_DEFAULT_SNDBUF_FACTOR;
}
#else
FP_ENTRY
void fp_cong_avoid(u64 *context)
{
	struct sock *sk = (void *)context[0];
	u32 acked = (u32)context[2];
	struct fp_socket *s = fp_find(sk);

	if (!s || !s->is_live)
		return;
#if FP_WANTS_TIMER
	fp_wake(sk, s);
#endif
	fp_begin(sk, s, FP_CALL_ACK, 0);
	s->call.ack.acked_sacked = acked;
	fp_call_ack(sk, s);
}
#endif

#endif
