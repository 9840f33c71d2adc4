/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * flags.h - which of NAME_FLAGS hold with an algorithm's constants.
 *
 * NAME_FLAGS is what an algorithm may ever ask of its host. NAME_FLAGS_IF(F) (optional) lists those
 * that only some constants need, one a line: F(flag, condition), where the condition is an
 * expression of the parameters `p`:
 *
 *   F(CC_WANTS_RTT, p->start != CC_START_LINUX)
 *
 * Only events can be left out so: CC_WANTS_RTT and CC_WANTS_ACKS. A call costs a kernel some
 * hundred instructions.
 */
#ifndef FULLPIPE_CC_FLAGS_H
#define FULLPIPE_CC_FLAGS_H

#include "cc_more.h"

/* What NAME_FLAGS_IF may name. */
#define CC_FLAGS_OPTIONAL (CC_WANTS_RTT | CC_WANTS_ACKS)

/* Whether a list is defined: if it is, its rows become commas, with CC_ROW_COMMA. */
#define CC_ROW_COMMA(...) , 1
#define CC_SECOND(first, second, ...) second
#define CC_SECOND_OF(...) CC_SECOND(__VA_ARGS__)
#define CC_HAS_LIST(list) CC_SECOND_OF(list(CC_ROW_COMMA), 0, 0)
#define CC_JOIN(a, b) a##b
#define CC_JOIN_VALUE(a, b) CC_JOIN(a, b)

#define CC_FLAG_UNLESS(flag, condition)                                                            \
	_Static_assert(!((flag) & ~CC_FLAGS_OPTIONAL),                                             \
		       "NAME_FLAGS_IF: only CC_WANTS_RTT and CC_WANTS_ACKS can be left out");      \
	if (!(condition))                                                                          \
		flags &= ~(u32)(flag);

/* NAME_flags_of(). */
#define CC_FLAGS_OF_1(name)                                                                        \
	CC_INLINE u32 name##_flags_of(const struct name##_params *p)                               \
	{                                                                                          \
		u32 flags = name##_FLAGS;                                                          \
                                                                                                   \
		name##_FLAGS_IF(CC_FLAG_UNLESS) return flags;                                      \
	}
#define CC_FLAGS_OF_0(name)                                                                        \
	CC_INLINE u32 name##_flags_of(const struct name##_params *p)                               \
	{                                                                                          \
		(void)p;                                                                           \
		return name##_FLAGS;                                                               \
	}
#define CC_DEFINE_FLAGS_OF(name) CC_JOIN_VALUE(CC_FLAGS_OF_, CC_HAS_LIST(name##_FLAGS_IF))(name)

#endif
