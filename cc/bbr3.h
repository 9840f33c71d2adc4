/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * bbr3.h - BBRv3, and as parameter sets of it BBRv2 and BBR-n+.
 *
 * BBR keeps a model of the path and sends by it: max_bw, the highest recent delivery rate, and
 * min_rtt, the lowest recent RTT, say how much fills the pipe and no more. To keep the model true
 * it must probe, one quantity at a time:
 *
 *    STARTUP -> DRAIN -> +-> DOWN -> CRUISE -> REFILL -> UP -+      any of them -> PROBE_RTT
 *                        +----------<------------<-----------+      at 5 s without a lower RTT
 *
 * Loss (and early ECN marks) bound the model twice. While probing, a loss rate above 2 % sets
 * inflight_longterm, the volume that a later probe may exceed only step by step. Otherwise each
 * round with loss moves bw_shortterm and inflight_shortterm towards what is delivered; the next
 * probe forgets them.
 *
 * Sources: draft-ietf-ccwg-bbr (names, and the default set), Google's tcp_bbr.c v3 and tcp_bbr2.c
 * (arithmetic, order of steps, and the sets bbr3-linux and bbr2), seed "BBR-n+", PLOS ONE
 * 10.1371/journal.pone.0330972. What differs between them is a parameter (bbr3_params.h); what
 * stock kernels force to differ is in docs/background/algorithms/bbr.md. Glossary, here = Linux:
 *
 *    inflight_longterm = inflight_hi       inflight_shortterm = inflight_lo
 *    bw_shortterm = bw_lo                  max_bw[] = bw_hi[] (v2: max_bw[])
 *    next_round_delivered = next_rtt_delivered
 *    full_bw_count = full_bw_cnt           prev_probe_precautionary = stopped_risky_probe
 *    probe_up_acked_per_inc = bw_probe_up_cnt    bw_probe_up_acked = bw_probe_up_acks
 *    min_pipe_cwnd = cwnd_min_target       startup_loss_acks = loss_events_in_round
 *    settled = try_fast_path               offload budget = quantization budget
 *
 * Parts: bbr3_model.h estimates, bbr3_bounds.h answers loss, this file runs the phases, sets the
 * controls and is what a host calls.
 */
#ifndef FULLPIPE_CC_BBR3_H
#define FULLPIPE_CC_BBR3_H

#include "bbr3_bounds.h"
#include "fixed.h"
#include "state.h"

#define bbr3_FLAGS (CC_OWNS_CWND | CC_WANTS_RING | CC_SEND_IS_PURE)

#define BBR3_SNDBUF_FACTOR 3 /* cwnd may double even in recovery (Linux sndbuf_expand) */

CC_INLINE void bbr3_check_drain(struct bbr3 *s, const struct bbr3_params *p,
				const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u32 target;

	if (s->phase != CC_PHASE_DRAIN && !(s->phase == CC_PHASE_STARTUP && s->full_bw_reached))
		return;
	target = bbr3_inflight(s, p, bbr3_max_bw(s), CC_ONE);
	if (s->phase == CC_PHASE_STARTUP) {
		bbr3_set_phase(s, CC_PHASE_DRAIN);
		s->drain_start_round = s->round_count;
		ctl->ssthresh = target; /* unused; tells observers that Startup is over */
		bbr3_reset_congestion_signals(s);
	}
	if (bbr3_inflight_at_edt(s, conn, conn->inflight) <= target ||
	    (p->drain_max_rounds && s->round_count - s->drain_start_round > p->drain_max_rounds))
		bbr3_start_down(s, p, conn);
}

