//! TCP_INFO of a socket (linux/tcp.h). A kernel that knows fewer fields leaves the rest zero.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

/// struct tcp_info; bit fields are whole bytes here.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpInfo {
    pub(crate) state: u8,
    pub(crate) ca_state: u8,
    pub(crate) retransmits: u8,
    pub(crate) probes: u8,
    pub(crate) backoff: u8,
    pub(crate) options: u8,
    pub(crate) window_scales: u8,
    pub(crate) flags: u8,
    pub(crate) rto: u32,
    pub(crate) ato: u32,
    pub(crate) snd_mss: u32,
    pub(crate) rcv_mss: u32,
    pub(crate) unacked: u32,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retrans: u32,
    pub(crate) fackets: u32,
    pub(crate) last_data_sent: u32,
    pub(crate) last_ack_sent: u32,
    pub(crate) last_data_recv: u32,
    pub(crate) last_ack_recv: u32,
    pub(crate) pmtu: u32,
    pub(crate) rcv_ssthresh: u32,
    pub(crate) rtt: u32,
    pub(crate) rttvar: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
    pub(crate) advmss: u32,
    pub(crate) reordering: u32,
    pub(crate) rcv_rtt: u32,
    pub(crate) rcv_space: u32,
    pub(crate) total_retrans: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) max_pacing_rate: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) segs_out: u32,
    pub(crate) segs_in: u32,
    pub(crate) notsent_bytes: u32,
    pub(crate) min_rtt: u32,
    pub(crate) data_segs_in: u32,
    pub(crate) data_segs_out: u32,
    pub(crate) delivery_rate: u64,
    pub(crate) busy_time: u64,
    pub(crate) rwnd_limited: u64,
    pub(crate) sndbuf_limited: u64,
    pub(crate) delivered: u32,
    pub(crate) delivered_ce: u32,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retrans: u64,
    pub(crate) dsack_dups: u32,
    pub(crate) reord_seen: u32,
    pub(crate) rcv_ooopack: u32,
    pub(crate) snd_wnd: u32,
    pub(crate) rcv_wnd: u32,
    pub(crate) rehash: u32,
    pub(crate) total_rto: u16,
    pub(crate) total_rto_recoveries: u16,
    pub(crate) total_rto_time: u32,
    pub(crate) received_ce: u32,
    /// Bytes that the peer received as ECT(1), ECT(0) and CE.
    pub(crate) delivered_ecn_bytes: [u32; 3],
    pub(crate) received_ecn_bytes: [u32; 3],
    /// Bit fields: tcpi_ecn_mode, tcpi_accecn_opt_seen, tcpi_accecn_fail_mode. Linux 6.18, which
    /// negotiates no accurate ECN, has two others here.
    pub(crate) ecn: u32,
}

/// The ECN that the ends of a connection negotiated (tcpi_ecn_mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnMode {
    None,
    Classic,
    Accurate,
    /// Accurate, but what comes of the ACE field or goes into it is not usable, so that no packet is
    /// sent as ECT (TCP_ACCECN_ACE_FAIL_SEND, TCP_ACCECN_ACE_FAIL_RECV).
    Mangled,
}

impl EcnMode {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::None => "no ECN",
            Self::Classic => "RFC 3168's ECN",
            Self::Accurate => "accurate ECN",
            Self::Mangled => "accurate ECN whose counter does not come through",
        }
    }
}

/// TCP_ESTABLISHED of include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;

impl TcpInfo {
    pub(crate) fn of(socket: &OwnedFd) -> io::Result<Self> {
        Ok(Self::with_length(socket)?.0)
    }

    /// The same, and how many of its bytes this kernel knows.
    pub(crate) fn with_length(socket: &OwnedFd) -> io::Result<(Self, usize)> {
        let mut info = Self::default();
        // SAFETY: the struct consists of integers only, so any bytes are valid in it.
        let raw = unsafe {
            std::slice::from_raw_parts_mut((&raw mut info).cast::<u8>(), size_of::<Self>())
        };
        let bytes = option(socket, libc::TCP_INFO, raw)?;
        Ok((info, bytes))
    }

    /// The ECN that an established connection negotiated; only kernels with accurate ECN report it.
    pub(crate) fn ecn_mode(&self) -> Option<EcnMode> {
        let (mode, failed) = (self.ecn & 3, self.ecn >> 4 & 3);
        let mode = match (mode, failed) {
            (2, 0) => EcnMode::Accurate,
            (2, _) => EcnMode::Mangled,
            (1, _) => EcnMode::Classic,
            _ => EcnMode::None,
        };
        (self.state == ESTABLISHED).then_some(mode)
    }

    /// Packets in the network: tcp_packets_in_flight().
    pub(crate) fn inflight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }
}

/// Reads a TCP option into `value`; returns how many bytes the kernel gave.
pub(crate) fn option(socket: &OwnedFd, name: i32, value: &mut [u8]) -> io::Result<usize> {
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, and both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    nix::errno::Errno::result(done)?;
    Ok(length as usize)
}
