//! The receiver: what it acknowledges, and when.
//!
//! Follows tcp_input.c: tcp_event_data_recv() and __tcp_ack_snd_check() for delayed, quick and
//! compressed ACKs, tcp_sack_new_ofo_skb() for the order of SACK blocks; and __tcp_cleanup_rbuf() of tcp.c
//! for ACKs that reading causes.

mod buffer;
mod reader_stalls;

use fullpipe_plan::AckPolicy;
use fullpipe_ticks::expires_ns;

use self::buffer::{Offer, ReceiveBuffer};
pub use self::reader_stalls::ReaderStalls;
use crate::countdown::Countdown;
use crate::packet::{Ack, Block, Data, EcnFeedback, MAX_BLOCKS};
use crate::rules::Rules;

const NS_PER_MS: u64 = 1_000_000;
/// Linux TCP_ATO_MIN, TCP_DELACK_MIN.
const ATO_MIN_NS: u64 = 40 * NS_PER_MS;
/// Linux TCP_DELACK_MAX.
const DELACK_MAX_NS: u64 = 200 * NS_PER_MS;
const MAX_QUICKACKS: u32 = 16;
/// Duplicate ACKs that are sent at once before compression begins (TCP_FASTRETRANS_THRESH).
const DUPACK_THRESHOLD: u32 = 3;
/// SACK blocks that a receiver remembers (TCP_NUM_SACKS), and those of which an ACK that compression holds
/// back is not expected to forget any (TCP_SACK_BLOCKS_EXPECTED).
const KEPT_BLOCKS: usize = 4;
const EXPECTED_BLOCKS: usize = 2;
/// sysctl tcp_comp_sack_delay_ns and tcp_comp_sack_nr.
const COMPRESSION_NS: u64 = NS_PER_MS;
const COMPRESSION_COUNT: u32 = 44;
/// Retransmission timeout before any sample (RFC 6298); Linux's least deviation is a fifth of it. Retries
/// of a closed socket's FIN (sysctl tcp_orphan_retries).
const FIRST_TIMEOUT_NS: u64 = 1000 * NS_PER_MS;
const FIN_RETRIES: u32 = 8;

/// No timer runs.
const NEVER_NS: u64 = u64::MAX;

/// How a receiver is set up.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Payload of a full packet.
    pub mss_bytes: u32,
    /// When it acknowledges.
    pub ack_policy: AckPolicy,
    /// What its kernel does.
    pub rules: Rules,
    /// Fixed window; `None`: autotuned.
    pub window_bytes: Option<u64>,
    /// Ceiling of autotuning.
    pub rmem_max_bytes: u64,
    /// SO_RCVLOWAT: the application reads when this much is queued.
    pub rcvlowat_bytes: u32,
    /// Processor time of a packet and its ACK. The application reads only if no other packet arrives in
    /// this time.
    pub work_ns: u64,
    /// When the application stalls; `None`: never.
    pub reader_stalls: Option<ReaderStalls>,
    /// Packets that arrive within this time are processed together (GRO); 0: each alone.
    pub aggregation_ns: u64,
    /// How it reports ECN marks.
    pub feedback: EcnFeedback,
}

