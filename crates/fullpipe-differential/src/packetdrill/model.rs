//! The simulator's TCP with a socket around it, as far as programs need one.

use std::collections::BTreeMap;

use fullpipe_cc::{algorithm, set, Controller};
use fullpipe_plan::{AckPolicy, CcFacts, Kernel, Pacing, RateRestart};
use fullpipe_tcp::{
    Ack, Block, Burst, Client, Data, EcnFeedback, Established, HandshakePacket, Receiver,
    ReceiverConfig, Rules, Sender, SenderConfig, Server, MAX_BLOCKS,
};

use super::answer::Answer;
use super::connection::Connection;
use super::machine::{Halt, Machine, Returned, Until};
use super::peer_data::PeerData;
use super::program::{Call, Program};
use super::run::run;
use super::segment::{Segment, ACK, CWR, ECE, FIN, PSH, RST, SYN};
use super::settings::{Settings, Sockets};

/// When a program begins: a time at which all levels of the timer wheel turn.
const START_NS: u64 = 4_096 * 4_000_000;
/// Defaults of kernels.
const INITIAL_CWND: u32 = 10;
const WMEM_MAX_BYTES: u64 = 4 << 20;
const PACING_SHIFT: u8 = 10;
const GSO_MAX_SEGMENTS: u32 = 44;
const NS_PER_MS: u64 = 1_000_000;

/// The simulator's TCP.
pub(super) struct Model {
    rules: Rules,
    pub(super) settings: Settings,
    pub(super) sockets: Sockets,
    data: PeerData,
    /// When this end's SYN or SYN-ACK was sent.
    syn_ns: u64,
    /// The number behind what was sent (snd_nxt).
    next: u32,
    now_ns: u64,
    opening: Opening,
    connection: Connection,
    ends: Option<Ends>,
    bursts: Vec<Burst>,
    sent: Vec<Segment>,
    /// When packets were sent, by timestamp.
    stamps: BTreeMap<u32, u64>,
    pub(super) returned: Option<(u64, Returned)>,
    pub(super) blocked: Option<Call>,
    /// Payload that the application has read.
    pub(super) read_bytes: u64,
}

/// The handshake at this end.
enum Opening {
    None,
    Passive(Server),
    Active(Client),
}

/// Both directions of the connection.
struct Ends {
    sender: Sender,
    receiver: Receiver,
}

/// The answer of the model of a kernel.
pub fn play(program: &Program, kernel: Kernel) -> Answer {
    match Model::new(program, kernel) {
        Ok(mut model) => run(program, &mut model),
        Err(sentence) => Answer::unsupported(program, sentence),
    }
}

impl Model {
    /// The model of a kernel. The error says what the simulator has not.
    fn new(program: &Program, kernel: Kernel) -> Result<Self, String> {
        let settings = Settings::of(program)?;
        Ok(Self {
            rules: Rules::from(kernel),
            sockets: Sockets::default(),
            data: PeerData::of(program),
            syn_ns: START_NS,
            next: 1,
            now_ns: START_NS,
            opening: Opening::None,
            connection: Connection::offered(settings.offer),
            settings,
            ends: None,
            bursts: Vec::new(),
            sent: Vec::new(),
            stamps: BTreeMap::new(),
            returned: None,
            blocked: None,
            read_bytes: 0,
        })
    }

    pub(super) fn listen(&mut self) {
        self.opening = Opening::Passive(Server::default());
    }

    pub(super) fn connect(&mut self) {
        let mut client = Client::new(self.settings.requests_ecn);
        let syn = client.connect(self.now_ns);
        self.opening = Opening::Active(client);
        self.hand_down(Some(syn));
    }

    pub(super) fn is_established(&self) -> bool {
        let ends = self.ends.as_ref();
        ends.is_some_and(|ends| ends.sender.is_established())
    }

    /// The application writes.
    pub(super) fn write(&mut self, bytes: u64) {
        if let Some(ends) = &mut self.ends {
            ends.sender.write_bytes(bytes);
        }
        self.transmit();
    }

    /// The application has no more to write.
    pub(super) fn finish(&mut self) {
        if let Some(ends) = &mut self.ends {
            ends.sender.stop();
        }
        self.transmit();
    }

    /// Payload that the application can read.
    pub(super) fn readable_bytes(&self) -> u64 {
        let arrived = self.ends.as_ref().map_or(0, |ends| {
            u64::from(self.data.start(ends.receiver.next_number()))
        });
        arrived - self.read_bytes
    }

