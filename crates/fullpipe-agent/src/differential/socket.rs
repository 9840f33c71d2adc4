//! One script's socket and the application that uses it.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};

use fullpipe_differential::{
    Action, Flags, Info, Packet, PeerAck, Script, ECHO_APART_US, SYN_WINDOW_BYTES, WINDOW_SHIFT,
};
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{listen, setsockopt, sockopt, Backlog};

use super::alarm::Alarm;
use super::arena::{route, Arena, BIGGEST_PACKET, HOST, PEER, PEER_SEQUENCE};
use super::wire::{Incoming, Outgoing, Route, ACK, CWR, ECE, FIN, PSH, SYN};
use crate::clock::{now_ns, sleep_until};
use crate::sample::TcpInfo;
use crate::socket;

/// What the kernel does because of an event is over in this time, also where a thread of its own does it.
const SETTLE_NS: u64 = 200_000;
/// Its ports.
const LOCAL_PORTS: u16 = 5_000;
/// Options of a data packet with timestamps, which the MSS of a SYN includes.
const TIMESTAMP_BYTES: u16 = 12;
const TCP_ESTABLISHED: u8 = 1;

/// A socket of this kernel with its application, on the clock of a script.
pub(super) struct Subject<'a> {
    arena: &'a mut Arena,
    script: &'a Script,
    route: Route,
    start_ns: u64,
    /// What listens or connects, and the connection.
    opener: OwnedFd,
    accepted: Option<OwnedFd>,
    /// The socket's first sequence number, once it has sent it.
    sequence: Option<u32>,
    /// Payload that the application still has to write.
    unwritten_bytes: u64,
    sent: Vec<Packet>,
    /// When packets were sent, and their timestamps.
    stamps: Vec<(u64, u32)>,
    buffer: Vec<u8>,
    alarm: Alarm,
}

impl<'a> Subject<'a> {
    /// Waits until the script may begin.
    pub(super) fn open(
        arena: &'a mut Arena,
        script: &'a Script,
        number: usize,
    ) -> Result<Self, String> {
        let fail = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let route = route(number, LOCAL_PORTS);
        arena.host().enter()?;
        let ecn = if script.host.ecn { "1" } else { "0" };
        arena.host().set("tcp_ecn", ecn)?;
        let opener = socket::tcp(socket::at(HOST, route.to.1)).map_err(fail("socket"))?;
        socket::set_congestion_control(&opener, &script.host.cc).map_err(fail(&script.host.cc))?;
        setsockopt(&opener, sockopt::TcpNoDelay, &script.host.nodelay)
            .map_err(|error| format!("TCP_NODELAY: {error}"))?;
        if !script.is_active() {
            let backlog = Backlog::new(1).map_err(|error| error.to_string())?;
            listen(&opener, backlog).map_err(|error| format!("listen: {error}"))?;
        }
        let start_ns = arena.next_start_ns() + script.phase_us * 1000;
        sleep_until(start_ns - SETTLE_NS);
        let mut subject = Self {
            route,
            start_ns,
            opener,
            accepted: None,
            sequence: None,
            unwritten_bytes: 0,
            sent: Vec::new(),
            stamps: Vec::new(),
            buffer: vec![0; BIGGEST_PACKET],
            alarm: Alarm::new()?,
            script,
            arena,
        };
        // What an earlier socket has sent when it was closed.
        subject.collect()?;
        Ok(subject)
    }

    fn socket(&self) -> Option<&OwnedFd> {
        match self.script.is_active() {
            true => Some(&self.opener),
            false => self.accepted.as_ref(),
        }
    }

