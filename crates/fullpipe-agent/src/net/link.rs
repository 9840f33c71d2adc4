//! Links, addresses, routes and neighbours of nodes. It must never know what traffic they carry.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};

use super::namespace::Node;
use super::netlink::{Message, CREATE};

/// linux/veth.h
const VETH_INFO_PEER: u16 = 1;
/// linux/ethtool.h
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;
/// linux/rtnetlink.h
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;
/// Bits of all networks here.
const PREFIX_BITS: u8 = 24;

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) index: u32,
    pub(crate) mac: [u8; 6],
    pub(crate) address: Ipv4Addr,
}

/// What an end of a link is made from.
pub(crate) struct End<'a> {
    pub(crate) node: &'a mut Node,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
}

/// Metrics of a host's route (0: the kernel's own).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) initial_cwnd_packets: u32,
    pub(crate) quick_ack: bool,
}

/// Joins two nodes by a pair of virtual Ethernet ports that are up, have their addresses and cut
/// and join no packets.
pub(crate) fn join(one: End<'_>, other: End<'_>, mtu_bytes: u32) -> Result<(Port, Port), String> {
    let fail = |what: String| {
        let between = format!("{} - {}", one.node.name, other.node.name);
        move |error: String| format!("{between}: {what}: {error}")
    };
    let macs = [mac(one.address), mac(other.address)];
    let mut message = Message::request(libc::RTM_NEWLINK, CREATE, &[0; 16]);
    describe(&mut message, &one.name, mtu_bytes, macs[0]);
    message.nested(libc::IFLA_LINKINFO, |info| {
        info.attribute_text(libc::IFLA_INFO_KIND, "veth");
        info.nested(libc::IFLA_INFO_DATA, |data| {
            data.nested(VETH_INFO_PEER, |peer| {
                peer.put(&[0; 16]);
                describe(peer, &other.name, mtu_bytes, macs[1]);
                let handle = other.node.namespace.handle().as_raw_fd();
                peer.attribute_u32(libc::IFLA_NET_NS_FD, handle as u32);
            });
        });
    });
    let failed = fail("a veth pair".to_owned());
    one.node.netlink.ask(message).map_err(failed)?;
    let one_port = bring_up(one, macs[0])?;
    let other_port = bring_up(other, macs[1])?;
    Ok((one_port, other_port))
}

/// A locally administered address made from the IP address.
fn mac(address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [2, 0, a, b, c, d]
}

fn describe(message: &mut Message, name: &str, mtu_bytes: u32, mac: [u8; 6]) {
    message.attribute_text(libc::IFLA_IFNAME, name);
    message.attribute_u32(libc::IFLA_MTU, mtu_bytes);
    message.attribute(libc::IFLA_ADDRESS, &mac);
}

fn bring_up(end: End<'_>, mac: [u8; 6]) -> Result<Port, String> {
    let End {
        node,
        name,
        address,
    } = end;
    node.enter()?;
    let place = format!("{}: {name}", node.name);
    let index = nix::net::if_::if_nametoindex(name.as_str())
        .map_err(|error| format!("{place}: {error}"))?;
    switch_offloads_off(&name).map_err(|error| format!("{place}: offloads: {error}"))?;
    set_up(node, index).map_err(|error| format!("{place}: {error}"))?;
    let mut fixed = [libc::AF_INET as u8, PREFIX_BITS, 0, 0, 0, 0, 0, 0];
    fixed[4..].copy_from_slice(&index.to_ne_bytes());
    let mut message = Message::request(libc::RTM_NEWADDR, CREATE, &fixed);
    message.attribute(libc::IFA_LOCAL, &address.octets());
    message.attribute(libc::IFA_ADDRESS, &address.octets());
    node.netlink
        .ask(message)
        .map_err(|error| format!("{place}: address {address}: {error}"))?;
    Ok(Port {
        index,
        mac,
        address,
    })
}

