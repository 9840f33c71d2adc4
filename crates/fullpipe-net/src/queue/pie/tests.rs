//! PIE's arithmetic against RFC 8033.

use proptest::prelude::{any, Strategy};

use super::*;
use crate::queue::Aqm;
use crate::testing::{Hand, TestPacket};

const MS: u64 = 1_000_000;

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    let times = 1..30_000_000u64;
    (times, 0..33u32, 0..33u32, any::<[bool; 3]>()).prop_map(|(target_ns, alpha, beta, flags)| {
        let [byte_mode, rate_estimator, ecn] = flags;
        Params {
            target_ns,
            update_ns: 15 * MS,
            alpha,
            beta,
            byte_mode,
            rate_estimator,
            ecn,
        }
    })
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets)
}

fn law() -> Law {
    Law {
        params: Params {
            target_ns: 15 * MS,
            update_ns: 15 * MS,
            alpha: 2,
            beta: 20,
            byte_mode: false,
            rate_estimator: false,
            ecn: false,
        },
        ecn_percent: 10,
        frame_bytes: 1514,
    }
}

/// RFC 8033 section 4.2 in floating point: p += alpha (delay - target) + beta (delay - old
/// delay), scaled down where p is low; alpha 1/8 Hz, beta 1.25 Hz.
fn next_probability(p: f64, delay_s: f64, old_s: f64) -> f64 {
    let scales = [
        (1e-6, 2048.0),
        (1e-5, 512.0),
        (1e-4, 128.0),
        (1e-3, 32.0),
        (1e-2, 8.0),
        (1e-1, 2.0),
    ];
    let scale = scales
        .iter()
        .find(|(limit, _)| p < *limit)
        .map_or(1.0, |found| found.1);
    let step = 0.125 * (delay_s - 0.015) + 1.25 * (delay_s - old_s);
    let mut delta = step / scale;
    if p >= 0.1 {
        delta = delta.min(0.02);
    }
    if delay_s > 0.25 {
        delta += 0.02;
    }
    // Linux lets it rise above 1 while the delay stays high.
    (p + delta).max(0.0)
}

#[test]
fn the_probability_follows_the_law_of_rfc_8033() {
    let mut state = State::default();
    let mut expected = 0.0;
    let mut old_s = 0.0;
    // Up to 40 ms, to 300 ms, and down to 5 ms.
    for step in 0..600u64 {
        let delay_ms = match step {
            0..200 => 40,
            200..300 => 300,
            _ => 5,
        };
        state.delay = ticks(delay_ms * MS);
        state.update(&law(), 10_000);
        let delay_s = delay_ms as f64 / 1e3;
        expected = next_probability(expected, delay_s, old_s);
        old_s = delay_s;
        let got = state.probability();
        assert!(
            (got - expected).abs() <= 1e-4 + 0.01 * expected,
            "{step}: {got} {expected}"
        );
    }
}

#[test]
fn an_idle_queue_forgets_a_64th_of_its_probability_an_update() {
    let mut state = State {
        probability: ONE / 4,
        ..State::default()
    };
    // alpha's part is 0 without a target, beta's without a change.
    let mut law = law();
    law.params.target_ns = 0;
    state.update(&law, 0);
    assert!((state.probability() - 0.25 * 63.0 / 64.0).abs() < 1e-9);
}

#[test]
fn drops_keep_the_distance_that_rfc_8033_asks_for() {
    let mut state = State {
        probability: ONE / 10,
        burst: 0,
        delay: ticks(30 * MS),
        ..State::default()
    };
    let mut rng = Rng::new(5);
    let mut gaps = Vec::new();
    let mut since = 0;
    for _ in 0..100_000 {
        since += 1;
        if state.signals(&law(), 100_000, 1514, &mut rng) {
            state.on_drop();
            gaps.push(since);
            since = 0;
        }
    }
    // At 10 %: never before 85 % have gathered, never after 850 %.
    assert!(gaps.iter().all(|gap| (9..=86).contains(gap)));
    let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
    // Eight that pass, then one in ten.
    assert!((mean - 18.0).abs() < 0.5, "{mean}");
}

