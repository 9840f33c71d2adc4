//! The receiver: what is acknowledged and when.
//!
//! Follows tcp_input.c: tcp_event_data_recv() and __tcp_ack_snd_check() for delayed, quick and
//! compressed ACKs, tcp_sack_new_ofo_skb() for the order of SACK blocks, __tcp_cleanup_rbuf() for what
//! reading sets off.

use fullpipe_plan::AckPolicy;

use crate::packet::{Ack, Block, Data, MAX_BLOCKS};
use crate::reader::Absences;
use crate::receive_buffer::{Offer, ReceiveBuffer};
use crate::rules::Rules;
use crate::ticks::{expires_ns, Countdown};

const NS_PER_MS: u64 = 1_000_000;
/// Linux TCP_ATO_MIN, TCP_DELACK_MIN.
const ATO_MIN_NS: u64 = 40 * NS_PER_MS;
const MAX_QUICKACKS: u32 = 16;
/// Every ACK of a hole is sent until this many (TCP_FASTRETRANS_THRESH), then they are compressed.
const DUPACK_THRESHOLD: u32 = 3;
/// sysctl tcp_comp_sack_delay_ns and tcp_comp_sack_nr.
const COMPRESSION_NS: u64 = NS_PER_MS;
const COMPRESSION_COUNT: u32 = 44;
/// Retransmission timeout before any sample (RFC 6298), of which a fifth is Linux's least deviation;
/// and how often a closed socket repeats its FIN (sysctl tcp_orphan_retries).
const FIRST_TIMEOUT_NS: u64 = 1000 * NS_PER_MS;
const FIN_RETRIES: u32 = 8;

/// No timer runs.
const NEVER_NS: u64 = u64::MAX;

/// How a receiver says that packets came marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// A mark is repeated on every ACK until the sender says that it gave way (RFC 3168).
    #[default]
    Latched,
    /// Every ACK is of packets that were all marked or all not (DCTCP, RFC 8257 section 3.2).
    EachPacket,
    /// Every ACK says how many packets have come marked (RFC 9768): what its ACE field and the
    /// byte counters of its option tell of whole packets, modulo 256.
    Accurate,
}

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
    /// The application reads when so much waits (SO_RCVLOWAT).
    pub low_water_bytes: u32,
    /// What a packet and its ACK take the host, whose application only reads when no other follows
    /// meanwhile.
    pub work_ns: u64,
    /// When it is kept from reading; `None`: never.
    pub absences: Option<Absences>,
    /// Packets that arrive within this time are taken together (GRO); 0: each alone.
    pub aggregation_ns: u64,
    /// How it echoes marks.
    pub feedback: Feedback,
}

/// One connection's receiving end.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    next: u32,
    /// Nothing is unusual: of a packet that is expected little need be asked (header prediction,
    /// tcp_rcv_established()). `is_plain`: nor are the rules.
    is_predicted: bool,
    is_plain: bool,
    /// The application reads when so many wait.
    low_water_packets: u32,
    /// What arrived beyond a hole, ascending.
    beyond: Vec<Block>,
    /// Blocks to report, newest first.
    recent: Vec<Block>,
    duplicate: Option<Block>,
    /// What must be acknowledged before the packet that is being taken in.
    earlier: Option<Ack>,
    delivered_bytes: u64,
    /// What the last ACK acknowledged (rcv_wup).
    acked_next: u32,
    /// The next answer must not wait (ICSK_ACK_NOW).
    urgent: bool,
    /// A PSH has come since the last ACK (ICSK_ACK_PUSHED; of full packets since 6.6).
    pushed: bool,
    /// Timestamp to echo (ts_recent).
    echo_ns: u64,
    /// What the next ACK echoes; with accurate ECN whether the last packet came marked.
    ece: bool,
    /// Packets that came marked, and those of them that no ACK has told of.
    marks: u8,
    marks_untold: u32,
    quick: u32,
    /// How long an ACK may wait (icsk_ack.ato); 0 before the first packet.
    ato_ns: u64,
    last_data_ns: u64,
    delack: Countdown,
    compressed: u32,
    dupacks: u32,
    compressed_next: u32,
    compression_at_ns: u64,
    aggregate_at_ns: u64,
    /// When a reader was woken who has not read yet.
    woken_ns: u64,
    /// When a reader that is away will be back to read what has come meanwhile.
    read_at_ns: u64,
    /// One past the sender's FIN, once that is known.
    end: Option<u32>,
    closing: Closing,
    /// The handshake's, the only one that who sends no data has (tp->srtt_us).
    opening_rtt_ns: u64,
    buffer: ReceiveBuffer,
}

