/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * bbr3_params.h - every constant of bbr3.h, and the families of values that sets share.
 *
 * The defaults are the current draft's (draft-ietf-ccwg-bbr, section names in the sources; "Linux
 * name" is the one in Google's v3 tcp_bbr.c). Structural differences between the draft, Google's
 * v3 and v2 kernels are parameters too: each says which of them does what.
 */
#ifndef FULLPIPE_CC_BBR3_PARAMS_H
#define FULLPIPE_CC_BBR3_PARAMS_H

#include "params.h"

#define BBR3_GAIN(a, b) CC_RATIO(a, b)
#define BBR3_MAX_GAIN (16 * CC_ONE)
#define BBR3_MAX_US 60000000

/* How a bandwidth plateau ends Startup (parameter smart_exit). */
#define BBR3_EXIT_PLAIN 0     /* growth below full_bw_thresh for full_bw_count rounds */
#define BBR3_EXIT_INFLATION 1 /* ... in rounds whose RTT is inflated too, in a row */
#define BBR3_EXIT_LITERAL 2   /* BBR-n+ Algorithm 1 word for word */
#define BBR3_EXIT_AUTHORS 3   /* BBR-n+ as its authors' pseudocode.txt has it */

#define bbr3_PARAMS(P)                                                                             \
	P(startup_pacing_gain, BBR3_GAIN(277, 100), CC_ONE, BBR3_MAX_GAIN, CC_ONE, "of bw",        \
	  "not allowed", "draft 2.5 StartupPacingGain; Linux startup_pacing_gain",                 \
	  "pacing in Startup: 4 ln 2 doubles the rate every round")                                \
	P(startup_cwnd_gain, 2 * CC_ONE, CC_ONE, BBR3_MAX_GAIN, CC_ONE, "of BDP", "not allowed",   \
	  "draft 2.6 DefaultCwndGain; Linux startup_cwnd_gain", "window in Startup and Drain")     \
	P(drain_gain, BBR3_GAIN(1, 2), BBR3_GAIN(1, 20), CC_ONE, CC_ONE, "of bw", "not allowed",   \
	  "draft 2.5 DrainPacingGain; Linux drain_gain", "pacing while Startup's queue drains")    \
	P(drain_max_rounds, 3, 0, 255, 1, "rounds", "no limit", "draft 5.3.2; Linux has none (0)", \
	  "rounds after which Drain ends even if the queue remains")                               \
	P(probe_up_gain, BBR3_GAIN(5, 4), CC_ONE, BBR3_MAX_GAIN, CC_ONE, "of bw", "not allowed",   \
	  "draft 5.3.3.4; Linux pacing_gain[UP]", "pacing while probing for bandwidth")            \
	P(probe_down_gain, BBR3_GAIN(9, 10), BBR3_GAIN(1, 20), CC_ONE, CC_ONE, "of bw",            \
	  "not allowed", "draft 5.3.3.1; Linux pacing_gain[DOWN]", "pacing after a probe")         \
	P(cwnd_gain, 2 * CC_ONE, CC_ONE, BBR3_MAX_GAIN, CC_ONE, "of BDP", "not allowed",           \
	  "draft 2.6 DefaultCwndGain; Linux cwnd_gain", "window in ProbeBW")                       \
	P(probe_up_cwnd_gain, BBR3_GAIN(9, 4), CC_ONE, BBR3_MAX_GAIN, CC_ONE, "of BDP",            \
	  "not allowed", "draft 5.6.1; Linux cwnd_gain + bw_probe_cwnd_gain / 4", "window in UP")  \
	P(probe_up_inflight_gain, 0, 0, BBR3_MAX_GAIN, CC_ONE, "of BDP",                           \
	  "UP ends when bandwidth stops growing (draft 5.3.3.4.3, Linux v3)",                      \
	  "Linux v2 bw_probe_pif_gain",                                                            \
	  "UP ends when a min_rtt has passed and this much is in flight")                          \
	P(pacing_margin_percent, 1, 0, 50, 1, "%", "pace at the gain exactly",                     \
	  "draft 2.5 PacingMarginPercent; Linux pacing_margin_percent",                            \
	  "how far below the model's rate to pace")                                                \
	P(min_pipe_cwnd, 4, 1, 1000, 1, "packets", "not allowed",                                  \
	  "draft 2.8 MinPipeCwnd; Linux cwnd_min_target", "least window")                          \
	P(full_bw_thresh, BBR3_GAIN(5, 4), CC_ONE, BBR3_MAX_GAIN, CC_ONE, "of full_bw",            \
	  "not allowed", "draft 5.3.1.2; Linux full_bw_thresh", "growth that is not a plateau")    \
	P(full_bw_count, 3, 1, 255, 1, "rounds", "not allowed",                                    \
	  "draft 5.3.1.2; Linux full_bw_cnt", "rounds without that growth that fill the pipe")     \
	P(full_bw_every_ack, 0, 0, 1, 1, "boolean",                                                \
	  "growth is looked for at round starts only (draft 5.3.1.2)",                             \
	  "Linux v3 bbr_check_full_bw_reached()", "any ACK's sample may show growth")              \
	P(startup_loss_events, 6, 0, 15, 1, "ACKs with loss in a round",                           \
	  "loss never ends Startup", "draft 5.3.1.3 StartupFullLossCnt; Linux full_loss_cnt",      \
	  "losses in a round that, with loss_thresh, end Startup")                                 \
	P(loss_thresh, BBR3_GAIN(2, 100), 0, BBR3_GAIN(1, 2), CC_ONE, "of packets in flight",      \
	  "any loss is too much", "draft 2.8 LossThresh; Linux loss_thresh",                       \
	  "loss rate above which a probe went too high")                                           \
	P(beta, BBR3_GAIN(7, 10), 0, CC_ONE, CC_ONE, "kept", "cut to what was delivered",          \
	  "draft 2.8 Beta; Linux 1 - beta", "what a round with loss leaves of the bounds")         \
	P(headroom, BBR3_GAIN(15, 100), 0, BBR3_GAIN(9, 10), CC_ONE, "of inflight_longterm",       \
	  "one packet", "draft 2.8 Headroom; Linux inflight_headroom",                             \
	  "left free for others in DOWN, CRUISE and ProbeRTT")                                     \
	P(ack_sample_cuts, 0, 0, 1, 1, "boolean",                                                  \
	  "only the ACK that reports a loss judges a probe (draft 5.5.10.2)",                      \
	  "Linux bbr_adapt_upper_bounds()",                                                        \
	  "an ACK's loss rate judges a probe even if it reports no new loss")                      \
	P(undo_resumes_probe, 1, 0, 1, 1, "boolean",                                               \
	  "a spurious loss restores bounds only (Linux)", "draft 5.5.11.2",                        \
	  "a spurious loss also returns to Startup or to probing, where the loss had ended it")    \
	P(probe_wait_base_us, 2000000, 0, BBR3_MAX_US, 1, "us", "only the random part",            \
	  "draft 5.3.3.5.3; Linux bw_probe_base_us", "least time between probes")                  \
	P(probe_wait_rand_us, 1000000, 0, BBR3_MAX_US, 1, "us", "no randomness",                   \
	  "draft 5.3.3.5.3; Linux bw_probe_rand_us", "random time added to it")                    \
	P(probe_max_rounds, 63, 0, 255, 1, "rounds", "probe every round",                          \
	  "draft 5.3.3.5.3; Linux bw_probe_max_rounds",                                            \
	  "probe after min(this, target inflight in packets) rounds at the latest")                \
	P(probe_rand_rounds, 2, 0, 15, 1, "rounds", "no randomness",                               \
	  "draft 5.3.3.5.3; Linux bw_probe_rand_rounds", "random rounds taken off, below this")    \
	P(min_rtt_window_us, 10000000, 1, 4 * BBR3_MAX_US, 1, "us", "not allowed",                 \
	  "draft 2.16.1 MinRTTFilterLen; Linux min_rtt_win_sec", "window of min_rtt")              \
	P(probe_rtt_interval_us, 5000000, 1, 4 * BBR3_MAX_US, 1, "us", "not allowed",              \
	  "draft 2.16.2 ProbeRTTInterval; Linux probe_rtt_win_ms",                                 \
	  "ProbeRTT when no lower RTT was seen for this long")                                     \
	P(probe_rtt_duration_us, 200000, 0, BBR3_MAX_US, 1, "us", "never enter ProbeRTT",          \
	  "draft 2.16.2 ProbeRTTDuration; Linux probe_rtt_mode_ms", "least time in ProbeRTT")      \
	P(probe_rtt_cwnd_gain, BBR3_GAIN(1, 2), 0, CC_ONE, CC_ONE, "of BDP", "min_pipe_cwnd",      \
	  "draft 2.16.2 ProbeRTTCwndGain; Linux probe_rtt_cwnd_gain", "window in ProbeRTT")        \
	P(extra_acked_gain, CC_ONE, 0, BBR3_MAX_GAIN, CC_ONE, "of extra_acked",                    \
	  "no allowance for ACK aggregation", "draft 5.6.4.2; Linux extra_acked_gain",             \
	  "how much of the measured aggregation the window allows")                                \
	P(extra_acked_rounds, 5, 1, 31, 1, "rounds", "not allowed",                                \
	  "draft 2.12 ExtraAckedFilterLen (10 = two of these); Linux extra_acked_win_rtts",        \
	  "length of each of the filter's two slots; 1 in Startup")                                \
	P(extra_acked_max_us, 0, 0, BBR3_MAX_US, 1, "us of bw", "no limit (draft)",                \
	  "Linux extra_acked_max_us (100 ms)", "ceiling on the allowance")                         \
	P(offload_quanta, 3, 0, 16, 1, "bursts", "no offload budget",                              \
	  "draft 5.5.8.1; Linux bbr_quantization_budget()",                                        \
	  "the window holds at least this many bursts")                                            \
	P(tso_rtt_shift, 0, 0, 15, 1, "log2 us", "bursts depend on the rate only (draft 5.6.3)",   \
	  "Linux tso_rtt_shift (9)", "64 KB more a burst, halved for every 2^this us of min_rtt")  \
	P(min_tso_segs, 2, 1, 64, 1, "packets", "not allowed",                                     \
	  "draft 5.6.3; Linux sysctl_tcp_min_tso_segs; BBR-n+ uses 4", "least packets a burst")    \
	P(min_tso_rate_Bps, 0, 0, 125000000, 1, "bytes/s", "min_tso_segs at every rate",           \
	  "Linux v2 min_tso_rate (1.2 Mbit/s)", "paced slower than this, bursts are one packet")   \
	P(ecn_assumed_low, 0, 0, 1, 1, "boolean",                                                  \
	  "marks count only where the host knows that the path marks early",                       \
	  "Linux bbr_can_use_ecn(), TCP_ECN_LOW",                                                  \
	  "take it that the path marks early, as Google's route feature ecn_low says")             \
	P(ecn_max_rtt_us, 5000, 0, BBR3_MAX_US, 1, "us", "ECN at any RTT",                         \
	  "Linux ecn_max_rtt_us; the draft has no ECN response",                                   \
	  "use ECN only below this min_rtt")                                                       \
	P(ecn_factor, CC_LINUX_GAIN(85), 0, CC_ONE, CC_ONE, "of ecn_alpha", "no ECN response",     \
	  "Linux ecn_factor", "cut of inflight_shortterm in a marked round")                       \
	P(ecn_thresh, CC_LINUX_GAIN(128), 0, CC_ONE, CC_ONE, "of packets", "marks end no probe",   \
	  "Linux ecn_thresh", "mark rate above which a probe went too high")                       \
	P(ecn_alpha_gain, CC_LINUX_GAIN(16), 0, CC_ONE, CC_ONE, "of a round's sample",             \
	  "ecn_alpha stays", "Linux ecn_alpha_gain", "weight of a round in ecn_alpha")             \
	P(ecn_alpha_init, CC_ONE, 0, CC_ONE, CC_ONE, "of packets", "start unmarked",               \
	  "Linux ecn_alpha_init", "ecn_alpha before any round")                                    \
	P(ecn_startup_rounds, 2, 0, 3, 1, "rounds", "marks never end Startup",                     \
	  "Linux full_ecn_cnt", "rounds above ecn_thresh that end Startup")                        \
	P(ecn_reprobe_gain, CC_LINUX_GAIN(128), 0, CC_ONE, CC_ONE, "of inflight_longterm",         \
	  "no early probe", "Linux ecn_reprobe_gain",                                              \
	  "first step of the probe that follows marks which ceased")                               \
	P(bbr2_rules, 0, 0, 1, 1, "boolean", "BBRv3",                                              \
	  "Linux v2 tcp_bbr2.c; docs/background/algorithms/bbr.md lists the rules",                \
	  "BBRv2's plateau test, Startup exit by loss, RTT ties, probing credit")                  \
	P(smart_exit, BBR3_EXIT_PLAIN, 0, 3, 1, "mode", "off: a plateau is enough",                \
	  "BBR-n+ section 2.3.1; its authors' pseudocode.txt",                                     \
	  "1: plateau and inflated RTT; 2: Algorithm 1 word for word; 3: the authors' code")       \
	P(smart_exit_alpha, BBR3_GAIN(85, 100), 0, 2 * CC_ONE, CC_ONE, "of full_bw",               \
	  "no rate is low enough", "BBR-n+ Algorithm 1, alpha",                                    \
	  "mode 2 counts a round whose bandwidth is below this")                                   \
	P(smart_exit_count, 3, 1, 255, 1, "rounds", "not allowed", "BBR-n+ Algorithm 1, N",        \
	  "such rounds in a row that end Startup")                                                 \
	P(smart_exit_delta_us, 5000, 0, BBR3_MAX_US, 1, "us", "any inflation counts",              \
	  "BBR-n+ Algorithm 1, Delta", "smoothed RTT above min_rtt that counts as inflation")      \
	P(proposals, 0, 0, 7, 1, "bits", "the draft",                                              \
	  "draft-ietf-ccwg-bbr issue 109, PR 5, PR 115",                                           \
	  "sum of 1: min_rtt outlives ProbeRTT; 2: no ack_phase; 4: no precaution")

