//! One connection's host of an algorithm: a QUIC stack's calls become the facts of the contract
//! (cc/cc.h), and the algorithm's decisions a window and a pacing rate in bytes.
//!
//! It must not know a stack, a clock or a socket: times are arguments, on any clock that begins above
//! zero. What RFC 9002 leaves to a congestion control is the algorithm's; episodes of loss, which Linux
//! runs for an algorithm, follow RFC 9002 section 7 here.

use std::fmt;

use fullpipe_cc::{
    flags, Ack, CaState, Conn, Ctl, Event, EventKind, NativeController, Variable, INFINITE,
};

use crate::rate::{Rate, Sampler, Snapshot};

/// RFC 9002 section 7.2: the least window.
const LEAST_WINDOW_PACKETS: u32 = 2;
/// Fewer packets than this in flight would wait for the receiver's delayed ACKs, which come for every
/// second packet (RFC 9000 section 13.2.2); it is also the least window of BBR (draft-ietf-ccwg-bbr,
/// `BBR.MinPipeCwnd`).
const LEAST_FLIGHT_PACKETS: u64 = 4;
/// A shorter RTT is none: quinn's and noq's clock for what was received stands while their endpoint reads,
/// so that on a loopback an ACK may seem to precede its packet.
const LEAST_RTT_NS: u64 = 1000;
/// RFC 9002 section 7.7: the window is spread over an RTT a quarter faster.
const PACING_GAIN: (u64, u64) = (5, 4);

/// How a connection begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time; above zero.
    pub now_ns: u64,
    /// Largest UDP payload, which is what the algorithm calls a packet.
    pub datagram_bytes: u32,
    /// Datagrams that the stack passes to the system at once.
    pub burst_datagrams: u32,
}

/// What is kept of a packet in flight.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it was sent.
    pub at_ns: u64,
    /// Bytes in flight just after it was sent, itself included.
    pub inflight_bytes: u64,
    /// Packets lost by then.
    lost: u32,
    rate: Snapshot,
}

/// What is lost, or why the window is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Packets were lost.
    Loss,
    /// The peer reported new CE marks.
    Marks,
    /// All packets of a long time were lost (RFC 9002 section 7.6).
    Persistent,
}

/// Packets that an ACK acknowledges, until it was read to its end.
#[derive(Clone, Copy, Debug)]
struct Batch {
    prior_inflight_bytes: u64,
    bytes: u64,
    newest_ns: u64,
    newest: Option<Sent>,
}

/// Smoothed and least RTT (RFC 9002 section 5, without the peer's ACK delay, which stacks do not tell).
/// The stack's own estimate would be one ACK old: quinn and noq update it after the controller's calls.
#[derive(Clone, Copy, Debug, Default)]
struct Rtt {
    smoothed_ns: u64,
    least_ns: u64,
}

impl Rtt {
    fn sample(&mut self, rtt_ns: u64) {
        if self.smoothed_ns == 0 {
            *self = Self {
                smoothed_ns: rtt_ns,
                least_ns: rtt_ns,
            };
        } else {
            self.smoothed_ns = (7 * self.smoothed_ns + rtt_ns) / 8;
            self.least_ns = self.least_ns.min(rtt_ns);
        }
    }
}

/// Counts bytes in packets: short ones add up, and nothing is rounded twice (cc/bytes.h).
#[derive(Clone, Copy, Debug, Default)]
struct ByteCount {
    rest_bytes: u64,
}

impl ByteCount {
    /// The packets that these bytes complete.
    fn add(&mut self, bytes: u64, packet_bytes: u32) -> u32 {
        let all = self.rest_bytes + bytes;
        let packet_bytes = u64::from(packet_bytes);
        self.rest_bytes = all % packet_bytes;
        (all / packet_bytes) as u32
    }
}

