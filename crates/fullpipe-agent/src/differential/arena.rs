//! Where scripts are played: a host with its sockets, a wire, and the port at whose end the peer writes and reads
//! packets by itself.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use super::hosts::Hosts;
use super::ticks::Ticks;
use super::wire::Route;
use crate::net::{know_neighbour, set_gso_max_segments, Node, Port};
use crate::packet_socket::{link_address, packet_socket, send};
use crate::socket::Payload;

pub(super) const HOST: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
/// The peer's address. The port has another one, so that its own kernel answers nothing.
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 9);
/// What the peer's numbers begin with.
pub(super) const PEER_SEQUENCE: u32 = 1_000_000;
/// Of one that is read.
pub(super) const BIGGEST_PACKET: usize = 1 << 16;
/// Every script has ports of its own, so that nothing of another one is left.
const PEER_PORTS: u16 = 30_000;
const PORTS: usize = 20_000;
const PORT: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);
/// As in the model (crates/fullpipe-differential/src/model.rs).
const GSO_MAX_SEGMENTS: u32 = 44;

/// From the peer to the socket of the script of that number.
pub(super) fn route(number: usize, local_ports: u16) -> Route {
    let port = (number % PORTS) as u16;
    Route {
        from: (PEER, PEER_PORTS + port),
        to: (HOST, local_ports + port),
    }
}

/// Two namespaces and the peer's packet socket.
pub(super) struct Arena {
    hosts: Hosts,
    packets: OwnedFd,
    pub(super) payload: Payload,
    ticks: Ticks,
}

impl Arena {
    pub(super) fn build() -> Result<Self, String> {
        let mut hosts = Hosts::join(HOST, PORT)?;
        hosts.peer.enter()?;
        let packets =
            packet_socket(hosts.far.index).map_err(|error| format!("packets: {error}"))?;
        let (host, near) = (&mut hosts.host, hosts.near);
        host.enter()?;
        set_gso_max_segments(host, near, GSO_MAX_SEGMENTS)?;
        let peer_port = Port {
            address: PEER,
            ..hosts.far
        };
        know_neighbour(host, near, peer_port)?;
        host.set("tcp_no_metrics_save", "1")?;
        // Timestamps without a random offset are the clock, in milliseconds.
        host.set("tcp_timestamps", "2")?;
        Ok(Self {
            hosts,
            packets,
            // Its scripts say what is written when: it does not look at the buffer first.
            payload: Payload::new(u64::MAX)
                .map_err(|error| format!("memory for payload: {error}"))?,
            ticks: Ticks::read()?,
        })
    }

    /// The next time at which a script may begin.
    pub(super) fn next_start_ns(&self) -> u64 {
        self.ticks.next_start_ns()
    }

    pub(super) fn host(&mut self) -> &mut Node {
        &mut self.hosts.host
    }

    pub(super) fn packets(&self) -> &OwnedFd {
        &self.packets
    }

    /// The peer sends a packet.
    pub(super) fn inject(&self, packet: &[u8]) -> io::Result<()> {
        let to = link_address(self.hosts.far.index, Some(self.hosts.near.mac));
        send(&self.packets, &to, packet)
    }

    /// The next packet of the socket; `None`: there is none.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match nix::unistd::read(&self.packets, buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(nix::Error::EAGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