struct bbr3_params {
	bbr3_PARAMS(CC_PARAM_FIELD)
};

/* Bits of `proposals`: changes of the draft that its editors discuss, for experiments/questions. */
#define BBR3_MIN_RTT_OUTLIVES_PROBE_RTT 1u /* issue 109: expire it when ProbeRTT ends */
#define BBR3_NO_ACK_PHASE 2u               /* PR 5: advance max_bw's filter on entering DOWN */
#define BBR3_NO_PRECAUTION 4u              /* the draft before PR 115: UP passes the bound */

/* What Google's v2 and v3 kernels share (1/256 arithmetic, rules that the draft changed). */
#define BBR3_LINUX_FAMILY(V)                                                                       \
	V(drain_gain, CC_LINUX_GAIN(88))                                                           \
	V(drain_max_rounds, 0)                                                                     \
	V(loss_thresh, CC_LINUX_GAIN(5))                                                           \
	V(beta, CC_ONE - CC_LINUX_GAIN(76))                                                        \
	V(headroom, CC_LINUX_GAIN(38))                                                             \
	V(ack_sample_cuts, 1)                                                                      \
	V(undo_resumes_probe, 0)                                                                   \
	V(extra_acked_max_us, 100000)                                                              \
	V(tso_rtt_shift, 9)

