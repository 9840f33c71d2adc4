//! The window that free memory allows: tcp_grow_window() and tcp_measure_rcv_mss() of tcp_input.c,
//! tcp_select_window() of tcp_output.c. Must never know what lies in the buffer.

use crate::rules::Rules;

use super::unread::OVERHEAD_BYTES;

/// Initial size (sysctl tcp_rmem[1]).
pub(super) const INITIAL_BYTES: u64 = 131_072;

/// tp->scaling_ratio: the part of memory that counts as window, in 256ths. Half until a packet arrived.
const RATIO_UNIT: u64 = 256;
const INITIAL_RATIO: u64 = 128;
/// Shorter packets do not make the window grow (tcp_event_data_recv()).
const LEAST_GROWING_BYTES: u32 = 128;
const MAX_SHIFT: u32 = 14;
/// The largest window without a scale (RFC 7323, section 2.2).
const MAX_UNSCALED_BYTES: u64 = 65_535;

/// The window of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receiver) struct Offer {
    pub(in crate::receiver) window_bytes: u64,
    /// More than half of the buffer is in use.
    pub(in crate::receiver) is_short: bool,
}

/// The window of one connection.
#[derive(Debug)]
pub(super) struct Window {
    mss_bytes: u64,
    /// sk_rcvbuf and tcp_rmem[2].
    size_bytes: u64,
    most_bytes: u64,
    ratio: u64,
    full_ratio: u64,
    /// Upper limit of the window, and the current one (window_clamp, rcv_ssthresh).
    clamp_bytes: u64,
    threshold_bytes: u64,
    /// The bits of a window below its scale.
    scale_mask: u64,
    /// The window advertised last (rcv_wnd), and `next` of that ACK (rcv_wup).
    offered_bytes: u64,
    offered_at: u32,
}

/// The window that a receiver with room for `bytes` offers: a multiple of the MSS where it needs no scale
/// (`__tcp_select_window()`).
fn fixed_window_bytes(bytes: u64, mss_bytes: u64) -> u64 {
    match bytes > MAX_UNSCALED_BYTES {
        true => bytes,
        false => bytes / mss_bytes * mss_bytes,
    }
}

impl Window {
    /// `advertised_bytes`: the MSS that the connection's first clamp leaves out; `fixed_bytes`: a window that
    /// does not change.
    pub(super) fn new(
        mss_bytes: u64,
        advertised_bytes: u64,
        rules: Rules,
        most_bytes: u64,
        fixed_bytes: Option<u64>,
    ) -> Self {
        let full_ratio = match rules.measures_scaling_ratio() {
            true => mss_bytes * RATIO_UNIT / (mss_bytes + OVERHEAD_BYTES),
            false => INITIAL_RATIO,
        };
        let space_bytes = INITIAL_BYTES * INITIAL_RATIO / RATIO_UNIT;
        let clamp_bytes = space_bytes - advertised_bytes.min(space_bytes / 2);
        let offered_bytes = space_bytes / mss_bytes * mss_bytes;
        let scaled_bytes = most_bytes.max(rules.rmem_max_bytes());
        let shift = (scaled_bytes.ilog2() - 15).min(MAX_SHIFT);
        Self {
            mss_bytes,
            size_bytes: INITIAL_BYTES,
            most_bytes,
            ratio: INITIAL_RATIO,
            full_ratio,
            clamp_bytes,
            threshold_bytes: clamp_bytes,
            scale_mask: (1 << shift) - 1,
            offered_bytes: fixed_bytes
                .map_or(offered_bytes, |bytes| fixed_window_bytes(bytes, mss_bytes)),
            offered_at: 0,
        }
    }

    /// The window advertised last.
    #[inline(always)] // for every packet
    pub(super) fn offered_bytes(&self) -> u64 {
        self.offered_bytes
    }

    #[cfg(test)]
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The window's upper limit.
    pub(super) fn clamp_bytes(&self) -> u64 {
        self.clamp_bytes
    }

    /// The window of an ACK for `next`, with this much memory in use; it never shrinks.
    #[inline(always)]
    pub(super) fn offer(&mut self, next: u32, used_bytes: u64) -> Offer {
        let left_bytes = self.left_bytes(next);
        let new = self.select(used_bytes);
        self.offered_bytes = self.round_up(new.window_bytes.max(left_bytes));
        self.offered_at = next;
        Offer {
            window_bytes: self.offered_bytes,
            is_short: new.is_short,
        }
    }

    /// What packets before `next` have left of the window (tcp_receive_window()).
    #[inline(always)]
    fn left_bytes(&self, next: u32) -> u64 {
        let acked_bytes = u64::from(next - self.offered_at) * self.mss_bytes;
        self.offered_bytes.saturating_sub(acked_bytes)
    }

    /// Whether the window would be at least twice what packets before `next` have left of it.
    #[inline]
    pub(super) fn doubles(&self, next: u32, used_bytes: u64) -> bool {
        let left_bytes = self.left_bytes(next);
        2 * left_bytes <= self.clamp_bytes && {
            let window_bytes = self.round_up(self.select(used_bytes).window_bytes);
            window_bytes > 0 && window_bytes >= 2 * left_bytes
        }
    }

