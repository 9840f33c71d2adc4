//! Pages over a link with simple timing: when objects are requested, and how long a page takes.

use std::collections::BTreeMap;

use fullpipe_plan::{
    CcChoice, Hosts, Lookup, ObjectRow, Page, PageObject, PageRow, Protocol, Route,
};
use fullpipe_workload::{PageLoader, Step};

const MS: u64 = 1_000_000;
/// One-way delay.
const DELAY_NS: u64 = 10 * MS;
/// Time per byte on each connection.
const NS_A_BYTE: u64 = 1000;

fn page(protocol: Protocol, connections: u32, lookup: Lookup, objects: &[(u64, u32)]) -> Page {
    let object = |&(bytes, level)| PageObject { bytes, level };
    Page {
        name: "page".to_owned(),
        cc: CcChoice {
            name: "cubic".to_owned(),
            algorithm: None,
            params: Vec::new(),
        },
        route: Route::default(),
        hosts: Hosts::default(),
        dscp: 0,
        ecn: false,
        start_ns: 0,
        stop_ns: None,
        protocol,
        connections,
        lookup,
        request_bytes: 100,
        think_ns: 5 * MS,
        objects: objects.iter().map(object).collect(),
        interval_ns: 0,
        pause_ns: 0,
        loads: Some(1),
        keeps_connections: false,
        nodelay: true,
    }
}

/// What arrives at which end.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    Answer(u32),
    Open(u32),
    Request(u32, u64),
    Response(u32, u64),
}

/// Runs until nothing is in flight; returns the rows and the number of opened connections.
fn run(page: &Page) -> (Vec<PageRow>, Vec<ObjectRow>, usize) {
    let mut loader = PageLoader::new(page, 0);
    let mut wire: BTreeMap<(u64, u64), Arrival> = BTreeMap::new();
    let mut free_ns = vec![0; page.connections as usize];
    let (mut count, mut opened) = (0, 0);
    let mut steps = Vec::new();
    loop {
        let arrival = wire.first_key_value().map(|(&(at_ns, _), _)| at_ns);
        let Some(now_ns) = [arrival, loader.due_ns()].into_iter().flatten().min() else {
            break;
        };
        loader.on_timer(now_ns, &mut steps);
        if arrival == Some(now_ns) {
            let (_, arrival) = wire.pop_first().expect("it was seen");
            match arrival {
                Arrival::Answer(connection) => loader.on_answer(connection, &mut steps),
                Arrival::Open(connection) => loader.on_open(connection, now_ns, &mut steps),
                Arrival::Request(connection, bytes) => {
                    loader.on_request_bytes(connection, bytes, now_ns, &mut steps);
                }
                Arrival::Response(connection, bytes) => {
                    loader.on_response_bytes(connection, bytes, now_ns, &mut steps);
                }
            }
        }
        for step in std::mem::take(&mut steps) {
            let mut send = |at_ns, arrival| {
                count += 1;
                wire.insert((at_ns, count), arrival);
            };
            match step {
                Step::Lookup(connection) => {
                    send(now_ns + 2 * DELAY_NS, Arrival::Answer(connection))
                }
                Step::Open(connection) => {
                    opened += 1;
                    send(now_ns + 2 * DELAY_NS, Arrival::Open(connection));
                }
                Step::Request(connection, bytes) => {
                    let arrival = Arrival::Request(connection, u64::from(bytes));
                    send(now_ns + DELAY_NS, arrival);
                }
                Step::Respond(connection) => loop {
                    let bytes = loader.next_write(connection);
                    if bytes == 0 {
                        break;
                    }
                    let free_ns = &mut free_ns[connection as usize];
                    *free_ns = now_ns.max(*free_ns) + bytes * NS_A_BYTE;
                    send(*free_ns + DELAY_NS, Arrival::Response(connection, bytes));
                },
                Step::Close(_) => {}
            }
        }
    }
    let (pages, objects) = loader.take_rows(true);
    (pages, objects, opened)
}

fn page_ms(pages: &[PageRow]) -> u64 {
    assert_eq!(pages.len(), 1);
    (pages[0].done_us.expect("it was loaded") - pages[0].start_us) / 1000
}

#[test]
fn one_object_takes_the_name_the_handshake_the_round_trip_the_thought_and_its_bytes() {
    let (pages, objects, opened) = run(&page(Protocol::Http1, 4, Lookup::Once, &[(1000, 0)]));
    assert_eq!(page_ms(&pages), 20 + 20 + 20 + 5 + 1);
    assert_eq!((objects.len(), opened), (1, 1));
    let (pages, _, _) = run(&page(Protocol::Http1, 4, Lookup::None, &[(1000, 0)]));
    assert_eq!(page_ms(&pages), 20 + 20 + 5 + 1);
}

#[test]
fn a_level_waits_for_the_one_before_and_uses_its_connection_again() {
    let levels = [(1000, 0), (1000, 1), (1000, 2)];
    let (pages, objects, opened) = run(&page(Protocol::Http1, 4, Lookup::Once, &levels));
    assert_eq!(page_ms(&pages), 40 + 3 * (20 + 5 + 1));
    assert_eq!(opened, 1);
    for pair in objects.windows(2) {
        assert_eq!(Some(pair[1].asked_us), pair[0].done_us);
    }
}

#[test]
fn four_workers_take_eight_objects_in_two_rounds_and_the_fifth_on_a_warm_connection() {
    let (pages, objects, opened) = run(&page(Protocol::Http1, 4, Lookup::Each, &[(1000, 0); 8]));
    assert_eq!(page_ms(&pages), 40 + 2 * (20 + 5 + 1));
    assert_eq!(opened, 4);
    let connections: Vec<u64> = objects.iter().map(|row| row.connection).collect();
    assert_eq!(connections, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn one_connection_whose_frames_take_turns_finishes_equal_objects_together() {
    let two = [(65_536, 0), (65_536, 0)];
    let (_, together, opened) = run(&page(Protocol::Http2, 1, Lookup::Once, &two));
    let (_, in_turn, _) = run(&page(Protocol::Http1, 1, Lookup::Once, &two));
    let spread = |rows: &[ObjectRow]| rows[1].done_us.unwrap() - rows[0].done_us.unwrap();
    assert_eq!(opened, 1);
    assert!(spread(&together) <= 16_400, "{}", spread(&together));
    assert!(spread(&in_turn) >= 65_536);
}

#[test]
fn loads_follow_at_the_interval_or_when_the_one_before_has_ended() {
    let mut slow = page(Protocol::Http1, 1, Lookup::None, &[(1000, 0)]);
    slow.loads = Some(3);
    slow.interval_ns = 10 * MS;
    let (pages, _, opened) = run(&slow);
    let starts: Vec<u64> = pages.iter().map(|row| row.start_us / 1000).collect();
    assert_eq!(starts, [0, 46, 92]);
    assert_eq!(opened, 3);
    slow.interval_ns = 100 * MS;
    slow.keeps_connections = true;
    let (pages, _, opened) = run(&slow);
    let starts: Vec<u64> = pages.iter().map(|row| row.start_us / 1000).collect();
    assert_eq!(starts, [0, 100, 200]);
    assert_eq!(opened, 1);
}
