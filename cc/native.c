/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* native.c - makes the tables of native.h from registry.h. Nothing here knows an algorithm. */
#include "native.h"
#include "registry.h"

#define PARAM_INFO(name, dflt, min, max, scale, unit, zero, source, meaning)                       \
	{#name, unit, zero, source, meaning, dflt, min, max, scale},

#define DEFINE(name, title, sources)                                                               \
	static const struct cc_param_info name##_param_info[] = {name##_PARAMS(PARAM_INFO)};       \
	static void name##_init_(void *s, const void *p, const struct cc_conn *c,                  \
				 struct cc_ctl *ctl)                                               \
	{                                                                                          \
		name##_init(s, p, c, ctl);                                                         \
	}                                                                                          \
	static void name##_on_ack_(void *s, const void *p, const struct cc_conn *c,                \
				   const struct cc_ack *ack, struct cc_ctl *ctl)                   \
	{                                                                                          \
		name##_on_ack(s, p, c, ack, ctl);                                                  \
	}                                                                                          \
	static void name##_on_event_(void *s, const void *p, const struct cc_conn *c,              \
				     const struct cc_event *event, struct cc_ctl *ctl)             \
	{                                                                                          \
		name##_on_event(s, p, c, event, ctl);                                              \
	}                                                                                          \
	static void name##_info_(const void *s, const void *p, struct cc_info *info)               \
	{                                                                                          \
		name##_info(s, p, info);                                                           \
	}

CC_ALGORITHMS(DEFINE)

#define ROW(name, title, sources)                                                                  \
	{#name,                                                                                    \
	 title,                                                                                    \
	 sources,                                                                                  \
	 name##_param_info,                                                                        \
	 sizeof(name##_param_info) / sizeof(name##_param_info[0]),                                 \
	 sizeof(struct name),                                                                      \
	 name##_FLAGS,                                                                             \
	 0,                                                                                        \
	 name##_init_,                                                                             \
	 name##_on_ack_,                                                                           \
	 name##_on_event_,                                                                         \
	 name##_info_},

const struct cc_algorithm cc_algorithms[] = {CC_ALGORITHMS(ROW)};
const u32 cc_algorithm_count = sizeof(cc_algorithms) / sizeof(cc_algorithms[0]);

#define OVERRIDE(param, value) {#param, value, 0},
#define SET_ROW(name, algorithm, kernel_name, title, ...)                                          \
	{name, #algorithm, kernel_name, title, (const struct cc_override[]){__VA_ARGS__{0, 0, 0}}},

const struct cc_set cc_sets[] = {CC_SETS(SET_ROW, OVERRIDE)};
const u32 cc_set_count = sizeof(cc_sets) / sizeof(cc_sets[0]);

void cc_ring_push_native(struct cc_ring *ring, const struct cc_conn *conn)
{
	cc_ring_push(ring, conn);
}

void cc_ring_sample_native(const struct cc_ring *ring, const struct cc_conn *conn,
			   struct cc_ack *ack)
{
	cc_ring_sample(ring, conn, ack);
}

const u32 cc_ring_bytes = sizeof(struct cc_ring);
