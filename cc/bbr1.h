/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * bbr1.h - BBRv1 as mainline Linux has it (tcp_bbr.c), after Cardwell et al., "BBR:
 * Congestion-Based Congestion Control", ACM Queue 14(5), 2016.
 *
 * The path is modelled by two numbers: the bottleneck's bandwidth (the largest delivery rate of
 * the last ten rounds) and the round trip without a queue (the least RTT of ten seconds). Packets
 * are paced at the first, and at most two products of both are in flight.
 *
 *             |
 *             v
 *        +--> STARTUP --full--> DRAIN --inflight <= BDP--> PROBE_BW (8 phases, 5/4 3/4 1 1 ...)
 *        |                                                    |   ^
 *        |  pipe not known to be full    no lower RTT for 10 s|   | pipe known to be full
 *        +---------------------------- PROBE_RTT <------------+---+
 *
 * Long-term ("lt") bandwidth: two intervals in a row with heavy loss and the same delivery rate
 * mean a token-bucket policer; for 48 rounds the flow then sends at that rate.
 *
 * Differences from tcp_bbr.c:
 * - A stock kernel does not let every host write tp->app_limited. What is sent in PROBE_RTT is
 *   recognised instead by `delivered` at its sending, which says the same.
 * - The random start of the gain cycle is the algorithm's own generator.
 * - Times in jiffies are times in ms here.
 */
#ifndef FULLPIPE_CC_BBR1_H
#define FULLPIPE_CC_BBR1_H

#include "bubble.h"
#include "cc_more.h"
#include "fixed.h"
#include "minmax.h"
#include "params.h"
#include "state.h"

#define bbr1_FLAGS (CC_OWNS_CWND | CC_SEND_IS_PURE)

/* clang-format off */
#define bbr1_PARAMS(P)                                                                             \
	P(high_gain, CC_LINUX_GAIN(739), CC_ONE, 8 * CC_ONE, CC_ONE, "of bw", "not allowed",         \
	  "tcp_bbr.c bbr_high_gain (2/ln 2)", "pacing and cwnd gain in Startup")                     \
	P(drain_gain, CC_LINUX_GAIN(88), 1, CC_ONE, CC_ONE, "of bw", "not allowed",                  \
	  "tcp_bbr.c bbr_drain_gain", "pacing gain in Drain")                                          \
	P(cwnd_gain, 2 * CC_ONE, CC_ONE / 2, 8 * CC_ONE, CC_ONE, "of BDP", "not allowed",            \
	  "tcp_bbr.c bbr_cwnd_gain", "window in ProbeBW")                                              \
	P(probe_up_gain, CC_RATIO(5, 4), CC_ONE, 4 * CC_ONE, CC_ONE, "of bw", "not allowed",         \
	  "tcp_bbr.c bbr_pacing_gain[0]", "pacing gain of the probing phase")                          \
	P(probe_down_gain, CC_RATIO(3, 4), 1, CC_ONE, CC_ONE, "of bw", "not allowed",                \
	  "tcp_bbr.c bbr_pacing_gain[1]", "pacing gain of the draining phase")                         \
	P(bw_window_rounds, 10, 1, 1000, 1, "rounds", "not allowed", "tcp_bbr.c bbr_bw_rtts",        \
	  "window of the bandwidth filter")                                                            \
	P(min_rtt_window_ms, 10000, 100, 600000, 1, "ms", "not allowed",                             \
	  "tcp_bbr.c bbr_min_rtt_win_sec", "window of the RTT filter; then ProbeRTT")                \
	P(probe_rtt_ms, 200, 0, 10000, 1, "ms", "no ProbeRTT", "tcp_bbr.c bbr_probe_rtt_mode_ms",    \
	  "least time in ProbeRTT")                                                                    \
	P(min_cwnd, 4, 1, 1000, 1, "packets", "not allowed", "tcp_bbr.c bbr_cwnd_min_target",        \
	  "least window, and the window in ProbeRTT")                                                  \
	P(full_bw_growth, CC_RATIO(5, 4), CC_ONE, 4 * CC_ONE, CC_ONE, "ratio", "not allowed",        \
	  "tcp_bbr.c bbr_full_bw_thresh", "growth a round that says there is more bandwidth")          \
	P(full_bw_rounds, 3, 1, 100, 1, "rounds", "not allowed", "tcp_bbr.c bbr_full_bw_cnt",        \
	  "rounds without it that end Startup")                                                        \
	P(pacing_margin_percent, 1, 0, 50, 1, "percent", "no margin",                                \
	  "tcp_bbr.c bbr_pacing_margin_percent", "pace so much below the estimate")                    \
	P(extra_acked_gain, CC_ONE, 0, 4 * CC_ONE, CC_ONE, "ratio", "no allowance",                  \
	  "tcp_bbr.c bbr_extra_acked_gain", "allowance for aggregated ACKs in the window")             \
	P(extra_acked_rounds, 5, 1, 31, 1, "rounds", "not allowed",                                  \
	  "tcp_bbr.c bbr_extra_acked_win_rtts", "window of that estimate")                             \
	P(extra_acked_max_us, 100000, 0, 10000000, 1, "us", "no allowance",                          \
	  "tcp_bbr.c bbr_extra_acked_max_us", "largest allowance, in time at the bandwidth")           \
	P(offload_budget, 3, 0, 100, 1, "bursts", "no budget",                                       \
	  "tcp_bbr.c bbr_quantization_budget()", "allowance for bursts in the hosts")                  \
	P(lt_intvl_min_rounds, 4, 1, 1000, 1, "rounds", "not allowed",                               \
	  "tcp_bbr.c bbr_lt_intvl_min_rtts", "least length of a policer sample")                       \
	P(lt_loss_thresh, CC_LINUX_GAIN(50), 0, CC_ONE, CC_ONE, "ratio", "any loss",                 \
	  "tcp_bbr.c bbr_lt_loss_thresh", "loss that suggests a policer")                              \
	P(lt_bw_ratio, CC_RATIO(1, 8), 0, CC_ONE, CC_ONE, "ratio", "equal rates only",               \
	  "tcp_bbr.c bbr_lt_bw_ratio", "two samples within it agree")                                  \
	P(lt_bw_diff, 500, 0, 1000000, 1, "bytes/s", "ratio only", "tcp_bbr.c bbr_lt_bw_diff",       \
	  "or within this difference")                                                                 \
	P(lt_bw_max_rounds, 48, 0, 10000, 1, "rounds", "not used", "tcp_bbr.c bbr_lt_bw_max_rtts",   \
	  "how long a policer's rate is used")
