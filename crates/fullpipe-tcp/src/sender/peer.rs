//! What the peer said last: its window and its timestamps. Must never know which packets are out.

use crate::handshake::Established;
use crate::packet::Ack;

const NS_PER_MS: u64 = 1_000_000;
/// Linux's initial window, until the handshake is done.
const FIRST_WINDOW_BYTES: u64 = 65_536;

/// The peer's state as far as its packets told it.
#[derive(Debug)]
pub(super) struct Peer {
    /// The window that it offers.
    window_bytes: u64,
    /// No packet has come since its SYN-ACK, so that the next one sets the window, whatever it says.
    is_silent: bool,
    /// Its newest timestamp, which data echo (ts_recent).
    newest_ns: u64,
    /// ACKs that came, and the last one's timestamps, even if it was dropped.
    acks: u32,
    ack_sent_ns: u64,
    ack_echo_ns: u64,
    /// It has closed its side.
    has_closed: bool,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            window_bytes: FIRST_WINDOW_BYTES,
            is_silent: false,
            newest_ns: 0,
            acks: 0,
            ack_sent_ns: 0,
            ack_echo_ns: 0,
            has_closed: false,
        }
    }
}

impl Peer {
    /// The handshake is done.
    pub(super) fn established(&mut self, opened: &Established) {
        self.window_bytes = opened.window_bytes;
        self.is_silent = opened.is_active;
        self.newest_ns = opened.peer_sent_ns;
    }

    /// An ACK came, whatever becomes of it.
    #[inline(always)] // for every ACK
    pub(super) fn count(&mut self, ack: &Ack) {
        self.has_closed |= ack.fin;
        self.acks = self.acks.wrapping_add(1);
        (self.ack_sent_ns, self.ack_echo_ns) = (ack.sent_ns, ack.echo_ns);
    }

    /// PAWS drops an ACK whose timestamp, in milliseconds, is older than the newest one's by more than
    /// TCP_PAWS_WINDOW, unless it says nothing but SACK blocks (tcp_paws_discard(), tcp_disordered_ack()).
    #[inline(always)] // for every ACK
    pub(super) fn drops(&self, ack: &Ack, una: u32) -> bool {
        ack.sent_ns < self.newest_ns && self.is_stale(ack, una)
    }

    #[inline(never)] // only where ACKs overtake each other
    fn is_stale(&self, ack: &Ack, una: u32) -> bool {
        let is_disordered = ack.next == una && !self.updates_window(ack, una) && !ack.fin;
        ack.sent_ns / NS_PER_MS + 1 < self.newest_ns / NS_PER_MS && !is_disordered
    }

    /// tcp_may_update_window(), for ACKs without data: of two with the same number the larger window counts.
    /// The SYN-ACK has a sequence number of its own (snd_wl1).
    #[inline(always)] // for every ACK
    pub(super) fn updates_window(&self, ack: &Ack, una: u32) -> bool {
        ack.next > una
            || ack.window_bytes > self.window_bytes
            || ack.window_bytes == 0
            || self.is_silent
    }

    /// Takes over window and timestamp; whether no ACK was sent later.
    #[inline(always)] // for every ACK
    pub(super) fn take_header(&mut self, ack: &Ack, updates_window: bool) -> bool {
        if updates_window {
            self.window_bytes = ack.window_bytes;
            self.is_silent = false;
        }
        let is_newest = ack.sent_ns >= self.newest_ns;
        if is_newest {
            self.newest_ns = ack.sent_ns;
        }
        is_newest
    }

    #[inline]
    pub(super) fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    /// The timestamp that data echo.
    pub(super) fn newest_ns(&self) -> u64 {
        self.newest_ns
    }

    pub(super) fn has_closed(&self) -> bool {
        self.has_closed
    }

    /// ACKs that came.
    pub(super) fn acks(&self) -> u32 {
        self.acks
    }

    /// The last ACK's timestamp and timestamp echo in milliseconds, as Linux's count.
    pub(super) fn last_timestamps_ms(&self) -> (u32, u32) {
        let ms = |ns: u64| (ns / NS_PER_MS) as u32;
        (ms(self.ack_sent_ns), ms(self.ack_echo_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;

    fn peer() -> Peer {
        let mut peer = Peer::default();
        let first = Ack {
            next: 5,
            window_bytes: 1000,
            sent_ns: 10 * MS,
            ..Ack::default()
        };
        assert!(peer.take_header(&first, true));
        peer
    }

    #[test]
    fn an_ack_that_is_two_milliseconds_older_is_dropped_and_one_millisecond_is_forgiven() {
        // TCP_PAWS_WINDOW is 1, and timestamps count milliseconds.
        for (sent_ns, is_dropped) in [(9 * MS, false), (9 * MS - 1, true), (11 * MS, false)] {
            let ack = Ack {
                next: 6,
                window_bytes: 1000,
                sent_ns,
                ..Ack::default()
            };
            assert_eq!(peer().drops(&ack, 5), is_dropped, "{sent_ns}");
        }
    }

    #[test]
    fn an_old_ack_that_only_carries_sack_blocks_is_kept() {
        // tcp_disordered_ack(): the same number, no larger window, no FIN.
        let old = Ack {
            next: 5,
            window_bytes: 1000,
            sent_ns: 0,
            count: 1,
            ..Ack::default()
        };
        assert!(!peer().drops(&old, 5));
        for changed in [
            Ack { fin: true, ..old },
            Ack {
                window_bytes: 1001,
                ..old
            },
            Ack { next: 6, ..old },
        ] {
            assert!(peer().drops(&changed, 5));
        }
    }

    #[test]
    fn of_two_acks_with_the_same_number_the_larger_window_counts_and_a_closed_one() {
        let of = |next, window_bytes| Ack {
            next,
            window_bytes,
            ..Ack::default()
        };
        let peer = peer();
        assert!(!peer.updates_window(&of(5, 999), 5));
        assert!(peer.updates_window(&of(5, 1001), 5));
        assert!(peer.updates_window(&of(5, 0), 5));
        assert!(peer.updates_window(&of(6, 999), 5));
    }

    #[test]
    fn the_first_ack_after_a_syn_ack_sets_the_window_even_to_less() {
        // tcp_may_update_window(): its sequence number is after that of the SYN-ACK (snd_wl1).
        for (is_active, is_update) in [(true, true), (false, false)] {
            let mut peer = Peer::default();
            peer.established(&Established {
                is_active,
                window_bytes: 65_535,
                ..Established::default()
            });
            let smaller = Ack {
                window_bytes: 15_000,
                ..Ack::default()
            };
            assert_eq!(peer.updates_window(&smaller, 0), is_update);
            peer.take_header(&smaller, true);
            let smallest = Ack {
                window_bytes: 14_000,
                ..Ack::default()
            };
            assert!(!peer.updates_window(&smallest, 0));
        }
    }
}
