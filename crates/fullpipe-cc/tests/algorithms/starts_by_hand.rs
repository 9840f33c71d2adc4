//! SEARCH bin by bin, and Careful Resume at the edge of its test, each against its draft.

use crate::calls::{Caller, MSS};
use fullpipe_cc::{EventKind, INFINITE};

/// W bins of a window of 3.5 times the initial RTT (draft-chung-ccwg-search section 3.2).
const BIN_US: u64 = 35_000;
const INITIAL_RTT_US: u32 = 100_000;
/// What the window's deliveries must lack: a quarter, which is exact in 1/1024.
const QUARTER: u32 = 256;

/// A flow of which the caller says what was acknowledged and sent by the end of each bin.
struct Search {
    flow: Caller,
}

impl Search {
    fn new() -> Self {
        let changes = [("start", 2), ("search_threshold", QUARTER)];
        let mut flow = Caller::with("reno", 10, &changes);
        flow.event(EventKind::Rtt, INITIAL_RTT_US, 1);
        // An ACK at the very end of a bin belongs to it.
        flow.wait_us(1);
        Self { flow }
    }

    /// So many bins later an ACK comes with this RTT; true: slow start is over.
    fn after(&mut self, bins: u64, acked: u32, sent: u32, rtt_us: u64) -> bool {
        self.flow.wait_us(bins * BIN_US);
        (self.flow.conn.snd_una, self.flow.conn.snd_nxt) = (acked, sent);
        self.flow.event(EventKind::Rtt, rtt_us as u32, 1);
        self.flow.ctl.ssthresh != INFINITE
    }
}

/// Bytes sent by the end of a bin.
fn sent(bin: u32) -> u32 {
    1000 * bin * bin
}

/// Whether slow start is over in bin `last`, in which alone an RTT of `rtt_us` is measured and
/// before which everything sent is acknowledged in its bin; its window has `delivered` bytes.
fn ends(last: u32, rtt_us: u64, delivered: u32) -> bool {
    let mut search = Search::new();
    for bin in 1..last {
        // An RTT of no bin looks at what the window itself sent: all of it was acknowledged.
        assert!(!search.after(1, sent(bin), sent(bin), 1), "bin {bin}");
    }
    search.after(1, sent(last - 10) + delivered, sent(last), rtt_us)
}

#[test]
fn search_compares_a_windows_deliveries_with_what_was_sent_an_rtt_earlier() {
    let window = |bin: u32| sent(bin) - sent(bin - 10);
    for (last, rtt_us, expected) in [
        // Two bins: exactly the window that ended two bins ago.
        (14, 2 * BIN_US, window(12)),
        // Half a bin more: the mean of that one and of the one before it.
        (14, 2 * BIN_US + BIN_US / 2, (window(12) + window(11)) / 2),
        // A quarter: three parts of the nearer window.
        (
            14,
            2 * BIN_US + BIN_US / 4,
            (3 * window(12) + window(11)) / 4,
        ),
        (14, 3 * BIN_US, window(11)),
        (30, 14 * BIN_US, window(16)),
    ] {
        assert!(ends(last, rtt_us, expected * 3 / 4), "{last}, {rtt_us}");
        assert!(
            !ends(last, rtt_us, expected * 3 / 4 + 1),
            "{last}, {rtt_us}"
        );
    }
}

#[test]
fn search_looks_when_its_bins_hold_the_window_before_the_rtt() {
    // Bins 0 to W of what was sent, and those of the RTT: nothing was delivered.
    for (rtt_bins, first) in [(1, 12), (2, 13), (14, 25)] {
        assert!(!ends(first - 1, rtt_bins * BIN_US, 0));
        assert!(ends(first, rtt_bins * BIN_US, 0));
    }
    // It keeps 15 bins beyond a window: it cannot look 15 back and the one before.
    assert!(!ends(40, 15 * BIN_US, 0));
}

#[test]
fn bins_without_an_ack_hold_what_was_before_them() {
    // Three bins pass at once: in 14 and 15 nothing was acknowledged and nothing sent. The window of
    // bin 25 began with bin 15's end, that which ended in bin 24 with bin 14's: both with bin 13's.
    let most = (sent(24) - sent(13)) * 3 / 4;
    for (delivered, is_over) in [(most, true), (most + 1, false)] {
        let mut search = Search::new();
        for bin in (1..=13).chain(16..=24) {
            let bins = if bin == 16 { 3 } else { 1 };
            assert!(!search.after(bins, sent(bin), sent(bin), 1));
        }
        let ended = search.after(1, sent(13) + delivered, sent(25), BIN_US);
        assert_eq!(ended, is_over);
    }
}

