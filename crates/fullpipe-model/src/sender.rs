//! A sender as the fluid model sees it, whatever its congestion control.

use crate::history::Ring;
use crate::link::Link;
use crate::math::whole_steps;
use crate::spec::{FlowSpec, Spec};

/// A sender's place in the network and the past of its rate.
pub(crate) struct Sender {
    pub(crate) step_ms: f64,
    pub(crate) base_rtt_ms: f64,
    pub(crate) base_rtt_steps: usize,
    /// Base RTT without the access delay.
    pub(crate) rest_steps: usize,
    access_ms: f64,
    pub(crate) access_steps: usize,
    /// Sending rate, segments per ms.
    pub(crate) rate: Ring,
}

/// The age of the feedback that a sender receives now.
pub(crate) struct Lookback {
    /// Steps since the segments were sent whose ACKs arrive now.
    pub(crate) round_trip: usize,
    /// Steps since those segments were at the bottleneck.
    pub(crate) feedback: usize,
}

impl Sender {
    pub(crate) fn new(flow: &FlowSpec, spec: &Spec, window: f64) -> Self {
        let step_ms = spec.step_ms;
        let base_rtt_ms = spec.base_rtt_ms(flow);
        let longest_ms = base_rtt_ms + spec.buffer_seg / spec.capacity_seg_per_ms;
        Self {
            step_ms,
            base_rtt_ms,
            base_rtt_steps: whole_steps(base_rtt_ms, step_ms),
            rest_steps: whole_steps(base_rtt_ms - flow.access_delay_ms, step_ms),
            access_ms: flow.access_delay_ms,
            access_steps: (flow.access_delay_ms / step_ms).round_ties_even() as usize,
            rate: Ring::new(whole_steps(longest_ms, step_ms) + 2, window / base_rtt_ms),
        }
    }

    /// RTT of what passes the bottleneck at step `n`.
    #[inline]
    pub(crate) fn rtt_ms(&self, n: usize, link: &Link) -> f64 {
        self.base_rtt_ms + link.delay_ms.get(n)
    }

    /// RTT of what passed the bottleneck `back` steps before step `n`.
    #[inline]
    pub(crate) fn rtt_ms_before(&self, n: usize, back: usize, link: &Link) -> f64 {
        self.base_rtt_ms + link.delay_ms.before(n, back)
    }

    #[inline]
    pub(crate) fn lookback(&self, n: usize, link: &Link) -> Lookback {
        let rtt_ms = self.rtt_ms_before(n, self.base_rtt_steps, link);
        Lookback {
            round_trip: whole_steps(rtt_ms, self.step_ms),
            feedback: whole_steps(rtt_ms - self.access_ms, self.step_ms),
        }
    }
}
