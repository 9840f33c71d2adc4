/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fuzz.c - a host that drives one external algorithm with random connections: quantities of every
 * magnitude, counters about to wrap, parameters at the ends of their ranges. `fullpipe cc check`
 * compiles it with sanitizers and runs it as a separate, confined program:
 *
 *   fuzz DESCRIPTOR SEED CONNECTIONS   makes the calls
 *   fuzz DESCRIPTOR                    prints the last one; for a program that died
 *
 * The descriptor is of a file of struct call's size at least, in which each call is noted before it
 * is made.
 *
 * The facts are always possible: time never goes backwards, no more is acknowledged than was sent,
 * events come in Linux's order. Every call is made twice, on copies of the state and on stacks
 * filled with different values, so that a read of uninitialised memory changes the result. The
 * program starts no other: it runs where none may be started.
 *
 * Decisions are judged as the algorithm made them, before the contract's bounds hide them; each
 * connection ends with calm seconds, in which a phase that drains the path must end. With
 * CC_WATCHES_PRODUCTS the algorithm is compiled by clang with -fsanitize=unsigned-integer-overflow,
 * and a product of 32 bits that wraps is a fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "bytes.h"
#include "native.h"

extern const struct cc_algorithm cc_external;

#define CALLS 1000u        /* of a connection */
#define LIMIT_S 2          /* of processor time, for CALLS calls */
#define CYCLES_OF_TIME 17u /* magnitudes of a pause: up to 2^30 us */

#define CALM_RTT_US 100000u
#define CALM_ROUNDS 1500u  /* 150 s */
#define STUCK_ROUNDS 1200u /* 120 s: constants of built-in algorithms allow 60 s */

enum kind { INIT, ON_ACK, ON_EVENT };

enum fault { NO_FAULT, CWND_0, CWND_WRAPPED, SSTHRESH_0, RATE_0, PRODUCT_WRAPPED, STUCK };

/* The call under way. */
struct call {
	u64 connection, number;
	u32 kind; /* enum kind */
	u32 differs;
	u32 fault; /* enum fault */
	u32 fault_line;
	char fault_file[256];
	struct cc_conn conn;
	struct cc_ack ack;
	struct cc_event event;
	struct cc_ctl ctl;
};

static struct call *call;
static void *state, *twin, *params;
static s64 *values, *other_values;
static struct cc_kept kept;
static u64 random_state;
static u32 flags; /* of the algorithm with the connection's constants */
static struct cc_ctl decided;

void cc_note_decision(const struct cc_ctl *ctl);
void cc_note_decision(const struct cc_ctl *ctl) { decided = *ctl; }

static void accuse(enum fault fault)
{
	call->fault = fault;
	exit(1);
}

#ifdef CC_WATCHES_PRODUCTS
/* What clang's instrumentation calls (compiler-rt, ubsan_handlers.h). */
struct overflow {
	const char *file;
	u32 line, column;
	const struct {
		unsigned short kind, info; /* of an integer: log2 of its bits, times 2, + signed */
	} * type;
};

void __ubsan_handle_mul_overflow(const struct overflow *data, u64 left, u64 right);
void __ubsan_handle_add_overflow(const struct overflow *data, u64 left, u64 right);
void __ubsan_handle_sub_overflow(const struct overflow *data, u64 left, u64 right);
void __ubsan_handle_negate_overflow(const struct overflow *data, u64 value);

void __ubsan_handle_mul_overflow(const struct overflow *data, u64 left, u64 right)
{
	(void)left;
	(void)right;
	/* cc_random_start() of fixed.h wraps on purpose. */
	if (data->type->info >> 1 != 5 || strstr(data->file, "/fixed.h"))
		return;
	call->fault_line = data->line;
	strncpy(call->fault_file, data->file, sizeof(call->fault_file) - 1);
	accuse(PRODUCT_WRAPPED);
}

/* Counters and sequence numbers wrap. */
void __ubsan_handle_add_overflow(const struct overflow *data, u64 left, u64 right)
{
	(void)data;
	(void)left;
	(void)right;
}

void __ubsan_handle_sub_overflow(const struct overflow *data, u64 left, u64 right)
{
	(void)data;
	(void)left;
	(void)right;
}

void __ubsan_handle_negate_overflow(const struct overflow *data, u64 value)
{
	(void)data;
	(void)value;
}
#endif

