/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * start_rapid.h - Rapid Start (draft-kazuho-ccwg-rapid-start-02): the window triples a round trip
 * while no queue builds, and the first recovery brings it back to what the path delivered. Must
 * not know an algorithm.
 *
 * The draft lets the window fall at once and then with every ACK. Here the host's recovery (PRR)
 * leads to ssthresh, which follows the draft's formula; both end at the same window. The draft's
 * first jump to twice the initial window, where the host paces, is left out. CUBIC's W_max stays
 * the window at the loss, as after any other: -02 says nothing of it, and its editor's branch
 * cubic-wmax (28 August 2026), twice cwnd / beta, is in no revision yet.
 */
#ifndef FULLPIPE_CC_START_RAPID_H
#define FULLPIPE_CC_START_RAPID_H

#include "start_params.h"

#define RAPID_GROWTH 2u            /* packets for each acknowledged */
#define RAPID_TOLERANCE_US 4000u   /* + 4 ms */
#define RAPID_TOLERANCE_DIVISOR 10 /* x 1.10 */
/* Section 3.3.1, K = 2/3: silence = loss = beta + K (1 - beta), ack = K (1 - beta). */
#define RAPID_K_NUMERATOR 2u
#define RAPID_K_DENOMINATOR 3u
#define RAPID_MOST_GROWTH 3u /* of a round trip: what the window may exceed the path by */

struct cc_rapid {
	u64 half_start_us; /* of the newer half of the window of rtt_floor */
	u32 min_rtt_us;    /* 0: none */
	u32 half_rtt_us[2];
	u32 is_recovering;
	u32 cwnd;      /* when the recovery began */
	u32 flight;    /* likewise */
	u32 delivered; /* likewise; in slow start up to date */
	u32 lost;      /* likewise, before this ACK */
};

CC_INLINE void rapid_init(struct cc_rapid *s)
{
	s->half_rtt_us[0] = s->half_rtt_us[1] = CC_START_NO_RTT;
}

/* rtt_floor: the least RTT of the last min_rtt, in two halves of which the older one goes. */
CC_INLINE void rapid_sample(struct cc_rapid *s, const struct cc_conn *conn, u32 rtt_us)
{
	u64 age_us = conn->now_us - s->half_start_us;

	if (!s->min_rtt_us || rtt_us < s->min_rtt_us)
		s->min_rtt_us = rtt_us;
	if (age_us >= s->min_rtt_us / 2) {
		s->half_rtt_us[0] = age_us < s->min_rtt_us ? s->half_rtt_us[1] : CC_START_NO_RTT;
		s->half_rtt_us[1] = CC_START_NO_RTT;
		s->half_start_us = conn->now_us;
	}
	s->half_rtt_us[1] = cc_min_u32(s->half_rtt_us[1], rtt_us);
	s->lost = conn->lost;
}

CC_INLINE u32 rapid_growth(const struct cc_rapid *s, u32 acked)
{
	u32 floor_us = cc_min_u32(s->half_rtt_us[0], s->half_rtt_us[1]);
	u32 rise_us = cc_min_u32(RAPID_TOLERANCE_US, s->min_rtt_us / RAPID_TOLERANCE_DIVISOR);

	return floor_us <= s->min_rtt_us + rise_us ? RAPID_GROWTH * acked : acked;
}

/* The window that the draft has after these deliveries and losses of the recovery. */
CC_INLINE u32 rapid_window(const struct cc_rapid *s, const struct cc_conn *conn, u32 beta,
			   u32 min_ssthresh)
{
	u32 ack = (CC_ONE - beta) * RAPID_K_NUMERATOR / RAPID_K_DENOMINATOR;
	u32 silence = beta + ack;
	/* Each packet of the flight counts once: retransmissions are of the same recovery. */
	u32 lost = cc_min_u32(conn->lost - s->lost, s->flight);
	u32 delivered = cc_min_u32(conn->delivered - s->delivered, s->flight - lost);
	u64 cut = (u64)ack * delivered + (u64)silence * lost;
	/* Section 3.3: not below cwnd * beta / 3. */
	u32 most = silence - beta / RAPID_MOST_GROWTH;

	cut = cc_min_u64(cut, (u64)s->cwnd * most);
	return cc_max_u32((u32)(((u64)s->cwnd * silence - cut) >> CC_GAIN_SHIFT), min_ssthresh);
}

CC_INLINE void rapid_reduce(struct cc_rapid *s, const struct cc_conn *conn, u32 beta,
			    u32 min_ssthresh, struct cc_ctl *ctl)
{
	s->is_recovering = 1;
	s->cwnd = ctl->cwnd;
	s->flight = conn->packets_out;
	s->delivered = conn->delivered;
	ctl->ssthresh = rapid_window(s, conn, beta, min_ssthresh);
}

#endif
