//! One run of the extended model.

use super::bbr3::{Bbr3, V2, V3};
use super::link::Link;
use super::loss_based::LossBased;
use super::random::Random;
use super::sender::Flight;
use super::spec::{Cc, ExtendedOutcome, ExtendedSpec, ExtendedTrace, FlowSpec};
use crate::spec::SpecError;

/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;
/// Delay from the sender to the bottleneck, in steps. The rest of the delay is behind the
/// bottleneck, as in the measurements (netem on the reverse path).
const FORWARD_STEPS: usize = 1;

enum Control {
    LossBased(LossBased),
    Bbr(Box<Bbr3>),
}

struct Sender {
    control: Control,
    flight: Flight,
    first_step: usize,
}

/// Integrates the model.
///
/// # Errors
/// When the spec is out of range.
pub fn run(spec: &ExtendedSpec) -> Result<ExtendedOutcome, SpecError> {
    spec.validate()?;
    let queue_ms = spec.buffer_seg / spec.capacity_seg_per_ms;
    let reach = |rtt_ms: f64| ((2.0 * rtt_ms + 1.5 * queue_ms) / spec.step_ms) as usize + 16;
    let longest_ms = spec.flows.iter().map(|f| f.base_rtt_ms).fold(0.0, f64::max);
    let mut link = Link::new(
        spec.flows.len(),
        spec.capacity_seg_per_ms * spec.step_ms,
        spec.buffer_seg,
        reach(longest_ms),
        spec.seed,
    );
    let build = |(index, flow): (usize, &FlowSpec)| sender(index, flow, spec, reach(longest_ms));
    let mut senders: Vec<Sender> = spec.flows.iter().enumerate().map(build).collect();
    let steps = (spec.duration_ms / spec.step_ms) as usize;
    let first = (spec.window_start_ms / spec.step_ms) as usize;
    let sample_every = spec.sample_interval_ms.map_or(usize::MAX, |interval| {
        ((interval / spec.step_ms) as usize).max(1)
    });
    let flows = senders.len();
    let mut trace = spec.sample_interval_ms.map(|_| ExtendedTrace {
        inflight_seg: vec![Vec::new(); flows],
        longterm_seg: vec![Vec::new(); flows],
        bandwidth_seg_per_ms: vec![Vec::new(); flows],
        min_rtt_ms: vec![Vec::new(); flows],
        phase: vec![Vec::new(); flows],
        ..ExtendedTrace::default()
    });
    let mut arrivals = vec![0.0; flows];
    let mut at_first = (vec![(0.0, 0.0, 0.0); flows], 0.0);
    let mut queue = 0.0;
    for n in 1..steps {
        for (arrived, sender) in arrivals.iter_mut().zip(&senders) {
            *arrived = sender.flight.arriving(n);
        }
        link.step(n, &arrivals);
        let now_ms = n as f64 * spec.step_ms;
        for (index, sender) in senders.iter_mut().enumerate() {
            let feedback = sender.flight.receive(n, index, &link);
            let volume = if n < sender.first_step {
                0.0
            } else {
                match &mut sender.control {
                    Control::LossBased(flow) => flow.on_feedback(now_ms, &feedback, &sender.flight),
                    Control::Bbr(flow) => {
                        flow.on_feedback(now_ms, spec.step_ms, &feedback, &sender.flight)
                    }
                }
            };
            sender.flight.send(n, volume);
        }
        if n == first {
            let totals = senders.iter().map(|s| s.flight.totals()).collect();
            at_first = (totals, link.departed());
        }
        if n >= first {
            queue += link.queue();
        }
        if n % sample_every == 0 {
            if let Some(trace) = &mut trace {
                sample(trace, now_ms, &link, &senders);
            }
        }
    }
    let count = (steps - first) as f64;
    let window_ms = count * spec.step_ms;
    let ends: Vec<_> = senders.iter().map(|s| s.flight.totals()).collect();
    let delivered: Vec<f64> = ends
        .iter()
        .zip(&at_first.0)
        .map(|(end, start)| (end.0 - start.0) / window_ms)
        .collect();
    let loss = ends
        .iter()
        .zip(&at_first.0)
        .map(|(end, start)| (end.1 - start.1) / (end.2 - start.2).max(f64::MIN_POSITIVE))
        .collect();
    let total: f64 = delivered.iter().sum();
    let squares: f64 = delivered.iter().map(|x| x * x).sum();
    Ok(ExtendedOutcome {
        delivery_rate_seg_per_ms: delivered,
        loss,
        queue_seg: queue / count,
        utilisation: (link.departed() - at_first.1) / (window_ms * spec.capacity_seg_per_ms),
        jain_index: total * total / (flows as f64 * squares),
        trace,
    })
}

fn sender(index: usize, flow: &FlowSpec, spec: &ExtendedSpec, reach: usize) -> Sender {
    let rtt_steps = (flow.base_rtt_ms / spec.step_ms).round() as usize;
    let mut seeds = Random::new(spec.seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
    let random = Random::new((seeds.uniform() * 9.0e15) as u64);
    let bbr = |version| {
        Control::Bbr(Box::new(Bbr3::new(
            version,
            INITIAL_WINDOW,
            flow.start_ms,
            flow.base_rtt_ms,
            spec.two_burst_seg_per_ms,
            random,
        )))
    };
    let control = match flow.cc {
        Cc::Reno => Control::LossBased(LossBased::reno(INITIAL_WINDOW)),
        Cc::Cubic => Control::LossBased(LossBased::cubic(INITIAL_WINDOW)),
        Cc::Bbr2 => bbr(V2),
        Cc::Bbr3 => bbr(V3),
    };
    Sender {
        control,
        flight: Flight::new(
            FORWARD_STEPS,
            rtt_steps - FORWARD_STEPS,
            spec.step_ms,
            reach,
        ),
        first_step: (flow.start_ms / spec.step_ms) as usize,
    }
}

fn sample(trace: &mut ExtendedTrace, now_ms: f64, link: &Link, senders: &[Sender]) {
    trace.time_ms.push(now_ms);
    trace.queue_seg.push(link.queue());
    for (i, sender) in senders.iter().enumerate() {
        trace.inflight_seg[i].push(sender.flight.inflight);
        if let Control::Bbr(flow) = &sender.control {
            let longterm = if flow.longterm.is_finite() {
                flow.longterm
            } else {
                0.0
            };
            trace.longterm_seg[i].push(longterm);
            trace.bandwidth_seg_per_ms[i].push(flow.max_bandwidth());
            trace.min_rtt_ms[i].push(flow.min_rtt_ms);
            trace.phase[i].push(flow.phase as u8);
        }
    }
}