#[test]
fn after_more_than_a_window_without_an_ack_bins_begin_anew() {
    // What is acknowledged and sent behind the pause, and never again.
    let (acked, sent_since) = (sent(13) + 100_000, sent(13) + 150_000);
    for (pause_bins, over_after) in [(10, Some(3)), (11, None)] {
        let mut search = Search::new();
        for bin in 1..=13 {
            assert!(!search.after(1, sent(bin), sent(bin), 1));
        }
        let rtt_us = u64::from(INITIAL_RTT_US);
        assert!(!search.after(pause_bins, acked, sent_since, rtt_us));
        search.flow.wait_us(1);
        // Of 150 KB sent before the RTT of nearly three bins, 100 KB are delivered: a third lacks.
        let ended = (1..=20).find(|_| search.after(1, acked, sent_since, rtt_us));
        assert_eq!(ended, over_after);
    }
}

#[test]
fn careful_resume_validates_a_jump_of_which_an_initial_window_is_in_flight() {
    // Draft section 3.3, rate_limited: less than IW. Validating, a loss leaves half of PipeSize,
    // in the Normal Phase half of CWND; slow start added the five that were acknowledged.
    let changes = [("start", 3), ("saved_cwnd", 400), ("saved_rtt_us", 100_000)];
    for (flight, ssthresh) in [(9, (10 + 5) / 2), (10, 5 / 2)] {
        let mut flow = Caller::prepared("reno", 10, &changes, |conn| conn.is_paced = 1);
        (flow.conn.snd_una, flow.conn.snd_nxt) = (10 * MSS, 10 * MSS);
        flow.conn.delivered += 10;
        flow.event(EventKind::Rtt, 100_000, 10);
        assert_eq!(flow.ctl.cwnd, 200);
        flow.conn.packets_out = flight;
        flow.conn.snd_nxt += flight * MSS;
        flow.wait_us(100_001);
        flow.conn.delivered += 5;
        flow.event(EventKind::Rtt, 100_000, 5);
        flow.deliver(5);
        assert_eq!((flow.ctl.cwnd, flow.ctl.ssthresh), (15, INFINITE));
        flow.event(EventKind::Ssthresh, 0, 0);
        assert_eq!(flow.ctl.ssthresh, ssthresh, "{flight} in flight");
    }
}

#[test]
fn a_jump_ends_when_it_is_sent_when_its_first_packet_arrives_or_behind_an_rtt() {
    // Draft section 3.3. The jump is to 200 packets, ssthresh above it until it ends.
    let changes = [("start", 3), ("saved_cwnd", 400), ("saved_rtt_us", 100_000)];
    for (flight, acked, bytes_beyond, wait_us, is_over) in [
        (150, 10, 0, 100_000, false),
        (150, 10, 0, 100_001, true),
        (189, 10, 0, 0, false),
        (190, 10, 0, 0, true),
        (150, 10, 1, 0, true),
    ] {
        let mut flow = Caller::prepared("reno", 10, &changes, |conn| conn.is_paced = 1);
        (flow.conn.snd_una, flow.conn.snd_nxt) = (10 * MSS, 10 * MSS);
        flow.event(EventKind::Rtt, 100_000, 10);
        assert_eq!((flow.ctl.cwnd, flow.ctl.ssthresh), (200, 201));
        flow.conn.packets_out = flight;
        flow.conn.snd_nxt += flight * MSS;
        flow.conn.snd_una += bytes_beyond;
        flow.wait_us(wait_us);
        flow.event(EventKind::Rtt, 100_000, acked);
        assert_eq!(
            flow.ctl.ssthresh == INFINITE,
            is_over,
            "{flight}, {wait_us}"
        );
    }
}

#[test]
fn rapid_starts_floor_is_the_least_rtt_of_between_half_and_a_whole_rtt() {
    // Draft section 3.1: a queue has built when rtt_floor rose. Two halves of the least RTT, 20 ms
    // each, are kept, of which the older one goes when the newer one is over; both after a whole one.
    for times_us in [
        &[(19_999, 8), (20_000, 8), (39_999, 8), (40_000, 4)][..],
        &[(20_000, 8), (39_999, 8), (40_000, 4)],
        &[(39_999, 8)],
        &[(40_000, 4)],
    ] {
        let mut flow = Caller::with("reno", 10, &[("start", 4)]);
        flow.event(EventKind::Rtt, 40_000, 4);
        let begin_us = flow.conn.now_us;
        for &(us, growth) in times_us {
            flow.wait_us(begin_us + us - flow.conn.now_us);
            flow.event(EventKind::Rtt, 60_000, 4);
            let before = flow.ctl.cwnd;
            flow.deliver(4);
            assert_eq!(flow.ctl.cwnd - before, growth, "{times_us:?}, {us} us");
        }
    }
}
