/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * table.h - makes a row of native.h's table from an algorithm's file. Nothing here knows an
 * algorithm. Whoever includes it defines CC_CALL(call), which makes one call of the algorithm's
 * code.
 */
#ifndef FULLPIPE_CC_TABLE_H
#define FULLPIPE_CC_TABLE_H

#include "defaults.h"
#include "native.h"
#include "params.h"

#define CC_PARAM_INFO(name, dflt, min, max, scale, unit, zero, source, meaning)                    \
	{#name, unit, zero, source, meaning, dflt, min, max, scale},

/* One call between cc_open_ctl() and cc_close_ctl(). */
#define CC_DECIDE(name, call)                                                                      \
	do {                                                                                       \
		u64 host_rate_Bps = ctl->pacing_rate_Bps;                                          \
		cc_open_ctl(kept, name##_FLAGS, ctl);                                              \
		CC_CALL(call);                                                                     \
		cc_close_ctl(kept, name##_FLAGS, conn, host_rate_Bps, ctl);                        \
	} while (0)

#define CC_DEFINE(name)                                                                            \
	_Static_assert(!((name##_FLAGS) & CC_WANTS_RING) || ((name##_FLAGS) & CC_OWNS_CWND),       \
		       "CC_WANTS_RING needs CC_OWNS_CWND");                                        \
	static const struct cc_param_info name##_param_info[] = {                                  \
	    name##_PARAMS(CC_PARAM_INFO){0, 0, 0, 0, 0, 0, 0, 0, 0}};                              \
	static void name##_init_(void *s, const void *p, struct cc_kept *kept,                     \
				 const struct cc_conn *conn, struct cc_ctl *ctl)                   \
	{                                                                                          \
		CC_DECIDE(name, name##_init(s, p, conn, ctl));                                     \
	}                                                                                          \
	static void name##_on_ack_(void *s, const void *p, struct cc_kept *kept,                   \
				   const struct cc_conn *conn, const struct cc_ack *ack,           \
				   struct cc_ctl *ctl)                                             \
	{                                                                                          \
		CC_DECIDE(name, name##_on_ack(s, p, conn, ack, ctl));                              \
	}                                                                                          \
	static void name##_on_event_(void *s, const void *p, struct cc_kept *kept,                 \
				     const struct cc_conn *conn, const struct cc_event *event,     \
				     struct cc_ctl *ctl)                                           \
	{                                                                                          \
		CC_DECIDE(name, name##_on_event(s, p, conn, event, ctl));                          \
	}                                                                                          \
	static void name##_info_(const void *s, const void *p, struct cc_info *info)               \
	{                                                                                          \
		CC_CALL(name##_info(s, p, info));                                                  \
	}

#define CC_ROW(name, title, sources)                                                               \
	{                                                                                          \
#name, title, sources, name##_param_info,                                          \
		    sizeof(name##_param_info) / sizeof(name##_param_info[0]) - 1,                  \
		    sizeof(struct name), name##_FLAGS, 0, name##_init_, name##_on_ack_,            \
		    name##_on_event_, name##_info_                                                 \
	}

#endif
