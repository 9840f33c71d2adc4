//! A way of a wire by direct steps against the same way by the lists of a link, and bursts that are
//! offered as one run against their packets one by one.

use proptest::prelude::*;

use crate::impair::loss;
use crate::link::wire::Wire;
use crate::link::{Direction, DirectionState, Exit, Link, Passed, QueuedDirection, WireDirection};
use crate::packet::Packet;
use crate::queue::{cake, Aqm, Qdisc};
use crate::testing::{any_qdisc, plain_direction, TemporaryFile, TestPacket, FRAME_BYTES, MS};

const RATE_BPS: u64 = 24_000_000;

/// Packets that come at once, so long after those before them.
#[derive(Clone, Debug)]
struct Burst {
    wait_ns: u64,
    packet: TestPacket,
    count: u32,
}

/// All that can be seen of a way.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// When what came out, in order.
    out: Vec<(u64, TestPacket)>,
    /// What was dropped, and with which burst or before it.
    dropped: Vec<(usize, TestPacket)>,
    states: Vec<Option<DirectionState>>,
}

type Passing = Passed<TestPacket>;
type Row = Wire<TestPacket>;

/// How a way is driven.
trait Driver {
    fn due_ns(&self, link: &mut Row) -> u64;
    fn offer(&self, link: &mut Row, now_ns: u64, burst: &Burst, passed: &mut Passing);
    fn ask(&self, link: &mut Row, now_ns: u64, passed: &mut Passing);
}

/// By the link's contract.
struct Lists;

impl Driver for Lists {
    fn due_ns(&self, link: &mut Row) -> u64 {
        link.due_ns(0).unwrap_or(u64::MAX)
    }

    fn offer(&self, link: &mut Row, now_ns: u64, burst: &Burst, passed: &mut Passing) {
        let mut run = burst.packet;
        for others in (0..burst.count).rev() {
            link.offer(now_ns, Direction::Forward, run.split_first(others), passed);
        }
    }

    fn ask(&self, link: &mut Row, now_ns: u64, passed: &mut Passing) {
        link.advance(now_ns, 0, passed);
    }
}

/// By the steps of a queued way; `whole`: a burst that finds packets waiting is offered at once.
struct Steps {
    whole: bool,
}

fn queued(link: &mut Row) -> &mut QueuedDirection<TestPacket> {
    link.queued(0).expect("a queued way")
}

impl Driver for Steps {
    fn due_ns(&self, link: &mut Row) -> u64 {
        queued(link).due_ns()
    }

    fn offer(&self, link: &mut Row, now_ns: u64, burst: &Burst, passed: &mut Passing) {
        let mut run = burst.packet;
        for others in (0..burst.count).rev() {
            let direction = queued(link);
            let is_idle = direction.due_ns() == u64::MAX;
            if self.whole && !is_idle {
                direction.enqueue(now_ns, &run, others + 1, &mut passed.dropped);
                return;
            }
            let comes = direction.enqueue(now_ns, &run.split_first(others), 1, &mut passed.dropped);
            if comes && is_idle {
                self.ask(link, now_ns, passed);
            }
        }
    }

    fn ask(&self, link: &mut Row, now_ns: u64, passed: &mut Passing) {
        let direction = queued(link);
        let Some((run, is_followed)) = direction.choose(now_ns, &mut passed.dropped) else {
            return;
        };
        let packet = run.first_of_burst(is_followed);
        passed.out.push(Exit {
            at_ns: direction.send(now_ns),
            direction: Direction::Forward,
            packet,
        });
        if direction.due_ns() <= now_ns {
            direction.send_all(now_ns, passed);
        }
    }
}

/// What is seen of a way that is driven so, up to its last packet.
fn see(plan: &WireDirection, driver: &dyn Driver, bursts: &[Burst]) -> Seen {
    let back = plain_direction(None, 0);
    let mut link = Wire::new([plan, &back], 0, 1, 1500).expect("the plan is sound");
    let (mut seen, mut passed) = (Seen::default(), Passed::default());
    let mut now_ns = 0;
    for (index, burst) in bursts.iter().enumerate() {
        now_ns += burst.wait_ns;
        loop {
            let due_ns = driver.due_ns(&mut link);
            if due_ns > now_ns {
                break;
            }
            driver.ask(&mut link, due_ns, &mut passed);
        }
        driver.offer(&mut link, now_ns, burst, &mut passed);
        seen.states.push(link.state(Direction::Forward));
        seen.dropped
            .extend(passed.dropped.drain(..).map(|packet| (index, packet)));
    }
    for _ in 0..100_000 {
        match driver.due_ns(&mut link) {
            u64::MAX => break,
            due_ns => driver.ask(&mut link, due_ns, &mut passed),
        }
    }
    seen.states.push(link.state(Direction::Forward));
    seen.dropped
        .extend(passed.dropped.iter().map(|&packet| (bursts.len(), packet)));
    seen.out = passed
        .out
        .iter()
        .map(|exit| (exit.at_ns, exit.packet))
        .collect();
    seen
}

/// The same, by a way that can do more than its plan asks: its delay changes after the end.
fn changing(plan: &WireDirection) -> WireDirection {
    let mut plan = plan.clone();
    plan.delay_steps = vec![(1_000_000_000 * MS, 1)];
    plan
}