/// What a packet is answered with at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing: TCP has not heard of it yet.
    Gathered,
    Nothing,
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

/// This side's own FIN.
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
            buffer: ReceiveBuffer::new(&config),
            next: 0,
            is_predicted: false,
            low_water_packets: config.low_water_bytes.div_ceil(config.mss_bytes),
            is_plain: config.feedback == Feedback::Latched
                && config.ack_policy == AckPolicy::Linux
                && config.absences.is_none()
                && config.aggregation_ns == 0
                && config.work_ns == 0,
            beyond: Vec::with_capacity(64),
            recent: Vec::with_capacity(MAX_BLOCKS + 2),
            duplicate: None,
            earlier: None,
            delivered_bytes: 0,
            acked_next: 0,
            urgent: false,
            pushed: false,
            echo_ns: 0,
            ece: false,
            marks: 0,
            marks_untold: 0,
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
            opening_rtt_ns: u64::MAX,
            config,
        }
    }

    /// Payload that has arrived, each byte counted once.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// The first packet that has not arrived.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// The window it offers.
    pub fn window_bytes(&self) -> u64 {
        self.buffer.window_bytes()
    }

    /// When a timer of this receiver expires.
    pub fn timer_ns(&self) -> Option<u64> {
        let delack_ns = match self.delack.runs() {
            true => self.delack.expires_ns(),
            false => NEVER_NS,
        };
        let first_ns = delack_ns.min(self.others_expire_ns());
        (first_ns != NEVER_NS).then_some(first_ns)
    }

    /// No timer expires before; `u64::MAX`: none runs. Less work than to say when.
    #[inline]
    pub fn no_timer_before_ns(&self) -> u64 {
        self.delack.ends_ns().min(self.others_expire_ns())
    }

    #[inline]
    fn others_expire_ns(&self) -> u64 {
        let first_ns = self.compression_at_ns.min(self.aggregate_at_ns);
        first_ns.min(self.closing.timer_ns).min(self.read_at_ns)
    }

    /// A data packet arrived; returns the ACK that it causes at once, if any.
    #[inline]
    pub fn on_data(&mut self, now_ns: u64, data: &Data) -> Option<Ack> {
        let answer = self.take_in(now_ns, data);
        self.give(now_ns, answer)
    }

    /// Packets are answered as they come; the application, which they wake, reads after that.
    #[inline(always)] // as `on_data`
    fn give(&mut self, now_ns: u64, answer: Answer) -> Option<Ack> {
        match answer {
            Answer::Gathered => None,
            Answer::Nothing => self.read(now_ns).then(|| self.ack(now_ns)),
            Answer::Ack => {
                let offer = self.buffer.offer(self.next);
                self.wake(now_ns);
                Some(self.make_ack(now_ns, offer))
            }
            Answer::Fin => Some(self.close(now_ns)),
        }
    }

    /// The application is woken by what is acknowledged already: when it reads is seen when the next
    /// packet comes.
    #[inline]
    fn wake(&mut self, now_ns: u64) {
        if self.config.work_ns == 0 {
            self.read(now_ns);
        } else {
            self.woken_ns = now_ns;
        }
    }

    /// An application that was woken has read by now, unless its host has been busy since.
    #[inline]
    fn catch_up(&mut self, now_ns: u64) {
        let woken_ns = std::mem::replace(&mut self.woken_ns, NEVER_NS);
        if woken_ns != NEVER_NS && now_ns - woken_ns > self.config.work_ns {
            self.read(woken_ns);
        }
    }

    #[inline]
    fn take_in(&mut self, now_ns: u64, data: &Data) -> Answer {
        if !self.is_predicted || data.number != self.next || data.ce || data.fin {
            return self.take_any(now_ns, data);
        }
        self.buffer.measure_rtt(now_ns, data);
        self.take_next(now_ns, data);
        Answer::ack_if(self.decide_as_linux(now_ns))
    }

    /// What [`Self::take_in`] need not ask of every packet.
    #[inline(never)]
    fn take_any(&mut self, now_ns: u64, data: &Data) -> Answer {
        let answer = self.take_unpredicted(now_ns, data);
        self.is_predicted = self.is_plain && self.end.is_none() && !self.ece && !self.has_holes();
        answer
    }

    #[inline]
    fn take_unpredicted(&mut self, now_ns: u64, data: &Data) -> Answer {
        self.catch_up(now_ns);
        self.take_mark(now_ns, data);
        if data.fin {
            self.end = Some(data.number + 1);
        }
        self.buffer.measure_overhead();
        self.buffer.measure_rtt(now_ns, data);
        let in_order = data.number == self.next;
        if in_order {
            self.take_next(now_ns, data);
            if self.has_holes() {
                self.fill_hole();
            }
            if self.next > data.number + 1 {
                self.buffer.join(self.next);
            }
        } else if data.number < self.next || !self.take_beyond(data) {
            return self.take_duplicate(data.number);
        }
        if let Some(absences) = &self.config.absences {
            self.read_at_ns = absences.back_ns(now_ns).unwrap_or(self.read_at_ns);
        }
        if self.config.aggregation_ns > 0 && self.gathers(in_order, data) {
            if self.aggregate_at_ns == NEVER_NS {
                self.aggregate_at_ns = now_ns + self.config.aggregation_ns;
            }
            return Answer::Gathered;
        }
        self.answer(now_ns)
    }

    /// What was expected has come.
    #[inline]
    fn take_next(&mut self, now_ns: u64, data: &Data) {
        self.next += 1;
        self.delivered_bytes += u64::from(data.payload_bytes);
        self.note(data);
        self.event_data(now_ns);
        if self.buffer.take(data) {
            self.hurry();
        }
    }

    /// What a packet says that was not here before.
    #[inline]
    fn note(&mut self, data: &Data) {
        // RFC 7323 section 4.3 (tcp_store_ts_recent()): only what begins where the last ACK ended
        // is echoed, so a retransmission that fills a hole is, and what lies beyond is not.
        if data.number <= self.acked_next {
            self.echo_ns = data.departs_ns;
        }
        if data.push {
            self.note_push(data);
        }
    }

    #[inline(never)] // once a burst
    fn note_push(&mut self, data: &Data) {
        let is_short = data.payload_bytes < self.config.mss_bytes;
        self.pushed |= is_short || self.config.rules.acks_full_segments_with_psh();
    }

    /// What makes the window grow is acknowledged at once, to say so (tcp_grow_window()).
    #[inline(never)] // while it does
    fn hurry(&mut self) {
        self.quick |= 1;
    }

    /// It was here already.
    fn take_duplicate(&mut self, number: u32) -> Answer {
        self.duplicate = Some(Block {
            start: number,
            end: number + 1,
        });
        if number < self.next {
            // Its ACK may have been lost (tcp_enter_quickack_mode()).
            self.quick = self.quick.max(self.quickacks());
            self.ato_ns = ATO_MIN_NS;
        }
        Answer::Ack
    }

    /// A PSH or FIN ends what GRO gathers (tcp_gro_receive()).
    fn gathers(&self, in_order: bool, data: &Data) -> bool {
        let ends = data.push || data.fin;
        in_order && self.beyond.is_empty() && !self.urgent && !ends
    }

    /// An ACK that goes before the one which [`Self::on_data`] returned, if any.
    #[inline]
    pub fn take_earlier(&mut self) -> Option<Ack> {
        // Nearly always there is none, which is not worth moving a place for one.
        match self.earlier {
            None => None,
            Some(_) => self.earlier.take(),
        }
    }

    /// tcp_data_ecn_check(), tcp_ecn_accept_cwr(), dctcp_ece_ack_update().
    #[inline(always)] // most feedback is of one kind, in a line
    fn take_mark(&mut self, now_ns: u64, data: &Data) {
        match self.config.feedback {
            Feedback::Latched => self.ece = data.ce || self.ece && !data.cwr,
            Feedback::EachPacket => {
                if data.ce != self.ece {
                    if self.delack.runs() || self.aggregate_at_ns != NEVER_NS {
                        self.earlier = Some(self.ack(now_ns));
                    }
                    self.urgent = true;
                }
                // Whoever has just given way may have a packet in flight and no more.
                self.urgent |= data.cwr;
                self.ece = data.ce;
            }
            // RFC 9768 section 3.2.2.5.1: the first mark behind unmarked packets is told at once,
            // and so is the second one since an ACK.
            Feedback::Accurate => {
                self.urgent |= data.ce && (!self.ece || self.marks_untold > 0);
                self.marks = self.marks.wrapping_add(u8::from(data.ce));
                self.marks_untold += u32::from(data.ce);
                self.ece = data.ce;
            }
        }
    }

    /// A timer may have expired; returns the ACK that it causes, if any.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Ack> {
        self.catch_up(now_ns);
        if self.aggregate_at_ns <= now_ns {
            self.aggregate_at_ns = NEVER_NS;
            let answer = self.answer(now_ns);
            return self.give(now_ns, answer);
        }
        if self.compression_at_ns <= now_ns {
            return Some(self.ack(now_ns));
        }
        if self.read_at_ns <= now_ns {
            let answer = self.read_again(now_ns);
            return self.give(now_ns, answer);
        }
        if self.closing.timer_ns <= now_ns {
            self.closing.timer_ns = NEVER_NS;
            return (self.closing.sent <= FIN_RETRIES).then(|| self.close(now_ns));
        }
        if self.delack.runs() && self.delack.expires_ns() <= now_ns {
            // The application was slow: be as slow as the timer from now on, half as quick to
            // delay (tcp_delack_timer_handler()).
            self.ato_ns = ATO_MIN_NS;
            return Some(self.ack(now_ns));
        }
        None
    }

    /// Something lies beyond a hole, or did when the last packet came.
    fn has_holes(&self) -> bool {
        !self.recent.is_empty() || !self.beyond.is_empty()
    }

    /// What was expected has come: what waited for it has, too.
    #[inline(never)]
    fn fill_hole(&mut self) {
        if self
            .beyond
            .first()
            .is_some_and(|block| block.start == self.next)
        {
            self.next = self.beyond.remove(0).end;
            // RFC 5681 section 4.2: an ACK that fills the last hole goes at once.
            self.urgent = self.beyond.is_empty();
        }
        let next = self.next;
        self.recent.retain(|block| block.start > next);
    }

    /// Takes in a packet beyond a hole; false if it was here already.
    #[inline(never)]
    fn take_beyond(&mut self, data: &Data) -> bool {
        let is_new = self.extends_newest(data.number) || self.insert_beyond(data.number);
        if is_new {
            self.delivered_bytes += u64::from(data.payload_bytes);
            self.note(data);
            if self.buffer.take_beyond(data, self.next) {
                self.hurry();
            }
        }
        is_new
    }

    /// Most packets beyond a hole lie behind all others, and so did the one before: no block changes but
    /// the last, which is reported first already.
    #[inline]
    fn extends_newest(&mut self, number: u32) -> bool {
        match (self.beyond.last_mut(), self.recent.first_mut()) {
            (Some(last), Some(newest)) if last.end == number && newest.end == number => {
                last.end += 1;
                newest.end += 1;
                true
            }
            _ => false,
        }
    }

    /// False if it was here already.
    fn insert_beyond(&mut self, number: u32) -> bool {
        let at = self.beyond.partition_point(|block| block.end < number);
        let found = self.beyond.get(at).copied();
        let block = match found {
            Some(block) if block.start <= number && number < block.end => return false,
            Some(block) if block.end == number => {
                let mut grown = Block {
                    start: block.start,
                    end: number + 1,
                };
                if self
                    .beyond
                    .get(at + 1)
                    .is_some_and(|next| next.start == number + 1)
                {
                    grown.end = self.beyond.remove(at + 1).end;
                }
                self.beyond[at] = grown;
                grown
            }
            Some(block) if block.start == number + 1 => {
                self.beyond[at].start = number;
                self.beyond[at]
            }
            _ => {
                let single = Block {
                    start: number,
                    end: number + 1,
                };
                self.beyond.insert(at, single);
                single
            }
        };
        self.recent
            .retain(|known| known.end < block.start || known.start > block.end);
        self.recent.insert(0, block);
        self.recent.truncate(MAX_BLOCKS + 1);
        true
    }

    /// tcp_event_data_recv(): how long an ACK may wait.
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
                self.ato_ns = self.ato_ns / 2 + gap_ns;
            } else if gap_ns > self.timeout_ns() {
                // After a pause the sender is probably in slow start again.
                self.quick = self.quickacks();
            }
        }
        self.last_data_ns = now_ns;
    }

    /// Its own retransmission timeout (icsk_rto), of the handshake's RTT.
    fn timeout_ns(&self) -> u64 {
        match self.opening_rtt_ns {
            u64::MAX => FIRST_TIMEOUT_NS,
            rtt_ns => rtt_ns + FIRST_TIMEOUT_NS / 5,
        }
    }

    fn quickacks(&self) -> u32 {
        let packets = self.window_bytes() / (2 * u64::from(self.config.mss_bytes));
        (packets as u32).clamp(2, MAX_QUICKACKS)
    }

    /// The last packet of the connection arrived: the sender knows that this side is closed.
    pub fn on_last_ack(&mut self) {
        self.closing.is_done = true;
        self.closing.timer_ns = NEVER_NS;
    }

    /// The application has read to the end and closes: its FIN acknowledges the sender's.
    fn close(&mut self, now_ns: u64) -> Ack {
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

    /// Nobody who reads is away.
    #[inline(always)] // as `answer`
    fn is_read(&self) -> bool {
        self.read_at_ns == NEVER_NS
    }

    /// Who reads is back, and reads all that waits.
    #[inline(never)] // rare
    fn read_again(&mut self, now_ns: u64) -> Answer {
        self.read_at_ns = NEVER_NS;
        self.buffer.read(now_ns, self.next);
        if self.end == Some(self.next) {
            return Answer::Fin;
        }
        Answer::ack_if(self.is_ack_left())
    }

    #[inline]
    fn answer(&mut self, now_ns: u64) -> Answer {
        if self.end == Some(self.next) && self.is_read() {
            return Answer::Fin;
        }
        Answer::ack_if(self.decide(now_ns))
    }

    /// The application reads what waits in order, if it is there and that is enough for it; true: it wants
    /// that acknowledged.
    #[inline]
    fn read(&mut self, now_ns: u64) -> bool {
        if !self.waits_enough() || !self.is_read() {
            return false;
        }
        self.buffer.read(now_ns, self.next);
        self.is_ack_left()
    }

    /// What waits in order is enough for the application to read it.
    #[inline]
    fn waits_enough(&self) -> bool {
        self.next - self.buffer.read_next() >= self.low_water_packets
    }

    /// __tcp_cleanup_rbuf(): more than a packet is not acknowledged, or one with PSH was the last.
    fn is_ack_left(&self) -> bool {
        self.next - self.acked_next > 1 || self.pushed && self.has_read_all()
    }

    /// A reader that has emptied the buffer behind a PSH says so.
    fn has_read_all(&self) -> bool {
        let is_news = self.beyond.is_empty() && self.next != self.acked_next;
        is_news && self.config.ack_policy == AckPolicy::Linux
    }

    /// __tcp_ack_snd_check(): now, compressed, or later.
    #[inline(always)] // as `answer`
    fn decide(&mut self, now_ns: u64) -> bool {
        let unacked_packets = self.next - self.acked_next;
        match self.config.ack_policy {
            AckPolicy::EveryPacket => true,
            AckPolicy::EverySecond => {
                let echoes = self.urgent && self.config.feedback != Feedback::Latched;
                // Beyond a hole at once (RFC 5681 section 4.2): it knows no compression.
                if unacked_packets > 1 || echoes || !self.beyond.is_empty() {
                    return true;
                }
                self.delay_ack(now_ns, ATO_MIN_NS);
                false
            }
            AckPolicy::Linux => self.decide_as_linux(now_ns),
        }
    }

    #[inline]
    fn decide_as_linux(&mut self, now_ns: u64) -> bool {
        let unacked_packets = self.next - self.acked_next;
        if unacked_packets > 1 && self.has_room() || self.quick > 0 || self.urgent {
            return true;
        }
        if self.beyond.is_empty() {
            self.delay_ack(now_ns, self.ato_ns.max(ATO_MIN_NS));
            return false;
        }
        self.compresses(now_ns)
    }

    /// What nobody has read yet takes from the window: where it has no room for as much as was offered,
    /// the ACK is left to who reads.
    #[inline]
    fn has_room(&self) -> bool {
        match self.config.window_bytes {
            Some(_) => self.is_read(),
            None => !self.waits_enough() || self.buffer.has_room(),
        }
    }

    /// An ACK waits, behind none that does already.
    #[inline]
    fn delay_ack(&mut self, now_ns: u64, wait_ns: u64) {
        if !self.delack.runs() {
            self.delack = Countdown { now_ns, wait_ns };
        }
    }

    /// tcp_sack_compress_send_ack(): of the ACKs of a hole only the first go at once; false: it waits.
    #[inline(never)] // rare
    fn compresses(&mut self, now_ns: u64) -> bool {
        if self.compressed_next != self.next {
            self.compressed_next = self.next;
            self.dupacks = 0;
        }
        if self.dupacks < DUPACK_THRESHOLD {
            self.dupacks += 1;
            return true;
        }
        self.compressed += 1;
        if self.compressed >= COMPRESSION_COUNT {
            return true;
        }
        if self.compression_at_ns == NEVER_NS {
            self.compression_at_ns = now_ns + self.compression_ns();
        }
        false
    }

    /// A part of the RTT, and by how much its timer may be late and is where nothing else wakes the
    /// processor (sysctl tcp_comp_sack_rtt_percent, before a twentieth; tcp_comp_sack_slack_ns).
    fn compression_ns(&self) -> u64 {
        let rtt_ns = self.buffer.rtt_ns().min(self.opening_rtt_ns);
        let rules = self.config.rules;
        let part_ns = rtt_ns * rules.comp_sack_rtt_percent() / 100;
        COMPRESSION_NS.min(part_ns) + rules.comp_sack_slack_ns()
    }

    #[inline(never)] // but for what most data are answered with
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
                Feedback::Accurate => self.marks,
                _ => u8::from(self.ece),
            },
            echo_ns: self.echo_ns,
            sent_ns: now_ns,
            ..Ack::default()
        };
        if let Some(block) = self.duplicate {
            self.duplicate = None;
            ack.dsack = true;
            ack.blocks[0] = block;
            ack.count = 1;
        }
        for block in &self.recent {
            if usize::from(ack.count) == MAX_BLOCKS {
                break;
            }
            ack.blocks[usize::from(ack.count)] = *block;
            ack.count += 1;
        }
        self.acked_next = self.next;
        self.urgent = false;
        self.marks_untold = 0;
        self.pushed = false;
        if self.quick > 0 {
            self.quick -= 1;
            // Leaving (tcp_dec_quickack_mode()): where a packet beyond a hole was the first of all, no
            // quick ACKs of the start follow.
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

    /// The handshake is done; its RTT, if it was measured.
    pub fn establish(&mut self, now_ns: u64, rtt_ns: Option<u64>) {
        self.opening_rtt_ns = rtt_ns.unwrap_or(u64::MAX);
        self.last_data_ns = now_ns;
        self.buffer.establish(now_ns);
    }
}
