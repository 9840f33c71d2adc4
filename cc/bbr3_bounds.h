/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * bbr3_bounds.h - how bbr3.h answers loss and marks: the short-term bounds that a round with loss
 * cuts, the long-term bound that a probe which went too high cuts, and the undoing of both. It
 * also begins the phases of ProbeBW, because such a probe ends by beginning DOWN.
 */
#ifndef FULLPIPE_CC_BBR3_BOUNDS_H
#define FULLPIPE_CC_BBR3_BOUNDS_H

#include "bbr3_model.h"

#define BBR3_ECN_SHIFT 8 /* ecn_alpha is kept in Linux's 1/256 */

CC_INLINE void bbr3_set_phase(struct bbr3 *s, u8 phase)
{
	s->phase = phase;
	s->settled = 0;
}

CC_INLINE void bbr3_reset_congestion_signals(struct bbr3 *s)
{
	s->loss_in_round = 0;
	s->loss_in_cycle = 0;
	s->ecn_in_round = 0;
	s->ecn_in_cycle = 0;
	s->bw_latest = 0;
	s->inflight_latest = 0;
}

CC_INLINE void bbr3_reset_shortterm(struct bbr3 *s)
{
	s->bw_shortterm = BBR3_UNSET;
	s->inflight_shortterm = BBR3_UNSET;
}

CC_INLINE void bbr3_start_down(struct bbr3 *s, const struct bbr3_params *p,
			       const struct cc_conn *conn)
{
	bbr3_reset_congestion_signals(s);
	s->probe_up_acked_per_inc = BBR3_UNSET; /* not raising inflight_longterm any more */
	s->rounds_since_probe = (u8)cc_random_below(&s->random, p->probe_rand_rounds);
	s->bw_probe_wait_us =
	    p->probe_wait_base_us + cc_random_below(&s->random, p->probe_wait_rand_us);
	s->cycle_stamp_us = conn->now_us;
	s->ack_phase = BBR3_ACKS_PROBE_STOPPING;
	if (p->proposals & BBR3_NO_ACK_PHASE)
		bbr3_advance_max_bw(s);
	bbr3_start_round(s, conn);
	bbr3_set_phase(s, CC_PHASE_DOWN);
}

CC_INLINE void bbr3_start_cruise(struct bbr3 *s)
{
	if (s->inflight_shortterm != BBR3_UNSET)
		s->inflight_shortterm = cc_min_u32(s->inflight_shortterm, s->inflight_longterm);
	bbr3_set_phase(s, CC_PHASE_CRUISE);
}

CC_INLINE void bbr3_start_refill(struct bbr3 *s, const struct cc_conn *conn, u8 up_rounds)
{
	bbr3_reset_shortterm(s);
	s->bw_probe_up_rounds = up_rounds;
	s->bw_probe_up_acked = 0;
	s->prev_probe_precautionary = 0;
	s->ack_phase = BBR3_ACKS_REFILLING;
	bbr3_start_round(s, conn);
	bbr3_set_phase(s, CC_PHASE_REFILL);
}

/* Each round of UP doubles the growth: cwnd / 2^rounds packets buy one more of inflight_longterm.
 */
CC_INLINE void bbr3_raise_slope(struct bbr3 *s, u32 cwnd)
{
	s->probe_up_acked_per_inc = cc_max_u32(cwnd >> (s->bw_probe_up_rounds & 31), 1);
	if (s->bw_probe_up_rounds < 30)
		s->bw_probe_up_rounds++;
}

CC_INLINE void bbr3_start_up(struct bbr3 *s, const struct cc_conn *conn, u32 cwnd)
{
	s->ack_phase = BBR3_ACKS_PROBE_STARTING;
	bbr3_start_round(s, conn);
	s->cycle_stamp_us = conn->now_us;
	bbr3_reset_full_bw(s);
	s->full_bw = s->sample.bw;
	bbr3_set_phase(s, CC_PHASE_UP);
	bbr3_raise_slope(s, cwnd);
}

/* Does this flight's loss, or its marks, say that it was too large? */
CC_INLINE int bbr3_is_loss_too_high(const struct bbr3_params *p, u32 tx_inflight, u32 lost)
{
	return lost && tx_inflight && lost > bbr3_scale(tx_inflight, p->loss_thresh);
}

CC_INLINE int bbr3_is_inflight_too_high(const struct bbr3 *s, const struct bbr3_params *p,
					const struct cc_ack *ack)
{
	if (bbr3_is_loss_too_high(p, s->sample.tx_inflight, s->sample.lost))
		return 1;
	return s->ecn_eligible && p->ecn_thresh && ack->delivered > 0 && ack->delivered_ce > 0 &&
	       (u32)ack->delivered_ce > bbr3_scale((u32)ack->delivered, p->ecn_thresh);
}

