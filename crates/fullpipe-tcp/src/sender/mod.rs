//! The sender: its state, what its application does, and what it reports to the congestion control.
//!
//! `ack.rs` processes ACKs, `fast_retransmit.rs`, `loss.rs`, `prr.rs` and `undo.rs` recover from losses,
//! `transmit.rs` sends. Names follow struct tcp_sock.

mod ack;
mod fast_retransmit;
mod loss;
mod prr;
mod rate;
mod reordering;
mod rtt;
mod scoreboard;
mod sendmsg;
mod transmit;
mod undo;
mod write_queue;

use fullpipe_cc::trace::CallLog;
use fullpipe_cc::{flags, CaState, Conn, Controller, Ctl, Event, EventKind, INFINITE};
use fullpipe_plan::{CcFacts, Pacing, RateRestart};

use self::rate::RateState;
use self::reordering::Reordering;
use self::rtt::Rtt;
use self::scoreboard::Scoreboard;
use self::write_queue::WriteQueue;
use crate::countdown::Countdown;
use crate::handshake::Established;
use crate::packet::{Block, EcnFeedback, MAX_BLOCKS};
use crate::rules::Rules;

const NS_PER_MS: u64 = 1_000_000;
/// No timer runs.
pub(crate) const NEVER_NS: u64 = u64::MAX;

/// How a sender is set up.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Payload of a full packet.
    pub mss_bytes: u32,
    /// What spaces packets out.
    pub pacing: Pacing,
    /// sk_pacing_shift: bounds what is queued below TCP and the length of bursts, in time.
    pub pacing_shift: u8,
    /// Largest burst in packets.
    pub gso_max_segments: u32,
    /// What its kernel does.
    pub rules: Rules,
    /// What it reports to the congestion control about losses and application limits.
    pub facts: CcFacts,
    /// When a delivery-rate sample begins a new interval.
    pub rate_restart: RateRestart,
    /// Initial congestion window.
    pub initial_cwnd: u32,
    /// Ceiling of the send buffer.
    pub wmem_max_bytes: u64,
    /// TCP_NOTSENT_LOWAT; `None`: no limit.
    pub notsent_lowat_bytes: Option<u64>,
    /// ECN is requested; once the connection is established: ECN is used.
    pub ecn: bool,
    /// How the receiver reports marks.
    pub feedback: EcnFeedback,
    /// The path marks early, as L4S does (Google's kernels: TCP_ECN_LOW).
    pub l4s: bool,
    /// Seed of the congestion control's random numbers.
    pub seed: u32,
    /// What the application sends in total; `None`: unlimited.
    pub amount_bytes: Option<u64>,
    /// The application writes by [`Sender::write`] and its siblings.
    pub written_by_application: bool,
}

/// Totals of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets with data sent, retransmissions included (tcpi_data_segs_out).
    pub packets_sent: u64,
    /// Retransmissions, those of SYN and FIN included (tcpi_total_retrans).
    pub packets_retransmitted: u64,
    /// Packets marked lost.
    pub packets_lost: u64,
    /// Times Recovery was entered.
    pub recoveries: u64,
    /// Retransmission timeouts, those of SYNs and SYN-ACKs included (tcpi_total_rto).
    pub timeouts: u64,
    /// Reductions undone.
    pub undos: u64,
}

/// An event for the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// Recovery begins.
    Recovery,
    /// Recovery or CWR ended.
    RecoveryEnd,
    /// A retransmission timeout.
    Timeout,
    /// A reduction was undone.
    Undo,
    /// An ECN reduction begins.
    Cwr,
}

impl SenderEvent {
    /// Name in recordings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recovery => "recovery",
            Self::RecoveryEnd => "recovery_end",
            Self::Timeout => "rto",
            Self::Undo => "undo",
            Self::Cwr => "cwr",
        }
    }
}

/// What the one retransmission timer waits for (icsk_pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    Retransmit,
    LossProbe,
    Reorder,
}

/// What is retransmitted at the next opportunity (enum REXMIT of tcp_input.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Resend {
    /// No ACK was processed since: lost packets, if the window has room (tcp_tsq_write()).
    #[default]
    IfRoom,
    /// Nothing.
    Nothing,
    /// Lost packets.
    Lost,
    /// F-RTO: new data, or lost packets if there are no new data.
    NewFirst,
}