/// The host of one connection over one path.
#[derive(Clone)]
pub struct Host {
    cc: NativeController,
    conn: Conn,
    ctl: Ctl,
    sampler: Sampler,
    rtt: Rtt,
    acked: ByteCount,
    /// All bytes sent, and those of them that are no longer in flight: they stand for the sequence
    /// numbers of the contract, which QUIC's data do not have.
    sent_bytes: u64,
    settled_bytes: u64,
    inflight_bytes: u64,
    batch: Option<Batch>,
    /// Newest packet acknowledged so far was sent then.
    newest_acked_ns: u64,
    /// A congestion event answers only packets sent after this (RFC 9002 section 7.3.2).
    recovery_start_ns: u64,
    /// The window was full; so it counts until what was sent by then is settled (Linux
    /// tcp_cwnd_validate()).
    full_until_bytes: u64,
    /// Packets lost that no ACK has reported to the algorithm.
    unreported_losses: u32,
    /// Threshold before the last reduction, for its undoing.
    prior_ssthresh: u32,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("algorithm", &self.cc.algorithm().name)
            .field("conn", &self.conn)
            .field("ctl", &self.ctl)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Flags of algorithms that this host serves. Others ask for the mark of each packet, for a timer, for
    /// PRR or for TCP's own facts.
    pub const SERVES: u32 =
        flags::OWNS_CWND | flags::WANTS_RING | flags::WANTS_RTT | flags::SEND_IS_PURE;

    /// A connection begins. The seed is for the algorithm's random draws.
    pub(crate) fn new(cc: NativeController, start: &Start, seed: u32) -> Self {
        let initial_cwnd = initial_window_packets(start.datagram_bytes);
        let mut host = Self {
            cc: cc.without_ring(),
            conn: Conn {
                now_ns: start.now_ns,
                pacing_rate_cap_bytes_per_s: u64::MAX,
                mss_bytes: start.datagram_bytes,
                cwnd_clamp: u32::MAX,
                gso_max_segs: start.burst_datagrams,
                seed,
                ecn_ok: 1,
                is_paced: 1,
                is_cwnd_limited: 1,
                ..Conn::default()
            },
            ctl: Ctl {
                cwnd: initial_cwnd,
                ssthresh: INFINITE,
                ..Ctl::default()
            },
            sampler: Sampler::new(start.now_ns / 1000),
            rtt: Rtt::default(),
            acked: ByteCount::default(),
            sent_bytes: 0,
            settled_bytes: 0,
            inflight_bytes: 0,
            batch: None,
            newest_acked_ns: 0,
            recovery_start_ns: 0,
            full_until_bytes: 0,
            unreported_losses: 0,
            prior_ssthresh: 0,
        };
        host.gather(start.now_ns);
        host.cc.init(&host.conn, &mut host.ctl);
        host
    }

    /// A packet, or a burst of packets that leaves at once, is sent. The result comes back with its ACK or
    /// its loss.
    pub fn sent(&mut self, now_ns: u64, bytes: u64) -> Sent {
        let is_first_of_flight = self.inflight_bytes == 0;
        if is_first_of_flight {
            self.gather(now_ns);
            self.event(EventKind::TxStart, 0, 0, false);
        }
        self.advance(now_ns);
        let rate = self.sampler.sent(self.conn.now_us, is_first_of_flight);
        self.sent_bytes += bytes;
        self.inflight_bytes += bytes;
        self.conn.last_send_us = self.conn.now_us;
        if self.inflight_bytes + self.packet_bytes() > self.cwnd_bytes() {
            self.full_until_bytes = self.sent_bytes;
        }
        Sent {
            at_ns: self.conn.now_ns,
            inflight_bytes: self.inflight_bytes,
            lost: self.conn.lost,
            rate,
        }
    }

    /// What was sent is all there was, although the window is open.
    pub fn limited_by_application(&mut self) {
        let inflight = self.packets(self.inflight_bytes);
        self.sampler.limited_by_application(inflight);
    }