/* clang-format on */

struct bbr1_params {
	bbr1_PARAMS(CC_PARAM_FIELD)
};

#define BBR1_BW_SHIFT 24 /* bandwidth is in packets/us, times 2^24 (BW_SCALE) */
#define BBR1_MAX_BW 0xffffffffu
#define BBR1_CYCLE 8
#define BBR1_INITIAL_CWND 10 /* TCP_INIT_CWND */
#define BBR1_NO_RTT 0xffffffffu
#define BBR1_BURST_SHIFT 10 /* a burst lasts about a ms at the pacing rate (sk_pacing_shift) */
#define BBR1_GSO_MAX_BYTES (65536u - 1u - 320u)
#define BBR1_EPOCH_MAX 0xfffffu

enum bbr1_mode { BBR1_STARTUP, BBR1_DRAIN, BBR1_PROBE_BW, BBR1_PROBE_RTT };

struct bbr1 {
	u64 cycle_us; /* when this phase of the gain cycle began */
	u64 ack_epoch_us;
	u64 min_rtt_ms;        /* when min_rtt_us was measured */
	u64 probe_rtt_done_ms; /* when ProbeRTT may end; 0: inflight is not low yet */
	u64 lt_last_ms;
	struct cc_minmax bw;
	u32 min_rtt_us;
	u32 rounds;
	u32 next_round_delivered;
	u32 lt_bw, lt_last_delivered, lt_last_lost, lt_rounds;
	u32 pacing_gain, cwnd_gain;
	u32 prior_cwnd;
	u32 full_bw;
	u32 extra_acked[2];
	u32 ack_epoch_acked, extra_acked_age;
	struct cc_bubble bubble; /* sent in ProbeRTT: counts as application-limited */
	u32 random;
	u32 mss_bytes; /* for the recording only */
	u8 mode, prev_ca_state, cycle_idx, full_bw_cnt;
	u8 full_bw_reached, has_seen_rtt, round_start, idle_restart;
	u8 packet_conservation, probe_rtt_round_done, lt_is_sampling, lt_use_bw;
	u8 extra_acked_idx;
	u8 unused_[3];
};

CC_INLINE u64 bbr1_now_ms(const struct cc_conn *conn) { return conn->now_us / CC_USEC_PER_MSEC; }

CC_INLINE u32 bbr1_max_bw(const struct bbr1 *s) { return cc_max_of(&s->bw); }

