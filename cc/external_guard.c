/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* external_guard.c - the functions that the instrumentation of an external algorithm calls
 * (external.h). A separate shared object, built without that instrumentation and without libc. */
#include "external.h"

#define EXPORTED __attribute__((visibility("default"), used))

_Thread_local struct cc_guard cc_guard;

/* A source location, as the undefined behaviour sanitizer passes it. */
struct place {
	const char *file;
	u32 line, column;
};

static _Noreturn void fail(u32 kind, const struct place *place, const void *code)
{
	cc_guard.is_inside = 0;
	cc_guard.failure = (struct cc_failure){
	    .algorithm = cc_guard.algorithm,
	    .file = place ? place->file : 0,
	    .line = place ? place->line : 0,
	    .offset = code ? (u64)((const char *)code - cc_guard.object) : 0,
	    .kind = kind,
	};
	__builtin_longjmp(cc_guard.jump, 1);
}

EXPORTED void __sanitizer_cov_trace_pc(void);
EXPORTED void __sanitizer_cov_trace_pc(void)
{
	if (!cc_guard.is_inside)
		return;
	if (!--cc_guard.steps)
		fail(CC_FAILURE_STEPS, 0, __builtin_return_address(0));
	if (cc_guard.stack - (char *)__builtin_frame_address(0) > (s64)CC_CALL_STACK_BYTES)
		fail(CC_FAILURE_STACK, 0, __builtin_return_address(0));
}

EXPORTED void __ubsan_handle_divrem_overflow_abort(const struct place *data);
EXPORTED void __ubsan_handle_divrem_overflow_abort(const struct place *data)
{
	fail(CC_FAILURE_DIVISION, data, 0);
}

EXPORTED void __ubsan_handle_out_of_bounds_abort(const struct place *data);
EXPORTED void __ubsan_handle_out_of_bounds_abort(const struct place *data)
{
	fail(CC_FAILURE_BOUNDS, data, 0);
}

/* Called from a signal handler on a memory fault; returns if the fault was not in guarded code. */
EXPORTED void cc_external_fault(void);
EXPORTED void cc_external_fault(void)
{
	if (cc_guard.is_inside)
		fail(CC_FAILURE_MEMORY, 0, 0);
}

/* Returns and clears the failure of this thread. */
EXPORTED void cc_external_failure(struct cc_failure *failure);
EXPORTED void cc_external_failure(struct cc_failure *failure)
{
	*failure = cc_guard.failure;
	cc_guard.failure = (struct cc_failure){.kind = CC_FAILURE_NONE};
}

/* Compilers emit calls of memcpy() and memset() for copies of structures. */
typedef __SIZE_TYPE__ size;

EXPORTED void *memcpy(void *to, const void *from, size count);
EXPORTED void *memcpy(void *to, const void *from, size count)
{
	size i;

	for (i = 0; i < count; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

EXPORTED void *memset(void *to, int value, size count);
EXPORTED void *memset(void *to, int value, size count)
{
	size i;

	for (i = 0; i < count; i++)
		((char *)to)[i] = (char)value;
	return to;
}
