/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* external.c - makes the table of native.h from one user's file. The compiler gets CC_SOURCE (the
 * file), CC_NAME (the algorithm) and CC_TITLE. Every call is guarded (external.h), except with
 * CC_UNGUARDED, for a host in a process of its own (fuzz.c). */
#include "external.h"
#include "params.h"

#include CC_SOURCE

extern __attribute__((visibility("default"))) const struct cc_algorithm cc_external;
#ifdef CC_UNGUARDED
#define CC_CALL(call) call
#else
extern __attribute__((visibility("hidden"))) const char __ehdr_start;
#define CC_CALL(call)                                                                              \
	do {                                                                                       \
		if (!cc_guard.failure.kind && !__builtin_setjmp(cc_guard.jump)) {                  \
			cc_guard.algorithm = &cc_external;                                         \
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

const struct cc_algorithm cc_external = ROW(CC_NAME, CC_TITLE);
