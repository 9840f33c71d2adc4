//! What tells BBRv3's parameter sets apart: their constants against their sources, and the ends of
//! Startup of BBR-n+ (PLOS ONE 10.1371/journal.pone.0330972).

use crate::hand::{self, Hand};
use fullpipe_cc::{Ack, Phase};

fn wide(name: &str, changes: &[(&str, u32)]) -> Hand {
    let mut hand = Hand::with(name, changes, |conn| conn.inflight = 100);
    hand.packets = 100;
    hand.ctl.cwnd = 400;
    hand
}

/// A round of so many packets at a smoothed RTT; least RTT is 10 ms.
fn round(hand: &mut Hand, delivered: i32, srtt_us: u32, change: impl FnOnce(&mut Ack)) {
    hand.conn.srtt_us = srtt_us;
    let mut ack = hand.next_ack();
    ack.delivered = delivered;
    change(&mut ack);
    hand.deliver(ack);
}

#[test]
fn bbr_nplus_leaves_startup_at_a_plateau_only_while_the_rtt_is_inflated() {
    // Section 2.3.1: srtt - min_rtt > Delta, 5 ms; the count begins anew without.
    for (srtts, leaves) in [
        (&[10_000, 15_001, 15_001, 15_001][..], true),
        (&[10_000, 15_000, 15_001, 15_001][..], false),
        (&[10_000, 15_001, 15_001, 9_000][..], false),
        (&[10_000, 15_001, 15_001, 15_000, 15_001][..], false),
        (&[15_001, 15_001, 15_001, 15_001][..], true),
    ] {
        let mut hand = wide("bbrnplus", &[]);
        for &srtt_us in srtts {
            round(&mut hand, 80, srtt_us, |_| {});
        }
        assert_eq!(hand.phase() != Phase::Startup, leaves, "{srtts:?}");
    }
    let mut more = wide("bbrnplus", &[("smart_exit_count", 5)]);
    let lasted = (1..).find(|_| {
        round(&mut more, 80, 20_000, |_| {});
        more.phase() != Phase::Startup
    });
    assert_eq!(lasted, Some(6));
}

#[test]
fn algorithm_1_word_for_word_counts_rounds_below_85_percent_with_an_inflated_rtt() {
    // Algorithm 1: bw < 0.85 full_bw and the inflation; anything else renews full_bw.
    for (rounds, leaves) in [
        (
            &[(100, 10_000), (84, 16_000), (84, 16_000), (84, 16_000)][..],
            true,
        ),
        (
            &[
                (100, 10_000),
                (86, 16_000),
                (84, 16_000),
                (84, 16_000),
                (84, 16_000),
            ][..],
            false,
        ),
        (
            &[
                (100, 10_000),
                (84, 15_000),
                (70, 16_000),
                (70, 16_000),
                (70, 16_000),
            ][..],
            true,
        ),
        (
            &[
                (100, 10_000),
                (84, 16_000),
                (84, 16_000),
                (84, 9_000),
                (84, 16_000),
            ][..],
            false,
        ),
        (&[(100, 10_000), (84, 16_000), (84, 16_000)][..], false),
    ] {
        let mut hand = wide("bbrnplus-literal", &[]);
        for &(delivered, srtt_us) in rounds {
            round(&mut hand, delivered, srtt_us, |_| {});
        }
        assert_eq!(hand.phase() != Phase::Startup, leaves, "{rounds:?}");
    }
    let mut within_a_round = wide("bbrnplus-literal", &[]);
    round(&mut within_a_round, 100, 20_000, |_| {});
    for _ in 0..9 {
        round(&mut within_a_round, 50, 20_000, |ack| {
            ack.prior_delivered = 0
        });
    }
    assert_eq!(within_a_round.phase(), Phase::Startup);
}

/// Google's v3 kernel (tcp_bbr.c at 001a430), in 1/1024.
const V3: [(&str, u32); 49] = [
    ("startup_pacing_gain", 4 * (256 * 277 / 100 + 1)),
    ("startup_cwnd_gain", 4 * 512),
    ("drain_gain", 4 * (256 * 1000 / 2885)),
    ("drain_max_rounds", 0),
    ("probe_up_gain", 4 * 320),
    ("probe_down_gain", 4 * (256 * 91 / 100)),
    ("cwnd_gain", 4 * 512),
    ("probe_up_cwnd_gain", 4 * (512 + 64)),
    ("probe_up_inflight_gain", 0),
    ("pacing_margin_percent", 1),
    ("min_pipe_cwnd", 4),
    ("full_bw_thresh", 4 * 320),
    ("full_bw_count", 3),
    ("full_bw_every_ack", 1),
    ("startup_loss_events", 6),
    ("loss_thresh", 4 * (256 * 2 / 100)),
    ("beta", 4 * (256 - 256 * 30 / 100)),
    ("headroom", 4 * (256 * 15 / 100)),
    ("ack_sample_cuts", 1),
    ("undo_resumes_probe", 0),
    ("probe_wait_base_us", 2_000_000),
    ("probe_wait_rand_us", 1_000_000),
    ("probe_max_rounds", 63),
    ("probe_rand_rounds", 2),
    ("min_rtt_window_us", 10_000_000),
    ("probe_rtt_interval_us", 5_000_000),
    ("probe_rtt_duration_us", 200_000),
    ("probe_rtt_cwnd_gain", 512),
    ("extra_acked_gain", 1024),
    ("extra_acked_rounds", 5),
    ("extra_acked_max_us", 100_000),
    ("offload_quanta", 3),
    ("tso_rtt_shift", 9),
    ("min_tso_segs", 2),
    ("min_tso_rate_Bps", 0),
    ("ecn_assumed_low", 0),
    ("ecn_max_rtt_us", 5_000),
    ("ecn_factor", 4 * (256 / 3)),
    ("ecn_thresh", 4 * 128),
    ("ecn_alpha_gain", 4 * 16),
    ("ecn_alpha_init", 1024),
    ("ecn_startup_rounds", 2),
    ("ecn_reprobe_gain", 4 * 128),
    ("bbr2_rules", 0),
    ("smart_exit", 0),
    ("smart_exit_alpha", 870),
    ("smart_exit_count", 3),
    ("smart_exit_delta_us", 5_000),
    ("proposals", 0),
];

