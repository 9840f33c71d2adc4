/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * start_search.h - SEARCH (draft-chung-ccwg-search-09 section 3): slow start ends where what was
 * delivered over a window of time falls short of what was sent over the window one RTT earlier.
 * Must not know an algorithm.
 *
 * Differences from the draft:
 * - The window stays as it is at the exit. The draft's drain towards the bytes delivered in an
 *   initial RTT is left out, as in Firefox (neqo pull request 3518) and, by default, in the
 *   authors' patch for Linux (cwnd_rollback = 0).
 * - The fraction of a bin is taken from the earlier bin. The draft takes it from the later one,
 *   which its authors call a mistake (neqo, cc/search.rs).
 * - Bins start over after more than a window without an ACK, the draft's option for missed bins.
 */
#ifndef FULLPIPE_CC_START_SEARCH_H
#define FULLPIPE_CC_START_SEARCH_H

#include "start_params.h"

/* Section 3.2. A window is 3.5 initial RTTs in W bins. */
#define SEARCH_W 10u
#define SEARCH_EXTRA_BINS 15u
#define SEARCH_WINDOW_TENTHS 35u
/* Bins that are kept: W + 1 and W + 1 + EXTRA_BINS are needed; powers of two bound the index. */
#define SEARCH_ACKED_BINS 16u
#define SEARCH_SENT_BINS 32u

struct cc_search {
	u64 bin_end_us;
	u32 bin_us; /* 0: no bins yet */
	u32 index;  /* of the newest bin */
	/* Sequence numbers at the ends of bins: their differences are bytes. */
	u32 acked[SEARCH_ACKED_BINS];
	u32 sent[SEARCH_SENT_BINS];
};

CC_INLINE void search_mark(struct cc_search *s, const struct cc_conn *conn)
{
	s->acked[s->index & (SEARCH_ACKED_BINS - 1)] = conn->snd_una;
	s->sent[s->index & (SEARCH_SENT_BINS - 1)] = conn->snd_nxt;
}

CC_INLINE void search_begin(struct cc_search *s, const struct cc_conn *conn, u32 rtt_us)
{
	u64 window_us = (u64)rtt_us * SEARCH_WINDOW_TENTHS / 10;

	s->bin_us = cc_max_u32((u32)(window_us / SEARCH_W), 1);
	s->bin_end_us = conn->now_us + s->bin_us;
	s->index = 0;
	search_mark(s, conn);
}

CC_INLINE u32 search_sent(const struct cc_search *s, u32 index)
{
	return s->sent[index & (SEARCH_SENT_BINS - 1)];
}

/* Bytes sent in the window that ends at bin `index`. */
CC_INLINE u32 search_window_sent(const struct cc_search *s, u32 index)
{
	return search_sent(s, index) - search_sent(s, index - SEARCH_W);
}

/* Nonzero: the bins were moved to now. */
CC_INLINE int search_update_bins(struct cc_search *s, const struct cc_conn *conn, u32 rtt_us)
{
	u64 passed = (conn->now_us - s->bin_end_us) / s->bin_us + 1;
	u32 acked = s->acked[s->index & (SEARCH_ACKED_BINS - 1)];
	u32 sent = search_sent(s, s->index);
	u32 i;

	if (passed > SEARCH_W) {
		search_begin(s, conn, rtt_us);
		return 0;
	}
	for (i = 1; i < SEARCH_W; i++) {
		if (i >= passed)
			break;
		s->acked[(s->index + i) & (SEARCH_ACKED_BINS - 1)] = acked;
		s->sent[(s->index + i) & (SEARCH_SENT_BINS - 1)] = sent;
	}
	s->index += (u32)passed;
	s->bin_end_us += passed * s->bin_us;
	search_mark(s, conn);
	return 1;
}

/* Takes an RTT sample in. Nonzero: slow start is over. */
CC_INLINE int search_sample(struct cc_search *s, const struct cc_start_params *p,
			    const struct cc_conn *conn, u32 rtt_us)
{
	u32 back, before, fraction;
	u64 delivered, expected;

	if (!s->bin_us) {
		search_begin(s, conn, rtt_us);
		return 0;
	}
	if (conn->now_us <= s->bin_end_us || !search_update_bins(s, conn, rtt_us))
		return 0;
	back = rtt_us / s->bin_us;
	if (back >= SEARCH_EXTRA_BINS || s->index <= back + SEARCH_W)
		return 0;
	before = s->index - back;
	delivered = conn->snd_una - s->acked[(s->index - SEARCH_W) & (SEARCH_ACKED_BINS - 1)];
	fraction = (u32)((u64)(rtt_us % s->bin_us) * CC_ONE / s->bin_us);
	expected = (u64)search_window_sent(s, before - 1) * fraction +
		   (u64)search_window_sent(s, before) * (CC_ONE - fraction);
	expected >>= CC_GAIN_SHIFT;
	return expected > delivered &&
	       (expected - delivered) * CC_ONE >= expected * p->search_threshold;
}

#endif