/// Bursts that come faster than they leave, in turns with pauses.
fn many_bursts() -> Vec<Burst> {
    let burst = |step: u64| {
        let bytes = if step % 5 == 0 { 66 } else { FRAME_BYTES };
        let mut packet = TestPacket::new(step * 10, 1, bytes);
        packet.is_last = true;
        Burst {
            wait_ns: step * 62_710_561 % MS,
            packet,
            count: (step % 4) as u32,
        }
    };
    (0..4000).map(burst).collect()
}

#[test]
fn a_fifo_gives_what_one_gives_that_changes_after_the_end() {
    for (limit_bytes, limit_packets) in [
        (Some(20_000), None),
        (None, Some(11)),
        (Some(9000), Some(8)),
    ] {
        let mut plan = plain_direction(Some(RATE_BPS), 10 * MS);
        plan.qdisc.limit_bytes = limit_bytes;
        plan.qdisc.limit_packets = limit_packets;
        let bursts = many_bursts();
        let expected = see(&changing(&plan), &Lists, &bursts);
        let (dropped, out) = (expected.dropped.len(), expected.out.len());
        assert!(dropped > 100 && out > 2 * dropped, "{dropped} and {out}");
        assert_eq!(see(&plan, &Lists, &bursts), expected);
        for whole in [false, true] {
            assert_eq!(see(&plan, &Steps { whole }, &bursts), expected);
        }
    }
}

#[test]
fn of_a_burst_in_cake_single_packets_are_marked_and_the_last_one_stays_the_last() {
    let mut plan = plain_direction(Some(RATE_BPS), 10 * MS);
    plan.qdisc.aqm = Aqm::Cake(cake::Params {
        rtt_ns: 10 * MS,
        target_ns: MS / 2,
        shapes: true,
        tins: cake::Tins::Diffserv3,
        isolation: cake::Isolation::TripleIsolate,
        ack_filter: cake::AckFilter::No,
        overhead_bytes: None,
        mpu_bytes: 0,
        framing: cake::Framing::None,
        ingress: false,
        autorate_ingress: false,
        wash: false,
        split_gso: true,
    });
    let mut bursts = many_bursts();
    for burst in &mut bursts {
        burst.packet.ecn = true;
    }
    let expected = see(&changing(&plan), &Lists, &bursts);
    for is_last in [false, true] {
        let is_meant = |packet: &TestPacket| packet.marked && packet.is_last == is_last;
        let out = expected.out.iter();
        assert!(out.filter(|(_, packet)| is_meant(packet)).count() > 50);
    }
    let seen = see(&plan, &Steps { whole: true }, &bursts);
    assert_eq!(seen, expected);
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let burst = (
        0..3 * MS,
        0..6u32,
        60..=FRAME_BYTES,
        any::<bool>(),
        0..64u8,
        0..3 * MS,
        1..12u32,
    )
        .prop_map(|(wait_ns, flow, bytes, ecn, dscp, pace_ns, count)| {
            let mut packet = TestPacket::new(0, flow, bytes).send_at(pace_ns);
            packet.ecn = ecn;
            packet.dscp = dscp;
            packet.hosts = (flow % 2, flow % 3);
            packet.is_last = true;
            Burst {
                wait_ns,
                packet,
                count,
            }
        });
    let numbered = |mut bursts: Vec<Burst>| {
        let (mut id, mut now_ns) = (0, 0);
        for burst in &mut bursts {
            now_ns += burst.wait_ns;
            burst.packet.id = id;
            burst.packet.send_at_ns += now_ns;
            id += u64::from(burst.count);
        }
        bursts
    };
    prop::collection::vec(burst, 1..200).prop_map(numbered)
}

fn loss() -> impl Strategy<Value = loss::Params> {
    let ppm = 0..300_000u32;
    (ppm.clone(), ppm, any::<bool>()).prop_map(|(probability_ppm, correlation_ppm, ecn)| {
        loss::Params {
            probability_ppm,
            correlation_ppm,
            ecn,
            per_burst: false,
        }
    })
}

/// A constant rate, one in steps, a trace; the latter where the queue does not keep the rate itself.
fn direction(qdisc: Qdisc, pace: u8, trace: &TemporaryFile) -> WireDirection {
    let mut plan = plain_direction(Some(RATE_BPS), 10 * MS);
    let may_change = !qdisc.shapes();
    plan.qdisc = qdisc;
    match pace {
        1 if may_change => {
            plan.rate_steps = vec![(100 * MS, 3_000_000), (300 * MS, 0), (400 * MS, RATE_BPS)]
        }
        2 if may_change => plan.rate_trace = trace.trace(),
        _ => {}
    }
    plan
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_way_gives_the_same_by_direct_steps_by_lists_and_with_bursts_as_runs(
        qdisc in any_qdisc(), bursts in bursts(), pace in 0..3u8, loss in prop::option::of(loss())
    ) {
        let trace = TemporaryFile::new("direct.trace", "0\n0\n0\n1\n1\n3\n7\n7\n7\n7\n20\n");
        let mut plan = direction(qdisc, pace, &trace);
        plan.loss = loss;
        let expected = see(&changing(&plan), &Lists, &bursts);
        prop_assert_eq!(&see(&plan, &Lists, &bursts), &expected);
        for whole in [false, true] {
            prop_assert_eq!(&see(&plan, &Steps { whole }, &bursts), &expected);
        }
    }
}
