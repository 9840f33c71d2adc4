//! From a run's samples to its totals within the window, and from those to its metrics.

use crate::definitions::{row, FLOW, GROUP, QUEUE, RUN};
use crate::facts::{Facts, QueueFacts};
use crate::samples::{PingSamples, QueueSamples, Samples};
use crate::settle::{settling, Settling};
use crate::totals::{FlowTotals, QueueTotals, RunTotals};
use crate::values::Spread;
use crate::window::{Growth, Window};

/// A run whose metrics can be read.
#[derive(Debug)]
pub struct Measured {
    window: Window,
    settling: Settling,
    rtt_s: f64,
    flows: Vec<OneFlow>,
    run: RunTotals,
    queues: Vec<QueueTotals>,
}

/// A flow that was at work for less did not have the time to deliver anything: so many s, and base RTTs.
const LEAST_LIFE_S: f64 = 1.0;
const LEAST_LIFE_RTTS: f64 = 10.0;

#[derive(Debug, Default)]
struct OneFlow {
    start_s: f64,
    completion_s: f64,
    /// From its start to the end of the window.
    delivered_in_all_bytes: f64,
    delivered_bytes: f64,
    /// Over the time that it was active within the window; NaN where it was not.
    goodput_bps: f64,
    share: f64,
    sent_packets: f64,
    retransmitted_packets: f64,
    min_rtt_us: f64,
    srtt_us: Vec<f64>,
    cwnd_packets: Vec<f64>,
}

impl Measured {
    /// Measures a run. Samples of flows that are not in `samples.flows` do not count; queues are
    /// sampled in the order of `facts.queues`.
    pub fn new(samples: &Samples, facts: &Facts) -> Self {
        let window = Window::new(facts, &samples.flow_samples.t_us);
        let flows = flows_of(samples, &window);
        let rtts = flows.iter().flat_map(|flow| flow.srtt_us.iter().copied());
        let rtt_s = Spread::of(rtts).mean() / 1e6;
        let delivered: Vec<f64> = flows.iter().map(|flow| flow.delivered_bytes).collect();
        let queues = samples.queues.iter().zip(&facts.queues);
        let queues = queues.map(|(one, queue)| queue_totals(one, queue, facts.rtt_s, &window));
        Self {
            window,
            settling: settling(samples, facts, &window, &delivered, rtt_s),
            rtt_s: facts.rtt_s,
            run: run_totals(&flows, &facts.equal_demand, &samples.ping_samples, &window),
            queues: queues.collect(),
            flows,
        }
    }

    /// Metrics of the run, in the order of [`crate::definitions::tables`].
    pub fn run(&self) -> Vec<f64> {
        row(RUN, &self.run)
    }

    /// Metrics of each flow, in the same order.
    pub fn flows(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        let totals = self.flows.iter().map(|flow| self.together(&[flow]));
        totals.map(|totals| row(FLOW, &totals))
    }

    /// Metrics of some flows together, in the same order.
    pub fn group(&self, members: &[usize]) -> Vec<f64> {
        let members = members.iter().filter_map(|&flow| self.flows.get(flow));
        row(GROUP, &self.together(&members.collect::<Vec<_>>()))
    }

    /// Whether the run had settled within the window.
    pub fn settling(&self) -> &Settling {
        &self.settling
    }

    /// The same as a store has it ([`Settling::text`]).
    pub fn unsettled(&self) -> String {
        self.settling.text(self.window.length_s())
    }

    /// The flows that delivered nothing up to the end of the window, though they had the time to.
    pub fn silent_flows(&self) -> impl Iterator<Item = usize> + '_ {
        // `max` ignores NaN: an RTT that is not known.
        let least_s = LEAST_LIFE_S.max(LEAST_LIFE_RTTS * self.rtt_s);
        let flows = self.flows.iter().enumerate();
        flows
            .filter(move |(_, flow)| {
                flow.delivered_in_all_bytes == 0.0 && self.window.end_s - flow.start_s >= least_s
            })
            .map(|(index, _)| index)
    }

    /// Metrics of each queue, in the same order.
    pub fn queues(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        self.queues.iter().map(|queue| row(QUEUE, queue))
    }

    fn together(&self, flows: &[&OneFlow]) -> FlowTotals {
        let sum = |of: fn(&OneFlow) -> f64| sum(flows.iter().map(|flow| of(flow)));
        let spread = |of: fn(&OneFlow) -> f64| Spread::of(flows.iter().map(|flow| of(flow)));
        let samples = |of: fn(&OneFlow) -> &Vec<f64>| {
            Spread::of(flows.iter().flat_map(|flow| of(flow).iter().copied()))
        };
        let least = flows.iter().map(|flow| flow.min_rtt_us);
        FlowTotals {
            count: flows.len() as f64,
            start_s: flows.first().map_or(f64::NAN, |flow| flow.start_s),
            window_s: self.window.length_s(),
            delivered_bytes: sum(|flow| flow.delivered_bytes),
            share: sum(|flow| flow.share),
            sent_packets: sum(|flow| flow.sent_packets),
            retransmitted_packets: sum(|flow| flow.retransmitted_packets),
            min_rtt_us: least.fold(f64::NAN, f64::min),
            goodput_bps: spread(|flow| flow.goodput_bps),
            completion_s: spread(|flow| flow.completion_s),
            srtt_us: samples(|flow| &flow.srtt_us),
            cwnd_packets: samples(|flow| &flow.cwnd_packets),
        }
    }
}

