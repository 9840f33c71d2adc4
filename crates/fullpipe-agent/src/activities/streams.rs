//! Streams of datagrams over sockets. fullpipe-workload decides what leaves when; this module sends it
//! and brings arrivals into the order of sending.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::stream::Frame;
use fullpipe_plan::{DatagramRow, Datagrams, FlowDirection};
use fullpipe_workload::DatagramSource;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::SockaddrIn;

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::net::Node;
use crate::sink::Sink;
use crate::socket;
use crate::token::Token;

const STREAM_PORT: u16 = 62_000;
const SINK_PORT: u16 = 63_000;
/// A datagram that has not arrived after this long counts as lost, and later rows are written.
const LOST_AFTER_NS: u64 = 10_000_000_000;

/// The streams of the plan.
pub(super) struct Streams(Vec<Stream>);

impl Activity for Streams {
    /// The stream that receives.
    type Socket = usize;
    /// The stream that sends.
    type Task = usize;

    fn open(run: &mut Run) -> Result<Self, String> {
        let plan = run.plan();
        let ends = run.topology.application_ends.iter().skip(plan.pages.len());
        let mut streams = Vec::with_capacity(plan.datagrams.len());
        for ((index, planned), &ends) in (0..).zip(&plan.datagrams).zip(ends) {
            let seed = derive_seed(plan.seed, purpose::DATAGRAMS, index);
            let stream = Stream::open(planned, index, seed, &run.topology.nodes, ends)?;
            let index = index as usize;
            run.poller
                .watch(&stream.sink, EpollFlags::EPOLLIN, Token::Stream(index))
                .map_err(|error| format!("udp {}: {error}", planned.name))?;
            if let Some(at_ns) = stream.source.due_ns() {
                run.agenda.add(at_ns, Task::Stream(index));
            }
            streams.push(stream);
        }
        Ok(Self(streams))
    }

    fn handle(&mut self, index: usize, _flags: EpollFlags, run: &mut Run, _sink: &mut dyn Sink) {
        let received = self.0[index].receive(run.t_ns());
        note(index, received, run);
    }

    fn due(
        &mut self,
        index: usize,
        _due_ns: u64,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let sent = self.0[index].send(run.t_ns());
        note(index, sent, run);
        if let Some(at_ns) = self.0[index].source.due_ns() {
            run.agenda.add(at_ns, Task::Stream(index));
        }
        Ok(())
    }

    fn rows(&mut self, t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        for stream in &mut self.0 {
            stream.rows(t_ns, false, sink);
        }
        Ok(())
    }

    fn end(&mut self, t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        for stream in &mut self.0 {
            stream.rows(t_ns, true, sink);
        }
        Ok(())
    }
}

fn note(index: usize, done: io::Result<()>, run: &mut Run) {
    if let Err(error) = done {
        let name = &run.plan().datagrams[index].name;
        run.health.add_problem(format!("udp {name}: {error}"));
    }
}

/// One stream.
struct Stream {
    source: DatagramSource,
    stream_id: u64,
    socket: OwnedFd,
    sink: OwnedFd,
    to: SockaddrIn,
    /// Rows not returned yet, with the time of sending.
    pending: VecDeque<(u64, DatagramRow)>,
    packet: Vec<u8>,
}

impl Stream {
    /// Both sockets.
    fn open(
        stream: &Datagrams,
        index: u32,
        seed: u64,
        nodes: &[Node],
        ends: [(usize, Ipv4Addr); 2],
    ) -> Result<Self, String> {
        let place = |error: io::Error| format!("udp {}: {error}", stream.name);
        let [from, to] = match stream.direction {
            FlowDirection::Up => ends,
            FlowDirection::Down => [ends[1], ends[0]],
        };
        nodes[from.0].enter()?;
        let socket = socket::udp(socket::at(from.1, STREAM_PORT + index as u16)).map_err(place)?;
        socket::set_dscp(&socket, stream.dscp).map_err(place)?;
        nodes[to.0].enter()?;
        let to = socket::at(to.1, SINK_PORT + index as u16);
        let sink = socket::udp(to).map_err(place)?;
        Ok(Self {
            source: DatagramSource::new(stream, seed),
            stream_id: u64::from(index),
            socket,
            sink,
            to: SockaddrIn::from(to),
            pending: VecDeque::new(),
            packet: vec![0; stream.payload_bytes.max(16) as usize],
        })
    }

    /// Sends what is due.
    fn send(&mut self, t_ns: u64) -> io::Result<()> {
        while let Some(datagram) = self.source.take(t_ns) {
            self.packet[..8].copy_from_slice(&datagram.seq.to_be_bytes());
            let bytes = &self.packet[..datagram.bytes.max(8) as usize];
            let row = DatagramRow {
                t_us: t_ns / 1000,
                stream_id: self.stream_id,
                seq: datagram.seq,
                frame: datagram.frame,
                bytes: u64::from(datagram.bytes),
                delay_us: None,
            };
            self.pending.push_back((t_ns, row));
            socket::send_datagram(&self.socket, bytes, &self.to)?;
        }
        Ok(())
    }

    /// Notes what has arrived.
    fn receive(&mut self, t_ns: u64) -> io::Result<()> {
        let mut packet = [0u8; 16];
        while let Some((count, _)) = socket::receive_datagram(&self.sink, &mut packet)? {
            let (Some(raw), Some(first)) = (packet[..count].first_chunk(), self.pending.front())
            else {
                continue;
            };
            let place = u64::from_be_bytes(*raw).checked_sub(first.1.seq);
            let row = place.and_then(|place| self.pending.get_mut(place as usize));
            if let Some((sent_ns, row)) = row {
                row.delay_us.get_or_insert((t_ns - *sent_ns) / 1000);
            }
        }
        Ok(())
    }

    /// Rows of datagrams that arrived or are lost, in the order of sending; at the end all others too.
    fn rows(&mut self, t_ns: u64, is_end: bool, sink: &mut dyn Sink) {
        while let Some((sent_ns, row)) = self.pending.front() {
            let is_lost = is_end || t_ns - sent_ns > LOST_AFTER_NS;
            if row.delay_us.is_none() && !is_lost {
                break;
            }
            if let Some((_, row)) = self.pending.pop_front() {
                sink.put(&Frame::Datagram(row));
            }
        }
    }
}
