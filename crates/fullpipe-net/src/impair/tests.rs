//! Params of a link against closed formulas.

use proptest::prelude::*;

use super::gilbert::{self, GilbertElliott};
use super::hold::{self, Hold};
use super::policer::{self, Policer};
use super::reorder::{self, Reorder};
use super::wifi_jitter::WifiJitter;
use super::{crandom, Params};
use crate::link::wire::Wire;
use crate::link::{Direction, Link, Passed, WireDirection};
use crate::testing::{plain_direction, TestPacket, FRAME_BYTES, MS};

const PACKETS: u32 = 400_000;

/// Mean loss, and the mean length of bursts of losses.
fn observed(chain: &gilbert::Params) -> (f64, f64) {
    let mut chain = GilbertElliott::new(chain, 7);
    let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
    for _ in 0..PACKETS {
        let now = chain.loses();
        lost += u32::from(now);
        bursts += u32::from(now && !before);
        before = now;
    }
    (
        f64::from(lost) / f64::from(PACKETS),
        f64::from(lost) / f64::from(bursts.max(1)),
    )
}

/// Bad times of a chain that changes with time, which a packet every `step_ns` sees: their share, and
/// their mean length where each is seen.
fn bad_times(means_ns: [u64; 2], step_ns: u64) -> (f64, f64) {
    let mut chain = GilbertElliott::new(
        &gilbert::Params {
            to_bad_ppm: 0,
            to_good_ppm: 0,
            loss_bad_ppm: 1_000_000,
            loss_good_ppm: 0,
            mean_ns: Some(means_ns),
        },
        7,
    );
    let (mut lost, mut visits, mut before) = (0u32, 0u32, false);
    for packet in 0..u64::from(PACKETS) {
        chain.advance(packet * step_ns);
        let now = chain.loses();
        lost += u32::from(now);
        visits += u32::from(now && !before);
        before = now;
    }
    let share = f64::from(lost) / f64::from(PACKETS);
    (
        share,
        f64::from(lost) * step_ns as f64 / f64::from(visits.max(1)),
    )
}

#[test]
fn a_chain_by_time_is_bad_for_the_same_times_however_many_packets_see_it() {
    let means_ns = [900 * MS, 100 * MS];
    for step_ns in [MS / 2, MS, 4 * MS] {
        let (share, length_ns) = bad_times(means_ns, step_ns);
        let visits = f64::from(PACKETS) * step_ns as f64 / (means_ns[0] + means_ns[1]) as f64;
        // A visit is exponential; one between two packets is not seen, so that those seen last longer.
        let error = 5.0 * (2.0 / visits).sqrt();
        assert!((share / 0.1 - 1.0).abs() < error, "{share} +- {error}");
        let unseen = step_ns as f64 / (100.0 * MS as f64);
        let length = length_ns / (100.0 * MS as f64);
        assert!((length - 1.0).abs() < error + unseen, "{length}");
    }
}

#[test]
fn a_chain_that_changes_with_packets_and_with_time_is_refused() {
    let both = gilbert::Params {
        to_bad_ppm: 1,
        to_good_ppm: 1,
        loss_bad_ppm: 1_000_000,
        loss_good_ppm: 0,
        mean_ns: Some([MS, MS]),
    };
    let never = gilbert::Params {
        to_bad_ppm: 0,
        to_good_ppm: 0,
        mean_ns: Some([MS, 0]),
        ..both.clone()
    };
    for chain in [both, never] {
        let impairments = Params {
            gemodel: Some(chain),
            ..Params::default()
        };
        assert!(impairments.check().is_err());
    }
}

#[test]
fn a_gilbert_elliott_chain_has_its_mean_loss_and_its_length_of_bursts() {
    for (p, r, bad, good) in [
        (0.01, 0.25, 1.0, 0.0),
        (0.002, 0.1, 1.0, 0.0),
        (0.05, 0.5, 0.3, 0.001),
    ] {
        let ppm = |share: f64| (share * 1e6).round() as u32;
        let (loss, length) = observed(&gilbert::Params {
            to_bad_ppm: ppm(p),
            to_good_ppm: ppm(r),
            loss_bad_ppm: ppm(bad),
            loss_good_ppm: ppm(good),
            mean_ns: None,
        });
        let expected: f64 = (bad * p + good * r) / (p + r);
        // Visits to the bad state are independent; their lengths spread as much as they last.
        let visits = f64::from(PACKETS) * p * r / (p + r);
        let error = 5.0 * expected * (2.0 / visits).sqrt();
        assert!(
            (loss - expected).abs() < error,
            "{loss}, not {expected} +- {error}"
        );
        if bad == 1.0 {
            let error = 5.0 / r / visits.sqrt();
            assert!(
                (length - 1.0 / r).abs() < error,
                "{length}, not {}",
                1.0 / r
            );
        }
    }
}

