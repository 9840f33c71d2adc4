//! The receiver: what it acknowledges, and when. It owns the parts, each of which owns its state.
//!
//! Follows tcp_input.c: tcp_data_queue(), tcp_event_data_recv() and __tcp_ack_snd_check(); and
//! __tcp_cleanup_rbuf() of tcp.c for ACKs that reading causes.

mod aggregation;
mod buffer;
mod closing;
mod compression;
mod config;
mod delayed_ack;
mod ecn_echo;
mod reader;
mod reader_stalls;
mod sacks;

use fullpipe_plan::AckPolicy;

use crate::packet::{Ack, Data, EcnFeedback};

use self::aggregation::Aggregation;
use self::buffer::{Offer, ReceiveBuffer};
use self::closing::Closing;
use self::compression::Compression;
use self::delayed_ack::{DelayedAck, ATO_MIN_NS, MAX_QUICKACKS};
use self::ecn_echo::EcnEcho;
use self::reader::Reader;
use self::sacks::SackList;

pub use self::config::ReceiverConfig;
pub use self::reader_stalls::ReaderStalls;

/// No timer runs.
const NEVER_NS: u64 = u64::MAX;
/// Sysctl tcp_invalid_ratelimit.
const INVALID_RATELIMIT_NS: u64 = 500_000_000;

/// One connection's receiving end.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    /// The next packet expected (rcv_nxt), and `next` of the last ACK (rcv_wup).
    next: u32,
    acked_next: u32,
    delivered_bytes: u64,
    /// Timestamp to echo (ts_recent).
    echo_ns: u64,
    /// The next packet in order takes the fast path (header prediction, tcp_rcv_established()).
    is_predicted: bool,
    /// The configuration allows the fast path.
    allows_prediction: bool,
    /// An ACK to send before the one that the current packet causes.
    preceding_ack: Option<Ack>,
    /// When a window probe was answered last (last_oow_ack_time).
    probe_answered_ns: Option<u64>,
    sacks: SackList,
    delay: DelayedAck,
    compression: Compression,
    echo: EcnEcho,
    aggregation: Aggregation,
    reader: Reader,
    closing: Closing,
    buffer: ReceiveBuffer,
}

/// What a packet causes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// GRO holds the packet back.
    HeldByGro,
    Nothing,
    /// An ACK was sent that compression had held back, instead of this packet's.
    Flushed,
    Ack,
    /// An ACK with this side's FIN.
    Fin,
}

impl Answer {
    #[inline]
    fn ack_if(is_due: bool) -> Self {
        match is_due {
            true => Self::Ack,
            false => Self::Nothing,
        }
    }
}