/// One connection's receiving end.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    next: u32,
    /// The next packet in order takes the fast path (header prediction, tcp_rcv_established()).
    is_predicted: bool,
    /// The configuration allows the fast path.
    allows_prediction: bool,
    /// SO_RCVLOWAT in packets.
    low_water_packets: u32,
    /// Packets beyond a hole, ascending.
    out_of_order: Vec<Block>,
    /// The blocks that ACKs report, newest first (selective_acks); with more holes than these some are
    /// forgotten.
    sack_blocks: Vec<Block>,
    /// DSACK to report; the next packet clears it.
    dsack: Option<Block>,
    /// An ACK to send before the one that the current packet causes.
    preceding_ack: Option<Ack>,
    delivered_bytes: u64,
    /// `next` of the last ACK (rcv_wup).
    acked_next: u32,
    /// The next ACK must not be delayed (ICSK_ACK_NOW).
    urgent: bool,
    /// A PSH arrived since the last ACK (ICSK_ACK_PUSHED).
    pushed: bool,
    /// Timestamp to echo (ts_recent).
    echo_ns: u64,
    /// ECE of the next ACK; with accurate ECN whether the last packet was marked.
    ece: bool,
    /// Marked packets, modulo 256, and those not reported yet.
    marks: u8,
    unreported_marks: u32,
    quick: u32,
    /// How long an ACK may be delayed (icsk_ack.ato); 0 before the first packet.
    ato_ns: u64,
    last_data_ns: u64,
    delack: Countdown,
    compressed: u32,
    dupacks: u32,
    compressed_next: u32,
    compression_at_ns: u64,
    aggregate_at_ns: u64,
    /// When the application was woken, if it has not read yet.
    woken_ns: u64,
    /// When a stalled application will read.
    read_at_ns: u64,
    /// One past the sender's FIN, once that has arrived.
    end: Option<u32>,
    closing: Closing,
    /// RTT of the handshake, the only sample of an end that sends no data (tp->srtt_us).
    handshake_rtt_ns: u64,
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

/// The receiver's own FIN.
#[derive(Clone, Copy, Debug)]
struct Closing {
    sent: u32,
    timer_ns: u64,
    is_done: bool,
}