/* In UP with a full window and no sign of trouble: raise inflight_longterm. */
CC_INLINE void bbr3_probe_longterm_upward(struct bbr3 *s, const struct bbr3_params *p,
					  const struct cc_conn *conn, const struct cc_ack *ack,
					  u32 cwnd)
{
	u32 steps;

	if (!conn->is_cwnd_full || cwnd < s->inflight_longterm) {
		if (p->bbr2_rules)
			s->bw_probe_up_acked = 0;
		return;
	}
	s->bw_probe_up_acked += ack->acked_sacked;
	if (s->bw_probe_up_acked >= s->probe_up_acked_per_inc) {
		steps = s->bw_probe_up_acked / cc_max_u32(s->probe_up_acked_per_inc, 1);
		s->bw_probe_up_acked -= steps * s->probe_up_acked_per_inc;
		s->inflight_longterm += steps;
		s->settled = 0;
	}
	if (s->round_start)
		bbr3_raise_slope(s, cwnd);
}

/* Follows what ACKs say about the last probe, and moves max_bw's window and inflight_longterm.
 * Nonzero: it decided a change of phase. */
CC_INLINE int bbr3_adapt_longterm(struct bbr3 *s, const struct bbr3_params *p,
				  const struct cc_conn *conn, const struct cc_ack *ack,
				  struct cc_ctl *ctl)
{
	if (s->round_start && s->ack_phase == BBR3_ACKS_PROBE_STARTING)
		s->ack_phase = BBR3_ACKS_PROBE_FEEDBACK;
	if (s->round_start && s->ack_phase == BBR3_ACKS_PROBE_STOPPING) {
		s->bw_probe_samples = 0;
		s->ack_phase = BBR3_ACKS_INIT;
		if (bbr3_is_probe_bw(s) && !s->sample.app_limited &&
		    !(p->proposals & BBR3_NO_ACK_PHASE))
			bbr3_advance_max_bw(s);
		/* The last probe stopped at the bound as a precaution, and nothing bad came of it.
		 */
		if (bbr3_is_probe_bw(s) && s->prev_probe_precautionary && !s->prev_probe_too_high) {
			bbr3_start_refill(s, conn, 0);
			return 1;
		}
	}
	if (bbr3_is_inflight_too_high(s, p, ack)) {
		if (s->bw_probe_samples && p->ack_sample_cuts)
			bbr3_handle_inflight_too_high(s, p, conn, ctl->cwnd, s->sample.tx_inflight,
						      s->sample.app_limited);
		return 0;
	}
	if (s->inflight_longterm == BBR3_UNSET)
		return 0;
	s->inflight_longterm = cc_max_u32(s->inflight_longterm, s->sample.tx_inflight);
	if (s->phase == CC_PHASE_UP)
		bbr3_probe_longterm_upward(s, p, conn, ack, ctl->cwnd);
	return 0;
}

/* From DOWN or CRUISE: is it time to probe? By the clock, or by when Reno would have lost. */
CC_INLINE int bbr3_check_time_to_probe(struct bbr3 *s, const struct bbr3_params *p,
				       const struct cc_conn *conn, const struct cc_ctl *ctl)
{
	/* Marks without loss have ceased: cross traffic may be gone. */
	if (p->ecn_reprobe_gain && s->ecn_eligible && s->ecn_in_cycle && !s->loss_in_cycle &&
	    conn->ca_state == CC_OPEN) {
		bbr3_start_refill(
		    s, conn, (u8)cc_log2(bbr3_scale(s->inflight_longterm, p->ecn_reprobe_gain)));
		return 1;
	}
	if (conn->now_us > s->cycle_stamp_us + s->bw_probe_wait_us ||
	    s->rounds_since_probe >=
		cc_min_u32(p->probe_max_rounds, bbr3_target_inflight(s, p, ctl->cwnd))) {
		bbr3_start_refill(s, conn, 0);
		return 1;
	}
	return 0;
}

/* The last probe was too high, and this one has as much in flight again. */
CC_INLINE int bbr3_is_probe_risky(const struct bbr3 *s, const struct bbr3_params *p, u32 inflight)
{
	return s->prev_probe_too_high && inflight >= s->inflight_longterm &&
	       !(p->proposals & BBR3_NO_PRECAUTION);
}

