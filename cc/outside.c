/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* outside.c - makes the table of native.h from one file outside the project. The compiler is told
 * CC_SOURCE (the file), CC_NAME (what it defines) and CC_TITLE. Every call is guarded (outside.h),
 * but with CC_UNGUARDED, where a process of its own makes the calls (fuzz.c). */
#include "outside.h"
#include "params.h"

#include CC_SOURCE

extern __attribute__((visibility("default"))) const struct cc_algorithm cc_outside;
#ifdef CC_UNGUARDED
#define CC_CALL(call) call
#else
extern __attribute__((visibility("hidden"))) const char __ehdr_start;
#define CC_CALL(call)                                                                              \
	do {                                                                                       \
		if (!cc_guard.failure.kind && !__builtin_setjmp(cc_guard.jump)) {                  \
			cc_guard.algorithm = &cc_outside;                                          \
			cc_guard.object = &__ehdr_start;                                           \
			cc_guard.stack = __builtin_frame_address(0);                               \
			cc_guard.steps = CC_CALL_STEPS;                                            \
			cc_guard.is_inside = 1;                                                    \
			call;                                                                      \
		}                                                                                  \
		cc_guard.is_inside = 0;                                                            \
	} while (0)
#endif
#include "table.h"

#define DEFINE(name) CC_DEFINE(name)
#define ROW(name, title) CC_ROW(name, title, "")

DEFINE(CC_NAME)

const struct cc_algorithm cc_outside = ROW(CC_NAME, CC_TITLE);
