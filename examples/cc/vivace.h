/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * vivace.h - after PCC Vivace (Dong et al., NSDI 2018): it tries two rates, a little above and
 * below its own, for an interval each, and moves along the utility's gradient. Utility of a rate x
 * in Mbit/s: x^0.9 - 900 x d(RTT)/dt - 11.35 x loss (section 4.1).
 *
 * A skeleton for algorithms that measure what a rate is worth. Intervals are a timer's; an ACK
 * belongs to the interval in which its packet was sent, a loss to the one that cc/losses.h names.
 * Unlike Vivace it waits for both results before it moves.
 */
#include "cc_more.h"
#include "fixed.h"
#include "losses.h"
#include "params.h"
#include "state.h"

#define vivace_CONTRACT 5
#define vivace_TITLE "Vivace-like: a rate by the gradient of its utility"
#define vivace_FLAGS (CC_OWNS_CWND | CC_WANTS_DETAILS | CC_WANTS_TIMER)

#define VIVACE_MBIT 125000u      /* bytes/s */
#define VIVACE_MOST (1ull << 37) /* bytes/s */
#define VIVACE_SLOTS 4u          /* a power of two */
#define VIVACE_NONE (-0x7fffffffffffll)

/* clang-format off */
#define vivace_PARAMS(P)                                                                           \
	P(epsilon, 51, 1, 512, CC_ONE, "of the rate", "not allowed", "paper, section 5 (0.05)",    \
	  "what a trial adds to the rate or takes off")                                            \
	P(delay_weight, 900, 0, 100000, 1, "", "delay does not count", "paper, section 4.1",       \
	  "weight of the RTT's gradient")                                                          \
	P(loss_weight, 11622, 0, 1000000, CC_ONE, "", "loss does not count",                       \
	  "paper, section 4.1 (11.35)", "weight of the loss rate")                                 \
	P(tolerance, 10, 0, 1024, CC_ONE, "us/us", "every change counts", "mine",                  \
	  "a smaller gradient of the RTT counts as none")                                          \
	P(step_most, 51, 1, 512, CC_ONE, "of the rate", "not allowed", "paper, section 4.2 (0.05)", \
	  "largest first step")

#define vivace_STATE(S)                                                                            \
	S(phase, "phase", 1, s->phase, "startup or up (it follows the gradient)")                  \
	S(rate, "bytes/s", 1, s->rate_Bps, "between trials")                                       \
	S(utility, "", 65536, s->utility == VIVACE_NONE ? CC_NONE : s->utility, "of the last interval") \
	S(gradient, "", 65536, s->gradient, "of the utility, for each Mbit/s")                     \
	S(loss_rate, "", 65536, s->loss, "of the last interval")                                   \
	S(rtt_gradient, "", 65536, s->slope, "of the last interval")
/* clang-format on */

struct vivace_params {
	vivace_PARAMS(CC_PARAM_FIELD)
};

/* An interval, and what came of its packets. */
struct vivace_trial {
	u64 from_us, to_us; /* packets sent; to_us is 0 while it runs */
	u64 rate_Bps;
	u64 first_us, last_us; /* ACKs */
	u32 acked, lost;
	u32 first_rtt_us, last_rtt_us;
};

struct vivace {
	struct vivace_trial trial[VIVACE_SLOTS];
	struct cc_losses losses;
	u64 rate_Bps;
	s64 utility, above; /* of the last interval; of the trial above the rate */
	s64 gradient, slope;
	u32 loss;
	u32 begun;  /* intervals so far: the running one is the last of them */
	u32 judged; /* of those */
	u32 wanted; /* the interval whose result decides next */
	u32 streak; /* steps in one direction */
	u8 phase;
	u8 went_up;
	u8 unused_[2];
};