CC_INLINE u32 bbr1_bw(const struct bbr1 *s) { return s->lt_use_bw ? s->lt_bw : bbr1_max_bw(s); }

/* A rate in bytes/s from one in packets/us, with gain and margin (bbr_rate_bytes_per_sec()). */
CC_INLINE u64 bbr1_bytes_per_s(const struct bbr1_params *p, const struct cc_conn *conn, u32 bw,
			       u32 gain)
{
	u64 rate = bw;

	rate = rate * conn->mss_bytes * gain >> CC_GAIN_SHIFT;
	return cc_mul_shift(rate, CC_USEC_PER_SEC / 100 * (100 - p->pacing_margin_percent),
			    BBR1_BW_SHIFT);
}

/* As bbr1_bytes_per_s(), and never the 0 by which the host would choose a rate. */
CC_INLINE u64 bbr1_pacing_rate(const struct bbr1_params *p, const struct cc_conn *conn, u32 bw,
			       u32 gain)
{
	return cc_max_u64(bbr1_bytes_per_s(p, conn, bw, gain), 1);
}

CC_INLINE void bbr1_init_pacing_rate(struct bbr1 *s, const struct bbr1_params *p,
				     const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u32 rtt_us = CC_USEC_PER_MSEC; /* before the first sample: 1 ms */
	u64 bw;

	if (conn->srtt_us) {
		rtt_us = conn->srtt_us;
		s->has_seen_rtt = 1;
	}
	bw = cc_min_u64(((u64)ctl->cwnd << BBR1_BW_SHIFT) / rtt_us, BBR1_MAX_BW);
	ctl->pacing_rate_Bps = bbr1_pacing_rate(p, conn, (u32)bw, p->high_gain);
}

/* In Startup the rate only rises (bbr_set_pacing_rate()). */
CC_INLINE void bbr1_set_pacing_rate(struct bbr1 *s, const struct bbr1_params *p,
				    const struct cc_conn *conn, u32 bw, u32 gain,
				    struct cc_ctl *ctl)
{
	u64 rate = cc_min_u64(bbr1_pacing_rate(p, conn, bw, gain), conn->pacing_rate_cap_Bps);

	if (!s->has_seen_rtt && conn->srtt_us)
		bbr1_init_pacing_rate(s, p, conn, ctl);
	if (s->full_bw_reached || rate > ctl->pacing_rate_Bps)
		ctl->pacing_rate_Bps = rate;
}

/* Slow connections send single packets (bbr_min_tso_segs()). */
CC_INLINE u32 bbr1_least_burst(const struct cc_ctl *ctl)
{
	return ctl->pacing_rate_Bps < 1200000 / 8 ? 1 : 2;
}

CC_INLINE u32 bbr1_burst(const struct cc_conn *conn, const struct cc_ctl *ctl)
{
	u64 bytes = cc_min_u64(ctl->pacing_rate_Bps >> BBR1_BURST_SHIFT, BBR1_GSO_MAX_BYTES);
	u32 packets = (u32)bytes / cc_max_u32(conn->mss_bytes, 1);

	return cc_min_u32(cc_max_u32(packets, bbr1_least_burst(ctl)), 127);
}

CC_INLINE void bbr1_save_cwnd(struct bbr1 *s, u32 cwnd)
{
	if (s->prev_ca_state < CC_RECOVERY && s->mode != BBR1_PROBE_RTT)
		s->prior_cwnd = cwnd;
	else
		s->prior_cwnd = cc_max_u32(s->prior_cwnd, cwnd);
}

CC_INLINE u32 bbr1_bdp(const struct bbr1 *s, u32 bw, u32 gain)
{
	u64 product;

	if (s->min_rtt_us == BBR1_NO_RTT)
		return BBR1_INITIAL_CWND;
	product = cc_min_u64((u64)bw * s->min_rtt_us, (u64)CC_CWND_MAX << BBR1_BW_SHIFT);
	return (u32)(((product * gain >> CC_GAIN_SHIFT) + (1u << BBR1_BW_SHIFT) - 1) >>
		     BBR1_BW_SHIFT);
}

/* Room for bursts in both hosts, and for two packets more where probing must show
 * (bbr_quantization_budget()). */
