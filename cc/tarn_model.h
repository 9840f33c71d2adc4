/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * tarn_model.h - the state of tarn.h and what it measures: rounds, RTTs, jitter, rate, the queue
 * that stands and the queue that the law wants. Nothing here decides a window.
 *
 * Windows and queues are in 1/1024 packets, rates in packets per us times 2^20.
 */
#ifndef FULLPIPE_CC_TARN_MODEL_H
#define FULLPIPE_CC_TARN_MODEL_H

#include "cubic.h"
#include "fixed.h"
#include "cc_more.h"
#include "tarn_params.h"

#define TARN_RATE_SHIFT 20
#define TARN_MOST_WINDOW (1u << 31)
#define TARN_MOST_WANTED (1u << 30) /* three times that fit 32 bits */

/* What the ACKs of a stretch of time say. */
struct tarn_stretch {
	u64 begin_us;
	u64 rtt_sum_us; /* of the samples that a mean may count */
	u32 delivered;  /* conn->delivered when it began */
	u32 min_rtt_us;
	u32 samples;
	u32 counted;
};

/* Sums over the rounds in CRUISE since the last drain. */
struct tarn_sums {
	u64 rtt_us;
	u64 window;
	u64 wanted;
	u32 rounds;
	u32 unused_;
};

struct tarn {
	struct tarn_stretch round; /* a round trip, by packets */
	struct tarn_stretch gauge; /* TARN_GAUGE_US: the spread in CRUISE, the mean in a drain */
	struct tarn_stretch slot;  /* a min_rtt of time: what a fall of the rate is seen in */
	struct tarn_sums sums;
	u64 min_rtt_stamp_us; /* when this half of min_rtt's window began */
	u64 low_stamp_us;     /* when the least RTT since the last drain was seen */
	u64 probe_done_us;    /* a drain may end then; 0: inflight is still too high */
	u64 probe_stamp_us;   /* when this drain came near its least RTT; 0: no RTT yet */
	u64 hold_until_us;    /* no growth above held_window until then */
	u64 pressed_us;       /* since when the queue is above the bound; 0: it is not */
	u64 left_us;          /* when competition was left last; 0: never */
	u64 max_rate_stamp_us;
	u32 window;
	u32 saved_window;    /* what a drain returns to */
	u32 restore_window;  /* what slow start after a timeout returns to; 0: there was none */
	u32 held_window;     /* TARN_NONE: no bound */
	u32 wanted;          /* the queue by the law */
	u32 min_rtt_us[2];   /* of this half of the window, and of the one before */
	u32 last_rtt_us[2];  /* of the newest ACK that had one, and of the one before */
	u32 low_us;          /* least RTT since the last drain */
	u32 probe_rtt_us;    /* least RTT of this drain */
	u32 probe_mark_us;   /* the RTT of probe_stamp_us */
	u32 mean_us[3];      /* least mean of a gauge of each of the last drains */
	u32 probe_mean_us;   /* of this drain */
	u32 standing_us;     /* mean RTT of the last round; the least where no sample counts */
	u32 slot_rtt_us;     /* least RTT of the last slot */
	u32 spread_scaled;   /* mean less least RTT of a gauge, times 2^TARN_SPREAD_SHIFT */
	u32 jitter_us;       /* what the mean RTT has above the least without a queue */
	u32 queue_before_us; /* when the drain began */
	u32 rate;            /* of the last round */
	u32 rate_before;     /* of the round before it */
	u32 max_rate[2];     /* of some ten seconds, and of the ten before */
	u32 next_round;      /* a round ends when what was sent now is delivered */
	u32 rounds;
	u32 lost;                          /* conn->lost at the last ACK */
	u32 window_lost, window_delivered; /* of the running judgement of loss */
	u32 fell_until;                    /* delivered until which a fall was answered */
	u32 recovery_point;                /* COMPETE: one reduction until this is delivered */
	u32 random;
	u32 mss_bytes;
	struct cubic cubic; /* COMPETE: the window's epoch */
	u8 phase;           /* STARTUP, CRUISE or AVOIDANCE */
	u8 is_probing;
	u8 probe_round;
	u8 probe_cuts;
	u8 calm; /* rounds in a row with less than half of the queue wanted */
	u8 was_full;
	u8 is_recovering;
	u8 has_cut;   /* too much was lost since the last drain */
	u8 doubts;    /* returns to competition soon after it was left */
	u8 drains;    /* in CRUISE, up to TARN_FIRST_DRAINS */
	u8 undrained; /* drains in a row that left a queue */
	u8 drained;   /* drains in a row that left none */
	u8 ca_state;  /* at the last ACK */
	u8 settling;  /* rounds whose losses are of before a cut */
};

