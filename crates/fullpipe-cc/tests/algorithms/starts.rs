//! The slow starts of `cc/start.h` against the rules of their texts, in CUBIC and in Reno.

use std::collections::VecDeque;

use crate::calls::{Caller, MSS};
use fullpipe_cc::{CaState, EventKind, INFINITE};
use proptest::prelude::*;

const HYSTARTPP: (&str, u32) = ("start", 1);
const SEARCH: (&str, u32) = ("start", 2);
const RESUME: (&str, u32) = ("start", 3);
const RAPID: (&str, u32) = ("start", 4);

fn paced(name: &str, cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    Caller::prepared(name, cwnd, changes, |conn| conn.is_paced = 1)
}

/// One whose host does not pace, with the initial window sent.
fn begun(name: &str, cwnd: u32, changes: &[(&str, u32)]) -> Caller {
    let mut flow = Caller::with(name, cwnd, changes);
    flow.conn.snd_nxt = cwnd * MSS;
    flow
}

/// One ACK of `packets`, with its RTT sample. `ends_round`: of all that was sent. Returns how much the
/// window grew.
fn ack(flow: &mut Caller, packets: u32, rtt_us: u32, ends_round: bool) -> u32 {
    let before = flow.ctl.cwnd;
    flow.conn.delivered += packets;
    if ends_round {
        flow.conn.snd_una = flow.conn.snd_nxt;
        flow.conn.snd_nxt = flow.conn.snd_una.wrapping_add(flow.ctl.cwnd * MSS);
    }
    flow.event(EventKind::Rtt, rtt_us, packets);
    let (una, nxt) = (flow.conn.snd_una, flow.conn.snd_nxt);
    flow.ack(packets);
    (flow.conn.snd_una, flow.conn.snd_nxt) = (una, nxt);
    flow.ctl.cwnd.saturating_sub(before)
}

/// A round of so many ACKs of four packets; returns how much the window grew for the last one.
fn round(flow: &mut Caller, acks: u32, rtt_us: u32) -> u32 {
    let mut growth = 0;
    for index in 1..=acks {
        growth = ack(flow, 4, rtt_us, index == acks);
    }
    growth
}

#[test]
fn hystartpp_slows_down_where_a_rounds_least_rtt_rose_by_an_eighth_within_4_and_16_ms() {
    // RFC 9406 section 4.2: RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)).
    for name in ["cubic", "reno"] {
        for (rtt_us, rise_us) in [(8_000, 4_000), (80_000, 10_000), (400_000, 16_000)] {
            for (rise_us, growth) in [(rise_us - 1, 4), (rise_us, 1)] {
                let mut flow = begun(name, 10, &[HYSTARTPP]);
                round(&mut flow, 10, rtt_us);
                round(&mut flow, 10, rtt_us);
                // CSS grows by a quarter.
                assert_eq!(round(&mut flow, 10, rtt_us + rise_us), growth, "{rtt_us}");
                assert_eq!(flow.ctl.ssthresh, INFINITE);
            }
        }
    }
}

#[test]
fn hystartpp_needs_eight_samples_of_a_round() {
    for (samples, growth) in [(7, 4), (8, 1)] {
        let mut flow = begun("reno", 10, &[HYSTARTPP]);
        round(&mut flow, 10, 50_000);
        assert_eq!(round(&mut flow, samples, 90_000), growth);
    }
}

#[test]
fn hystartpp_enters_avoidance_after_five_rounds_of_which_the_one_that_began_it_is_the_first() {
    for (changes, rounds) in [
        (&[HYSTARTPP][..], 5),
        (&[HYSTARTPP, ("css_rounds", 2)][..], 2),
    ] {
        let mut flow = begun("cubic", 10, changes);
        round(&mut flow, 10, 50_000);
        for _ in 0..rounds - 1 {
            round(&mut flow, 10, 60_000);
            assert_eq!(flow.ctl.ssthresh, INFINITE);
        }
        let before = flow.ctl.cwnd;
        round(&mut flow, 10, 60_000);
        assert!(flow.ctl.ssthresh < INFINITE && flow.ctl.ssthresh >= before);
    }
}