CC_INLINE u32 bbr1_with_budget(const struct bbr1 *s, const struct bbr1_params *p,
			       const struct cc_conn *conn, const struct cc_ctl *ctl, u32 cwnd)
{
	if (p->offload_budget) {
		cwnd += p->offload_budget * bbr1_burst(conn, ctl);
		cwnd = (cwnd + 1) & ~1u;
	}
	if (s->mode == BBR1_PROBE_BW && s->cycle_idx == 0)
		cwnd += 2;
	return cwnd;
}

CC_INLINE u32 bbr1_inflight(const struct bbr1 *s, const struct bbr1_params *p,
			    const struct cc_conn *conn, const struct cc_ctl *ctl, u32 bw, u32 gain)
{
	return bbr1_with_budget(s, p, conn, ctl, bbr1_bdp(s, bw, gain));
}

/* What will be in the network when the next packet leaves (bbr_packets_in_net_at_edt()). */
CC_INLINE u32 bbr1_inflight_at_edt(const struct bbr1 *s, const struct cc_conn *conn,
				   const struct cc_ctl *ctl, u32 inflight)
{
	u64 edt_ns = cc_max_u64(conn->edt_ns, conn->now_ns);
	u64 us = (edt_ns - conn->now_ns) / CC_NSEC_PER_USEC;
	u32 delivered = cc_mul_shift_u32(us, bbr1_bw(s), BBR1_BW_SHIFT);

	if (s->pacing_gain > CC_ONE)
		inflight += bbr1_burst(conn, ctl);
	return delivered >= inflight ? 0 : inflight - delivered;
}

CC_INLINE u32 bbr1_aggregation_cwnd(const struct bbr1 *s, const struct bbr1_params *p)
{
	u32 most = cc_max_u32(s->extra_acked[0], s->extra_acked[1]);
	u64 limit = (u64)bbr1_bw(s) * p->extra_acked_max_us >> BBR1_BW_SHIFT;

	if (!p->extra_acked_gain || !s->full_bw_reached)
		return 0;
	return (u32)cc_min_u64((u64)p->extra_acked_gain * most >> CC_GAIN_SHIFT, limit);
}

CC_INLINE void bbr1_advance_cycle(struct bbr1 *s, const struct cc_conn *conn)
{
	s->cycle_idx = (s->cycle_idx + 1) & (BBR1_CYCLE - 1);
	s->cycle_us = conn->delivered_us;
}

/* Any phase but the draining one may be the first. */
CC_INLINE void bbr1_enter_probe_bw(struct bbr1 *s, const struct cc_conn *conn)
{
	s->mode = BBR1_PROBE_BW;
	s->cycle_idx = (u8)(BBR1_CYCLE - 1 - cc_random_below(&s->random, BBR1_CYCLE - 1));
	bbr1_advance_cycle(s, conn);
}

CC_INLINE void bbr1_reset_mode(struct bbr1 *s, const struct cc_conn *conn)
{
	if (s->full_bw_reached)
		bbr1_enter_probe_bw(s, conn);
	else
		s->mode = BBR1_STARTUP;
}

CC_INLINE void bbr1_reset_lt_interval(struct bbr1 *s, const struct cc_conn *conn)
{
	s->lt_last_ms = conn->delivered_us / CC_USEC_PER_MSEC;
	s->lt_last_delivered = conn->delivered;
	s->lt_last_lost = conn->lost;
	s->lt_rounds = 0;
}

CC_INLINE void bbr1_reset_lt(struct bbr1 *s, const struct cc_conn *conn)
{
	s->lt_bw = 0;
	s->lt_use_bw = 0;
	s->lt_is_sampling = 0;
	bbr1_reset_lt_interval(s, conn);
}

CC_INLINE void bbr1_lt_interval_done(struct bbr1 *s, const struct bbr1_params *p,
				     const struct cc_conn *conn, u32 bw)
{
	if (s->lt_bw) {
		u32 diff = bw > s->lt_bw ? bw - s->lt_bw : s->lt_bw - bw;

		if ((u64)diff * CC_ONE <= (u64)p->lt_bw_ratio * s->lt_bw ||
		    bbr1_bytes_per_s(p, conn, diff, CC_ONE) <= p->lt_bw_diff) {
			s->lt_bw = (u32)(((u64)bw + s->lt_bw) >> 1);
			s->lt_use_bw = 1;
			s->pacing_gain = CC_ONE;
			s->lt_rounds = 0;
			return;
		}
	}
	s->lt_bw = bw;
	bbr1_reset_lt_interval(s, conn);
}