impl Receiver {
    /// A receiver of an established connection.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            next: 0,
            acked_next: 0,
            delivered_bytes: 0,
            echo_ns: 0,
            is_predicted: false,
            allows_prediction: config.feedback == EcnFeedback::Latched
                && config.ack_policy == AckPolicy::Linux
                && config.reader_stalls.is_none()
                && config.aggregation_ns == 0
                && config.work_ns == 0,
            preceding_ack: None,
            probe_answered_ns: None,
            sacks: SackList::new(),
            delay: DelayedAck::new(config.mss_bytes),
            compression: Compression::new(config.rules),
            echo: EcnEcho::new(config.feedback),
            aggregation: Aggregation::new(config.aggregation_ns),
            reader: Reader::new(&config),
            closing: Closing::new(),
            buffer: ReceiveBuffer::new(
                config.mss_bytes.into(),
                config.rules,
                config.window_bytes,
                config.rmem_max_bytes,
            ),
            config,
        }
    }

    /// The handshake is done; `rtt_ns` is its RTT, if it was measured.
    pub fn establish(&mut self, now_ns: u64, rtt_ns: Option<u64>) {
        self.delay.established(now_ns, rtt_ns);
        self.buffer.establish(now_ns);
    }

    /// Payload that arrived, each byte counted once.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// The next packet expected in order.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// The advertised window.
    pub fn window_bytes(&self) -> u64 {
        self.buffer.window_bytes()
    }

    /// When the next timer expires.
    pub fn timer_ns(&self) -> Option<u64> {
        let first_ns = self.delay.expires_ns().min(self.other_timers_ns());
        (first_ns != NEVER_NS).then_some(first_ns)
    }

    /// A lower bound of [`Self::timer_ns`], cheaper to compute; `u64::MAX`: no timer runs.
    #[inline]
    pub fn timer_lower_bound_ns(&self) -> u64 {
        self.delay.lower_bound_ns().min(self.other_timers_ns())
    }

    #[inline]
    fn other_timers_ns(&self) -> u64 {
        let acks_ns = self.compression.at_ns().min(self.aggregation.until_ns());
        let others_ns = self.closing.timer_ns().min(self.reader.resumes_ns());
        acks_ns.min(others_ns)
    }

    /// A data packet arrived; returns the ACK that it causes at once, if any.
    #[inline]
    pub fn on_data(&mut self, now_ns: u64, data: &Data) -> Option<Ack> {
        let answer = self.receive(now_ns, data);
        self.respond(now_ns, answer)
    }

    /// An ACK to be sent before the one that [`Self::on_data`] returned, if any.
    #[inline]
    pub fn take_preceding_ack(&mut self) -> Option<Ack> {
        // Mostly there is none: avoids moving an empty `Option<Ack>`.
        match self.preceding_ack {
            None => None,
            Some(_) => self.preceding_ack.take(),
        }
    }

    /// A timer may have expired; returns the ACK that it causes, if any.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Ack> {
        self.read_since_woken(now_ns);
        if self.aggregation.until_ns() <= now_ns {
            self.aggregation.release();
            let answer = self.answer(now_ns);
            return self.respond(now_ns, answer);
        }
        if self.compression.at_ns() <= now_ns {
            return Some(self.ack(now_ns));
        }
        if self.reader.resumes_ns() <= now_ns {
            let answer = self.read_after_stall(now_ns);
            return self.respond(now_ns, answer);
        }
        if self.closing.timer_ns() <= now_ns {
            return self.closing.expired().then(|| self.send_fin(now_ns));
        }
        if self.delay.expires_ns() <= now_ns {
            self.delay.expired();
            return Some(self.ack(now_ns));
        }
        None
    }

    /// The ACK of the receiver's FIN arrived.
    pub fn on_last_ack(&mut self) {
        self.closing.acked();
    }

    /// Sends the ACK, then lets the application read.
    #[inline(always)] // as `on_data`
    fn respond(&mut self, now_ns: u64, answer: Answer) -> Option<Ack> {
        match answer {
            Answer::HeldByGro | Answer::Flushed => None,
            Answer::Nothing => self.read(now_ns).then(|| self.ack(now_ns)),
            Answer::Ack => {
                let offer = self.buffer.offer(self.next);
                if self.reader.wake(now_ns) {
                    self.read(now_ns);
                }
                Some(self.make_ack(now_ns, offer))
            }
            Answer::Fin => Some(self.send_fin(now_ns)),
        }
    }

    #[inline]
    fn receive(&mut self, now_ns: u64, data: &Data) -> Answer {
        let is_ordinary = data.number == self.next && !data.fin && self.echo.is_ordinary(data);
        if !self.is_predicted || !is_ordinary {
            return self.receive_unpredicted(now_ns, data);
        }
        self.buffer.measure_rtt(now_ns, data);
        self.receive_in_order(now_ns, data);
        Answer::ack_if(self.acks_now_as_linux(now_ns))
    }

    /// The slow path of [`Self::receive`].
    #[inline(never)]
    fn receive_unpredicted(&mut self, now_ns: u64, data: &Data) -> Answer {
        let answer = self.receive_any(now_ns, data);
        let is_quiet = !self.closing.has_begun() && !self.echo.is_echoing();
        self.is_predicted = self.allows_prediction && is_quiet && !self.sacks.has_holes();
        answer
    }

    #[inline]
    fn receive_any(&mut self, now_ns: u64, data: &Data) -> Answer {
        self.read_since_woken(now_ns);
        if data.number < self.next {
            return self.receive_duplicate(now_ns, data);
        }
        let is_quick = self.process_mark(now_ns, data);
        if data.fin {
            self.closing.fin_arrived(data.number);
        }
        self.sacks.forget_duplicate();
        self.buffer.measure_scaling_ratio();
        self.buffer.measure_rtt(now_ns, data);
        let in_order = data.number == self.next;
        if in_order {
            self.receive_in_order(now_ns, data);
            if self.sacks.has_holes() {
                self.fill_hole();
            }
            if self.next > data.number + 1 {
                self.buffer.merge_out_of_order(self.next);
            }
        } else if self.receive_out_of_order(now_ns, data, is_quick) {
            return Answer::Flushed;
        }
        if in_order && is_quick {
            self.hurry_two_acks();
        }
        self.reader.data_arrived(now_ns);
        if self.aggregation.is_on() && self.is_held_by_gro(in_order, data) {
            self.aggregation.hold(now_ns);
            return Answer::HeldByGro;
        }
        self.answer(now_ns)
    }

    /// The expected packet arrived.
    #[inline]
    fn receive_in_order(&mut self, now_ns: u64, data: &Data) {
        self.next += 1;
        self.delivered_bytes += u64::from(data.payload_bytes);
        self.process_header(data);
        self.delay.data_arrived(now_ns, self.buffer.window_bytes());
        if self.buffer.receive_in_order(data) {
            self.delay.hurry_window();
        }
    }

    /// Timestamp and PSH of a new packet.
    #[inline]
    fn process_header(&mut self, data: &Data) {
        // RFC 7323 section 4.3 (tcp_store_ts_recent()): only packets that start at or before the last ACK
        // are echoed, so a retransmission that fills a hole is, and packets beyond a hole are not.
        if data.number <= self.acked_next {
            self.echo_ns = data.departs_ns;
        }
        if data.push {
            self.process_push(data);
        }
    }

    #[inline(never)] // once a burst
    fn process_push(&mut self, data: &Data) {
        let is_short = data.payload_bytes < self.config.mss_bytes;
        if is_short || self.config.rules.acks_full_segments_with_psh() {
            self.delay.push();
        }
    }

    /// A packet that was acknowledged before: the ACK may have been lost.
    fn receive_duplicate(&mut self, now_ns: u64, data: &Data) -> Answer {
        if data.is_window_probe() {
            return Answer::ack_if(self.answers_probe(now_ns));
        }
        self.echo.take_duplicate(data);
        if data.fin {
            self.closing.fin_arrived(data.number);
        }
        self.sacks.forget_duplicate();
        self.buffer.measure_scaling_ratio();
        self.buffer.measure_rtt(now_ns, data);
        self.sacks.report_duplicate(data.number);
        self.delay
            .enter_quick_mode(self.buffer.window_bytes(), MAX_QUICKACKS);
        Answer::Ack
    }

    /// tcp_oow_rate_limited(): of packets without data, which may be part of a loop of ACKs, one in half a second
    /// is answered.
    fn answers_probe(&mut self, now_ns: u64) -> bool {
        let answers = self
            .probe_answered_ns
            .is_none_or(|last_ns| now_ns - last_ns >= INVALID_RATELIMIT_NS);
        if answers {
            self.probe_answered_ns = Some(now_ns);
        }
        answers
    }

    /// A mark, or the lack of one, asks for two ACKs without delay (tcp_data_ecn_check()).
    #[inline(never)] // once a reduction of the sender's window
    fn hurry_two_acks(&mut self) {
        self.delay.enter_quick_mode(self.buffer.window_bytes(), 2);
    }

    /// Packets beyond the hole that the expected packet filled are in order now.
    #[inline(never)]
    fn fill_hole(&mut self) {
        let next = self.sacks.fill_hole(self.next);
        // RFC 5681 section 4.2: the ACK of a packet that fills the last hole is sent at once.
        if next > self.next && self.sacks.is_empty() {
            self.delay.hurry();
        }
        self.next = next;
    }

    /// A packet beyond a hole arrived (tcp_data_queue_ofo()); true if that made the receiver send an ACK
    /// that it had held back.
    #[inline(never)]
    fn receive_out_of_order(&mut self, now_ns: u64, data: &Data, is_quick: bool) -> bool {
        if is_quick {
            self.hurry_two_acks();
        }
        let is_new = self.sacks.insert(data.number);
        if !is_new {
            self.sacks.report_duplicate(data.number);
        }
        let touched = self.sacks.touch(data.number);
        // The next ACK may have no room for what the one that is held back reports.
        let is_flushed = touched.hides_others() && self.compression.is_holding();
        if is_flushed {
            self.preceding_ack = Some(self.ack(now_ns));
        }
        self.sacks.report_first(touched);
        if is_new {
            self.delivered_bytes += u64::from(data.payload_bytes);
            self.process_header(data);
            if self.buffer.receive_out_of_order(data, self.next) {
                self.delay.hurry_window();
            }
        }
        is_flushed
    }

    /// Whether GRO holds the packet back; PSH and FIN flush it (tcp_gro_receive()).
    fn is_held_by_gro(&self, in_order: bool, data: &Data) -> bool {
        let ends = data.push || data.fin;
        in_order && self.sacks.is_empty() && !self.delay.is_urgent() && !ends
    }

    /// An ECN mark, or that there is none. True if it and the next packet are acknowledged at once.
    #[inline(always)] // short for most connections
    fn process_mark(&mut self, now_ns: u64, data: &Data) -> bool {
        let haste = self.echo.haste(data);
        if haste.flushes && (self.delay.is_delaying() || self.aggregation.is_holding()) {
            self.preceding_ack = Some(self.ack(now_ns));
        }
        if haste.is_urgent {
            self.delay.hurry();
        }
        self.echo.take(data);
        haste.is_quick
    }

    /// The application has read everything and closes: a FIN that acknowledges the sender's.
    fn send_fin(&mut self, now_ns: u64) -> Ack {
        self.closing.fin_sent(now_ns, self.delay.timeout_ns());
        Ack {
            fin: true,
            ..self.ack(now_ns)
        }
    }

    /// An application that was woken has read by now, unless its host was busy since.
    #[inline]
    fn read_since_woken(&mut self, now_ns: u64) {
        if let Some(woken_ns) = self.reader.take_woken(now_ns) {
            self.read(woken_ns);
        }
    }

    /// A stall has ended: the application reads everything. An ACK announces a window that opens, even if
    /// everything was acknowledged.
    #[inline(never)] // rare
    fn read_after_stall(&mut self, now_ns: u64) -> Answer {
        self.reader.resume();
        self.buffer.read(now_ns, self.next);
        if self.closing.has_all(self.next) {
            return Answer::Fin;
        }
        Answer::ack_if(self.reading_causes_ack() || self.buffer.has_opened(self.next))
    }

    /// The application reads if it can; true if that causes an ACK.
    #[inline]
    fn read(&mut self, now_ns: u64) -> bool {
        if !self.is_readable() || !self.reader.is_reading() {
            return false;
        }
        self.buffer.read(now_ns, self.next);
        self.reading_causes_ack()
    }

    /// Whether SO_RCVLOWAT is reached.
    #[inline]
    fn is_readable(&self) -> bool {
        self.reader.reads(self.next - self.buffer.read_next())
    }

    /// __tcp_cleanup_rbuf(): more than one packet is unacknowledged, the last one had PSH, or the window can
    /// be twice what is left of it.
    fn reading_causes_ack(&self) -> bool {
        let unacked = self.next - self.acked_next;
        unacked > 1
            || self.has_read_all()
                && (self.delay.was_pushed() || self.buffer.reading_doubles_window(unacked))
    }

    /// Whether reading has emptied the buffer.
    fn has_read_all(&self) -> bool {
        let is_new = self.sacks.is_empty() && self.next != self.acked_next;
        is_new && self.config.ack_policy == AckPolicy::Linux
    }

    #[inline]
    fn answer(&mut self, now_ns: u64) -> Answer {
        if self.closing.has_all(self.next) && self.reader.is_reading() {
            return Answer::Fin;
        }
        Answer::ack_if(self.acks_now(now_ns))
    }

    /// __tcp_ack_snd_check(): whether to send an ACK now; else it may be delayed or compressed.
    #[inline(always)] // as `answer`
    fn acks_now(&mut self, now_ns: u64) -> bool {
        let unacked_packets = self.next - self.acked_next;
        match self.config.ack_policy {
            AckPolicy::EveryPacket => true,
            AckPolicy::EverySecond => {
                let echoes = self.delay.is_urgent() && !self.echo.is_latched();
                // Packets beyond a hole at once (RFC 5681 section 4.2), without compression.
                if unacked_packets > 1 || echoes || !self.sacks.is_empty() {
                    return true;
                }
                self.delay.delay(now_ns, ATO_MIN_NS);
                false
            }
            AckPolicy::Linux => self.acks_now_as_linux(now_ns),
        }
    }

    #[inline]
    fn acks_now_as_linux(&mut self, now_ns: u64) -> bool {
        let unacked_packets = self.next - self.acked_next;
        if unacked_packets > 1 && self.keeps_window() || self.delay.acks_at_once() {
            return true;
        }
        if self.sacks.is_empty() {
            self.delay.delay(now_ns, self.delay.wait_ns());
            return false;
        }
        self.acks_hole_now(now_ns)
    }

    /// The same while packets lie beyond a hole.
    #[inline(never)] // rare
    fn acks_hole_now(&mut self, now_ns: u64) -> bool {
        let rtt_ns = || self.buffer.rtt_ns().min(self.delay.handshake_rtt_ns());
        self.compression.acks_now(now_ns, self.next, rtt_ns)
    }

    /// Whether the window is as large as the one advertised last. If unread data reduce it, the ACK waits
    /// until the application reads.
    #[inline]
    fn keeps_window(&self) -> bool {
        match self.config.window_bytes {
            Some(_) => self.reader.is_reading(),
            None => !self.is_readable() || self.buffer.keeps_window(),
        }
    }

    #[inline(never)] // the fast path has its own copy
    fn ack(&mut self, now_ns: u64) -> Ack {
        let offer = self.buffer.offer(self.next);
        self.make_ack(now_ns, offer)
    }

    #[inline(always)]
    fn make_ack(&mut self, now_ns: u64, offer: Offer) -> Ack {
        if offer.is_short {
            self.delay.leave_quick_mode();
        }
        let mut ack = Ack {
            next: self.next,
            window_bytes: offer.window_bytes,
            marks: self.echo.report(),
            echo_ns: self.echo_ns,
            sent_ns: now_ns,
            ..Ack::default()
        };
        self.sacks.report(&mut ack);
        self.acked_next = self.next;
        self.delay.ack_sent();
        self.compression.ack_sent();
        self.aggregation.release();
        ack
    }
}
