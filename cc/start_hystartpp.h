/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * start_hystartpp.h - HyStart++ (RFC 9406 section 4.2): a rise of a round's least RTT over that of
 * the round before leads to a conservative slow start, which ends slow start after some rounds
 * or gives it back if the RTT falls again. Must not know an algorithm.
 *
 * The RTT sample of the ACK that ends a round counts for that round, whose packet it measures.
 */
#ifndef FULLPIPE_CC_START_HYSTARTPP_H
#define FULLPIPE_CC_START_HYSTARTPP_H

#include "start_params.h"

/* RFC 9406 section 4.3. */
#define HYSTARTPP_MIN_RTT_THRESH_US 4000u
#define HYSTARTPP_MAX_RTT_THRESH_US 16000u
#define HYSTARTPP_MIN_RTT_DIVISOR 8u
#define HYSTARTPP_N_RTT_SAMPLE 8u
#define HYSTARTPP_L 8u /* packets that count of one ACK, where the host does not pace */

struct cc_hystartpp {
	u32 last_rtt_us;     /* lastRoundMinRTT */
	u32 round_rtt_us;    /* currentRoundMinRTT */
	u32 baseline_rtt_us; /* cssBaselineMinRtt */
	u32 samples;         /* rttSampleCount */
	u32 credit;          /* acknowledged in CSS and not yet a packet of growth */
	u32 css_rounds;      /* that have ended */
	u32 is_css;
};

CC_INLINE void hystartpp_init(struct cc_hystartpp *s)
{
	s->last_rtt_us = s->round_rtt_us = CC_START_NO_RTT;
}

/* Takes a sample in; `ends_round`: this ACK ended the round. Nonzero: slow start is over. */
CC_INLINE int hystartpp_sample(struct cc_hystartpp *s, const struct cc_start_params *p, u32 rtt_us,
			       int ends_round)
{
	s->round_rtt_us = cc_min_u32(s->round_rtt_us, rtt_us);
	s->samples++;
	if (s->samples >= HYSTARTPP_N_RTT_SAMPLE) {
		u32 rise = cc_max_u32(HYSTARTPP_MIN_RTT_THRESH_US,
				      cc_min_u32(s->last_rtt_us / HYSTARTPP_MIN_RTT_DIVISOR,
						 HYSTARTPP_MAX_RTT_THRESH_US));

		if (s->is_css) {
			if (s->round_rtt_us < s->baseline_rtt_us)
				s->is_css = 0;
		} else if (s->last_rtt_us != CC_START_NO_RTT &&
			   s->round_rtt_us >= s->last_rtt_us + rise) {
			s->baseline_rtt_us = s->round_rtt_us;
			s->is_css = 1;
			s->css_rounds = 0;
			s->credit = 0;
		}
	}
	if (!ends_round)
		return 0;
	s->last_rtt_us = s->round_rtt_us;
	s->round_rtt_us = CC_START_NO_RTT;
	s->samples = 0;
	/* The round in which CSS begins counts. */
	return s->is_css && ++s->css_rounds >= p->css_rounds;
}

CC_INLINE u32 hystartpp_growth(struct cc_hystartpp *s, const struct cc_start_params *p,
			       const struct cc_conn *conn, u32 acked)
{
	u32 grow;

	if (!conn->is_paced)
		acked = cc_min_u32(acked, HYSTARTPP_L);
	if (!s->is_css)
		return acked;
	s->credit += acked;
	grow = s->credit / p->css_growth_divisor;
	s->credit -= grow * p->css_growth_divisor;
	return grow;
}

#endif