/* bbr_lt_bw_sampling() */
CC_INLINE void bbr1_sample_lt(struct bbr1 *s, const struct bbr1_params *p,
			      const struct cc_conn *conn, u32 losses, u32 app_limited)
{
	u32 lost, delivered;
	u64 ms, bw;

	if (!p->lt_bw_max_rounds)
		return;
	if (s->lt_use_bw) {
		if (s->mode == BBR1_PROBE_BW && s->round_start &&
		    ++s->lt_rounds >= p->lt_bw_max_rounds) {
			bbr1_reset_lt(s, conn);
			bbr1_enter_probe_bw(s, conn);
		}
		return;
	}
	if (!s->lt_is_sampling) {
		if (!losses)
			return;
		bbr1_reset_lt_interval(s, conn);
		s->lt_is_sampling = 1;
	}
	if (app_limited) {
		bbr1_reset_lt(s, conn);
		return;
	}
	if (s->round_start)
		s->lt_rounds++;
	if (s->lt_rounds < p->lt_intvl_min_rounds)
		return;
	if (s->lt_rounds > 4 * p->lt_intvl_min_rounds) {
		bbr1_reset_lt(s, conn);
		return;
	}
	/* An interval ends with a loss, when tokens are exhausted. */
	if (!losses)
		return;
	lost = conn->lost - s->lt_last_lost;
	delivered = conn->delivered - s->lt_last_delivered;
	if (!delivered || (u64)lost * CC_ONE < (u64)p->lt_loss_thresh * delivered)
		return;
	ms = conn->delivered_us / CC_USEC_PER_MSEC - s->lt_last_ms;
	if ((s64)ms < 1)
		return;
	ms = cc_min_u64(ms, 0xffffffffu);
	bw = ((u64)delivered << BBR1_BW_SHIFT) / (ms * CC_USEC_PER_MSEC);
	bbr1_lt_interval_done(s, p, conn, (u32)cc_min_u64(bw, BBR1_MAX_BW));
}

CC_INLINE void bbr1_update_bw(struct bbr1 *s, const struct bbr1_params *p,
			      const struct cc_conn *conn, const struct cc_ack *ack, u32 app_limited)
{
	u64 bw;

	s->round_start = 0;
	if (ack->delivered < 0 || ack->interval_us <= 0)
		return;
	if (!cc_before(ack->prior_delivered, s->next_round_delivered)) {
		s->next_round_delivered = conn->delivered;
		s->rounds++;
		s->round_start = 1;
		s->packet_conservation = 0;
	}
	bbr1_sample_lt(s, p, conn, ack->losses, app_limited);
	bw = ((u64)(u32)ack->delivered << BBR1_BW_SHIFT) / (u32)ack->interval_us;
	bw = cc_min_u64(bw, BBR1_MAX_BW);
	if (!app_limited || bw >= bbr1_max_bw(s))
		cc_max_update(&s->bw, p->bw_window_rounds, s->rounds, (u32)bw);
}

/* How many packets more than the bandwidth explains were acknowledged in a burst
 * (bbr_update_ack_aggregation()). */
CC_INLINE void bbr1_update_aggregation(struct bbr1 *s, const struct bbr1_params *p,
				       const struct cc_conn *conn, const struct cc_ack *ack,
				       u32 cwnd)
{
	u32 idx, extra;
	u64 expected;

	if (!p->extra_acked_gain || !ack->acked_sacked || ack->delivered < 0 ||
	    ack->interval_us <= 0)
		return;
	if (s->round_start && ++s->extra_acked_age >= p->extra_acked_rounds) {
		s->extra_acked_age = 0;
		s->extra_acked_idx ^= 1;
		s->extra_acked[s->extra_acked_idx & 1] = 0;
	}
	expected =
	    cc_mul_shift_u32(conn->delivered_us - s->ack_epoch_us, bbr1_bw(s), BBR1_BW_SHIFT);
	if (s->ack_epoch_acked <= expected ||
	    s->ack_epoch_acked + ack->acked_sacked >= BBR1_EPOCH_MAX + 1) {
		s->ack_epoch_acked = 0;
		s->ack_epoch_us = conn->delivered_us;
		expected = 0;
	}
	s->ack_epoch_acked = cc_min_u32(BBR1_EPOCH_MAX, s->ack_epoch_acked + ack->acked_sacked);
	extra = cc_min_u32(s->ack_epoch_acked - (u32)expected, cwnd);
	idx = s->extra_acked_idx & 1;
	s->extra_acked[idx] = cc_max_u32(s->extra_acked[idx], extra);
}

