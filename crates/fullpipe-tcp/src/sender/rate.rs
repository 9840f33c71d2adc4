//! Delivery-rate samples: draft-ietf-ccwg-bbr section 4.1, Linux tcp_rate.c.

use super::scoreboard::{is_later, Sent, APP_LIMITED, EVER_RETRANS};

/// Connection-wide state of the estimator.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateState {
    /// Packets delivered.
    pub(crate) delivered: u32,
    /// Of those, packets that an ACK reported as marked.
    pub(crate) delivered_ce: u32,
    /// When `delivered` last grew.
    pub(crate) delivered_us: u64,
    /// Send time of the newest packet delivered.
    pub(crate) first_tx_us: u64,
    /// The application-limited bubble ends when `delivered` passes this; 0: there is none.
    pub(crate) app_limited: u32,
    /// The latest valid sample, for tcpi_delivery_rate.
    pub(crate) rate_delivered: u32,
    pub(crate) rate_interval_us: u32,
}

/// The sample of one ACK (struct rate_sample).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) prior_us: u64,
    pub(crate) prior_delivered: u32,
    pub(crate) prior_delivered_ce: u32,
    pub(crate) send_interval_us: u64,
    /// One past the last packet of the newest packet's buffer.
    pub(crate) end: u32,
    pub(crate) is_app_limited: bool,
    pub(crate) is_retrans: bool,
    pub(crate) tx_inflight: u32,
    pub(crate) prior_lost: u32,
    pub(crate) delivered: i32,
    pub(crate) delivered_ce: i32,
    pub(crate) interval_us: i32,
    newest_order: u32,
}

impl RateState {
    /// A packet is sent (tcp_rate_skb_sent()); `restarts`: a new interval begins with it.
    pub(crate) fn sent(&mut self, record: &mut Sent, sent_us: u64, restarts: bool) {
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

    /// A packet was delivered (tcp_rate_skb_delivered()).
    #[inline(always)] // keeps the sample in registers
    pub(crate) fn packet_delivered(&mut self, sample: &mut Sample, record: &mut Sent, number: u32) {
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
    pub(crate) fn generate(
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
    pub(crate) fn mark_app_limited(&mut self, inflight: u32) {
        self.app_limited = self.delivered.wrapping_add(inflight).max(1);
    }
}