#[test]
fn hystartpp_returns_to_slow_start_where_the_rtt_falls_below_that_which_ended_it() {
    let mut flow = begun("cubic", 10, &[HYSTARTPP]);
    round(&mut flow, 10, 50_000);
    round(&mut flow, 10, 60_000);
    assert_eq!(round(&mut flow, 10, 60_000), 1);
    assert_eq!(round(&mut flow, 10, 59_999), 4);
    for _ in 0..10 {
        assert_eq!(round(&mut flow, 10, 59_999), 4);
    }
    assert_eq!(flow.ctl.ssthresh, INFINITE);
}

#[test]
fn hystartpp_begins_each_conservative_phase_without_credit() {
    // RFC 9406 section 4.2: a packet of growth for each four acknowledged since CSS began.
    let mut flow = begun("cubic", 10, &[HYSTARTPP]);
    round(&mut flow, 10, 50_000);
    for _ in 0..9 {
        ack(&mut flow, 4, 60_000, false);
    }
    assert_eq!(ack(&mut flow, 3, 60_000, true), 0);
    // The next round's RTT is lower, so slow start is back; then CSS begins again.
    round(&mut flow, 10, 50_000);
    round(&mut flow, 7, 60_000);
    assert_eq!(ack(&mut flow, 3, 60_000, false), 3);
    round(&mut flow, 10, 50_000);
    for _ in 0..7 {
        ack(&mut flow, 4, 60_000, false);
    }
    assert_eq!(
        ack(&mut flow, 3, 60_000, false),
        0,
        "the eighth sample begins CSS"
    );
    assert_eq!(ack(&mut flow, 1, 60_000, false), 1);
}

#[test]
fn hystartpp_counts_the_rounds_of_each_conservative_phase_anew() {
    let mut flow = begun("cubic", 10, &[HYSTARTPP, ("css_rounds", 2)]);
    for rtt_us in [50_000, 60_000, 50_000, 60_000] {
        round(&mut flow, 10, rtt_us);
        assert_eq!(flow.ctl.ssthresh, INFINITE);
    }
    round(&mut flow, 10, 60_000);
    assert!(flow.ctl.ssthresh < INFINITE);
}

#[test]
fn rapid_starts_least_rtt_falls_with_lower_samples() {
    let mut flow = Caller::with("cubic", 10, &[RAPID]);
    for (rtt_us, growth) in [(100_000, 8), (20_000, 8), (30_000, 4)] {
        flow.wait_us(200_000);
        assert_eq!(round(&mut flow, 10, rtt_us), growth, "{rtt_us}");
    }
}

#[test]
fn hystartpp_counts_at_most_eight_packets_of_an_ack_unless_the_host_paces() {
    // RFC 9406 section 4.3: L = 8, or infinity for paced senders.
    let mut flow = begun("reno", 10, &[HYSTARTPP]);
    assert_eq!(ack(&mut flow, 30, 50_000, false), 8);
    let mut flow = paced("reno", 10, &[HYSTARTPP]);
    assert_eq!(ack(&mut flow, 30, 50_000, false), 30);
}

#[test]
fn only_the_first_slow_start_is_of_choice() {
    for (start, growth) in [(HYSTARTPP, 8), (RAPID, 60)] {
        let mut flow = Caller::with("reno", 100, &[start]);
        assert_eq!(ack(&mut flow, 30, 50_000, false), growth);
        flow.event(EventKind::Ssthresh, 0, 0);
        flow.event(EventKind::State, CaState::Loss as u32, 0);
        flow.ctl.cwnd = 10;
        flow.ctl.ssthresh = 1000;
        assert_eq!(ack(&mut flow, 30, 50_000, false), 30);
    }
}

/// A link of `rate` packets/s with `rtt_us` of propagation and no end of its queue: ACKs are
/// clocked by it, packets are sent as the window allows.
struct Link {
    flow: Caller,
    rate: f64,
    rtt_us: f64,
    free_us: f64,
    /// When each packet was sent and is acknowledged.
    flight: VecDeque<(f64, f64)>,
    now_us: f64,
}

