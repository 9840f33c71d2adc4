//! Where scripts are played: a host with its sockets, a wire, and the port at whose end the peer writes and reads
//! packets by itself.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use super::port::{link_address, packet_socket, send};
use super::ticks::Ticks;
use crate::net::{join, know_neighbour, set_gso_max_segments, End, Home, Node, Port};
use crate::socket::Payload;

pub(super) const HOST: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
/// The peer's address. The port has another one, so that its own kernel answers nothing.
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 9);
const PORT: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);
const MTU_BYTES: u32 = 1_500;
/// As in the model (crates/fullpipe-differential/src/model.rs).
const GSO_MAX_SEGMENTS: u32 = 44;

/// Two namespaces and the peer's packet socket.
pub(super) struct Arena {
    pub(super) host: Node,
    _peer: Node,
    packets: OwnedFd,
    host_mac: [u8; 6],
    port_index: u32,
    pub(super) payload: Payload,
    ticks: Ticks,
    _home: Home,
}

impl Arena {
    pub(super) fn build() -> Result<Self, String> {
        let home = Home::remember().map_err(|error| format!("network namespace: {error}"))?;
        let mut host = Node::create("host".to_owned())?;
        let mut peer = Node::create("peer".to_owned())?;
        let end = |node, name: &str, address| End {
            node,
            name: name.to_owned(),
            address,
        };
        let (near, far) = join(
            end(&mut host, "near", HOST),
            end(&mut peer, "far", PORT),
            MTU_BYTES,
        )?;
        peer.enter()?;
        let packets = packet_socket(far.index).map_err(|error| format!("packets: {error}"))?;
        host.enter()?;
        set_gso_max_segments(&mut host, near, GSO_MAX_SEGMENTS)?;
        let peer_port = Port {
            address: PEER,
            ..far
        };
        know_neighbour(&mut host, near, peer_port)?;
        host.set("tcp_no_metrics_save", "1")?;
        // Timestamps without a random offset are the clock, in milliseconds.
        host.set("tcp_timestamps", "2")?;
        // Timers of this thread expire when they are due.
        // SAFETY: sets a number of the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        Ok(Self {
            host,
            _peer: peer,
            packets,
            host_mac: near.mac,
            port_index: far.index,
            // Its scripts say what is written when: it does not look at the buffer first.
            payload: Payload::new(u64::MAX)
                .map_err(|error| format!("memory for payload: {error}"))?,
            ticks: Ticks::read()?,
            _home: home,
        })
    }

    /// The next time at which a script may begin.
    pub(super) fn next_start_ns(&self) -> u64 {
        self.ticks.next_start_ns()
    }

    pub(super) fn packets(&self) -> &OwnedFd {
        &self.packets
    }

    /// The peer sends a packet.
    pub(super) fn inject(&self, packet: &[u8]) -> io::Result<()> {
        let to = link_address(self.port_index, Some(self.host_mac));
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
