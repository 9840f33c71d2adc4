//! A wire as a link: rates and delays that change, loss before the queue, both ways apart.

use super::Wire;
use crate::impair::loss;
use crate::link::{Direction, Link, Passed, WireDirection};
use crate::testing::{plain_direction, TestPacket, FRAME_BYTES, MS};

fn plan(rate_bps: Option<u64>) -> WireDirection {
    plain_direction(rate_bps, 10 * MS)
}

fn wire(forward: &WireDirection) -> Wire<TestPacket> {
    Wire::new([forward, &plan(None)], 0, 1, 1500).expect("the plan is sound")
}

/// Times at which packets offered at these times come out, with the link called whenever it asks.
fn exits(
    link: &mut Wire<TestPacket>,
    offers_ns: impl Iterator<Item = u64>,
    end_ns: u64,
) -> Vec<u64> {
    let mut passed = Passed::default();
    let serve = |link: &mut Wire<TestPacket>, until_ns: u64, passed: &mut Passed<TestPacket>| {
        while let Some(due_ns) = link.due_ns(0).filter(|&due_ns| due_ns <= until_ns) {
            link.advance(due_ns, 0, passed);
        }
    };
    for (id, at_ns) in (0..).zip(offers_ns) {
        serve(link, at_ns, &mut passed);
        link.offer(
            at_ns,
            Direction::Forward,
            TestPacket::new(id, 1, FRAME_BYTES),
            &mut passed,
        );
    }
    serve(link, end_ns, &mut passed);
    let numbers: Vec<u64> = passed.out.iter().map(|exit| exit.packet.id).collect();
    assert!(numbers.is_sorted(), "a wire never reorders");
    passed.out.iter().map(|exit| exit.at_ns).collect()
}

#[test]
fn an_unlimited_wire_only_delays() {
    let times = exits(&mut wire(&plan(None)), [0, 1, 5 * MS].into_iter(), 0);
    assert_eq!(times, [10 * MS, 10 * MS + 1, 15 * MS]);
}

#[test]
fn each_rate_passes_what_it_carries_while_it_holds_and_an_outage_nothing() {
    let mut changing = plan(Some(12_112_000)); // a frame a ms
    changing.rate_steps = vec![
        (1000 * MS, 1_211_200),
        (2000 * MS, 0),
        (3000 * MS, 24_224_000),
    ];
    let times = exits(
        &mut wire(&changing),
        std::iter::repeat_n(0, 10_000),
        4000 * MS,
    );
    let passed = |from_ms: u64, to_ms: u64| {
        let window = from_ms * MS + 10 * MS..to_ms * MS + 10 * MS;
        times.iter().filter(|at_ns| window.contains(at_ns)).count()
    };
    // Two packets pass at the start: the shaper charges after sending and saves 1600 bytes.
    assert!(passed(0, 1000).abs_diff(1001) <= 1);
    assert!(passed(1000, 2000).abs_diff(100) <= 1);
    assert_eq!(passed(2000, 3000), 0);
    assert!(passed(3000, 4000).abs_diff(2000) <= 2);
}

#[test]
fn a_delay_that_falls_lets_no_packet_overtake_another() {
    let mut changing = plan(None);
    changing.delay_steps = vec![(100 * MS, 2 * MS)];
    let offers = [95 * MS, 99 * MS, 100 * MS, 101 * MS, 120 * MS];
    let times = exits(&mut wire(&changing), offers.into_iter(), 0);
    assert_eq!(times, [105 * MS, 109 * MS, 109 * MS, 109 * MS, 122 * MS]);
}

#[test]
fn steps_out_of_order_are_refused_by_name() {
    let mut wrong = plan(Some(1_000_000));
    wrong.rate_steps = vec![(2, 1), (1, 1)];
    let error = Wire::<TestPacket>::new([&wrong, &plan(None)], 0, 1, 1500).expect_err("disorder");
    assert!(error.contains("rate_steps"), "{error}");
}

#[test]
fn what_a_link_loses_is_handed_back_and_counted() {
    let mut lossy = plan(Some(1_000_000_000));
    lossy.loss = Some(loss::Params {
        probability_ppm: 100_000,
        correlation_ppm: 0,
        ecn: false,
        per_burst: false,
    });
    let mut link = wire(&lossy);
    let mut passed = Passed::default();
    for id in 0..10_000 {
        link.offer(
            id * MS,
            Direction::Forward,
            TestPacket::new(id, 1, FRAME_BYTES),
            &mut passed,
        );
        link.offer(
            id * MS,
            Direction::Reverse,
            TestPacket::new(id, 1, FRAME_BYTES),
            &mut passed,
        );
    }
    let lost = link
        .state(Direction::Forward)
        .expect("it has a queue")
        .lost_packets;
    assert_eq!(passed.dropped.len() as u64, lost);
    assert_eq!(passed.out.len() as u64 + lost, 20_000);
    assert!(
        lost.abs_diff(1000) < 150,
        "{lost}: five standard deviations of 30"
    );
}