impl Link {
    fn new(name: &str, rate: f64, rtt_us: f64, changes: &[(&str, u32)]) -> Self {
        let mut link = Self {
            flow: paced(name, 10, changes),
            rate,
            rtt_us,
            free_us: 0.0,
            flight: VecDeque::new(),
            now_us: 0.0,
        };
        link.send();
        link
    }

    fn send(&mut self) {
        while self.flight.len() < self.flow.ctl.cwnd as usize {
            self.free_us = self.free_us.max(self.now_us) + 1e6 / self.rate;
            self.flight
                .push_back((self.now_us, self.free_us + self.rtt_us));
            self.flow.conn.snd_nxt = self.flow.conn.snd_nxt.wrapping_add(MSS);
        }
        self.flow.conn.packets_out = self.flight.len() as u32;
    }

    fn step(&mut self) {
        let (sent_us, acked_us) = self.flight.pop_front().expect("a packet in flight");
        self.now_us = acked_us;
        let conn = &mut self.flow.conn;
        conn.now_us = 1_000_000 + acked_us as u64;
        conn.snd_una = conn.snd_una.wrapping_add(MSS);
        conn.delivered += 1;
        conn.packets_out = self.flight.len() as u32;
        self.flow
            .event(EventKind::Rtt, (acked_us - sent_us) as u32, 1);
        let (una, nxt) = (self.flow.conn.snd_una, self.flow.conn.snd_nxt);
        self.flow.ack(1);
        (self.flow.conn.snd_una, self.flow.conn.snd_nxt) = (una, nxt);
        self.send();
    }

    fn bdp(&self) -> f64 {
        self.rate * self.rtt_us / 1e6
    }

    /// The window at which slow start ends, over the link's capacity; the queue then holds the
    /// rest.
    fn exit(&mut self) -> f64 {
        while self.flow.ctl.cwnd < self.flow.ctl.ssthresh {
            self.step();
            assert!(self.flow.ctl.cwnd < 1_000_000, "slow start has no end");
        }
        f64::from(self.flow.ctl.cwnd) / self.bdp()
    }
}

/// The window in BDP at which deliveries over 3.5 RTTs fall short by `threshold` of what was sent
/// over the 3.5 RTTs that ended an RTT earlier, on a link whose queue has no end: sending doubles
/// every RTT up to twice the link's rate, at which it stays while ACKs come at the link's rate.
/// Time is in base RTTs from when ACKs first do, volumes are in BDP.
fn search_exit(threshold: f64) -> f64 {
    let ln2 = std::f64::consts::LN_2;
    let sent = |t: f64| {
        if t < 0.0 {
            2.0 * t.exp2() / ln2
        } else {
            2.0 / ln2 + 2.0 * t
        }
    };
    // The queue that a packet meets which is sent at `t`, from when sending exceeds the rate.
    let queue = |t: f64| sent(t) - sent(-1.0) - (t + 1.0);
    let mut t = 0.0;
    loop {
        t += 0.001;
        let acked = t + 1.0 + queue(t);
        let over = sent(t) - sent(t - 3.5);
        if acked > 3.5 && over - 3.5 >= threshold * over {
            return sent(acked) - sent(t);
        }
    }
}

#[test]
fn search_ends_slow_start_where_its_formula_does_on_a_fluid_link() {
    for threshold in [0.2, 0.26, 0.4] {
        let expected = search_exit(threshold);
        let stored = ("search_threshold", (threshold * 1024.0) as u32);
        for (rate, rtt_us) in [
            (10_000.0, 100_000.0),
            (50_000.0, 20_000.0),
            (4_000.0, 600_000.0),
        ] {
            let ratio = Link::new("cubic", rate, rtt_us, &[SEARCH, stored]).exit();
            // It looks at the ends of bins, 0.35 RTTs long, and rounds are bursts, which move what
            // is sent by up to half an RTT.
            assert!((ratio - expected).abs() < 0.35 + 0.5, "{expected}: {ratio}");
        }
    }
}

#[test]
fn search_does_not_look_before_its_bins_hold_a_window_and_the_rtt_before_it() {
    // W + 1 bins and those of the RTT, of 0.35 initial RTTs each: 4.9 RTTs at least.
    let mut link = Link::new("reno", 1_000.0, 50_000.0, &[SEARCH]);
    link.exit();
    assert!(link.now_us > 4.9 * 50_000.0, "{} us", link.now_us);
}