/* The draft's BBRIsTimeToGoDown(), without what it changes: bbr3_measure_full_bw_anew(). */
CC_INLINE int bbr3_is_time_to_go_down(const struct bbr3 *s, const struct bbr3_params *p,
				      const struct cc_conn *conn, u32 inflight)
{
	if (p->probe_up_inflight_gain)
		return conn->now_us > s->cycle_stamp_us + s->min_rtt_us &&
		       inflight >= bbr3_inflight(s, p, bbr3_max_bw(s), p->probe_up_inflight_gain);
	return s->full_bw_now;
}

/* Where the bound, not the path, limits the rate, a bandwidth that does not grow says nothing. */
CC_INLINE void bbr3_measure_full_bw_anew(struct bbr3 *s, const struct bbr3_params *p,
					 const struct cc_conn *conn, const struct cc_ctl *ctl)
{
	if (p->probe_up_inflight_gain || !conn->is_cwnd_full || ctl->cwnd < s->inflight_longterm)
		return;
	bbr3_reset_full_bw(s);
	s->full_bw = s->sample.bw;
}

/* In UP: ends the probe as a precaution, or when the pipe is full. */
CC_INLINE void bbr3_check_probe_up_done(struct bbr3 *s, const struct bbr3_params *p,
					const struct cc_conn *conn, const struct cc_ctl *ctl,
					u32 inflight)
{
	if (bbr3_is_probe_risky(s, p, inflight)) {
		s->prev_probe_precautionary = 1;
	} else {
		bbr3_measure_full_bw_anew(s, p, conn, ctl);
		if (!bbr3_is_time_to_go_down(s, p, conn, inflight))
			return;
	}
	s->prev_probe_too_high = 0;
	bbr3_start_down(s, p, conn);
}

CC_INLINE void bbr3_update_cycle(struct bbr3 *s, const struct bbr3_params *p,
				 const struct cc_conn *conn, const struct cc_ack *ack,
				 struct cc_ctl *ctl)
{
	u32 inflight;

	if (!s->full_bw_reached)
		return;
	if (bbr3_adapt_longterm(s, p, conn, ack, ctl) || !bbr3_is_probe_bw(s))
		return;
	if (s->phase == CC_PHASE_REFILL) {
		if (s->round_start) {
			s->bw_probe_samples = 1; /* from now on ACKs are of the refilled pipe */
			bbr3_start_up(s, conn, ctl->cwnd);
		}
		return;
	}
	if (s->phase != CC_PHASE_UP && bbr3_check_time_to_probe(s, p, conn, ctl))
		return;
	if (s->phase == CC_PHASE_CRUISE)
		return;
	inflight = bbr3_inflight_at_edt(s, conn, ack->prior_inflight);
	if (s->phase == CC_PHASE_UP) {
		bbr3_check_probe_up_done(s, p, conn, ctl, inflight);
	} else if (inflight <= bbr3_inflight_with_headroom(s, p) &&
		   inflight <= bbr3_inflight(s, p, bbr3_max_bw(s), CC_ONE)) {
		bbr3_start_cruise(s);
	}
}

CC_INLINE void bbr3_check_probe_rtt_done(struct bbr3 *s, const struct bbr3_params *p,
					 const struct cc_conn *conn, struct cc_ctl *ctl)
{
	if (!s->probe_rtt_done_us || conn->now_us <= s->probe_rtt_done_us)
		return;
	s->probe_rtt_min_stamp_us = conn->now_us;
	ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	bbr3_reset_shortterm(s);
	if (s->full_bw_reached) {
		/* Not a probe at once, which could lose what was just drained; but inflight is
		 * below the BDP already, so cruise. */
		bbr3_start_down(s, p, conn);
		bbr3_start_cruise(s);
	} else {
		bbr3_set_phase(s, CC_PHASE_STARTUP);
	}
}

