//! What holds around an algorithm's calls, by hand: the contract's defaults (cc/cc.h, cc/defaults.h) and
//! the recovery that a host runs for it (RFC 6937 with its slow-start bound, Linux's
//! tcp_cwnd_reduction()). The algorithm is one that does what the test wishes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use fullpipe_cc::{flags, register, CaState, DynAlgorithm, EventKind, Info, INFINITE};
use fullpipe_cc::{Ack, Conn, Controller, Ctl, Event};

type Wish = Arc<Mutex<fn(&mut Ctl)>>;

struct Willing(Wish);

impl Willing {
    fn act(&self, ctl: &mut Ctl) {
        (self.0.lock().unwrap())(ctl);
    }
}

impl DynAlgorithm for Willing {
    fn init(&mut self, _conn: &Conn, ctl: &mut Ctl) {
        self.act(ctl);
    }

    fn on_ack(&mut self, _conn: &Conn, _ack: &Ack, ctl: &mut Ctl) {
        self.act(ctl);
    }

    fn on_event(&mut self, _conn: &Conn, _event: &Event, ctl: &mut Ctl) {
        self.act(ctl);
    }

    fn info(&self, _info: &mut Info) {}
}

struct Host {
    cc: Controller,
    conn: Conn,
    ctl: Ctl,
    wish: Wish,
}