    /// A packet is acknowledged that was sent at `sent_ns`. `sent`: what [`Self::sent`] returned, if it is
    /// known. [`Self::acks_end`] follows.
    pub fn acked(&mut self, now_ns: u64, sent_ns: u64, sent: Option<Sent>, bytes: u64) {
        self.advance(now_ns);
        let batch = self.batch.get_or_insert(Batch {
            prior_inflight_bytes: self.inflight_bytes,
            bytes: 0,
            newest_ns: 0,
            newest: None,
        });
        batch.bytes += bytes;
        if sent_ns >= batch.newest_ns {
            batch.newest_ns = sent_ns;
            batch.newest = sent;
        }
        self.inflight_bytes = self.inflight_bytes.saturating_sub(bytes);
    }

    /// An ACK was read to its end. `inflight_bytes`: what the stack has in flight now, if it tells.
    /// `is_app_limited`: when the ACK came, there was nothing to send although the window was open.
    pub fn acks_end(&mut self, now_ns: u64, inflight_bytes: Option<u64>, is_app_limited: bool) {
        self.inflight_bytes = inflight_bytes.unwrap_or(self.inflight_bytes);
        let Some(batch) = self.batch.take() else {
            return;
        };
        self.advance(now_ns);
        let prior_inflight = self.packets(batch.prior_inflight_bytes);
        if is_app_limited {
            self.sampler.limited_by_application(prior_inflight);
        }
        let packets = self.acked.add(batch.bytes, self.conn.mss_bytes);
        self.sampler.acked(self.conn.now_us, packets);
        self.conn.is_cwnd_limited = u8::from(!is_app_limited);

        let is_newest = batch.newest_ns >= self.newest_acked_ns;
        self.newest_acked_ns = self.newest_acked_ns.max(batch.newest_ns);
        let rtt_ns = is_newest.then(|| now_ns.saturating_sub(batch.newest_ns));
        let rtt_ns = rtt_ns.filter(|&rtt_ns| rtt_ns >= LEAST_RTT_NS);
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns);
        }
        let rtt_us = rtt_ns.map(|rtt_ns| (rtt_ns / 1000).min(i32::MAX as u64) as u32);
        self.spread_window();
        self.report_rtt(rtt_us, packets);
        self.end_episode(batch.newest_ns);
        self.report_ack(&batch, prior_inflight, rtt_us, packets);
        self.spread_window();
        if self.owns_window() {
            self.cc.on_send(&self.conn, &mut self.ctl);
        }
    }

    /// Packets of together `bytes` are lost; `sent` is one of them. [`Self::congested`] follows after the
    /// last one.
    pub fn lost(&mut self, now_ns: u64, sent: Option<Sent>, bytes: u64) {
        self.inflight_bytes = self.inflight_bytes.saturating_sub(bytes);
        for _ in 0..self.packets(bytes) {
            self.conn.lost = self.conn.lost.wrapping_add(1);
            self.unreported_losses += 1;
            let Some(sent) = sent.filter(|_| self.cc.wants(flags::WANTS_RING)) else {
                continue;
            };
            self.gather(now_ns);
            let inflight = self.packets(sent.inflight_bytes);
            let lost = self.conn.lost.wrapping_sub(sent.lost);
            self.conn.lost_age_us = (now_ns.saturating_sub(sent.at_ns) / 1000) as u32;
            self.event(EventKind::Lost, inflight, lost, sent.rate.is_app_limited);
            self.conn.lost_age_us = 0;
        }
    }

    /// The network is congested, as the packet says that was sent at `sent_ns`, the newest one of those
    /// lost or marked. Answered once a round trip.
    pub fn congested(&mut self, now_ns: u64, sent_ns: u64, congestion: Congestion) {
        self.gather(now_ns);
        let is_new = sent_ns > self.recovery_start_ns;
        if is_new {
            self.recovery_start_ns = now_ns;
            self.prior_ssthresh = match congestion {
                Congestion::Loss => self.ctl.ssthresh.max(self.ctl.cwnd / 4 * 3),
                Congestion::Marks | Congestion::Persistent => 0,
            };
            self.event(EventKind::Ssthresh, 0, 0, false);
        }
        let state = match congestion {
            Congestion::Persistent => CaState::Loss,
            _ if !is_new => return,
            Congestion::Loss => CaState::Recovery,
            Congestion::Marks => CaState::Cwr,
        };
        self.ctl.cwnd_cnt = 0;
        if state == CaState::Loss {
            if is_new {
                self.event(EventKind::Rto, 0, 0, false);
            }
            self.ctl.cwnd = LEAST_WINDOW_PACKETS;
        } else if !self.owns_window() {
            // At once, which RFC 9002 section 7.3.2 allows; TCP's PRR is finer.
            self.ctl.cwnd = self.ctl.ssthresh.min(self.ctl.cwnd);
        }
        self.enter(state);
        self.spread_window();
    }

    /// The peer reported `packets` more packets as marked CE. [`Self::congested`] follows.
    pub fn marked(&mut self, packets: u32) {
        self.sampler.marked(packets);
    }

    /// What was taken for lost has arrived: the last reduction was wrong. The time is the last call's.
    pub fn spurious(&mut self) {
        if self.prior_ssthresh == 0 || self.state() != CaState::Recovery {
            return;
        }
        self.gather(self.conn.now_ns);
        self.event(EventKind::Undo, 0, 0, false);
        self.ctl.ssthresh = self.ctl.ssthresh.max(self.prior_ssthresh);
        self.prior_ssthresh = 0;
        self.enter(CaState::Open);
        self.spread_window();
    }

    /// Packets left the flight, and nobody will learn what became of them.
    pub fn forgotten(&mut self, bytes: u64) {
        self.inflight_bytes = self.inflight_bytes.saturating_sub(bytes);
    }

    /// The largest UDP payload changed. The window keeps its bytes; what the algorithm itself counted in
    /// packets stays, and is read in packets of the new size.
    pub fn datagram_size(&mut self, datagram_bytes: u32) {
        let before = u64::from(self.conn.mss_bytes);
        let after = u64::from(datagram_bytes.max(1));
        let rescaled = |packets: u32| match packets {
            INFINITE => INFINITE,
            _ => (u64::from(packets) * before).div_ceil(after) as u32,
        };
        self.ctl.cwnd = rescaled(self.ctl.cwnd);
        self.ctl.ssthresh = rescaled(self.ctl.ssthresh);
        self.conn.mss_bytes = after as u32;
    }

    /// Bytes that may be in flight.
    pub fn window_bytes(&self) -> u64 {
        self.cwnd_bytes()
            .max(u64::from(LEAST_WINDOW_PACKETS) * self.packet_bytes())
    }

    /// The same for a stack that does not read [`Self::pacing_rate_bytes_per_s`]: at most what this rate
    /// sends in a smoothed RTT. A flow with so much in flight sends at this rate, whatever the queue: by
    /// Little's law the rate is the flight over the RTT.
    pub fn window_of_rate_bytes(&self) -> u64 {
        let window = self.window_bytes();
        match self.pacing_rate_bytes_per_s() {
            Some(rate) if self.rtt.smoothed_ns > 0 => {
                let filled = u128::from(rate) * u128::from(self.rtt.smoothed_ns) / 1_000_000_000;
                let least = LEAST_FLIGHT_PACKETS * self.packet_bytes();
                window.min((filled.min(u128::from(u64::MAX)) as u64).max(least))
            }
            _ => window,
        }
    }

    /// The rate at which packets are to leave, of an algorithm that sets one. Others are paced by their
    /// window.
    pub fn pacing_rate_bytes_per_s(&self) -> Option<u64> {
        self.owns_window()
            .then_some(self.ctl.pacing_rate_bytes_per_s)
    }

    /// The same for a stack without a pacer of its own: for others 1.25 windows an RTT, once one is known.
    pub fn paced_rate_bytes_per_s(&self) -> Option<u64> {
        let is_known = self.owns_window() || self.rtt.smoothed_ns > 0;
        is_known.then_some(self.ctl.pacing_rate_bytes_per_s)
    }

    /// Bytes that may leave at once without pacing between them, of an algorithm that sets a rate.
    pub fn burst_bytes(&self) -> Option<u64> {
        let burst = u64::from(self.ctl.tso_segs.max(1)) * self.packet_bytes();
        self.owns_window().then_some(burst)
    }

    /// The slow-start threshold in bytes, once there is one.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        let is_set = !self.owns_window() && self.ctl.ssthresh < INFINITE;
        is_set.then(|| u64::from(self.ctl.ssthresh) * self.packet_bytes())
    }

    /// Largest UDP payload, the algorithm's packet.
    pub fn datagram_bytes(&self) -> u64 {
        self.packet_bytes()
    }

    /// Bytes in flight, as far as the stack told.
    pub fn inflight_bytes(&self) -> u64 {
        self.inflight_bytes
    }

    /// The window in packets, as the algorithm set it.
    pub fn cwnd_packets(&self) -> u32 {
        self.ctl.cwnd
    }

    /// Smoothed RTT; `None` before the first sample.
    pub fn smoothed_rtt_us(&self) -> Option<u64> {
        Some(self.rtt.smoothed_ns / 1000).filter(|_| self.rtt.smoothed_ns > 0)
    }

    /// Linux's name for the episode that the connection is in.
    pub fn state(&self) -> CaState {
        match self.conn.ca_state {
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            4 => CaState::Loss,
            _ => CaState::Open,
        }
    }

    /// The algorithm's own variables.
    pub fn variables(&self) -> Vec<(&'static Variable, Option<f64>)> {
        let known = self.cc.algorithm().variables.iter();
        known.zip(self.cc.variables()).collect()
    }

    /// A variable by its column (`max_bw_bps`).
    pub fn variable(&self, column: &str) -> Option<f64> {
        let variables = self.variables();
        let found = variables.iter().find(|(known, _)| known.column == column);
        found.and_then(|(_, value)| *value)
    }

    fn report_rtt(&mut self, rtt_us: Option<u32>, packets: u32) {
        if let Some(rtt_us) = rtt_us.filter(|_| self.cc.wants(flags::WANTS_RTT)) {
            self.gather(self.conn.now_ns);
            self.event(EventKind::Rtt, rtt_us, packets, false);
        }
    }

    /// A packet that was sent after the episode's beginning is acknowledged (RFC 9002 section 7.3.2).
    fn end_episode(&mut self, newest_ns: u64) {
        if self.state() == CaState::Open || newest_ns <= self.recovery_start_ns {
            return;
        }
        self.gather(self.conn.now_ns);
        if !self.owns_window() && self.state() != CaState::Loss {
            self.event(EventKind::CompleteCwr, 0, 0, false);
        }
        self.enter(CaState::Open);
    }

    fn report_ack(
        &mut self,
        batch: &Batch,
        prior_inflight: u32,
        rtt_us: Option<u32>,
        packets: u32,
    ) {
        let mut ack = Ack {
            delivered: -1,
            interval_us: -1,
            rtt_us: rtt_us.map_or(-1, |us| us as i32),
            acked_sacked: packets,
            prior_inflight,
            age_us: (self.conn.now_ns.saturating_sub(batch.newest_ns) / 1000) as u32,
            ..Ack::default()
        };
        if let Some(sent) = batch.newest {
            let Rate {
                delivered,
                delivered_ce,
                interval_us,
            } = self.sampler.sample(&sent.rate, self.rtt.least_ns / 1000);
            ack.prior_us = sent.rate.delivered_us;
            ack.prior_delivered = sent.rate.delivered;
            ack.prior_delivered_ce = sent.rate.delivered_ce;
            ack.delivered = delivered as i32;
            ack.delivered_ce = delivered_ce as i32;
            ack.interval_us = interval_us.map_or(-1, |us| us.min(i32::MAX as u64) as i32);
            ack.is_app_limited = u8::from(sent.rate.is_app_limited);
            ack.tx_inflight = self.packets(sent.inflight_bytes);
            ack.lost = self.conn.lost.wrapping_sub(sent.lost);
        }
        let is_reducing = matches!(self.state(), CaState::Cwr | CaState::Recovery);
        if !self.owns_window() && is_reducing {
            return; // RFC 9002 section 7.3.2: the window does not grow in recovery
        }
        self.gather(self.conn.now_ns);
        ack.losses = std::mem::take(&mut self.unreported_losses);
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    /// What the stack paces an algorithm at that sets no rate.
    fn spread_window(&mut self) {
        if self.owns_window() || self.rtt.smoothed_ns == 0 {
            return;
        }
        let window = u128::from(self.window_bytes()) * u128::from(PACING_GAIN.0);
        let rate = window * 1_000_000_000 / u128::from(self.rtt.smoothed_ns * PACING_GAIN.1);
        self.ctl.pacing_rate_bytes_per_s = rate as u64;
    }

    fn enter(&mut self, state: CaState) {
        if self.state() == state {
            return;
        }
        self.event(EventKind::State, state as u32, 0, false);
        self.conn.prior_ca_state = self.conn.ca_state;
        self.conn.ca_state = state as u8;
    }

    fn event(&mut self, kind: EventKind, value: u32, packets: u32, is_app_limited: bool) {
        let event = Event {
            kind: kind as u32,
            value,
            packets,
            is_app_limited: u32::from(is_app_limited),
        };
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    fn advance(&mut self, now_ns: u64) {
        self.conn.now_ns = self.conn.now_ns.max(now_ns);
        self.conn.now_us = self.conn.now_ns / 1000;
        self.conn.edt_ns = self.conn.now_ns;
    }

    /// The state of the connection, before a call.
    fn gather(&mut self, now_ns: u64) {
        self.advance(now_ns);
        let settled = self.sent_bytes.saturating_sub(self.inflight_bytes);
        self.settled_bytes = self.settled_bytes.max(settled);
        let inflight = self.packets(self.inflight_bytes);
        let (delivered, delivered_ce, delivered_us, app_limited) = self.sampler.counters();
        let conn = &mut self.conn;
        conn.delivered = delivered;
        conn.delivered_ce = delivered_ce;
        conn.delivered_us = delivered_us;
        conn.app_limited = app_limited;
        conn.inflight = inflight;
        conn.packets_out = inflight;
        conn.snd_nxt = self.sent_bytes as u32;
        conn.snd_una = self.settled_bytes as u32;
        conn.srtt_us = (self.rtt.smoothed_ns / 1000).min(u64::from(u32::MAX)) as u32;
        conn.is_cwnd_full = u8::from(self.settled_bytes < self.full_until_bytes);
    }

    fn owns_window(&self) -> bool {
        self.cc.wants(flags::OWNS_CWND)
    }

    fn packet_bytes(&self) -> u64 {
        u64::from(self.conn.mss_bytes)
    }

    fn cwnd_bytes(&self) -> u64 {
        u64::from(self.ctl.cwnd) * self.packet_bytes()
    }

    fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.packet_bytes()).min(u64::from(u32::MAX)) as u32
    }
}

/// RFC 9002 section 7.2.
fn initial_window_packets(datagram_bytes: u32) -> u32 {
    let limit_bytes = (2 * datagram_bytes).max(14_720);
    (10 * datagram_bytes).min(limit_bytes) / datagram_bytes
}
