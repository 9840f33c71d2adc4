//! The TCP of `fullpipe-tcp`, with the application and the socket around it.

use fullpipe_cc::{algorithm, set, Controller};
use fullpipe_plan::{CcFacts, Kernel, Pacing, RateRestart};
use fullpipe_tcp::{
    Ack, Block, Burst, Client, Data, EcnFeedback, Established, HandshakePacket, Rules, Sender,
    SenderConfig, Server, MAX_BLOCKS,
};

use crate::answer::{Flags, Packet};
use crate::info::Info;
use crate::path::Dice;
use crate::play::Subject;
use crate::script::{Action, PeerAck, Script};

/// When a script begins: a time at which all levels of the timer wheel turn that its timers use.
const START_NS: u64 = 4_096 * 4_000_000;
/// Defaults of kernels: initial window, third value of tcp_wmem, `sk_pacing_shift`, and packets in the largest
/// burst, which the machine's device has too.
const INITIAL_CWND: u32 = 10;
const WMEM_MAX_BYTES: u64 = 4 << 20;
const PACING_SHIFT: u8 = 10;
/// Packets in the largest burst; the machine's device is set up with the same.
const GSO_MAX_SEGMENTS: u32 = 44;
/// The window of a SYN or SYN-ACK of the peer.
pub const SYN_WINDOW_BYTES: u64 = 65_535;

/// A packet whose timestamp is echoed was sent this close to the time in the script, at most.
pub const ECHO_APART_US: u64 = 1_500;
/// A kernel begins an event, or what a timer causes, so much later, at most.
const LATENESS_MAX_US: u64 = 90;

/// The model under test.
pub struct Model {
    sender: Sender,
    opening: Opening,
    start_ns: u64,
    now_ns: u64,
    timestamps: bool,
    ecn: bool,
    bursts: Vec<Burst>,
    sent: Vec<Packet>,
    /// When packets were sent, and on a machine that takes its time, how late everything is.
    sent_us: Vec<u64>,
    lateness: Option<Dice>,
}

/// The handshake at this end.
enum Opening {
    Passive(Server),
    Active(Client),
}

impl Model {
    /// The model of a kernel for a script. The error says what the simulator has not.
    pub fn new(script: &Script, kernel: Kernel) -> Result<Self, String> {
        let host = &script.host;
        let chosen = set(&host.cc).ok_or_else(|| format!("cc: {} is not known", host.cc))?;
        let known = algorithm(chosen.algorithm)
            .ok_or_else(|| format!("cc: {} is not known", chosen.algorithm))?;
        let cc = Controller::new(known, &chosen.values).map_err(|error| error.to_string())?;
        let config = SenderConfig {
            mss_bytes: script.peer.payload_bytes,
            pacing: Pacing::Internal,
            pacing_shift: PACING_SHIFT,
            gso_max_segments: GSO_MAX_SEGMENTS,
            rules: Rules::from(kernel),
            facts: CcFacts::Stock,
            rate_restart: RateRestart::Unacknowledged,
            initial_cwnd: INITIAL_CWND,
            wmem_max_bytes: WMEM_MAX_BYTES,
            notsent_lowat_bytes: None,
            max_pacing_bytes_per_s: u64::MAX,
            sysctl: fullpipe_plan::Sysctl::default(),
            nodelay: host.nodelay,
            ecn: host.ecn,
            feedback: EcnFeedback::Latched,
            l4s: false,
            seed: 1,
            amount_bytes: None,
            written_by_application: true,
        };
        let start_ns = START_NS + script.phase_us * 1000;
        Ok(Self {
            sender: Sender::new(config, cc),
            opening: match script.is_active() {
                true => Opening::Active(Client::new(host.ecn)),
                false => Opening::Passive(Server::default()),
            },
            start_ns,
            now_ns: start_ns,
            timestamps: script.peer.timestamps,
            ecn: script.peer.ecn,
            bursts: Vec::new(),
            sent: Vec::new(),
            sent_us: Vec::new(),
            lateness: None,
        })
    }

