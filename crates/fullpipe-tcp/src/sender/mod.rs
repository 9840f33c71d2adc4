//! The sender. It owns the parts, each of which owns its state, and carries facts and decisions between them.
//!
//! `ack.rs` processes ACKs, `transmit.rs` sends, `expiry.rs` handles timers, `sendmsg.rs` writes. Names follow
//! struct tcp_sock.

mod ack;
mod ack_info;
mod config;
mod context;
mod control;
mod cwnd_use;
mod deliveries;
mod ecn;
mod expiry;
mod flight;
mod get_info;
mod info;
mod journal;
mod min_rtt;
mod nagle;
mod pacing;
mod peer;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod sendmsg;
mod short_packets;
mod small_queue;
mod stream;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod window_probe;
mod write_queue;

use fullpipe_cc::trace::CallLog;
use fullpipe_cc::{CaState, Controller, Ctl, Event, EventKind, INFINITE};
use fullpipe_plan::{CcFacts, Pacing as PacingKind};

use crate::handshake::Established;
use crate::packet::Data;

use self::context::Surroundings;
use self::control::{Control, Details};
use self::cwnd_use::CwndUse;
use self::deliveries::Deliveries;
use self::ecn::Ecn;
use self::flight::Flight;
use self::journal::Journal;
use self::nagle::Nagle;
use self::pacing::Pacing;
use self::peer::Peer;
use self::rate::RateState;
use self::recovery::{Recovery, Resend};
use self::rtt::Rtt;
use self::small_queue::SmallQueue;
use self::stream::Stream;
use self::timers::{Timers, NEVER_NS};
use self::write_queue::WriteQueue;

pub use self::config::SenderConfig;
pub use self::info::SenderInfo;
pub use self::journal::{SenderEvent, Totals};

/// One connection's sending end.
pub struct Sender {
    config: SenderConfig,
    control: Control,
    stream: Stream,
    queue: WriteQueue,
    peer: Peer,
    ecn: Ecn,
    flight: Flight,
    rate: RateState,
    rtt: Rtt,
    recovery: Recovery,
    cwnd_use: CwndUse,
    nagle: Nagle,
    pacing: Pacing,
    small_queue: SmallQueue,
    timers: Timers,
    journal: Journal,
    resend: Resend,
    now_ns: u64,
    /// How often the clock was read (tcp_mstamp_refresh()); wraps.
    readings: u8,
    is_established: bool,
}

impl Sender {
    /// A connection that is not established yet.
    pub fn new(config: SenderConfig, cc: Controller) -> Self {
        let control = Control::new(&config, cc);
        let is_fq = config.pacing == PacingKind::Fq;
        let rules = config.rules;
        Self {
            stream: Stream::new(&config),
            queue: WriteQueue::of(&config),
            peer: Peer::default(),
            ecn: Ecn::new(config.ecn, config.feedback, config.l4s),
            flight: Flight::new(),
            rate: RateState::default(),
            rtt: Rtt::default(),
            recovery: Recovery::new(),
            cwnd_use: CwndUse::new(rules, config.initial_cwnd),
            nagle: Nagle::new(config.nodelay),
            pacing: Pacing::new(&config, control.owns_cwnd()),
            small_queue: SmallQueue::new(is_fq, config.pacing_shift, rules),
            timers: Timers::default(),
            journal: Journal::default(),
            resend: Resend::default(),
            now_ns: 0,
            readings: 0,
            is_established: false,
            control,
            config,
        }
    }

    /// Traces every call of the congestion control; `name` is its name in the scenario.
    pub fn trace_calls(&mut self, log: &CallLog, name: &str) {
        self.control.trace(log, name);
    }

    /// The SYN timed out and is retransmitted (tcp_retransmit_timer()).
    pub fn syn_timed_out(&mut self) {
        self.journal.syn_timed_out();
    }

