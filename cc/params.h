/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * params.h - how an algorithm declares its constants, once.
 *
 * NAME_PARAMS(P) lists them, one a line:
 *   P(name, default, min, max, scale, "unit", "what 0 means", "source", "meaning")
 * Every parameter is a u32. `scale` is what 1.0 of the unit is stored as: 1 for counts and
 * microseconds, CC_ONE for gains. A tenth argument is what 0 is stored as, where values may be
 * below it. A unit "one of a, b, c" gives the values 0, 1, 2 names. From the list come the struct
 * (here) and the table that `fullpipe cc show` prints (table.h), so neither can drift from the
 * other. Defaults are the values of the set that has the algorithm's own name.
 */
#ifndef FULLPIPE_CC_PARAMS_H
#define FULLPIPE_CC_PARAMS_H

#include "cc.h"

#define CC_PARAM_FIELD(name, dflt, min, max, scale, unit, zero, source, meaning, ...) u32 name;

/* A ratio a/b as a gain, rounded to the nearest 1/CC_ONE. */
#define CC_RATIO(a, b) ((u32)((2ull * (a)*CC_ONE + (b)) / (2ull * (b))))
/* A gain that Linux writes in 1/256 (BBR_UNIT). */
#define CC_LINUX_GAIN(x256) ((u32)(x256) * (CC_ONE / 256u))

#endif
