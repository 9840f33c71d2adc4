/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* native.c - makes the tables of native.h from registry.h. Nothing here knows an algorithm. */
#include "native.h"
#include "layout.h"
#include "registry.h"

#define CC_CALL(call) call
#include "table.h"

#define DEFINE(name, title, sources) CC_DEFINE(name)
CC_ALGORITHMS(DEFINE)

#define ROW(name, title, sources) CC_ROW(name, title, sources),
const struct cc_algorithm cc_algorithms[] = {CC_ALGORITHMS(ROW)};
const u32 cc_algorithm_count = sizeof(cc_algorithms) / sizeof(cc_algorithms[0]);

extern const struct cc_layout cc_layout[];
const struct cc_layout cc_layout[] = CC_LAYOUT_ROWS;

#define OVERRIDE(param, value) {#param, value, 0},
#define SET_ROW(name, algorithm, kernel_name, title, ...)                                          \
	{name, #algorithm, kernel_name, title, (const struct cc_override[]){__VA_ARGS__{0, 0, 0}}},

const struct cc_set cc_sets[] = {CC_SETS(SET_ROW, OVERRIDE)};
const u32 cc_set_count = sizeof(cc_sets) / sizeof(cc_sets[0]);

const struct cc_state_info cc_info_variables[] = {CC_INFO_STATE(CC_STATE_INFO)};
const u32 cc_info_variable_count = sizeof(cc_info_variables) / sizeof(cc_info_variables[0]);

void cc_info_read(const struct cc_info *s, s64 *values) { CC_INFO_STATE(CC_STATE_READ) }

void cc_ring_take_native(struct cc_ring *ring, const struct cc_conn *conn,
			 const struct cc_event *event)
{
	if (cc_ring_is_fed_by(event->kind, event->value))
		cc_ring_push(ring, conn);
}

void cc_ring_sample_native(const struct cc_ring *ring, const struct cc_conn *conn,
			   struct cc_ack *ack)
{
	cc_ring_sample(ring, conn, ack);
}

const u32 cc_ring_bytes = sizeof(struct cc_ring);

/* The connection plays a part only in what CC_OWNS_CWND asks for, and window and threshold stay
 * what they are. */
u32 cc_least_burst(struct cc_kept *kept, struct cc_ctl *ctl)
{
	u64 host_rate_Bps = ctl->pacing_rate_Bps;

	cc_open_ctl(kept, 0, 0, ctl);
	cc_close_ctl(kept, CC_MAY_CLOSE, 0, host_rate_Bps, ctl);
	return ctl->tso_segs;
}

const u32 cc_pacing_ss_percent = CC_PACING_SS_PERCENT;
const u32 cc_pacing_ca_percent = CC_PACING_CA_PERCENT;

u64 cc_window_rate(const struct cc_ctl *ctl, u32 packets_out, u32 mss_bytes, u64 srtt_us8,
		   u32 ss_percent, u32 ca_percent)
{
	return cc_window_rate_Bps(ctl, packets_out, mss_bytes, srtt_us8, ss_percent, ca_percent);
}

void cc_open_ctl_native(struct cc_kept *kept, u32 flags, u32 event_kind, struct cc_ctl *ctl)
{
	cc_open_ctl(kept, flags, event_kind, ctl);
}

void cc_settle_ack_native(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			  const struct cc_ack *ack, u32 cwnd, struct cc_ctl *ctl)
{
	cc_settle_ack(kept, flags, conn, ack, cwnd, ctl);
}

void cc_settle_event_native(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			    const struct cc_event *event, struct cc_ctl *ctl)
{
	cc_settle_event(kept, flags, conn, event, ctl);
}

void cc_close_ctl_native(struct cc_kept *kept, u32 flags, const struct cc_conn *conn,
			 u64 host_rate_Bps, struct cc_ctl *ctl)
{
	cc_close_ctl(kept, flags, conn, host_rate_Bps, ctl);
}
