/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * external.h - the guard around the code of an external algorithm. A call ends when it takes too
 * many steps or too much stack, divides by zero, or touches memory that is not its own; the thread
 * then makes no further calls. cc_external_failure() returns the reason.
 */
#ifndef FULLPIPE_CC_EXTERNAL_H
#define FULLPIPE_CC_EXTERNAL_H

#include "native.h"

/* Basic blocks per call. The kernel's verifier gives up after a million instructions. */
#define CC_CALL_STEPS 1000000u
#define CC_CALL_STACK_BYTES 65536u

enum cc_failure_kind {
	CC_FAILURE_NONE,
	CC_FAILURE_STEPS,
	CC_FAILURE_STACK,
	CC_FAILURE_DIVISION,
	CC_FAILURE_BOUNDS,
	CC_FAILURE_MEMORY,
};

struct cc_failure {
	const struct cc_algorithm *algorithm; /* whose code it was */
	const char *file;                     /* where known, else NULL */
	u64 offset;                           /* in the shared object, where known, else 0 */
	u32 kind;                             /* enum cc_failure_kind */
	u32 line;
};

/* One for all algorithms of a thread, in a shared object of its own (external_guard.c): memory
 * that a thread finds without a call is scarce in objects loaded later (glibc's tunable
 * rtld.optional_static_tls: 512 bytes for all of them). */
struct cc_guard {
	void *jump[5]; /* __builtin_setjmp() */
	const struct cc_algorithm *algorithm;
	const char *object; /* where the algorithm's shared object begins */
	char *stack;
	u32 steps;
	u32 is_inside;
	struct cc_failure failure;
};

extern __attribute__((visibility("default"))) _Thread_local struct cc_guard cc_guard;

#endif
