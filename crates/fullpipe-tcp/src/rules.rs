//! Which kernel does what: one predicate or value for each change of Linux's TCP that moves packets,
//! with the commit that made it and the first mainline release that has it.
//!
//! Stable releases take over fixes, so a late 6.1 has rules that 6.4 lacks. [`Kernel::Linux6_1`] and
//! [`Kernel::Linux6_12_117`] are stable releases of November 2026 (the first is 6.1.192); the others
//! are mainline as released.

use fullpipe_plan::Kernel;

use crate::skb::{BUFFER_BYTES, ROUNDED_BUFFER_BYTES};

/// The rules of one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules(Kernel);

impl From<Kernel> for Rules {
    fn from(kernel: Kernel) -> Self {
        Self(kernel)
    }
}

impl Rules {
    fn since(self, kernel: Kernel) -> bool {
        self.0 >= kernel
    }

    /// Fixes of 2025 that stable releases took over.
    fn has_stable_fixes_of_2025(self) -> bool {
        self.since(Kernel::Linux6_12_117) || self.0 == Kernel::Linux6_1
    }

    /// A sender that was limited by its window stays so for the rest of the round trip:
    /// tcp_cwnd_validate(), commit f4ce91ce12a7, in 6.1.
    pub(crate) fn remembers_cwnd_limited(self) -> bool {
        self.since(Kernel::Linux6_1)
    }

    /// A full segment with PSH is acknowledged when the application has read it:
    /// tcp_measure_rcv_mss(), commit 4720852ed9af, in 6.6 and in stable releases since October 2023.
    pub(crate) fn acks_full_segments_with_psh(self) -> bool {
        self.since(Kernel::Linux6_12) || self.0 == Kernel::Linux6_1
    }

    /// A receiver measures which part of its memory is payload, instead of assuming half:
    /// scaling_ratio, commit dfa2f0483360, in 6.6.
    pub(crate) fn measures_scaling_ratio(self) -> bool {
        self.since(Kernel::Linux6_12)
    }

    /// The receiver's RTT falls to a smaller sample at once: tcp_rcv_rtt_update(), commit
    /// b879dcb1aeec, in 6.16 and in stable releases since June 2025.
    pub(crate) fn rcv_rtt_falls_at_once(self) -> bool {
        self.has_stable_fixes_of_2025()
    }

    /// A passive open subtracts the timestamp option from `advmss` before it sizes the receive buffer:
    /// tcp_rcv_state_process(), commit cd171461b90a, in 6.16 and in stable releases since June 2025.
    pub(crate) fn sizes_buffer_after_advmss(self) -> bool {
        self.has_stable_fixes_of_2025()
    }

    /// Bytes that are queued unread do not count as read in this round trip:
    /// tcp_rcv_space_adjust(), commit ea33537d8292, in 6.16 and in stable 6.12 since June 2025.
    pub(crate) fn excludes_unread_from_copied(self) -> bool {
        self.since(Kernel::Linux6_12_117)
    }

    /// Receiver RTT samples below 1 ms are ignored: tcp_rcv_rtt_measure_ts(), commit d59fc95be9d0, in
    /// 6.16 and in stable 6.12 since June 2025.
    pub(crate) fn ignores_rcv_rtt_below_1_ms(self) -> bool {
        self.since(Kernel::Linux6_12_117)
    }

    /// The receiver's RTT does not rise while data wait to be read: tcp_rcv_rtt_update(), commit
    /// a00f135cd986, in 6.16; no stable release has it.
    pub(crate) fn rcv_rtt_ignores_queued(self) -> bool {
        self.since(Kernel::Linux6_18)
    }

    /// A receive buffer grows to twice what a round trip brought, without a cushion, plus what lies
    /// beyond a hole, and also as packets beyond a hole arrive: tcp_rcvbuf_grow(), commits 65c5287892e9
    /// and 63ad7dfedfae, in 6.16, and aa251c84636c, in 6.18.
    pub(crate) fn grows_buffer_for_out_of_order(self) -> bool {
        self.since(Kernel::Linux6_18)
    }

    /// For which part of the RTT compressed ACKs wait, in percent: sysctl tcp_comp_sack_rtt_percent,
    /// commit 416dd649f3aa, in 6.19.
    pub(crate) fn comp_sack_rtt_percent(self) -> u64 {
        match self.since(Kernel::Linux7_3) {
            true => 33,
            false => 5,
        }
    }

    /// Timer slack of compressed ACKs: sysctl tcp_comp_sack_slack_ns, commit ca412f25d6b2, in 6.19.
    pub(crate) fn comp_sack_slack_ns(self) -> u64 {
        match self.since(Kernel::Linux7_3) {
            true => 10_000,
            false => 100_000,
        }
    }

    /// The buffer size that a window's shift allows for at least: sysctl net.core.rmem_max, commit
    /// a6d4f25888b8, in 6.18.
    pub(crate) fn rmem_max_bytes(self) -> u64 {
        match self.since(Kernel::Linux6_18) {
            true => 4 << 20,
            false => 212_992,
        }
    }

    /// How much of a paced connection may be queued below TCP, whatever its rate: sysctl
    /// tcp_limit_output_bytes in tcp_small_queue_check(), commits c4221a8cc3a7 and 9ea3bfa61b09, in 6.16.
    pub(crate) fn paced_output_limit_bytes(self) -> u64 {
        match self.since(Kernel::Linux6_18) {
            true => 4 << 20,
            false => u64::MAX,
        }
    }

    /// sendfile() hands pages to TCP one by one, each in a call of its own: tcp_sendpage(), until commit
    /// 2dc334f1a63a (MSG_SPLICE_PAGES), in 6.5.
    pub(crate) fn sends_page_by_page(self) -> bool {
        !self.since(Kernel::Linux6_12)
    }

    /// truesize of an empty buffer of the write queue. The head of one has its exact size since commit
    /// bf9f1baa279f (skb_small_head_cache), in 6.3.
    pub(crate) fn buffer_bytes(self) -> u64 {
        match self.since(Kernel::Linux6_12) {
            true => BUFFER_BYTES,
            false => ROUNDED_BUFFER_BYTES,
        }
    }

    /// A burst may take packets from the next buffer of the write queue: tcp_grow_skb(), commit
    /// 8ee602c63520, in 6.10.
    pub(crate) fn bursts_span_buffers(self) -> bool {
        self.since(Kernel::Linux6_12)
    }

    /// Packets in the largest burst of a device that sets no limit. A buffer of the write queue is of
    /// 65215 bytes (tcp_xmit_size_goal(), sk_gso_max_size), which are 45 full packets. Where a burst
    /// ends with a buffer that number decides which bursts are short, so kernels before 6.10 have it;
    /// the others have the even number below, which their bursts hold as well.
    pub fn gso_max_segments(self) -> u32 {
        match self.bursts_span_buffers() {
            true => 44,
            false => 45,
        }
    }

    /// A sender defers a burst only if an ACK is due within 1 ms, instead of half a round trip:
    /// tcp_tso_should_defer(), commit 295ce1eb36ae, in 6.18 and in stable releases since October 2025.
    pub(crate) fn defers_at_most_1_ms(self) -> bool {
        self.has_stable_fixes_of_2025()
    }
}
