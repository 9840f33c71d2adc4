//! Access lines against the sums of their delays, and loss at the egress against its counts.

use super::{AccessLine, EgressLoss};
use crate::impair::jitter::{self, JitterSource, Shape};
use crate::impair::loss;
use crate::link::delay::Carried;
use crate::link::Direction;
use crate::testing::{TestPacket, MS};

#[test]
fn a_line_without_a_delay_lets_packets_through_unless_one_is_ahead() {
    let mut line = AccessLine::new(0, None);
    assert!(line.is_direct());
    let packet = TestPacket::new(1, 0, 100);
    assert_eq!(line.carry(5, 5, &packet), Carried::Through);
    assert_eq!(line.carry(5, 8, &packet), Carried::First(8));
    assert_eq!(line.carry(8, 8, &packet), Carried::Behind);
    assert_eq!(line.due_ns(), Some(8));
    for _ in 0..2 {
        assert!(line.ready(7).is_none() && line.ready(8).is_some());
        line.leave();
    }
    assert!(line.is_empty() && line.due_ns().is_none());
}

#[test]
fn a_delay_follows_jitter_and_packets_keep_their_order() {
    let params = jitter::Params {
        shape: Shape::PerPacket,
        max_ns: 4 * MS,
    };
    let mut line = AccessLine::new(10 * MS, Some(JitterSource::new(&params, 1)));
    assert!(!line.is_direct());
    let mut last_ns = 0;
    for id in 0..1000 {
        let at_ns = id * MS;
        let carried = line.carry(at_ns, at_ns, &TestPacket::new(id, 0, 100));
        let Carried::First(due_ns) = carried else {
            panic!("{carried:?}");
        };
        assert!(due_ns >= last_ns && (10 * MS..=14 * MS).contains(&(due_ns - at_ns)));
        assert_eq!(line.ready(due_ns).map(|packet| packet.id), Some(id));
        line.leave();
        last_ns = due_ns;
    }
}

#[test]
fn each_direction_has_its_own_loss_at_the_egress() {
    let all = loss::Params {
        probability_ppm: 1_000_000,
        correlation_ppm: 0,
        ecn: false,
        per_burst: false,
    };
    let mut egress = EgressLoss::new(None, Some(&all), 1);
    let mut packet = TestPacket::new(0, 0, 100);
    assert!(egress.is_none(Direction::Forward) && !egress.is_none(Direction::Reverse));
    for _ in 0..10 {
        assert!(egress.passes(Direction::Forward, &mut packet));
        assert!(!egress.passes(Direction::Reverse, &mut packet));
    }
    assert_eq!(egress.totals(), [(0, 0), (10, 0)]);
}