    /// Whether the window would not be smaller than the one advertised last.
    #[inline(always)]
    pub(super) fn keeps(&self, used_bytes: u64) -> bool {
        self.round_up(self.select(used_bytes).window_bytes) >= self.offered_bytes
    }

    /// __tcp_select_window() without the final rounding.
    #[inline(always)] // called twice for most ACKs
    fn select(&self, used_bytes: u64) -> Offer {
        let mut free_bytes = self.free_bytes(used_bytes);
        let is_short = free_bytes < self.clamp_bytes / 2;
        if is_short {
            free_bytes &= !self.scale_mask;
            if free_bytes < self.clamp_bytes / 16 || free_bytes < self.mss_bytes {
                free_bytes = 0;
            }
        }
        Offer {
            window_bytes: free_bytes.min(self.threshold_bytes),
            is_short,
        }
    }

    /// Rounds up to a multiple of the window's scale.
    #[inline(always)]
    fn round_up(&self, bytes: u64) -> u64 {
        (bytes + self.scale_mask) & !self.scale_mask
    }

    fn window_of(&self, memory_bytes: u64) -> u64 {
        memory_bytes * self.ratio / RATIO_UNIT
    }

    /// tcp_space().
    #[inline(always)]
    fn free_bytes(&self, used_bytes: u64) -> u64 {
        self.window_of(self.size_bytes.saturating_sub(used_bytes))
    }

    /// tcp_grow_window(): by two packets for each packet, as far as memory allows.
    #[inline(always)]
    pub(super) fn grow(&mut self, payload_bytes: u32, used_bytes: u64) -> bool {
        if self.threshold_bytes >= self.clamp_bytes || payload_bytes < LEAST_GROWING_BYTES {
            return false;
        }
        let limit_bytes = self.clamp_bytes.min(self.free_bytes(used_bytes));
        if limit_bytes <= self.threshold_bytes {
            return false;
        }
        self.threshold_bytes = limit_bytes.min(self.threshold_bytes + 2 * self.mss_bytes);
        true
    }

    /// tcp_measure_rcv_mss(): the first packet sets the scaling ratio; true then.
    #[inline(always)]
    pub(super) fn measure_ratio(&mut self) -> bool {
        let is_new = self.ratio != self.full_ratio;
        if is_new {
            self.ratio = self.full_ratio;
            self.clamp_bytes = self.window_of(self.size_bytes);
        }
        is_new
    }

    /// Makes the buffer large enough for a window.
    pub(super) fn make_room(&mut self, window_bytes: u128) {
        let size = window_bytes * u128::from(RATIO_UNIT) / u128::from(self.ratio);
        let size_bytes =
            u64::try_from(size).map_or(self.most_bytes, |size| size.min(self.most_bytes));
        if size_bytes > self.size_bytes {
            self.size_bytes = size_bytes;
            self.clamp_bytes = self.window_of(size_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn window() -> Window {
        let mut window = Window::new(MSS, MSS, Rules::default(), 64 << 20, None);
        window.measure_ratio();
        window
    }

    #[test]
    fn a_window_never_takes_back_what_was_offered() {
        // RFC 9293 section 3.8.6: the right edge does not move left.
        let mut window = window();
        let first = window.offer(0, 0).window_bytes;
        for (next, used_bytes) in [(1, 40_000), (5, 100_000), (20, 131_072)] {
            let offer = window.offer(next, used_bytes);
            assert!(
                u64::from(next) * MSS + offer.window_bytes >= first,
                "{next}"
            );
        }
        assert!(window.offer(60, 131_072).window_bytes == 0, "all was used");
    }

    #[test]
    fn windows_are_multiples_of_their_scale() {
        // tcp_select_initial_window(): a ceiling of 64 MiB needs a shift of 11.
        let mut window = window();
        for used_bytes in [0, 1, 30_000, 77_777] {
            assert_eq!(window.offer(1000, used_bytes).window_bytes % (1 << 11), 0);
        }
    }

    #[test]
    fn half_a_buffer_in_use_is_short_and_a_sixteenth_left_closes_the_window() {
        let mut window = window();
        let clamp = window.clamp_bytes();
        let used_for = |free: u64| INITIAL_BYTES - free * RATIO_UNIT / 158 - 1;
        assert!(!window.offer(100, used_for(clamp / 2 + 2000)).is_short);
        assert!(window.offer(200, used_for(clamp / 2 - 2000)).is_short);
        assert_eq!(
            window.offer(300, used_for(clamp / 16 - 100)).window_bytes,
            0
        );
    }

    #[test]
    fn each_packet_makes_the_window_grow_by_two_up_to_its_clamp() {
        let mut window = window();
        let before = window.threshold_bytes;
        assert!(!window.grow(127, 0));
        assert!(window.grow(1448, 0));
        assert_eq!(window.threshold_bytes, before + 2 * MSS);
        while window.grow(1448, 0) {}
        assert_eq!(window.threshold_bytes, window.clamp_bytes());
    }
}