fn flows_of(samples: &Samples, window: &Window) -> Vec<OneFlow> {
    let table = &samples.flows;
    let mut flows: Vec<OneFlow> = (0..table.flow.len())
        .map(|flow| OneFlow {
            start_s: table.start_us[flow] / 1e6,
            completion_s: (table.completion_us[flow] - table.start_us[flow]) / 1e6,
            goodput_bps: f64::NAN,
            share: f64::NAN,
            min_rtt_us: f64::NAN,
            ..OneFlow::default()
        })
        .collect();
    let mut grown = vec![Growth::<3>::NONE; flows.len()];
    let sampled = &samples.flow_samples;
    for (index, &id) in sampled.flow_id.iter().enumerate() {
        let Some(flow) = flows.get_mut(id) else {
            continue;
        };
        let t_us = sampled.t_us[index];
        grown[id].add(window, t_us, sampled.counters[index]);
        // After its end a flow has no RTT and no window: rows go on with its last ones. It did not end
        // where the completion is NaN.
        let is_over = t_us > table.completion_us[id];
        if window.has_sample(t_us) && !is_over {
            flow.srtt_us.push(sampled.srtt_us[index]);
            flow.min_rtt_us = flow.min_rtt_us.min(sampled.min_rtt_us[index]);
            flow.cwnd_packets.push(sampled.cwnd_packets[index]);
        }
    }
    for (flow, grown) in flows.iter_mut().zip(&grown) {
        let [delivered, sent, retransmitted] = grown.grown();
        flow.delivered_bytes = delivered;
        flow.delivered_in_all_bytes = grown.at_end()[0];
        flow.sent_packets = sent;
        flow.retransmitted_packets = retransmitted;
        let begin_s = window.start_s.max(flow.start_s);
        // `min` ignores NaN: a flow that did not finish is active to the end.
        let active_s = window.end_s.min(flow.start_s + flow.completion_s) - begin_s;
        if active_s > 0.0 {
            flow.goodput_bps = 8.0 * delivered / active_s;
        }
    }
    for direction in ["up", "down"] {
        let mine = |flow: usize| table.direction[flow] == direction;
        let members = (0..flows.len()).filter(|&flow| mine(flow));
        let all = sum(members.map(|flow| flows[flow].delivered_bytes));
        for (index, flow) in flows.iter_mut().enumerate() {
            if mine(index) && all > 0.0 {
                flow.share = flow.delivered_bytes / all;
            }
        }
    }
    flows
}

fn run_totals(
    flows: &[OneFlow],
    equal_demand: &[usize],
    pings: &PingSamples,
    window: &Window,
) -> RunTotals {
    let sum = |of: fn(&OneFlow) -> f64| sum(flows.iter().map(of));
    let fair = equal_demand.iter().filter_map(|&flow| flows.get(flow));
    let answers = pings.t_us.iter().zip(&pings.rtt_us);
    let answers = answers.filter(|(t_us, _)| window.has(**t_us));
    RunTotals {
        window_s: window.length_s(),
        delivered_bytes: match flows {
            [] => f64::NAN,
            _ => sum(|flow| flow.delivered_bytes),
        },
        sent_packets: sum(|flow| flow.sent_packets),
        retransmitted_packets: sum(|flow| flow.retransmitted_packets),
        equal_demand: equal_demand.len() as f64,
        goodput_bps: Spread::of(fair.map(|flow| flow.goodput_bps)),
        ping_ms: Spread::of(answers.map(|(_, rtt_us)| rtt_us / 1e3)),
    }
}

fn queue_totals(
    samples: &QueueSamples,
    queue: &QueueFacts,
    rtt_s: f64,
    window: &Window,
) -> QueueTotals {
    let mut grown = Growth::<7>::NONE;
    for (&t_us, &counters) in samples.t_us.iter().zip(&samples.counters) {
        grown.add(window, t_us, counters);
    }
    let [sent_bytes, sent, dropped, marked, lost, random_marked, filtered] = grown.grown();
    let in_full_packets = |bytes: f64, packets: f64| {
        let cost = queue.packet_cost;
        cost.map_or(bytes, |cost| cost.in_full_packets(bytes, packets))
    };
    let backlog = samples.t_us.iter().zip(&samples.queue_bytes);
    let backlog = backlog.filter(|(t_us, _)| window.has_sample(**t_us));
    let waiting = samples.queue_bytes.iter().zip(&samples.queue_packets);
    let delays = samples.t_us.iter().zip(waiting);
    let delays = delays.filter(|(t_us, _)| window.has_sample(**t_us));
    let delays = delays.map(|(t_us, (&bytes, &packets))| {
        let volume = in_full_packets(bytes, packets);
        queue.capacity.drain_s(t_us / 1e6, volume)
    });
    // Engines that cannot tell what random loss did leave its counters out; older recordings have no
    // count of filtered ACKs.
    let known = |value: f64| if value.is_nan() { 0.0 } else { value };
    QueueTotals {
        is_sampled: backlog.clone().next().is_some(),
        window_s: window.length_s(),
        rtt_s,
        capacity_bits: capacity_bits(queue, window),
        sent_bytes,
        carried_bytes: in_full_packets(sent_bytes, sent),
        sent_packets: sent,
        dropped_packets: dropped,
        filtered_packets: known(filtered),
        marked_packets: marked,
        random_lost_packets: known(lost),
        random_marked_packets: known(random_marked),
        queue_bytes: Spread::of(backlog.map(|(_, bytes)| *bytes)),
        delay_s: Spread::of(delays),
    }
}

/// What the link, or a policer before it, lets through in the window.
fn capacity_bits(queue: &QueueFacts, window: &Window) -> f64 {
    let bits = queue.capacity.bits(window.start_s, window.end_s);
    if queue.policed_bps.is_finite() {
        // `min` ignores NaN: a rate that is not known.
        bits.min(queue.policed_bps * window.length_s())
    } else {
        bits
    }
}

fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}
