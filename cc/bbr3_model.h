/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * bbr3_model.h - the state of bbr3.h and its model of the path: rounds, bandwidth, propagation
 * delay, ACK aggregation, and the volumes that follow from them. Nothing here decides a phase.
 */
#ifndef FULLPIPE_CC_BBR3_MODEL_H
#define FULLPIPE_CC_BBR3_MODEL_H

#include "bubble.h"
#include "cc_more.h"
#include "bbr3_params.h"
#include "fixed.h"
#include "state.h"

/* Bandwidth is in packets per us, times 2^24, as in Linux (BW_SCALE): 715 bit/s to 3 Tbit/s. */
#define BBR3_BW_SHIFT 24
#define BBR3_MAX_BW 0xfffffffeu
#define BBR3_UNSET 0xffffffffu /* of a bound or min_rtt: none */

/* Linux adds 64 KB a burst and limits a burst to GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER. */
#define BBR3_BURST_ALLOWANCE 65536u
#define BBR3_BURST_MAX_BYTES (65536u - 1u - 320u)
#define BBR3_PACING_SHIFT 10 /* Linux sk_pacing_shift: a burst is about 1 ms */
#define BBR3_EXTRA_ACKED_EPOCH                                                                     \
	(1u << 20) /* packets after which the measurement of aggregation restarts */

/* What the ACKs that arrive now say about the last probe (draft section 2.14). */
enum bbr3_ack_phase {
	BBR3_ACKS_INIT,
	BBR3_ACKS_REFILLING,
	BBR3_ACKS_PROBE_STARTING,
	BBR3_ACKS_PROBE_FEEDBACK,
	BBR3_ACKS_PROBE_STOPPING,
};

/* One ACK as the model uses it. A sample that is not valid has only `app_limited` set. */
struct bbr3_sample {
	u32 bw;
	u32 tx_inflight; /* 0: unknown */
	u32 lost;
	u8 valid; /* delivered something over a known interval */
	u8 app_limited;
	u8 teaches; /* the model learns from it */
	u8 unused_;
};

struct bbr3 {
	u64 cycle_stamp_us; /* when this DOWN or UP began */
	u64 min_rtt_stamp_us;
	u64 probe_rtt_min_stamp_us;
	u64 probe_rtt_done_us; /* ProbeRTT may end then; 0: inflight is still too high */
	u64 extra_acked_start_us;
	u32 min_rtt_us;       /* BBR3_UNSET: no sample */
	u32 probe_rtt_min_us; /* least RTT since the last ProbeRTT was due */
	u32 next_round_delivered;
	u32 round_count;
	u32 drain_start_round;
	u32 loss_round_delivered;
	u32 max_bw[2]; /* of the last and this probing cycle */
	u32 bw_shortterm;
	u32 bw_latest;
	u32 full_bw;
	u32 inflight_longterm;
	u32 inflight_shortterm;
	u32 inflight_latest;
	u32 undo_bw_shortterm;
	u32 undo_inflight_shortterm;
	u32 undo_inflight_longterm;
	u32 extra_acked[2];
	u32 extra_acked_delivered;
	u32 probe_up_acked_per_inc;
	u32 bw_probe_up_acked;
	u32 bw_probe_wait_us;
	u32 prior_cwnd; /* last cwnd not cut by recovery or ProbeRTT */
	u32 initial_cwnd;
	u32 pacing_gain;
	u32 cwnd_gain;
	u32 lost_seen;                       /* conn->lost at the last call that looked */
	u32 ce_seen;                         /* conn->delivered_ce likewise */
	struct cc_bubble bubble;             /* sent in ProbeRTT: counts as app-limited */
	u32 ecn_delivered, ecn_delivered_ce; /* counters at the last update of ecn_alpha */
	u32 ecn_alpha;                       /* of 256 */
	u32 burst_packets; /* that a host may send at once; at least, when pacing allows */
	u32 random;
	u32 mss_bytes;
	struct bbr3_sample sample; /* the ACK at hand */
	u8 phase;                  /* enum cc_phase */
	u8 ack_phase;              /* enum bbr3_ack_phase */
	u8 undo_phase;             /* phase that loss ended in this episode; CC_PHASE_NONE */
	u8 undo_is_saved;          /* what undo restores was saved by a loss since the last ACK */
	u8 prev_ca_state;
	u8 round_start;
	u8 loss_round_start;
	u8 loss_in_round, loss_in_cycle;
	u8 ecn_in_round, ecn_in_cycle;
	u8 ecn_eligible, ecn_rounds;
	u8 full_bw_reached; /* ever */
	u8 full_bw_now;     /* since the last reset */
	u8 full_bw_count;
	u8 startup_loss_acks; /* ACKs that reported loss in this round of Startup */
	u8 bw_probe_samples;  /* ACKs now are of data sent while probing */
	u8 bw_probe_up_rounds;
	u8 rounds_since_probe;
	u8 prev_probe_too_high;
	u8 prev_probe_precautionary;
	u8 probe_rtt_round_done;
	u8 idle_restart;
	u8 has_seen_rtt;
	u8 extra_acked_slot;
	u8 extra_acked_age; /* rounds in this slot */
	u8 settled;         /* cwnd is at its target: an app-limited ACK may change nothing */
};