/* The draft's probe_rtt_expired, of which bbr3_update_min_rtt() moves the stamp. */
CC_INLINE int bbr3_is_probe_rtt_expired(const struct bbr3 *s, const struct bbr3_params *p,
					const struct cc_conn *conn)
{
	return conn->now_us > s->probe_rtt_min_stamp_us + p->probe_rtt_interval_us;
}

/* The two windows of RTT: one schedules ProbeRTT, the longer one is the model's. */
CC_INLINE void bbr3_update_min_rtt(struct bbr3 *s, const struct bbr3_params *p,
				   const struct cc_conn *conn, const struct cc_ack *ack,
				   int expired)
{
	u32 rtt_us = (u32)ack->rtt_us;
	int holds;

	if (ack->rtt_us >= 0 &&
	    (rtt_us < s->probe_rtt_min_us || (p->bbr2_rules && rtt_us == s->probe_rtt_min_us) ||
	     (expired && !ack->is_ack_delayed))) {
		s->probe_rtt_min_us = rtt_us;
		s->probe_rtt_min_stamp_us = conn->now_us;
	}
	holds = (p->proposals & BBR3_MIN_RTT_OUTLIVES_PROBE_RTT) && p->probe_rtt_duration_us &&
		(s->phase == CC_PHASE_PROBE_RTT || (expired && !s->idle_restart));
	if (s->probe_rtt_min_us <= s->min_rtt_us ||
	    (!holds && conn->now_us > s->min_rtt_stamp_us + p->min_rtt_window_us)) {
		if (s->min_rtt_us != s->probe_rtt_min_us)
			s->settled = 0;
		s->min_rtt_us = s->probe_rtt_min_us;
		s->min_rtt_stamp_us = s->probe_rtt_min_stamp_us;
	}
}

CC_INLINE void bbr3_enter_probe_rtt(struct bbr3 *s, const struct cc_conn *conn,
				    const struct cc_ctl *ctl)
{
	bbr3_set_phase(s, CC_PHASE_PROBE_RTT);
	bbr3_save_cwnd(s, ctl->cwnd);
	s->probe_rtt_done_us = 0;
	s->ack_phase = BBR3_ACKS_PROBE_STOPPING;
	bbr3_start_round(s, conn);
}

CC_INLINE void bbr3_handle_probe_rtt(struct bbr3 *s, const struct bbr3_params *p,
				     const struct cc_conn *conn, struct cc_ctl *ctl)
{
	cc_bubble_extend(&s->bubble, conn);
	if (!s->probe_rtt_done_us) {
		if (conn->inflight <= bbr3_probe_rtt_cwnd(s, p)) {
			s->probe_rtt_done_us = conn->now_us + p->probe_rtt_duration_us;
			s->probe_rtt_round_done = 0;
			bbr3_start_round(s, conn);
		}
		return;
	}
	if (s->round_start)
		s->probe_rtt_round_done = 1;
	if (s->probe_rtt_round_done)
		bbr3_check_probe_rtt_done(s, p, conn, ctl);
}

CC_INLINE void bbr3_check_probe_rtt(struct bbr3 *s, const struct bbr3_params *p,
				    const struct cc_conn *conn, const struct cc_ack *ack,
				    int expired, struct cc_ctl *ctl)
{
	if (p->probe_rtt_duration_us && expired && !s->idle_restart &&
	    s->phase != CC_PHASE_PROBE_RTT)
		bbr3_enter_probe_rtt(s, conn, ctl);
	if (s->phase == CC_PHASE_PROBE_RTT)
		bbr3_handle_probe_rtt(s, p, conn, ctl);
	if (ack->delivered > 0)
		s->idle_restart = 0;
}

