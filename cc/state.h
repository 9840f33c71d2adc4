/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * state.h - how an algorithm declares its own variables for recordings, reports and traces, once.
 *
 * NAME_STATE(S) lists them, one a line:
 *   S(name, "unit", scale, value, "meaning")
 * `value` is an integer expression of `s` (the state) and `p` (the parameters); CC_NONE where the
 * variable has no value now. `scale` is what 1.0 of the unit is stored as, as in params.h.
 *
 *   S(w_max, "packets", 1, cc_unless(s->origin, 0), "window at the last loss")
 *   S(gradient, "1/s", CC_ONE, s->gradient, "of the utility by the rate")
 *
 * Recordings (table cc_samples), reports, `fullpipe kernel watch` and traces of calls show each as
 * a column `name_unit`: w_max_packets. A rate in "bytes/s" is shown in bit/s (`name_bps`); a unit
 * that is no word, such as "1/s" or "", adds nothing to the name. The unit "phase" means that the
 * value is one of enum cc_phase. Nothing runs in the kernel for it: hosts read the state and
 * evaluate the list outside.
 */
#ifndef FULLPIPE_CC_STATE_H
#define FULLPIPE_CC_STATE_H

#include "cc.h"

/* A variable of unit "phase". */
enum cc_phase {
	CC_PHASE_NONE,
	CC_PHASE_STARTUP,
	CC_PHASE_DRAIN,
	CC_PHASE_PROBE_RTT,
	CC_PHASE_UP,
	CC_PHASE_DOWN,
	CC_PHASE_CRUISE,
	CC_PHASE_REFILL,
	CC_PHASE_SLOW_START,
	CC_PHASE_AVOIDANCE,
};

#define CC_NONE (-0x7fffffffffffffffll - 1)

/* A value that is missing where it equals `none`. */
CC_INLINE s64 cc_unless(u64 value, u64 none) { return value == none ? CC_NONE : (s64)value; }

/* What a file may fill instead of a list, with NAME_info(const struct NAME *, const struct
 * NAME_params *, struct cc_info *): what `fullpipe cc import` writes does, and classes of Python.
 * What is not set is 0 or CC_INFINITE. A list NAME_MORE_STATE(S) adds variables to these. */
struct cc_info {
	u64 bw_Bps; /* the bandwidth from which the model paces */
	u64 max_bw_Bps;
	u64 bw_shortterm_Bps;   /* Linux bw_lo; 0: unset */
	u32 min_rtt_us;         /* the algorithm's own; 0: none */
	u32 phase;              /* enum cc_phase */
	u32 pacing_gain;        /* of CC_ONE */
	u32 cwnd_gain;          /* of CC_ONE */
	u32 inflight_longterm;  /* Linux inflight_hi; CC_INFINITE: unset */
	u32 inflight_shortterm; /* Linux inflight_lo; CC_INFINITE: unset */
	u32 extra_acked;        /* packets */
	u32 round_count;
};

/* The variables of a file that fills struct cc_info and has no list, in which `s` is that. */
/* clang-format off */
#define CC_INFO_STATE(S)                                                                           \
	S(phase, "phase", 1, s->phase, "what it is doing")                                         \
	S(bw, "bytes/s", 1, cc_unless(s->bw_Bps, 0), "bandwidth that the model paces from")        \
	S(max_bw, "bytes/s", 1, cc_unless(s->max_bw_Bps, 0), "long-term bandwidth")                \
	S(bw_shortterm, "bytes/s", 1, cc_unless(s->bw_shortterm_Bps, 0), "short-term bound")       \
	S(min_rtt, "us", 1, cc_unless(s->min_rtt_us, 0), "the algorithm's own minimum RTT")        \
	S(pacing_gain, "", CC_ONE, s->pacing_gain, "gain on the bandwidth")                        \
	S(cwnd_gain, "", CC_ONE, s->cwnd_gain, "gain on the BDP")                                  \
	S(inflight_longterm, "packets", 1, cc_bound(s->inflight_longterm), "long-term bound")      \
	S(inflight_shortterm, "packets", 1, cc_bound(s->inflight_shortterm), "short-term bound")   \
	S(extra_acked, "packets", 1, s->extra_acked, "estimate of ACK aggregation")                \
	S(round_count, "", 1, s->round_count, "packet-timed rounds")
/* clang-format on */

/* A bound in packets that is missing from CC_INFINITE on. */
CC_INLINE s64 cc_bound(u32 packets) { return packets < CC_INFINITE ? (s64)packets : CC_NONE; }

#endif
