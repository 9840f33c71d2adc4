/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * every_input.c - one call of an external algorithm with any state, constants and facts, for an
 * analysis that follows all values at once (Frama-C's Eva, with -lib-entry: what is not set here
 * has any value). `fullpipe cc check` runs it for each of check_init, check_on_ack and
 * check_on_event; the compiler gets CC_SOURCE and CC_NAME as for external.c. It is never run.
 *
 * Constants are in their ranges, and facts in the contract's: a window is 1 to CC_CWND_MAX packets,
 * a packet has some bytes. All else, of the state too, is any value that its type holds, though no
 * connection brings it about.
 */
#define CC_STEP() ((void)0)

#include "defaults.h"
#include "fixed.h"
#include "params.h"
#include "state.h"

static u32 anything;

static u32 at_most(u32 most) { return anything < most ? anything : most; }

/* Newton's method stays above the root, which intervals do not see. tests/cc/fixed.c holds both
 * functions against exact arithmetic. */
#define cc_sqrt(value) ((void)(value), at_most(0xffffffffu))
#define cc_cbrt(value) ((void)(value), at_most(2642245u))

#include CC_SOURCE

#define JOIN_TEXT(a, b) a##b
#define JOIN(a, b) JOIN_TEXT(a, b)
#define BOUND(name, dflt, min, max, scale, unit, zero, source, meaning, ...)                       \
	if (params.name < (u32)(min) || params.name > (u32)(max))                                  \
		leave_out();

#define LEAST_MSS_BYTES 88u /* Linux TCP_MIN_SND_MSS is 48, and options take up to 40 */
#define MOST_MSS_BYTES 65535u

static struct CC_NAME state;
static struct JOIN(CC_NAME, _params) params;
static struct cc_conn conn;
static struct cc_ack ack;
static struct cc_event event;
static struct cc_ctl ctl;

/* What does not end has no result to follow. */
static void leave_out(void)
{
	for (;;)
		;
}

static void assume_possible(void)
{
	/* clang-format off */
	JOIN(CC_NAME, _PARAMS)(BOUND)
	if (conn.mss_bytes < LEAST_MSS_BYTES || conn.mss_bytes > MOST_MSS_BYTES)
		leave_out();
	/* clang-format on */
	if (!conn.cwnd_clamp || !conn.gso_max_segs || !ctl.ssthresh)
		leave_out();
	if (!ctl.cwnd || ctl.cwnd > CC_CWND_MAX)
		leave_out();
}

void check_init(void)
{
	assume_possible();
	JOIN(CC_NAME, _init)(&state, &params, &conn, &ctl);
}

void check_on_ack(void)
{
	assume_possible();
	JOIN(CC_NAME, _on_ack)(&state, &params, &conn, &ack, &ctl);
}

void check_on_event(void)
{
	assume_possible();
	JOIN(CC_NAME, _on_event)(&state, &params, &conn, &event, &ctl);
}
