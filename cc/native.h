/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* native.h - the algorithms as a table of functions, for hosts that are ordinary programs. */
#ifndef FULLPIPE_CC_NATIVE_H
#define FULLPIPE_CC_NATIVE_H

#include "cc_more.h"
#include "defaults.h"
#include "ring.h"
#include "state.h"

struct cc_param_info {
	const char *name, *unit, *zero, *source, *meaning;
	u32 dflt, min, max, scale, origin;
	u32 unused_;
};

struct cc_state_info {
	const char *name, *unit, *meaning;
	u32 scale;
	u32 unused_;
};

struct cc_algorithm {
	const char *name, *title, *sources;
	const struct cc_param_info *params;
	const struct cc_state_info *variables;
	u32 param_count;
	u32 variable_count;
	u32 state_bytes;
	u32 flags;
	/* Each with the contract's defaults filled in. */
	void (*init)(void *state, const void *params, struct cc_kept *, const struct cc_conn *,
		     struct cc_ctl *);
	void (*on_ack)(void *state, const void *params, struct cc_kept *, const struct cc_conn *,
		       const struct cc_ack *, struct cc_ctl *);
	void (*on_event)(void *state, const void *params, struct cc_kept *, const struct cc_conn *,
			 const struct cc_event *, struct cc_ctl *);
	/* The variables' values, of which each may be CC_NONE. */
	void (*read)(const void *state, const void *params, s64 *values);
	/* Those of `flags` that hold with these constants (flags.h). */
	u32 (*flags_of)(const void *params);
};

struct cc_override {
	const char *param; /* NULL ends the list */
	u32 value;
	u32 unused_;
};

struct cc_set {
	const char *name, *algorithm, *kernel_name, *title;
	const struct cc_override *overrides;
};

extern const struct cc_algorithm cc_algorithms[];
extern const u32 cc_algorithm_count;
extern const struct cc_set cc_sets[];
extern const u32 cc_set_count;

/* Takes a snapshot where the event announces a sending. */
void cc_ring_take_native(struct cc_ring *ring, const struct cc_conn *conn,
			 const struct cc_event *event);
void cc_ring_sample_native(const struct cc_ring *ring, const struct cc_conn *conn,
			   struct cc_ack *ack);
extern const u32 cc_ring_bytes;
/* The variables of code that is not C and fills struct cc_info. */
extern const struct cc_state_info cc_info_variables[];
extern const u32 cc_info_variable_count;
void cc_info_read(const struct cc_info *s, s64 *values);
/* ctl->tso_segs for an algorithm that is not asked. */
u32 cc_least_burst(struct cc_kept *kept, struct cc_ctl *ctl);
/* What a host paces at for an algorithm that names no rate (defaults.h). */
extern const u32 cc_pacing_ss_percent, cc_pacing_ca_percent;
u64 cc_window_rate(const struct cc_ctl *ctl, u32 packets_out, u32 mss_bytes, u64 srtt_us8,
		   u32 ss_percent, u32 ca_percent);
/* What goes around a call of code that is not C (defaults.h). */
void cc_open_ctl_native(struct cc_kept *kept, u32 flags, u32 event_kind, struct cc_ctl *ctl);
void cc_settle_ack_native(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			  const struct cc_ack *ack, u32 cwnd, struct cc_ctl *ctl);
void cc_settle_event_native(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			    const struct cc_event *event, struct cc_ctl *ctl);
void cc_close_ctl_native(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			 u64 host_rate_Bps, struct cc_ctl *ctl);

#endif
