/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* tarn_params.h - what of tarn.h may be changed, and the constants that no row of the targets asks
 * to change. The effect of each parameter has not been measured. */
#ifndef FULLPIPE_CC_TARN_PARAMS_H
#define FULLPIPE_CC_TARN_PARAMS_H

#include "params.h"

#define TARN_NONE 0xffffffffu /* of a time or a bound: none */

#define TARN_LEAST_SAMPLES 4           /* RTT samples of a round whose mean says something */
#define TARN_STARTUP_SAMPLES 8         /* and whose least ends Startup (HyStart's number) */
#define TARN_STARTUP_DELAY_US 1000     /* and the queue that does, beside a quarter of min_rtt */
#define TARN_FULL_ROUNDS 3             /* rounds without growth that end Startup (BBR) */
#define TARN_JITTER_SHIFT 3            /* the mean of the jitter follows in 8 rounds */
#define TARN_MIN_RTT_SLOT_US 30000000  /* half of the window of min_rtt: six probes fit in */
#define TARN_PROBE_US 100000           /* least time of a drained path, so that all flows see it */
#define TARN_HOLD_US 2000000           /* no growth after too much loss (BBR's wait to probe) */
#define TARN_COMPETE_PROBE_US 10000000 /* between drains beside a flow that fills the buffer */
#define TARN_OVERFLOW_PROBE_US 3000000 /* and at least since the last one, if an overflow asks */
#define TARN_RETURN_US 15000000 /* who came back from competition so lately needs less evidence */

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
	P(jitter_gain, CC_ONE, 0, 4 * CC_ONE, CC_ONE, "of the jitter", "none",                     \
	  "as BBR's extra_acked", "delay allowed beside the queue's: mean less least RTT of a round") \
	P(probe_interval_us, 5000000, 100000, 60000000, 1, "us", "not allowed",                    \
	  "draft-ietf-ccwg-bbr ProbeRTTInterval", "a drain follows when no lower RTT was seen for this long") \
	P(probe_gain, CC_RATIO(85, 100), CC_RATIO(1, 4), CC_ONE, CC_ONE, "of the own BDP",         \
	  "not allowed", "tarn.h", "window of a drain")                                            \
	P(undrained_probes, 2, 0, 100, 1, "drains", "no such test", "tarn.h",                      \
	  "so many in a row that left half of the queue begin competition")                        \
	P(press_us, 17000, 0, 10000000, 1, "us", "no such test", "tarn.h",                         \
	  "mean queue of two seconds that, with press_rtt, begins competition")                    \
	P(press_rtt, CC_RATIO(35, 100), 0, 16 * CC_ONE, CC_ONE, "of min_rtt", "any",               \
	  "tarn.h", "likewise")                                                                    \
	P(loss_thresh, CC_RATIO(2, 100), 0, CC_ONE, CC_ONE, "of packets", "any loss",              \
	  "draft-ietf-ccwg-bbr LossThresh", "loss that is too much in a buffer too small for the queue wanted") \
	P(forgiven, CC_RATIO(8, 100), 0, CC_ONE, CC_ONE, "of packets", "none", "tarn.h",           \
	  "more loss than that is the path's own where the delay shows that the law is kept")
/* clang-format on */

struct tarn_params {
	tarn_PARAMS(CC_PARAM_FIELD)
};

#endif