    /// The handshake is done.
    pub fn establish(&mut self, now_ns: u64, opened: &Established) {
        self.advance_clock(now_ns);
        self.is_established = true;
        self.pacing.established(now_ns);
        self.cwnd_use.restamp(now_ns);
        self.peer.established(opened);
        self.ecn.established(opened.ecn);
        self.recovery.established(self.ecn.announces_reductions());
        self.journal.established(opened);
        self.control.see_next_departure(now_ns);
        self.control
            .see_ecn(opened.ecn, opened.ecn && self.ecn.is_l4s());
        if opened.has_window_of_one {
            self.control.ctl_mut().cwnd = 1;
        }
        if self.stream.closes_by(self.control.cwnd()) {
            // Everything is sent before the application closes.
            self.stream.append_fin();
        }
        let (rtt_us, now_us) = (opened.rtt_ns / 1000, self.control.now_us());
        self.rtt.sample(rtt_us as i64, 0, 0);
        self.rtt.sample_min(rtt_us as u32, now_us);
        self.control.see_rtt(self.rtt.smoothed_us());
        self.rate.established(now_us);
        self.set_first_pacing_rate(opened);
        self.show();
        self.control.init();
        let ctl = self.control.ctl();
        self.queue.expand(ctl.cwnd, ctl.sndbuf_factor);
    }

    /// The application writes full packets (with `written_by_application`). While its socket is full it
    /// waits, and then writes all that has come up.
    pub fn write(&mut self, packets: u32) {
        self.wake();
        self.stream
            .write(u64::from(packets) * u64::from(self.config.mss_bytes));
    }

    /// The application writes bytes (with `written_by_application`).
    pub fn write_bytes(&mut self, bytes: u64) {
        self.wake();
        self.stream.write(bytes);
    }

    /// The application writes bytes and tries at once, even if its socket has said that it is full.
    pub fn write_regardless(&mut self, bytes: u64) {
        self.stream.write(bytes);
        self.stream.set_ready(true);
    }

    /// The application has something to write.
    fn wake(&mut self) {
        if !self.queue.is_blocking() {
            self.stream.set_ready(true);
        }
    }

    /// The application writes as much as TCP takes, or (false) nothing. What it has written is sent in
    /// either case.
    pub fn set_unlimited(&mut self, is_unlimited: bool) {
        if is_unlimited {
            self.stream.write_without_end();
        } else {
            self.stream.pause(self.queue.finish());
        }
    }

    /// Payload that the application has written.
    pub fn written_bytes(&self) -> u64 {
        self.stream.data_bytes()
    }

