//! The bottleneck: queue and loss probability, with as much of their past as a round trip needs.

use crate::history::Ring;
use crate::math::whole_steps;
use crate::spec::{Aqm, Spec};

/// Exponent of the smooth drop-tail loss in the queue's occupancy.
const SMOOTH_LOSS_EXPONENT: i32 = 100;
/// RED of a single flow sees the queue of this long ago; that of several the present one.
const RED_LAG_MS: f64 = 16.0;

/// State of the bottleneck.
pub(crate) struct Link {
    pub(crate) capacity: f64,
    buffer: f64,
    step_ms: f64,
    aqm: Aqm,
    red_lag: usize,
    /// Queue, segments.
    pub(crate) queue: Ring,
    /// Queue / capacity, ms.
    pub(crate) delay_ms: Ring,
    /// Arrival rate, segments per ms.
    pub(crate) arrivals: Ring,
    /// Loss probability that acts on the queue.
    pub(crate) loss: Ring,
    /// Loss probability that is smooth in the queue (equal to `loss` for RED).
    pub(crate) loss_smooth: Ring,
}

impl Link {
    /// The empty bottleneck; `arrivals` is the rate before the start.
    pub(crate) fn new(spec: &Spec, arrivals: f64) -> Self {
        let longest_rtt_ms = spec
            .flows
            .iter()
            .map(|f| spec.base_rtt_ms(f))
            .fold(0.0, f64::max);
        let longest_ms = longest_rtt_ms + spec.buffer_seg / spec.capacity_seg_per_ms;
        let reach = whole_steps(longest_ms.max(RED_LAG_MS), spec.step_ms) + 2;
        let lagged = spec.aqm == Aqm::Red && spec.flows.len() == 1;
        Self {
            capacity: spec.capacity_seg_per_ms,
            buffer: spec.buffer_seg,
            step_ms: spec.step_ms,
            aqm: spec.aqm,
            red_lag: if lagged {
                whole_steps(RED_LAG_MS, spec.step_ms)
            } else {
                0
            },
            queue: Ring::new(reach, 0.0),
            delay_ms: Ring::new(reach, 0.0),
            arrivals: Ring::new(reach, arrivals),
            loss: Ring::new(reach, 0.0),
            loss_smooth: Ring::new(reach, 0.0),
        }
    }

    /// Moves the queue to step `n`, given what arrives.
    #[inline]
    pub(crate) fn fill(&mut self, n: usize, arrivals: f64) {
        let passed = 1.0 - self.loss.get(n - 1);
        let grown = self.queue.get(n - 1) + (passed * arrivals - self.capacity) * self.step_ms;
        let queue = grown.max(0.0).min(self.buffer);
        self.queue.set(n, queue);
        self.delay_ms.set(n, queue / self.capacity);
        self.arrivals.set(n, arrivals);
    }

    /// Sets the loss probability of step `n` from its queue. After the flows' own updates: they
    /// see it one step later at the earliest.
    #[inline]
    pub(crate) fn drop(&mut self, n: usize) {
        let queue = self.queue.get(n);
        let arrivals = self.arrivals.get(n);
        let (loss, smooth) = match self.aqm {
            Aqm::Red => {
                let p = (self.queue.before(n, self.red_lag) / self.buffer).clamp(0.0, 1.0);
                (p, p)
            }
            Aqm::DropTail if arrivals > self.capacity => {
                let excess = 1.0 - self.capacity / arrivals;
                let full = queue == self.buffer;
                let smooth = excess * (queue / self.buffer).powi(SMOOTH_LOSS_EXPONENT);
                (if full { excess } else { 0.0 }, smooth.clamp(0.0, 1.0))
            }
            Aqm::DropTail => (0.0, 0.0),
        };
        self.loss.set(n, loss);
        self.loss_smooth.set(n, smooth);
    }

    /// Part of the arrivals of step `n` that the link serves while it is busy.
    #[inline]
    pub(crate) fn served(&self, n: usize) -> f64 {
        let arrivals = self.arrivals.get(n);
        if arrivals >= self.capacity || self.queue.get(n) > 0.0 {
            self.capacity / arrivals
        } else {
            1.0
        }
    }
}