    fn stamp(&self, at_ns: u64) -> u32 {
        (at_ns / NS_PER_MS) as u32
    }

    /// The next number that this end expects of the peer.
    fn next_of_peer(&self) -> u32 {
        let next = self
            .ends
            .as_ref()
            .map_or(0, |ends| self.data.start(ends.receiver.next_number()));
        next.wrapping_add(1)
    }

    fn timer_ns(&self) -> Option<u64> {
        let opening_ns = match &self.opening {
            Opening::None => None,
            Opening::Passive(server) => server.timer_ns(),
            Opening::Active(client) => client.timer_ns(),
        };
        match &self.ends {
            Some(ends) if ends.sender.is_established() => {
                let times = [ends.sender.timer_ns(), ends.receiver.timer_ns()];
                times.into_iter().flatten().min()
            }
            _ => opening_ns,
        }
    }

    fn expire(&mut self, at_ns: u64) {
        self.now_ns = at_ns.max(self.now_ns);
        let now_ns = self.now_ns;
        if let Some(ends) = self
            .ends
            .as_mut()
            .filter(|ends| ends.sender.is_established())
        {
            if ends
                .receiver
                .timer_ns()
                .is_some_and(|due_ns| due_ns <= now_ns)
            {
                let ack = ends.receiver.on_timer(now_ns);
                self.acknowledge(ack);
            } else {
                ends.sender.on_timer(now_ns, &mut self.bursts);
                self.collect();
            }
            return;
        }
        let again = match &mut self.opening {
            Opening::None => None,
            Opening::Passive(server) => server.on_timer(now_ns),
            Opening::Active(client) => client.on_timer(now_ns),
        };
        if let (Opening::Active(_), Some(ends)) = (&self.opening, &mut self.ends) {
            ends.sender.syn_timed_out();
        }
        self.hand_down(again);
    }

    /// A packet of the handshake leaves.
    fn hand_down(&mut self, packet: Option<HandshakePacket>) {
        let stamp = self.stamp(self.now_ns);
        let (flags, options, window, ack) = match packet {
            None => return,
            Some(HandshakePacket::Syn { ecn, .. }) => (
                SYN | if ecn { ECE | CWR } else { 0 },
                self.connection.syn_options(stamp),
                self.connection.first_window(false),
                0,
            ),
            Some(HandshakePacket::SynAck { ecn, .. }) => (
                SYN | ACK | if ecn { ECE } else { 0 },
                self.connection.syn_options(stamp),
                self.connection.first_window(true),
                1,
            ),
            Some(HandshakePacket::Ack { .. }) => (
                ACK,
                self.connection.options(stamp, Vec::new()),
                self.own_window(),
                1,
            ),
        };
        if flags & SYN != 0 {
            self.syn_ns = self.now_ns;
        }
        self.send(Segment {
            flags,
            sequence: u32::from(flags & SYN == 0),
            ack,
            window,
            options,
            ..Segment::default()
        });
    }

    fn own_window(&self) -> u16 {
        let ends = self.ends.as_ref();
        let bytes = ends.map_or_else(
            || self.connection.first_window(false).into(),
            |ends| ends.receiver.window_bytes(),
        );
        self.connection.own_window(bytes)
    }

    fn send(&mut self, segment: Segment) {
        if let Some((stamp, _)) = segment.timestamps() {
            self.stamps.entry(stamp).or_insert(self.now_ns);
        }
        self.next = self.next.max(segment.end());
        let at_us = self.now_us();
        self.sent.push(Segment { at_us, ..segment });
    }

    fn transmit(&mut self) {
        let now_ns = self.now_ns;
        if let Some(ends) = self
            .ends
            .as_mut()
            .filter(|ends| ends.sender.is_established())
        {
            ends.sender.transmit(now_ns, &mut self.bursts);
        }
        self.collect();
    }

    /// What the sender has handed down leaves.
    fn collect(&mut self) {
        for burst in std::mem::take(&mut self.bursts) {
            for data in burst.packets() {
                let segment = self.segment(&data);
                self.send(segment);
            }
        }
    }

