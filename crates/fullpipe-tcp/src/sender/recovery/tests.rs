//! Recovery without a congestion control: a window that halves stands in for one.

use fullpipe_cc::{CaState, Ctl, Event, EventKind};

use crate::packet::{Ack, Block};
use crate::sender::ack_info::AckInfo;
use crate::sender::deliveries::Deliveries;
use crate::sender::flight::{Flight, LostPacket};
use crate::sender::journal::SenderEvent;
use crate::sender::rate::RateState;
use crate::sender::rtt::Rtt;
use crate::sender::scoreboard::Sent;
use crate::sender::stream::Stream;
use crate::sender::testing::config;
use crate::sender::write_queue::WriteQueue;

use super::{Context, Decision, Recovery, Resend};

const MS: u64 = 1_000_000;
const RTT: u64 = 40 * MS;

/// What surrounds recovery here.
struct Halving {
    now_ns: u64,
    rtt: Rtt,
    ctl: Ctl,
    owns_cwnd: bool,
    told: Vec<(EventKind, CaState)>,
    lost: usize,
    recorded: Vec<SenderEvent>,
}

impl Context for Halving {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    fn owns_cwnd(&self) -> bool {
        self.owns_cwnd
    }

    fn ctl(&self) -> &Ctl {
        &self.ctl
    }

    fn ctl_mut(&mut self) -> &mut Ctl {
        &mut self.ctl
    }

    fn tell(&mut self, recovery: &Recovery, _: &Flight, event: Event) {
        let kinds = [
            EventKind::State,
            EventKind::Ssthresh,
            EventKind::Rto,
            EventKind::Undo,
            EventKind::CompleteCwr,
            EventKind::TlpRecovery,
        ];
        let kind = kinds.into_iter().find(|&kind| kind as u32 == event.kind);
        let kind = kind.expect("an event of recovery");
        match kind {
            EventKind::Ssthresh => self.ctl.ssthresh = self.ctl.cwnd / 2,
            EventKind::Undo => self.ctl.cwnd = self.ctl.cwnd.max(2 * self.ctl.ssthresh),
            _ => {}
        }
        self.told.push((kind, recovery.state()));
    }

    fn tell_lost(&mut self, _: &Recovery, _: &Flight, _: &LostPacket) {
        self.lost += 1;
    }

    fn full_packets(&self, first: u32, end: u32) -> u32 {
        end.saturating_sub(first)
    }

    fn restamp_cwnd(&mut self) {}

    fn record(&mut self, event: SenderEvent) {
        self.recorded.push(event);
    }
}

/// Twenty packets that were sent one after another within a millisecond.
struct Path {
    host: Halving,
    flight: Flight,
    recovery: Recovery,
    queue: WriteQueue,
    rate: RateState,
    stream: Stream,
    retransmissions: u64,
}

impl Path {
    fn new() -> Self {
        let mut rtt = Rtt::default();
        rtt.sample((RTT / 1000) as i64, 0, 0);
        rtt.sample_min((RTT / 1000) as u32, 0);
        let mut path = Self {
            host: Halving {
                now_ns: 0,
                rtt,
                ctl: Ctl {
                    cwnd: 20,
                    ssthresh: 1000,
                    ..Ctl::default()
                },
                owns_cwnd: false,
                told: Vec::new(),
                lost: 0,
                recorded: Vec::new(),
            },
            flight: Flight::new(),
            recovery: Recovery::new(),
            queue: WriteQueue::new(1448, 44, 1 << 20),
            rate: RateState::default(),
            stream: Stream::new(&config()),
            retransmissions: 0,
        };
        path.recovery.established(true);
        path.send(20, 100 * MS);
        path
    }

    fn send(&mut self, count: u32, at_ns: u64) {
        for number in 0..count {
            let sent_ns = at_ns + u64::from(number) * MS / 20;
            let mut record = Sent::first_of(1, sent_ns, self.flight.inflight() + 1, 0);
            self.rate.sent(&mut record, sent_ns / 1000, false);
            self.flight.send(1, record);
            let (next, una) = (self.flight.next(), self.flight.una());
            self.queue.send(
                self.stream.bytes_before(next),
                self.stream.bytes_before(una),
            );
            self.recovery.sent(1);
        }
    }