/* bbr_is_next_cycle_phase() */
CC_INLINE u32 bbr1_phase_is_over(const struct bbr1 *s, const struct bbr1_params *p,
				 const struct cc_conn *conn, const struct cc_ack *ack,
				 const struct cc_ctl *ctl)
{
	u32 full_length = conn->delivered_us - s->cycle_us > s->min_rtt_us;
	u32 inflight;

	if ((s64)(conn->delivered_us - s->cycle_us) < 0)
		full_length = 0;
	if (s->pacing_gain == CC_ONE)
		return full_length;
	inflight = bbr1_inflight_at_edt(s, conn, ctl, ack->prior_inflight);
	if (s->pacing_gain > CC_ONE)
		return full_length &&
		       (ack->losses ||
			inflight >= bbr1_inflight(s, p, conn, ctl, bbr1_max_bw(s), s->pacing_gain));
	return full_length || inflight <= bbr1_inflight(s, p, conn, ctl, bbr1_max_bw(s), CC_ONE);
}

CC_INLINE void bbr1_check_full_bw(struct bbr1 *s, const struct bbr1_params *p, u32 app_limited)
{
	u32 bw = bbr1_max_bw(s);

	if (s->full_bw_reached || !s->round_start || app_limited)
		return;
	if (bw >= (u64)s->full_bw * p->full_bw_growth >> CC_GAIN_SHIFT) {
		s->full_bw = bw;
		s->full_bw_cnt = 0;
		return;
	}
	s->full_bw_cnt++;
	s->full_bw_reached = s->full_bw_cnt >= p->full_bw_rounds;
}

CC_INLINE void bbr1_check_drain(struct bbr1 *s, const struct bbr1_params *p,
				const struct cc_conn *conn, struct cc_ctl *ctl)
{
	u32 target;

	if (s->mode == BBR1_STARTUP && s->full_bw_reached) {
		s->mode = BBR1_DRAIN;
		ctl->ssthresh = bbr1_inflight(s, p, conn, ctl, bbr1_max_bw(s), CC_ONE);
	}
	if (s->mode != BBR1_DRAIN)
		return;
	target = bbr1_inflight(s, p, conn, ctl, bbr1_max_bw(s), CC_ONE);
	if (bbr1_inflight_at_edt(s, conn, ctl, conn->inflight) <= target)
		bbr1_enter_probe_bw(s, conn);
}

CC_INLINE void bbr1_check_probe_rtt_done(struct bbr1 *s, const struct cc_conn *conn,
					 struct cc_ctl *ctl)
{
	if (!s->probe_rtt_done_ms || bbr1_now_ms(conn) <= s->probe_rtt_done_ms)
		return;
	s->min_rtt_ms = bbr1_now_ms(conn);
	ctl->cwnd = cc_max_u32(ctl->cwnd, s->prior_cwnd);
	bbr1_reset_mode(s, conn);
}

/* bbr_update_min_rtt() */
CC_INLINE void bbr1_update_min_rtt(struct bbr1 *s, const struct bbr1_params *p,
				   const struct cc_conn *conn, const struct cc_ack *ack,
				   struct cc_ctl *ctl)
{
	u32 expired = bbr1_now_ms(conn) > s->min_rtt_ms + p->min_rtt_window_ms;

	if (ack->rtt_us >= 0 &&
	    ((u32)ack->rtt_us < s->min_rtt_us || (expired && !ack->is_ack_delayed))) {
		s->min_rtt_us = (u32)ack->rtt_us;
		s->min_rtt_ms = bbr1_now_ms(conn);
	}
	if (p->probe_rtt_ms && expired && !s->idle_restart && s->mode != BBR1_PROBE_RTT) {
		s->mode = BBR1_PROBE_RTT;
		bbr1_save_cwnd(s, ctl->cwnd);
		s->probe_rtt_done_ms = 0;
	}
	if (s->mode == BBR1_PROBE_RTT) {
		cc_bubble_extend(&s->bubble, conn);
		if (!s->probe_rtt_done_ms && conn->inflight <= p->min_cwnd) {
			s->probe_rtt_done_ms = bbr1_now_ms(conn) + p->probe_rtt_ms;
			s->probe_rtt_round_done = 0;
			s->next_round_delivered = conn->delivered;
		} else if (s->probe_rtt_done_ms) {
			if (s->round_start)
				s->probe_rtt_round_done = 1;
			if (s->probe_rtt_round_done)
				bbr1_check_probe_rtt_done(s, conn, ctl);
		}
	}
	if (ack->delivered > 0)
		s->idle_restart = 0;
}