#[test]
fn no_packet_goes_in_the_first_150_ms_or_from_a_short_queue() {
    let mut state = State {
        probability: ONE / 2,
        delay: ticks(100 * MS),
        accumulated: ONE * 8,
        ..State::default()
    };
    let mut rng = Rng::new(5);
    assert!(!state.signals(&law(), 100_000, 1514, &mut rng));
    for ms in 0..=150 {
        state.on_departure(&law(), ms * MS, 0, 1514, 5000);
    }
    assert!(!state.signals(&law(), 3027, 1514, &mut rng));
    assert!(state.signals(&law(), 3028, 1514, &mut rng));
}

#[test]
fn the_departure_rate_is_measured_over_16_kib() {
    let mut law = law();
    law.params.rate_estimator = true;
    let mut state = State::default();
    // 10 Mbit/s: a packet of 1250 bytes a ms.
    for ms in 1..=1000 {
        state.on_departure(&law, ms * MS, 0, 1250, 100_000);
    }
    let bytes_per_s = state.rate as f64 * TICKS_PER_S as f64 / f64::from(1 << RATE_SHIFT);
    assert!(
        (bytes_per_s / 1_250_000.0 - 1.0).abs() < 0.1,
        "{bytes_per_s}"
    );
    state.update(&law, 25_000);
    let delay_ms = state.delay as f64 * TICK_NS as f64 / MS as f64;
    assert!((delay_ms - 20.0).abs() < 2.5, "{delay_ms}");
}

#[test]
fn a_timer_of_15_ms_updates_the_probability_every_20_ms() {
    // kernel/time/timer.c at HZ=250: usecs_to_jiffies() makes 4 ticks of 15 ms, and calc_index() takes the
    // bucket after the one in which they end, so that no timer fires early. Half a second is in the second
    // level, whose buckets span 8 ticks.
    let mut updates = Updates::new(15 * MS);
    let fired: Vec<u64> = (0..700)
        .filter(|ms| updates.take(ms * MS) > 0)
        .take(4)
        .collect();
    assert_eq!(fired, [512, 532, 552, 572]);
    // Those of an idle time are counted when the queue is next used.
    assert_eq!(updates.take(1572 * MS), 50);
}

/// The probability after an update, from one before it, the delay and the last one, in ms.
fn updated(before: f64, delay_ms: f64, old_ms: f64, backlog: u64) -> f64 {
    let ns = |ms: f64| ticks((ms * 1e6) as u64);
    let mut state = State {
        probability: (before * ONE as f64) as u64,
        delay: ns(delay_ms),
        old_delay: ns(old_ms),
        ..State::default()
    };
    state.update(&law(), backlog);
    assert_eq!((state.delay, state.old_delay), (ns(delay_ms), ns(delay_ms)));
    state.probability()
}

