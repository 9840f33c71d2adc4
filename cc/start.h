/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * start.h - a flow's first slow start, chosen by the parameter `start`: as Linux does it, or one of
 * HyStart++ (start_hystartpp.h), SEARCH (start_search.h), Careful Resume (start_resume.h) and Rapid
 * Start (start_rapid.h). A window-based algorithm keeps a struct cc_start, puts the rows of
 * CC_START_PARAMS at the end of its parameters, those of CC_START_STATE at the end of its
 * variables, and calls the functions below; CC_START_FLAGS_IF says when it needs RTT samples. Must
 * not know it.
 *
 * All of them are for the first slow start only, as their texts say or assume; later ones end at
 * the ssthresh that was found.
 */
#ifndef FULLPIPE_CC_START_H
#define FULLPIPE_CC_START_H

#include "cc_more.h"
#include "start_hystartpp.h"
#include "start_params.h"
#include "start_rapid.h"
#include "start_resume.h"
#include "start_search.h"
#include "state.h"
#include "window.h"

/* Rows for an algorithm's NAME_STATE. */
#define CC_START_STATE(S)                                                                          \
	S(start_rounds, "", 1, p->start == CC_START_LINUX ? CC_NONE : (s64)s->start.rounds,        \
	  "rounds of the first slow start that have ended; none with start linux")                 \
	S(start_exit_cwnd, "packets", 1, cc_unless(s->start.exit_cwnd, 0),                         \
	  "window at which the first slow start ended")

struct cc_start {
	u32 round_end; /* the round ends when this is acknowledged */
	u32 rounds;    /* that have ended, until slow start did */
	u32 exit_cwnd; /* the window at which slow start ended; 0: it has not */
	u32 is_begun;  /* round_end is set */
	union {
		struct cc_hystartpp hystartpp;
		struct cc_search search;
		struct cc_resume resume;
		struct cc_rapid rapid;
	};
};

CC_INLINE void cc_start_init(struct cc_start *s, const struct cc_start_params *p,
			     const struct cc_ctl *ctl)
{
	if (p->start == CC_START_HYSTARTPP)
		hystartpp_init(&s->hystartpp);
	else if (p->start == CC_START_RESUME)
		resume_init(&s->resume, ctl);
	else if (p->start == CC_START_RAPID)
		rapid_init(&s->rapid);
}

/* Nonzero: the algorithm may end slow start in its own way. */
CC_INLINE int cc_start_is_usual(const struct cc_start *s, const struct cc_start_params *p)
{
	return p->start == CC_START_LINUX ||
	       (p->start == CC_START_RESUME && s->resume.phase != RESUME_UNVALIDATED);
}

/* Where slow start may have ended: remembers where it did. */
CC_INLINE void cc_start_watch(struct cc_start *s, const struct cc_ctl *ctl)
{
	if (!s->exit_cwnd && ctl->ssthresh <= ctl->cwnd)
		s->exit_cwnd = ctl->cwnd;
}

/* CC_EVENT_RTT. */
CC_INLINE void cc_start_on_rtt(struct cc_start *s, const struct cc_start_params *p,
			       const struct cc_conn *conn, const struct cc_event *event, u32 beta,
			       u32 min_ssthresh, struct cc_ctl *ctl)
{
	u32 rtt_us = cc_max_u32(event->value, 1);
	int ends_round, is_over = 0;

	if (p->start == CC_START_LINUX)
		return;
	if (p->start == CC_START_RAPID && s->rapid.is_recovering)
		ctl->ssthresh = rapid_window(&s->rapid, conn, beta, min_ssthresh);
	if (p->start == CC_START_RESUME)
		resume_sample(&s->resume, p, conn, rtt_us, event->packets, ctl);
	cc_start_watch(s, ctl);
	if (s->exit_cwnd)
		return;
	/* The first round is the initial window's. */
	if (!s->is_begun) {
		s->is_begun = 1;
		s->round_end = conn->snd_nxt;
	}
	ends_round = !cc_before(conn->snd_una, s->round_end);
	if (ends_round) {
		s->rounds++;
		s->round_end = conn->snd_nxt;
	}
	if (p->start == CC_START_HYSTARTPP)
		is_over = hystartpp_sample(&s->hystartpp, p, rtt_us, ends_round);
	else if (p->start == CC_START_SEARCH)
		is_over = search_sample(&s->search, p, conn, rtt_us);
	else if (p->start == CC_START_RAPID)
		rapid_sample(&s->rapid, conn, rtt_us);
	if (is_over)
		ctl->ssthresh = ctl->cwnd;
	cc_start_watch(s, ctl);
}

/* Slow start's growth on an ACK; returns the packets left for avoidance. */
CC_INLINE u32 cc_start_growth(struct cc_start *s, const struct cc_start_params *p,
			      const struct cc_conn *conn, struct cc_ctl *ctl, u32 acked)
{
	u32 grow = acked;

	if (p->start == CC_START_RESUME && s->resume.phase == RESUME_UNVALIDATED && !s->exit_cwnd)
		return 0;
	if (p->start == CC_START_HYSTARTPP && !s->exit_cwnd)
		grow = hystartpp_growth(&s->hystartpp, p, conn, acked);
	else if (p->start == CC_START_RAPID && !s->exit_cwnd)
		grow = rapid_growth(&s->rapid, acked);
	grow = cc_slow_start(conn, ctl, grow);
	cc_start_watch(s, ctl);
	return grow;
}

/* CC_EVENT_SSTHRESH, after the algorithm has set its own. */
CC_INLINE void cc_start_on_reduce(struct cc_start *s, const struct cc_start_params *p,
				  const struct cc_conn *conn, u32 beta, u32 min_ssthresh,
				  struct cc_ctl *ctl)
{
	if (p->start == CC_START_RESUME)
		resume_reduce(&s->resume, conn, min_ssthresh, ctl);
	else if (p->start == CC_START_RAPID && !s->exit_cwnd)
		rapid_reduce(&s->rapid, conn, beta, min_ssthresh, ctl);
	cc_start_watch(s, ctl);
}

/* Any other event: a recovery that began in slow start ends. */
CC_INLINE void cc_start_on_event(struct cc_start *s, const struct cc_start_params *p,
				 const struct cc_conn *conn, const struct cc_event *event,
				 u32 min_ssthresh, struct cc_ctl *ctl)
{
	int is_over = event->kind == CC_EVENT_COMPLETE_CWR || event->kind == CC_EVENT_UNDO;
	int is_timeout = event->kind == CC_EVENT_STATE && event->value == CC_LOSS;

	if (p->start == CC_START_LINUX || (!is_over && !is_timeout))
		return;
	if (p->start == CC_START_RAPID)
		s->rapid.is_recovering = 0;
	else if (p->start == CC_START_RESUME && is_timeout)
		s->resume.phase = RESUME_NORMAL;
	else if (p->start == CC_START_RESUME)
		resume_recovered(&s->resume, conn, min_ssthresh, ctl);
}

#endif