/// RACK's state (RFC 8985 section 5.2); `Reordering` has its reordering window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rack {
    /// The newest transmission that was delivered.
    pub(crate) order: u32,
    pub(crate) rtt_us: u64,
    pub(crate) advanced: bool,
}

/// One connection's sending end.
pub struct Sender {
    pub(crate) config: SenderConfig,
    pub(crate) cc: Controller,
    pub(crate) ctl: Ctl,
    /// The state passed to the congestion control. Rarely changing fields are written where they change, the
    /// others by [`Sender::gather`] before each call.
    pub(crate) conn: Conn,
    pub(crate) board: Scoreboard,
    pub(crate) rate: RateState,
    pub(crate) rtt: Rtt,
    pub(crate) rack: Rack,
    pub(crate) reordering: Reordering,
    pub(crate) totals: Totals,
    pub(crate) events: Vec<SenderEvent>,

    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    /// One past the last packet that the application has or will write.
    pub(crate) written: u32,
    /// Payload of packet `written - 1` once the application is done writing.
    pub(crate) last_payload: u32,
    /// Packets that writes left short, each with the payload missing in it and all before
    /// ([`Sender::write_bytes`]).
    pub(crate) shorts: Vec<(u32, u64)>,
    pub(crate) closed: bool,
    /// The number of the FIN if it is sent without data.
    pub(crate) lone_fin: Option<u32>,
    /// The peer has closed its side.
    pub(crate) peer_closed: bool,
    pub(crate) window_bytes: u64,

    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,

    pub(crate) ca_state: CaState,
    pub(crate) prior_ca_state: CaState,
    pub(crate) high_seq: u32,
    pub(crate) prior_ssthresh: u32,
    pub(crate) prior_cwnd: u32,
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    pub(crate) undo_marker: Option<u32>,
    pub(crate) undo_retrans: i32,
    /// When the first retransmission of this episode was sent; 0: none was (retrans_stamp).
    pub(crate) retrans_ns: u64,
    pub(crate) retransmits: u32,
    pub(crate) frto: bool,
    pub(crate) resend: Resend,
    /// Packets that DSACKs reported (dsack_dups).
    pub(crate) duplicates: u64,
    pub(crate) retransmit_hint: u32,
    /// One past the highest packet that was marked lost.
    pub(crate) lost_end: u32,
    /// The socket's send buffer.
    pub(crate) queue: WriteQueue,
    /// The application has data to write and is not blocked.
    pub(crate) may_write: bool,
    /// A tail loss probe is out; its episode ends at this packet.
    pub(crate) tlp_high: Option<u32>,
    pub(crate) tlp_is_retrans: bool,
    /// The packet that the probe retransmitted was application-limited (tlp_orig_data_app_limited).
    pub(crate) tlp_app_limited: bool,
    pub(crate) cwr_pending: bool,
    /// `marks` of the newest ACK.
    pub(crate) marks_seen: u8,
    /// SACK blocks of the previous ACK, which are skipped (recv_sack_cache).
    pub(crate) sack_cache: [Block; MAX_BLOCKS],

    pub(crate) is_cwnd_limited: bool,
    pub(crate) max_packets_out: u32,
    pub(crate) cwnd_usage_seq: u32,
    /// Most packets out since the window was last full, or judged (snd_cwnd_used), and when that was
    /// (snd_cwnd_stamp).
    pub(crate) cwnd_used: u32,
    pub(crate) cwnd_stamp_ns: u64,

    pub(crate) now_ns: u64,
    /// When the pacing timer expires; [`NEVER_NS`]: it does not run.
    pub(crate) pacing_at_ns: u64,
    pub(crate) timer: Option<(TimerKind, Countdown)>,
    /// Memory of the buffers queued below TCP (sk_wmem_alloc_get()).
    pub(crate) queued_bytes: u64,
    /// Limit of `queued_bytes`, whatever the pacing rate.
    pub(crate) output_limit_bytes: u64,
    pub(crate) last_send_ns: u64,
    pub(crate) echo_ns: u64,
    pub(crate) data_segs_out: u64,
    /// ACKs that came, and the newest one's timestamps.
    pub(crate) acks: u32,
    pub(crate) ack_sent_ns: u64,
    pub(crate) ack_echo_ns: u64,
    pub(crate) established: bool,
}