#[test]
fn search_with_a_larger_threshold_waits_longer_and_never_ends_at_one_that_cannot_be_met() {
    let exit = |threshold| {
        let changes = [SEARCH, ("search_threshold", threshold)];
        Link::new("reno", 2_000.0, 50_000.0, &changes).exit()
    };
    assert!(exit(150) < exit(266) && exit(266) < exit(360));
    // Draft section 4: norm_diff goes to 0.5 at most while the window doubles.
    let mut link = Link::new(
        "reno",
        2_000.0,
        50_000.0,
        &[SEARCH, ("search_threshold", 1000)],
    );
    for _ in 0..20_000 {
        link.step();
    }
    assert_eq!(link.flow.ctl.ssthresh, INFINITE);
}

#[test]
fn search_begins_anew_after_more_than_a_window_without_an_ack() {
    let mut link = Link::new("reno", 2_000.0, 50_000.0, &[SEARCH]);
    for _ in 0..60 {
        link.step();
    }
    // An idle second: the deliveries that are missing are the application's.
    link.now_us += 1e6;
    link.free_us = link.now_us;
    for packet in &mut link.flight {
        packet.1 += 1e6;
    }
    let ratio = link.exit();
    assert!(ratio > 1.0, "{ratio}");
}

#[test]
fn rapid_start_triples_while_no_queue_builds_and_doubles_with_one() {
    // Draft section 3.1: rtt_floor <= min(min_rtt + 4 ms, 1.1 min_rtt).
    for (rtt_us, rise_us) in [(20_000, 2_000), (100_000, 4_000)] {
        for (rise_us, growth) in [(0, 8), (rise_us, 8), (rise_us + 1, 4)] {
            let mut flow = Caller::with("cubic", 10, &[RAPID]);
            round(&mut flow, 10, rtt_us);
            flow.wait_us(u64::from(rtt_us));
            assert_eq!(round(&mut flow, 10, rtt_us + rise_us), growth);
            // CUBIC's own HyStart does not look.
            assert_eq!(flow.ctl.ssthresh, INFINITE);
        }
    }
}

/// A flow in rapid start with a full window in flight.
fn rapid(name: &str, cwnd: u32, beta: u32) -> Caller {
    let mut flow = Caller::with(name, cwnd, &[RAPID, ("beta", beta)]);
    flow.conn.packets_out = cwnd;
    ack(&mut flow, 0, 50_000, false);
    flow
}

#[test]
fn rapid_start_ends_its_recovery_at_beta_of_what_the_path_held_where_two_thirds_were_lost() {
    // Draft section 3.3.1, the property that its factors are derived from.
    for (name, beta) in [("reno", 512), ("cubic", 717)] {
        let mut flow = rapid(name, 3000, beta);
        flow.event(EventKind::Ssthresh, 0, 0);
        for _ in 0..1000 {
            flow.conn.lost += 2;
            ack(&mut flow, 1, 50_000, false);
        }
        let expected = 1000.0 * f64::from(beta) / 1024.0;
        let found = f64::from(flow.ctl.ssthresh);
        assert!((found / expected - 1.0).abs() < 0.02, "{found}, {expected}");
        flow.event(EventKind::CompleteCwr, 0, 0);
        let settled = flow.ctl.ssthresh;
        ack(&mut flow, 10, 50_000, false);
        assert_eq!(flow.ctl.ssthresh, settled);
    }
}

#[test]
fn what_was_lost_before_its_recovery_is_none_of_rapid_starts() {
    // Draft section 3.3: with nothing delivered or lost yet, silence = 5/6 of the window are left.
    let mut flow = Caller::with("reno", 3600, &[RAPID]);
    flow.conn.packets_out = 3600;
    flow.conn.lost = 1000;
    ack(&mut flow, 0, 50_000, false);
    flow.event(EventKind::Ssthresh, 0, 0);
    assert!(
        flow.ctl.ssthresh.abs_diff(3000) <= 10,
        "{}",
        flow.ctl.ssthresh
    );
}