CC_INLINE void vivace_begin(struct vivace *s, const struct cc_conn *conn, struct cc_ctl *ctl,
			    u64 rate_Bps)
{
	struct vivace_trial *t = &s->trial[s->begun & (VIVACE_SLOTS - 1)];
	u64 length_us = (u64)10 * conn->mss_bytes * CC_USEC_PER_SEC / cc_max_u64(rate_Bps, 1);

	*t = (struct vivace_trial){.from_us = conn->now_us, .rate_Bps = rate_Bps};
	s->begun++;
	ctl->pacing_rate_Bps = rate_Bps;
	ctl->cwnd = 10 + (u32)cc_min_u64(3 * rate_Bps * cc_max_u32(conn->srtt_us, 1000) /
					     CC_USEC_PER_SEC / cc_max_u32(conn->mss_bytes, 1),
					 CC_INFINITE / 2);
	ctl->timer_us =
	    conn->now_us + cc_min_u64(cc_max_u64(length_us, conn->srtt_us), CC_USEC_PER_SEC);
}

CC_INLINE void vivace_init(struct vivace *s, const struct vivace_params *p,
			   const struct cc_conn *conn, struct cc_ctl *ctl)
{
	(void)p;
	cc_losses_init(&s->losses, conn);
	s->rate_Bps =
	    (u64)ctl->cwnd * conn->mss_bytes * CC_USEC_PER_SEC / cc_max_u32(conn->srtt_us, 1000);
	s->rate_Bps = cc_min_u64(s->rate_Bps, VIVACE_MOST);
	s->utility = s->above = VIVACE_NONE;
	s->phase = CC_PHASE_STARTUP;
	vivace_begin(s, conn, ctl, s->rate_Bps);
}

/* x^0.9 in Q16. Shifted by 2^20, so that a rate below 1 Mbit/s has an exponent too. */
CC_INLINE s64 vivace_power(u64 rate_Bps)
{
	u64 log = (u64)cc_log2_q16(cc_max_u64(rate_Bps, 1)) * 9 / 10;
	u64 mbit = (u64)cc_log2_q16(VIVACE_MBIT) * 9 / 10;

	return (s64)(cc_exp2_q16((u32)(log + (20u << 16) - mbit)) >> 20);
}

CC_INLINE s64 vivace_within(s64 value, s64 bound)
{
	return value > bound ? bound : value < -bound ? -bound : value;
}

CC_INLINE void vivace_judge(struct vivace *s, const struct vivace_params *p,
			    const struct vivace_trial *t)
{
	s64 x = (s64)(t->rate_Bps / VIVACE_MBIT * CC_Q16_ONE +
		      t->rate_Bps % VIVACE_MBIT * CC_Q16_ONE / VIVACE_MBIT);
	s64 change_us = (s64)t->last_rtt_us - (s64)t->first_rtt_us;
	s64 span_us = (s64)(t->last_us - t->first_us), weighed;

	s->slope = vivace_within(cc_div_s64(change_us * CC_Q16_ONE, span_us), 1ll << 30);
	if (s->slope < (s64)p->tolerance * 64 && -s->slope < (s64)p->tolerance * 64)
		s->slope = 0;
	s->loss = (u32)((u64)t->lost * CC_Q16_ONE / cc_max_u32(t->acked + t->lost, 1));
	weighed =
	    s->slope * (s64)p->delay_weight + (s64)((u64)s->loss * p->loss_weight >> CC_GAIN_SHIFT);
	weighed = vivace_within(weighed, 1ll << 28);
	s->utility = vivace_power(t->rate_Bps) - ((x >> 4) * weighed >> 12);
}

/* Both trials are judged: a step along the gradient, larger while it keeps its direction. */
CC_INLINE void vivace_step(struct vivace *s, const struct vivace_params *p)
{
	u64 span = 2 * s->rate_Bps * p->epsilon / VIVACE_MBIT, most, step; /* Mbit/s of CC_ONE */
	u8 goes_up = s->above > s->utility;

	s->gradient = cc_div_s64((s->above - s->utility) * (s64)CC_ONE, (s64)cc_max_u64(span, 1));
	s->streak = goes_up == s->went_up ? cc_min_u32(s->streak + 1, 8) : 1;
	s->went_up = goes_up;
	step = (u64)(goes_up ? s->gradient : -s->gradient);
	step = cc_min_u64(step, 1ull << 32) * s->streak * VIVACE_MBIT >> 16;
	most = s->rate_Bps * p->step_most * s->streak >> CC_GAIN_SHIFT;
	step = cc_max_u64(cc_min_u64(step, most), 1);
	s->rate_Bps =
	    goes_up ? s->rate_Bps + step : s->rate_Bps - cc_min_u64(step, s->rate_Bps / 2);
	s->rate_Bps = cc_min_u64(cc_max_u64(s->rate_Bps, VIVACE_MBIT / 10), VIVACE_MOST);
}

