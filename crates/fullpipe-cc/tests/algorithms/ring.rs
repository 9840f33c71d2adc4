//! The snapshot ring against what was in flight and lost when each packet was sent.

use crate::bottleneck::{Flow, Path, MSS};
use fullpipe_cc::{Ack, CaState, Conn, Controller, Ctl, Event, EventKind};

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

/// A sender by hand: it asks before it sends, as tcp_write_xmit() and tcp_xmit_retransmit_queue()
/// do, and each sending moves the time at which the next may depart.
struct Sender {
    cc: Controller,
    conn: Conn,
    ctl: Ctl,
}

/// What Google's tcp_rate_skb_sent() stamps on a packet at each sending.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp {
    at_us: u64,
    delivered: u32,
    flight: u32,
    lost: u32,
}

impl Sender {
    fn new() -> Self {
        let set = fullpipe_cc::set("bbr3").unwrap();
        let algorithm = fullpipe_cc::algorithm(set.algorithm).unwrap();
        let mut sender = Self {
            cc: Controller::new(algorithm, &set.values).unwrap(),
            conn: Conn {
                mss_bytes: MSS,
                cwnd_clamp: u32::MAX,
                pacing_rate_cap_bytes_per_s: u64::MAX,
                ..Conn::default()
            },
            ctl: Ctl::default(),
        };
        sender.ctl.cwnd = 20;
        sender.wait(1_000_000);
        sender.cc.init(&sender.conn, &mut sender.ctl);
        sender
    }

    fn wait(&mut self, us: u64) {
        self.conn.now_us += us;
        self.conn.now_ns = self.conn.now_us * 1000;
    }

    fn event(&mut self, kind: EventKind, value: u32) {
        let event = Event {
            kind: kind as u32,
            value,
            ..Event::default()
        };
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    /// A chance to send.
    fn ask(&mut self) {
        self.event(EventKind::Send, 0);
    }

    fn transmit(&mut self) -> Stamp {
        self.conn.edt_ns = self.conn.edt_ns.max(self.conn.now_ns) + 100_000;
        self.conn.inflight += 1;
        Stamp {
            at_us: self.conn.now_us,
            delivered: self.conn.delivered,
            flight: self.conn.inflight,
            lost: self.conn.lost,
        }
    }

    fn send_new(&mut self) -> Stamp {
        self.wait(100);
        self.ask();
        self.conn.snd_nxt += MSS;
        self.transmit()
    }

    fn send_many(&mut self, packets: u32) {
        for _ in 0..packets {
            self.send_new();
        }
    }

    /// The kernel asks again behind a retransmission, for new data that the pacing holds back.
    fn send_again(&mut self) -> Stamp {
        self.wait(100);
        self.ask();
        let stamp = self.transmit();
        self.ask();
        stamp
    }

    fn deliver(&mut self, packets: u32) {
        self.conn.delivered += packets;
        self.conn.inflight -= packets;
    }

    fn lose(&mut self, packets: u32) {
        self.conn.lost += packets;
        self.conn.inflight -= packets;
    }

    /// The flight and the losses that the algorithm is told of a packet that was sent again.
    fn told(&mut self, stamp: Stamp) -> (u32, u32) {
        let mut ack = Ack {
            prior_us: 1,
            prior_delivered: stamp.delivered,
            last_end_seq: MSS,
            is_retrans: 1,
            age_us: (self.conn.now_us - stamp.at_us) as u32,
            ..Ack::default()
        };
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
        (ack.tx_inflight, ack.lost)
    }
}

#[test]
fn a_retransmission_is_judged_by_the_flight_that_it_was_sent_into() {
    // 20 packets are sent and the first is lost; three ACKs later it is sent again.
    let mut sender = Sender::new();
    sender.send_many(20);
    sender.deliver(3);
    sender.lose(1);
    let again = sender.send_again();
    assert_eq!(again.flight, 17);
    for _ in 0..16 {
        sender.wait(1_000);
        sender.deliver(1);
        sender.ask(); // a chance to send that is not taken
    }
    sender.lose(1);
    assert_eq!(sender.told(again), (17, 1));
}

#[test]
fn retransmissions_between_two_acks_are_told_apart() {
    // Nothing is delivered between them, and all come before the same new data.
    let mut sender = Sender::new();
    sender.send_many(20);
    sender.deliver(5);
    sender.lose(3);
    let first = sender.send_again();
    let second = sender.send_again();
    sender.lose(1);
    let third = sender.send_again();
    sender.send_new();
    for again in [first, second, third] {
        let lost = sender.conn.lost - again.lost;
        assert_eq!(sender.told(again), (again.flight, lost), "{again:?}");
    }
}

#[test]
fn retransmissions_that_fq_holds_are_known_by_their_departures() {
    // tcp_update_skb_after_send() stamps a packet with tcp_wstamp_ns, which is ahead of the clock where
    // fq paces.
    let mut sender = Sender::new();
    sender.send_many(20);
    sender.deliver(5);
    sender.lose(3);
    let sent: Vec<Stamp> = (0..3)
        .map(|_| {
            sender.ask();
            let at_us = sender.conn.edt_ns.max(sender.conn.now_ns) / 1_000;
            let stamp = sender.transmit();
            sender.ask();
            sender.lose(1);
            Stamp { at_us, ..stamp }
        })
        .collect();
    sender.wait(10_000);
    for again in sent {
        let lost = sender.conn.lost - again.lost;
        assert_eq!(sender.told(again), (again.flight, lost), "{again:?}");
    }
}

#[test]
fn what_a_timeout_sends_again_follows_the_loss_of_the_whole_flight() {
    // tcp_retransmit_timer() asks nobody: tcp_enter_loss() changes the state, then the head leaves.
    let mut sender = Sender::new();
    sender.send_many(20);
    sender.wait(200_000);
    sender.lose(20);
    sender.event(EventKind::State, CaState::Loss as u32);
    let head = sender.transmit();
    sender.wait(50_000);
    assert_eq!(sender.told(head), (1, 0));
}

#[test]
fn a_retransmission_in_a_large_flight_is_known_to_a_slots_share() {
    let mut sender = Sender::new();
    sender.send_many(1_000);
    sender.deliver(300);
    sender.lose(300);
    // More than the ring has places, some of them as the window moves.
    let stamps: Vec<Stamp> = (0..300)
        .map(|place| {
            sender.deliver(u32::from(place % 3 == 0));
            sender.send_again()
        })
        .collect();
    for stamp in stamps {
        let (flight, _) = sender.told(stamp);
        assert!(
            flight.abs_diff(stamp.flight) <= 1 + 700 / 32,
            "{flight} {stamp:?}"
        );
    }
}
