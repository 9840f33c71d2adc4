//! One fluid run: the method of steps over all senders and the bottleneck they share.

use crate::bbr::{Bbr, Start};
use crate::cubic::Cubic;
use crate::link::Link;
use crate::math::whole_steps;
use crate::outcome::{Outcome, Trace};
use crate::reno::Reno;
use crate::sender::Sender;
use crate::spec::{Cc, FlowSpec, Spec, SpecError};

enum Control {
    Reno(Reno),
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Control {
    #[inline]
    fn update(&mut self, n: usize, sender: &Sender, link: &Link) -> f64 {
        match self {
            Self::Reno(flow) => flow.update(n, sender, link),
            Self::Cubic(flow) => flow.update(n, sender, link),
            Self::Bbr(flow) => flow.update(n, sender, link),
        }
    }

    fn window(&self, n: usize) -> f64 {
        match self {
            Self::Reno(flow) => flow.window,
            Self::Cubic(flow) => flow.window(n),
            Self::Bbr(flow) => flow.window,
        }
    }
}

/// Integrates the model.
///
/// # Errors
/// When the spec is out of range.
pub fn run(spec: &Spec) -> Result<Outcome, SpecError> {
    spec.validate()?;
    let (mut senders, mut controls) = start(spec);
    let initial_arrivals: f64 = senders.iter().map(|s| s.rate.get(0)).sum();
    let mut link = Link::new(spec, initial_arrivals);
    let steps = whole_steps(spec.duration_ms, spec.step_ms);
    let mut metrics = Metrics::new(spec, steps);
    let mut arriving = vec![0.0; senders.len()];
    for (rate, sender) in arriving.iter_mut().zip(&senders) {
        *rate = sender.rate.get(0);
    }
    metrics.record(0, &senders, &controls, &link, &arriving);
    for n in 1..steps {
        let mut arrivals = 0.0;
        for (rate, sender) in arriving.iter_mut().zip(&senders) {
            *rate = sender.rate.before(n, sender.access_steps);
            arrivals += *rate;
        }
        link.fill(n, arrivals);
        for (control, sender) in controls.iter_mut().zip(&mut senders) {
            let rate = control.update(n, sender, &link);
            sender.rate.set(n, rate);
        }
        link.drop(n);
        metrics.record(n, &senders, &controls, &link, &arriving);
    }
    Ok(metrics.finish(spec))
}

/// Initial conditions: everybody has an equal share of the link and the queue is empty.
fn start(spec: &Spec) -> (Vec<Sender>, Vec<Control>) {
    let count = spec.flows.len();
    let any_bbr = spec
        .flows
        .iter()
        .any(|f| matches!(f.cc, Cc::Bbr1 | Cc::Bbr2));
    let any_v2 = spec.flows.iter().any(|f| f.cc == Cc::Bbr2);
    let rtt_0 = spec.base_rtt_ms(&spec.flows[0]);
    let build = |(index, flow): (usize, &FlowSpec)| {
        let base_rtt_ms = spec.base_rtt_ms(flow);
        let share = base_rtt_ms * spec.capacity_seg_per_ms / count as f64;
        // The published program divides by the RTT of flow 0 here.
        let estimate = share / rtt_0;
        let v1 = flow.cc == Cc::Bbr1;
        let window = if any_bbr && v1 {
            estimate * base_rtt_ms
        } else {
            share
        };
        let sender = Sender::new(flow, spec, window);
        // Stands in for BBRv2's start-up, which is not modelled.
        let overshoot = 1.0 + 2.0 * (spec.buffer_link_bdp - 4.0).max(0.0) / 4.0;
        let begin = Start {
            rate: estimate,
            window,
            longterm: overshoot * 5.0 / 4.0 * window,
            period_start_ms: if any_v2 {
                -10.0 * base_rtt_ms - flow.period_age_s * 1000.0
            } else {
                0.0
            },
        };
        let control = match flow.cc {
            Cc::Reno => Control::Reno(Reno { window }),
            Cc::Cubic => Control::Cubic(Cubic::new(window, base_rtt_ms, spec.step_ms)),
            Cc::Bbr1 => Control::Bbr(Box::new(Bbr::v1(index, &sender, &begin))),
            Cc::Bbr2 => Control::Bbr(Box::new(Bbr::v2(index, count, &sender, &begin))),
        };
        (sender, control)
    };
    spec.flows.iter().enumerate().map(build).unzip()
}

/// Sums over the window, as the published program forms them.
#[derive(Default)]
struct Metrics {
    first: usize,
    end: usize,
    jitter_every: usize,
    sample_every: usize,
    capacity: f64,
    counted: u64,
    sent: Vec<f64>,
    delivered: Vec<f64>,
    arrived: f64,
    lost_smooth: f64,
    lost: f64,
    queue: f64,
    used: f64,
    rtt_last_ms: f64,
    jitter_ms: f64,
    jitters: u64,
    trace: Option<Trace>,
}

impl Metrics {
    fn new(spec: &Spec, steps: usize) -> Self {
        let flows = spec.flows.len();
        let sample_every = spec.sample_interval_ms.map_or(0, |interval_ms| {
            whole_steps(interval_ms, spec.step_ms).clamp(1, steps)
        });
        Self {
            first: whole_steps(spec.window_start_ms, spec.step_ms),
            end: (steps as f64 - spec.window_cut_ms / spec.step_ms) as usize,
            jitter_every: whole_steps(1.0, spec.step_ms),
            sample_every,
            capacity: spec.capacity_seg_per_ms,
            sent: vec![0.0; flows],
            delivered: vec![0.0; flows],
            trace: spec.sample_interval_ms.map(|_| Trace {
                sending_rate_seg_per_ms: vec![Vec::new(); flows],
                window_seg: vec![Vec::new(); flows],
                ..Trace::default()
            }),
            ..Self::default()
        }
    }

