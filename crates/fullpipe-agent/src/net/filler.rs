//! A frame that nobody receives. At the beginning of an outage it takes the one packet that htb lets
//! through, so that none of the traffic passes an idle link and every outage ends at its time. Where
//! packets wait already, the first of them passes, and the frame waits behind them.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::namespace::{Home, Node};

/// The least Ethernet frame.
const FRAME_BYTES: usize = 60;
/// IEEE 802's EtherType for local experiments, which no protocol of the kernel takes.
const ETHERTYPE: u16 = 0x88b5;
/// A locally administered address that no port has.
const NOBODY: [u8; 6] = [0x02, 0, 0, 0, 0, 0];

/// Sends the frame out of a port.
pub(super) fn send(node: &Node, port_index: u32) -> Result<(), String> {
    let home = Home::remember();
    node.enter()?;
    let sent = home.and_then(|_home| put(port_index));
    sent.map_err(|error| format!("{}: beginning an outage: {error}", node.name))
}

fn put(port_index: u32) -> io::Result<()> {
    let mut frame = [0u8; FRAME_BYTES];
    frame[..6].copy_from_slice(&NOBODY);
    frame[6..12].copy_from_slice(&NOBODY);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    // SAFETY: all fields are integers, for which 0 is valid.
    let mut place: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    place.sll_family = libc::AF_PACKET as u16;
    place.sll_protocol = ETHERTYPE.to_be();
    place.sll_ifindex = port_index as i32;
    place.sll_halen = NOBODY.len() as u8;
    place.sll_addr[..NOBODY.len()].copy_from_slice(&NOBODY);
    // SAFETY: the new descriptor has no other owner; frame and address outlive the call.
    let sent = unsafe {
        // Protocol 0: it receives nothing.
        let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(raw);
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            FRAME_BYTES,
            0,
            (&raw const place).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    match sent {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