CC_INLINE u32 bbr3_scale(u32 value, u32 gain)
{
	return cc_mul_shift_u32(value, gain, CC_GAIN_SHIFT);
}

CC_INLINE int bbr3_is_probe_bw(const struct bbr3 *s)
{
	return s->phase >= CC_PHASE_UP && s->phase <= CC_PHASE_REFILL;
}

CC_INLINE int bbr3_is_probing(const struct bbr3 *s)
{
	return s->phase == CC_PHASE_STARTUP || s->phase == CC_PHASE_REFILL ||
	       s->phase == CC_PHASE_UP;
}

CC_INLINE u32 bbr3_max_bw(const struct bbr3 *s) { return cc_max_u32(s->max_bw[0], s->max_bw[1]); }

CC_INLINE u32 bbr3_bw(const struct bbr3 *s) { return cc_min_u32(bbr3_max_bw(s), s->bw_shortterm); }

CC_INLINE u32 bbr3_extra_acked(const struct bbr3 *s)
{
	return cc_max_u32(s->extra_acked[0], s->extra_acked[1]);
}

/* Bytes per second; Linux's order of operations. */
CC_INLINE u64 bbr3_rate_Bps(u32 bw, u32 mss_bytes, u32 gain, u32 margin_percent)
{
	u64 rate = (u64)bw * mss_bytes;

	rate = rate * gain >> CC_GAIN_SHIFT;
	return cc_mul_shift(rate, CC_USEC_PER_SEC / 100 * (100 - margin_percent), BBR3_BW_SHIFT);
}

CC_INLINE u64 bbr3_pacing_rate(const struct bbr3_params *p, const struct cc_conn *conn, u32 bw,
			       u32 gain)
{
	u64 rate = bbr3_rate_Bps(bw, conn->mss_bytes, gain, p->pacing_margin_percent);

	/* 0 would leave the rate to the host. */
	return cc_min_u64(cc_max_u64(rate, 1), conn->pacing_rate_cap_Bps);
}

CC_INLINE void bbr3_init_pacing_rate(struct bbr3 *s, const struct bbr3_params *p,
				     const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u32 rtt_us = conn->srtt_us ? conn->srtt_us : CC_USEC_PER_MSEC;
	u64 bw = cc_min_u64(((u64)ctl->cwnd << BBR3_BW_SHIFT) / rtt_us, BBR3_MAX_BW);

	if (conn->srtt_us)
		s->has_seen_rtt = 1;
	ctl->pacing_rate_Bps = bbr3_pacing_rate(p, conn, (u32)bw, p->startup_pacing_gain);
}

CC_INLINE void bbr3_set_pacing_rate(struct bbr3 *s, const struct bbr3_params *p,
				    const struct cc_conn *conn, struct cc_ctl *ctl, u32 gain)
{
	u64 rate = bbr3_pacing_rate(p, conn, bbr3_bw(s), gain);

	if (!s->has_seen_rtt && conn->srtt_us)
		bbr3_init_pacing_rate(s, p, conn, ctl);
	/* Until the pipe was full once, low samples must not slow the search. */
	if (s->full_bw_reached || rate > ctl->pacing_rate_Bps)
		ctl->pacing_rate_Bps = rate;
}