    /// Sends every lost packet again.
    fn resend(&mut self, at_ns: u64) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(number) = self.flight.next_to_retransmit() {
            let mut record = Sent::first_of(1, at_ns, self.flight.inflight() + 1, 0);
            self.rate.sent(&mut record, at_ns / 1000, false);
            self.flight.send_again(number, 1, record);
            self.flight.count_retransmitted(number, 1);
            self.recovery.sent(1);
            self.recovery.sent_again(1, at_ns);
            self.retransmissions += 1;
            numbers.push(number);
        }
        numbers
    }

    /// An ACK arrives an RTT after `echo_ns`.
    fn ack(&mut self, echo_ns: u64, next: u32, blocks: &[(u32, u32)]) -> Option<Decision> {
        self.take(Ack {
            next,
            echo_ns,
            ..with_blocks(blocks)
        })
    }

    fn take(&mut self, ack: Ack) -> Option<Decision> {
        self.host.now_ns = ack.echo_ns + RTT;
        let prior_una = self.flight.una();
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            advanced: ack.next > prior_una,
            ..AckInfo::default()
        };
        if info.advanced {
            self.recovery.advanced();
        }
        let mut deliveries = Deliveries {
            now_ns: self.host.now_ns,
            min_rtt_us: self.host.rtt.min_us(),
            retransmissions: self.retransmissions,
            flight: &mut self.flight,
            stream: &self.stream,
            queue: &mut self.queue,
            rate: &mut self.rate,
            recovery: &mut self.recovery,
        };
        if ack.count > 0 {
            deliveries.sack(&ack, &mut info);
        }
        deliveries.acknowledge::<false>(ack.next, &mut info);
        let delivered = self.rate.delivered();
        self.recovery
            .learn_reordering(&info, (&self.flight, &self.stream), delivered);
        info.ece = ack.marks > 0;
        let dubious = self.recovery.is_dubious(&info);
        dubious.then(|| {
            let (host, flight) = (&mut self.host, &mut self.flight);
            self.recovery.alert(host, flight, (prior_una, false), &info)
        })
    }

    fn kinds(&self) -> Vec<EventKind> {
        self.host.told.iter().map(|&(kind, _)| kind).collect()
    }
}

fn with_blocks(blocks: &[(u32, u32)]) -> Ack {
    let mut ack = Ack {
        count: blocks.len() as u8,
        ..Ack::default()
    };
    for (slot, &(start, end)) in ack.blocks.iter_mut().zip(blocks) {
        *slot = Block { start, end };
    }
    ack
}

/// Three packets are SACKed above a hole: Recovery begins.
fn recovering() -> Path {
    let mut path = Path::new();
    for end in [2, 3] {
        let decision = path.ack(100 * MS, 0, &[(1, end)]).unwrap();
        assert_eq!(decision.resend, Resend::Nothing);
    }
    assert_eq!(path.recovery.state(), CaState::Disorder);
    let decision = path.ack(100 * MS, 0, &[(1, 4)]).unwrap();
    assert_eq!(decision.resend, Resend::Lost);
    path
}

#[test]
fn three_packets_sacked_above_a_hole_begin_recovery() {
    // RFC 8985 section 6.2: with no reordering seen, DupThresh makes the reordering window 0.
    let path = recovering();
    assert_eq!(path.recovery.state(), CaState::Recovery);
    assert_eq!((path.flight.lost(), path.host.lost), (1, 1));
    assert_eq!(path.host.recorded, [SenderEvent::Recovery]);
    let expected = [EventKind::State, EventKind::Ssthresh, EventKind::State];
    assert_eq!(path.kinds(), expected);
    // The algorithm sees the state before the change.
    assert_eq!(path.host.told[2].1, CaState::Disorder);
}

#[test]
fn fewer_packets_above_a_hole_wait_for_a_quarter_of_the_minimum_rtt() {
    let mut path = Path::new();
    let decision = path.ack(100 * MS, 0, &[(1, 3)]).unwrap();
    assert_eq!((path.flight.lost(), decision.resend), (0, Resend::Nothing));
    // Packet 0 is 50 us older than packet 1, and 2 was delivered last after 39.9 ms.
    let wait_us = decision.reorder_wait_us.unwrap();
    assert_eq!(wait_us, 10_000 - 100);
    path.host.now_ns += wait_us * 1000;
    let (host, flight) = (&mut path.host, &mut path.flight);
    assert!(path.recovery.reorder_timed_out(host, flight));
    assert_eq!(path.recovery.state(), CaState::Recovery);
}

#[test]
fn recovery_ends_with_the_window_at_the_threshold() {
    let mut path = recovering();
    assert_eq!(path.resend(140 * MS), [0]);
    path.ack(140 * MS, 20, &[]);
    assert_eq!(path.recovery.state(), CaState::Open);
    assert_eq!(path.host.ctl.cwnd, 10);
    assert_eq!(path.host.recorded.last(), Some(&SenderEvent::RecoveryEnd));
}

