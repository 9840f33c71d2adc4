/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fuzz.c - drives every algorithm of the registry with seeded random calls, under the undefined
 * behaviour sanitizer: whatever a host tells an algorithm, its window stays at least 1 and no
 * operation is undefined. Parameters are each set's own and then random ones in their ranges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cc/native.h"

#define CALLS 20000

static u64 state = 88172645463325252ull;

static u32 random_u32(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (u32)(state >> 16);
}

static u32 below(u32 limit) { return limit ? random_u32() % limit : 0; }

/* Mostly plausible, sometimes anything. */
static u32 wild(u32 plausible) { return below(50) ? below(plausible + 1) : random_u32(); }

static void advance(struct cc_conn *conn)
{
	u64 us = below(20) ? below(5000) : below(20000000);

	conn->now_us += us;
	conn->now_ns = conn->now_us * 1000;
	conn->edt_ns = conn->now_ns + below(5000000);
	conn->last_send_us = conn->now_us - below((u32)(us + 1));
	conn->packets_out = wild(10000);
	conn->inflight = below(conn->packets_out ? conn->packets_out : 1);
	conn->srtt_us = wild(500000);
	conn->app_limited = below(4) ? 0 : random_u32();
	conn->is_cwnd_limited = (u8)below(2);
	conn->snd_una += below(20000);
	conn->snd_nxt = conn->snd_una + conn->packets_out * conn->mss_bytes;
	conn->ecn_ok = (u8)below(2);
	conn->ecn_low = (u8)below(2);
}

static void fill_ack(struct cc_ack *ack, struct cc_conn *conn)
{
	memset(ack, 0, sizeof(*ack));
	ack->acked_sacked = below(40);
	ack->losses = below(10) ? 0 : below(40);
	conn->delivered += ack->acked_sacked;
	conn->delivered_ce += below(10) ? 0 : ack->acked_sacked;
	conn->lost += ack->losses;
	conn->delivered_us = conn->now_us;
	ack->prior_us = conn->now_us - below(1000000);
	ack->prior_delivered = conn->delivered - below(5000);
	ack->prior_delivered_ce = conn->delivered_ce - below(500);
	ack->delivered = below(20) ? (s32)below(5000) : -1;
	ack->delivered_ce = (s32)below(100);
	ack->interval_us = below(20) ? (s32)below(1000000) : -1;
	ack->rtt_us = below(20) ? (s32)below(1000000) : -1;
	ack->prior_inflight = conn->inflight + ack->acked_sacked;
	ack->last_end_seq = conn->snd_una + below(1000000);
	ack->is_app_limited = (u8)below(2);
	ack->is_retrans = (u8)below(2);
	ack->is_ack_delayed = (u8)below(2);
	ack->age_us = wild(1000000);
}

static void drive(const struct cc_algorithm *algorithm, const u32 *params, const char *name)
{
	static const u32 packet_bytes[] = {1448, 536, 8948, 1};
	void *s = calloc(1, algorithm->state_bytes);
	struct cc_ring *ring = calloc(1, sizeof(*ring));
	struct cc_conn conn = {.now_us = 1000000, .seed = random_u32(), .gso_max_segs = 44};
	struct cc_ctl ctl = {.cwnd = 10, .ssthresh = CC_INFINITE};
	struct cc_event event;
	struct cc_ack ack;
	s64 values[64];
	struct cc_kept kept = {0};
	u32 i;

	if (!s || !ring)
		abort();
	conn.mss_bytes = packet_bytes[below(4)];
	conn.cwnd_clamp = 0xffffffffu;
	conn.pacing_rate_cap_Bps = ~0ull;
	conn.srtt_us = below(200000);
	conn.now_ns = conn.now_us * 1000;
	algorithm->init(s, params, &kept, &conn, &ctl);
	for (i = 0; i < CALLS; i++) {
		advance(&conn);
		if (below(4)) {
			fill_ack(&ack, &conn);
			cc_ring_sample_native(ring, &conn, &ack);
			algorithm->on_ack(s, params, &kept, &conn, &ack, &ctl);
		} else {
			memset(&event, 0, sizeof(event));
			event.kind = 1 + below(CC_EVENT_ACK);
			event.value = event.kind == CC_EVENT_STATE ? below(5) : wild(1000000);
			event.packets = below(100);
			cc_ring_take_native(ring, &conn, &event);
			algorithm->on_event(s, params, &kept, &conn, &event, &ctl);
			if (event.kind == CC_EVENT_STATE) {
				conn.prior_ca_state = conn.ca_state;
				conn.ca_state = (u8)event.value;
			}
		}
		if (ctl.cwnd < 1) {
			fprintf(stderr, "%s: window 0 after call %u\n", name, i);
			exit(1);
		}
		algorithm->read(s, params, values);
	}
	free(ring);
	free(s);
}

int main(void)
{
	u32 index, k, round;

	for (index = 0; index < cc_set_count; index++) {
		const struct cc_set *set = &cc_sets[index];
		const struct cc_algorithm *algorithm = cc_algorithms;
		const struct cc_override *change;
		u32 params[128];

		while (strcmp(algorithm->name, set->algorithm))
			algorithm++;
		for (round = 0; round < 20; round++) {
			for (k = 0; k < algorithm->param_count; k++) {
				const struct cc_param_info *info = &algorithm->params[k];

				params[k] = info->dflt;
				if (round >= 10)
					params[k] = info->min + below(info->max - info->min + 1);
			}
			if (round < 10)
				for (change = set->overrides; change->param; change++)
					for (k = 0; k < algorithm->param_count; k++)
						if (!strcmp(algorithm->params[k].name,
							    change->param))
							params[k] = change->value;
			drive(algorithm, params, set->name);
		}
		printf("%s: %d calls, nothing undefined\n", set->name, 20 * CALLS);
	}
	return 0;
}
