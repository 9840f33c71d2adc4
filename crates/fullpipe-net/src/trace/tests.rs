//! Links that follow traces, against Mahimahi's rules worked out by hand; and files that are none.

use super::{DelayTrace, RateTrace, MAX_LINES};
use crate::link::wire::Wire;
use crate::link::{Direction, Link, Passed, WireDirection};
use crate::testing::{plain_direction, TemporaryFile, TestPacket, FRAME_BYTES, MS};

fn plan() -> WireDirection {
    plain_direction(Some(12_000_000), 0)
}

/// Times in ms at which packets of these sizes, offered at these ms, come out.
fn exits_ms(plan: &WireDirection, offers: &[(u64, u32)]) -> Vec<u64> {
    let mut link = Wire::<TestPacket>::new([plan, plan], 0, 1, 1500).expect("the plan is sound");
    let mut passed = Passed::default();
    let serve = |link: &mut Wire<_>, until_ns, passed: &mut Passed<_>| {
        while let Some(due_ns) = link.due_ns(0).filter(|&due_ns| due_ns <= until_ns) {
            link.advance(due_ns, 0, passed);
        }
    };
    for (id, &(ms, bytes)) in (0..).zip(offers) {
        serve(&mut link, ms * MS, &mut passed);
        let packet = TestPacket::new(id, 1, bytes);
        link.offer(ms * MS, Direction::Forward, packet, &mut passed);
    }
    serve(&mut link, u64::MAX, &mut passed);
    passed.out.iter().map(|exit| exit.at_ns / MS).collect()
}

#[test]
fn a_full_packet_passes_at_each_opportunity_and_the_trace_repeats() {
    let trace = TemporaryFile::new("repeats", "2\n2\n5\n9\n");
    let plan = WireDirection {
        rate_trace: trace.trace(),
        ..plan()
    };
    let six = [(0, FRAME_BYTES); 6];
    assert_eq!(exits_ms(&plan, &six), [2, 2, 5, 9, 11, 11]);
    // What nobody needed is gone; the round after 9 ms has 11, 11, 14, 18, the next one 20.
    let late = [(3, FRAME_BYTES), (12, FRAME_BYTES), (19, FRAME_BYTES)];
    assert_eq!(exits_ms(&plan, &late), [5, 14, 20]);
    // Far later: 9 ms a round, a thousand rounds and 6 ms on.
    assert_eq!(exits_ms(&plan, &[(9006, FRAME_BYTES)]), [9009]);
    assert_eq!(exits_ms(&plan, &[(9009, FRAME_BYTES)]), [9009]);
}

#[test]
fn small_packets_share_an_opportunity_and_a_large_one_needs_two() {
    let trace = TemporaryFile::new("shares", "1\n2\n3\n4\n");
    let plan = WireDirection {
        rate_trace: trace.trace(),
        ..plan()
    };
    assert_eq!(exits_ms(&plan, &[(0, 757), (0, 757), (0, 100)]), [1, 1, 2]);
    // 2000 bytes take 1514 of the first and 486 of the second, whose rest carries 1000 more.
    assert_eq!(
        exits_ms(&plan, &[(0, 2000), (0, 1000), (0, 100)]),
        [2, 2, 3]
    );
}

#[test]
fn a_delay_trace_repeats_and_lets_no_packet_overtake_another() {
    let trace = TemporaryFile::new("delays", "0 20\n10 5.5\n20 0\n");
    let mut plan = plan();
    plan.rate_bps = None;
    plan.delay_trace = trace.trace();
    let at = [0, 9, 10, 19, 20, 30, 41].map(|ms| (ms, FRAME_BYTES));
    let times = exits_ms(&plan, &at);
    assert_eq!(times, [20, 29, 29, 29, 40, 40, 61]);
}

#[test]
fn mean_and_steps_of_a_trace_are_what_its_lines_say() {
    // 1 packet a ms for 10 ms, then one in 10 ms.
    let lines: String = (1..=10).map(|ms| format!("{ms}\n")).collect();
    let file = TemporaryFile::new("steps", &format!("{lines}20\n"));
    let trace = RateTrace::read(file.path()).expect("a sound file");
    let full_bps = 1514 * 8 * 1000;
    assert_eq!(trace.mean_bps(), full_bps * 11 / 20);
    let steps = trace.steps(10, 40 * MS);
    // An opportunity at the end of a bin belongs to the next one, the last of a round to its round.
    assert_eq!(steps[0], (0, full_bps * 9 / 10));
    let packets: u64 = steps
        .iter()
        .zip(steps.iter().skip(1).map(|step| step.0).chain([40 * MS]))
        .map(|(&(at, bps), end)| bps * (end - at) / MS / 1000 / 8 / 1514)
        .sum();
    // What the mean says: 11 opportunities a round.
    assert_eq!(packets, 22);
}

#[test]
fn files_that_are_no_traces_are_refused_with_line_and_value() {
    for (name, text, words) in [
        ("empty", "", "is empty"),
        ("falls", "5\n9\n7\n", "line 3: 7: comes after 9"),
        ("text", "1\nabc\n", "line 2: \"abc\""),
        ("negative", "-1\n", "line 1: \"-1\""),
        ("fraction", "1.5\n", "line 1: \"1.5\""),
        ("zero", "0\n0\n", "line 2: 0"),
        ("gap", "1\n\n2\n", "line 2: is empty"),
        ("far", "99999999999\n", "line 1"),
    ] {
        let file = TemporaryFile::new(name, text);
        let error = RateTrace::read(file.path()).expect_err(name);
        assert!(error.contains(words), "{error}");
    }
    for (name, text, words) in [
        ("d-empty", "", "is empty"),
        ("d-one", "0 5\n", "only one"),
        (
            "d-late",
            "5 5\n9 5\n",
            "line 1: 5: the first time must be 0",
        ),
        ("d-falls", "0 5\n9 5\n9 5\n", "line 3: 9: comes after 9"),
        ("d-text", "0 5\n7 fast\n", "line 2: \"fast\""),
        ("d-half", "0\n", "line 1"),
    ] {
        let file = TemporaryFile::new(name, text);
        let error = DelayTrace::read(file.path()).expect_err(name);
        assert!(error.contains(words), "{error}");
    }
    let long = TemporaryFile::new("long", &"1\n".repeat(MAX_LINES + 1));
    let error = RateTrace::read(long.path()).expect_err("too long");
    assert!(error.contains(&MAX_LINES.to_string()), "{error}");
    let endless = TemporaryFile::new("endless", &"1".repeat(100_000));
    assert!(RateTrace::read(endless.path()).is_err());
    assert!(RateTrace::read("/nowhere/at/all").is_err());
}
