/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * outside.h - how the code of an algorithm from outside the project is kept from harming the
 * program that runs it: a call that takes too many steps, too much stack, divides by zero or
 * touches memory that is not its own is left, and all later calls of that thread are not made. Who
 * runs it asks afterwards what happened.
 */
#ifndef FULLPIPE_CC_OUTSIDE_H
#define FULLPIPE_CC_OUTSIDE_H

#include "native.h"

/* Steps are the basic blocks that a call passes. The verifier of a kernel gives up after a million
 * instructions. */
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

/* One for all algorithms of a thread, in a shared object of its own (outside_guard.c): memory
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