#[test]
fn a_chain_that_always_loses_loses_all_and_one_that_never_does_none() {
    let chain = |loss| gilbert::Params {
        to_bad_ppm: 500_000,
        to_good_ppm: 500_000,
        loss_bad_ppm: loss,
        loss_good_ppm: loss,
        mean_ns: None,
    };
    assert_eq!(observed(&chain(1_000_000)).0, 1.0);
    assert_eq!(observed(&chain(0)).0, 0.0);
}

proptest! {
    /// RFC 2697's one-rate bucket: over any time no more passes than burst + rate x time, and what is
    /// refused would have passed that.
    #[test]
    fn a_policer_passes_its_burst_and_its_rate_to_the_byte(
        gaps in prop::collection::vec((0..3_000_000u64, 60..1515u32), 1..300),
        rate_bps in 100_000..50_000_000u64,
        burst_bytes in 1514..50_000u64,
    ) {
        let mut policer = Policer::new(&policer::Params { rate_bps, burst_bytes });
        let most = u128::from(burst_bytes) * 8_000_000_000;
        let (mut now_ns, mut tokens, mut refused) = (0, most, 0);
        for (gap_ns, bytes) in gaps {
            now_ns += gap_ns;
            tokens = most.min(tokens + u128::from(gap_ns) * u128::from(rate_bps));
            let cost = u128::from(bytes) * 8_000_000_000;
            let fits = cost <= tokens;
            prop_assert_eq!(policer.passes(now_ns, bytes), fits);
            if fits { tokens -= cost } else { refused += 1 }
        }
        prop_assert_eq!(policer.dropped(), refused);
    }
}

#[test]
fn a_packet_that_needs_all_tokens_conforms_and_one_that_needs_a_bit_more_does_not() {
    // 8 Mbit/s: a byte a us. A refused packet takes no tokens; tokens above the burst are lost.
    let mut policer = Policer::new(&policer::Params {
        rate_bps: 8_000_000,
        burst_bytes: 3000,
    });
    for (now_ns, bytes, passes) in [
        (0, 3001, false),
        (0, 2000, true),
        (0, 1001, false),
        (0, 1000, true),
        (0, 1, false),
        (999, 1, false),
        (1000, 1, true),
        (1999, 1, false),
        (501_000, 501, false),
        (501_000, 500, true),
        (9_000_000, 3001, false),
        (9_000_000, 3000, true),
        (9_000_000, 1, false),
    ] {
        assert_eq!(policer.passes(now_ns, bytes), passes, "{bytes} at {now_ns}");
    }
    assert_eq!(policer.dropped(), 8);
}

#[test]
fn a_flood_through_a_policer_has_the_rate_in_the_long_run() {
    let mut policer = Policer::new(&policer::Params {
        rate_bps: 8_000_000,
        burst_bytes: 15_140,
    });
    // 80 Mbit/s for 10 s: 1 MB/s and the burst pass.
    let passed: u64 = (0..66_000)
        .filter(|index| policer.passes(index * 151_400, FRAME_BYTES))
        .count() as u64
        * u64::from(FRAME_BYTES);
    let expected = 15_140 + 66_000 * 1_514 * 100 / 1000;
    assert!(
        passed.abs_diff(expected) <= 2 * 1514,
        "{passed}, {expected}"
    );
}

#[test]
fn of_each_gap_of_packets_one_may_overtake() {
    let reorder = |probability_ppm, gap| {
        let chance = crandom::Params {
            probability_ppm,
            correlation_ppm: 0,
        };
        let mut reorder = Reorder::new(&reorder::Params { chance, gap }, 3);
        let skips: Vec<bool> = (0..20_000).map(|_| reorder.skips_delay()).collect();
        let places: Vec<usize> = (0..skips.len()).filter(|&place| skips[place]).collect();
        assert_eq!(reorder.overtaking(), places.len() as u64);
        places
    };
    // Certain: each fifth packet, as tc-netem(8) says of `gap 5`.
    let fifths: Vec<usize> = (4..20_000).step_by(5).collect();
    assert_eq!(reorder(1_000_000, 5), fifths);
    // By chance: 4 delayed, and then 1 / 0.25 tries in the mean.
    let some = reorder(250_000, 5);
    assert!(some.windows(2).all(|pair| pair[1] - pair[0] >= 5));
    let mean = (some[some.len() - 1] - some[0]) as f64 / (some.len() - 1) as f64;
    assert!(
        (mean - 8.0).abs() < 0.4,
        "{mean}: five errors of sqrt(12 / 2500)"
    );
}

#[test]
fn packets_are_held_until_the_first_has_waited_or_so_many_wait() {
    let mut hold = Hold::new(&hold::Params {
        time_ns: 5 * MS,
        packets: Some(3),
    });
    hold.put(10 * MS, 'a');
    hold.put(12 * MS, 'b');
    assert_eq!(hold.due_ns(), Some(15 * MS));
    assert_eq!(hold.release(14 * MS).count(), 0);
    assert_eq!(hold.release(15 * MS).collect::<Vec<_>>(), ['a', 'b']);
    assert_eq!(
        (hold.due_ns(), hold.len(), hold.is_empty()),
        (None, 0, true)
    );
    for packet in ['c', 'd', 'e'] {
        hold.put(20 * MS, packet);
    }
    assert_eq!(hold.release(20 * MS).collect::<Vec<_>>(), ['c', 'd', 'e']);
}

