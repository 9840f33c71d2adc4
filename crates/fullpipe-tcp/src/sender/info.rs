//! What a program sees of a socket: struct tcp_info of linux/tcp.h, as tcp_get_info() fills it, with the fields
//! that a sender has.

use fullpipe_cc::CaState;

/// The sender's part of `struct tcp_info`. Names follow that structure, without `tcpi_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// State of recovery.
    pub ca_state: CaState,
    /// Timeouts since data were last acknowledged.
    pub retransmits: u32,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// The timeout in us, back-off included.
    pub rto_us: u64,
    /// Packets that are not acknowledged, and how many of them are SACKed, lost and sent again.
    pub unacked: u32,
    /// SACKed packets.
    pub sacked: u32,
    /// Packets taken for lost.
    pub lost: u32,
    /// Retransmissions in flight.
    pub retrans: u32,
    /// Smoothed RTT in us.
    pub rtt_us: u32,
    /// Mean deviation of the RTT in us.
    pub rttvar_us: u32,
    /// Least RTT in us.
    pub min_rtt_us: u32,
    /// Slow-start threshold; `None`: it is not set.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window in packets.
    pub snd_cwnd: u32,
    /// Packets that reordering may displace.
    pub reordering: u32,
    /// Packets sent again.
    pub total_retrans: u64,
    /// Packets with data sent, retransmissions included.
    pub data_segs_out: u64,
    /// Packets delivered, and those of them that were marked.
    pub delivered: u32,
    /// Marked packets.
    pub delivered_ce: u32,
    /// Packets that DSACKs reported.
    pub dsack_dups: u64,
    /// Times that reordering was seen.
    pub reord_seen: u32,
    /// Retransmission timeouts.
    pub total_rto: u64,
    /// Payload acknowledged.
    pub bytes_acked: u64,
    /// Payload in the send buffer that is not sent.
    pub notsent_bytes: u64,
    /// The peer's window.
    pub snd_wnd: u64,
    /// Pacing rate in bytes/s.
    pub pacing_rate: u64,
    /// Newest sample of the delivery rate in bytes/s.
    pub delivery_rate: u64,
}