#[test]
fn one_update_changes_the_probability_by_rfc_8033_section_4_2_to_the_last_step() {
    // alpha 0.125, beta 1.25, target 15 ms. From 15 to 20 ms: 0.125 * 0.005 + 1.25 * 0.005 = 0.006875, scaled
    // by 1 from 10 % on, below it by 2, 8, 32, 128, 512, 2048 for each tenth.
    let step = 0.006_875;
    for (before, delay_ms, old_ms, change) in [
        (0.2, 20.0, 15.0, step),
        (0.100_001, 20.0, 15.0, step),
        (0.099_999, 20.0, 15.0, step / 2.0),
        (0.010_001, 20.0, 15.0, step / 2.0),
        (0.009_999, 20.0, 15.0, step / 8.0),
        (0.001_000_1, 20.0, 15.0, step / 8.0),
        (0.000_999_9, 20.0, 15.0, step / 32.0),
        (1.000_1e-4, 20.0, 15.0, step / 32.0),
        (0.999_9e-4, 20.0, 15.0, step / 128.0),
        (1.000_1e-5, 20.0, 15.0, step / 128.0),
        (0.999_9e-5, 20.0, 15.0, step / 512.0),
        (1.000_1e-6, 20.0, 15.0, step / 512.0),
        (0.999_9e-6, 20.0, 15.0, step / 2048.0),
        // Down: 0.125 * -0.005 + 1.25 * -0.01.
        (0.2, 10.0, 20.0, -0.013_125),
        (0.05, 10.0, 20.0, -0.013_125 / 2.0),
        // Not below 0: (-0.00125 - 0.11875) / 8.
        (0.005, 5.0, 100.0, -0.005),
        // From 10 % on no more than 2 % at a time.
        (0.100_001, 100.0, 15.0, 0.02),
        (0.099, 100.0, 15.0, 0.116_875 / 2.0),
        // 2 % more above 250 ms.
        (0.5, 250.0, 250.0, 0.02),
        (0.5, 250.001, 250.0, 0.04),
        (0.5, 251.0, 300.0, 0.0295 - 0.06125 + 0.02),
    ] {
        let after = updated(before, delay_ms, old_ms, 10_000);
        let error = (after - before - change).abs();
        assert!(
            error <= 1e-5 * change.abs() + 1e-12,
            "{before} {delay_ms} {old_ms}: {after}"
        );
    }
}

#[test]
fn the_probability_decays_after_two_updates_without_a_delay_and_only_if_nothing_waits() {
    // 0.125 * -0.015 = -0.001875; with a last delay of 5 ms, 1.25 * -0.005 more.
    for (old_ms, backlog, expected) in [
        (0.0, 0, (0.25 - 0.001_875) * 63.0 / 64.0),
        (0.0, 1, 0.25 - 0.001_875),
        (5.0, 0, 0.25 - 0.001_875 - 0.006_25),
    ] {
        let after = updated(0.25, 0.0, old_ms, backlog);
        assert!(
            (after - expected).abs() < 1e-7,
            "{old_ms} {backlog}: {after}"
        );
    }
}

#[test]
fn a_queue_that_was_calm_for_two_updates_starts_anew() {
    // pie_calculate_probability(): delay and old delay below half of the target, probability 0, and with the
    // estimator a rate.
    let half = ticks(15 * MS) / 2;
    for (delay, old_delay, probability, rate_estimator, expected) in [
        (half - 1, half - 1, 0, false, BURST_TICKS),
        (half, half - 1, 0, false, 7),
        (half - 1, half, 0, false, 7),
        (half - 1, half - 1, ONE / 5, false, 7),
        (0, 0, 0, true, 7), // no rate yet
    ] {
        let mut law = law();
        law.params.rate_estimator = rate_estimator;
        let mut state = State {
            delay,
            old_delay,
            probability,
            burst: 7,
            accumulated: 5,
            ..State::default()
        };
        state.update(&law, 1);
        assert_eq!(state.burst, expected, "{delay} {old_delay} {probability}");
        assert_eq!(state.accumulated == 0, expected == BURST_TICKS);
    }
}

/// A state that has gathered almost enough for a certain drop.
fn ripe(probability: u64, delay: u64) -> State {
    State {
        probability,
        delay,
        burst: 0,
        accumulated: ONE / 2 * 17,
        ..State::default()
    }
}

#[test]
fn a_drop_needs_a_delay_of_half_the_target_or_a_probability_of_a_fifth() {
    // pie_drop_early(): qdelay < target / 2 and prob < MAX_PROB / 5.
    let half = ticks(15 * MS) / 2;
    for (probability, delay, expected) in [
        (ONE / 5 - 1, half - 1, false),
        (ONE / 5 - 1, half, true),
        (ONE / 5, half - 1, true),
    ] {
        let mut state = ripe(probability, delay);
        let signals = state.signals(&law(), 100_000, 1514, &mut Rng::new(1));
        assert_eq!(signals, expected, "{probability} {delay}");
    }
    let mut state = State {
        burst: 1,
        ..ripe(ONE, half)
    };
    assert!(!state.signals(&law(), 100_000, 1514, &mut Rng::new(1)));
}

