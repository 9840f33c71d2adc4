//! What a sender says of itself: tcp_get_info() of tcp.c.

use super::info::SenderInfo;
use super::Sender;

impl Sender {
    /// tcp_get_info().
    pub fn info(&self) -> SenderInfo {
        let totals = self.totals();
        SenderInfo {
            ca_state: self.recovery.state(),
            retransmits: self.recovery.timeouts(),
            backoff: self.rtt.backoff(),
            rto_us: self.rtt.timeout_ns() / 1000,
            unacked: self.flight.out(),
            sacked: self.flight.sacked(),
            lost: self.flight.lost(),
            retrans: self.flight.retransmitted(),
            rtt_us: self.rtt.smoothed_us(),
            rttvar_us: self.rtt.deviation_us(),
            min_rtt_us: self.rtt.min_us(),
            snd_ssthresh: self.ssthresh(),
            snd_cwnd: self.cwnd(),
            reordering: self.recovery.dupthresh(),
            total_retrans: totals.packets_retransmitted,
            data_segs_out: totals.packets_sent,
            delivered: self.rate.delivered(),
            delivered_ce: self.rate.delivered_ce(),
            dsack_dups: self.recovery.duplicates(),
            reord_seen: self.recovery.reorderings(),
            total_rto: totals.timeouts,
            bytes_acked: self.acked_bytes(),
            notsent_bytes: self.queue.unsent_bytes(self.next_byte()),
            snd_wnd: self.peer.window_bytes(),
            pacing_rate: self.control.pacing_rate(),
            delivery_rate: self.delivery_rate_bps() / 8,
        }
    }

    /// The packet that begins at a byte of the sequence space, of those that were sent and the next two; `None`:
    /// none does.
    pub fn packet_at(&self, byte: u64) -> Option<u32> {
        let number = self.stream.packet_at(byte)?;
        (number <= self.flight.next() + 1).then_some(number)
    }
}
