//! One script's queue at a port: packets are written into it and read at the far end of the wire.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use fullpipe_differential::queue::{Answer, Arrival, Departure, Script};
use fullpipe_net::LINK_HEADER_BYTES;
use nix::poll::{PollFd, PollFlags};

use super::alarm::Alarm;
use super::hosts::Hosts;
use super::ticks::Ticks;
use super::wire::{datagram, read_datagram, Route};
use crate::clock::{now_ns, real_ns, sleep_until};
use crate::net::qdisc::{attach, handle, htb, put_htb_class, queue, Shape, HTB_CLASS, ROOT};
use crate::net::{Node, Port};
use crate::packet_socket::{link_address, packet_socket, receive, send, set_option};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 51, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 51, 0, 2);
const PORTS: u16 = 2_000;
/// The queue is made so long behind the tick at which a script begins.
const BEHIND_TICK_NS: u64 = 200_000;
/// A script is over when nothing has arrived for so long.
const SILENCE_NS: u64 = 20_000_000_000;
/// Of a packet this is read.
const READ_BYTES: usize = 64;

/// What leaves the queue of a script.
pub(super) fn answer(script: &Script, ticks: &Ticks) -> Result<Answer, String> {
    let mut bench = Bench::build(script, ticks)?;
    for (number, arrival) in script.events.iter().enumerate() {
        bench.collect_until(bench.start_ns + arrival.at_us * 1000)?;
        bench.send(number as u32, arrival)?;
    }
    loop {
        let count = bench.left.len();
        bench.collect_until(now_ns() + SILENCE_NS)?;
        if bench.left.len() == count {
            break;
        }
    }
    Ok(Answer {
        script: script.name.clone(),
        left: bench.left,
    })
}

/// Two hosts, a wire with a queue at its near end, and what has come out of it.
struct Bench {
    hosts: Hosts,
    sender: OwnedFd,
    receiver: OwnedFd,
    start_ns: u64,
    /// CLOCK_REALTIME, in which packets are stamped, less CLOCK_MONOTONIC.
    clock_ns: u64,
    alarm: Alarm,
    left: Vec<Departure>,
}

impl Bench {
    fn build(script: &Script, ticks: &Ticks) -> Result<Self, String> {
        let mut hosts = Hosts::join(NEAR, FAR)?;
        let failed = |error: io::Error| format!("packet socket: {error}");
        hosts.peer.enter()?;
        let receiver = packet_socket(hosts.far.index).map_err(failed)?;
        set_option(&receiver, libc::SO_TIMESTAMPNS, 1).map_err(failed)?;
        hosts.host.enter()?;
        let sender = packet_socket(hosts.near.index).map_err(failed)?;
        let alarm = Alarm::new()?;
        let start_ns = ticks.next_start_ns();
        sleep_until(start_ns + BEHIND_TICK_NS);
        make_queue(&mut hosts.host, hosts.near, script)?;
        Ok(Self {
            hosts,
            sender,
            receiver,
            start_ns,
            clock_ns: real_ns() - now_ns(),
            alarm,
            left: Vec::new(),
        })
    }

    fn send(&self, number: u32, arrival: &Arrival) -> Result<(), String> {
        let [_, _, _, source] = NEAR.octets().map(|byte| byte + arrival.flow / 2);
        let from = Ipv4Addr::new(10, 51, 1, source);
        let to = Ipv4Addr::new(10, 51, 2, arrival.flow);
        let port = PORTS + u16::from(arrival.flow);
        let route = Route {
            from: (from, port),
            to: (to, port),
        };
        let ip_bytes = (arrival.bytes - LINK_HEADER_BYTES) as usize;
        let packet = datagram(route, ip_bytes, arrival.tos, number);
        let neighbour = link_address(self.hosts.near.index, Some(self.hosts.far.mac));
        set_option(&self.sender, libc::SO_PRIORITY, priority(arrival.tos))
            .and_then(|()| send(&self.sender, &neighbour, &packet))
            // A packet that the queue drops is no error here.
            .or_else(|error| match error.raw_os_error() {
                Some(libc::ENOBUFS) => Ok(()),
                _ => Err(format!("packet {number}: {error}")),
            })
    }

    /// Waits until that time, and notes what arrives meanwhile.
    fn collect_until(&mut self, until_ns: u64) -> Result<(), String> {
        while now_ns() < until_ns {
            let packets = PollFd::new(self.receiver.as_fd(), PollFlags::POLLIN);
            self.alarm.wait(until_ns, &mut vec![packets])?;
            self.collect()
                .map_err(|error| format!("packets: {error}"))?;
        }
        Ok(())
    }

    fn collect(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        while let Some((bytes, stamp_ns)) = receive(&self.receiver, &mut buffer)? {
            let Some((packet, tos)) = read_datagram(&buffer[..bytes.min(READ_BYTES)]) else {
                continue;
            };
            let at_ns = stamp_ns.saturating_sub(self.clock_ns + self.start_ns);
            self.left.push(Departure {
                packet,
                at_us: at_ns / 1000,
                tos,
            });
        }
        Ok(())
    }
}

/// The rate and the queue, as a bottleneck has them.
fn make_queue(host: &mut Node, port: Port, script: &Script) -> Result<(), String> {
    let spec = queue(&script.qdisc, script.rate_bps)?;
    if script.qdisc.shapes() {
        return attach(host, port.index, ROOT, handle(2), &spec);
    }
    attach(host, port.index, ROOT, handle(1), &htb())?;
    put_htb_class(host, port.index, Shape::Rate(script.rate_bps, None), true)?;
    attach(host, port.index, HTB_CLASS, handle(2), &spec)
}

/// The priority that a packet with these TOS bits has when it is forwarded (ip_forward(), ip_tos2prio).
fn priority(tos: u8) -> libc::c_int {
    const PRIORITIES: [libc::c_int; 4] = [0, 2, 6, 4];
    PRIORITIES[usize::from(tos >> 3 & 3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscps_have_the_priorities_of_forwarded_packets() {
        // EF is 0xb8, CS1 0x20, AF41 0x88, with any ECN bits.
        assert_eq!([0, 3, 0xb8, 0x20, 0x88].map(priority), [0, 0, 4, 0, 2]);
    }
}