/* Packets a burst: about a millisecond at the pacing rate, more on a short path. Kept between
 * calls, because a division costs more than its four bytes. */
CC_INLINE void bbr3_update_burst(struct bbr3 *s, const struct bbr3_params *p,
				 const struct cc_conn *conn, const struct cc_ctl *ctl)
{
	u64 bytes = ctl->pacing_rate_Bps >> BBR3_PACING_SHIFT;
	u32 least = ctl->pacing_rate_Bps < p->min_tso_rate_Bps ? 1 : p->min_tso_segs;
	u32 halvings;

	if (p->tso_rtt_shift) {
		halvings = s->min_rtt_us >> (p->tso_rtt_shift & 31);
		if (halvings < 32)
			bytes += BBR3_BURST_ALLOWANCE >> halvings;
	}
	bytes = cc_min_u64(bytes, BBR3_BURST_MAX_BYTES);
	s->burst_packets = cc_max_u32((u32)bytes / cc_max_u32(conn->mss_bytes, 1), least);
}

/* ceil(gain * bw * min_rtt), in packets. */
CC_INLINE u32 bbr3_bdp(const struct bbr3 *s, u32 bw, u32 gain)
{
	u64 volume;

	if (s->min_rtt_us == BBR3_UNSET)
		return s->initial_cwnd;
	volume = cc_min_u64((u64)bw * s->min_rtt_us, (u64)CC_CWND_MAX << BBR3_BW_SHIFT);
	volume = volume * gain >> CC_GAIN_SHIFT;
	return (u32)((volume + (1u << BBR3_BW_SHIFT) - 1) >> BBR3_BW_SHIFT);
}

/* Room for the bursts that both hosts hold, and for UP to exceed even a tiny BDP. */
CC_INLINE u32 bbr3_offload_budget(const struct bbr3 *s, const struct bbr3_params *p, u32 inflight)
{
	inflight = cc_max_u32(inflight, p->offload_quanta * s->burst_packets);
	inflight = cc_max_u32(inflight, p->min_pipe_cwnd);
	return s->phase == CC_PHASE_UP ? inflight + 2 : inflight;
}

CC_INLINE u32 bbr3_inflight(const struct bbr3 *s, const struct bbr3_params *p, u32 bw, u32 gain)
{
	return bbr3_offload_budget(s, p, bbr3_bdp(s, bw, gain));
}

/* What we want in flight: the BDP, unless congestion cut cwnd. */
CC_INLINE u32 bbr3_target_inflight(const struct bbr3 *s, const struct bbr3_params *p, u32 cwnd)
{
	return cc_min_u32(bbr3_inflight(s, p, bbr3_bw(s), CC_ONE), cwnd);
}

CC_INLINE u32 bbr3_inflight_with_headroom(const struct bbr3 *s, const struct bbr3_params *p)
{
	u32 room;

	if (s->inflight_longterm == BBR3_UNSET)
		return BBR3_UNSET;
	room = cc_max_u32(bbr3_scale(s->inflight_longterm, p->headroom), 1);
	room = cc_min_u32(room, s->inflight_longterm);
	return cc_max_u32(s->inflight_longterm - room, p->min_pipe_cwnd);
}

CC_INLINE u32 bbr3_probe_rtt_cwnd(const struct bbr3 *s, const struct bbr3_params *p)
{
	return cc_max_u32(bbr3_bdp(s, bbr3_bw(s), p->probe_rtt_cwnd_gain), p->min_pipe_cwnd);
}

/* Packets that will be in the network when the next one departs: pacing below TCP (fq) holds
 * some back, and the model must not count them (Linux bbr_packets_in_net_at_edt()). */