/// Brings a link up (`lo` has index 1 in every namespace).
pub(crate) fn set_up(node: &mut Node, index: u32) -> Result<(), String> {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    let up = (libc::IFF_UP as u32).to_ne_bytes();
    fixed[8..12].copy_from_slice(&up);
    fixed[12..16].copy_from_slice(&up);
    node.netlink
        .ask(Message::request(libc::RTM_NEWLINK, 0, &fixed))
}

/// Limits the size of a host's bursts.
pub(crate) fn set_gso_max_segments(
    node: &mut Node,
    port: Port,
    segments: u32,
) -> Result<(), String> {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&port.index.to_ne_bytes());
    let mut message = Message::request(libc::RTM_NEWLINK, 0, &fixed);
    message.attribute_u32(libc::IFLA_GSO_MAX_SEGS, segments);
    node.netlink
        .ask(message)
        .map_err(|error| format!("{}: gso_max_segs {segments}: {error}", node.name))
}

/// Routes `network` (everything, if the prefix is 0) through a neighbour.
pub(crate) fn route(
    node: &mut Node,
    port: Port,
    network: (Ipv4Addr, u8),
    gateway: Ipv4Addr,
    metrics: Metrics,
) -> Result<(), String> {
    let (destination, prefix_bits) = network;
    let fixed = [
        libc::AF_INET as u8,
        prefix_bits,
        0,
        0,
        libc::RT_TABLE_MAIN,
        libc::RTPROT_STATIC,
        libc::RT_SCOPE_UNIVERSE,
        libc::RTN_UNICAST,
        0,
        0,
        0,
        0,
    ];
    let mut message = Message::request(libc::RTM_NEWROUTE, CREATE, &fixed);
    if prefix_bits > 0 {
        message.attribute(libc::RTA_DST, &destination.octets());
    }
    message.attribute(libc::RTA_GATEWAY, &gateway.octets());
    message.attribute_u32(libc::RTA_OIF, port.index);
    message.nested(libc::RTA_METRICS, |inner| {
        if metrics.initial_cwnd_packets > 0 {
            inner.attribute_u32(RTAX_INITCWND, metrics.initial_cwnd_packets);
        }
        if metrics.quick_ack {
            inner.attribute_u32(RTAX_QUICKACK, 1);
        }
    });
    node.netlink
        .ask(message)
        .map_err(|error| format!("{}: route by {gateway}: {error}", node.name))
}

/// Adds a permanent ARP entry for `neighbour`.
pub(crate) fn know_neighbour(node: &mut Node, port: Port, neighbour: Port) -> Result<(), String> {
    let mut fixed = [0; 12];
    fixed[0] = libc::AF_INET as u8;
    fixed[4..8].copy_from_slice(&port.index.to_ne_bytes());
    fixed[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    let mut message = Message::request(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE as u16, &fixed);
    message.attribute(libc::NDA_DST, &neighbour.address.octets());
    message.attribute(libc::NDA_LLADDR, &neighbour.mac);
    node.netlink
        .ask(message)
        .map_err(|error| format!("{}: neighbour {}: {error}", node.name, neighbour.address))
}

#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

/// No TSO, GSO and GRO on a port of the namespace that the thread is in: packets cross it as they
/// are. TCP still hands bursts to the qdisc of its own host, and they are segmented behind it
/// (Linux sk_setup_caps() gives every TCP socket GSO).
fn switch_offloads_off(name: &str) -> nix::Result<()> {
    let socket: OwnedFd = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
        let mut value = EthtoolValue { command, value: 0 };
        // SAFETY: an ifreq is plain data; the name is shorter than its field, and the ioctl reads
        // the value only during the call.
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
                *slot = byte as libc::c_char;
            }
            request.ifr_ifru.ifru_data = (&raw mut value).cast();
            nix::errno::Errno::result(libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCETHTOOL as _,
                &raw mut request,
            ))?;
        }
    }
    Ok(())
}