CC_INLINE void bbr3_set_gains(struct bbr3 *s, const struct bbr3_params *p)
{
	s->pacing_gain = CC_ONE;
	s->cwnd_gain = p->cwnd_gain;
	if (s->phase == CC_PHASE_STARTUP) {
		s->pacing_gain = p->startup_pacing_gain;
		s->cwnd_gain = p->startup_cwnd_gain;
	} else if (s->phase == CC_PHASE_DRAIN) {
		s->pacing_gain = p->drain_gain;
		s->cwnd_gain = p->startup_cwnd_gain;
	} else if (s->phase == CC_PHASE_UP) {
		s->pacing_gain = p->probe_up_gain;
		s->cwnd_gain = p->probe_up_cwnd_gain;
	} else if (s->phase == CC_PHASE_DOWN) {
		s->pacing_gain = p->probe_down_gain;
	} else if (s->phase == CC_PHASE_PROBE_RTT) {
		s->cwnd_gain = CC_ONE;
	}
}

CC_INLINE u32 bbr3_bound_cwnd(const struct bbr3 *s, const struct bbr3_params *p, u32 cwnd)
{
	u32 cap = BBR3_UNSET;

	if (s->phase == CC_PHASE_CRUISE || s->phase == CC_PHASE_PROBE_RTT)
		cap = bbr3_inflight_with_headroom(s, p);
	else if (bbr3_is_probe_bw(s))
		cap = s->inflight_longterm;
	cap = cc_min_u32(cap, s->inflight_shortterm);
	return cc_min_u32(cwnd, cc_max_u32(cap, p->min_pipe_cwnd));
}

CC_INLINE void bbr3_set_cwnd(struct bbr3 *s, const struct bbr3_params *p,
			     const struct cc_conn *conn, const struct cc_ack *ack,
			     struct cc_ctl *ctl)
{
	u32 cwnd = ctl->cwnd, target;

	if (ack->acked_sacked) {
		target = bbr3_bdp(s, bbr3_bw(s), s->cwnd_gain) + bbr3_aggregation_allowance(s, p);
		target = bbr3_offload_budget(s, p, target);
		s->settled = 0;
		if (s->full_bw_reached) {
			cwnd += ack->acked_sacked;
			if (cwnd >= target) {
				cwnd = target;
				s->settled = 1;
			}
		} else if (cwnd < target || cwnd < 2 * s->initial_cwnd) {
			cwnd += ack->acked_sacked;
		} else {
			s->settled = 1;
		}
		cwnd = cc_max_u32(cwnd, p->min_pipe_cwnd);
	}
	cwnd = cc_min_u32(cwnd, conn->cwnd_clamp);
	if (s->phase == CC_PHASE_PROBE_RTT)
		cwnd = cc_min_u32(cwnd, bbr3_probe_rtt_cwnd(s, p));
	ctl->cwnd = bbr3_bound_cwnd(s, p, cwnd);
}

CC_INLINE void bbr3_init(struct bbr3 *s, const struct bbr3_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	s->initial_cwnd = cc_min_u32(ctl->cwnd, 127); /* Linux keeps seven bits of it */
	s->random = conn->seed ^ 0x9e3779b9u;
	if (!s->random)
		s->random = 1;
	s->mss_bytes = conn->mss_bytes;
	s->phase = CC_PHASE_STARTUP;
	s->pacing_gain = p->startup_pacing_gain;
	s->cwnd_gain = p->startup_cwnd_gain;
	s->min_rtt_us = conn->srtt_us ? conn->srtt_us : BBR3_UNSET;
	s->probe_rtt_min_us = s->min_rtt_us;
	s->min_rtt_stamp_us = conn->now_us;
	s->probe_rtt_min_stamp_us = conn->now_us;
	s->extra_acked_start_us = conn->now_us;
	bbr3_start_round(s, conn);
	s->loss_round_delivered = conn->delivered + 1;
	s->inflight_longterm = BBR3_UNSET;
	bbr3_reset_shortterm(s);
	s->probe_up_acked_per_inc = BBR3_UNSET;
	s->ecn_alpha = p->ecn_alpha_init >> (CC_GAIN_SHIFT - BBR3_ECN_SHIFT);
	s->lost_seen = conn->lost;
	s->ce_seen = conn->delivered_ce;
	ctl->ssthresh = CC_INFINITE;
	ctl->sndbuf_factor = BBR3_SNDBUF_FACTOR;
	ctl->is_scalable = bbr3_may_use_ecn(s, p, conn);
	bbr3_init_pacing_rate(s, p, conn, ctl);
	bbr3_update_burst(s, p, conn, ctl);
}