#[test]
fn what_rapid_start_sends_again_counts_as_lost_and_not_as_delivered_too() {
    // Draft section 3.3: 5/6 of 3000 packets, less 1/3 of 2500 that arrive and 5/6 of 500 that do not.
    let mut flow = rapid("reno", 3000, 512);
    flow.event(EventKind::Ssthresh, 0, 0);
    flow.conn.lost += 500;
    ack(&mut flow, 2500, 50_000, false);
    let (settled, expected) = (flow.ctl.ssthresh, 1250);
    assert!(settled.abs_diff(expected) <= 10, "{settled}");
    // The retransmissions arrive.
    ack(&mut flow, 500, 50_000, false);
    assert_eq!(flow.ctl.ssthresh, settled);
}

proptest! {
    #[test]
    fn rapid_starts_recovery_follows_the_drafts_factors(
        cwnd in 30u32..100_000, lost in 0.0f64..1.0, delivered in 0.0f64..1.0,
    ) {
        // silence = loss = beta + K (1 - beta), ack = K (1 - beta), K = 2/3; beta = 0.5.
        let (silence, of_ack) = (5.0 / 6.0, 1.0 / 3.0);
        let lost = (lost * f64::from(cwnd)) as u32;
        let delivered = (delivered * f64::from(cwnd - lost)) as u32;
        let mut flow = rapid("reno", cwnd, 512);
        flow.event(EventKind::Ssthresh, 0, 0);
        flow.conn.lost += lost;
        ack(&mut flow, delivered, 50_000, false);
        let window = f64::from(cwnd);
        let cut = of_ack * f64::from(delivered) + silence * f64::from(lost);
        let least = window * 0.5 / 3.0;
        let expected = (window * silence - cut).max(least);
        let found = f64::from(flow.ctl.ssthresh);
        prop_assert!((found - expected).abs() < 2.0 + 0.005 * window, "{found}, {expected}");
    }
}

/// A connection that has acknowledged its first ten packets in `rtt_us`.
fn resumed(is_paced: bool, rtt_us: u32, changes: &[(&str, u32)]) -> Caller {
    let mut all = vec![RESUME, ("saved_cwnd", 400), ("saved_rtt_us", 100_000)];
    all.extend_from_slice(changes);
    let mut flow = Caller::prepared("reno", 10, &all, |conn| conn.is_paced = is_paced.into());
    (flow.conn.snd_una, flow.conn.snd_nxt) = (10 * MSS, 10 * MSS);
    ack(&mut flow, 10, rtt_us, false);
    flow
}

#[test]
fn careful_resume_jumps_to_half_of_the_saved_window_when_the_initial_data_are_acknowledged() {
    let mut flow = Caller::prepared(
        "reno",
        10,
        &[RESUME, ("saved_cwnd", 400), ("saved_rtt_us", 100_000)],
        |conn| conn.is_paced = 1,
    );
    flow.conn.snd_nxt = 10 * MSS;
    flow.conn.snd_una = 9 * MSS;
    ack(&mut flow, 9, 100_000, false);
    assert_eq!(flow.ctl.cwnd, 19);
    flow.conn.snd_una = 10 * MSS;
    ack(&mut flow, 1, 100_000, false);
    assert_eq!(flow.ctl.cwnd, 200);
    assert_eq!(resumed(true, 100_000, &[("max_jump", 50)]).ctl.cwnd, 50);
}

#[test]
fn careful_resume_does_not_jump_on_another_path_or_without_pacing() {
    // Draft sections 3.2 and 4.2.1: at most half or more than ten times the saved RTT.
    for (is_paced, rtt_us, jumps) in [
        (true, 50_001, true),
        (true, 50_000, false),
        (true, 1_000_000, true),
        (true, 1_000_001, false),
        (false, 100_000, false),
    ] {
        let cwnd = resumed(is_paced, rtt_us, &[]).ctl.cwnd;
        assert_eq!(cwnd, if jumps { 200 } else { 20 }, "{is_paced}, {rtt_us}");
    }
    assert_eq!(resumed(true, 100_000, &[("saved_cwnd", 0)]).ctl.cwnd, 20);
}