    fn segment(&self, data: &Data) -> Segment {
        let sender = self.ends.as_ref().map(|ends| &ends.sender);
        let start = sender.map_or(0, |sender| sender.sequence_of(data)) as u32;
        let flag = |bit, is_set: bool| if is_set { bit } else { 0 };
        Segment {
            ecn: match (data.ect, data.l4s) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => 2,
            },
            flags: ACK | flag(PSH, data.push) | flag(FIN, data.fin) | flag(CWR, data.cwr),
            sequence: start.wrapping_add(1),
            bytes: data.payload_bytes,
            ack: self.next_of_peer(),
            window: self.own_window(),
            options: self.connection.options(self.stamp(self.now_ns), Vec::new()),
            at_us: 0,
        }
    }

    /// The receiver's ACK leaves.
    fn acknowledge(&mut self, ack: Option<Ack>) {
        let Some(ack) = ack else { return };
        let bytes = |number: u32| self.data.start(number).wrapping_add(1);
        let blocks = &ack.blocks[..usize::from(ack.count)];
        let blocks = blocks
            .iter()
            .map(|block| (bytes(block.start), bytes(block.end)));
        let sack = if self.connection.has_sack() {
            blocks.collect()
        } else {
            Vec::new()
        };
        let ece = if ack.marks > 0 { ECE } else { 0 };
        self.send(Segment {
            flags: ACK | ece,
            sequence: self.next,
            ack: bytes(ack.next),
            window: self.connection.own_window(ack.window_bytes),
            options: self.connection.options(self.stamp(self.now_ns), sack),
            ..Segment::default()
        });
    }

    /// When a packet was sent whose timestamp comes back; 0: there are no timestamps.
    fn echo_ns(&self, segment: &Segment) -> u64 {
        match segment.timestamps() {
            Some((_, echo)) if self.connection.timestamps => self
                .stamps
                .get(&echo)
                .copied()
                .unwrap_or(u64::from(echo) * NS_PER_MS),
            _ => 0,
        }
    }

    /// The peer's clock, by its timestamps if it has them.
    fn sent_ns(&self, segment: &Segment) -> u64 {
        match segment.timestamps() {
            Some((value, _)) if self.connection.timestamps => u64::from(value) * NS_PER_MS,
            _ => self.now_ns,
        }
    }

    fn ends(&self) -> Result<Ends, Halt> {
        let payload_bytes = self.connection.payload_bytes();
        let cc = &self.settings.cc;
        let missing = || Halt::Unsupported(format!("congestion control {cc}"));
        let chosen = set(cc).ok_or_else(missing)?;
        let known = algorithm(chosen.algorithm).ok_or_else(missing)?;
        let controller = Controller::new(known, &chosen.values);
        let controller = controller.map_err(|error| Halt::Unsupported(error.to_string()))?;
        let sender = SenderConfig {
            mss_bytes: payload_bytes,
            pacing: Pacing::Internal,
            pacing_shift: PACING_SHIFT,
            gso_max_segments: GSO_MAX_SEGMENTS,
            rules: self.rules,
            facts: CcFacts::Stock,
            rate_restart: RateRestart::Unacknowledged,
            initial_cwnd: INITIAL_CWND,
            wmem_max_bytes: WMEM_MAX_BYTES,
            notsent_lowat_bytes: self.settings.sysctl.tcp_notsent_lowat.map(u64::from),
            max_pacing_bytes_per_s: u64::MAX,
            sysctl: self.settings.sysctl,
            nodelay: self.settings.nodelay,
            ecn: self.settings.accepts_ecn,
            feedback: EcnFeedback::Latched,
            l4s: false,
            seed: 1,
            amount_bytes: None,
            written_by_application: true,
        };
        let receiver = ReceiverConfig {
            mss_bytes: self.data.largest().unwrap_or(payload_bytes),
            ack_policy: AckPolicy::Linux,
            rules: self.rules,
            window_bytes: None,
            rmem_max_bytes: self.settings.offer.buffer_max_bytes.into(),
            rcvlowat_bytes: 1,
            work_ns: 0,
            reader_stalls: None,
            aggregation_ns: 0,
            feedback: EcnFeedback::Latched,
        };
        Ok(Ends {
            sender: Sender::new(sender, controller),
            receiver: Receiver::new(receiver),
        })
    }

    fn take_syn(&mut self, segment: &Segment) -> Result<(), Halt> {
        if segment.bytes > 0 {
            return Err(Halt::Unsupported("data in a SYN".to_owned()));
        }
        let agreed = Connection::new(segment, self.settings.offer);
        let asks_for_ecn = segment.has(ECE) && segment.has(CWR);
        let syn = HandshakePacket::Syn {
            sent_ns: u64::from(agreed.recent) * NS_PER_MS,
            ecn: asks_for_ecn && self.settings.accepts_ecn,
        };
        self.connection = agreed;
        if self.ends.is_none() {
            self.ends = Some(self.ends()?);
        }
        let window_bytes = agreed.first_window(true).into();
        let now_ns = self.now_ns;
        let answer = match &mut self.opening {
            Opening::Passive(server) => server.on_syn(now_ns, &syn, window_bytes),
            _ => return Err(Halt::Unsupported("a SYN to no listener".to_owned())),
        };
        self.hand_down(answer);
        Ok(())
    }

    fn take_syn_ack(&mut self, segment: &Segment) -> Result<(), Halt> {
        self.connection = Connection::new(segment, self.settings.offer);
        if self.ends.is_none() {
            self.ends = Some(self.ends()?);
        }
        let syn_ack = HandshakePacket::SynAck {
            sent_ns: u64::from(self.connection.recent) * NS_PER_MS,
            echo_ns: match self.connection.timestamps {
                true => self.echo_ns(segment),
                false => self.syn_ns,
            },
            ecn: segment.has(ECE) && !segment.has(CWR),
            window_bytes: segment.window.into(),
        };
        let now_ns = self.now_ns;
        let Opening::Active(client) = &mut self.opening else {
            return Err(Halt::Unsupported("a SYN-ACK to a listener".to_owned()));
        };
        let opened = client.on_syn_ack(now_ns, &syn_ack);
        self.hand_down(Some(Client::answer(now_ns, &syn_ack, 0)));
        self.establish(opened);
        Ok(())
    }

    fn establish(&mut self, opened: Option<Established>) {
        let (Some(opened), Some(ends)) = (opened, &mut self.ends) else {
            return;
        };
        ends.sender.establish(self.now_ns, &opened);
        ends.receiver.establish(self.now_ns, Some(opened.rtt_ns));
        self.transmit();
    }

    /// The ACK that completes a passive opening.
    fn complete(&mut self, segment: &Segment) {
        let completing = HandshakePacket::Ack {
            sent_ns: self.sent_ns(segment),
            echo_ns: match self.connection.timestamps {
                true => self.echo_ns(segment),
                false => self.syn_ns,
            },
            window_bytes: self.connection.peer_window_bytes(segment.window),
        };
        let now_ns = self.now_ns;
        if let Opening::Passive(server) = &mut self.opening {
            let opened = server.on_ack(now_ns, &completing);
            self.establish(opened);
        }
    }

    fn take_ack(&mut self, segment: &Segment) -> Result<(), Halt> {
        let wire = self.ack(segment)?;
        let now_ns = self.now_ns;
        if let Some(ends) = &mut self.ends {
            ends.sender.on_ack(now_ns, &wire);
        }
        Ok(())
    }

    /// A packet's acknowledgement as the sender knows it.
    fn ack(&self, segment: &Segment) -> Result<Ack, Halt> {
        let Some(ends) = &self.ends else {
            return Err(Halt::Unsupported("an ACK before the SYN".to_owned()));
        };
        let packet_at = |byte: u32| {
            let number = ends.sender.packet_at(u64::from(byte.wrapping_sub(1)));
            number.ok_or_else(|| Halt::Unsupported("an ACK of a part of a packet".to_owned()))
        };
        let sack = segment.sack();
        if sack.len() > MAX_BLOCKS {
            return Err(Halt::Unsupported("four SACK blocks".to_owned()));
        }
        let next = packet_at(segment.ack)?;
        let repeats = next == ends.sender.snd_una() && ends.sender.inflight() > 0;
        if repeats && segment.bytes == 0 && !self.connection.has_sack() {
            return Err(Halt::Unsupported("duplicate ACKs without SACK".to_owned()));
        }
        let mut ack = Ack {
            next,
            dsack: is_dsack(segment.ack, sack),
            count: sack.len() as u8,
            marks: segment.has(ECE).into(),
            window_bytes: self.connection.peer_window_bytes(segment.window),
            echo_ns: self.echo_ns(segment),
            sent_ns: self.sent_ns(segment),
            ..Ack::default()
        };
        for (slot, &(start, end)) in ack.blocks.iter_mut().zip(sack) {
            *slot = Block {
                start: packet_at(start)?,
                end: packet_at(end)?,
            };
        }
        Ok(ack)
    }

    fn take_data(&mut self, segment: &Segment) -> Result<Option<Ack>, Halt> {
        let start = segment.sequence.wrapping_sub(1);
        let data = Data {
            number: self.data.packet(start, segment.bytes)?,
            payload_bytes: segment.bytes,
            departs_ns: self.sent_ns(segment),
            echo_ns: self.echo_ns(segment),
            leads_burst: true,
            cwr: segment.has(CWR),
            push: segment.has(PSH),
            ect: segment.ecn > 0,
            ce: segment.ecn == 3,
            ..Data::default()
        };
        let now_ns = self.now_ns;
        let answer = self
            .ends
            .as_mut()
            .and_then(|ends| ends.receiver.on_data(now_ns, &data));
        let before = self
            .ends
            .as_mut()
            .and_then(|ends| ends.receiver.take_preceding_ack());
        self.acknowledge(before);
        Ok(answer)
    }

    fn note_stamp(&mut self, segment: &Segment) {
        // RFC 7323 section 4.3.
        let is_next = segment.sequence <= self.next_of_peer();
        if let Some((value, _)) = segment.timestamps().filter(|_| is_next) {
            if value.wrapping_sub(self.connection.recent) as i32 >= 0 {
                self.connection.recent = value;
            }
        }
    }

    /// A packet to the connection, or the one that completes it.
    fn take_packet(&mut self, segment: &Segment) -> Result<(), Halt> {
        self.note_stamp(segment);
        if !self.is_established() {
            self.complete(segment);
            if segment.bytes == 0 {
                return Ok(());
            }
        }
        self.take_ack(segment)?;
        let answer = match segment.bytes {
            0 => None,
            _ => self.take_data(segment)?,
        };
        let before = self.sent.len();
        self.transmit();
        // Data carry the ACK.
        let carries = self.sent[before..].iter().any(|sent| sent.bytes > 0);
        self.acknowledge(answer.filter(|_| !carries));
        Ok(())
    }
}