CC_INLINE u32 tarn_scale(u32 value, u32 gain)
{
	return cc_mul_shift_u32(value, gain, CC_GAIN_SHIFT);
}

/* Packets in the unit of windows, and no more than a window may have. */
CC_INLINE u32 tarn_packets(u64 packets)
{
	return (u32)cc_min_u64(packets * CC_ONE, TARN_MOST_WINDOW);
}

CC_INLINE void tarn_grow(struct tarn *s, u64 more)
{
	s->window = (u32)cc_min_u64(s->window + more, TARN_MOST_WINDOW);
}

CC_INLINE u32 tarn_min_rtt(const struct tarn *s)
{
	return cc_min_u32(s->min_rtt_us[0], s->min_rtt_us[1]);
}

/* What an RTT has more than the least. */
CC_INLINE u32 tarn_delay_us(const struct tarn *s, u32 rtt_us)
{
	return rtt_us - cc_min_u32(rtt_us, tarn_min_rtt(s));
}

/* The queueing delay of a mean RTT. */
CC_INLINE u32 tarn_queue_us(const struct tarn *s, u32 mean_us)
{
	u32 delay_us = tarn_delay_us(s, mean_us);

	return delay_us - cc_min_u32(delay_us, s->jitter_us);
}

/* The queueing delay that flows of this kind make at most: x q^2 = area, and each of them has
 * TARN_LEAST_BDP packets in a min_rtt. */
CC_INLINE u32 tarn_bound_us(const struct tarn *s, const struct tarn_params *p)
{
	return cc_sqrt((u64)tarn_min_rtt(s) * CC_USEC_PER_MSEC * (p->area >> CC_GAIN_SHIFT) /
		       TARN_LEAST_BDP);
}

/* What of the window is in the path and not in its queue. */
CC_INLINE u32 tarn_in_path(const struct tarn *s, u32 rtt_us)
{
	return (u32)((u64)s->window * cc_min_u32(tarn_min_rtt(s), rtt_us) / cc_max_u32(rtt_us, 1));
}

/* The own part of the queue. */
CC_INLINE u32 tarn_own_queue(const struct tarn *s)
{
	return s->window - tarn_in_path(s, s->standing_us);
}

/* What a rate keeps in the path without a queue. */
CC_INLINE u32 tarn_bdp(const struct tarn *s, u32 rate)
{
	return cc_mul_shift_u32(rate, tarn_min_rtt(s), TARN_RATE_SHIFT - CC_GAIN_SHIFT);
}

CC_INLINE void tarn_begin_stretch(struct tarn_stretch *stretch, const struct cc_conn *conn)
{
	stretch->begin_us = conn->now_us;
	stretch->delivered = conn->delivered;
	stretch->rtt_sum_us = 0;
	stretch->min_rtt_us = TARN_NONE;
	stretch->samples = 0;
	stretch->counted = 0;
}

/* The state of this ACK, or of the one before where that is worse. */
CC_INLINE u8 tarn_ca_state(const struct tarn *s, const struct cc_conn *conn)
{
	return s->ca_state > conn->ca_state ? s->ca_state : conn->ca_state;
}

/* A time that is the same for all flows: over a round, a flow of a longer RTT would find more
 * spread, and take more of the rate. In a drain the mean is that of the path without a queue. */
CC_INLINE void tarn_gauge(struct tarn *s, const struct cc_conn *conn, u32 rtt_us)
{
	struct tarn_stretch *gauge = &s->gauge;
	u32 mean_us;

	gauge->min_rtt_us = cc_min_u32(gauge->min_rtt_us, rtt_us);
	gauge->rtt_sum_us += rtt_us;
	gauge->counted++;
	if (gauge->counted < TARN_LEAST_SAMPLES || conn->now_us - gauge->begin_us < TARN_GAUGE_US)
		return;
	mean_us = (u32)(gauge->rtt_sum_us / gauge->counted);
	if (s->is_probing)
		s->probe_mean_us = cc_min_u32(s->probe_mean_us, mean_us);
	else if (s->phase != CC_PHASE_STARTUP)
		s->spread_scaled =
		    (u32)cc_ewma(s->spread_scaled, mean_us - gauge->min_rtt_us, TARN_SPREAD_SHIFT);
	tarn_begin_stretch(gauge, conn);
}