/// A connection of 1000-byte packets and 10 ms with a window of 100 packets.
fn host(wants: u32) -> Host {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("willing-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let wish: Wish = Arc::new(Mutex::new(|_| {}));
    let given = Arc::clone(&wish);
    let make = move |_: &[u32]| Box::new(Willing(Arc::clone(&given))) as Box<dyn DynAlgorithm>;
    let algorithm = register(&name, "", wants, Vec::new(), Vec::new(), Box::new(make));
    let mut host = Host {
        cc: Controller::new(algorithm, &[]).unwrap(),
        conn: Conn {
            now_us: 1_000,
            mss_bytes: 1_000,
            srtt_us: 10_000,
            pacing_rate_cap_bytes_per_s: u64::MAX,
            ..Conn::default()
        },
        ctl: Ctl {
            cwnd: 100,
            ssthresh: INFINITE,
            ..Ctl::default()
        },
        wish,
    };
    host.cc.init(&host.conn, &mut host.ctl);
    host
}

impl Host {
    fn wish(&mut self, wish: fn(&mut Ctl)) {
        *self.wish.lock().unwrap() = wish;
    }

    /// One call in which the algorithm does this.
    fn call(&mut self, wish: fn(&mut Ctl)) -> Ctl {
        self.wish(wish);
        self.ack(Ack::default());
        self.ctl
    }

    fn ack(&mut self, mut ack: Ack) {
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    fn event(&mut self, kind: EventKind, value: u32) {
        let event = Event {
            kind: kind as u32,
            value,
            ..Event::default()
        };
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }
}

#[test]
fn a_rate_that_is_not_set_follows_the_window_as_linux_paces() {
    // tcp_update_pacing_rate(): max(cwnd, packets_out) * mss / srtt, 200 % where cwnd < ssthresh / 2,
    // else 120 %.
    for (cwnd, ssthresh, packets_out, srtt_us, rate) in [
        (100, INFINITE, 0, 10_000, 20_000_000),
        (100, 202, 0, 10_000, 20_000_000),
        (100, 201, 0, 10_000, 12_000_000),
        (100, 200, 150, 10_000, 18_000_000),
        (100, 50, 99, 30_000, 4_000_000),
        (1, 1, 0, 0, 1_200_000_000),
    ] {
        let mut host = host(flags::OWNS_CWND);
        (host.ctl.cwnd, host.ctl.ssthresh) = (cwnd, ssthresh);
        (host.conn.packets_out, host.conn.srtt_us) = (packets_out, srtt_us);
        assert_eq!(
            host.call(|_| {}).pacing_rate_bytes_per_s,
            rate,
            "{cwnd} {ssthresh}"
        );
    }
}

#[test]
fn a_rate_that_was_set_stays_until_it_is_taken_back() {
    let mut host = host(flags::OWNS_CWND);
    host.conn.pacing_rate_cap_bytes_per_s = 15_000_000;
    assert_eq!(
        host.call(|_| {}).pacing_rate_bytes_per_s,
        15_000_000,
        "the cap"
    );
    assert_eq!(
        host.call(|ctl| ctl.pacing_rate_bytes_per_s = 777)
            .pacing_rate_bytes_per_s,
        777
    );
    assert_eq!(host.call(|ctl| ctl.cwnd = 50).pacing_rate_bytes_per_s, 777);
    let follows = host.call(|ctl| ctl.pacing_rate_bytes_per_s = 0);
    assert_eq!(follows.pacing_rate_bytes_per_s, 10_000_000);
    assert_eq!(
        host.call(|ctl| ctl.cwnd = 40).pacing_rate_bytes_per_s,
        8_000_000
    );
    let capped = host.call(|ctl| ctl.pacing_rate_bytes_per_s = 16_000_000);
    assert_eq!(capped.pacing_rate_bytes_per_s, 15_000_000);
}

#[test]
fn without_its_own_window_an_algorithm_has_no_say_in_the_rate() {
    let mut host = host(0);
    host.ctl.pacing_rate_bytes_per_s = 555;
    assert_eq!(
        host.call(|ctl| ctl.pacing_rate_bytes_per_s = 777)
            .pacing_rate_bytes_per_s,
        555
    );
    assert_eq!(
        host.call(|ctl| ctl.pacing_rate_bytes_per_s = 0)
            .pacing_rate_bytes_per_s,
        555
    );
}

#[test]
fn decisions_have_bounds_and_bursts_a_default_at_each_call() {
    let mut host = host(flags::OWNS_CWND);
    assert_eq!((host.ctl.tso_segs, host.ctl.sndbuf_factor), (2, 2));
    assert_eq!(host.call(|ctl| (ctl.cwnd, ctl.ssthresh) = (0, 0)).cwnd, 1);
    assert_eq!(host.ctl.ssthresh, 1);
    assert_eq!(host.call(|ctl| ctl.cwnd = (1 << 24) + 1).cwnd, 1 << 24);
    assert_eq!(host.call(|ctl| ctl.cwnd = 1 << 24).cwnd, 1 << 24);
    assert_eq!(
        host.call(|ctl| (ctl.tso_segs, ctl.sndbuf_factor) = (7, 3))
            .tso_segs,
        7
    );
    host.ctl.sndbuf_factor = 9;
    let later = host.call(|_| {});
    assert_eq!(
        (later.tso_segs, later.sndbuf_factor),
        (2, 3),
        "the factor stays, a burst does not"
    );
    assert_eq!(
        host.call(|ctl| (ctl.tso_segs, ctl.sndbuf_factor) = (0, 0))
            .tso_segs,
        2
    );
    assert_eq!(host.ctl.sndbuf_factor, 2);
}

#[test]
fn a_timer_is_kept_until_it_comes_and_is_never_in_the_past() {
    let mut host = host(flags::OWNS_CWND | flags::WANTS_TIMER);
    assert_eq!(host.cc.timer_us(), 0);
    for (wish, due_us) in [
        ((|ctl| ctl.timer_us = 1_001) as fn(&mut Ctl), 1_001),
        (|_| {}, 1_001),
        (|ctl| ctl.timer_us = 1_000, 1_001),
        (|ctl| ctl.timer_us = 5, 1_001),
        (|ctl| ctl.timer_us = 2_000, 2_000),
    ] {
        host.call(wish);
        host.ctl.timer_us = 0; // a host's copy counts for nothing
        assert_eq!(host.cc.timer_us(), due_us);
    }
    host.wish(|_| {});
    host.event(EventKind::TxStart, 0);
    assert_eq!(host.cc.timer_us(), 2_000, "another event");
    host.event(EventKind::Timer, 0);
    assert_eq!(host.cc.timer_us(), 0);
    host.call(|ctl| ctl.timer_us = 3_000);
    host.call(|ctl| ctl.timer_us = 0);
    assert_eq!(host.cc.timer_us(), 0);
}

/// In recovery from a window of 100 to 70, of which 100 packets are in flight.
fn recovering(state: CaState) -> Host {
    let mut host = host(flags::OWNS_CWND | flags::HOST_RECOVERS);
    (host.conn.inflight, host.conn.delivered, host.conn.lost) = (100, 1_000, 10);
    host.wish(|ctl| ctl.ssthresh = 70);
    host.event(EventKind::Ssthresh, 0);
    host.wish(|ctl| ctl.cwnd += 5);
    host.event(EventKind::State, state as u32);
    host.ctl.cwnd = 100;
    host
}

/// An ACK that delivers and loses packets, behind which so many are in flight.
fn recovery_ack(host: &mut Host, delivered: u32, lost: u32, inflight: u32, advances: bool) -> u32 {
    host.conn.delivered += delivered;
    host.conn.lost += lost;
    host.conn.inflight = inflight;
    host.conn.snd_una += u32::from(advances);
    host.ack(Ack {
        acked_sacked: delivered,
        losses: lost,
        ..Ack::default()
    });
    host.ctl.cwnd
}

#[test]
fn above_the_threshold_recovery_sends_seven_packets_for_ten_delivered() {
    // RFC 6937: sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out, and the first
    // retransmission of an episode always.
    for state in [CaState::Cwr, CaState::Recovery] {
        let mut host = recovering(state);
        assert_eq!(
            recovery_ack(&mut host, 1, 1, 98, false),
            98 + 1,
            "ceil(0.7) less nothing sent"
        );
        // One was sent: 99 in flight, then two more delivered: ceil(2.1) - 1.
        assert_eq!(recovery_ack(&mut host, 2, 0, 97, false), 97 + 2);
        // Two more were sent and one delivered: ceil(2.8) - 3.
        assert_eq!(recovery_ack(&mut host, 1, 0, 98, false), 98);
        assert_eq!(
            recovery_ack(&mut host, 6, 0, 92, false),
            92 + 4,
            "ceil(7.0) - 3"
        );
        // Nothing was sent since: what is due stays due.
        assert_eq!(recovery_ack(&mut host, 10, 0, 82, false), 82 + 11);
        assert_eq!(
            recovery_ack(&mut host, 0, 0, 82, false),
            93,
            "no delivery, no change"
        );
    }
}

#[test]
fn the_first_retransmission_of_an_episode_is_sent_without_room() {
    // tcp_cwnd_reduction(): `sndcnt = max(sndcnt, (tp->prr_out ? 0 : 1))`. At its threshold a flow has
    // no room; 100 in flight less one delivered are 99 where nothing was sent.
    for (inflight, cwnd) in [(99, 100), (100, 100)] {
        let mut host = recovering(CaState::Recovery);
        host.ctl.ssthresh = inflight;
        assert_eq!(recovery_ack(&mut host, 1, 0, inflight, false), cwnd);
    }
}

#[test]
fn below_the_threshold_recovery_grows_as_slow_start_does_up_to_it() {
    // RFC 6937 PRR-SSRB: limit = MAX(prr_delivered - prr_out, DeliveredData), + 1 where SND.UNA
    // advances without new losses; sndcnt = MIN(ssthresh - pipe, limit).
    for (delivered, lost, inflight, advances, cwnd) in [
        (3, 0, 40, false, 43),
        (3, 0, 40, true, 44),
        (3, 1, 40, true, 43),
        // Nothing was sent for the four delivered in all.
        (3, 0, 37, false, 41),
        (10, 0, 65, true, 70),
        (10, 0, 70, true, 70),
        (10, 0, 69, false, 70),
    ] {
        let mut host = recovering(CaState::Recovery);
        // 59 are lost at once: 40 in flight, and one is sent for the first packet delivered.
        assert_eq!(recovery_ack(&mut host, 1, 59, 40, false), 41);
        let window = recovery_ack(&mut host, delivered, lost, inflight, advances);
        assert_eq!(window, cwnd, "{delivered} {lost} {inflight} {advances}");
    }
}

#[test]
fn what_the_algorithm_does_to_the_window_in_recovery_is_dropped() {
    let mut host = recovering(CaState::Recovery);
    host.wish(|ctl| ctl.cwnd = 9_999);
    host.ack(Ack::default());
    assert_eq!(host.ctl.cwnd, 100);
    for state in [CaState::Open, CaState::Disorder, CaState::Loss] {
        let mut host = recovering(state);
        host.wish(|ctl| ctl.cwnd = 123);
        host.ack(Ack::default());
        assert_eq!(host.ctl.cwnd, 123, "{state:?}");
    }
}

#[test]
fn at_its_end_the_window_is_the_threshold_unless_the_reduction_was_undone() {
    // tcp_end_cwnd_reduction().
    for (ends_in, undoes, ssthresh, cwnd) in [
        (CaState::Open, false, 70, 70),
        (CaState::Disorder, false, 70, 70),
        (CaState::Loss, false, 70, 88),
        (CaState::Cwr, false, 70, 88),
        (CaState::Open, true, 70, 88),
        (CaState::Open, false, INFINITE, 88),
    ] {
        let mut host = recovering(CaState::Recovery);
        host.wish(|_| {});
        if undoes {
            host.event(EventKind::Undo, 0);
        }
        (host.ctl.cwnd, host.ctl.ssthresh) = (88, ssthresh);
        host.event(EventKind::State, ends_in as u32);
        assert_eq!(host.ctl.cwnd, cwnd, "{ends_in:?} {undoes}");
        if ends_in == CaState::Open {
            (host.ctl.cwnd, host.ctl.ssthresh) = (66, 60);
            host.event(EventKind::State, CaState::Open as u32);
            assert_eq!(host.ctl.cwnd, 66, "only an episode ends");
        }
    }
    // A later episode is not undone by the undo of an earlier one.
    let mut host = recovering(CaState::Recovery);
    host.wish(|_| {});
    host.event(EventKind::Undo, 0);
    host.event(EventKind::State, CaState::Open as u32);
    host.event(EventKind::Ssthresh, 0);
    host.event(EventKind::State, CaState::Recovery as u32);
    (host.ctl.cwnd, host.ctl.ssthresh) = (88, 50);
    host.event(EventKind::State, CaState::Open as u32);
    assert_eq!(host.ctl.cwnd, 50);
    // What an earlier one delivered is none of a later one's.
    let mut host = recovering(CaState::Recovery);
    host.wish(|_| {});
    recovery_ack(&mut host, 50, 0, 60, false);
    host.event(EventKind::State, CaState::Open as u32);
    (host.ctl.cwnd, host.ctl.ssthresh, host.conn.inflight) = (100, 70, 100);
    host.event(EventKind::Ssthresh, 0);
    host.event(EventKind::State, CaState::Recovery as u32);
    assert_eq!(
        recovery_ack(&mut host, 2, 0, 98, false),
        98 + 2,
        "ceil(1.4)"
    );
}