/// Below the number acknowledged, or within the second block (RFC 2883 section 4, tcp_check_dsack()).
fn is_dsack(ack: u32, sack: &[(u32, u32)]) -> bool {
    match *sack {
        [first, ..] if first.0 < ack => true,
        [first, second, ..] => first.1 <= second.1 && first.0 >= second.0,
        _ => false,
    }
}

impl Machine for Model {
    fn now_us(&self) -> u64 {
        (self.now_ns - START_NS) / 1000
    }

    fn advance(&mut self, until_us: u64, until: Until) -> Result<(), Halt> {
        let until_ns = START_NS + until_us * 1000;
        loop {
            let is_over = match until {
                Until::Time => false,
                Until::Packet => !self.sent.is_empty(),
                Until::Return => self.returned.is_some(),
            };
            if is_over {
                return Ok(());
            }
            match self.timer_ns().filter(|&at_ns| at_ns <= until_ns) {
                Some(at_ns) => self.expire(at_ns),
                None => break,
            }
            self.retry();
        }
        self.now_ns = self.now_ns.max(until_ns);
        Ok(())
    }

    fn call(&mut self, call: &Call, blocks: bool) -> Result<(), Halt> {
        self.do_call(call, blocks)
    }

    fn take_returned(&mut self) -> Option<(u64, Returned)> {
        self.returned.take()
    }

