/* told.c - what ngtcp2's connection knows of its congestion control and has no function for. Must
 * never change anything. Numbers without a value are UINT64_MAX. */
#include <string.h>

#include "ngtcp2_conn.h"

struct told {
	uint64_t congestion_recovery_start_ns;
	/* Rate at which it paces; the unit of ngtcp2's interval is 1/1024 ns a byte. */
	uint64_t pacing_rate_bps;
	/* The rest is BBR's. */
	uint64_t phase;
	uint64_t max_bw_bps;
	uint64_t min_rtt_ns;
	uint64_t round_count;
	uint64_t bw_shortterm_bps;
	uint64_t inflight_longterm_bytes;
	uint64_t inflight_shortterm_bytes;
	uint64_t extra_acked_bytes;
	uint64_t pacing_gain_percent;
	uint64_t cwnd_gain_percent;
};

static uint64_t bits(uint64_t bytes) { return bytes == UINT64_MAX ? bytes : bytes * 8; }

void fullpipe_ngtcp2_told(const ngtcp2_conn *conn, struct told *told)
{
	const ngtcp2_cc_bbr *bbr = &conn->bbr;
	uint64_t interval = conn->cstat.pacing_interval_m;

	memset(told, 0xff, sizeof(*told));
	told->congestion_recovery_start_ns = conn->cstat.congestion_recovery_start_ts;
	if (interval)
		told->pacing_rate_bps = UINT64_C(8000000000) * 1024 / interval;
	if (conn->cc_algo != NGTCP2_CC_ALGO_BBR)
		return;
	told->phase = (uint64_t)bbr->state;
	told->max_bw_bps = bits(bbr->max_bw);
	told->min_rtt_ns = bbr->min_rtt;
	told->round_count = bbr->round_count;
	told->bw_shortterm_bps = bits(bbr->bw_shortterm);
	told->inflight_longterm_bytes = bbr->inflight_longterm;
	told->inflight_shortterm_bytes = bbr->inflight_shortterm;
	told->extra_acked_bytes = bbr->extra_acked;
	told->pacing_gain_percent = bbr->pacing_gain_h;
	told->cwnd_gain_percent = bbr->cwnd_gain_h;
}