/// draft-ietf-ccwg-bbr, sections 2.5 to 2.16 and 5.3.2.
const DRAFT: &[(&str, u32)] = &[
    ("startup_pacing_gain", 2836),
    ("drain_gain", 512),
    ("drain_max_rounds", 3),
    ("probe_down_gain", 922),
    ("full_bw_every_ack", 0),
    ("loss_thresh", 20),
    ("beta", 717),
    ("headroom", 154),
    ("ack_sample_cuts", 0),
    ("undo_resumes_probe", 1),
    ("extra_acked_max_us", 0),
    ("tso_rtt_shift", 0),
];

/// Google's v2 kernel (tcp_bbr2.c at 0487ade).
const V2: &[(&str, u32)] = &[
    ("startup_pacing_gain", 4 * 739),
    ("startup_cwnd_gain", 4 * 739),
    ("probe_down_gain", 4 * 192),
    ("probe_up_cwnd_gain", 4 * 512),
    ("probe_up_inflight_gain", 4 * 320),
    ("full_bw_every_ack", 0),
    ("startup_loss_events", 8),
    ("min_tso_rate_Bps", 150_000),
    ("ecn_factor", 0),
    ("bbr2_rules", 1),
];

/// BBR-n+ as published, and with the gains of its authors' files.
const NPLUS: &[(&str, u32)] = &[
    ("startup_pacing_gain", 2954),
    ("drain_gain", 355),
    ("probe_down_gain", 922),
    ("min_pipe_cwnd", 10),
    ("min_tso_segs", 4),
    ("smart_exit", 1),
];
const NPLUS_AS_RUN: &[(&str, u32)] = &[
    ("startup_pacing_gain", 4 * 738),
    ("probe_down_gain", 4 * 230),
    ("probe_up_gain", 1536),
    ("probe_up_cwnd_gain", 2560),
    ("min_pipe_cwnd", 10),
    ("min_tso_segs", 4),
    ("smart_exit", 1),
];
/// mahsan76/BBR-n-plus-AQM at 3343fe5, the patch, in Linux's integers: 256 * 2885 / 1000 + 1,
/// 256 * 1000 / 2885, 256 * 4.5 / 5, 256 * 7.5 / 5.
const NPLUS_PATCH: &[(&str, u32)] = &[
    ("startup_pacing_gain", 4 * 739),
    ("drain_gain", 4 * 88),
    ("probe_down_gain", 4 * 230),
    ("full_bw_thresh", 4 * 384),
    ("min_pipe_cwnd", 10),
    ("min_tso_segs", 4),
    ("smart_exit", 3),
];

#[test]
fn bbrn_has_the_gains_of_its_recordings_and_is_bbr2_otherwise() {
    for (name, _) in V3 {
        let expected = match name {
            "probe_up_gain" => 1536,
            "probe_down_gain" => 4 * 230,
            _ => hand::stored("bbr2", name),
        };
        assert_eq!(hand::stored("bbrn", name), expected, "{name}");
    }
}

#[test]
fn the_constants_are_those_of_the_draft_and_of_the_kernels() {
    for (set, changes) in [
        ("bbr3-linux", &[][..]),
        ("bbr3-ecn", &[("ecn_assumed_low", 1)]),
        ("bbr3", DRAFT),
        ("bbr2", V2),
        ("bbrnplus", NPLUS),
        ("bbrnplus-asrun", NPLUS_AS_RUN),
        ("bbrnplus-patch", NPLUS_PATCH),
    ] {
        for (name, of_v3) in V3 {
            let change = changes.iter().find(|(changed, _)| *changed == name);
            let expected = change.map_or(of_v3, |(_, stored)| *stored);
            assert_eq!(hand::stored(set, name), expected, "{set} {name}");
        }
    }
    for (name, _) in V3 {
        for (set, mode) in [("bbrnplus-literal", 2), ("bbrnplus-pseudocode", 3)] {
            let expected = if name == "smart_exit" {
                mode
            } else {
                hand::stored("bbrnplus", name)
            };
            assert_eq!(hand::stored(set, name), expected, "{set} {name}");
        }
    }
}