CC_INLINE void bbr1_update_gains(struct bbr1 *s, const struct bbr1_params *p)
{
	s->pacing_gain = CC_ONE;
	if (s->mode == BBR1_STARTUP) {
		s->pacing_gain = p->high_gain;
		s->cwnd_gain = p->high_gain;
	} else if (s->mode == BBR1_DRAIN) {
		s->pacing_gain = p->drain_gain;
		s->cwnd_gain = p->high_gain;
	} else if (s->mode == BBR1_PROBE_BW) {
		if (!s->lt_use_bw && s->cycle_idx == 0)
			s->pacing_gain = p->probe_up_gain;
		else if (!s->lt_use_bw && s->cycle_idx == 1)
			s->pacing_gain = p->probe_down_gain;
		s->cwnd_gain = p->cwnd_gain;
	} else {
		s->cwnd_gain = CC_ONE;
	}
}

/* One packet out for each packet in, during the first round of recovery; the old window after it
 * (bbr_set_cwnd_to_recover_or_restore()). True if the window is decided. */
CC_INLINE u32 bbr1_recover_or_restore(struct bbr1 *s, const struct cc_conn *conn,
				      const struct cc_ack *ack, u32 *cwnd)
{
	u8 state = conn->ca_state;

	if (ack->losses)
		*cwnd = *cwnd > ack->losses ? *cwnd - ack->losses : 1;
	if (state == CC_RECOVERY && s->prev_ca_state != CC_RECOVERY) {
		s->packet_conservation = 1;
		s->next_round_delivered = conn->delivered;
		*cwnd = conn->inflight + ack->acked_sacked;
	} else if (s->prev_ca_state >= CC_RECOVERY && state < CC_RECOVERY) {
		*cwnd = cc_max_u32(*cwnd, s->prior_cwnd);
		s->packet_conservation = 0;
	}
	s->prev_ca_state = state;
	if (!s->packet_conservation)
		return 0;
	*cwnd = cc_max_u32(*cwnd, conn->inflight + ack->acked_sacked);
	return 1;
}

CC_INLINE void bbr1_set_cwnd(struct bbr1 *s, const struct bbr1_params *p,
			     const struct cc_conn *conn, const struct cc_ack *ack,
			     struct cc_ctl *ctl)
{
	u32 cwnd = ctl->cwnd, target;

	if (ack->acked_sacked && !bbr1_recover_or_restore(s, conn, ack, &cwnd)) {
		target = bbr1_bdp(s, bbr1_bw(s), s->cwnd_gain) + bbr1_aggregation_cwnd(s, p);
		target = bbr1_with_budget(s, p, conn, ctl, target);
		if (s->full_bw_reached)
			cwnd = cc_min_u32(cwnd + ack->acked_sacked, target);
		else if (cwnd < target || conn->delivered < BBR1_INITIAL_CWND)
			cwnd += ack->acked_sacked;
		cwnd = cc_max_u32(cwnd, p->min_cwnd);
	}
	ctl->cwnd = cc_min_u32(cwnd, conn->cwnd_clamp);
	if (s->mode == BBR1_PROBE_RTT)
		ctl->cwnd = cc_min_u32(ctl->cwnd, p->min_cwnd);
}

CC_INLINE void bbr1_init(struct bbr1 *s, const struct bbr1_params *p, const struct cc_conn *conn,
			 struct cc_ctl *ctl)
{
	ctl->ssthresh = CC_INFINITE;
	ctl->sndbuf_factor = 3;
	s->random = cc_random_start(conn->seed);
	s->mss_bytes = conn->mss_bytes;
	s->prev_ca_state = CC_OPEN;
	s->min_rtt_us = conn->srtt_us ? conn->srtt_us : BBR1_NO_RTT;
	s->min_rtt_ms = bbr1_now_ms(conn);
	s->next_round_delivered = conn->delivered;
	cc_max_reset(&s->bw, 0, 0);
	bbr1_init_pacing_rate(s, p, conn, ctl);
	bbr1_reset_lt(s, conn);
	s->mode = BBR1_STARTUP;
	s->ack_epoch_us = conn->now_us;
	s->extra_acked_age = 0;
	bbr1_update_gains(s, p);
}

