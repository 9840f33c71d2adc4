//! PIE's arithmetic against RFC 8033.

use proptest::prelude::{any, Strategy};

use super::*;

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