#[test]
fn careful_resume_waits_for_a_sender_that_has_more_to_send() {
    // Draft section 4.2: a rate-limited sender does not enter the Unvalidated Phase.
    let changes = [RESUME, ("saved_cwnd", 400), ("saved_rtt_us", 100_000)];
    let mut flow = paced("reno", 10, &changes);
    (flow.conn.snd_una, flow.conn.snd_nxt) = (10 * MSS, 10 * MSS);
    for (is_cwnd_limited, cwnd, ssthresh) in [(0, 10, INFINITE), (1, 200, 201)] {
        flow.conn.is_cwnd_limited = is_cwnd_limited;
        ack(&mut flow, 1, 100_000, false);
        assert_eq!((flow.ctl.cwnd, flow.ctl.ssthresh), (cwnd, ssthresh));
    }
}

#[test]
fn careful_resume_keeps_of_a_jump_only_what_the_application_used() {
    // Draft section 3.3, rate_limited: CWND is reset to PipeSize, not below IW.
    let mut flow = resumed(true, 100_000, &[]);
    flow.conn.packets_out = 8;
    flow.wait_us(100_001);
    flow.conn.snd_nxt = flow.conn.snd_una.wrapping_add(8 * MSS);
    ack(&mut flow, 0, 100_000, false);
    assert_eq!((flow.ctl.cwnd, flow.ctl.ssthresh), (10, INFINITE));
}

#[test]
fn careful_resume_validates_nothing_of_a_jump_that_has_no_more_in_flight_than_was_acknowledged() {
    // Draft section 3.3, rate_limited again: 60 packets are acknowledged in the RTT of the jump, 60 or
    // fewer are in flight. CWND is PipeSize, and the Normal Phase begins: a later loss halves CWND,
    // not PipeSize.
    for (flight, cwnd, ssthresh) in [(40, 120, 60), (60, 120, 60), (61, 121, 30)] {
        let mut flow = resumed(true, 100_000, &[]);
        flow.conn.packets_out = flight;
        flow.wait_us(100_001);
        flow.conn.snd_nxt = flow.conn.snd_una.wrapping_add(flight * MSS);
        // Slow start adds what is acknowledged.
        ack(&mut flow, 60, 100_000, false);
        assert_eq!(flow.ctl.cwnd, cwnd, "{flight} in flight");
        flow.event(EventKind::Ssthresh, 0, 0);
        assert_eq!(flow.ctl.ssthresh, ssthresh, "{flight} in flight");
    }
}

/// One that has sent the whole jump and had its first packets acknowledged.
fn validating() -> Caller {
    let mut flow = resumed(true, 100_000, &[]);
    flow.conn.packets_out = 190;
    flow.conn.snd_nxt = flow.conn.snd_una.wrapping_add(190 * MSS);
    flow.conn.snd_una = flow.conn.snd_una.wrapping_add(10 * MSS);
    // CWND becomes the flight, and grows as in slow start by what is acknowledged.
    ack(&mut flow, 10, 100_000, false);
    assert_eq!((flow.ctl.cwnd, flow.ctl.ssthresh), (200, INFINITE));
    flow
}

#[test]
fn careful_resume_retreats_to_half_of_what_was_delivered_when_a_jump_meets_loss() {
    let mut flow = validating();
    ack(&mut flow, 50, 100_000, false);
    flow.event(EventKind::Ssthresh, 0, 0);
    // PipeSize: nothing in flight before the jump, 60 delivered since.
    assert_eq!(flow.ctl.ssthresh, 30);
    flow.ctl.cwnd = 30;
    ack(&mut flow, 40, 100_000, false);
    assert_eq!(flow.ctl.ssthresh, 30);
    flow.event(EventKind::CompleteCwr, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 50);
    // The retreat is over: what comes later is Reno's.
    ack(&mut flow, 40, 100_000, false);
    flow.event(EventKind::CompleteCwr, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 50);
}

#[test]
fn a_jump_that_was_delivered_leaves_a_usual_slow_start() {
    let mut flow = validating();
    assert_eq!(ack(&mut flow, 180, 100_000, true), 180);
    flow.event(EventKind::Ssthresh, 0, 0);
    assert_eq!(flow.ctl.ssthresh, 190);
}