#[test]
fn an_algorithm_that_owns_its_window_keeps_it_in_recovery() {
    let mut path = Path::new();
    path.host.owns_cwnd = true;
    path.ack(100 * MS, 0, &[(1, 4)]);
    assert_eq!(path.recovery.state(), CaState::Recovery);
    path.resend(140 * MS);
    path.ack(140 * MS, 20, &[]);
    assert_eq!(
        (path.recovery.state(), path.host.ctl.cwnd),
        (CaState::Open, 20)
    );
    assert!(!path.kinds().contains(&EventKind::CompleteCwr));
}

#[test]
fn an_echo_from_before_the_retransmission_undoes_the_reduction() {
    // RFC 3522: the original had arrived.
    let mut path = recovering();
    path.resend(140 * MS);
    path.ack(101 * MS, 20, &[]);
    assert!(path.host.recorded.contains(&SenderEvent::Undo));
    // What tcp_current_ssthresh() gave at the beginning.
    assert_eq!(path.host.ctl.ssthresh, 1000);
    assert_eq!(path.recovery.state(), CaState::Open);
}

#[test]
fn a_dsack_of_every_retransmission_undoes_the_reduction() {
    // RFC 3708.
    let mut path = recovering();
    path.resend(140 * MS);
    path.ack(140 * MS, 8, &[]);
    let duplicate = Ack {
        next: 9,
        echo_ns: 140 * MS,
        dsack: true,
        ..with_blocks(&[(0, 1)])
    };
    path.take(duplicate);
    assert!(path.host.recorded.contains(&SenderEvent::Undo));
    assert_eq!(path.host.ctl.ssthresh, 1000);
}

#[test]
fn a_timeout_marks_everything_lost_and_leaves_a_window_of_one() {
    // RFC 5681 section 3.1.
    let mut path = Path::new();
    path.host.now_ns = 400 * MS;
    let (host, flight) = (&mut path.host, &mut path.flight);
    path.recovery.timed_out(host, flight);
    assert_eq!((path.flight.lost(), path.flight.inflight()), (20, 0));
    assert_eq!((path.host.ctl.cwnd, path.host.ctl.ssthresh), (1, 10));
    assert_eq!(path.recovery.state(), CaState::Loss);
    let expected = [EventKind::Ssthresh, EventKind::Rto, EventKind::State];
    assert_eq!(path.kinds(), expected);
    assert!(path.recovery.take_cwr() && !path.recovery.take_cwr());
}

#[test]
fn the_delivery_of_an_original_shows_that_a_timeout_was_spurious() {
    // F-RTO with SACK, RFC 5682 section 3.
    let mut path = Path::new();
    path.host.now_ns = 400 * MS;
    let (host, flight) = (&mut path.host, &mut path.flight);
    path.recovery.timed_out(host, flight);
    path.flight.next_to_retransmit();
    // Packet 5 was sent once. The echo is as new as the timeout, so that Eifel does not decide.
    let decision = path.ack(400 * MS, 0, &[(5, 6)]).unwrap();
    assert_eq!(decision.resend, Resend::Nothing);
    assert_eq!(
        path.host.recorded,
        [SenderEvent::Timeout, SenderEvent::Undo]
    );
    assert_eq!(path.flight.lost(), 0);
}

#[test]
fn an_echo_of_congestion_begins_one_reduction_in_a_round_trip() {
    // RFC 3168 section 6.1.2.
    let mut path = Path::new();
    for next in [1, 2, 3] {
        let echo = Ack {
            next,
            echo_ns: 100 * MS,
            marks: 1,
            ..Ack::default()
        };
        path.take(echo);
    }
    assert_eq!(path.recovery.state(), CaState::Cwr);
    assert_eq!(path.host.recorded, [SenderEvent::Cwr]);
    path.send(3, 140 * MS);
    path.ack(140 * MS, 21, &[]);
    assert_eq!(
        (path.recovery.state(), path.host.ctl.cwnd),
        (CaState::Open, 10)
    );
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    // RFC 8985 section 7.4.2.
    let mut path = Path::new();
    path.ack(100 * MS, 19, &[]);
    path.recovery.probe_sent(20, Some(false));
    path.send(1, 200 * MS);
    let ack = Ack {
        next: 21,
        echo_ns: 200 * MS,
        ..Ack::default()
    };
    let mut info = AckInfo::default();
    let (host, flight) = (&mut path.host, &path.flight);
    path.recovery.answer_probe(host, flight, &ack, &mut info);
    assert_eq!(path.kinds()[0], EventKind::TlpRecovery);
    assert_eq!(path.host.ctl.cwnd, 10);
    assert_eq!(path.recovery.state(), CaState::Open);
}