impl Receiver {
    /// A receiver of an established connection.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            buffer: ReceiveBuffer::new(
                config.mss_bytes.into(),
                config.rules,
                config.window_bytes,
                config.rmem_max_bytes,
            ),
            next: 0,
            is_predicted: false,
            low_water_packets: config.rcvlowat_bytes.div_ceil(config.mss_bytes),
            allows_prediction: config.feedback == EcnFeedback::Latched
                && config.ack_policy == AckPolicy::Linux
                && config.reader_stalls.is_none()
                && config.aggregation_ns == 0
                && config.work_ns == 0,
            out_of_order: Vec::with_capacity(64),
            sack_blocks: Vec::with_capacity(KEPT_BLOCKS + 1),
            dsack: None,
            preceding_ack: None,
            delivered_bytes: 0,
            acked_next: 0,
            urgent: false,
            pushed: false,
            echo_ns: 0,
            ece: false,
            marks: 0,
            unreported_marks: 0,
            quick: 0,
            ato_ns: 0,
            last_data_ns: 0,
            delack: Countdown::NEVER,
            compressed: 0,
            dupacks: 0,
            compressed_next: 0,
            compression_at_ns: NEVER_NS,
            aggregate_at_ns: NEVER_NS,
            woken_ns: NEVER_NS,
            read_at_ns: NEVER_NS,
            end: None,
            closing: Closing {
                sent: 0,
                timer_ns: NEVER_NS,
                is_done: false,
            },
            handshake_rtt_ns: u64::MAX,
            config,
        }
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
        let delack_ns = match self.delack.runs() {
            true => self.delack.expires_ns(),
            false => NEVER_NS,
        };
        let first_ns = delack_ns.min(self.other_timers_ns());
        (first_ns != NEVER_NS).then_some(first_ns)
    }

    /// A lower bound of [`Self::timer_ns`], cheaper to compute; `u64::MAX`: no timer runs.
    #[inline]
    pub fn timer_lower_bound_ns(&self) -> u64 {
        self.delack.lower_bound_ns().min(self.other_timers_ns())
    }

    #[inline]
    fn other_timers_ns(&self) -> u64 {
        let first_ns = self.compression_at_ns.min(self.aggregate_at_ns);
        first_ns.min(self.closing.timer_ns).min(self.read_at_ns)
    }

    /// A data packet arrived; returns the ACK that it causes at once, if any.
    #[inline]
    pub fn on_data(&mut self, now_ns: u64, data: &Data) -> Option<Ack> {
        let answer = self.receive(now_ns, data);
        self.respond(now_ns, answer)
    }

    /// Sends the ACK, then lets the application read.
    #[inline(always)] // as `on_data`
    fn respond(&mut self, now_ns: u64, answer: Answer) -> Option<Ack> {
        match answer {
            Answer::HeldByGro | Answer::Flushed => None,
            Answer::Nothing => self.read(now_ns).then(|| self.ack(now_ns)),
            Answer::Ack => {
                let offer = self.buffer.offer(self.next);
                self.wake(now_ns);
                Some(self.make_ack(now_ns, offer))
            }
            Answer::Fin => Some(self.send_fin(now_ns)),
        }
    }

    /// Wakes the application. With packet costs, whether it reads is only known when the next packet
    /// arrives.
    #[inline]
    fn wake(&mut self, now_ns: u64) {
        if self.config.work_ns == 0 {
            self.read(now_ns);
        } else {
            self.woken_ns = now_ns;
        }
    }

    /// An application that was woken has read by now, unless its host was busy since.
    #[inline]
    fn read_since_woken(&mut self, now_ns: u64) {
        let woken_ns = std::mem::replace(&mut self.woken_ns, NEVER_NS);
        if woken_ns != NEVER_NS && now_ns - woken_ns > self.config.work_ns {
            self.read(woken_ns);
        }
    }

    #[inline]
    fn receive(&mut self, now_ns: u64, data: &Data) -> Answer {
        if !self.is_predicted || data.number != self.next || data.ce || data.fin {
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
        self.is_predicted =
            self.allows_prediction && self.end.is_none() && !self.ece && !self.has_holes();
        answer
    }

    #[inline]
    fn receive_any(&mut self, now_ns: u64, data: &Data) -> Answer {
        self.read_since_woken(now_ns);
        self.process_mark(now_ns, data);
        if data.fin {
            self.end = Some(data.number + 1);
        }
        self.dsack = None;
        self.buffer.measure_scaling_ratio();
        self.buffer.measure_rtt(now_ns, data);
        let in_order = data.number == self.next;
        if in_order {
            self.receive_in_order(now_ns, data);
            if self.has_holes() {
                self.fill_hole();
            }
            if self.next > data.number + 1 {
                self.buffer.merge_out_of_order(self.next);
            }
        } else if data.number < self.next {
            return self.receive_duplicate(data.number);
        } else if self.receive_out_of_order(now_ns, data) {
            return Answer::Flushed;
        }
        if let Some(stalls) = &self.config.reader_stalls {
            self.read_at_ns = stalls.end_ns(now_ns).unwrap_or(self.read_at_ns);
        }
        if self.config.aggregation_ns > 0 && self.is_held_by_gro(in_order, data) {
            if self.aggregate_at_ns == NEVER_NS {
                self.aggregate_at_ns = now_ns + self.config.aggregation_ns;
            }
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
        self.event_data(now_ns);
        if self.buffer.receive_in_order(data) {
            self.ack_window_growth();
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
        self.pushed |= is_short || self.config.rules.acks_full_segments_with_psh();
    }

    /// A packet that makes the window grow is acknowledged at once (tcp_grow_window()).
    #[inline(never)] // until the window has grown
    fn ack_window_growth(&mut self) {
        self.quick |= 1;
    }

    /// A packet that was acknowledged before: the ACK may have been lost (tcp_enter_quickack_mode()).
    fn receive_duplicate(&mut self, number: u32) -> Answer {
        self.dsack = Some(Block::of(number));
        self.quick = self.quick.max(self.quickacks());
        self.ato_ns = ATO_MIN_NS;
        Answer::Ack
    }

    /// Whether GRO holds the packet back; PSH and FIN flush it (tcp_gro_receive()).
    fn is_held_by_gro(&self, in_order: bool, data: &Data) -> bool {
        let ends = data.push || data.fin;
        in_order && self.out_of_order.is_empty() && !self.urgent && !ends
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

    /// tcp_data_ecn_check(), tcp_ecn_accept_cwr(), dctcp_ece_ack_update().
    #[inline(always)] // short for most connections
    fn process_mark(&mut self, now_ns: u64, data: &Data) {
        match self.config.feedback {
            EcnFeedback::Latched => self.ece = data.ce || self.ece && !data.cwr,
            EcnFeedback::EachPacket => {
                if data.ce != self.ece {
                    if self.delack.runs() || self.aggregate_at_ns != NEVER_NS {
                        self.preceding_ack = Some(self.ack(now_ns));
                    }
                    self.urgent = true;
                }
                // A sender that has just reduced its window may have only one packet in flight.
                self.urgent |= data.cwr;
                self.ece = data.ce;
            }
            // RFC 9768 section 3.2.2.5.1: the first mark after unmarked packets is reported at once, and so
            // is the second mark since an ACK.
            EcnFeedback::Accurate => {
                self.urgent |= data.ce && (!self.ece || self.unreported_marks > 0);
                self.marks = self.marks.wrapping_add(u8::from(data.ce));
                self.unreported_marks += u32::from(data.ce);
                self.ece = data.ce;
            }
        }
    }

    /// A timer may have expired; returns the ACK that it causes, if any.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Ack> {
        self.read_since_woken(now_ns);
        if self.aggregate_at_ns <= now_ns {
            self.aggregate_at_ns = NEVER_NS;
            let answer = self.answer(now_ns);
            return self.respond(now_ns, answer);
        }
        if self.compression_at_ns <= now_ns {
            return Some(self.ack(now_ns));
        }
        if self.read_at_ns <= now_ns {
            let answer = self.read_after_stall(now_ns);
            return self.respond(now_ns, answer);
        }
        if self.closing.timer_ns <= now_ns {
            self.closing.timer_ns = NEVER_NS;
            return (self.closing.sent <= FIN_RETRIES).then(|| self.send_fin(now_ns));
        }
        if self.delack.runs() && self.delack.expires_ns() <= now_ns {
            // tcp_delack_timer_handler(): a delayed ACK that no second packet hastened.
            let longest_ns = self.timeout_ns().min(DELACK_MAX_NS);
            self.ato_ns = (2 * self.ato_ns).min(longest_ns);
            return Some(self.ack(now_ns));
        }
        None
    }

    /// Whether there are packets beyond a hole, or were before the last packet.
    fn has_holes(&self) -> bool {
        !self.sack_blocks.is_empty() || !self.out_of_order.is_empty()
    }

    /// The expected packet arrived: packets beyond the hole it filled are in order now.
    #[inline(never)]
    fn fill_hole(&mut self) {
        if self
            .out_of_order
            .first()
            .is_some_and(|block| block.start == self.next)
        {
            self.next = self.out_of_order.remove(0).end;
            // RFC 5681 section 4.2: the ACK of a packet that fills the last hole is sent at once.
            self.urgent |= self.out_of_order.is_empty();
        }
        let next = self.next;
        self.sack_blocks.retain(|block| block.start > next);
    }

    /// A packet beyond a hole arrived (tcp_data_queue_ofo()); true if that made the receiver send an ACK
    /// that it had held back.
    #[inline(never)]
    fn receive_out_of_order(&mut self, now_ns: u64, data: &Data) -> bool {
        let is_new = self.insert_out_of_order(data.number);
        if !is_new {
            self.dsack = Some(Block::of(data.number));
        }
        let is_flushed = self.touch_block(now_ns, data.number);
        if is_new {
            self.delivered_bytes += u64::from(data.payload_bytes);
            self.process_header(data);
            if self.buffer.receive_out_of_order(data, self.next) {
                self.ack_window_growth();
            }
        }
        is_flushed
    }

    /// False if it arrived before.
    fn insert_out_of_order(&mut self, number: u32) -> bool {
        // Mostly it extends the highest block.
        if let Some(last) = self
            .out_of_order
            .last_mut()
            .filter(|last| last.end == number)
        {
            last.end += 1;
            return true;
        }
        let at = self
            .out_of_order
            .partition_point(|block| block.end < number);
        match self.out_of_order.get_mut(at) {
            Some(block) if block.start <= number && number < block.end => return false,
            Some(block) if block.end == number => {
                block.end += 1;
                let following = self.out_of_order.get(at + 1).copied();
                if let Some(next) = following.filter(|next| next.start == number + 1) {
                    self.out_of_order[at].end = next.end;
                    self.out_of_order.remove(at + 1);
                }
            }
            Some(block) if block.start == number + 1 => block.start = number,
            _ => self.out_of_order.insert(at, Block::of(number)),
        }
        true
    }

    /// tcp_sack_new_ofo_skb(): puts the block with the packet first, and forgets the oldest one if there are
    /// too many. Of a block that was forgotten only the packet is reported. If ACKs are held back, one is
    /// sent before a block beyond the second is moved or the third is pushed down, since the next ACK may
    /// have no room for what this one reports; true then.
    fn touch_block(&mut self, now_ns: u64, number: u32) -> bool {
        let touches = |block: &Block| block.start <= number + 1 && number <= block.end;
        let found = self.sack_blocks.iter().position(touches);
        let at = found.unwrap_or(self.sack_blocks.len());
        let mut block = Block::of(number);
        if let Some(known) = found.map(|at| &mut self.sack_blocks[at]) {
            known.start = known.start.min(number);
            known.end = known.end.max(number + 1);
            block = *known;
            if at == 0 && self.sack_blocks.len() == 1 {
                return false;
            }
        }
        let is_flushed = at >= EXPECTED_BLOCKS && self.compressed > 0;
        if is_flushed {
            self.preceding_ack = Some(self.ack(now_ns));
        }
        // tcp_sack_maybe_coalesce(): the packet may have closed the hole between two blocks.
        self.sack_blocks.retain(|known| {
            let is_apart = known.end < block.start || known.start > block.end;
            if !is_apart {
                block.start = block.start.min(known.start);
                block.end = block.end.max(known.end);
            }
            is_apart
        });
        self.sack_blocks.truncate(KEPT_BLOCKS - 1);
        self.sack_blocks.insert(0, block);
        is_flushed
    }

    /// tcp_event_data_recv(): adapts how long ACKs may be delayed.
    #[inline]
    fn event_data(&mut self, now_ns: u64) {
        if self.ato_ns == 0 {
            self.quick = self.quickacks();
            self.ato_ns = ATO_MIN_NS;
        } else {
            let gap_ns = now_ns - self.last_data_ns;
            if gap_ns <= ATO_MIN_NS / 2 {
                self.ato_ns = self.ato_ns / 2 + ATO_MIN_NS / 2;
            } else if gap_ns < self.ato_ns {
                let longest_ns = self.timeout_ns().min(DELACK_MAX_NS);
                self.ato_ns = (self.ato_ns / 2 + gap_ns).min(longest_ns);
            } else if gap_ns > self.timeout_ns() {
                // After a pause the sender is probably in slow start again.
                self.quick = self.quickacks();
            }
        }
        self.last_data_ns = now_ns;
    }

    /// The receiver's own retransmission timeout (icsk_rto), from the handshake's RTT.
    fn timeout_ns(&self) -> u64 {
        match self.handshake_rtt_ns {
            u64::MAX => FIRST_TIMEOUT_NS,
            rtt_ns => rtt_ns + FIRST_TIMEOUT_NS / 5,
        }
    }

    fn quickacks(&self) -> u32 {
        let packets = self.window_bytes() / (2 * u64::from(self.config.mss_bytes));
        (packets as u32).clamp(2, MAX_QUICKACKS)
    }

    /// The ACK of the receiver's FIN arrived.
    pub fn on_last_ack(&mut self) {
        self.closing.is_done = true;
        self.closing.timer_ns = NEVER_NS;
    }

    /// The application has read everything and closes: a FIN that acknowledges the sender's.
    fn send_fin(&mut self, now_ns: u64) -> Ack {
        if !self.closing.is_done {
            let wait_ns = self.timeout_ns() << self.closing.sent;
            self.closing.timer_ns = expires_ns(now_ns, wait_ns);
            self.closing.sent += 1;
        }
        Ack {
            fin: true,
            ..self.ack(now_ns)
        }
    }

    /// Whether the application is not stalled.
    #[inline(always)] // as `answer`
    fn is_reading(&self) -> bool {
        self.read_at_ns == NEVER_NS
    }

    /// A stall has ended: the application reads everything.
    #[inline(never)] // rare
    fn read_after_stall(&mut self, now_ns: u64) -> Answer {
        self.read_at_ns = NEVER_NS;
        self.buffer.read(now_ns, self.next);
        if self.end == Some(self.next) {
            return Answer::Fin;
        }
        Answer::ack_if(self.reading_causes_ack())
    }

    #[inline]
    fn answer(&mut self, now_ns: u64) -> Answer {
        if self.end == Some(self.next) && self.is_reading() {
            return Answer::Fin;
        }
        Answer::ack_if(self.acks_now(now_ns))
    }

    /// The application reads if it can; true if that causes an ACK.
    #[inline]
    fn read(&mut self, now_ns: u64) -> bool {
        if !self.is_readable() || !self.is_reading() {
            return false;
        }
        self.buffer.read(now_ns, self.next);
        self.reading_causes_ack()
    }

    /// Whether SO_RCVLOWAT is reached.
    #[inline]
    fn is_readable(&self) -> bool {
        self.next - self.buffer.read_next() >= self.low_water_packets
    }

    /// __tcp_cleanup_rbuf(): more than one packet is unacknowledged, or the last one had PSH.
    fn reading_causes_ack(&self) -> bool {
        self.next - self.acked_next > 1 || self.pushed && self.has_read_all()
    }

    /// Whether reading has emptied the buffer.
    fn has_read_all(&self) -> bool {
        let is_new = self.out_of_order.is_empty() && self.next != self.acked_next;
        is_new && self.config.ack_policy == AckPolicy::Linux
    }

    /// __tcp_ack_snd_check(): whether to send an ACK now; else it may be delayed or compressed.
    #[inline(always)] // as `answer`
    fn acks_now(&mut self, now_ns: u64) -> bool {
        let unacked_packets = self.next - self.acked_next;
        match self.config.ack_policy {
            AckPolicy::EveryPacket => true,
            AckPolicy::EverySecond => {
                let echoes = self.urgent && self.config.feedback != EcnFeedback::Latched;
                // Packets beyond a hole at once (RFC 5681 section 4.2), without compression.
                if unacked_packets > 1 || echoes || !self.out_of_order.is_empty() {
                    return true;
                }
                self.delay_ack(now_ns, ATO_MIN_NS);
                false
            }
            AckPolicy::Linux => self.acks_now_as_linux(now_ns),
        }
    }

    #[inline]
    fn acks_now_as_linux(&mut self, now_ns: u64) -> bool {
        let unacked_packets = self.next - self.acked_next;
        if unacked_packets > 1 && self.keeps_window() || self.quick > 0 || self.urgent {
            return true;
        }
        if self.out_of_order.is_empty() {
            self.delay_ack(now_ns, self.delayed_ack_ns());
            return false;
        }
        self.acks_hole_now(now_ns)
    }

    /// Whether the window is as large as the one advertised last. If unread data reduce it, the ACK waits
    /// until the application reads.
    #[inline]
    fn keeps_window(&self) -> bool {
        match self.config.window_bytes {
            Some(_) => self.is_reading(),
            None => !self.is_readable() || self.buffer.keeps_window(),
        }
    }

    /// tcp_send_delayed_ack(): the ATO, but no more than an RTT if that is known, and at least its minimum.
    #[inline]
    fn delayed_ack_ns(&self) -> u64 {
        match self.ato_ns > ATO_MIN_NS {
            true => self.ato_ns.min(self.longest_delayed_ack_ns()),
            false => ATO_MIN_NS,
        }
    }

    #[inline(never)] // packets are mostly closer together
    fn longest_delayed_ack_ns(&self) -> u64 {
        self.handshake_rtt_ns.clamp(ATO_MIN_NS, DELACK_MAX_NS)
    }

    /// Delays an ACK, unless one is delayed already.
    #[inline]
    fn delay_ack(&mut self, now_ns: u64, wait_ns: u64) {
        if !self.delack.runs() {
            self.delack = Countdown {
                set_ns: now_ns,
                wait_ns,
            };
        }
    }

    /// tcp_sack_compress_send_ack(): the first duplicate ACKs are sent at once, later ones are compressed;
    /// false: it waits.
    #[inline(never)] // rare
    fn acks_hole_now(&mut self, now_ns: u64) -> bool {
        if self.compressed >= COMPRESSION_COUNT {
            return true;
        }
        if self.compressed_next != self.next {
            self.compressed_next = self.next;
            self.dupacks = 0;
        }
        if self.dupacks < DUPACK_THRESHOLD {
            self.dupacks += 1;
            return true;
        }
        self.compressed += 1;
        if self.compression_at_ns == NEVER_NS {
            self.compression_at_ns = now_ns + self.compression_ns();
        }
        false
    }

    /// A part of the RTT plus the timer's slack, as an idle processor uses all of it.
    fn compression_ns(&self) -> u64 {
        let rtt_ns = self.buffer.rtt_ns().min(self.handshake_rtt_ns);
        let rules = self.config.rules;
        let part_ns = rtt_ns * rules.comp_sack_rtt_percent() / 100;
        COMPRESSION_NS.min(part_ns) + rules.comp_sack_slack_ns()
    }

    #[inline(never)] // the fast path has its own copy
    fn ack(&mut self, now_ns: u64) -> Ack {
        let offer = self.buffer.offer(self.next);
        self.make_ack(now_ns, offer)
    }

    #[inline(always)]
    fn make_ack(&mut self, now_ns: u64, offer: Offer) -> Ack {
        if offer.is_short {
            self.quick = 0;
        }
        let mut ack = Ack {
            next: self.next,
            window_bytes: offer.window_bytes,
            marks: match self.config.feedback {
                EcnFeedback::Accurate => self.marks,
                _ => u8::from(self.ece),
            },
            echo_ns: self.echo_ns,
            sent_ns: now_ns,
            ..Ack::default()
        };
        if let Some(block) = self.dsack {
            self.dsack = None;
            ack.dsack = true;
            ack.blocks[0] = block;
            ack.count = 1;
        }
        for block in &self.sack_blocks {
            if usize::from(ack.count) == MAX_BLOCKS {
                break;
            }
            ack.blocks[usize::from(ack.count)] = *block;
            ack.count += 1;
        }
        self.acked_next = self.next;
        self.urgent = false;
        self.unreported_marks = 0;
        self.pushed = false;
        if self.quick > 0 {
            self.quick -= 1;
            // tcp_dec_quickack_mode(). A connection whose first packet arrived beyond a hole gets no quick
            // ACKs of its start.
            if self.quick == 0 {
                self.ato_ns = ATO_MIN_NS;
            }
        }
        self.delack = Countdown::NEVER;
        self.compression_at_ns = NEVER_NS;
        self.aggregate_at_ns = NEVER_NS;
        self.compressed = 0;
        ack
    }

    /// The handshake is done; `rtt_ns` is its RTT, if it was measured.
    pub fn establish(&mut self, now_ns: u64, rtt_ns: Option<u64>) {
        self.handshake_rtt_ns = rtt_ns.unwrap_or(u64::MAX);
        self.last_data_ns = now_ns;
        self.buffer.establish(now_ns);
    }
}