    fn inject(&mut self, segment: &Segment) -> Result<(), Halt> {
        let unsupported = |what: &str| Err(Halt::Unsupported(what.to_owned()));
        match (segment.has(SYN), segment.has(ACK)) {
            _ if segment.has(RST) => return unsupported("RST of the peer"),
            _ if segment.has(FIN) => return unsupported("FIN of the peer"),
            (true, false) => self.take_syn(segment)?,
            (true, true) => self.take_syn_ack(segment)?,
            (false, true) => self.take_packet(segment)?,
            (false, false) => return unsupported("a packet without ACK"),
        }
        self.retry();
        Ok(())
    }

    fn take_sent(&mut self) -> Vec<Segment> {
        std::mem::take(&mut self.sent)
    }

    fn info(&mut self) -> Result<BTreeMap<String, u64>, Halt> {
        let ends = self
            .ends
            .as_ref()
            .filter(|ends| ends.sender.is_established());
        let ends =
            ends.ok_or_else(|| Halt::Unsupported("tcp_info before the connection".into()))?;
        let values = crate::info::Info::of(&ends.sender.info());
        let named = crate::info::FIELDS.iter().zip(values.0);
        let mut info: BTreeMap<_, _> = named
            .map(|(field, value)| (field.name.to_owned(), value))
            .collect();
        info.insert("state".to_owned(), 1);
        info.insert("snd_mss".to_owned(), ends.sender.mss_bytes().into());
        Ok(info)
    }
}