CC_INLINE void bbr3_on_ack(struct bbr3 *s, const struct bbr3_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	int expired;

	s->mss_bytes = conn->mss_bytes;
	bbr3_take_sample(s, conn, ack);
	CC_STEP();
	bbr3_handle_lost(s, p, conn, ctl->cwnd, s->sample.tx_inflight, s->sample.lost,
			 s->sample.app_limited);
	CC_STEP();
	bbr3_update_round(s, conn, ack);
	if (s->round_start)
		bbr3_update_ecn(s, p, conn);
	if (s->ecn_eligible && conn->delivered_ce != s->ce_seen)
		s->ecn_in_round = 1;
	s->ce_seen = conn->delivered_ce;
	CC_STEP();
	/* An application-limited sample below max_bw teaches nothing (Linux's fast path); v3 knows
	 * at least that it was delivered. */
	s->sample.teaches = !s->settled || !s->sample.app_limited ||
			    s->sample.bw >= bbr3_max_bw(s) || s->loss_in_round || s->ecn_in_round;
	if (s->sample.teaches || !p->bbr2_rules)
		bbr3_update_latest(s, conn, ack);
	CC_STEP();
	if (s->sample.teaches) {
		bbr3_update_congestion_signals(s, p, ack, ctl->cwnd);
		CC_STEP();
		bbr3_update_ack_aggregation(s, p, conn, ack, ctl->cwnd);
		CC_STEP();
		bbr3_check_startup_loss(s, p, conn, ack);
		CC_STEP();
		bbr3_check_full_bw(s, p, conn);
	}
	CC_STEP();
	bbr3_check_drain(s, p, conn, ctl);
	CC_STEP();
	bbr3_update_cycle(s, p, conn, ack, ctl);
	CC_STEP();
	expired = bbr3_is_probe_rtt_expired(s, p, conn);
	bbr3_update_min_rtt(s, p, conn, ack, expired);
	bbr3_check_probe_rtt(s, p, conn, ack, expired, ctl);
	CC_STEP();
	if (s->sample.teaches || !s->settled) {
		bbr3_set_gains(s, p);
		CC_STEP();
		bbr3_set_pacing_rate(s, p, conn, ctl, s->pacing_gain);
		CC_STEP();
		bbr3_update_burst(s, p, conn, ctl);
		CC_STEP();
		bbr3_set_cwnd(s, p, conn, ack, ctl);
	}
	CC_STEP();
	if (!p->bbr2_rules)
		bbr3_advance_latest(s, ack);
	s->prev_ca_state = conn->ca_state;
	s->undo_is_saved = 0;
	if (s->sample.lost)
		s->loss_in_cycle = 1;
	if (ack->delivered_ce > 0)
		s->ecn_in_cycle = 1;
}

/* Restarting from idle: pace at the estimated bandwidth, whatever the phase's gain. */
CC_INLINE void bbr3_restart_from_idle(struct bbr3 *s, const struct bbr3_params *p,
				      const struct cc_conn *conn, struct cc_ctl *ctl)
{
	if (!conn->app_limited && !cc_bubble_is_open(&s->bubble, conn))
		return;
	s->idle_restart = 1;
	s->extra_acked_start_us = conn->now_us;
	s->extra_acked_delivered = 0;
	if (bbr3_is_probe_bw(s)) {
		bbr3_set_pacing_rate(s, p, conn, ctl, CC_ONE);
		bbr3_update_burst(s, p, conn, ctl);
	} else if (s->phase == CC_PHASE_PROBE_RTT) {
		bbr3_check_probe_rtt_done(s, p, conn, ctl);
	}
}