CC_INLINE u32 bbr3_inflight_at_edt(const struct bbr3 *s, const struct cc_conn *conn, u32 inflight)
{
	u64 wait_us =
	    conn->edt_ns > conn->now_ns ? (conn->edt_ns - conn->now_ns) / CC_NSEC_PER_USEC : 0;
	u32 delivered = cc_mul_shift_u32(wait_us, bbr3_bw(s), BBR3_BW_SHIFT);

	if (s->pacing_gain > CC_ONE)
		inflight += s->burst_packets;
	return inflight > delivered ? inflight - delivered : 0;
}

CC_INLINE void bbr3_start_round(struct bbr3 *s, const struct cc_conn *conn)
{
	s->next_round_delivered = conn->delivered;
}

CC_INLINE void bbr3_update_round(struct bbr3 *s, const struct cc_conn *conn,
				 const struct cc_ack *ack)
{
	s->round_start = 0;
	if (ack->interval_us <= 0 || cc_before(ack->prior_delivered, s->next_round_delivered))
		return;
	bbr3_start_round(s, conn);
	s->round_count++;
	s->round_start = 1;
	if (s->rounds_since_probe < 255)
		s->rounds_since_probe++;
}

CC_INLINE void bbr3_take_sample(struct bbr3 *s, const struct cc_conn *conn,
				const struct cc_ack *ack)
{
	u64 bw = 0;

	s->sample.bw = 0;
	s->sample.tx_inflight = 0;
	s->sample.lost = 0;
	s->sample.valid = 0;
	s->sample.app_limited = ack->is_app_limited;
	if (!ack->prior_us)
		return;
	s->sample.tx_inflight = ack->tx_inflight;
	s->sample.lost = ack->lost;
	cc_bubble_update(&s->bubble, conn);
	if (cc_bubble_has(&s->bubble, ack))
		s->sample.app_limited = 1;
	if (ack->interval_us <= 0 || ack->delivered < 0)
		return;
	/* Rounded up, so that low rates can grow (Linux DIV_ROUND_UP). */
	bw = (((u64)(u32)ack->delivered << BBR3_BW_SHIFT) + (u32)ack->interval_us - 1) /
	     (u32)ack->interval_us;
	s->sample.bw = (u32)cc_min_u64(bw, BBR3_MAX_BW);
	s->sample.valid = ack->acked_sacked > 0;
}

/* The maximum of the last two probing cycles. */
CC_INLINE void bbr3_update_max_bw(struct bbr3 *s)
{
	if (!s->sample.app_limited || s->sample.bw >= bbr3_max_bw(s))
		s->max_bw[1] = cc_max_u32(s->max_bw[1], s->sample.bw);
}

CC_INLINE void bbr3_advance_max_bw(struct bbr3 *s)
{
	if (!s->max_bw[1])
		return; /* nothing seen in this cycle: remember the last */
	s->max_bw[0] = s->max_bw[1];
	s->max_bw[1] = 0;
}

/* What was acknowledged beyond bw * time since the last lull, at most, in recent rounds. */
CC_INLINE void bbr3_update_ack_aggregation(struct bbr3 *s, const struct bbr3_params *p,
					   const struct cc_conn *conn, const struct cc_ack *ack,
					   u32 cwnd)
{
	u32 expected, extra, rounds = s->full_bw_reached ? p->extra_acked_rounds : 1;
	u64 elapsed_us;

	if (!p->extra_acked_gain || !ack->acked_sacked || ack->delivered < 0 ||
	    ack->interval_us <= 0)
		return;
	if (s->round_start) {
		s->extra_acked_age = (u8)cc_min_u32(31, s->extra_acked_age + 1u);
		if (s->extra_acked_age >= rounds) {
			s->extra_acked_age = 0;
			s->extra_acked_slot = !s->extra_acked_slot;
			s->extra_acked[s->extra_acked_slot & 1] = 0;
		}
	}
	elapsed_us = conn->delivered_us > s->extra_acked_start_us
			 ? conn->delivered_us - s->extra_acked_start_us
			 : 0;
	expected = cc_mul_shift_u32(elapsed_us, bbr3_bw(s), BBR3_BW_SHIFT);
	if (s->extra_acked_delivered <= expected ||
	    s->extra_acked_delivered + ack->acked_sacked >= BBR3_EXTRA_ACKED_EPOCH) {
		s->extra_acked_delivered = 0;
		s->extra_acked_start_us = conn->delivered_us;
		expected = 0;
	}
	s->extra_acked_delivered =
	    cc_min_u32(BBR3_EXTRA_ACKED_EPOCH - 1, s->extra_acked_delivered + ack->acked_sacked);
	extra = cc_min_u32(s->extra_acked_delivered - expected, cwnd);
	if (extra > s->extra_acked[s->extra_acked_slot & 1])
		s->extra_acked[s->extra_acked_slot & 1] = extra;
}

