//! Where scripts are played: a host with its sockets, a wire, and the port at whose end the peer writes and reads
//! packets by itself. And the kernel's ticks, by which its timers expire.

use std::fs;
use std::io;
use std::mem::size_of;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::clock::now_ns;
use crate::net::{join, know_neighbour, set_gso_max_segments, End, Home, Node, Port};
use crate::socket::Payload;

pub(super) const HOST: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 1);
/// The peer's address. The port has another one, so that its own kernel answers nothing.
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 9);
const PORT: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 2);
const MTU_BYTES: u32 = 1_500;
/// As in the model (crates/fullpipe-differential/src/model.rs).
const GSO_MAX_SEGMENTS: u32 = 44;
/// HZ=250, as Debian builds its kernels.
const TICK_NS: u64 = 4_000_000;
/// Scripts begin where all levels of the timer wheel turn that they use.
const WHEEL_TICKS: u64 = 4_096;
/// Least time between two scripts.
const PAUSE_NS: u64 = 100_000_000;
/// More than a script's packets.
const RECEIVE_BYTES: libc::c_int = 8 << 20;

/// Two namespaces and the peer's packet socket.
pub(super) struct Arena {
    pub(super) host: Node,
    _peer: Node,
    packets: OwnedFd,
    host_mac: [u8; 6],
    port_index: u32,
    pub(super) payload: Payload,
    /// The tick of time 0.
    first_tick: u64,
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
            first_tick: first_tick()?,
            _home: home,
        })
    }

    /// The next time at which a script may begin.
    pub(super) fn next_start_ns(&self) -> u64 {
        let soonest = (now_ns() + PAUSE_NS) / TICK_NS + self.first_tick;
        (soonest.next_multiple_of(WHEEL_TICKS) - self.first_tick) * TICK_NS
    }

    pub(super) fn packets(&self) -> &OwnedFd {
        &self.packets
    }

    /// The peer sends a packet.
    pub(super) fn inject(&self, packet: &[u8]) -> io::Result<()> {
        let mut to = link_address(self.port_index);
        to.sll_halen = 6;
        to.sll_addr[..6].copy_from_slice(&self.host_mac);
        // SAFETY: the address is plain data of the length given, and both outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.packets.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                (&raw const to).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        nix::errno::Errno::result(sent)?;
        Ok(())
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

/// The tick that the kernel counts at time 0 of the clock. Ticks come at multiples of their length.
fn first_tick() -> Result<u64, String> {
    let path = "/proc/timer_list";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let number = |line: &str, before: &str, behind: &str| {
        let middle = line.strip_prefix(before)?.strip_suffix(behind)?;
        middle.parse::<u64>().ok()
    };
    let find = |before: &str, behind: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| number(line.trim(), before, behind));
        value.ok_or_else(|| format!("{path}: has no line `{before}N{behind}`"))
    };
    let now_ns = find("now at ", " nsecs")?;
    Ok(find("jiffies: ", "")? - now_ns / TICK_NS)
}

fn link_address(index: u32) -> libc::sockaddr_ll {
    // SAFETY: the struct consists of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    address.sll_ifindex = index as i32;
    address
}

/// A socket that writes and reads IP packets at a port.
fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let (address, buffer) = (link_address(index), RECEIVE_BYTES);
    // SAFETY: the new descriptor has no other owner; the address and the number outlive the calls that
    // are given their lengths.
    unsafe {
        let raw = libc::socket(libc::AF_PACKET, kind, 0);
        let socket = OwnedFd::from_raw_fd(nix::errno::Errno::result(raw)?);
        let set = libc::setsockopt(
            raw,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const buffer).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
        nix::errno::Errno::result(set)?;
        let bound = libc::bind(
            raw,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        );
        nix::errno::Errno::result(bound)?;
        Ok(socket)
    }
}