/* What no host can make sense of. `named_rate`: the call before named a rate. */
static void judge(u32 named_rate)
{
	if (!decided.cwnd)
		accuse(CWND_0);
	if (decided.cwnd > 1u << 31)
		accuse(CWND_WRAPPED);
	if (!decided.ssthresh)
		accuse(SSTHRESH_0);
	if (flags & CC_OWNS_CWND && named_rate && !decided.pacing_rate_Bps)
		accuse(RATE_0);
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static u64 draw(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static u32 below(u64 limit) { return limit ? (u32)(draw() % limit) : 0; }
static u32 chance(u32 one_in) { return below(one_in) == 0; }

/* From 0 to 2^bits - 1, each magnitude as likely. */
static u32 magnitude(u32 bits)
{
	u32 chosen = below(bits + 1);

	return chosen ? (u32)((1ull << (chosen - 1)) + below(1ull << (chosen - 1))) : 0;
}

__attribute__((noinline, no_sanitize("address"), no_sanitize("undefined"))) static void
fill_stack(u64 with)
{
	volatile u64 filled[256];
	u32 i;

	for (i = 0; i < sizeof(filled) / sizeof(filled[0]); i++)
		filled[i] = with;
}

static void make(void *on, struct cc_kept *keep, struct cc_ctl *ctl)
{
	if (call->kind == INIT)
		cc_external.init(on, params, keep, &call->conn, ctl);
	else if (call->kind == ON_ACK)
		cc_external.on_ack(on, params, keep, &call->conn, &call->ack, ctl);
	else
		cc_external.on_event(on, params, keep, &call->conn, &call->event, ctl);
}

/* The call that stands in `call`, twice. */
static void tell(void)
{
	struct cc_ctl ctl = call->ctl, other = call->ctl;
	struct cc_kept other_kept = kept;
	u32 named_rate = kept.sets_pacing;

	memcpy(twin, state, cc_external.state_bytes);
	fill_stack(0x5555555555555555ull);
	make(state, &kept, &ctl);
	judge(named_rate);
	cc_external.read(state, params, values);
	fill_stack(0xaaaaaaaaaaaaaaaaull);
	make(twin, &other_kept, &other);
	cc_external.read(twin, params, other_values);
	if (memcmp(&ctl, &other, sizeof(ctl)) ||
	    memcmp(values, other_values, cc_external.variable_count * sizeof(*values))) {
		call->differs = 1;
		exit(1);
	}
	call->ctl = ctl;
	call->number++;
}

static void tell_event(u32 kind, u32 value, u32 packets)
{
	call->kind = ON_EVENT;
	call->event = (struct cc_event){
	    .kind = kind, .value = value, .packets = packets, .is_app_limited = chance(4)};
	tell();
}

static void to_state(u8 next)
{
	struct cc_conn *conn = &call->conn;

	if (next == conn->ca_state)
		return;
	tell_event(CC_EVENT_STATE, next, 0);
	conn->prior_ca_state = conn->ca_state;
	conn->ca_state = next;
}

static void fill_details(void)
{
	struct cc_conn *conn = &call->conn;

	conn->min_rtt_us = chance(8) ? 0 : 1 + magnitude(26);
	conn->rttvar_us = magnitude(26);
	conn->unsent_bytes = magnitude(32);
	conn->unsent_packets = cc_packets_up(conn->unsent_bytes, conn->mss_bytes);
	conn->acks += magnitude(4);
	conn->ts_tick_us = chance(4) ? 0 : chance(4) ? 1 : 1000;
	conn->rcv_tsval = conn->ts_tick_us ? (u32)draw() : 0;
	conn->rcv_tsecr = conn->ts_tick_us ? (u32)draw() : 0;
	conn->sacked_out = below((u64)conn->packets_out + 1);
	conn->lost_out = conn->packets_out - conn->sacked_out;
	conn->retrans_out = below((u64)conn->lost_out + 1);
	conn->max_packets_out = conn->packets_out + magnitude(6);
	conn->high_seq = conn->snd_nxt;
	conn->reordering = 3 + magnitude(8);
	conn->prior_cwnd = magnitude(24);
}

static void pass_time(void)
{
	struct cc_conn *conn = &call->conn;
	u32 pause_us = chance(50) ? magnitude(30) : magnitude(CYCLES_OF_TIME);

	conn->now_us += pause_us;
	conn->now_ns = conn->now_us * CC_NSEC_PER_USEC + below(1000);
	if (chance(2) && conn->edt_ns < conn->now_ns + 1000000)
		conn->edt_ns = conn->now_ns + magnitude(28);
	conn->app_limited = chance(5);
	conn->is_cwnd_limited = !chance(4);
	conn->is_cwnd_full = !chance(4);
	if (flags & CC_WANTS_DETAILS)
		fill_details();
	if (flags & CC_WANTS_TIMER && cc_is_timer_due(&kept, conn->now_us))
		tell_event(CC_EVENT_TIMER, (u32)(conn->now_us - kept.timer_us), 0);
}

static void send(void)
{
	struct cc_conn *conn = &call->conn;
	u32 room = call->ctl.cwnd > conn->inflight ? call->ctl.cwnd - conn->inflight : 0;
	u32 packets = chance(3) ? room : cc_min_u32(magnitude(12), room);

	if (!conn->inflight && packets)
		tell_event(CC_EVENT_TX_START, 0, 0);
	if (!conn->inflight && packets && chance(4)) {
		tell_event(CC_EVENT_CWND_RESTART, 0, 0);
		call->ctl.cwnd = cc_min_u32(call->ctl.cwnd, 10);
		packets = cc_min_u32(packets, 10);
	}
	if (flags & CC_OWNS_CWND)
		tell_event(CC_EVENT_SEND, 0, 0);
	conn->packets_out += packets;
	conn->inflight += packets;
	conn->snd_nxt += packets * conn->mss_bytes;
	conn->last_send_us = conn->now_us;
}

/* Packets in flight are marked lost; what is lost stays out until it is acknowledged. */
static u32 lose(void)
{
	struct cc_conn *conn = &call->conn;
	u32 losses = conn->inflight && chance(6) ? 1 + below(conn->inflight) : 0;

	losses = chance(3) ? losses : cc_min_u32(losses, 1 + magnitude(4));
	conn->lost += losses;
	conn->inflight -= losses;
	if (losses && flags & CC_WANTS_RING) {
		conn->lost_age_us = 1 + magnitude(26);
		tell_event(CC_EVENT_LOST, conn->inflight + losses + magnitude(6), losses);
		conn->lost_age_us = 0;
	}
	return losses;
}

static void acknowledge(void)
{
	struct cc_conn *conn = &call->conn;
	u32 prior_inflight = conn->inflight, losses = lose(), acked, marked, rtt_us, span, age_us;
	u32 flight = conn->packets_out;

	if (!flight)
		return;
	acked = chance(4) ? 1 + below(flight) : cc_min_u32(flight, 1 + magnitude(4));
	marked = conn->ecn_ok && chance(3) ? below(acked + 1) : 0;
	conn->packets_out -= acked;
	conn->inflight = cc_min_u32(conn->inflight, conn->packets_out);
	conn->delivered += acked;
	conn->delivered_ce += marked;
	conn->delivered_us = conn->now_us;
	conn->snd_una += acked * conn->mss_bytes;
	rtt_us = 1 + magnitude(26);
	conn->srtt_us = conn->srtt_us ? conn->srtt_us - conn->srtt_us / 8 + rtt_us / 8 : rtt_us;
	if (flags & CC_WANTS_ACKS)
		tell_event(CC_EVENT_ACK, 0, 0);
	if (flags & CC_WANTS_RTT && !chance(8))
		tell_event(CC_EVENT_RTT, rtt_us, acked);
	call->kind = ON_ACK;
	memset(&call->ack, 0, sizeof(call->ack));
	call->ack.acked_sacked = acked;
	if (flags & CC_OWNS_CWND) {
		span = acked + below((u64)prior_inflight + 1);
		age_us = 1 + magnitude(26);
		call->ack.rtt_us = chance(8) ? -1 : (s32)rtt_us;
		call->ack.losses = losses;
		call->ack.prior_inflight = prior_inflight;
		call->ack.last_end_seq = conn->snd_una;
		call->ack.is_retrans = chance(8);
		call->ack.is_ack_delayed = chance(8);
		call->ack.is_probe_answer = chance(50);
		call->ack.age_us = (u32)age_us;
		call->ack.is_app_limited = chance(5);
		if (chance(10)) { /* no sample: nothing newly delivered was sent by us */
			call->ack.delivered = call->ack.interval_us = -1;
		} else {
			call->ack.prior_us = conn->now_us - cc_min_u64(age_us, conn->now_us - 1);
			call->ack.prior_delivered = conn->delivered - span;
			call->ack.prior_delivered_ce = conn->delivered_ce - marked;
			call->ack.delivered = (s32)span;
			call->ack.delivered_ce = (s32)marked;
			call->ack.interval_us = chance(10) ? -1 : (s32)age_us;
		}
		if (flags & CC_WANTS_RING) {
			call->ack.tx_inflight = prior_inflight + magnitude(6);
			call->ack.lost = cc_max_u32(losses, below(span + 1));
		}
	}
	tell();
	if (!(flags & CC_OWNS_CWND) && conn->ca_state >= CC_CWR)
		call->ctl.cwnd = 1 + below(call->ctl.cwnd); /* the host's recovery */
}

/* Into and out of recovery, CWR and timeouts, in the order of tcp_input.c. */
static void change_state(void)
{
	struct cc_conn *conn = &call->conn;

	if (conn->ca_state < CC_CWR) {
		u8 next = (u8)below(5);

		if (next >= CC_CWR)
			tell_event(CC_EVENT_SSTHRESH, 0, 0);
		if (next == CC_LOSS) {
			tell_event(CC_EVENT_RTO, 0, 0);
			conn->lost += conn->inflight;
			conn->inflight = 0;
			if (!(flags & CC_OWNS_CWND))
				call->ctl.cwnd = 1;
		}
		to_state(next);
	} else {
		if (chance(3))
			tell_event(CC_EVENT_UNDO, 0, 0);
		else if (conn->ca_state != CC_LOSS)
			tell_event(CC_EVENT_COMPLETE_CWR, 0, 0);
		to_state(CC_OPEN);
		if (flags & CC_OWNS_CWND && chance(4))
			tell_event(CC_EVENT_TLP_RECOVERY, 0, 0);
	}
}

static void choose_constants(void)
{
	u32 *value = params, i;
	u32 changes = chance(2);

	for (i = 0; i < cc_external.param_count; i++) {
		const struct cc_param_info *param = &cc_external.params[i];
		u32 range[4] = {param->dflt, param->min, param->max, 0};

		range[3] = param->min + below((u64)param->max - param->min + 1);
		value[i] = range[changes && chance(4) ? below(4) : 0];
	}
}

static void connect_(void)
{
	static const u32 sizes[] = {88, 536, 1448, 8948, 65483};
	struct cc_conn *conn = &call->conn;
	u32 near_wrap = chance(3) ? 0u - magnitude(10) : 0;

	choose_constants();
	flags = cc_external.flags_of(params);
	memset(state, 0, cc_external.state_bytes);
	memset(&kept, 0, sizeof(kept));
	memset(conn, 0, sizeof(*conn));
	conn->now_us = 1 + (chance(3) ? 0xffffffffull - magnitude(20) : magnitude(32));
	conn->now_ns = conn->edt_ns = conn->now_us * CC_NSEC_PER_USEC;
	conn->pacing_rate_cap_Bps = chance(4) ? 1ull << below(40) : ~0ull;
	conn->mss_bytes = sizes[below(5)];
	conn->delivered = conn->delivered_ce = conn->lost = near_wrap;
	conn->snd_una = conn->snd_nxt = (u32)draw();
	conn->cwnd_clamp = chance(4) ? 2 + magnitude(16) : ~0u;
	conn->gso_max_segs = 1 + magnitude(16);
	conn->seed = (u32)draw();
	conn->ecn_ok = chance(2);
	conn->ecn_low = conn->ecn_ok && chance(2);
	conn->is_paced = !chance(4);
	conn->srtt_us = chance(4) ? 0 : 1 + magnitude(26);
	memset(&call->ctl, 0, sizeof(call->ctl));
	call->ctl.cwnd = chance(3) ? 1 + below(CC_CWND_MAX) : chance(2) ? 1 + magnitude(24) : 10;
	call->ctl.ssthresh = CC_INFINITE;
	call->ctl.pacing_rate_Bps = ~0ull;
	call->kind = INIT;
	call->number = 0;
	tell();
}

/* The variable of unit "phase"; variable_count: there is none. */
static u32 phase_index(void)
{
	u32 i;

	for (i = 0; i < cc_external.variable_count; i++)
		if (!strcmp(cc_external.variables[i].unit, "phase"))
			break;
	return i;
}

/* A path that delivers what the window sent, once a round trip, with nothing lost. */
static void calm_round(void)
{
	struct cc_conn *conn = &call->conn;
	u32 packets = cc_max_u32(cc_min_u32(call->ctl.cwnd, 1000), 1);

	conn->now_us += CALM_RTT_US;
	conn->now_ns = conn->edt_ns = conn->now_us * CC_NSEC_PER_USEC;
	conn->app_limited = 0;
	conn->is_cwnd_limited = conn->is_cwnd_full = 1;
	conn->srtt_us = CALM_RTT_US;
	conn->packets_out = conn->inflight = packets;
	conn->snd_nxt += packets * conn->mss_bytes;
	conn->snd_una = conn->snd_nxt;
	conn->last_send_us = conn->now_us - CALM_RTT_US;
	call->kind = ON_ACK;
	memset(&call->ack, 0, sizeof(call->ack));
	call->ack.acked_sacked = packets;
	if (flags & CC_OWNS_CWND) {
		call->ack.prior_us = conn->now_us - CALM_RTT_US;
		call->ack.prior_delivered = conn->delivered;
		call->ack.prior_delivered_ce = conn->delivered_ce;
		call->ack.delivered = (s32)packets;
		call->ack.interval_us = call->ack.rtt_us = (s32)CALM_RTT_US;
		call->ack.age_us = CALM_RTT_US;
		call->ack.prior_inflight = call->ack.tx_inflight = packets;
		call->ack.last_end_seq = conn->snd_una;
	}
	conn->delivered += packets;
	conn->delivered_us = conn->now_us;
	conn->packets_out = conn->inflight = 1;
	tell();
}

static void calm_down(void)
{
	u32 phase = phase_index(), stuck = 0, i;

	if (phase == cc_external.variable_count)
		return;
	to_state(CC_OPEN);
	for (i = 0; i < CALM_ROUNDS; i++) {
		calm_round();
		stuck = values[phase] == CC_PHASE_PROBE_RTT ? stuck + 1 : 0;
		if (stuck > STUCK_ROUNDS)
			accuse(STUCK);
	}
}

static void fuzz(u64 connections)
{
	const struct itimerval limit = {.it_value.tv_sec = LIMIT_S};
	u64 i;

	for (i = 0; i < connections; i++) {
		call->connection = i;
		setitimer(ITIMER_PROF, &limit, 0);
		connect_();
		while (call->number < CALLS) {
			u32 what = below(16);

			pass_time();
			if (what < 6)
				send();
			else if (what < 14)
				acknowledge();
			else if (what < 15)
				change_state();
			else
				tell_event(CC_EVENT_ECN_CE, 0, 0);
		}
		calm_down();
	}
}

#define SHOW(of, field) printf(" %s %lld", #field, (long long)(of).field)

static void print_call(void)
{
	static const char *const events[] = {
	    "nothing", "TX_START", "CWND_RESTART", "COMPLETE_CWR", "RTO",
	    "ECN_CE",  "STATE",    "SSTHRESH",     "UNDO",         "RTT",
	    "SEND",    "LOST",     "TLP_RECOVERY", "ACK",          "TIMER"};

	static const char *const faults[] = {
	    "",
	    "it sets cwnd to 0",
	    "it sets a window below 0, which wraps to billions of packets",
	    "it sets ssthresh to 0",
	    "it sets a pacing rate of 0 after a rate, which leaves the rate to the host",
	    "a product of 32 bits wraps; make one of its factors a u64",
	    "it stays in the phase ProbeRTT for 120 s of a path that loses nothing"};

	if (call->differs)
		printf("differs\n");
	if (call->fault)
		printf("fault: %s:%u: %s\n", call->fault_file, call->fault_line,
		       faults[call->fault]);
	printf("call %llu of connection %llu: ", call->number, call->connection);
	if (call->kind == INIT)
		printf("init");
	else if (call->kind == ON_EVENT)
		printf("on_event, %s: value %u packets %u", events[call->event.kind],
		       call->event.value, call->event.packets);
	else {
		printf("on_ack:");
		SHOW(call->ack, acked_sacked);
		SHOW(call->ack, delivered);
		SHOW(call->ack, interval_us);
		SHOW(call->ack, rtt_us);
		SHOW(call->ack, losses);
	}
	printf(";");
	SHOW(call->conn, now_us);
	SHOW(call->conn, mss_bytes);
	SHOW(call->conn, srtt_us);
	SHOW(call->conn, inflight);
	SHOW(call->conn, delivered);
	SHOW(call->conn, ca_state);
	SHOW(call->ctl, cwnd);
	SHOW(call->ctl, ssthresh);
	printf("\n");
}

int main(int count, char **words)
{
	if (count != 2 && count != 4)
		return 2;
	call = mmap(0, sizeof(*call), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(words[1]), 0);
	if (call == MAP_FAILED)
		return 2;
	if (count == 2) {
		print_call();
		return 0;
	}
	random_state = strtoull(words[2], 0, 10);
	state = calloc(1, cc_external.state_bytes);
	twin = calloc(1, cc_external.state_bytes);
	values = calloc(cc_external.variable_count, sizeof(*values));
	other_values = calloc(cc_external.variable_count, sizeof(*other_values));
	params = calloc(cc_external.param_count + 1, sizeof(u32));
	if (!state || !twin || !values || !other_values || !params)
		return 2;
	fuzz(strtoull(words[3], 0, 10));
	return 0;
}