CC_INLINE void bbr1_on_ack(struct bbr1 *s, const struct bbr1_params *p, const struct cc_conn *conn,
			   const struct cc_ack *ack, struct cc_ctl *ctl)
{
	u32 app_limited;

	cc_bubble_update(&s->bubble, conn);
	app_limited = ack->is_app_limited || cc_bubble_has(&s->bubble, ack);
	bbr1_update_bw(s, p, conn, ack, app_limited);
	bbr1_update_aggregation(s, p, conn, ack, ctl->cwnd);
	if (s->mode == BBR1_PROBE_BW && bbr1_phase_is_over(s, p, conn, ack, ctl))
		bbr1_advance_cycle(s, conn);
	bbr1_check_full_bw(s, p, app_limited);
	bbr1_check_drain(s, p, conn, ctl);
	bbr1_update_min_rtt(s, p, conn, ack, ctl);
	bbr1_update_gains(s, p);
	bbr1_set_pacing_rate(s, p, conn, bbr1_bw(s), s->pacing_gain, ctl);
	bbr1_set_cwnd(s, p, conn, ack, ctl);
}

CC_INLINE void bbr1_on_event(struct bbr1 *s, const struct bbr1_params *p,
			     const struct cc_conn *conn, const struct cc_event *event,
			     struct cc_ctl *ctl)
{
	if (event->kind == CC_EVENT_SEND) {
		ctl->tso_segs = bbr1_least_burst(ctl);
	} else if (event->kind == CC_EVENT_SSTHRESH) {
		bbr1_save_cwnd(s, ctl->cwnd);
	} else if (event->kind == CC_EVENT_UNDO) {
		/* A spurious slow-down must not be taken for a full pipe. */
		s->full_bw = 0;
		s->full_bw_cnt = 0;
		bbr1_reset_lt(s, conn);
	} else if (event->kind == CC_EVENT_STATE && event->value == CC_LOSS) {
		s->prev_ca_state = CC_LOSS;
		s->full_bw = 0;
		s->round_start = 1; /* a timeout is like the end of a round */
		bbr1_sample_lt(s, p, conn, 1, 0);
	} else if (event->kind == CC_EVENT_TX_START &&
		   (conn->app_limited || cc_bubble_is_open(&s->bubble, conn))) {
		s->idle_restart = 1;
		s->ack_epoch_us = conn->now_us;
		s->ack_epoch_acked = 0;
		/* The pipe is empty: no need to probe or to drain. */
		if (s->mode == BBR1_PROBE_BW)
			bbr1_set_pacing_rate(s, p, conn, bbr1_bw(s), CC_ONE, ctl);
		else if (s->mode == BBR1_PROBE_RTT)
			bbr1_check_probe_rtt_done(s, conn, ctl);
	}
}

#define bbr1_STATE(S)                                                                              \
	S(phase, "phase", 1, bbr1_phase(s), "mode; in ProbeBW by the pacing gain")                 \
	S(bw, "bytes/s", 1, bbr1_known_Bps(s, bbr1_bw(s)), "bandwidth that the model paces from")  \
	S(max_bw, "bytes/s", 1, bbr1_known_Bps(s, bbr1_max_bw(s)), "of the max filter")            \
	S(min_rtt, "us", 1, s->min_rtt_us == BBR1_NO_RTT ? CC_NONE : cc_unless(s->min_rtt_us, 0),  \
	  "least RTT of the filter")                                                               \
	S(pacing_gain, "", CC_ONE, s->pacing_gain, "gain on the bandwidth")                        \
	S(cwnd_gain, "", CC_ONE, s->cwnd_gain, "gain on the BDP")                                  \
	S(extra_acked, "packets", 1, cc_max_u32(s->extra_acked[0], s->extra_acked[1]),             \
	  "estimate of ACK aggregation")                                                           \
	S(round_count, "", 1, s->rounds, "packet-timed rounds")

/* A bandwidth of the model for recordings. */
CC_INLINE s64 bbr1_known_Bps(const struct bbr1 *s, u32 bw)
{
	return cc_unless(cc_mul_shift((u64)bw * s->mss_bytes, CC_USEC_PER_SEC, BBR1_BW_SHIFT), 0);
}

CC_INLINE u32 bbr1_phase(const struct bbr1 *s)
{
	if (s->mode == BBR1_STARTUP)
		return CC_PHASE_STARTUP;
	if (s->mode == BBR1_DRAIN)
		return CC_PHASE_DRAIN;
	if (s->mode == BBR1_PROBE_RTT)
		return CC_PHASE_PROBE_RTT;
	if (s->pacing_gain > CC_ONE)
		return CC_PHASE_UP;
	return s->pacing_gain < CC_ONE ? CC_PHASE_DOWN : CC_PHASE_CRUISE;
}

#endif