/* An interval is over, and everything that was sent in it was heard of. */
CC_INLINE void vivace_take(struct vivace *s, const struct vivace_params *p)
{
	struct vivace_trial *t = &s->trial[s->judged & (VIVACE_SLOTS - 1)];
	s64 before = s->utility;
	u32 number = s->judged++;

	if (number < s->wanted || !t->acked)
		return;
	vivace_judge(s, p, t);
	if (s->phase == CC_PHASE_STARTUP) {
		if (s->utility > before) {
			s->rate_Bps = cc_min_u64(s->rate_Bps * 2, VIVACE_MOST);
		} else {
			s->rate_Bps /= 2;
			s->phase = CC_PHASE_UP;
		}
		s->wanted = s->begun;
	} else if (number == s->wanted) {
		s->above = s->utility;
	} else if (number == s->wanted + 1) {
		vivace_step(s, p);
		s->wanted = s->begun;
	}
}

CC_INLINE void vivace_on_ack(struct vivace *s, const struct vivace_params *p,
			     const struct cc_conn *conn, const struct cc_ack *ack,
			     struct cc_ctl *ctl)
{
	u64 sent_us = conn->now_us - ack->age_us, lost_us;
	u32 lost = cc_losses_take(&s->losses, conn, ack), i;
	struct vivace_trial *t;

	(void)ctl;
	lost_us = s->losses.to_us - 1;
	for (i = 0; i < VIVACE_SLOTS; i++) {
		t = &s->trial[i];
		if (lost_us >= t->from_us && (!t->to_us || lost_us < t->to_us))
			t->lost += lost;
		if (sent_us < t->from_us || (t->to_us && sent_us >= t->to_us) || !ack->acked_sacked)
			continue;
		t->acked += ack->acked_sacked;
		if (ack->rtt_us <= 0)
			continue;
		if (!t->first_us) {
			t->first_us = conn->now_us;
			t->first_rtt_us = (u32)ack->rtt_us;
		}
		t->last_us = conn->now_us;
		t->last_rtt_us = (u32)ack->rtt_us;
	}
	CC_STEP();
	/* Half an interval later losses are known too. */
	t = &s->trial[s->judged & (VIVACE_SLOTS - 1)];
	if (s->judged + 1 < s->begun && sent_us >= t->to_us + (t->to_us - t->from_us) / 2)
		vivace_take(s, p);
}

CC_INLINE void vivace_on_event(struct vivace *s, const struct vivace_params *p,
			       const struct cc_conn *conn, const struct cc_event *event,
			       struct cc_ctl *ctl)
{
	u64 rate_Bps = s->rate_Bps, trial_Bps = rate_Bps * p->epsilon >> CC_GAIN_SHIFT;

	if (event->kind == CC_EVENT_RTO) {
		s->rate_Bps = cc_max_u64(s->rate_Bps / 2, VIVACE_MBIT / 10);
	} else if (event->kind == CC_EVENT_TIMER) {
		s->trial[(s->begun - 1) & (VIVACE_SLOTS - 1)].to_us = conn->now_us;
		/* Slots that no ACK judged are lost, as after a silence. */
		if (s->begun - s->judged >= VIVACE_SLOTS - 1)
			s->judged++;
		if (s->judged > s->wanted + 1)
			s->wanted = s->begun;
		if (s->phase == CC_PHASE_UP && s->begun == s->wanted)
			rate_Bps += trial_Bps;
		else if (s->phase == CC_PHASE_UP && s->begun == s->wanted + 1)
			rate_Bps -= trial_Bps;
		vivace_begin(s, conn, ctl, rate_Bps);
	}
}