impl Sender {
    /// A connection that is not established yet.
    pub fn new(config: SenderConfig, cc: Controller) -> Self {
        let mss = u64::from(config.mss_bytes);
        let (written, last_payload, closed) = match config.amount_bytes {
            _ if config.written_by_application => (0, config.mss_bytes, false),
            None => (u32::MAX, config.mss_bytes, false),
            Some(bytes) => {
                let packets = bytes.div_ceil(mss).min(u64::from(u32::MAX - 1));
                let last = bytes - (packets.max(1) - 1) * mss;
                (packets as u32, last.min(mss) as u32, true)
            }
        };
        let ctl = Ctl {
            cwnd: config.initial_cwnd,
            ssthresh: INFINITE,
            ..Ctl::default()
        };
        let owns_cwnd = cc.wants(flags::OWNS_CWND);
        let conn = Conn {
            pacing_rate_cap_bytes_per_s: u64::MAX,
            mss_bytes: config.mss_bytes,
            cwnd_clamp: u32::MAX,
            gso_max_segs: config.gso_max_segments,
            seed: config.seed,
            is_paced: u8::from(config.pacing == Pacing::Fq || owns_cwnd),
            ..Conn::default()
        };
        let mut queue = WriteQueue::new(
            config.mss_bytes,
            config.gso_max_segments,
            config.wmem_max_bytes,
        );
        queue.set_notsent_lowat(config.notsent_lowat_bytes.unwrap_or(u64::MAX));
        Self {
            cc: match config.facts {
                CcFacts::Google => cc.without_ring(),
                CcFacts::Stock => cc,
            },
            ctl,
            conn,
            board: Scoreboard::new(),
            queue,
            may_write: written > 0,
            rate: RateState::default(),
            rtt: Rtt::default(),
            rack: Rack::default(),
            reordering: Reordering::default(),
            totals: Totals::default(),
            events: Vec::new(),
            snd_una: 0,
            snd_nxt: 0,
            written,
            last_payload,
            shorts: Vec::new(),
            closed,
            lone_fin: None,
            peer_closed: false,
            window_bytes: 65_536,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            ca_state: CaState::Open,
            prior_ca_state: CaState::Open,
            high_seq: 0,
            prior_ssthresh: 0,
            prior_cwnd: 0,
            prr_delivered: 0,
            prr_out: 0,
            undo_marker: None,
            undo_retrans: 0,
            retrans_ns: 0,
            retransmits: 0,
            frto: false,
            resend: Resend::default(),
            duplicates: 0,
            retransmit_hint: 0,
            lost_end: 0,
            tlp_high: None,
            tlp_is_retrans: false,
            tlp_app_limited: false,
            cwr_pending: false,
            marks_seen: 0,
            sack_cache: Default::default(),
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: 0,
            cwnd_used: 0,
            cwnd_stamp_ns: 0,
            now_ns: 0,
            pacing_at_ns: NEVER_NS,
            timer: None,
            queued_bytes: 0,
            output_limit_bytes: config.rules.paced_output_limit_bytes(),
            last_send_ns: 0,
            echo_ns: 0,
            data_segs_out: 0,
            acks: 0,
            ack_sent_ns: 0,
            ack_echo_ns: 0,
            established: false,
            config,
        }
    }

    /// Traces every call of the congestion control; `name` is its name in the scenario.
    pub fn trace_calls(&mut self, log: &CallLog, name: &str) {
        self.cc.trace(log, name, "simulator");
    }

    /// The SYN timed out and is retransmitted (tcp_retransmit_timer()).
    pub fn syn_timed_out(&mut self) {
        self.totals.packets_retransmitted += 1;
        self.totals.timeouts += 1;
    }

