/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* tarn_params.h - what of tarn.h may be changed, and the constants that no row of the targets asks
 * to change. docs/evidence/tarn.md has what is worse without most of them. */
#ifndef FULLPIPE_CC_TARN_PARAMS_H
#define FULLPIPE_CC_TARN_PARAMS_H

#include "params.h"

#define TARN_NONE 0xffffffffu /* of a time or a bound: none */

#define TARN_LEAST_SAMPLES 4       /* RTT samples of a gauge whose mean says something */
#define TARN_STARTUP_SAMPLES 8     /* of a round, whose least ends Startup (HyStart's number) */
#define TARN_STARTUP_DELAY_US 1000 /* and the queue that does, beside a quarter of min_rtt, */
#define TARN_MOST_STARTUP_DELAY_US 16000 /* which counts up to that (HyStart's bound) */
#define TARN_GAUGE_US 50000              /* spread and empty path: as long for all RTTs */
#define TARN_SPREAD_SHIFT 5              /* the mean spread follows in 32 gauges */
#define TARN_MOST_SPREADS 2 /* jitter at most: others spoil drains before flows have met */
#define TARN_LEAST_BURST_DELAY_US 500 /* half of a burst of 1 ms (Linux sk_pacing_shift) */
#define TARN_MOST_BURST_DELAY_US 1000 /* more of it makes flows unequal where jitter is real */
#define TARN_DELAYED_ACK_US 40000     /* of a lone packet (Linux TCP_DELACK_MIN) */
#define TARN_MIN_RTT_SLOT_US 30000000 /* half of the window of min_rtt: seven drains fit in */
#define TARN_MARK_OF_QUEUE 4          /* an RTT that is a quarter of the queue lower is lower */
#define TARN_MARGIN 4                 /* of what jitter has above the queue: Wi-Fi of the targets */
#define TARN_LEAP_ROUNDS 4            /* whose mean says something: an RTT of 1 s has no more */
#define TARN_STARVED_US 1000          /* a queue that tells a starved flow from an empty path */
#define TARN_PROBE_US 100000          /* least time of a drained path, so that all flows see it */
#define TARN_HOLD_US 2000000          /* no growth after too much loss (BBR's wait to probe) */
#define TARN_FIRST_DRAINS 2           /* before which flows of this kind have not met */
#define TARN_LEAST_BDP 5              /* packets of BDP that a flow of this kind has at least */
#define TARN_DOUBT_US 30000000 /* who came back from competition so lately had left it in error */

/* clang-format off */
#define tarn_PARAMS(P)                                                                             \
	P(area, 16 * CC_ONE, CC_ONE, 1000 * CC_ONE, CC_ONE, "packets ms", "not allowed",           \
	  "tarn.h", "rate (packets/ms) times the square of the queueing delay (ms)")               \
	P(step_gain, CC_RATIO(1, 2), CC_RATIO(1, 16), CC_ONE, CC_ONE, "of the error", "not allowed", \
	  "FAST, gamma", "what of the difference to the queue wanted a round makes up for")        \
	P(leap_gain, CC_RATIO(1, 2), 0, CC_ONE, CC_ONE, "of the relative error", "no leap",        \
	  "tarn.h", "the same for the mean of the rounds between two drains, in parts of the window") \
	P(most_growth, CC_RATIO(1, 4), 0, CC_ONE, CC_ONE, "of the window", "steps only",           \
	  "Copa, BBR", "most growth of a round while no queue answers")                            \
	P(jitter_gain, CC_RATIO(5, 4), 0, 4 * CC_ONE, CC_ONE, "of the spread", "as drains see it", \
	  "Wi-Fi of the targets", "least delay allowed beside the queue's: mean less least RTT of 50 ms") \
	P(probe_interval_us, 4000000, 100000, 60000000, 1, "us", "not allowed",                    \
	  "tarn.h; BBR's 5 s would coincide", "a drain follows when no lower RTT was seen for this long") \
	P(probe_gain, CC_RATIO(85, 100), CC_RATIO(1, 4), CC_ONE, CC_ONE, "of the own BDP",         \
	  "not allowed", "tarn.h", "window of a drain")                                            \
	P(undrained_probes, 2, 0, 100, 1, "drains", "no such test", "tarn.h",                      \
	  "so many in a row that left half of the queue begin competition")                        \
	P(press, 3 * CC_ONE, 0, 100 * CC_ONE, CC_ONE, "of the law's bound", "no such test",        \
	  "training paths", "queue that own flows never keep up, which begins competition")        \
	P(press_time_us, 3000000, 0, 60000000, 1, "us", "at once", "training paths",               \
	  "for so long; own flows: 2 s at most")                                                   \
	P(loss_thresh, CC_RATIO(2, 100), 0, CC_ONE, CC_ONE, "of packets", "any loss",              \
	  "draft-ietf-ccwg-bbr LossThresh", "loss that is too much in a buffer too small for the queue wanted") \
	P(forgiven, CC_RATIO(8, 100), 0, CC_ONE, CC_ONE, "of packets", "none", "tarn.h",           \
	  "more loss than that is the path's own where the delay shows that the law is kept")
/* clang-format on */

struct tarn_params {
	tarn_PARAMS(CC_PARAM_FIELD)
};

#endif
