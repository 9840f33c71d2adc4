/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * everything.h - an algorithm that reads every fact, hears every event and calls every helper of
 * the contract, and lets each count in its window: so that verifiers judge all of it, and a replay
 * compares all of it with the kernel's.
 */
#include "bytes.h"
#include "cc_more.h"
#include "fixed.h"
#include "losses.h"
#include "minmax.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define everything_CONTRACT 5
#define everything_FLAGS                                                                           \
	(CC_OWNS_CWND | CC_HOST_RECOVERS | CC_WANTS_RING | CC_WANTS_RTT | CC_WANTS_TIMER |         \
	 CC_WANTS_DETAILS)

#define everything_PARAMS(P)                                                                       \
	P(period_us, 7000, 1, 1000000, 1, "us", "not allowed", "none", "time between timers")

struct everything_params {
	everything_PARAMS(CC_PARAM_FIELD)
};

struct everything {
	struct cc_minmax most, least;
	struct cc_losses losses;
	struct cc_byte_count count;
	u64 average;
	u64 sum; /* of all that was heard */
	u32 timers;
	u32 unused_;
};

CC_INLINE void everything_hear(struct everything *s, u64 value) { s->sum = s->sum * 31 + value; }

CC_INLINE void everything_hear_details(struct everything *s, const struct cc_conn *conn)
{
	everything_hear(s, conn->min_rtt_us + conn->rttvar_us);
	everything_hear(s, conn->unsent_bytes);
	everything_hear(s, conn->unsent_packets);
	everything_hear(s, conn->acks);
	everything_hear(s, conn->rcv_tsval);
	everything_hear(s, conn->rcv_tsecr);
	everything_hear(s, conn->ts_tick_us);
	everything_hear(s, conn->sacked_out + conn->lost_out);
	everything_hear(s, conn->retrans_out + conn->max_packets_out);
	everything_hear(s, conn->high_seq);
	everything_hear(s, conn->reordering + conn->prior_cwnd);
	everything_hear(s, conn->lost_age_us);
}

/* What was heard moves the window and the rate a little. */
CC_INLINE void everything_decide(const struct everything *s, const struct cc_conn *conn,
				 struct cc_ctl *ctl)
{
	u64 window = (u64)ctl->cwnd * conn->mss_bytes * CC_USEC_PER_SEC;

	ctl->pacing_rate_Bps =
	    window * 2 / cc_max_u32(conn->srtt_us, 1) + (s->sum & 1023) * conn->mss_bytes / 64;
}

CC_INLINE void everything_init(struct everything *s, const struct everything_params *p,
			       const struct cc_conn *conn, struct cc_ctl *ctl)
{
	cc_losses_init(&s->losses, conn);
	ctl->timer_us = conn->now_us + p->period_us;
	everything_decide(s, conn, ctl);
}

CC_INLINE void everything_calculate(struct everything *s, const struct cc_ack *ack)
{
	u64 value = s->sum;

	everything_hear(s, cc_log2(value));
	everything_hear(s, cc_log2_q16(value));
	CC_STEP();
	everything_hear(s, cc_exp2_q16((u32)value));
	everything_hear(s, cc_sqrt(value));
	CC_STEP();
	everything_hear(s, cc_cbrt(value));
	everything_hear(s, (u64)cc_div_s64((s64)value, ack->rtt_us));
	everything_hear(s, (u64)cc_div_s32((s32)value, ack->interval_us));
	s->average = cc_ewma(s->average, ack->age_us, 3);
	everything_hear(s, s->average);
}

CC_INLINE void everything_on_ack(struct everything *s, const struct everything_params *p,
				 const struct cc_conn *conn, const struct cc_ack *ack,
				 struct cc_ctl *ctl)
{
	u32 lost = cc_losses_take(&s->losses, conn, ack);

	(void)p;
	everything_hear(s, lost + s->losses.from_us + s->losses.to_us);
	everything_hear_details(s, conn);
	CC_STEP();
	everything_calculate(s, ack);
	CC_STEP();
	cc_max_update(&s->most, 100, ack->age_us, ack->acked_sacked);
	CC_STEP();
	cc_min_update(&s->least, 100, ack->age_us, ack->acked_sacked);
	CC_STEP();
	everything_hear(s, cc_max_of(&s->most) - cc_min_of(&s->least));
	everything_hear(s, cc_count_bytes(&s->count, cc_bytes_of(ack->acked_sacked, 700), 1000));
	everything_hear(s, cc_packets_up(conn->snd_una, 999));
	cc_standard_growth(conn, ack, ctl);
	everything_decide(s, conn, ctl);
}

CC_INLINE void everything_on_event(struct everything *s, const struct everything_params *p,
				   const struct cc_conn *conn, const struct cc_event *event,
				   struct cc_ctl *ctl)
{
	everything_hear(s, event->kind);
	everything_hear(s, event->value);
	everything_hear(s, event->packets);
	switch (event->kind) {
	case CC_EVENT_SSTHRESH:
		ctl->ssthresh = cc_max_u32(ctl->cwnd * 3 / 4, 2);
		break;
	case CC_EVENT_UNDO:
		ctl->cwnd = cc_max_u32(ctl->cwnd, ctl->ssthresh * 4 / 3);
		break;
	case CC_EVENT_TIMER:
		s->timers++;
		ctl->timer_us = conn->now_us + p->period_us + (s->sum & 1023);
		break;
	default:
		break;
	}
}

CC_INLINE void everything_info(const struct everything *s, const struct everything_params *p,
			       struct cc_info *info)
{
	(void)p;
	info->round_count = s->timers;
	info->min_rtt_us = (u32)s->average;
}