CC_INLINE void bbr3_on_state(struct bbr3 *s, const struct bbr3_params *p, u32 state,
			     struct cc_ctl *ctl)
{
	if (state == CC_LOSS) {
		s->prev_ca_state = CC_LOSS;
		bbr3_reset_full_bw(s);
		/* The bound to cut from is the window before the timeout. */
		if (!bbr3_is_probing(s) && s->inflight_shortterm == BBR3_UNSET)
			s->inflight_shortterm =
			    p->bbr2_rules ? s->prior_cwnd : cc_max_u32(ctl->cwnd, s->prior_cwnd);
	} else if (s->prev_ca_state == CC_LOSS) {
		ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
		s->settled = 0;
	}
}

CC_INLINE void bbr3_on_event(struct bbr3 *s, const struct bbr3_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	if (event->kind == CC_EVENT_SEND)
		ctl->tso_segs = cc_min_u32(s->burst_packets, cc_max_u32(conn->gso_max_segs, 1));
	else if (event->kind == CC_EVENT_TX_START)
		bbr3_restart_from_idle(s, p, conn, ctl);
	else if (event->kind == CC_EVENT_SSTHRESH)
		bbr3_enter_recovery(s, ctl->cwnd);
	else if (event->kind == CC_EVENT_UNDO)
		bbr3_undo(s, p, conn, ctl);
	else if (event->kind == CC_EVENT_RTO)
		/* Everything out is lost, and no ACK says so: the flight is what is out. */
		bbr3_handle_lost(s, p, conn, ctl->cwnd, conn->packets_out, conn->packets_out,
				 conn->app_limited != 0);
	else if (event->kind == CC_EVENT_LOST)
		bbr3_handle_lost_packet(s, p, conn, ctl->cwnd, event);
	else if (event->kind == CC_EVENT_TLP_RECOVERY)
		bbr3_handle_probe_recovery(s, p, conn, ctl->cwnd, event);
	else if (event->kind == CC_EVENT_STATE)
		bbr3_on_state(s, p, event->value, ctl);
}

#define bbr3_STATE(S)                                                                              \
	S(phase, "phase", 1, s->phase, "of the draft's state machine")                             \
	S(bw, "bytes/s", 1, bbr3_known_Bps(s, bbr3_bw(s)), "bandwidth that the model paces from")  \
	S(max_bw, "bytes/s", 1, bbr3_known_Bps(s, bbr3_max_bw(s)), "long-term bandwidth")          \
	S(bw_shortterm, "bytes/s", 1, bbr3_known_Bps(s, s->bw_shortterm), "short-term bound")      \
	S(min_rtt, "us", 1, cc_unless(s->min_rtt_us, BBR3_UNSET), "least RTT of the filter")       \
	S(pacing_gain, "", CC_ONE, s->pacing_gain, "gain on the bandwidth")                        \
	S(cwnd_gain, "", CC_ONE, s->cwnd_gain, "gain on the BDP")                                  \
	S(inflight_longterm, "packets", 1, cc_bound(s->inflight_longterm), "long-term bound")      \
	S(inflight_shortterm, "packets", 1, cc_bound(s->inflight_shortterm), "short-term bound")   \
	S(extra_acked, "packets", 1, bbr3_extra_acked(s), "estimate of ACK aggregation")           \
	S(round_count, "", 1, s->round_count, "packet-timed rounds")

/* A bandwidth of the model for recordings. */
CC_INLINE s64 bbr3_known_Bps(const struct bbr3 *s, u32 bw)
{
	if (!bw || bw == BBR3_UNSET)
		return CC_NONE;
	return (s64)bbr3_rate_Bps(bw, s->mss_bytes, CC_ONE, 0);
}

#endif
