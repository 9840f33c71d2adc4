/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * start_params.h - the parameters of the slow starts that start.h offers, as rows for an
 * algorithm's NAME_PARAMS, and the names of the starts. Must not know an algorithm.
 */
#ifndef FULLPIPE_CC_START_PARAMS_H
#define FULLPIPE_CC_START_PARAMS_H

#include "params.h"

/* Parameter `start`. */
enum cc_start_kind {
	CC_START_LINUX, /* as the algorithm does it in Linux */
	CC_START_HYSTARTPP,
	CC_START_SEARCH,
	CC_START_RESUME,
	CC_START_RAPID,
};

/* clang-format off */
#define CC_START_PARAMS(P)                                                                         \
	P(start, CC_START_LINUX, 0, CC_START_RAPID, 1,                                             \
	  "one of linux, hystart++, search, careful-resume, rapid", "linux",                       \
	  "RFC 9406, draft-chung-ccwg-search-09, RFC 9959, "             \
	  "draft-kazuho-ccwg-rapid-start-02", "how the first slow start grows and ends")           \
	P(css_rounds, 5, 1, 255, 1, "rounds", "not allowed", "RFC 9406 section 4.3 CSS_ROUNDS",    \
	  "HyStart++: rounds of conservative slow start before it ends")                           \
	P(css_growth_divisor, 4, 1, 255, 1, "of slow start's growth", "not allowed",               \
	  "RFC 9406 section 4.3 CSS_GROWTH_DIVISOR", "HyStart++: how much slower that phase grows") \
	P(search_threshold, CC_RATIO(26, 100), 1, CC_ONE, CC_ONE, "of what was sent", "not allowed", \
	  "draft-chung-ccwg-search-09 section 3.2 THRESH (0.26)",                                  \
	  "SEARCH: missing deliveries that end slow start")                                        \
	P(saved_cwnd, 0, 0, 1u << 24, 1, "packets", "none saved: a usual slow start",              \
	  "RFC 9959 saved_cwnd",                                         \
	  "Careful Resume: window of an earlier connection on this path")                          \
	P(saved_rtt_us, 0, 0, 100000000, 1, "us", "none saved: a usual slow start",                \
	  "RFC 9959 saved_rtt",                                          \
	  "Careful Resume: least RTT of that connection")                                          \
	P(max_jump, 0, 0, 1u << 24, 1, "packets", "no bound but half of saved_cwnd",               \
	  "RFC 9959 max_jump",                                           \
	  "Careful Resume: largest window it jumps to")
/* clang-format on */

struct cc_start_params {
	CC_START_PARAMS(CC_PARAM_FIELD)
};

/* Those of an algorithm whose NAME_PARAMS has the rows. */
#define CC_START_PARAM_OF(name, dflt, min, max, scale, unit, zero, source, meaning, ...) (p)->name,
#define CC_START_PARAMS_OF(p) (&(const struct cc_start_params){CC_START_PARAMS(CC_START_PARAM_OF)})

/* For an algorithm's NAME_FLAGS_IF that needs RTT samples for its start alone. */
#define CC_START_FLAGS_IF(F) F(CC_WANTS_RTT, p->start != CC_START_LINUX)

#define CC_START_NO_RTT 0xffffffffu

#endif
