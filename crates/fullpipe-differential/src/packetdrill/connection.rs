//! What the SYNs of a connection agreed on, and the options and windows that follow from it.

use super::segment::{Segment, TcpOption};

/// Linux's own MSS behind an MTU of 1500 bytes, and the bytes of timestamps in each packet.
const OWN_MSS: u16 = 1_460;
const TIMESTAMP_BYTES: u32 = 12;
/// TCP_MSS_DEFAULT, for a SYN without the option.
const DEFAULT_MSS: u16 = 536;
/// Largest window scale (RFC 7323).
const SHIFT_MAX: u8 = 14;
const WINDOW_MAX: u32 = 65_535;

/// How an end is set up (sysctl tcp_timestamps, tcp_rmem).
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) timestamps: bool,
    /// Default and largest receive buffer.
    pub(super) buffer_bytes: u32,
    pub(super) buffer_max_bytes: u32,
}

impl Offer {
    /// Bits of the window scale (tcp_select_initial_window()).
    fn shift(self) -> u8 {
        let bits = self.buffer_max_bytes.max(1).ilog2();
        (bits.saturating_sub(15) as u8).min(SHIFT_MAX)
    }
}

/// What the SYNs agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub(super) timestamps: bool,
    offer: Offer,
    sack: bool,
    /// Window scale of the peer; `None`: nobody scales.
    scale: Option<u8>,
    peer_mss: u16,
    /// The newest timestamp of the peer (ts_recent).
    pub(super) recent: u32,
}

impl Connection {
    /// With what the peer's SYN or SYN-ACK says.
    pub(super) fn new(syn: &Segment, offer: Offer) -> Self {
        let mut connection = Self {
            timestamps: false,
            offer,
            sack: false,
            scale: None,
            peer_mss: DEFAULT_MSS,
            recent: 0,
        };
        for option in &syn.options {
            match *option {
                TcpOption::Mss(mss) => connection.peer_mss = mss,
                TcpOption::Wscale(shift) => connection.scale = Some(shift.min(SHIFT_MAX)),
                TcpOption::SackOk => connection.sack = true,
                TcpOption::Ts(value, _) if offer.timestamps => {
                    connection.timestamps = true;
                    connection.recent = value;
                }
                _ => {}
            }
        }
        connection
    }

    /// What this end's SYN offers.
    pub(super) fn offered(offer: Offer) -> Self {
        Self {
            timestamps: offer.timestamps,
            offer,
            sack: true,
            scale: Some(0),
            peer_mss: OWN_MSS,
            recent: 0,
        }
    }

    /// Whether the peer permits SACK.
    pub(super) fn has_sack(&self) -> bool {
        self.sack
    }

    /// Payload of a full packet to the peer.
    pub(super) fn payload_bytes(&self) -> u32 {
        let options = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        u32::from(self.peer_mss.min(OWN_MSS))
            .saturating_sub(options)
            .max(1)
    }

    /// A window of the peer in bytes; that of a SYN is not scaled.
    pub(super) fn peer_window_bytes(&self, window: u16) -> u64 {
        u64::from(window) << self.scale.unwrap_or(0)
    }

    /// This end's window as it is written.
    pub(super) fn own_window(&self, bytes: u64) -> u16 {
        let shift = self.scale.map_or(0, |_| self.offer.shift());
        (bytes >> shift).min(WINDOW_MAX.into()) as u16
    }

    /// The window of this end's SYN: whole packets (tcp_select_initial_window()).
    pub(super) fn first_window(&self, is_passive: bool) -> u16 {
        let options = if is_passive && self.timestamps {
            TIMESTAMP_BYTES
        } else {
            0
        };
        let mss = u32::from(OWN_MSS) - options;
        // tcp_full_space(): half of the buffer is for headers.
        (self.offer.buffer_bytes / 2 / mss * mss).min(WINDOW_MAX) as u16
    }

    /// Options of this end's SYN, in Linux's order (tcp_options_write()).
    pub(super) fn syn_options(&self, stamp: u32) -> Vec<TcpOption> {
        let mut options = vec![TcpOption::Mss(OWN_MSS)];
        match (self.timestamps, self.sack) {
            (true, sack) => {
                let before = [TcpOption::Nop, TcpOption::Nop];
                match sack {
                    true => options.push(TcpOption::SackOk),
                    false => options.extend(before),
                }
                options.push(TcpOption::Ts(stamp, self.recent));
            }
            (false, true) => options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::SackOk]),
            (false, false) => {}
        }
        if self.scale.is_some() {
            options.extend([TcpOption::Nop, TcpOption::Wscale(self.offer.shift())]);
        }
        options
    }

    /// Options of another packet.
    pub(super) fn options(&self, stamp: u32, sack: Vec<(u32, u32)>) -> Vec<TcpOption> {
        let mut options = Vec::new();
        if self.timestamps {
            let stamps = TcpOption::Ts(stamp, self.recent);
            options.extend([TcpOption::Nop, TcpOption::Nop, stamps]);
        }
        if !sack.is_empty() {
            options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Sack(sack)]);
        }
        options
    }
}