    /// The handshake is done.
    pub fn establish(&mut self, now_ns: u64, opened: &Established) {
        self.advance_clock(now_ns);
        self.conn.edt_ns = now_ns;
        self.cwnd_stamp_ns = now_ns;
        self.established = true;
        self.window_bytes = opened.window_bytes;
        self.echo_ns = opened.peer_sent_ns;
        self.config.ecn = opened.ecn;
        self.conn.ecn_ok = u8::from(opened.ecn);
        self.conn.ecn_low = u8::from(opened.ecn && self.config.l4s);
        self.totals.packets_retransmitted = u64::from(opened.retransmissions);
        // A client counted its timeouts in `syn_timed_out`.
        for _ in self.totals.timeouts..u64::from(opened.timeouts) {
            self.totals.timeouts += 1;
            self.events.push(SenderEvent::Timeout);
        }
        if opened.has_window_of_one {
            self.ctl.cwnd = 1;
        }
        if self.closed && self.lone_fin.is_none() && self.written <= self.ctl.cwnd {
            // Everything is sent before the application closes.
            self.append_lone_fin();
        }
        let rtt_us = opened.rtt_ns / 1000;
        self.rtt.sample(rtt_us as i64, 0, 0);
        self.conn.srtt_us = self.rtt.smoothed_us();
        self.rtt.sample_min(rtt_us as u32, self.conn.now_us);
        // The SYN counts as delivered (tcp_rcv_synsent_state_process()).
        self.rate.delivered = 1;
        self.rate.delivered_us = self.conn.now_us;
        self.rate.first_tx_us = self.conn.now_us;
        self.update_pacing_rate();
        self.gather();
        self.cc.init(&self.conn, &mut self.ctl);
        self.queue.expand(self.ctl.cwnd, self.ctl.sndbuf_factor);
    }

    /// The application writes full packets (with `written_by_application`). While its socket is full it
    /// waits, and then writes all that has come up.
    pub fn write(&mut self, packets: u32) {
        self.may_write |= !self.queue.is_blocking;
        self.written = self.written.saturating_add(packets);
    }

    /// The application writes bytes (with `written_by_application`); they fill up a short packet that is
    /// not sent yet.
    pub fn write_bytes(&mut self, bytes: u64) {
        self.may_write |= !self.queue.is_blocking;
        let mss = u64::from(self.config.mss_bytes);
        let mut left = bytes;
        if let Some((number, missing)) = self.shorts.pop() {
            let before = self.shorts.last().map_or(0, |&(_, missing)| missing);
            let mut still = missing;
            if number >= self.snd_nxt {
                let taken = left.min(missing - before);
                left -= taken;
                still -= taken;
            }
            if still > before {
                self.shorts.push((number, still));
            }
        }
        let packets = left.div_ceil(mss).min(u64::from(u32::MAX / 2));
        self.written = self.written.saturating_add(packets as u32);
        let missing = (packets * mss).saturating_sub(left);
        if missing > 0 {
            let before = self.shorts.last().map_or(0, |&(_, missing)| missing);
            self.shorts.push((self.written - 1, before + missing));
        }
    }

    /// The application writes as much as TCP takes, or (false) nothing. What it has written is sent in
    /// either case.
    pub fn set_unlimited(&mut self, is_unlimited: bool) {
        self.may_write = is_unlimited;
        self.written = match is_unlimited {
            true => u32::MAX,
            false => self.queue.finish(self.snd_nxt),
        };
    }

    /// Payload that the application has written.
    pub fn written_bytes(&self) -> u64 {
        self.bytes_before(self.written)
    }

