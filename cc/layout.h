/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * layout.h - where the fields of the structures lie that cross between C and a host in another
 * language, as a table. The host compares it with its own structures before it calls anything here
 * (crates/fullpipe-cc/src/layout.rs), so that neither writes behind the other's.
 *
 * A field that was added to a structure and not to its list shows as a structure that is too large.
 */
#ifndef FULLPIPE_CC_LAYOUT_H
#define FULLPIPE_CC_LAYOUT_H

#include "native.h"

/* A row of the table. It describes the others and must stay as it is. A row without a field is the
 * structure itself, and its fields follow; one without a structure ends the table. */
struct cc_layout {
	const char *structure, *field;
	u32 offset_bytes, size_bytes;
};

/* clang-format off */
#define CC_CONN_FIELDS(F, s)                                                                       \
	F(s, now_us) F(s, now_ns) F(s, edt_ns) F(s, delivered_us) F(s, last_send_us)               \
	F(s, pacing_rate_cap_Bps) F(s, mss_bytes) F(s, delivered) F(s, delivered_ce) F(s, lost)    \
	F(s, packets_out) F(s, inflight) F(s, snd_una) F(s, snd_nxt) F(s, srtt_us)                 \
	F(s, app_limited) F(s, cwnd_clamp) F(s, gso_max_segs) F(s, seed) F(s, ca_state)            \
	F(s, prior_ca_state) F(s, is_cwnd_limited) F(s, ecn_ok) F(s, ecn_low) F(s, is_paced)       \
	F(s, is_cwnd_full) F(s, unused_) F(s, min_rtt_us) F(s, rttvar_us) F(s, unsent_bytes)       \
	F(s, unsent_packets) F(s, acks) F(s, rcv_tsval) F(s, rcv_tsecr) F(s, ts_tick_us)           \
	F(s, sacked_out) F(s, lost_out) F(s, retrans_out) F(s, max_packets_out) F(s, high_seq)     \
	F(s, reordering) F(s, prior_cwnd) F(s, lost_age_us)
#define CC_ACK_FIELDS(F, s)                                                                        \
	F(s, prior_us) F(s, prior_delivered) F(s, prior_delivered_ce) F(s, delivered)              \
	F(s, delivered_ce) F(s, interval_us) F(s, rtt_us) F(s, losses) F(s, acked_sacked)          \
	F(s, prior_inflight) F(s, last_end_seq) F(s, tx_inflight) F(s, lost) F(s, is_app_limited)  \
	F(s, is_retrans) F(s, is_ack_delayed) F(s, is_probe_answer) F(s, age_us)
#define CC_EVENT_FIELDS(F, s) F(s, kind) F(s, value) F(s, packets) F(s, is_app_limited)
#define CC_CTL_FIELDS(F, s)                                                                        \
	F(s, pacing_rate_Bps) F(s, cwnd) F(s, ssthresh) F(s, tso_segs) F(s, sndbuf_factor)         \
	F(s, cwnd_cnt) F(s, tso_most) F(s, is_scalable) F(s, enters_cwr) F(s, timer_us)
#define CC_INFO_FIELDS(F, s)                                                                       \
	F(s, bw_Bps) F(s, max_bw_Bps) F(s, bw_shortterm_Bps) F(s, min_rtt_us) F(s, phase)          \
	F(s, pacing_gain) F(s, cwnd_gain) F(s, inflight_longterm) F(s, inflight_shortterm)         \
	F(s, extra_acked) F(s, round_count)
#define CC_KEPT_FIELDS(F, s) F(s, sndbuf_factor) F(s, sets_pacing) F(s, timer_us) F(s, recovery)
#define CC_PARAM_INFO_FIELDS(F, s)                                                                 \
	F(s, name) F(s, unit) F(s, zero) F(s, source) F(s, meaning) F(s, dflt) F(s, min) F(s, max) \
	F(s, scale) F(s, origin) F(s, unused_)
#define CC_STATE_INFO_FIELDS(F, s) F(s, name) F(s, unit) F(s, meaning) F(s, scale) F(s, unused_)
#define CC_ALGORITHM_FIELDS(F, s)                                                                  \
	F(s, name) F(s, title) F(s, sources) F(s, params) F(s, variables) F(s, param_count)        \
	F(s, variable_count) F(s, state_bytes) F(s, flags) F(s, init) F(s, on_ack) F(s, on_event)  \
	F(s, read) F(s, flags_of)
#define CC_OVERRIDE_FIELDS(F, s) F(s, param) F(s, value) F(s, unused_)
#define CC_SET_FIELDS(F, s)                                                                        \
	F(s, name) F(s, algorithm) F(s, kernel_name) F(s, title) F(s, overrides)

#define CC_STRUCTURES(S)                                                                           \
	S(cc_conn, CC_CONN_FIELDS)                                                                 \
	S(cc_ack, CC_ACK_FIELDS)                                                                   \
	S(cc_event, CC_EVENT_FIELDS)                                                               \
	S(cc_ctl, CC_CTL_FIELDS)                                                                   \
	S(cc_info, CC_INFO_FIELDS)                                                                 \
	S(cc_kept, CC_KEPT_FIELDS)                                                                 \
	S(cc_param_info, CC_PARAM_INFO_FIELDS)                                                     \
	S(cc_state_info, CC_STATE_INFO_FIELDS)                                                     \
	S(cc_algorithm, CC_ALGORITHM_FIELDS)                                                       \
	S(cc_override, CC_OVERRIDE_FIELDS)                                                         \
	S(cc_set, CC_SET_FIELDS)

#define CC_LAYOUT_FIELD(s, f)                                                                      \
	{#s, #f, __builtin_offsetof(struct s, f), sizeof(((struct s *)0)->f)},
#define CC_LAYOUT_STRUCTURE(s, fields) {#s, 0, 0, sizeof(struct s)}, fields(CC_LAYOUT_FIELD, s)
#define CC_LAYOUT_ROWS {CC_STRUCTURES(CC_LAYOUT_STRUCTURE) {0, 0, 0, 0}}
/* clang-format on */

#endif