    /// The same on a machine on which everything begins a random time late, as it does on a kernel's.
    pub(crate) fn late(script: &Script, kernel: Kernel, seed: u64) -> Result<Self, String> {
        Ok(Self {
            lateness: Some(Dice::new(seed)),
            ..Self::new(script, kernel)?
        })
    }

    fn lateness_ns(&mut self) -> u64 {
        let late = self.lateness.as_mut();
        late.map_or(0, |dice| dice.up_to(LATENESS_MAX_US) * 1000)
    }

    /// When the next timer expires, in us of the script, rounded up.
    pub(crate) fn timer_us(&self) -> Option<u64> {
        self.timer_ns()
            .map(|at_ns| at_ns.saturating_sub(self.start_ns).div_ceil(1000))
    }

    fn timer_ns(&self) -> Option<u64> {
        let opening_ns = match &self.opening {
            Opening::Passive(server) => server.timer_ns(),
            Opening::Active(client) => client.timer_ns(),
        };
        match self.sender.is_established() {
            true => self.sender.timer_ns(),
            false => opening_ns,
        }
    }

    fn expire(&mut self, due_ns: u64) {
        let at_ns = due_ns + self.lateness_ns();
        self.now_ns = at_ns;
        if self.sender.is_established() {
            self.sender.on_timer(at_ns, &mut self.bursts);
            self.collect();
            return;
        }
        let again = match &mut self.opening {
            Opening::Passive(server) => server.on_timer(at_ns),
            Opening::Active(client) => client.on_timer(at_ns),
        };
        if let Opening::Active(_) = self.opening {
            self.sender.syn_timed_out();
        }
        self.hand_down(again);
    }

    /// A packet of the handshake leaves.
    fn hand_down(&mut self, packet: Option<HandshakePacket>) {
        let flags = match packet {
            Some(HandshakePacket::Syn { ecn, .. }) => {
                [(Flags::SYN, true), (Flags::ECE, ecn), (Flags::CWR, ecn)]
            }
            Some(HandshakePacket::SynAck { ecn, .. }) => {
                [(Flags::SYN, true), (Flags::ECE, ecn), (Flags::CWR, false)]
            }
            Some(HandshakePacket::Ack { .. }) => [(0, false); 3],
            None => return,
        };
        self.note(Packet {
            at_us: self.now_us(),
            start: 0,
            bytes: 0,
            flags: Flags::of(&flags),
            ecn: 0,
        });
    }

    fn now_us(&self) -> u64 {
        (self.now_ns - self.start_ns) / 1000
    }

    /// Notes what the sender has handed down.
    fn collect(&mut self) {
        for burst in std::mem::take(&mut self.bursts) {
            for data in burst.packets() {
                let start = self.sender.sequence_of(&data);
                let at_us = (data.departs_ns - self.start_ns) / 1000;
                self.note(packet(&data, start, at_us));
            }
        }
    }

    fn note(&mut self, packet: Packet) {
        self.sent_us.push(packet.at_us);
        self.sent.push(packet);
    }

    fn transmit(&mut self) {
        self.sender.transmit(self.now_ns, &mut self.bursts);
        self.collect();
    }

    /// When the packet was sent whose timestamp is echoed; 0: there are no timestamps.
    fn stamp_ns(&self, at_us: u64) -> u64 {
        match self.timestamps {
            true => self.sent_ns(at_us),
            false => 0,
        }
    }

    /// When the packet was sent that left about then.
    fn sent_ns(&self, at_us: u64) -> u64 {
        let nearest_us = self.sent_us.iter().min_by_key(|us| us.abs_diff(at_us));
        let near_us = nearest_us.filter(|us| us.abs_diff(at_us) <= ECHO_APART_US);
        self.start_ns + near_us.unwrap_or(&at_us) * 1000
    }

    fn establish(&mut self, opened: Option<Established>) {
        if let Some(opened) = opened {
            self.sender.establish(self.now_ns, &opened);
            self.transmit();
        }
    }

