//! How much memory a send buffer may take (sk_sndbuf). Must never know how much it takes.

use crate::skb::HEADER_ROOM_BYTES;

/// SKB_DATA_ALIGN() of struct skb_shared_info and of struct sk_buff.
const SHARED_INFO_BYTES: u64 = 320;
const SK_BUFF_BYTES: u64 = 256;
/// Initial sk_sndbuf (second value of sysctl tcp_wmem).
const FIRST_BYTES: u64 = 16_384;
/// TCP_INIT_CWND: a send buffer has room for at least this window.
const LEAST_WINDOW: u32 = 10;
/// The timestamp option, which mss_clamp includes.
const OPTION_BYTES: u64 = 12;

/// The limit of a send buffer's memory.
#[derive(Default)]
pub(super) struct Limit {
    bytes: u64,
    /// The congestion window that it was sized for.
    window: u32,
    /// Its ceiling (third value of sysctl tcp_wmem).
    most_bytes: u64,
}

impl Limit {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self {
            bytes: FIRST_BYTES.min(most_bytes),
            window: 0,
            most_bytes,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[cfg(test)]
    pub(super) fn set(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    #[inline(always)]
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// tcp_sndbuf_expand(): space for `factor` windows of packets, each in a buffer of its own whose size
    /// is a power of two. True if the limit has grown.
    pub(super) fn expand(&mut self, window: u32, factor: u32, mss_bytes: u64) -> bool {
        let window = window.max(LEAST_WINDOW);
        if window <= self.window {
            return false;
        }
        self.window = window;
        let payload_bytes = mss_bytes + OPTION_BYTES;
        let head_bytes = payload_bytes + HEADER_ROOM_BYTES + SHARED_INFO_BYTES;
        let packet_bytes = head_bytes.next_power_of_two() + SK_BUFF_BYTES;
        let bytes = u64::from(window) * u64::from(factor) * packet_bytes;
        self.bytes = self.bytes.max(bytes.min(self.most_bytes));
        true
    }
}
