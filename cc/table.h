/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * table.h - makes a row of native.h's table from an algorithm's file. Nothing here knows an
 * algorithm. Whoever includes it defines CC_CALL(call), which makes one call of the algorithm's
 * code.
 */
#ifndef FULLPIPE_CC_TABLE_H
#define FULLPIPE_CC_TABLE_H

#include "defaults.h"
#include "flags.h"
#include "native.h"
#include "params.h"
#include "state.h"

#define CC_PARAM_INFO(name, dflt, min, max, scale, unit, zero, source, meaning, ...)               \
	{#name, unit, zero, source, meaning, dflt, min, max, scale, __VA_ARGS__ + 0, 0},

#define CC_STATE_INFO(name, unit, scale, value, meaning) {#name, unit, meaning, scale, 0},
#define CC_STATE_READ(name, unit, scale, value, meaning) *values++ = (s64)(value);

/* NAME_variables[] and NAME_read_values(), from NAME_STATE or, without it, from NAME_info. */
#define CC_VARIABLES_1(name)                                                                       \
	static const struct cc_state_info name##_variables[] = {name##_STATE(CC_STATE_INFO)};      \
	CC_INLINE void name##_read_values(const struct name *s, const struct name##_params *p,     \
					  s64 *values)                                             \
	{                                                                                          \
		(void)s;                                                                           \
		(void)p;                                                                           \
		name##_STATE(CC_STATE_READ)                                                        \
	}
#define CC_VARIABLES_0(name)                                                                       \
	static const struct cc_state_info name##_variables[] = {                                   \
	    CC_INFO_STATE(CC_STATE_INFO) CC_MORE_STATE(name, CC_STATE_INFO)};                      \
	CC_INLINE void name##_read_values(const struct name *state, const struct name##_params *p, \
					  s64 *values)                                             \
	{                                                                                          \
		struct cc_info info = {.inflight_longterm = CC_INFINITE,                           \
				       .inflight_shortterm = CC_INFINITE};                         \
                                                                                                   \
		name##_info(state, p, &info);                                                      \
		{                                                                                  \
			const struct cc_info *s = &info;                                           \
                                                                                                   \
			CC_INFO_STATE(CC_STATE_READ)                                               \
		}                                                                                  \
		{                                                                                  \
			const struct name *s = state;                                              \
                                                                                                   \
			(void)s;                                                                   \
			CC_MORE_STATE(name, CC_STATE_READ)                                         \
		}                                                                                  \
	}

/* NAME_MORE_STATE(S), beside NAME_info. */
#define CC_MORE_STATE_1(name, S) name##_MORE_STATE(S)
#define CC_MORE_STATE_0(name, S)
#define CC_MORE_STATE(name, S)                                                                     \
	CC_JOIN_VALUE(CC_MORE_STATE_, CC_HAS_LIST(name##_MORE_STATE))(name, S)

#define CC_VARIABLES(name) CC_JOIN_VALUE(CC_VARIABLES_, CC_HAS_LIST(name##_STATE))(name)

/* What looks at decisions before their bounds defines it (cc/external.c). */
#ifndef CC_DECIDED
#define CC_DECIDED(ctl) ((void)0)
#endif

/* One call in the four steps of defaults.h. */
#define CC_DECIDE(name, event_kind, call, settle)                                                  \
	do {                                                                                       \
		u64 host_rate_Bps = ctl->pacing_rate_Bps;                                          \
		cc_open_ctl(kept, name##_FLAGS, event_kind, ctl);                                  \
		CC_CALL(call);                                                                     \
		CC_DECIDED(ctl);                                                                   \
		settle;                                                                            \
		cc_close_ctl(kept, name##_FLAGS, conn, host_rate_Bps, ctl);                        \
	} while (0)

#define CC_DEFINE(name)                                                                            \
	_Static_assert(!((name##_FLAGS) & CC_WANTS_RING) || ((name##_FLAGS) & CC_OWNS_CWND),       \
		       "CC_WANTS_RING needs CC_OWNS_CWND");                                        \
	_Static_assert(!((name##_FLAGS) & CC_HOST_RECOVERS) || ((name##_FLAGS) & CC_OWNS_CWND),    \
		       "CC_HOST_RECOVERS needs CC_OWNS_CWND");                                     \
	static const struct cc_param_info name##_param_info[] = {name##_PARAMS(CC_PARAM_INFO){0}}; \
	static void name##_init_(void *s, const void *p, struct cc_kept *kept,                     \
				 const struct cc_conn *conn, struct cc_ctl *ctl)                   \
	{                                                                                          \
		CC_DECIDE(name, 0, name##_init(s, p, conn, ctl), (void)0);                         \
	}                                                                                          \
	static void name##_on_ack_(void *s, const void *p, struct cc_kept *kept,                   \
				   const struct cc_conn *conn, const struct cc_ack *ack,           \
				   struct cc_ctl *ctl)                                             \
	{                                                                                          \
		u32 cwnd = ctl->cwnd;                                                              \
		CC_DECIDE(name, 0, name##_on_ack(s, p, conn, ack, ctl),                            \
			  cc_settle_ack(kept, name##_FLAGS, conn, ack, cwnd, ctl));                \
	}                                                                                          \
	static void name##_on_event_(void *s, const void *p, struct cc_kept *kept,                 \
				     const struct cc_conn *conn, const struct cc_event *event,     \
				     struct cc_ctl *ctl)                                           \
	{                                                                                          \
		CC_DECIDE(name, event->kind, name##_on_event(s, p, conn, event, ctl),              \
			  cc_settle_event(kept, name##_FLAGS, conn, event, ctl));                  \
	}                                                                                          \
	CC_DEFINE_FLAGS_OF(name)                                                                   \
	static u32 name##_flags_of_(const void *p) { return name##_flags_of(p); }                  \
	CC_VARIABLES(name)                                                                         \
	static void name##_read_(const void *s, const void *p, s64 *values)                        \
	{                                                                                          \
		CC_CALL(name##_read_values(s, p, values));                                         \
	}

#define CC_ROW(name, title, sources)                                                               \
	{                                                                                          \
#name, title, sources, name##_param_info, name##_variables,                        \
		    sizeof(name##_param_info) / sizeof(name##_param_info[0]) - 1,                  \
		    sizeof(name##_variables) / sizeof(name##_variables[0]), sizeof(struct name),   \
		    name##_FLAGS, name##_init_, name##_on_ack_, name##_on_event_, name##_read_,    \
		    name##_flags_of_                                                               \
	}

#endif