    /// Waits until that time, and meanwhile notes what is sent and writes what the socket takes.
    fn wait(&mut self, until_ns: u64) -> Result<(), String> {
        loop {
            self.collect()?;
            if now_ns() >= until_ns {
                return Ok(());
            }
            let mut ready = vec![PollFd::new(self.arena.packets().as_fd(), PollFlags::POLLIN)];
            let socket = self.socket().filter(|_| self.unwritten_bytes > 0);
            ready.extend(socket.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLOUT)));
            let has_unwritten = socket.is_some();
            self.alarm.wait(until_ns, &mut ready)?;
            let is_writable = has_unwritten && ready[1].any().unwrap_or(false);
            if is_writable {
                self.write()?;
            }
        }
    }

    /// Writes as much as the socket takes.
    fn write(&mut self) -> Result<(), String> {
        while self.unwritten_bytes > 0 {
            let Some(socket) = self.socket() else {
                return Err("the script writes before the connection is established".to_owned());
            };
            let written = self.arena.payload.send(socket, self.unwritten_bytes);
            match written.map_err(|error| format!("write: {error}"))? {
                Some(bytes) => self.unwritten_bytes -= bytes,
                None => break,
            }
        }
        Ok(())
    }

    /// Notes the packets that the socket has sent.
    fn collect(&mut self) -> Result<(), String> {
        loop {
            let received = self.arena.receive(&mut self.buffer);
            let Some(bytes) = received.map_err(|error| format!("packets: {error}"))? else {
                return Ok(());
            };
            if let Some(packet) = Incoming::read(&self.buffer[..bytes]) {
                if packet.from_port == self.route.to.1 && packet.to_port == self.route.from.1 {
                    self.note(&packet);
                }
            }
        }
    }

    fn note(&mut self, packet: &Incoming) {
        let has = |flag: u8| packet.flags & flag != 0;
        if has(SYN) {
            self.sequence = Some(packet.sequence);
        }
        let at_us = self.now_us();
        if let Some(stamp) = packet.stamp {
            self.stamps.push((at_us, stamp));
        }
        let first = self.sequence.unwrap_or(packet.sequence).wrapping_add(1);
        self.sent.push(Packet {
            at_us,
            start: match has(SYN) {
                true => 0,
                false => packet.sequence.wrapping_sub(first).into(),
            },
            bytes: packet.payload_bytes,
            flags: Flags::of(&[
                (Flags::SYN, has(SYN)),
                (Flags::FIN, has(FIN)),
                (Flags::PSH, has(PSH)),
                (Flags::ECE, has(ECE)),
                (Flags::CWR, has(CWR)),
            ]),
            ecn: packet.ecn,
        });
    }

    fn now_us(&self) -> u64 {
        now_ns().saturating_sub(self.start_ns) / 1000
    }

    /// A packet of the peer arrives.
    fn inject(&mut self, packet: &Outgoing) -> Result<(), String> {
        let bytes = packet.bytes(self.route);
        let sent = self.arena.inject(&bytes);
        sent.map_err(|error| format!("a packet of the peer: {error}"))
    }

    /// A SYN, or a SYN-ACK if it acknowledges something.
    fn syn(&self, acknowledges: Option<u32>, echo_us: Option<u64>) -> Outgoing {
        let peer = &self.script.peer;
        let options = if peer.timestamps { TIMESTAMP_BYTES } else { 0 };
        let ecn = match (peer.ecn, acknowledges) {
            (false, _) => 0,
            (true, None) => ECE | CWR,
            (true, Some(_)) => ECE,
        };
        let answers = if acknowledges.is_some() { ACK } else { 0 };
        Outgoing {
            sequence: PEER_SEQUENCE,
            acknowledges: acknowledges.unwrap_or(0),
            flags: SYN | ecn | answers,
            window: SYN_WINDOW_BYTES as u16,
            syn: Some((peer.payload_bytes as u16 + options, WINDOW_SHIFT)),
            timestamps: self.timestamps(echo_us),
            sack: Vec::new(),
        }
    }

    /// The timestamps of a packet of the peer that echoes what was sent at that time.
    fn timestamps(&self, echo_us: Option<u64>) -> Option<(u32, u32)> {
        let ms = |ns: u64| (ns / 1_000_000) as u32;
        let nearest = |at_us: u64| {
            let apart = |(sent_us, _): &&(u64, u32)| sent_us.abs_diff(at_us);
            let sent = self.stamps.iter().min_by_key(apart);
            sent.filter(|stamp| apart(stamp) <= ECHO_APART_US)
                .map_or_else(|| ms(self.start_ns + at_us * 1000), |(_, stamp)| *stamp)
        };
        let echo = echo_us.map_or(0, nearest);
        let has_them = self.script.peer.timestamps;
        has_them.then(|| (ms(now_ns()), echo))
    }

    /// The socket's sequence number of a byte.
    fn number(&self, byte: u64) -> Result<u32, String> {
        let first = self.sequence.ok_or("the socket has sent no SYN yet")?;
        Ok(first.wrapping_add(1).wrapping_add(byte as u32))
    }

    fn ack(&self, ack: &PeerAck) -> Result<Outgoing, String> {
        let blocks = ack.sack.iter();
        let blocks = blocks.map(|&[start, end]| Ok((self.number(start)?, self.number(end)?)));
        Ok(Outgoing {
            sequence: PEER_SEQUENCE + 1,
            acknowledges: self.number(ack.next)?,
            flags: ACK | if ack.ece { ECE } else { 0 },
            window: (ack.window >> WINDOW_SHIFT) as u16,
            syn: None,
            timestamps: self.timestamps(Some(ack.echo_us)),
            sack: blocks.collect::<Result<_, String>>()?,
        })
    }
}