/* Of a flight of `tx_inflight` packets the last was the `lost`-th to be lost: at which flight did
 * the loss rate cross the threshold? Draft InflightAtLoss(), for packets that are lost singly. */
CC_INLINE u32 bbr3_inflight_at_loss(const struct bbr3_params *p, u32 tx_inflight, u32 lost)
{
	u32 before = tx_inflight - 1, lost_before = lost - 1;
	u32 budget = (u32)(((u64)before * p->loss_thresh + CC_ONE - 1) >> CC_GAIN_SHIFT);

	if (lost_before >= budget)
		return before;
	return before + (u32)(((u64)(budget - lost_before) << CC_GAIN_SHIFT) /
			      (CC_ONE - (p->loss_thresh & (CC_ONE - 1))));
}

/* A probe went too high: cut inflight_longterm, once a probe, and end UP. */
CC_INLINE void bbr3_handle_inflight_too_high(struct bbr3 *s, const struct bbr3_params *p,
					     const struct cc_conn *conn, u32 cwnd, u32 tx_inflight,
					     int app_limited)
{
	s->prev_probe_too_high = 1;
	s->bw_probe_samples = 0;
	if (!app_limited)
		s->inflight_longterm =
		    cc_max_u32(tx_inflight, bbr3_scale(bbr3_target_inflight(s, p, cwnd), p->beta));
	if (s->phase == CC_PHASE_UP) {
		s->undo_phase = CC_PHASE_UP;
		bbr3_start_down(s, p, conn);
	}
}

CC_INLINE void bbr3_save_bounds(struct bbr3 *s)
{
	s->undo_phase = CC_PHASE_NONE;
	s->undo_bw_shortterm = s->bw_shortterm;
	s->undo_inflight_shortterm = s->inflight_shortterm;
	s->undo_inflight_longterm = s->inflight_longterm;
}

CC_INLINE void bbr3_note_loss(struct bbr3 *s, const struct cc_conn *conn)
{
	if (!s->loss_in_round)
		s->loss_round_delivered = conn->delivered; /* judge a full round from here */
	s->loss_in_round = 1;
	s->loss_in_cycle = 1;
}

/* A packet was marked lost, and the host knows its flight (Linux bbr_skb_marked_lost()). */
CC_INLINE void bbr3_handle_lost_packet(struct bbr3 *s, const struct bbr3_params *p,
				       const struct cc_conn *conn, u32 cwnd,
				       const struct cc_event *event)
{
	s->lost_seen = conn->lost;
	/* The draft's undo knows the bounds from before the first cut; Linux's from after it,
	 * because recovery begins, and asks for ssthresh, when packets are marked already. */
	if (p->undo_resumes_probe && conn->ca_state < CC_RECOVERY && !s->undo_is_saved) {
		bbr3_save_bounds(s);
		s->undo_is_saved = 1;
	}
	bbr3_note_loss(s, conn);
	if (!s->bw_probe_samples || !bbr3_is_loss_too_high(p, event->value, event->packets))
		return;
	bbr3_handle_inflight_too_high(s, p, conn, cwnd,
				      bbr3_inflight_at_loss(p, event->value, event->packets),
				      event->is_app_limited != 0);
}

/* A tail loss probe repaired a loss that no mark told of (Linux bbr_run_loss_probe_recovery()). */
CC_INLINE void bbr3_handle_probe_recovery(struct bbr3 *s, const struct bbr3_params *p,
					  const struct cc_conn *conn, u32 cwnd,
					  const struct cc_event *event)
{
	u32 tx_inflight = s->inflight_latest + 1;

	bbr3_note_loss(s, conn);
	if (s->bw_probe_samples && bbr3_is_loss_too_high(p, tx_inflight, 1))
		bbr3_handle_inflight_too_high(s, p, conn, cwnd, tx_inflight,
					      event->is_app_limited != 0);
}

/*
 * Packets were marked lost since the last call, by a host that does not say which. The lost packets
 * were sent just before the newest one that this ACK acknowledges, so that one's flight and losses
 * stand for theirs. Of several, the first whose loss crosses the threshold counts, with the losses
 * up to itself.
 */
