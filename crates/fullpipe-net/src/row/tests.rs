//! A row that a driver without an agenda calls, against the sums of its delays and serialization times.

use super::{Batch, LinkDirection, Route, Row};
use crate::link::delay::Carried;
use crate::link::{Direction, Passage};
use crate::medium::Medium;
use crate::testing::{plain_direction, TestPacket, FRAME_BYTES, MS, MTU_BYTES};

/// A wire of this rate, with a delay forward and twice as much back.
fn wire(rate_bps: Option<u64>, delay_ns: u64) -> Medium {
    Medium::Wire {
        forward: Box::new(plain_direction(rate_bps, delay_ns)),
        reverse: Box::new(plain_direction(rate_bps, 2 * delay_ns)),
    }
}

/// A row, and what left it: when, in which direction, which packet.
struct Driver {
    row: Row<TestPacket>,
    left: Vec<(u64, Direction, u64)>,
}

impl Driver {
    /// The routes are those of flows 0, 1, and so on.
    fn new(media: &[Medium], routes: &[(u16, u16)]) -> Self {
        let route = |&(enter, leave): &(u16, u16)| Route { enter, leave };
        let routes = routes.iter().map(route).collect();
        Self {
            row: Row::new(media, routes, 1, MTU_BYTES).expect("the links are sound"),
            left: Vec::new(),
        }
    }

    fn send(&mut self, now_ns: u64, direction: Direction, packet: TestPacket) {
        let first = self.row.first_link(packet.flow, direction);
        self.offer(now_ns, first, &packet);
    }

    fn offer(&mut self, now_ns: u64, at: LinkDirection, packet: &TestPacket) {
        let batch = self.row.offer(now_ns, at, packet);
        self.forward(now_ns, &batch);
    }

    fn forward(&mut self, now_ns: u64, batch: &Batch) {
        for position in self.row.exits(batch) {
            let exit = self.row.exit(position);
            let at = LinkDirection::new(batch.timer.link(), exit.direction);
            match self.row.next_link(exit.packet.flow, at) {
                None => self.left.push((exit.at_ns, exit.direction, exit.packet.id)),
                Some(next) => {
                    let carried = self.row.carry(now_ns, at, exit.at_ns, &exit.packet);
                    if carried == Carried::Through {
                        self.offer(now_ns, next, &exit.packet);
                    }
                }
            }
        }
        self.row.end_batch(batch);
    }

    /// Calls the row at the times that it names, until there are none.
    fn finish(&mut self) {
        let links = 0..self.row.links().len();
        let all: Vec<_> = links
            .flat_map(|link| Direction::BOTH.map(|way| LinkDirection::new(link, way)))
            .collect();
        loop {
            let due = all
                .iter()
                .filter_map(|&at| Some((self.row.due_ns(at)?, at)));
            let arriving = all
                .iter()
                .filter_map(|&at| Some((self.row.arrival_ns(at)?, at)));
            let (due, arriving) = (
                due.min_by_key(|&(at_ns, _)| at_ns),
                arriving.min_by_key(|&(at_ns, _)| at_ns),
            );
            match (due, arriving) {
                (None, None) => return,
                (Some((now_ns, timer)), first) if first.is_none_or(|(at_ns, _)| now_ns < at_ns) => {
                    let batch = self.row.advance(now_ns, timer);
                    self.forward(now_ns, &batch);
                }
                (_, None) => unreachable!("a timer without a time"),
                (_, Some((now_ns, at))) => {
                    while let Some(packet) = self.row.arrived(now_ns, at) {
                        let next = self.row.next_link(packet.flow, at).expect("it goes on");
                        self.offer(now_ns, next, &packet);
                    }
                }
            }
        }
    }
}

#[test]
fn a_packet_passes_the_links_of_its_route_and_no_others() {
    let media = [1, 10, 100].map(|delay_ms| wire(None, delay_ms * MS));
    let routes = [(0, 2), (0, 0), (1, 2), (2, 2)];
    let mut driver = Driver::new(&media, &routes);
    let mut expected = Vec::new();
    for (flow, sum_ms) in (0..).zip([111, 1, 110, 100]) {
        for (direction, factor) in [(Direction::Forward, 1), (Direction::Reverse, 2)] {
            let id = u64::from(flow) * 2 + factor;
            driver.send(0, direction, TestPacket::new(id, flow, FRAME_BYTES));
            expected.push((sum_ms * factor * MS, direction, id));
        }
    }
    driver.finish();
    let key = |&(at_ns, _, id): &(u64, Direction, u64)| (at_ns, id);
    expected.sort_by_key(key);
    driver.left.sort_by_key(key);
    assert_eq!(driver.left, expected);
}

#[test]
fn packets_leave_a_row_at_the_rate_of_its_slowest_link_and_in_order() {
    // 1514 bytes take 1 ms at 12,112,000 bit/s.
    for rates in [
        [12_112_000, 24_224_000],
        [24_224_000, 12_112_000],
        [12_112_000, 12_112_000],
    ] {
        let media = rates.map(|rate_bps| wire(Some(rate_bps), 5 * MS));
        let mut driver = Driver::new(&media, &[(0, 1)]);
        for id in 0..100 {
            driver.send(0, Direction::Forward, TestPacket::new(id, 0, FRAME_BYTES));
        }
        driver.finish();
        let ids: Vec<u64> = driver.left.iter().map(|&(_, _, id)| id).collect();
        assert_eq!(ids, (0..100).collect::<Vec<_>>());
        // The shapers charge after sending, and have saved 86 bytes more than one packet.
        let first_ns = driver.left[0].0;
        assert_eq!(first_ns, 10 * MS);
        let last_ns = driver.left[99].0;
        assert!(
            last_ns.abs_diff(10 * MS + 98 * MS) < 2 * MS,
            "{last_ns} of {rates:?}"
        );
    }
}

#[test]
fn directions_have_names_of_their_own_and_a_delay_alone_needs_no_call() {
    let media = [wire(None, MS), wire(Some(1_000_000), MS)];
    let driver = Driver::new(&media, &[(0, 1)]);
    let mut numbers = Vec::new();
    for link in 0..2 {
        for direction in Direction::BOTH {
            let at = LinkDirection::new(link, direction);
            assert_eq!((at.link(), at.direction()), (link, direction));
            numbers.push(at.index());
        }
    }
    assert_eq!(numbers, [0, 1, 2, 3]);
    let passage = |link, way| driver.row.passage(LinkDirection::new(link, way));
    assert_eq!(passage(0, Direction::Forward), Passage::Delayed(MS));
    assert_eq!(passage(0, Direction::Reverse), Passage::Delayed(2 * MS));
    assert_eq!(passage(1, Direction::Forward), Passage::Queued);
}

#[test]
fn a_wrong_link_is_named_by_its_position() {
    let media = [wire(None, MS), wire(Some(0), MS)];
    let Err((link, error)) = Row::<TestPacket>::new(&media, Vec::new(), 1, MTU_BYTES) else {
        panic!("a rate of 0");
    };
    assert_eq!(link, 1);
    assert!(error.contains("rate_bps"), "{error}");
}
