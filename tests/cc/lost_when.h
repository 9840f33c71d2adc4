/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * lost_when.h - holds cc/losses.h against the host's own record of each packet: how many losses it
 * heard of (extra_acked), and how many of them were sent outside the interval (round_count). The
 * longest interval is min_rtt_us.
 */
#include "cc_more.h"
#include "losses.h"
#include "params.h"
#include "state.h"
#include "window.h"

#define lost_when_CONTRACT 5
#define lost_when_FLAGS (CC_OWNS_CWND | CC_HOST_RECOVERS | CC_WANTS_RING)
#define lost_when_PARAMS(P)

struct lost_when_params {
	u32 none;
};

struct lost_when {
	struct cc_losses losses;
	u64 first_us, last_us; /* sent, of those heard of since the last ACK */
	u32 heard;             /* since the last ACK */
	u32 all, wrong, longest_us;
};

CC_INLINE void lost_when_init(struct lost_when *s, const struct lost_when_params *p,
			      const struct cc_conn *conn, struct cc_ctl *ctl)
{
	(void)p;
	(void)ctl;
	cc_losses_init(&s->losses, conn);
}

CC_INLINE void lost_when_on_ack(struct lost_when *s, const struct lost_when_params *p,
				const struct cc_conn *conn, const struct cc_ack *ack,
				struct cc_ctl *ctl)
{
	u32 lost = cc_losses_take(&s->losses, conn, ack);

	(void)p;
	if (s->heard) {
		s->all += s->heard;
		if (lost != s->heard || s->first_us < s->losses.from_us ||
		    s->last_us > s->losses.to_us)
			s->wrong++;
		s->longest_us =
		    cc_max_u32(s->longest_us, (u32)(s->losses.to_us - s->losses.from_us));
	}
	s->heard = 0;
	cc_standard_growth(conn, ack, ctl);
}

CC_INLINE void lost_when_on_event(struct lost_when *s, const struct lost_when_params *p,
				  const struct cc_conn *conn, const struct cc_event *event,
				  struct cc_ctl *ctl)
{
	u64 sent_us = conn->now_us - conn->lost_age_us;

	(void)p;
	if (event->kind == CC_EVENT_LOST) {
		s->first_us = s->heard ? cc_min_u64(s->first_us, sent_us) : sent_us;
		s->last_us = s->heard ? cc_max_u64(s->last_us, sent_us) : sent_us;
		s->heard++;
	} else if (event->kind == CC_EVENT_SSTHRESH) {
		ctl->ssthresh = cc_max_u32(ctl->cwnd / 2, 2);
	}
}

CC_INLINE void lost_when_info(const struct lost_when *s, const struct lost_when_params *p,
			      struct cc_info *info)
{
	(void)p;
	info->extra_acked = s->all;
	info->round_count = s->wrong;
	info->min_rtt_us = s->longest_us;
}