impl fullpipe_differential::Subject for Subject<'_> {
    fn advance(&mut self, at_us: u64) -> Result<(), String> {
        self.wait(self.start_ns + at_us * 1000)
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Connect {} => {
                let to = socket::at(PEER, self.route.from.1);
                let connected = socket::connect(&self.opener, to);
                connected.map_err(|error| format!("connect: {error}"))?;
            }
            Action::Syn {} => self.inject(&self.syn(None, None))?,
            &Action::SynAck { echo_us } => {
                let acknowledges = self.number(0)?;
                self.inject(&self.syn(Some(acknowledges), Some(echo_us)))?;
            }
            &Action::Write { bytes } => {
                self.unwritten_bytes += bytes;
                self.write()?;
            }
            Action::Ack(ack) => self.inject(&self.ack(ack)?)?,
            Action::Look {} => {}
        }
        self.wait(now_ns() + SETTLE_NS)?;
        if self.accepted.is_none() && !self.script.is_active() {
            self.accepted = socket::accept(&self.opener).ok();
        }
        Ok(())
    }

    fn info(&mut self) -> Result<Option<Info>, String> {
        let Some(socket) = self.socket() else {
            return Ok(None);
        };
        let read = TcpInfo::with_length(socket);
        let (info, bytes) = read.map_err(|error| format!("TCP_INFO: {error}"))?;
        let is_active = self.script.is_active();
        Ok((info.state == TCP_ESTABLISHED).then(|| fields(&info, bytes, is_active)))
    }

    fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.sent)
    }
}

impl Drop for Subject<'_> {
    fn drop(&mut self) {
        for socket in self.accepted.iter().chain([&self.opener]) {
            socket::reset_at_close(socket);
        }
    }
}

/// The fields that are compared. A kernel that knows fewer gives fewer `bytes`.
fn fields(info: &TcpInfo, bytes: usize, is_active: bool) -> Info {
    let has = |end: usize| bytes >= end;
    Info([
        info.ca_state.into(),
        info.retransmits.into(),
        info.backoff.into(),
        info.unacked.into(),
        info.sacked.into(),
        info.lost.into(),
        info.retrans.into(),
        info.snd_cwnd.into(),
        info.snd_ssthresh.into(),
        info.reordering.into(),
        info.total_retrans.into(),
        info.data_segs_out.into(),
        info.delivered.into(),
        info.delivered_ce.into(),
        info.dsack_dups.into(),
        info.reord_seen.into(),
        match has(offset_of!(TcpInfo, total_rto) + 2) {
            true => info.total_rto.into(),
            false => Info::UNKNOWN,
        },
        // A connecting socket counts its SYN.
        info.bytes_acked - u64::from(is_active),
        info.notsent_bytes.into(),
        info.snd_wnd.into(),
        info.rto.into(),
        info.rtt.into(),
        info.rttvar.into(),
        info.min_rtt.into(),
        info.pacing_rate,
        info.delivery_rate,
    ])
}
