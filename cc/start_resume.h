/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * start_resume.h - Careful Resume (RFC 9959; sections are of its draft -24): once the first window
 * is acknowledged, the window jumps to half of what an earlier connection used on this path, and
 * what the jump sent is validated or given back. Must not know an algorithm.
 *
 * The saved parameters are the algorithm's parameters saved_cwnd and saved_rtt_us; their lifetime
 * and the single use of a set are the caller's. Unvalidated packets must be paced, so nothing
 * jumps where the host does not pace. The host paces at 1.2 windows an RTT, not at one: the least
 * that Linux has, which ssthresh selects. The host's recovery (PRR) leads to the window of the
 * safe retreat packet by packet.
 */
#ifndef FULLPIPE_CC_START_RESUME_H
#define FULLPIPE_CC_START_RESUME_H

#include "start_params.h"

enum resume_phase {
	RESUME_RECONNAISSANCE,
	RESUME_UNVALIDATED,
	RESUME_VALIDATING,
	RESUME_RETREAT,
	RESUME_NORMAL,
};

/* Section 4.2.1. */
#define RESUME_RTT_TOO_SMALL 2u
#define RESUME_RTT_TOO_LARGE 10u

struct cc_resume {
	u64 entered_us;  /* the Unvalidated Phase */
	u32 phase;       /* enum resume_phase */
	u32 initial_end; /* end of the initial data */
	u32 has_sent;    /* initial_end is known */
	u32 first_end;   /* of the first unvalidated packet */
	u32 last_end;    /* of the last one */
	u32 pipe;        /* PipeSize at `delivered` */
	u32 delivered;
	u32 initial_cwnd;
	u32 min_rtt_us; /* 0: none */
};

CC_INLINE void resume_init(struct cc_resume *s, const struct cc_ctl *ctl)
{
	s->initial_cwnd = ctl->cwnd;
}

CC_INLINE void resume_track(struct cc_resume *s, const struct cc_conn *conn)
{
	s->pipe += conn->delivered - s->delivered;
	s->delivered = conn->delivered;
}

/* Section 3.2: what the path must show before the jump. */
CC_INLINE void resume_reconnoitre(struct cc_resume *s, const struct cc_start_params *p,
				  const struct cc_conn *conn, u32 rtt_us, struct cc_ctl *ctl)
{
	u32 jump = p->saved_cwnd / 2;

	if (p->max_jump)
		jump = cc_min_u32(jump, p->max_jump);
	if (!s->has_sent) {
		s->has_sent = 1;
		s->initial_end = conn->snd_nxt;
	}
	if (cc_before(conn->snd_una, s->initial_end))
		return;
	if (!conn->is_paced || !p->saved_rtt_us || jump <= ctl->cwnd ||
	    s->min_rtt_us <= p->saved_rtt_us / RESUME_RTT_TOO_SMALL ||
	    rtt_us > (u64)p->saved_rtt_us * RESUME_RTT_TOO_LARGE) {
		s->phase = RESUME_NORMAL;
		return;
	}
	/* A sender with nothing more to send waits (section 4.2). */
	if (!conn->is_cwnd_limited)
		return;
	s->phase = RESUME_UNVALIDATED;
	s->entered_us = conn->now_us;
	s->pipe = conn->packets_out;
	s->delivered = conn->delivered;
	s->first_end = conn->snd_nxt + 1;
	ctl->cwnd = cc_min_u32(jump, conn->cwnd_clamp);
	ctl->ssthresh = ctl->cwnd + 1;
}

/* Section 3.3: the end of the jump, when all is sent, its first packet is acknowledged, or an RTT
 * is over. */
CC_INLINE void resume_confirm(struct cc_resume *s, const struct cc_conn *conn, u32 rtt_us,
			      u32 packets, struct cc_ctl *ctl)
{
	u32 flight = conn->packets_out;

	resume_track(s, conn);
	if (flight + packets < ctl->cwnd && cc_before(conn->snd_una, s->first_end) &&
	    conn->now_us - s->entered_us <= rtt_us)
		return;
	ctl->ssthresh = CC_INFINITE;
	if (flight < s->initial_cwnd || flight <= s->pipe) {
		ctl->cwnd = cc_max_u32(s->pipe, s->initial_cwnd);
		s->phase = RESUME_NORMAL;
		return;
	}
	ctl->cwnd = flight;
	s->last_end = conn->snd_nxt;
	s->phase = RESUME_VALIDATING;
}

CC_INLINE void resume_sample(struct cc_resume *s, const struct cc_start_params *p,
			     const struct cc_conn *conn, u32 rtt_us, u32 packets,
			     struct cc_ctl *ctl)
{
	if (!s->min_rtt_us || rtt_us < s->min_rtt_us)
		s->min_rtt_us = rtt_us;
	if (s->phase == RESUME_RECONNAISSANCE) {
		resume_reconnoitre(s, p, conn, rtt_us, ctl);
	} else if (s->phase == RESUME_UNVALIDATED) {
		resume_confirm(s, conn, rtt_us, packets, ctl);
	} else if (s->phase == RESUME_VALIDATING) {
		resume_track(s, conn);
		if (!cc_before(conn->snd_una, s->last_end))
			s->phase = RESUME_NORMAL;
	} else if (s->phase == RESUME_RETREAT) {
		resume_track(s, conn);
	}
}

/* Section 3.5: congestion. Called when the algorithm has set its own ssthresh. */
CC_INLINE void resume_reduce(struct cc_resume *s, const struct cc_conn *conn, u32 min_ssthresh,
			     struct cc_ctl *ctl)
{
	if (s->phase != RESUME_UNVALIDATED && s->phase != RESUME_VALIDATING) {
		s->phase = RESUME_NORMAL;
		return;
	}
	resume_track(s, conn);
	s->phase = RESUME_RETREAT;
	ctl->ssthresh = cc_max_u32(s->pipe / 2, min_ssthresh);
}

/* The recovery is over: ssthresh becomes PipeSize * Beta, Beta = 0.5. */
CC_INLINE void resume_recovered(struct cc_resume *s, const struct cc_conn *conn, u32 min_ssthresh,
				struct cc_ctl *ctl)
{
	if (s->phase != RESUME_RETREAT)
		return;
	resume_track(s, conn);
	s->phase = RESUME_NORMAL;
	ctl->ssthresh = cc_max_u32(s->pipe / 2, min_ssthresh);
}

#endif