#[test]
fn wifi_jitter_has_the_mean_of_its_two_poisson_terms() {
    // E = 1 ms (1 - (1 - 1/e) / 2), and with the chance (mean - 1 ms) / 84 ms about
    // 7.5 ms (12 - 1/2) more.
    for mean_ns in [MS, 7 * MS, 30 * MS] {
        let mut jitter = WifiJitter::new(mean_ns, 11);
        let count = 200_000;
        let sum: u64 = (0..count).map(|_| jitter.next_ns()).sum();
        let observed = sum as f64 / count as f64 / 1e6;
        let short = 1.0 - (1.0 - (-1.0f64).exp()) / 2.0;
        let chance = (mean_ns - MS) as f64 / 84e6;
        let expected = short + chance * 7.5 * 11.5;
        let error = 5.0 * (1.0 + chance * 90.0 * 90.0).sqrt() / (count as f64).sqrt();
        assert!(
            (observed - expected).abs() < error,
            "{observed}, not {expected} +- {error}"
        );
    }
}

fn plan(impairments: Option<Params>) -> WireDirection {
    WireDirection {
        impairments,
        ..plain_direction(None, 10 * MS)
    }
}

fn wire(impairments: Params) -> Result<Wire<TestPacket>, String> {
    Wire::new([&plan(Some(impairments)), &plan(None)], 0, 1, 1500)
}

#[test]
fn a_wire_keeps_every_packet_and_every_copy_once_whatever_its_impairments() {
    let chance = |probability_ppm| crandom::Params {
        probability_ppm,
        correlation_ppm: 0,
    };
    let mut link = wire(Params {
        gemodel: Some(gilbert::Params {
            to_bad_ppm: 50_000,
            to_good_ppm: 300_000,
            loss_bad_ppm: 1_000_000,
            loss_good_ppm: 0,
            mean_ns: None,
        }),
        duplicate: Some(chance(100_000)),
        policer: Some(policer::Params {
            rate_bps: 12_000_000,
            burst_bytes: 3000,
        }),
        hold: Some(hold::Params {
            time_ns: 3 * MS,
            packets: Some(8),
        }),
        wifi_jitter_ns: Some(7 * MS),
        delay_limit_packets: None,
        netem_jitter: None,
        reorder: Some(reorder::Params {
            chance: chance(50_000),
            gap: 1,
        }),
    })
    .expect("the plan is sound");
    let mut passed = Passed::default();
    for id in 0..5000 {
        let at_ns = id * MS;
        while let Some(due_ns) = link.due_ns(0).filter(|&due_ns| due_ns <= at_ns) {
            link.advance(due_ns, 0, &mut passed);
        }
        let packet = TestPacket::new(id, 1, FRAME_BYTES);
        link.offer(at_ns, Direction::Forward, packet, &mut passed);
    }
    while let Some(due_ns) = link.due_ns(0) {
        link.advance(due_ns, 0, &mut passed);
    }
    let mut expected: Vec<u64> = (0..5000).collect();
    expected.extend(passed.duplicated.iter().map(|packet| packet.id));
    let mut seen: Vec<u64> = passed.out.iter().map(|exit| exit.packet.id).collect();
    seen.extend(passed.dropped.iter().map(|packet| packet.id));
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, expected);
    assert!(
        passed.duplicated.len().abs_diff(500) < 110,
        "5 errors of 21"
    );
    let state = link
        .state(Direction::Forward)
        .expect("impairments is counted");
    let gone = state.lost_packets + state.counters.dropped_packets;
    assert_eq!(gone, passed.dropped.len() as u64);
    let overtaking = passed
        .out
        .windows(2)
        .filter(|pair| pair[1].at_ns < pair[0].at_ns)
        .count();
    assert!(overtaking > 50, "{overtaking}");
}

#[test]
fn impairments_that_cannot_be_is_refused_by_name() {
    for (impairments, key) in [
        (
            Params {
                policer: Some(policer::Params {
                    rate_bps: 0,
                    burst_bytes: 1,
                }),
                ..Params::default()
            },
            "policer",
        ),
        (
            Params {
                gemodel: Some(gilbert::Params {
                    to_bad_ppm: 1_000_001,
                    to_good_ppm: 0,
                    loss_bad_ppm: 0,
                    loss_good_ppm: 0,
                    mean_ns: None,
                }),
                ..Params::default()
            },
            "gemodel",
        ),
    ] {
        let error = wire(impairments).expect_err(key);
        assert!(error.contains(key), "{error}");
    }
}