/* Google's v3 kernel (tcp_bbr.c at 001a430). */
#define BBR3_LINUX_V3(V)                                                                           \
	BBR3_LINUX_FAMILY(V)                                                                       \
	V(startup_pacing_gain, CC_LINUX_GAIN(710))                                                 \
	V(probe_down_gain, CC_LINUX_GAIN(232))                                                     \
	V(full_bw_every_ack, 1)

/* The same for routes with the feature ecn_low, on hosts that cannot detect it. */
#define BBR3_LINUX_V3_ECN(V)                                                                       \
	BBR3_LINUX_V3(V)                                                                           \
	V(ecn_assumed_low, 1)

/* Google's v2 kernel (tcp_bbr2.c at 0487ade), whose ECN response is off unless a lab turns it on,
 * but for the gain of DOWN. */
#define BBR3_V2_FAMILY(V)                                                                          \
	BBR3_LINUX_FAMILY(V)                                                                       \
	V(startup_pacing_gain, CC_LINUX_GAIN(739))                                                 \
	V(startup_cwnd_gain, CC_LINUX_GAIN(739))                                                   \
	V(probe_up_cwnd_gain, 2 * CC_ONE)                                                          \
	V(probe_up_inflight_gain, CC_LINUX_GAIN(320))                                              \
	V(startup_loss_events, 8)                                                                  \
	V(min_tso_rate_Bps, 150000)                                                                \
	V(ecn_factor, 0)                                                                           \
	V(bbr2_rules, 1)

