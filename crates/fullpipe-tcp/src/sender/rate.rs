//! Delivery-rate samples: draft-ietf-ccwg-bbr section 4.1, Linux tcp_rate.c.

use super::scoreboard::{is_later, Sent, APP_LIMITED, EVER_RETRANS};

/// Connection-wide state of the estimator.
#[derive(Clone, Debug, Default)]
pub(super) struct RateState {
    /// Packets delivered.
    delivered: u32,
    /// Of those, packets that an ACK reported as marked.
    delivered_ce: u32,
    /// When `delivered` last grew.
    delivered_us: u64,
    /// Send time of the newest packet delivered.
    first_tx_us: u64,
    /// The application-limited bubble ends when `delivered` passes this; 0: there is none.
    app_limited: u32,
    /// The latest valid sample, for tcpi_delivery_rate.
    rate_delivered: u32,
    rate_interval_us: u32,
}

/// The sample of one ACK (struct rate_sample).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) prior_us: u64,
    pub(super) prior_delivered: u32,
    pub(super) prior_delivered_ce: u32,
    pub(super) send_interval_us: u64,
    /// One past the last packet of the newest packet's buffer.
    pub(super) end: u32,
    pub(super) is_app_limited: bool,
    pub(super) is_retrans: bool,
    pub(super) tx_inflight: u32,
    pub(super) prior_lost: u32,
    pub(super) delivered: i32,
    pub(super) delivered_ce: i32,
    pub(super) interval_us: i32,
    newest_order: u32,
}

impl RateState {
    /// The handshake is done: the SYN counts as delivered (tcp_rcv_synsent_state_process()).
    pub(super) fn established(&mut self, now_us: u64) {
        self.delivered = 1;
        self.delivered_us = now_us;
        self.first_tx_us = now_us;
    }

    #[inline(always)] // as all that only read
    pub(super) fn delivered(&self) -> u32 {
        self.delivered
    }

    #[inline(always)]
    pub(super) fn delivered_ce(&self) -> u32 {
        self.delivered_ce
    }

    #[inline(always)]
    pub(super) fn delivered_us(&self) -> u64 {
        self.delivered_us
    }

    #[inline(always)]
    pub(super) fn first_tx_us(&self) -> u64 {
        self.first_tx_us
    }

    #[inline(always)]
    pub(super) fn app_limited(&self) -> u32 {
        self.app_limited
    }

    /// Latest delivery-rate sample in packets of `mss_bytes`, as bit/s.
    pub(super) fn bits_per_s(&self, mss_bytes: u32) -> u64 {
        let bits = u64::from(self.rate_delivered) * u64::from(mss_bytes) * 8;
        match self.rate_interval_us {
            0 => 0,
            us => bits * 1_000_000 / u64::from(us),
        }
    }

    /// Packets were delivered.
    #[inline(always)]
    pub(super) fn count_delivered(&mut self, packets: u32) {
        self.delivered = self.delivered.wrapping_add(packets);
    }

    /// Of packets delivered, some were marked.
    pub(super) fn count_marked(&mut self, packets: u32) {
        self.delivered_ce = self.delivered_ce.wrapping_add(packets);
    }

    /// A packet is sent (tcp_rate_skb_sent()); `restarts`: a new interval begins with it.
    pub(super) fn sent(&mut self, record: &mut Sent, sent_us: u64, restarts: bool) {
        if restarts {
            self.first_tx_us = sent_us;
            self.delivered_us = sent_us;
        }
        record.first_tx_us = self.first_tx_us;
        record.delivered_us = self.delivered_us;
        record.delivered = self.delivered;
        record.delivered_ce = self.delivered_ce;
        if self.app_limited != 0 {
            record.flags |= APP_LIMITED;
        } else {
            record.flags &= !APP_LIMITED;
        }
    }

    /// Sets how many packets count as delivered.
    pub(super) fn set_delivered(&mut self, packets: u32) {
        self.delivered = packets;
    }

    /// A packet was delivered (tcp_rate_skb_delivered()).
    #[inline(always)] // keeps the sample in registers
    pub(super) fn packet_delivered(&mut self, sample: &mut Sample, record: &mut Sent, number: u32) {
        if record.delivered_us == 0 {
            return;
        }
        let newest = sample.prior_us == 0 || is_later(record.order, sample.newest_order);
        if newest {
            let sent_us = record.at_ns / 1000;
            sample.prior_us = record.delivered_us;
            sample.prior_delivered = record.delivered;
            sample.prior_delivered_ce = record.delivered_ce;
            sample.is_app_limited = record.flags & APP_LIMITED != 0;
            sample.is_retrans = record.flags & EVER_RETRANS != 0;
            sample.tx_inflight = record.burst_inflight;
            sample.prior_lost = record.lost;
            sample.end = number + 1 + u32::from(record.behind);
            sample.newest_order = record.order;
            sample.send_interval_us = sent_us.saturating_sub(record.first_tx_us);
            self.first_tx_us = sent_us;
        }
        record.delivered_us = 0;
    }

    /// Completes the sample once all packets of the ACK are processed (tcp_rate_gen()).
    #[inline(always)] // as `packet_delivered`
    pub(super) fn generate(
        &mut self,
        sample: &mut Sample,
        grew: bool,
        now_us: u64,
        min_rtt_us: u32,
    ) {
        // The bubble ends once all packets that were sent in it are delivered.
        if self.app_limited != 0 && (self.delivered.wrapping_sub(self.app_limited) as i32) > 0 {
            self.app_limited = 0;
        }
        if grew {
            self.delivered_us = now_us;
        }
        if sample.prior_us == 0 {
            sample.delivered = -1;
            sample.interval_us = -1;
            return;
        }
        sample.delivered = self.delivered.wrapping_sub(sample.prior_delivered) as i32;
        sample.delivered_ce = self.delivered_ce.wrapping_sub(sample.prior_delivered_ce) as i32;
        let ack_interval_us = now_us - sample.prior_us;
        let interval_us = sample.send_interval_us.max(ack_interval_us);
        // An interval below the minimum RTT is an artefact of ACK compression.
        if min_rtt_us != u32::MAX && interval_us < u64::from(min_rtt_us) {
            sample.interval_us = -1;
            return;
        }
        sample.interval_us = i32::try_from(interval_us).unwrap_or(i32::MAX);
        let faster = u64::from(sample.delivered.max(0) as u32) * u64::from(self.rate_interval_us)
            >= u64::from(self.rate_delivered) * interval_us;
        if !sample.is_app_limited || faster {
            self.rate_delivered = sample.delivered.max(0) as u32;
            self.rate_interval_us = sample.interval_us as u32;
        }
    }

    /// Begins an application-limited bubble (tcp_rate_check_app_limited()).
    pub(super) fn mark_app_limited(&mut self, inflight: u32) {
        self.app_limited = self.delivered.wrapping_add(inflight).max(1);
    }
}