    #[inline]
    fn record(
        &mut self,
        n: usize,
        senders: &[Sender],
        controls: &[Control],
        link: &Link,
        arriving: &[f64],
    ) {
        if self.sample_every > 0 && n % self.sample_every == 0 {
            self.sample(n, senders, controls, link);
        }
        if n < self.first || n >= self.end {
            return;
        }
        let served = link.served(n);
        for (i, sender) in senders.iter().enumerate() {
            self.sent[i] += sender.rate.get(n);
            self.delivered[i] += arriving[i] * served;
        }
        let arrivals = link.arrivals.get(n);
        let queue = link.queue.get(n);
        self.arrived += arrivals;
        self.lost += link.loss.get(n) * arrivals;
        self.lost_smooth += link.loss_smooth.get(n) * arrivals;
        self.queue += queue;
        self.used += if queue > 0.0 {
            1.0
        } else {
            (arrivals / self.capacity).min(1.0)
        };
        if (n - self.first) % self.jitter_every == 0 {
            let rtt_ms = senders[0].rtt_ms(n, link);
            if self.counted > 0 {
                self.jitter_ms += (rtt_ms - self.rtt_last_ms).abs();
                self.jitters += 1;
            }
            self.rtt_last_ms = rtt_ms;
        }
        self.counted += 1;
    }

    fn sample(&mut self, n: usize, senders: &[Sender], controls: &[Control], link: &Link) {
        let Some(trace) = &mut self.trace else { return };
        trace.time_ms.push(n as f64 * senders[0].step_ms);
        trace.queue_seg.push(link.queue.get(n));
        trace.loss_probability.push(link.loss.get(n));
        for (i, (sender, control)) in senders.iter().zip(controls).enumerate() {
            trace.sending_rate_seg_per_ms[i].push(sender.rate.get(n));
            trace.window_seg[i].push(control.window(n));
        }
    }

    fn finish(self, spec: &Spec) -> Outcome {
        let count = self.counted as f64;
        let mean = |sums: &[f64]| sums.iter().map(|sum| sum / count).collect::<Vec<_>>();
        let total: f64 = self.sent.iter().sum();
        let squares: f64 = self.sent.iter().map(|x| x * x).sum();
        Outcome {
            sending_rate_seg_per_ms: mean(&self.sent),
            delivery_rate_seg_per_ms: mean(&self.delivered),
            jain_index: total * total / (spec.flows.len() as f64 * squares),
            loss_smooth: self.lost_smooth / self.arrived,
            loss_discrete: self.lost / self.arrived,
            queue_seg: self.queue / count,
            utilisation: self.used / count,
            jitter_ms: self.jitter_ms / self.jitters.max(1) as f64,
            trace: self.trace,
        }
    }
}