/* Flows that waited from the end of their own drain would stay two groups, of which one drains when
 * the other has ended, and neither would see an empty path. The least RTT is where drains overlap,
 * so all wait from there. Jitter is longer than the queue: an RTT counts as lower only if it is so
 * by more than a quarter of the queue. */
CC_INLINE void tarn_take_drained_rtt(struct tarn *s, const struct cc_conn *conn, u32 rtt_us)
{
	s->probe_rtt_us = cc_min_u32(s->probe_rtt_us, rtt_us);
	if (rtt_us < s->probe_mark_us &&
	    s->probe_mark_us - rtt_us > s->queue_before_us / TARN_MARK_OF_QUEUE) {
		s->probe_mark_us = rtt_us;
		s->probe_stamp_us = conn->now_us;
	}
}

/* What of an RTT counts for the least one, while packets are missing and for the first two. */
CC_INLINE u32 tarn_doubtful_rtt_us(const struct tarn *s, u8 ca_state, u32 rtt_us)
{
	/* By timestamps, in whole ms rounded down (Linux tcp_rtt_tsopt_us()), it may be of a
	 * retransmission that is newer than the packet. */
	if (ca_state != CC_OPEN && rtt_us % CC_USEC_PER_MSEC == 0)
		return TARN_NONE;
	/* A packet that has overtaken others opens a hole, and its RTT is shorter than that of the
	 * path. Three such packets in a row are rare, so the longest of three RTTs counts. */
	return cc_max_u32(rtt_us, cc_max_u32(s->last_rtt_us[0], s->last_rtt_us[1]));
}

CC_INLINE void tarn_take_rtt(struct tarn *s, const struct cc_conn *conn, u32 rtt_us)
{
	u64 slot_us = (u64)TARN_MIN_RTT_SLOT_US << (s->phase == CC_PHASE_AVOIDANCE ? 3 : 0);
	u8 ca_state = tarn_ca_state(s, conn);
	u32 least_us = rtt_us;

	/* The first packet of a connection overtakes others without a hole. */
	if (!s->last_rtt_us[1])
		s->min_rtt_us[0] = s->low_us = TARN_NONE;
	if (ca_state != CC_OPEN || !s->last_rtt_us[1])
		least_us = tarn_doubtful_rtt_us(s, ca_state, rtt_us);
	s->last_rtt_us[1] = s->last_rtt_us[0];
	s->last_rtt_us[0] = rtt_us;
	if (conn->now_us - s->min_rtt_stamp_us > slot_us) {
		s->min_rtt_stamp_us = conn->now_us;
		s->min_rtt_us[1] = s->min_rtt_us[0];
		s->min_rtt_us[0] = least_us;
	}
	s->min_rtt_us[0] = cc_min_u32(s->min_rtt_us[0], least_us);
	s->slot.min_rtt_us = cc_min_u32(s->slot.min_rtt_us, least_us);
	if (s->is_probing)
		tarn_take_drained_rtt(s, conn, least_us);
	if (least_us < s->low_us) {
		s->low_us = least_us;
		s->low_stamp_us = conn->now_us;
	}
	s->round.min_rtt_us = cc_min_u32(s->round.min_rtt_us, rtt_us);
	s->round.samples++;
	/* In recovery RTTs are rounded, and long where ACKs waited for a hole. */
	if (ca_state < CC_RECOVERY) {
		s->round.rtt_sum_us += rtt_us;
		s->round.counted++;
		tarn_gauge(s, conn, rtt_us);
	}
}

/* The RTT of an ACK; 0: it has none. */
CC_INLINE u32 tarn_rtt_us(const struct tarn *s, const struct cc_ack *ack)
{
	u32 rtt_us = ack->rtt_us > 0 ? (u32)ack->rtt_us : 0;

	/* A lone packet of a window below two: what the receiver waited for a second one is no
	 * queue. A flow that took it for one would stay there. */
	if (s->window < 2 * CC_ONE && ack->acked_sacked == 1 && rtt_us > TARN_DELAYED_ACK_US &&
	    rtt_us - TARN_DELAYED_ACK_US > tarn_min_rtt(s))
		rtt_us -= TARN_DELAYED_ACK_US;
	return rtt_us;
}

CC_INLINE u32 tarn_spread_us(const struct tarn *s) { return s->spread_scaled >> TARN_SPREAD_SHIFT; }