    /// Payload that is written and not sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.written_bytes() - self.next_byte()
    }

    /// Payload in packets before `number`.
    pub fn bytes_before(&self, number: u32) -> u64 {
        self.stream.bytes_before(number)
    }

    /// The application writes its last bytes, at least one, and closes.
    pub fn write_last(&mut self, bytes: u64) {
        self.write_bytes(bytes);
        let room = self.control.cwnd().saturating_sub(self.inflight());
        let fits = self.stream.written() - self.flight.next() <= room;
        self.stream.close();
        if fits {
            // Everything is sent before the application closes.
            self.stream.append_fin();
        }
    }

    /// Everything written so far was acknowledged.
    pub fn is_drained(&self) -> bool {
        self.flight.una() == self.stream.written()
    }

    /// The application stops writing and closes. What it has written is sent, with the FIN on its last
    /// packet.
    pub fn stop(&mut self) {
        let next = self.flight.next();
        if !self.stream.is_all_sent(next) {
            self.stream.stop(self.queue.finish(), next);
        }
    }

    /// Changes window and pacing from outside the congestion control. Call [`Self::transmit`] afterwards.
    pub fn amend(&mut self, change: impl FnOnce(&mut Ctl)) {
        self.show();
        self.control.amend(change);
    }

    /// The application is done writing and everything was acknowledged.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.stream.is_acked(self.flight.una())
    }

    /// Both FINs are acknowledged: the connection needs no further packet.
    pub fn is_closed(&self) -> bool {
        self.peer.has_closed() && self.stream.is_closed() && self.is_drained()
    }

    /// Bytes of the sequence space before packet `number`; the FIN counts as one.
    pub fn sequence_bytes(&self, number: u32) -> u64 {
        self.stream.sequence_bytes(number)
    }

    /// Where a packet begins in the sequence space; a window probe repeats the last byte's number.
    pub fn sequence_of(&self, data: &Data) -> u64 {
        match data.is_window_probe() {
            true => self.stream.sequence_bytes(data.number + 1) - 1,
            false => self.stream.sequence_bytes(data.number),
        }
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.journal.totals(self.flight.total_lost())
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> std::vec::Drain<'_, SenderEvent> {
        self.journal.take_events()
    }

    /// Whether there are events.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.journal.has_events()
    }

    /// Congestion window in packets.
    pub fn cwnd(&self) -> u32 {
        self.control.cwnd()
    }

    /// Slow-start threshold, if set.
    pub fn ssthresh(&self) -> Option<u32> {
        let ssthresh = self.control.ctl().ssthresh;
        (ssthresh < INFINITE).then_some(ssthresh)
    }

    /// Pacing rate in bytes/s, if the connection is paced.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacing.is_paced().then_some(self.control.pacing_rate())
    }

    /// Smoothed RTT in us; 0 before the first sample.
    pub fn srtt_us(&self) -> u32 {
        self.rtt.smoothed_us()
    }

    /// The connection's least RTT in us.
    pub fn min_rtt_us(&self) -> Option<u32> {
        self.rtt.least_us()
    }

    /// Latest delivery-rate sample in bit/s (tcpi_delivery_rate).
    pub fn delivery_rate_bps(&self) -> u64 {
        self.rate.bits_per_s(self.config.mss_bytes)
    }

    /// Packets delivered, and those of them that were marked.
    pub fn delivered(&self) -> (u32, u32) {
        (self.rate.delivered(), self.rate.delivered_ce())
    }

    /// Whether accurate ECN is used.
    pub fn has_accurate_ecn(&self) -> bool {
        self.ecn.is_accurate()
    }

    /// The first unacknowledged packet.
    pub fn snd_una(&self) -> u32 {
        self.flight.una()
    }

    /// Payload acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        self.stream.bytes_before(self.flight.una())
    }

    /// Linux tcp_ca_state.
    pub fn ca_state(&self) -> CaState {
        self.recovery.state()
    }

    /// The algorithm's instance.
    pub fn controller(&self) -> &Controller {
        self.control.controller()
    }

    /// Payload of a full packet.
    pub fn mss_bytes(&self) -> u32 {
        self.config.mss_bytes
    }

    /// Packets in flight (tcp_packets_in_flight()).
    pub fn inflight(&self) -> u32 {
        self.flight.inflight()
    }

    /// When the next timer expires.
    pub fn timer_ns(&self) -> Option<u64> {
        let own_ns = self.pacing.timer_ns().min(self.control.timer_ns());
        let first_ns = self.timers.expires_ns().min(own_ns);
        (first_ns != NEVER_NS).then_some(first_ns)
    }

    /// A lower bound of [`Self::timer_ns`], cheaper to compute; `u64::MAX`: no timer runs.
    #[inline]
    pub fn timer_lower_bound_ns(&self) -> u64 {
        let own_ns = self.pacing.timer_ns().min(self.control.timer_ns());
        self.timers.lower_bound_ns().min(own_ns)
    }

    /// Moves the clock forward.
    #[inline]
    fn advance_clock(&mut self, now_ns: u64) {
        if now_ns > self.now_ns {
            self.now_ns = now_ns;
            self.control.see_time(now_ns);
        }
    }

    /// tcp_mstamp_refresh(): what is sent from now on is later than what was sent before.
    #[inline]
    fn read_clock(&mut self) {
        self.readings = self.readings.wrapping_add(1);
    }

    /// Shows the congestion control all parts, before it is called.
    fn show(&mut self) {
        self.control
            .see(&self.flight, &self.recovery, &self.rate, &self.cwnd_use);
        if self.control.wants_details() {
            self.show_details();
        }
    }

    #[inline(never)] // few algorithms ask for them
    fn show_details(&mut self) {
        self.control.see_details(&Details {
            flight: &self.flight,
            recovery: &self.recovery,
            cwnd_use: &self.cwnd_use,
            rtt: &self.rtt,
            stream: &self.stream,
            queue: &self.queue,
            peer: &self.peer,
        });
    }

    /// Tells the congestion control of an event.
    fn tell(&mut self, kind: EventKind, value: u32) {
        self.show();
        self.control.on_event(Event {
            kind: kind as u32,
            value,
            ..Event::default()
        });
    }

    /// Recovery, the packets that are out, and what surrounds both.
    fn parts(&mut self) -> (&mut Recovery, &mut Flight, Surroundings<'_>) {
        let surroundings = Surroundings {
            now_ns: self.now_ns,
            control: &mut self.control,
            cwnd_use: &mut self.cwnd_use,
            journal: &mut self.journal,
            rate: &self.rate,
            rtt: &self.rtt,
            stream: &self.stream,
            queue: &self.queue,
            peer: &self.peer,
        };
        (&mut self.recovery, &mut self.flight, surroundings)
    }

    /// The parts that see each delivered packet.
    #[inline(always)] // for every ACK
    fn deliveries(&mut self) -> Deliveries<'_> {
        Deliveries {
            now_ns: self.now_ns,
            min_rtt_us: self.rtt.min_us(),
            retransmissions: self.journal.retransmissions(),
            flight: &mut self.flight,
            stream: &self.stream,
            queue: &mut self.queue,
            rate: &mut self.rate,
            recovery: &mut self.recovery,
        }
    }

    /// Google's kernels and the draft (section 4.1.2.4) check for application limits at ACKs and timers
    /// too; stock kernels only when the application writes.
    #[inline]
    fn recheck_app_limited(&mut self) {
        if self.config.facts == CcFacts::Google {
            self.check_app_limited();
        }
    }

    /// tcp_rate_check_app_limited().
    #[inline]
    fn check_app_limited(&mut self) {
        if self.has_a_packet_unsent() || !self.small_queue.is_empty() {
            return;
        }
        let inflight = self.flight.inflight();
        let has_room = inflight < self.control.cwnd();
        if has_room && self.flight.lost() <= self.flight.retransmitted() {
            self.rate.mark_app_limited(inflight);
        }
    }

    /// Whether at least a full packet is unsent.
    #[inline]
    fn has_a_packet_unsent(&self) -> bool {
        self.queue.unsent_bytes(self.next_byte()) >= self.config.mss_bytes.into()
    }

    /// The SYN-ACK is processed before the window is set, which a timeout of the SYN has made one packet
    /// (tcp_rcv_synsent_state_process(), tcp_enter_loss()).
    fn set_first_pacing_rate(&mut self, opened: &Established) {
        let cwnd = self.control.cwnd();
        if opened.is_active && opened.timeouts > 0 {
            self.control.ctl_mut().cwnd = 1;
        }
        self.update_pacing_rate();
        self.control.ctl_mut().cwnd = cwnd;
    }

    /// The pacing rate of an algorithm that sets none.
    fn update_pacing_rate(&mut self) {
        let (ctl, out) = (self.control.ctl(), self.flight.out());
        let rate = self.pacing.default_rate(ctl, out, self.rtt.smoothed8());
        self.control.ctl_mut().pacing_rate_bytes_per_s = rate;
    }
}
