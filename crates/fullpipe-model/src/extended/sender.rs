//! What every sender has: what it sent, what came back, and the pasts needed to sample rates.

use super::link::Link;
use crate::history::Ring;

/// What a sender learns in one step.
pub(super) struct Feedback {
    /// Now, in steps.
    pub(super) now: f64,
    /// Volume newly acknowledged.
    pub(super) acked: f64,
    /// Segments newly known as lost.
    pub(super) lost: f64,
    /// When what is acknowledged now was sent, in steps.
    pub(super) sent_at: f64,
    pub(super) rtt_ms: f64,
    /// Volume that had been acknowledged then.
    pub(super) prior_delivered: f64,
    /// In flight then.
    pub(super) tx_inflight: f64,
    /// Lost since then.
    pub(super) lost_since: f64,
    /// Delivery rate over the round trip, segments per ms.
    pub(super) bandwidth: f64,
}

/// The sender's account of its segments.
#[derive(Default)]
pub(super) struct Flight {
    forward_steps: usize,
    reverse_steps: usize,
    step_ms: f64,
    sent: f64,
    pub(super) delivered: f64,
    lost: f64,
    pub(super) inflight: f64,
    sent_past: Ring,
    /// What a rate sample asks of the time when its segments were sent.
    past: Ring<[f64; 4]>,
    rtt_ms: f64,
}

impl Flight {
    pub(super) fn new(
        forward_steps: usize,
        reverse_steps: usize,
        step_ms: f64,
        reach: usize,
    ) -> Self {
        let rtt_ms = (forward_steps + reverse_steps) as f64 * step_ms;
        Self {
            forward_steps,
            reverse_steps,
            step_ms,
            sent_past: Ring::new(forward_steps, 0.0),
            past: Ring::new(reach, [0.0, 0.0, rtt_ms, 0.0]),
            rtt_ms,
            ..Self::default()
        }
    }

    /// What arrives at the bottleneck in step `n`.
    #[inline]
    pub(super) fn arriving(&self, n: usize) -> f64 {
        if n <= self.forward_steps {
            return 0.0;
        }
        let then = n - self.forward_steps;
        self.sent_past.get(then) - self.sent_past.get(then - 1)
    }

    /// Takes what comes back at step `n`.
    #[inline]
    pub(super) fn receive(&mut self, n: usize, flow: usize, link: &Link) -> Feedback {
        let now = n as f64;
        let arrival = link.arrival_of_departure(n.saturating_sub(self.reverse_steps));
        let (accepted, lost) = link.accepted_and_lost_by(flow, arrival);
        let delivered = accepted.max(self.delivered);
        let sent_at = arrival - self.forward_steps as f64;
        let rtt_ms = (now - sent_at) * self.step_ms;
        let [prior_delivered, prior_lost, prior_rtt_ms, tx_inflight] = self.past.at(sent_at);
        let interval_ms = rtt_ms.max(prior_rtt_ms);
        let feedback = Feedback {
            now,
            acked: delivered - self.delivered,
            lost: lost - self.lost,
            sent_at,
            rtt_ms,
            prior_delivered,
            tx_inflight,
            lost_since: lost - prior_lost,
            bandwidth: (delivered - prior_delivered) / interval_ms,
        };
        self.delivered = delivered;
        self.lost = lost;
        self.inflight = self.sent - delivered - lost;
        self.rtt_ms = rtt_ms;
        feedback
    }

    /// Delivered, lost and sent since the start.
    pub(super) fn totals(&self) -> (f64, f64, f64) {
        (self.delivered, self.lost, self.sent)
    }

    /// Sends in step `n`.
    #[inline]
    pub(super) fn send(&mut self, n: usize, volume: f64) {
        self.sent += volume;
        self.inflight += volume;
        self.sent_past.set(n, self.sent);
        let values = [self.delivered, self.lost, self.rtt_ms, self.inflight];
        self.past.set(n, values);
    }
}
