//! The snapshot ring against what was in flight and lost when each packet was sent.

mod bottleneck;

use bottleneck::{Flow, Path};

fn limited(rate_mbps: u64, window: u32) -> Path {
    Path {
        receive_window: window,
        ..Path::new(rate_mbps, 50, 8.0)
    }
}

#[test]
fn a_flight_of_fewer_packets_than_half_the_slots_is_known_exactly() {
    let mut flow = Flow::new("bbr3", limited(10, 31), &[], 1);
    for row in flow.run(5.0) {
        assert_eq!(row.ring, row.truth, "{row:?}");
    }
}

#[test]
fn a_larger_flight_is_known_to_a_slots_share_and_never_above_the_window() {
    for window in [100, 400, 3000] {
        let mut flow = Flow::new("bbr3", limited(1000, window), &[], 1);
        for row in flow.run(2.0) {
            let (flight, truth) = (row.ring.0, row.truth.0);
            assert!(flight <= window, "{row:?}");
            assert!(flight.abs_diff(truth) <= 2 + window / 32, "{row:?}");
        }
    }
}

#[test]
fn losses_since_a_packets_sending_are_known_to_a_slots_share() {
    let mut path = limited(100, 300);
    path.lose_every = 20;
    let mut flow = Flow::new("bbr3", path, &[], 1);
    for row in flow.run(5.0) {
        assert!(row.ring.1 >= row.truth.1, "{row:?}");
        assert!(row.ring.1 - row.truth.1 <= 3, "{row:?}");
    }
}