#[test]
fn probabilities_add_up_to_85_percent_before_a_drop_and_to_850_at_most() {
    // RFC 8033 section 5.1. At 1 in 10^9 chance drops nothing, at 4 in 5 it drops with this seed.
    let small = ONE / 1_000_000_000;
    for (probability, gathered, expected) in [
        (small, ONE / 2 * 17 - small - 1, false),
        (small, ONE / 2 * 17 - small, true),
        (ONE / 5 * 4, ONE / 100 * 85 - ONE / 5 * 4 - 1, false),
        (ONE / 5 * 4, ONE / 100 * 85 - ONE / 5 * 4, true),
    ] {
        let mut state = ripe(probability, ticks(15 * MS));
        state.accumulated = gathered;
        let signals = state.signals(&law(), 100_000, 1514, &mut Rng::new(6));
        assert_eq!(signals, expected, "{probability} {gathered}");
    }
    let mut state = ripe(0, ticks(15 * MS));
    assert!(!state.signals(&law(), 100_000, 1514, &mut Rng::new(2)));
    assert_eq!(
        state.accumulated, 0,
        "nothing is gathered at a probability of 0"
    );
}

#[test]
fn in_byte_mode_a_packet_counts_by_its_part_of_a_full_one() {
    let probability = ONE / 1000 / 1514 * 1514;
    for (byte_mode, bytes, expected) in [
        (true, 757, probability / 2),
        (true, 1514, probability),
        (true, 1515, probability),
        (false, 757, probability),
    ] {
        let mut law = law();
        law.params.byte_mode = byte_mode;
        let mut state = ripe(probability, ticks(15 * MS));
        state.accumulated = 0;
        state.signals(&law, 100_000, bytes, &mut Rng::new(3));
        assert_eq!(state.accumulated, expected, "{byte_mode} {bytes}");
    }
}

#[test]
fn up_to_ten_percent_what_can_be_marked_is_marked_and_gathers_on() {
    // pie_qdisc_enqueue(): prob <= MAX_PROB / 10; only a drop sets accu_prob to 0.
    let tenth = ONE / 100 * 10;
    for (probability, ecn, capable, expected) in [
        (tenth, true, true, Verdict::Mark),
        (tenth + 1, true, true, Verdict::Drop),
        (tenth, true, false, Verdict::Drop),
        (tenth, false, true, Verdict::Drop),
    ] {
        let mut law = law();
        law.params.ecn = ecn;
        let mut state = ripe(probability, ticks(15 * MS));
        let packet = TestPacket {
            ecn: capable,
            ..TestPacket::new(0, 0, 1514)
        };
        let verdict = state.judge(&law, 100_000, &packet, &mut Rng::new(4));
        assert_eq!(verdict, expected, "{probability} {ecn} {capable}");
        let gathered = if expected == Verdict::Mark {
            ONE / 2 * 17 + probability
        } else {
            0
        };
        assert_eq!(state.accumulated, gathered);
    }
}

#[test]
fn departures_set_the_delay_and_use_up_the_burst_allowance() {
    // pie_process_dequeue() with timestamps: from the second departure on, by the time between two.
    let mut state = State::default();
    for (now_ms, arrived_ms, backlog, delay_ms, left_ms) in [
        (20, 5, 1000, 15, 150),
        (30, 10, 1000, 20, 140),
        (30, 29, 0, 0, 140),
        (169, 160, 1, 9, 1),
        (171, 160, 1, 11, 0),
        (271, 160, 1, 111, 0),
    ] {
        state.on_departure(&law(), now_ms * MS, arrived_ms * MS, 1514, backlog);
        assert_eq!(state.delay, ticks(delay_ms * MS), "{now_ms} ms");
        assert_eq!(state.burst, ticks(left_ms * MS), "{now_ms} ms");
    }
}

