//! Latency probes: requests, answers, and the log that brings them into the order of sending.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use fullpipe_plan::{PingRow, Probe, ProbeKind};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{recvfrom, sendto, MsgFlags, SockaddrIn};

use crate::clock::Poller;
use crate::net::Node;
use crate::socket;

const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 41_000;
/// As ping(8) sends it: 56 bytes behind 8 of ICMP or UDP.
const PAYLOAD_BYTES: usize = 56;
const ICMP_HEADER_BYTES: usize = 8;
const ICMP_ECHO: u8 = 8;
/// A request without an answer after this long counts as lost, and later rows are written.
const LOST_AFTER_NS: u64 = 10_000_000_000;

/// One probe: its socket and, for UDP, the one that answers.
pub(crate) struct ProbeFlow {
    kind: ProbeKind,
    name: String,
    socket: OwnedFd,
    answerer: Option<OwnedFd>,
    to: SockaddrIn,
    count: u64,
    /// Requests whose rows were not returned yet: seq, time of sending, time of the answer.
    pending: VecDeque<(u64, u64, Option<u64>)>,
}

impl ProbeFlow {
    pub(crate) fn open(
        probe: &Probe,
        index: usize,
        nodes: &[Node],
        ends: [(usize, Ipv4Addr); 2],
    ) -> Result<Self, String> {
        let place = |error: io::Error| format!("probe {}: {error}", probe.name);
        let (from, to) = (
            socket::at(ends[0].1, CLIENT_PORT + index as u16),
            socket::at(ends[1].1, SERVER_PORT + index as u16),
        );
        let enter = |node: usize| nodes.get(node).map_or(Ok(()), Node::enter);
        enter(ends[0].0)?;
        let (socket, answerer) = match probe.kind {
            ProbeKind::Ping => (socket::ping(from).map_err(place)?, None),
            ProbeKind::Udp => {
                let socket = socket::udp(from).map_err(place)?;
                enter(ends[1].0)?;
                (socket, Some(socket::udp(to).map_err(place)?))
            }
        };
        for end in [Some(&socket), answerer.as_ref()].into_iter().flatten() {
            socket::set_dscp(end, probe.dscp).map_err(place)?;
        }
        Ok(Self {
            kind: probe.kind,
            name: probe.name.clone(),
            socket,
            answerer,
            to: SockaddrIn::from(to),
            count: 0,
            pending: VecDeque::new(),
        })
    }

    /// Events carry `token` for answers and `token + 1` for requests to answer.
    pub(crate) fn watch(&self, poller: &Poller, token: u64) -> io::Result<()> {
        poller.watch(&self.socket, EpollFlags::EPOLLIN, token)?;
        self.answerer.as_ref().map_or(Ok(()), |answerer| {
            poller.watch(answerer, EpollFlags::EPOLLIN, token + 1)
        })
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, now_ns: u64) -> io::Result<()> {
        let mut packet = [0u8; ICMP_HEADER_BYTES + PAYLOAD_BYTES];
        packet[0] = ICMP_ECHO;
        packet[6..8].copy_from_slice(&(self.count as u16).to_be_bytes());
        packet[8..16].copy_from_slice(&self.count.to_be_bytes());
        let bytes = match self.kind {
            ProbeKind::Ping => &packet[..],
            ProbeKind::Udp => &packet[ICMP_HEADER_BYTES..],
        };
        self.pending.push_back((self.count, now_ns, None));
        self.count += 1;
        match sendto(self.socket.as_raw_fd(), bytes, &self.to, MsgFlags::empty()) {
            // The device has no room: the request is lost, as it would be in a queue.
            Ok(_) | Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads answers.
    pub(crate) fn answers(&mut self, now_ns: u64) -> io::Result<()> {
        let mut packet = [0u8; 256];
        loop {
            let (count, _) = match recvfrom::<SockaddrIn>(self.socket.as_raw_fd(), &mut packet) {
                Ok(got) => got,
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let start = match self.kind {
                ProbeKind::Ping => ICMP_HEADER_BYTES,
                ProbeKind::Udp => 0,
            };
            let payload = packet[..count].get(start..).unwrap_or(&[]);
            let Some(raw) = payload.first_chunk() else {
                continue;
            };
            let seq = u64::from_be_bytes(*raw);
            let request = self.pending.iter_mut().find(|request| request.0 == seq);
            if let Some(request) = request {
                request.2.get_or_insert(now_ns);
            }
        }
    }

    /// Sends every request back to where it came from.
    pub(crate) fn answer(&self) -> io::Result<()> {
        let Some(answerer) = &self.answerer else {
            return Ok(());
        };
        let mut packet = [0u8; 256];
        loop {
            match recvfrom::<SockaddrIn>(answerer.as_raw_fd(), &mut packet) {
                Ok((count, Some(from))) => {
                    let bytes = &packet[..count];
                    // An answer that cannot be sent is a lost one.
                    let _ = sendto(answerer.as_raw_fd(), bytes, &from, MsgFlags::empty());
                }
                Ok((_, None)) => {}
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Rows of requests that were answered or are lost, in the order of sending; at the end all
    /// others too.
    pub(crate) fn rows(
        &mut self,
        start_ns: u64,
        now_ns: u64,
        is_end: bool,
        mut put: impl FnMut(PingRow),
    ) {
        while let Some(&(seq, sent_ns, answered_ns)) = self.pending.front() {
            let is_lost = is_end || now_ns - sent_ns > LOST_AFTER_NS;
            if answered_ns.is_none() && !is_lost {
                break;
            }
            self.pending.pop_front();
            put(PingRow {
                t_us: (sent_ns - start_ns) / 1000,
                probe: self.name.clone().into(),
                seq,
                rtt_us: answered_ns.map(|at_ns| (at_ns - sent_ns) / 1000),
            });
        }
    }
}
