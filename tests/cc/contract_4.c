/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * contract_4.c - calls an algorithm of a file (CC_SOURCE, as cc/external.c has it) with random
 * facts and prints a digest of all its decisions. It uses nothing that version 4 of the contract
 * lacked, so it can be compiled with the headers of version 4 and with today's: the same file must
 * give the same digest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

extern const struct cc_algorithm cc_external;

#define CONNECTIONS 40
#define CALLS 2000

static u64 random_state = 4, digest = 0xcbf29ce484222325ull;

/* splitmix64 (Steele, Lea, Flood 2014) */
static u32 below(u64 limit)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (u32)((z ^ z >> 31) % limit);
}

/* FNV-1a, a word at a time. */
static void add(u64 value) { digest = (digest ^ value) * 0x100000001b3ull; }

static void add_decisions(const struct cc_ctl *ctl)
{
	add(ctl->pacing_rate_Bps);
	add(ctl->cwnd);
	add(ctl->ssthresh);
	add(ctl->tso_segs);
	add(ctl->sndbuf_factor);
	add(ctl->cwnd_cnt);
	add(ctl->tso_most);
	add(ctl->is_scalable);
}

static void fill_ack(const struct cc_conn *conn, struct cc_ack *ack)
{
	memset(ack, 0, sizeof(*ack));
	ack->acked_sacked = 1 + below(8);
	if (!(cc_external.flags & CC_OWNS_CWND))
		return;
	ack->prior_us = conn->now_us - 10000 - below(90000);
	ack->interval_us = (s32)(1 + below(100000));
	ack->delivered = (s32)(1 + below(200));
	ack->prior_delivered = conn->delivered - (u32)ack->delivered;
	ack->delivered_ce = (s32)below((u64)ack->delivered + 1);
	ack->rtt_us = (s32)(10000 + below(50000));
	ack->losses = below(20) ? 0 : below(3);
	ack->prior_inflight = conn->inflight + ack->acked_sacked;
	ack->last_end_seq = conn->snd_una;
	ack->tx_inflight = 1 + below(300);
	ack->lost = below(4);
	ack->is_app_limited = !below(8);
	ack->is_retrans = !below(16);
	ack->is_ack_delayed = !below(8);
	ack->age_us = 10000 + below(90000);
}

/* Facts of the next call: time goes on, packets leave and arrive. */
static void move(struct cc_conn *conn)
{
	u32 acked = below(6);

	conn->now_us += 1 + below(20000);
	conn->now_ns = conn->now_us * 1000;
	conn->edt_ns = conn->now_ns + below(1000000);
	conn->delivered_us = conn->now_us;
	conn->last_send_us = conn->now_us - below(5000);
	conn->delivered += acked;
	conn->delivered_ce += below(acked + 1) / 2;
	conn->lost += !below(40);
	conn->inflight = below(200);
	conn->packets_out = conn->inflight + below(10);
	conn->snd_una += acked * conn->mss_bytes;
	conn->snd_nxt = conn->snd_una + conn->packets_out * conn->mss_bytes;
	conn->srtt_us = 10000 + below(50000);
	conn->app_limited = !below(10);
	conn->is_cwnd_limited = !!below(5);
	conn->is_cwnd_full = !!below(5);
	conn->prior_ca_state = conn->ca_state;
	conn->ca_state = (u8)(below(10) ? CC_OPEN : below(5));
}

int main(void)
{
	u64 *state = calloc(1, cc_external.state_bytes + 8), kept[64];
	u32 *params = calloc(cc_external.param_count + 1, sizeof(u32)), i, call;

	if (!state || !params)
		return 2;
	for (i = 0; i < cc_external.param_count; i++)
		params[i] = cc_external.params[i].dflt;
	for (i = 0; i < CONNECTIONS; i++) {
		struct cc_conn conn = {.now_us = 1000000,
				       .mss_bytes = 1448,
				       .cwnd_clamp = ~0u,
				       .gso_max_segs = 44,
				       .seed = i,
				       .ecn_ok = i & 1,
				       .is_paced = 1,
				       .pacing_rate_cap_Bps = ~0ull};
		struct cc_ctl ctl = {.cwnd = 10, .ssthresh = CC_INFINITE, .pacing_rate_Bps = ~0ull};

		memset(state, 0, cc_external.state_bytes);
		memset(kept, 0, sizeof(kept));
		move(&conn);
		cc_external.init(state, params, (void *)kept, &conn, &ctl);
		for (call = 0; call < CALLS; call++) {
			move(&conn);
			if (below(3)) {
				struct cc_ack ack;

				fill_ack(&conn, &ack);
				cc_external.on_ack(state, params, (void *)kept, &conn, &ack, &ctl);
			} else {
				/* Those of version 1, and LOST, TLP_RECOVERY and ACK of 2. */
				struct cc_event event = {.kind = 1 + below(13),
							 .value = 1 + below(4),
							 .packets = below(8)};

				if (event.kind == CC_EVENT_RTT)
					event.value = 10000 + below(50000);
				cc_external.on_event(state, params, (void *)kept, &conn, &event,
						     &ctl);
			}
			add_decisions(&ctl);
		}
	}
	printf("%016llx\n", digest);
	return 0;
}