#[test]
fn a_rate_is_measured_from_a_backlog_of_16_kib_on_and_smoothed_by_an_eighth() {
    // pie_process_dequeue() with the estimator: (16384 << 8) / 46875 ticks of 3 ms = 89, then
    // (16384 << 8) / 62500 = 67: 89 - 11 + 8 = 86.
    let mut law = law();
    law.params.rate_estimator = true;
    let mut state = State::default();
    for (now_ms, backlog, rate, left_ms) in [
        (1, 16_383, 0, 150),
        (2, 16_384, 0, 150),
        (3, 0, 0, 150),
        (4, 0, 0, 150),
        (5, 16_384, 89, 147),
        (6, 0, 89, 147),
        (7, 0, 89, 147),
        (8, 0, 89, 147),
        (9, 16_383, 86, 143),
        (10, 16_383, 86, 143),
        (11, 16_383, 86, 143),
    ] {
        state.on_departure(&law, now_ms * MS, 0, 4096, backlog);
        assert_eq!(
            (state.rate, state.burst),
            (rate, ticks(left_ms * MS)),
            "{now_ms} ms"
        );
    }
    assert_eq!(
        state.measured, None,
        "the backlog was short at the end of the last one"
    );
    // The delay is the backlog over the rate, the old one the last update's.
    state.update(&law, 8600);
    assert_eq!((state.delay, state.old_delay), (8600 * 256 / 86, 0));
    state.update(&law, 17_200);
    assert_eq!(
        (state.delay, state.old_delay),
        (17_200 * 256 / 86, 8600 * 256 / 86)
    );
}

#[test]
fn a_rate_cannot_be_measured_in_no_time() {
    let mut law = law();
    law.params.rate_estimator = true;
    let mut state = State::default();
    for _ in 0..5 {
        state.on_departure(&law, MS, 0, 4096, 16_384);
    }
    assert_eq!(state.rate, 0);
    // The measurement goes on: 6 packets in 1 ms.
    state.on_departure(&law, 2 * MS, 0, 4096, 16_384);
    assert_eq!(state.rate, ((6 * 4096) << 8) / 15_625);
}

#[test]
fn a_full_pie_refuses_the_newcomer() {
    let mut hand = Hand::limited(Aqm::Pie(law().params), None, Some(3));
    hand.offer(0, TestPacket::new(0, 0, 1514), 4);
    assert_eq!(hand.dropped(), [3]);
    assert_eq!(hand.ids(MS, 9), [0, 1, 2]);
}

#[test]
fn pie_drops_all_once_the_probability_is_certain_and_after_an_update() {
    // The first update is at 512 ms. alpha is 32 Hz: 40 ms above the target are 128 %, over 2048: 0.000625.
    // 8.5 / 0.000625 = 13,600 packets gather what makes a drop certain.
    let params = Params {
        alpha: 512,
        beta: 0,
        ..law().params
    };
    let mut hand = Hand::new(Aqm::Pie(params));
    hand.offer(0, TestPacket::new(0, 0, 1514), 100);
    for ms in 0..200 {
        hand.offer(ms * MS, TestPacket::new(100 + ms, 0, 1514), 1);
        hand.take((ms + 1) * MS);
    }
    for ms in 200..511 {
        hand.offer(ms * MS, TestPacket::new(0, 0, 1514), 1);
        hand.take(ms * MS);
    }
    hand.offer(511 * MS, TestPacket::new(0, 0, 1514), 20_000);
    assert_eq!(hand.dropped(), [], "no update yet");
    hand.offer(512 * MS, TestPacket::new(0, 0, 1514), 20_000);
    assert!(!hand.dropped().is_empty());
}

#[test]
fn an_update_changes_nothing_only_where_all_is_as_at_the_start() {
    let start = State::default();
    assert!(start.is_at_rest());
    for changed in [
        State {
            probability: 1,
            ..start
        },
        State { delay: 1, ..start },
        State {
            old_delay: 1,
            ..start
        },
        State {
            burst: BURST_TICKS - 1,
            ..start
        },
    ] {
        assert!(!changed.is_at_rest(), "{changed:?}");
    }
}