CC_INLINE u32 bbr3_aggregation_allowance(const struct bbr3 *s, const struct bbr3_params *p)
{
	u32 allowance = bbr3_scale(bbr3_extra_acked(s), p->extra_acked_gain);

	if (p->extra_acked_max_us)
		allowance = cc_min_u32(
		    allowance, cc_mul_shift_u32(bbr3_bw(s), p->extra_acked_max_us, BBR3_BW_SHIFT));
	return allowance;
}

CC_INLINE void bbr3_reset_full_bw(struct bbr3 *s)
{
	s->full_bw = 0;
	s->full_bw_count = 0;
	s->full_bw_now = 0;
}

CC_INLINE int bbr3_rtt_is_inflated(const struct bbr3 *s, const struct bbr3_params *p,
				   const struct cc_conn *conn)
{
	return s->min_rtt_us != BBR3_UNSET && conn->srtt_us > s->min_rtt_us &&
	       conn->srtt_us - s->min_rtt_us > p->smart_exit_delta_us;
}

/* BBR-n+'s exit, once a round: only bandwidth below thresh * full_bw with an inflated RTT counts;
 * anything else renews full_bw. Algorithm 1 prints the sample and alpha = 0.85, a fall; the
 * authors' pseudocode has max_bw and the threshold of BBR's plateau test, a growth too small. */
CC_INLINE void bbr3_check_smart_exit(struct bbr3 *s, const struct bbr3_params *p,
				     const struct cc_conn *conn, u32 bw, u32 thresh)
{
	if (!s->round_start)
		return;
	if (bw >= bbr3_scale(s->full_bw, thresh) || !bbr3_rtt_is_inflated(s, p, conn)) {
		s->full_bw = bw;
		s->full_bw_count = 0;
	} else if (++s->full_bw_count >= p->smart_exit_count) {
		s->full_bw_now = 1;
		s->full_bw_reached = 1;
	}
}

/* Has bandwidth stopped growing, in Startup or in UP? */
CC_INLINE void bbr3_check_full_bw(struct bbr3 *s, const struct bbr3_params *p,
				  const struct cc_conn *conn)
{
	u32 bw = s->sample.bw, count = p->full_bw_count;
	int smart = p->smart_exit != BBR3_EXIT_PLAIN && !s->full_bw_reached;

	if (s->full_bw_now || s->sample.app_limited)
		return;
	if (p->bbr2_rules) {
		if (s->full_bw_reached)
			return;
		bw = bbr3_max_bw(s);
	}
	if (smart && p->smart_exit == BBR3_EXIT_LITERAL) {
		bbr3_check_smart_exit(s, p, conn, bw, p->smart_exit_alpha);
		return;
	}
	if (smart && p->smart_exit == BBR3_EXIT_AUTHORS) {
		bbr3_check_smart_exit(s, p, conn, bbr3_max_bw(s), p->full_bw_thresh);
		return;
	}
	if (!s->round_start && !p->full_bw_every_ack)
		return;
	if (bw >= bbr3_scale(s->full_bw, p->full_bw_thresh)) {
		bbr3_reset_full_bw(s);
		s->full_bw = bw;
		return;
	}
	if (!s->round_start)
		return;
	if (smart) {
		count = p->smart_exit_count;
		if (!bbr3_rtt_is_inflated(s, p, conn)) {
			s->full_bw_count =
			    0; /* the receiver's window, not the path, holds the rate */
			return;
		}
	}
	if (++s->full_bw_count >= count) {
		s->full_bw_now = 1;
		s->full_bw_reached = 1;
	}
}

#endif