#define BBR3_LINUX_V2(V)                                                                           \
	BBR3_V2_FAMILY(V)                                                                          \
	V(probe_down_gain, CC_LINUX_GAIN(192))

/* BBR-n+: the v3 kernel with a larger floor of window and burst. */
#define BBR3_NPLUS(V)                                                                              \
	BBR3_LINUX_FAMILY(V)                                                                       \
	V(full_bw_every_ack, 1)                                                                    \
	V(min_pipe_cwnd, 10)                                                                       \
	V(min_tso_segs, 4)

#define BBR3_NPLUS_PUBLISHED(V)                                                                    \
	BBR3_NPLUS(V)                                                                              \
	V(startup_pacing_gain, BBR3_GAIN(2885, 1000))                                              \
	V(drain_gain, BBR3_GAIN(1000, 2885))

#define BBR3_NPLUS_AS_RUN(V)                                                                       \
	BBR3_NPLUS(V)                                                                              \
	V(startup_pacing_gain, CC_LINUX_GAIN(738))                                                 \
	V(probe_down_gain, CC_LINUX_GAIN(230))                                                     \
	V(probe_up_gain, BBR3_GAIN(3, 2))                                                          \
	V(probe_up_cwnd_gain, BBR3_GAIN(5, 2))

/* mahsan76/BBR-n-plus-AQM, "BBR-n+ patch 1 startup gain TSO.patch". It is against code of v1's
 * form; what v3 has no constant for is v3's. */
#define BBR3_NPLUS_PATCH(V)                                                                        \
	BBR3_NPLUS(V)                                                                              \
	V(startup_pacing_gain, CC_LINUX_GAIN(739))                                                 \
	V(probe_down_gain, CC_LINUX_GAIN(230))                                                     \
	V(full_bw_thresh, BBR3_GAIN(75, 50))

/* BBR-n (2023) is BBRv2 with the gains that all recordings of the module bbrn show
 * (mahsan76/BBRn-AQM, tcp_1up and tcp_4up); what they do not show is v2's. */
#define BBR3_BBRN(V)                                                                               \
	BBR3_V2_FAMILY(V)                                                                          \
	V(probe_down_gain, CC_LINUX_GAIN(230))                                                     \
	V(probe_up_gain, BBR3_GAIN(3, 2))

#endif