    /// An ACK arrives.
    fn take_ack(&mut self, ack: &PeerAck) -> Result<(), String> {
        let echo_ns = self.stamp_ns(ack.echo_us);
        if !self.sender.is_established() {
            let (sent_ns, now_ns) = (self.now_ns, self.now_ns);
            let echo_ns = self.sent_ns(ack.echo_us);
            if let Opening::Passive(server) = &mut self.opening {
                let completing = HandshakePacket::Ack {
                    sent_ns,
                    echo_ns,
                    window_bytes: ack.window,
                };
                let opened = server.on_ack(now_ns, &completing);
                self.establish(opened);
            }
            return Ok(());
        }
        let sender = &self.sender;
        let packet_at = |byte: u64| {
            let number = sender.packet_at(byte);
            number.ok_or_else(|| format!("no packet of the model begins at byte {byte}"))
        };
        let mut wire = Ack {
            next: packet_at(ack.next)?,
            dsack: ack.is_dsack(),
            count: ack.sack.len() as u8,
            marks: ack.ece.into(),
            window_bytes: ack.window,
            echo_ns,
            sent_ns: self.now_ns,
            ..Ack::default()
        };
        if ack.sack.len() > MAX_BLOCKS {
            return Err(format!(
                "{} SACK blocks; the model has {MAX_BLOCKS}",
                ack.sack.len()
            ));
        }
        for (slot, &[start, end]) in wire.blocks.iter_mut().zip(&ack.sack) {
            *slot = Block {
                start: packet_at(start)?,
                end: packet_at(end)?,
            };
        }
        self.sender.on_ack(self.now_ns, &wire);
        self.transmit();
        Ok(())
    }
}

fn packet(data: &Data, start: u64, at_us: u64) -> Packet {
    Packet {
        at_us,
        start,
        bytes: data.payload_bytes,
        flags: Flags::of(&[
            (Flags::PSH, data.push),
            (Flags::FIN, data.fin),
            (Flags::CWR, data.cwr),
        ]),
        ecn: match (data.ect, data.l4s) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        },
    }
}

impl Subject for Model {
    fn advance(&mut self, at_us: u64) -> Result<(), String> {
        let until_ns = self.start_ns + at_us * 1000;
        while let Some(at_ns) = self.timer_ns().filter(|&at_ns| at_ns <= until_ns) {
            self.expire(at_ns);
        }
        self.now_ns = until_ns;
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        self.now_ns += self.lateness_ns();
        let now_ns = self.now_ns;
        match action {
            Action::Connect {} => {
                if let Opening::Active(client) = &mut self.opening {
                    let syn = client.connect(now_ns);
                    self.hand_down(Some(syn));
                }
            }
            Action::Syn {} => {
                let syn = HandshakePacket::Syn {
                    sent_ns: now_ns,
                    ecn: self.ecn,
                };
                if let Opening::Passive(server) = &mut self.opening {
                    let answer = server.on_syn(now_ns, &syn, SYN_WINDOW_BYTES);
                    self.hand_down(answer);
                }
            }
            &Action::SynAck { echo_us } => {
                let syn_ack = HandshakePacket::SynAck {
                    sent_ns: now_ns,
                    echo_ns: self.sent_ns(echo_us),
                    ecn: self.ecn,
                    window_bytes: SYN_WINDOW_BYTES,
                };
                if let Opening::Active(client) = &mut self.opening {
                    let opened = client.on_syn_ack(now_ns, &syn_ack);
                    let answer = Client::answer(now_ns, &syn_ack, 0);
                    self.hand_down(Some(answer));
                    self.establish(opened);
                }
            }
            &Action::Write { bytes } => {
                self.sender.write_regardless(bytes);
                self.transmit();
            }
            Action::Ack(ack) => self.take_ack(ack)?,
            Action::Look {} => {}
        }
        Ok(())
    }

    fn info(&mut self) -> Result<Option<Info>, String> {
        let is_established = self.sender.is_established();
        Ok(is_established.then(|| Info::of(&self.sender.info())))
    }

    fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.sent)
    }
}