CC_INLINE void bbr3_handle_lost(struct bbr3 *s, const struct bbr3_params *p,
				const struct cc_conn *conn, u32 cwnd, u32 tx_inflight, u32 lost,
				int app_limited)
{
	u32 newly = conn->lost - s->lost_seen, tolerated;

	s->lost_seen = conn->lost;
	if (!newly)
		return;
	bbr3_note_loss(s, conn);
	if (!s->bw_probe_samples || !bbr3_is_loss_too_high(p, tx_inflight, lost))
		return;
	tolerated = bbr3_scale(tx_inflight, p->loss_thresh);
	lost = cc_max_u32(lost - cc_min_u32(newly, lost), tolerated) + 1;
	bbr3_handle_inflight_too_high(s, p, conn, cwnd, bbr3_inflight_at_loss(p, tx_inflight, lost),
				      app_limited);
}

/* Once a round with loss or marks, outside probing: move the short-term bounds towards what was
 * delivered, by at most the factors beta and 1 - ecn_alpha * ecn_factor. */
CC_INLINE void bbr3_adapt_shortterm(struct bbr3 *s, const struct bbr3_params *p, u32 cwnd)
{
	u32 ecn_inflight = BBR3_UNSET, kept;

	if (bbr3_is_probing(s))
		return;
	if (!s->loss_in_round && !s->ecn_in_round)
		return;
	if (s->ecn_in_round && p->ecn_factor) {
		if (s->inflight_shortterm == BBR3_UNSET)
			s->inflight_shortterm = cwnd;
		kept = (1u << BBR3_ECN_SHIFT) - bbr3_scale(s->ecn_alpha, p->ecn_factor);
		ecn_inflight = (u32)((u64)s->inflight_shortterm * kept >> BBR3_ECN_SHIFT);
	}
	if (s->loss_in_round) {
		if (s->bw_shortterm == BBR3_UNSET)
			s->bw_shortterm = bbr3_max_bw(s);
		if (s->inflight_shortterm == BBR3_UNSET)
			s->inflight_shortterm = cwnd;
		s->bw_shortterm = cc_max_u32(s->bw_latest, bbr3_scale(s->bw_shortterm, p->beta));
		s->inflight_shortterm =
		    cc_max_u32(s->inflight_latest, bbr3_scale(s->inflight_shortterm, p->beta));
	}
	s->inflight_shortterm = cc_min_u32(s->inflight_shortterm, ecn_inflight);
	s->bw_shortterm = cc_max_u32(s->bw_shortterm, 1);
}

/* What the path delivered in this round of loss accounting. */
CC_INLINE void bbr3_update_latest(struct bbr3 *s, const struct cc_conn *conn,
				  const struct cc_ack *ack)
{
	s->loss_round_start = 0;
	if (!s->sample.valid)
		return;
	s->bw_latest = cc_max_u32(s->bw_latest, s->sample.bw);
	s->inflight_latest = cc_max_u32(s->inflight_latest, (u32)ack->delivered);
	if (!cc_before(ack->prior_delivered, s->loss_round_delivered)) {
		s->loss_round_delivered = conn->delivered;
		s->loss_round_start = 1;
	}
}

CC_INLINE void bbr3_advance_latest(struct bbr3 *s, const struct cc_ack *ack)
{
	/* Whether a probe repaired a loss is not known yet: what was delivered before stays. */
	if (!s->loss_round_start || ack->is_probe_answer)
		return;
	s->bw_latest = s->sample.bw;
	s->inflight_latest = (u32)ack->delivered;
}

CC_INLINE void bbr3_update_congestion_signals(struct bbr3 *s, const struct bbr3_params *p,
					      const struct cc_ack *ack, u32 cwnd)
{
	if (!s->sample.valid)
		return;
	bbr3_update_max_bw(s);
	if (ack->losses)
		s->loss_in_round = 1;
	if (!s->loss_round_start)
		return;
	bbr3_adapt_shortterm(s, p, cwnd);
	s->loss_in_round = 0;
	s->ecn_in_round = 0;
	if (p->bbr2_rules)
		bbr3_advance_latest(s, ack);
}

/* Loss or marks filled Startup's pipe: that volume is the long-term bound. */
CC_INLINE void bbr3_queue_too_high_in_startup(struct bbr3 *s, const struct bbr3_params *p)
{
	s->full_bw_reached = 1;
	s->undo_phase = CC_PHASE_STARTUP;
	s->inflight_longterm = bbr3_inflight(s, p, bbr3_max_bw(s), CC_ONE);
	if (!p->bbr2_rules)
		s->inflight_longterm = cc_max_u32(s->inflight_longterm, s->inflight_latest);
}

