//! Latency probes: requests, answers, and the log that brings them into the order of sending.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use fullpipe_plan::stream::Frame;
use fullpipe_plan::{PingRow, Probe, ProbeKind};
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{sendto, MsgFlags, SockaddrIn};

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::clock::Poller;
use crate::net::Node;
use crate::sink::Sink;
use crate::socket;
use crate::token::{ProbeSocket, Token};

const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 41_000;
/// As ping(8) sends it: 56 bytes behind 8 of ICMP or UDP.
const PAYLOAD_BYTES: usize = 56;
const ICMP_HEADER_BYTES: usize = 8;
const ICMP_ECHO: u8 = 8;
/// A request without an answer after this long counts as lost, and later rows are written.
const LOST_AFTER_NS: u64 = 10_000_000_000;

/// The probes of the plan; the far end of two hosts sends none.
pub(super) struct Probes(Vec<ProbeFlow>);

impl Activity for Probes {
    /// A probe and its socket.
    type Socket = (usize, ProbeSocket);
    /// The probe that sends.
    type Task = usize;

    fn open(run: &mut Run) -> Result<Self, String> {
        let plan = run.plan();
        let mut probes = Vec::with_capacity(plan.probes.len());
        let ends = run.topology.probe_ends.iter();
        for ((index, probe), &ends) in plan.probes.iter().enumerate().zip(ends) {
            let flow = ProbeFlow::open(probe, index, &run.topology.nodes, ends)?;
            flow.watch(&run.poller, index)
                .map_err(|error| format!("probe {}: {error}", probe.name))?;
            run.agenda.add(probe.start_ns, Task::Probe(index));
            probes.push(flow);
        }
        Ok(Self(probes))
    }

    fn handle(
        &mut self,
        (index, socket): (usize, ProbeSocket),
        _flags: EpollFlags,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) {
        let done = match socket {
            ProbeSocket::Prober => self.0[index].answers(run.t_ns()),
            ProbeSocket::Answerer => self.0[index].answer(),
        };
        note(index, done, run);
    }

    fn due(
        &mut self,
        index: usize,
        due_ns: u64,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let sent = self.0[index].request(run.t_ns());
        note(index, sent, run);
        let next_ns = due_ns + run.plan().probes[index].interval_ns;
        run.agenda.add(next_ns, Task::Probe(index));
        Ok(())
    }

    fn rows(&mut self, t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        for probe in &mut self.0 {
            probe.rows(t_ns, false, sink);
        }
        Ok(())
    }

    fn end(&mut self, t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        for probe in &mut self.0 {
            probe.rows(t_ns, true, sink);
        }
        Ok(())
    }
}

fn note(index: usize, done: io::Result<()>, run: &mut Run) {
    if let Err(error) = done {
        let name = &run.plan().probes[index].name;
        run.health.add_problem(format!("probe {name}: {error}"));
    }
}

/// One probe: its socket and, for UDP, the one that answers.
struct ProbeFlow {
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
    fn open(
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

    fn watch(&self, poller: &Poller, index: usize) -> io::Result<()> {
        let token = |socket| Token::Probe(index, socket);
        poller.watch(
            &self.socket,
            EpollFlags::EPOLLIN,
            token(ProbeSocket::Prober),
        )?;
        self.answerer.as_ref().map_or(Ok(()), |answerer| {
            poller.watch(answerer, EpollFlags::EPOLLIN, token(ProbeSocket::Answerer))
        })
    }

    /// Sends a request.
    fn request(&mut self, t_ns: u64) -> io::Result<()> {
        let mut packet = [0u8; ICMP_HEADER_BYTES + PAYLOAD_BYTES];
        packet[0] = ICMP_ECHO;
        packet[6..8].copy_from_slice(&(self.count as u16).to_be_bytes());
        packet[8..16].copy_from_slice(&self.count.to_be_bytes());
        let bytes = match self.kind {
            ProbeKind::Ping => &packet[..],
            ProbeKind::Udp => &packet[ICMP_HEADER_BYTES..],
        };
        self.pending.push_back((self.count, t_ns, None));
        self.count += 1;
        socket::send_datagram(&self.socket, bytes, &self.to)
    }

    /// Reads answers.
    fn answers(&mut self, t_ns: u64) -> io::Result<()> {
        let mut packet = [0u8; 256];
        let start = match self.kind {
            ProbeKind::Ping => ICMP_HEADER_BYTES,
            ProbeKind::Udp => 0,
        };
        while let Some((count, _)) = socket::receive_datagram(&self.socket, &mut packet)? {
            let payload = packet[..count].get(start..).unwrap_or(&[]);
            let Some(raw) = payload.first_chunk() else {
                continue;
            };
            let seq = u64::from_be_bytes(*raw);
            let request = self.pending.iter_mut().find(|request| request.0 == seq);
            if let Some(request) = request {
                request.2.get_or_insert(t_ns);
            }
        }
        Ok(())
    }

    /// Sends every request back to where it came from.
    fn answer(&self) -> io::Result<()> {
        let Some(answerer) = &self.answerer else {
            return Ok(());
        };
        let mut packet = [0u8; 256];
        while let Some((count, from)) = socket::receive_datagram(answerer, &mut packet)? {
            if let Some(from) = from {
                let bytes = &packet[..count];
                // An answer that cannot be sent is a lost one.
                let _ = sendto(answerer.as_raw_fd(), bytes, &from, MsgFlags::empty());
            }
        }
        Ok(())
    }

    /// Rows of requests that were answered or are lost, in the order of sending; at the end all
    /// others too.
    fn rows(&mut self, t_ns: u64, is_end: bool, sink: &mut dyn Sink) {
        while let Some(&(seq, sent_ns, answered_ns)) = self.pending.front() {
            let is_lost = is_end || t_ns - sent_ns > LOST_AFTER_NS;
            if answered_ns.is_none() && !is_lost {
                break;
            }
            self.pending.pop_front();
            sink.put(&Frame::Ping(PingRow {
                t_us: sent_ns / 1000,
                probe: self.name.clone().into(),
                seq,
                rtt_us: answered_ns.map(|at_ns| (at_ns - sent_ns) / 1000),
            }));
        }
    }
}