    /// Payload that is written and not sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.bytes_before(self.written) - self.bytes_before(self.snd_nxt)
    }

    /// Payload in packets before `number`.
    pub fn bytes_before(&self, number: u32) -> u64 {
        let count = self.shorts.partition_point(|&(short, _)| short < number);
        let missing = count.checked_sub(1).map_or(0, |at| self.shorts[at].1);
        u64::from(number) * u64::from(self.config.mss_bytes) - missing
    }

    /// Payload of a packet: the MSS, or less if a write left it short.
    pub(crate) fn written_payload(&self, number: u32) -> u32 {
        if self.shorts.is_empty() {
            return self.config.mss_bytes;
        }
        (self.bytes_before(number + 1) - self.bytes_before(number)) as u32
    }

    /// The application writes its last bytes, at least one, and closes.
    pub fn write_last(&mut self, bytes: u64) {
        self.write_bytes(bytes);
        self.last_payload = self.written_payload(self.written - 1);
        self.closed = true;
        if self.written - self.snd_nxt <= self.ctl.cwnd.saturating_sub(self.inflight()) {
            // Everything is sent before the application closes.
            self.append_lone_fin();
        }
    }

    /// Everything written so far was acknowledged.
    pub fn is_drained(&self) -> bool {
        self.snd_una == self.written
    }

    /// The application stops writing and closes. What it has written is sent, with the FIN on its last
    /// packet.
    pub fn stop(&mut self) {
        if self.closed && self.snd_nxt == self.written {
            return;
        }
        self.may_write = false;
        let had_all = self.closed.then(|| self.data_end());
        self.written = self.queue.finish(self.snd_nxt);
        if had_all != Some(self.written) {
            self.last_payload = self.written_payload(self.written.saturating_sub(1));
        }
        self.closed = true;
        self.lone_fin = None;
        if self.written == self.snd_nxt {
            self.append_lone_fin();
        }
    }

    /// Appends a FIN without data (tcp_send_fin()).
    fn append_lone_fin(&mut self) {
        self.lone_fin = Some(self.written);
        self.written += 1;
    }

    /// One past the last packet with data.
    pub(crate) fn data_end(&self) -> u32 {
        self.lone_fin.unwrap_or(self.written)
    }

    /// Changes window and pacing from outside the congestion control. Call [`Self::transmit`] afterwards.
    pub fn amend(&mut self, change: impl FnOnce(&mut Ctl)) {
        self.gather();
        self.cc.amend(&self.conn, &mut self.ctl, change);
    }

    /// The application is done writing and everything was acknowledged.
    pub fn is_finished(&self) -> bool {
        self.closed && self.snd_una >= self.data_end()
    }

    /// Both FINs are acknowledged: the connection needs no further packet.
    pub fn is_closed(&self) -> bool {
        self.peer_closed && self.closed && self.snd_una == self.written
    }

    /// Bytes of the sequence space before packet `number`; the FIN counts as one.
    pub fn sequence_bytes(&self, number: u32) -> u64 {
        let end = self.data_end();
        if !self.closed || number < end {
            return self.bytes_before(number);
        }
        let beyond = match self.lone_fin {
            Some(_) => number - end,
            None => 1,
        };
        self.data_bytes(end) + u64::from(beyond)
    }

    /// Payload of the packets before `number`, the short last packet included.
    fn data_bytes(&self, number: u32) -> u64 {
        let end = self.data_end();
        match number.min(end) {
            0 => 0,
            last if self.closed && last == end => {
                self.bytes_before(last - 1) + u64::from(self.last_payload)
            }
            before => self.bytes_before(before),
        }
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        Totals {
            packets_lost: u64::from(self.conn.lost),
            ..self.totals
        }
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> std::vec::Drain<'_, SenderEvent> {
        self.events.drain(..)
    }

    /// Whether there are events.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Congestion window in packets.
    pub fn cwnd(&self) -> u32 {
        self.ctl.cwnd
    }

    /// Slow-start threshold, if set.
    pub fn ssthresh(&self) -> Option<u32> {
        (self.ctl.ssthresh < INFINITE).then_some(self.ctl.ssthresh)
    }

    /// Pacing rate in bytes/s, if the connection is paced.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.is_paced().then_some(self.ctl.pacing_rate_bytes_per_s)
    }

    /// Smoothed RTT in us; 0 before the first sample.
    pub fn srtt_us(&self) -> u32 {
        self.rtt.smoothed_us()
    }

    /// The connection's least RTT in us.
    pub fn min_rtt_us(&self) -> Option<u32> {
        let least = self.rtt.min_us();
        (least != u32::MAX).then_some(least)
    }

    /// Latest delivery-rate sample in bit/s (tcpi_delivery_rate).
    pub fn delivery_rate_bps(&self) -> u64 {
        let bits = u64::from(self.rate.rate_delivered) * u64::from(self.config.mss_bytes) * 8;
        match self.rate.rate_interval_us {
            0 => 0,
            us => bits * 1_000_000 / u64::from(us),
        }
    }

    /// Packets delivered, and those of them that were marked.
    pub fn delivered(&self) -> (u32, u32) {
        (self.rate.delivered, self.rate.delivered_ce)
    }

    /// Whether accurate ECN is used.
    pub fn has_accurate_ecn(&self) -> bool {
        self.config.ecn && self.config.feedback == EcnFeedback::Accurate
    }

    /// The first unacknowledged packet.
    pub fn snd_una(&self) -> u32 {
        self.snd_una
    }

    /// Payload acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        self.data_bytes(self.snd_una)
    }

    /// Linux tcp_ca_state.
    pub fn ca_state(&self) -> CaState {
        self.ca_state
    }

    /// The algorithm's instance.
    pub fn controller(&self) -> &Controller {
        &self.cc
    }

    /// Payload of a full packet.
    pub fn mss_bytes(&self) -> u32 {
        self.config.mss_bytes
    }

    /// When the next timer expires.
    pub fn timer_ns(&self) -> Option<u64> {
        let retransmit = self.timer.map(|(_, timer)| timer.expires_ns());
        let own_ns = self.pacing_at_ns.min(self.cc_timer_ns());
        let first_ns = retransmit.unwrap_or(NEVER_NS).min(own_ns);
        (first_ns != NEVER_NS).then_some(first_ns)
    }

    /// A lower bound of [`Self::timer_ns`], cheaper to compute; `u64::MAX`: no timer runs.
    #[inline]
    pub fn timer_lower_bound_ns(&self) -> u64 {
        let retransmit_ns = self
            .timer
            .map_or(NEVER_NS, |(_, timer)| timer.lower_bound_ns());
        retransmit_ns.min(self.pacing_at_ns).min(self.cc_timer_ns())
    }

    /// When the congestion control wants to be called.
    #[inline]
    pub(crate) fn cc_timer_ns(&self) -> u64 {
        match self.ctl.timer_us {
            0 => NEVER_NS,
            us => us.saturating_mul(1000),
        }
    }

    /// Packets in flight (tcp_packets_in_flight()).
    pub fn inflight(&self) -> u32 {
        self.packets_out() + self.retrans_out - self.sacked_out - self.lost_out
    }

    pub(crate) fn packets_out(&self) -> u32 {
        self.snd_nxt - self.snd_una
    }

    pub(crate) fn owns_cwnd(&self) -> bool {
        self.cc.wants(flags::OWNS_CWND)
    }

    /// Whether the connection is paced: by fq always, by TCP if the algorithm requests it.
    pub(crate) fn is_paced(&self) -> bool {
        self.config.pacing == Pacing::Fq || self.owns_cwnd()
    }

    /// tcp_is_cwnd_limited().
    pub(crate) fn cwnd_limited(&self) -> bool {
        let slow_start = self.ctl.cwnd < self.ctl.ssthresh;
        self.is_cwnd_limited || slow_start && self.ctl.cwnd < 2 * self.max_packets_out
    }

    /// Moves the clock forward.
    #[inline]
    pub(crate) fn advance_clock(&mut self, now_ns: u64) {
        if now_ns > self.now_ns {
            self.now_ns = now_ns;
            self.conn.now_ns = now_ns;
            self.conn.now_us = now_ns / 1000;
        }
    }

    /// Updates the state passed to the congestion control, before every call of it.
    pub(crate) fn gather(&mut self) {
        let mss = self.config.mss_bytes;
        let (packets_out, inflight) = (self.packets_out(), self.inflight());
        let is_cwnd_limited = self.cwnd_limited();
        let conn = &mut self.conn;
        conn.delivered_us = self.rate.delivered_us;
        conn.delivered = self.rate.delivered;
        conn.delivered_ce = self.rate.delivered_ce;
        conn.packets_out = packets_out;
        conn.inflight = inflight;
        conn.snd_una = self.snd_una.wrapping_mul(mss);
        conn.app_limited = self.rate.app_limited;
        conn.ca_state = self.ca_state as u8;
        conn.prior_ca_state = self.prior_ca_state as u8;
        conn.is_cwnd_limited = u8::from(is_cwnd_limited);
        conn.is_cwnd_full = u8::from(self.is_cwnd_limited);
        if self.cc.wants(flags::WANTS_DETAILS) {
            self.gather_details();
        }
    }

    /// The second part of `struct cc_conn`. Timestamps count milliseconds, as Linux's.
    #[inline(never)] // few algorithms ask for it
    fn gather_details(&mut self) {
        let mss = self.config.mss_bytes;
        let least_us = self.rtt.min_us();
        let queued = self.queue.end.max(self.snd_nxt);
        let unsent = self.bytes_before(queued) - self.bytes_before(self.snd_nxt);
        let conn = &mut self.conn;
        conn.min_rtt_us = if least_us == u32::MAX { 0 } else { least_us };
        conn.rttvar_us = self.rtt.deviation_us();
        conn.unsent_bytes = unsent.min(u64::from(u32::MAX)) as u32;
        conn.unsent_packets = conn.unsent_bytes.div_ceil(mss);
        conn.acks = self.acks;
        conn.rcv_tsval = (self.ack_sent_ns / NS_PER_MS) as u32;
        conn.rcv_tsecr = (self.ack_echo_ns / NS_PER_MS) as u32;
        conn.ts_tick_us = 1000;
        conn.sacked_out = self.sacked_out;
        conn.lost_out = self.lost_out;
        conn.retrans_out = self.retrans_out;
        conn.max_packets_out = self.max_packets_out;
        conn.high_seq = self.high_seq.wrapping_mul(mss);
        conn.reordering = self.reordering.threshold();
        conn.prior_cwnd = self.prior_cwnd;
    }

    pub(crate) fn cc_event(&mut self, kind: EventKind, value: u32, packets: u32) {
        self.cc_packet_event(kind, value, packets, false);
    }

    /// Reports an RTT sample, at every ACK; `since`: the event's `delivered_since`.
    #[inline(always)] // as `Self::process_ack`
    pub(crate) fn cc_rtt(&mut self, rtt_us: u32, packets: u32, since: u32) {
        let event = Event {
            kind: EventKind::Rtt as u32,
            value: rtt_us,
            packets,
            is_app_limited: since,
        };
        self.gather();
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    /// An event with the application-limited flag of the packet it concerns.
    pub(crate) fn cc_packet_event(
        &mut self,
        kind: EventKind,
        value: u32,
        packets: u32,
        is_app_limited: bool,
    ) {
        let event = Event {
            kind: kind as u32,
            value,
            packets,
            is_app_limited: u32::from(is_app_limited),
        };
        self.gather();
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    pub(crate) fn set_ca_state(&mut self, state: CaState) {
        self.cc_event(EventKind::State, state as u32, 0);
        self.prior_ca_state = self.ca_state;
        self.ca_state = state;
    }

    /// Google's kernels and the draft (section 4.1.2.4) check for application limits at ACKs and timers
    /// too; stock kernels only when the application writes.
    pub(crate) fn recheck_app_limited(&mut self) {
        if self.config.facts == CcFacts::Google {
            self.check_app_limited();
        }
    }

    /// tcp_rate_check_app_limited().
    pub(crate) fn check_app_limited(&mut self) {
        let inflight = self.inflight();
        if self.snd_nxt >= self.queue.end
            && self.queued_bytes == 0
            && inflight < self.ctl.cwnd
            && self.lost_out <= self.retrans_out
        {
            self.rate.mark_app_limited(inflight);
        }
    }

    /// tcp_update_pacing_rate(): 200 % of cwnd/srtt in slow start, 120 % afterwards, for algorithms that
    /// set no pacing rate.
    pub(crate) fn update_pacing_rate(&mut self) {
        let percent = if self.ctl.cwnd < self.ctl.ssthresh / 2 {
            200
        } else {
            120
        };
        let window = u64::from(self.ctl.cwnd.max(self.packets_out()));
        let rate = u64::from(self.config.mss_bytes) * window * percent * 80_000;
        self.ctl.pacing_rate_bytes_per_s = rate / self.rtt.smoothed8().max(1);
    }
}