/* A drain has found the path empty. */
CC_INLINE void tarn_keep_mean(struct tarn *s)
{
	s->mean_us[2] = s->mean_us[1];
	s->mean_us[1] = s->mean_us[0];
	s->mean_us[0] = s->probe_mean_us;
}

/* What a packet waits on average for the rest of its burst: half of the burst's time. A burst lasts
 * 1 ms, or two packets' time where that is longer. */
CC_INLINE u32 tarn_burst_delay_us(const struct tarn *s)
{
	u64 packet_us = (u64)s->standing_us * CC_ONE / cc_max_u32(s->window, 1);

	packet_us = cc_max_u64(packet_us, TARN_LEAST_BURST_DELAY_US);
	return (u32)cc_min_u64(packet_us, TARN_MOST_BURST_DELAY_US);
}

/* The mean RTT of a drain says what jitter is left when the queue is gone. A drain that left some
 * of the queue says too much, so the least of the last three counts. Where aggregates grow with the
 * queue, as in Wi-Fi, jitter does too: at least the spread in CRUISE counts. What bursts add is no
 * jitter: with it the queue would be above the law, which shows on short paths. */
CC_INLINE void tarn_update_jitter(struct tarn *s, const struct tarn_params *p)
{
	u32 mean_us = cc_min_u32(cc_min_u32(s->mean_us[0], s->mean_us[1]), s->mean_us[2]);
	u32 spread_us = tarn_spread_us(s);

	s->jitter_us = TARN_MOST_SPREADS * spread_us;
	if (mean_us != TARN_NONE)
		s->jitter_us = cc_min_u32(s->jitter_us, tarn_delay_us(s, mean_us));
	s->jitter_us = cc_max_u32(s->jitter_us, tarn_scale(spread_us, p->jitter_gain));
	s->jitter_us -= cc_min_u32(s->jitter_us, tarn_burst_delay_us(s));
}

/* The queue that is ours by the law: x q^2 = area, so x q = sqrt(area x), never less than a packet;
 * and what the rate sends in the time that jitter adds to the RTT. Where jitter is longer than the
 * queue, an error of it may take the whole queue away: a quarter of the difference is margin. */
CC_INLINE void tarn_update_wanted(struct tarn *s, const struct tarn_params *p)
{
	u32 standing_us = cc_max_u32(s->standing_us, 1);
	u32 queue_us = cc_min_u32(tarn_queue_us(s, s->standing_us), s->jitter_us);
	u32 jitter_us = s->jitter_us + (s->jitter_us - queue_us) / TARN_MARGIN;
	u64 square = (u64)s->window * CC_USEC_PER_MSEC * p->area / standing_us;
	u64 wanted = cc_max_u32(cc_sqrt(cc_min_u64(square, 1ull << 41)), CC_ONE);

	wanted += (u64)s->window * jitter_us / standing_us;
	s->wanted = (u32)cc_min_u64(wanted, TARN_MOST_WANTED);
}

CC_INLINE void tarn_update_rate(struct tarn *s, const struct cc_conn *conn)
{
	u64 took_us = conn->now_us - s->round.begin_us;
	u64 delivered = conn->delivered - s->round.delivered;

	s->rate_before = s->rate;
	if (took_us)
		s->rate = (u32)cc_min_u64((delivered << TARN_RATE_SHIFT) / took_us, TARN_NONE - 1);
	if (conn->now_us - s->max_rate_stamp_us > 10 * CC_USEC_PER_SEC) {
		s->max_rate_stamp_us = conn->now_us;
		s->max_rate[1] = s->max_rate[0];
		s->max_rate[0] = 0;
	}
	s->max_rate[0] = cc_max_u32(s->max_rate[0], s->rate);
}

/* Nonzero: a round has ended. */
CC_INLINE int tarn_update_round(struct tarn *s, const struct tarn_params *p,
				const struct cc_conn *conn, const struct cc_ack *ack)
{
	if (ack->interval_us <= 0 || cc_before(ack->prior_delivered, s->next_round))
		return 0;
	s->rounds++;
	s->next_round = conn->delivered;
	tarn_update_rate(s, conn);
	if (s->round.counted)
		s->standing_us = (u32)(s->round.rtt_sum_us / s->round.counted);
	else if (s->round.samples)
		s->standing_us = s->round.min_rtt_us;
	tarn_update_jitter(s, p);
	tarn_update_wanted(s, p);
	return 1;
}

#endif