CC_INLINE void bbr3_check_startup_loss(struct bbr3 *s, const struct bbr3_params *p,
				       const struct cc_conn *conn, const struct cc_ack *ack)
{
	if (s->full_bw_reached)
		return;
	if (ack->losses && s->startup_loss_acks < 15)
		s->startup_loss_acks++;
	if (!s->loss_round_start)
		return;
	if (p->startup_loss_events && conn->ca_state == CC_RECOVERY &&
	    s->startup_loss_acks >= p->startup_loss_events &&
	    bbr3_is_inflight_too_high(s, p, ack)) {
		bbr3_queue_too_high_in_startup(s, p);
		return;
	}
	s->startup_loss_acks = 0;
}

/* Marks count only where they are known to come early (ECN_LOW) and on a short path. */
CC_INLINE u8 bbr3_may_use_ecn(const struct bbr3 *s, const struct bbr3_params *p,
			      const struct cc_conn *conn)
{
	return conn->ecn_ok && (conn->ecn_low || p->ecn_assumed_low) && p->ecn_factor &&
	       (s->min_rtt_us <= p->ecn_max_rtt_us || !p->ecn_max_rtt_us);
}

CC_INLINE void bbr3_update_ecn(struct bbr3 *s, const struct bbr3_params *p,
			       const struct cc_conn *conn)
{
	u32 delivered, ratio, delivered_ce;

	if (!s->ecn_eligible)
		s->ecn_eligible = bbr3_may_use_ecn(s, p, conn);
	delivered = conn->delivered - s->ecn_delivered;
	if (!s->ecn_eligible || !delivered)
		return;
	delivered_ce = conn->delivered_ce - s->ecn_delivered_ce;
	ratio = (u32)(((u64)delivered_ce << BBR3_ECN_SHIFT) / delivered);
	s->ecn_alpha = bbr3_scale(s->ecn_alpha, CC_ONE - p->ecn_alpha_gain) +
		       bbr3_scale(ratio, p->ecn_alpha_gain);
	s->ecn_alpha = cc_min_u32(s->ecn_alpha, 1u << BBR3_ECN_SHIFT);
	s->ecn_delivered = conn->delivered;
	s->ecn_delivered_ce = conn->delivered_ce;
	if (s->full_bw_reached || !p->ecn_startup_rounds || !p->ecn_thresh)
		return;
	if (ratio << (CC_GAIN_SHIFT - BBR3_ECN_SHIFT) < p->ecn_thresh)
		s->ecn_rounds = 0;
	else if (++s->ecn_rounds >= p->ecn_startup_rounds)
		bbr3_queue_too_high_in_startup(s, p);
}

CC_INLINE void bbr3_save_cwnd(struct bbr3 *s, u32 cwnd)
{
	if (s->prev_ca_state < CC_RECOVERY && s->phase != CC_PHASE_PROBE_RTT)
		s->prior_cwnd = cwnd;
	else
		s->prior_cwnd = cc_max_u32(s->prior_cwnd, cwnd);
}

CC_INLINE void bbr3_enter_recovery(struct bbr3 *s, u32 cwnd)
{
	bbr3_save_cwnd(s, cwnd);
	if (!s->undo_is_saved)
		bbr3_save_bounds(s);
}

/* The loss was spurious: at least what held before it holds again. */
CC_INLINE void bbr3_undo(struct bbr3 *s, const struct bbr3_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	/* Linux returns the saved window, the draft the larger one (BBRRestoreCwnd()). */
	if (p->undo_resumes_probe || !s->prior_cwnd)
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	else
		ctl->cwnd = s->prior_cwnd;
	bbr3_reset_full_bw(s);
	s->loss_in_round = 0;
	s->settled = 0;
	s->bw_shortterm = cc_max_u32(s->bw_shortterm, s->undo_bw_shortterm);
	s->inflight_shortterm = cc_max_u32(s->inflight_shortterm, s->undo_inflight_shortterm);
	s->inflight_longterm = cc_max_u32(s->inflight_longterm, s->undo_inflight_longterm);
	if (!p->undo_resumes_probe)
		return;
	if (s->undo_phase == CC_PHASE_STARTUP && s->phase != CC_PHASE_STARTUP) {
		s->full_bw_reached = 0;
		if (s->phase != CC_PHASE_PROBE_RTT)
			bbr3_set_phase(s, CC_PHASE_STARTUP);
	} else if (s->undo_phase == CC_PHASE_UP && s->phase != CC_PHASE_UP &&
		   s->phase != CC_PHASE_PROBE_RTT) {
		bbr3_start_refill(s, conn, 0);
	}
	s->undo_phase = CC_PHASE_NONE;
}

#endif
