//! The snapshot ring against what was in flight and lost when each packet was sent.

mod bottleneck;

use bottleneck::{Flow, Path, MSS};
use fullpipe_cc::{Ack, Conn, Controller, Ctl, Event, EventKind};

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

#[test]
fn a_retransmission_is_judged_by_the_flight_that_it_was_sent_into() {
    // Google's tcp_rate_skb_sent() stamps a packet at each sending. 20 packets are sent and the first
    // is lost; three ACKs later it is sent again, into a flight of 16.
    let set = fullpipe_cc::set("bbr3").unwrap();
    let algorithm = fullpipe_cc::algorithm(set.algorithm).unwrap();
    let mut cc = Controller::new(algorithm, &set.values).unwrap();
    let mut conn = Conn {
        now_us: 1,
        mss_bytes: MSS,
        cwnd_clamp: u32::MAX,
        pacing_rate_cap_bytes_per_s: u64::MAX,
        ..Conn::default()
    };
    let mut ctl = Ctl {
        cwnd: 20,
        ..Ctl::default()
    };
    let send = Event {
        kind: EventKind::Send as u32,
        ..Event::default()
    };
    cc.init(&conn, &mut ctl);
    for _ in 0..20 {
        cc.on_event(&conn, send, &mut ctl);
        conn.snd_nxt += MSS;
        conn.inflight += 1;
    }
    conn.delivered += 3;
    conn.lost += 1;
    conn.inflight -= 4;
    cc.on_event(&conn, send, &mut ctl);
    let prior_delivered = conn.delivered;
    conn.inflight += 1;
    for _ in 0..16 {
        conn.delivered += 1;
        conn.inflight -= 1;
        cc.on_event(&conn, send, &mut ctl); // a chance to send that was not taken
    }
    let mut ack = Ack {
        prior_us: 1,
        prior_delivered,
        last_end_seq: MSS,
        is_retrans: 1,
        ..Ack::default()
    };
    conn.lost += 2;
    cc.on_ack(&conn, &mut ack, &mut ctl);
    assert_eq!((ack.tx_inflight, ack.lost), (17, 2));
}
