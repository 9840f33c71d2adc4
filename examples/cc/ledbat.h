/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * ledbat.h - LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): background transfers that keep the queue
 * at a target and give way to others. The delay is one-way, from timestamps of 1 ms, so that a
 * queue in the ACKs' direction does not count; without them it is the RTT's excess.
 *
 * A skeleton for algorithms that follow a delay. The slowdowns, by which several flows find the
 * same base delay, are a timer's.
 */
#include "cc_more.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define ledbat_CONTRACT 5
#define ledbat_TITLE "LEDBAT++: 60 ms of queue at most, and behind others"
#define ledbat_FLAGS (CC_OWNS_CWND | CC_HOST_RECOVERS | CC_WANTS_DETAILS | CC_WANTS_TIMER)

/* clang-format off */
#define ledbat_PARAMS(P)                                                                           \
	P(target_us, 60000, 1000, 1000000, 1, "us", "not allowed", "draft section 4.2",            \
	  "queueing delay that it aims at")                                                        \
	P(slowest, 16, 1, 1000, 1, "", "not allowed", "draft section 4.2",                         \
	  "at least 1/slowest of Reno's growth")                                                   \
	P(rest, 9, 1, 1000, 1, "", "not allowed", "draft section 4.4",                             \
	  "time between slowdowns, in lengths of the last one")

#define ledbat_STATE(S)                                                                            \
	S(phase, "phase", 1, s->phase, "slow start, avoidance, or at 2 packets (probe RTT)")       \
	S(queueing_delay, "us", 1, s->delay_us, "of the last ACK")                                 \
	S(gain_divisor, "", 1, s->divisor, "its growth is Reno's divided by this")
/* clang-format on */

struct ledbat_params {
	ledbat_PARAMS(CC_PARAM_FIELD)
};

struct ledbat {
	u64 slow_since_us; /* when the slowdown began */
	u32 base;          /* least one-way delay, in ticks of two clocks that differ */
	u32 delay_us;
	u32 divisor;
	u32 round_ends; /* conn->delivered */
	u8 phase;       /* enum cc_phase */
	u8 has_base;
	u8 is_first; /* slow start has not ended yet */
	u8 unused_[5];
};

CC_INLINE u32 ledbat_delay_us(struct ledbat *s, const struct cc_conn *conn,
			      const struct cc_ack *ack)
{
	u32 one_way = conn->rcv_tsval - conn->rcv_tsecr;

	if (conn->ts_tick_us != CC_USEC_PER_MSEC)
		return ack->rtt_us > 0 && (u32)ack->rtt_us > conn->min_rtt_us
			   ? (u32)ack->rtt_us - conn->min_rtt_us
			   : 0;
	if (!s->has_base || cc_before(one_way, s->base))
		s->base = one_way;
	s->has_base = 1;
	return cc_min_u32(one_way - s->base, 60000) * CC_USEC_PER_MSEC;
}

CC_INLINE void ledbat_init(struct ledbat *s, const struct ledbat_params *p,
			   const struct cc_conn *conn, struct cc_ctl *ctl)
{
	(void)p;
	(void)conn;
	ctl->cwnd = 2;
	s->phase = CC_PHASE_SLOW_START;
	s->is_first = 1;
	s->divisor = 1;
}

/* Slow start ends: after the first, the first slowdown is 2 RTTs away (draft section 4.4). */
CC_INLINE void ledbat_avoid(struct ledbat *s, const struct ledbat_params *p,
			    const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u64 wait_us =
	    s->is_first ? 2 * (u64)conn->srtt_us : (conn->now_us - s->slow_since_us) * p->rest;

	s->phase = CC_PHASE_AVOIDANCE;
	s->is_first = 0;
	ctl->timer_us = conn->now_us + wait_us;
}

/* Above the target, once a round trip: by the window times the excess, at most by half of it. */
CC_INLINE void ledbat_shrink(const struct ledbat *s, const struct ledbat_params *p,
			     struct cc_ctl *ctl)
{
	u64 less = (u64)ctl->cwnd * (s->delay_us - p->target_us) / p->target_us;

	ctl->cwnd -= (u32)cc_min_u64(less, ctl->cwnd / 2);
	ctl->cwnd = cc_max_u32(ctl->cwnd, 2);
}

CC_INLINE void ledbat_on_ack(struct ledbat *s, const struct ledbat_params *p,
			     const struct cc_conn *conn, const struct cc_ack *ack,
			     struct cc_ctl *ctl)
{
	u32 base_us = cc_max_u32(conn->min_rtt_us, 1);

	s->delay_us = ledbat_delay_us(s, conn, ack);
	s->divisor = cc_min_u32((2 * p->target_us + base_us - 1) / base_us, p->slowest);
	if (s->phase == CC_PHASE_PROBE_RTT || !conn->is_cwnd_limited)
		return;
	if (s->phase == CC_PHASE_SLOW_START) {
		cc_additive_increase(conn, ctl, s->divisor, ack->acked_sacked);
		if (ctl->cwnd >= ctl->ssthresh ||
		    (s->is_first && s->delay_us > p->target_us / 4 * 3))
			ledbat_avoid(s, p, conn, ctl);
		return;
	}
	if (s->delay_us < p->target_us)
		cc_additive_increase(conn, ctl, ctl->cwnd * s->divisor, ack->acked_sacked);
	if (cc_before(conn->delivered, s->round_ends))
		return;
	s->round_ends = conn->delivered + conn->inflight;
	if (s->delay_us > p->target_us)
		ledbat_shrink(s, p, ctl);
}

CC_INLINE void ledbat_on_event(struct ledbat *s, const struct ledbat_params *p,
			       const struct cc_conn *conn, const struct cc_event *event,
			       struct cc_ctl *ctl)
{
	(void)p;
	if (event->kind == CC_EVENT_SSTHRESH) {
		ctl->ssthresh = cc_max_u32(ctl->cwnd / 2, 2);
	} else if (event->kind == CC_EVENT_UNDO) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, conn->prior_cwnd);
	} else if (event->kind == CC_EVENT_TIMER && s->phase == CC_PHASE_PROBE_RTT) {
		s->phase = CC_PHASE_SLOW_START;
	} else if (event->kind == CC_EVENT_TIMER) {
		s->phase = CC_PHASE_PROBE_RTT;
		s->slow_since_us = conn->now_us;
		ctl->ssthresh = cc_max_u32(ctl->cwnd, 2);
		ctl->cwnd = 2;
		ctl->timer_us = conn->now_us + 2 * (u64)conn->srtt_us;
	}
}
