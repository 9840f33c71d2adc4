//! Every metric: its name, its unit, what it means, and its formula. Stores, `fullpipe run --json`, the
//! expressions of experiments and docs/reference/metrics.md take their metrics from here, so a new one is a line
//! in this file.
//!
//! A name ends with its unit. A statistic in it (`mean`, `min`, `p5`, `p50`, `p95`, `p99`, `max`) is a
//! key of its own in JSON: `rtt_p95_us` is `rtt_us.p95`.

use crate::totals::{FlowTotals, QueueTotals, RunTotals};
use crate::values::ratio;

/// Of what all these metrics mean. It is part of the keys of stored runs: raise it where a metric
/// becomes another number.
pub const VERSION: u32 = 9;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// As a column.
    pub name: &'static str,
    /// Empty for ratios and indices.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// The metrics of each table, in their order: of a run, of a flow, of flows together, of a queue.
pub fn tables() -> [(&'static str, Vec<About>); 4] {
    [
        ("run", about(RUN).collect()),
        ("flow", about(FLOW).collect()),
        ("group", about(GROUP).collect()),
        ("queue", about(QUEUE).collect()),
    ]
}

/// A metric of some totals.
#[derive(Debug)]
pub(crate) struct Metric<T> {
    about: About,
    value: fn(&T) -> f64,
}

/// Metrics in parts, which tables share.
pub(crate) type Metrics<T> = &'static [&'static [Metric<T>]];

pub(crate) fn about<T>(metrics: Metrics<T>) -> impl Iterator<Item = About> {
    metrics.iter().copied().flatten().map(|metric| metric.about)
}

/// The values of metrics; NaN where there is none, or none that is finite.
pub(crate) fn row<T>(metrics: Metrics<T>, totals: &T) -> Vec<f64> {
    let values = metrics.iter().copied().flatten();
    let values = values.map(|metric| (metric.value)(totals));
    let known = values.map(|value| if value.is_finite() { value } else { f64::NAN });
    known.collect()
}

/// One metric: name, unit, meaning, formula.
macro_rules! one {
    ($name:literal, $unit:literal, $meaning:expr, $value:expr) => {
        &[Metric {
            about: About {
                name: $name,
                unit: $unit,
                meaning: $meaning,
            },
            value: $value,
        }]
    };
}

/// Statistics of one spread: the name around them, unit, meaning, the spread, and what to multiply.
macro_rules! spread {
    ($before:literal [$($at:ident)*] $after:literal, $unit:literal, $meaning:literal,
     |$totals:ident| $spread:expr, $scale:expr) => {
        &[$(Metric {
            about: About {
                name: concat!($before, stringify!($at), $after),
                unit: $unit,
                meaning: concat!($meaning, ": ", stringify!($at)),
            },
            value: |$totals| $spread.$at() * $scale,
        }),*]
    };
}

/// Of a run.
#[rustfmt::skip]
pub(crate) const RUN: Metrics<RunTotals> = &[
    one!("goodput_bps", "bit/s", "payload that all flows delivered, over the window",
        |run| ratio(8.0 * run.delivered_bytes, run.window_s)),
    one!("jain", "", "Jain's index of the goodputs of the flows of equal demand",
        |run| run.goodput_bps.jain()),
    one!("jain_flows", "flows", "flows of equal demand",
        |run| run.equal_demand),
    one!("retransmit_ratio", "", "packets that flows sent again, over all that they sent",
        |run| ratio(run.retransmitted_packets, run.sent_packets)),
    spread!("ping_" [mean p50 p95 p99 max] "_ms", "ms", "round trips of probes",
        |run| run.ping_ms, 1.0),
];

/// Of a flow.
#[rustfmt::skip]
pub(crate) const FLOW: Metrics<FlowTotals> = &[
    one!("start_s", "s", "when its application connects",
        |flow| flow.start_s),
    one!("completion_s", "s", "from its start to its last acknowledged byte",
        |flow| flow.completion_s.max()),
    one!("goodput_bps", "bit/s", "payload that it delivered, over the time in the window that it was active",
        |flow| flow.goodput_bps.max()),
    DELIVERED, SHARE, RETRANSMITTED, RETRANSMIT_RATIO, RTT_MIN, RTT, CWND,
];

/// Of flows together.
#[rustfmt::skip]
pub(crate) const GROUP: Metrics<FlowTotals> = &[
    one!("flows", "flows", "how many there are",
        |flows| flows.count),
    one!("finished", "flows", "how many of them finished",
        |flows| flows.completion_s.count()),
    one!("goodput_all_bps", "bit/s", "payload that all of them delivered, over the window",
        |flows| ratio(8.0 * flows.delivered_bytes, flows.window_s)),
    spread!("goodput_" [mean p5 p50 p95] "_bps", "bit/s", "goodput of each of them",
        |flows| flows.goodput_bps, 1.0),
    spread!("completion_" [mean p50 p95 p99 max] "_s", "s", "completion times of those that finished",
        |flows| flows.completion_s, 1.0),
    one!("jain", "", "Jain's index of their goodputs, where they are two or more",
        |flows| if flows.count > 1.0 { flows.goodput_bps.jain() } else { f64::NAN }),
    DELIVERED, SHARE, RETRANSMITTED, RETRANSMIT_RATIO, RTT_MIN, RTT, CWND,
];

type OfFlows = &'static [Metric<FlowTotals>];

#[rustfmt::skip]
const DELIVERED: OfFlows =
    one!("delivered_bytes", "B", "payload that reached the receiver within the window",
        |flows| flows.delivered_bytes);
#[rustfmt::skip]
const SHARE: OfFlows =
    one!("share", "", "of the payload that all flows in the same direction delivered",
        |flows| flows.share);
#[rustfmt::skip]
const RETRANSMITTED: OfFlows =
    one!("retransmitted_packets", "packets", "packets sent again within the window",
        |flows| flows.retransmitted_packets);
#[rustfmt::skip]
const RETRANSMIT_RATIO: OfFlows =
    one!("retransmit_ratio", "", "packets sent again, over all packets sent",
        |flows| ratio(flows.retransmitted_packets, flows.sent_packets));
#[rustfmt::skip]
const RTT_MIN: OfFlows =
    one!("rtt_min_us", "us", "least RTT of the connection",
        |flows| flows.min_rtt_us);
#[rustfmt::skip]
const RTT: OfFlows =
    spread!("rtt_" [p50 p95 p99 mean] "_us", "us", "smoothed RTT at the samples",
        |flows| flows.srtt_us, 1.0);
#[rustfmt::skip]
const CWND: OfFlows =
    spread!("cwnd_" [mean p50] "_packets", "packets", "congestion window at the samples",
        |flows| flows.cwnd_packets, 1.0);

/// Of a queue and the link behind it.
#[rustfmt::skip]
pub(crate) const QUEUE: Metrics<QueueTotals> = &[
    one!("throughput_bps", "bit/s", "bytes on the wire, over the window",
        |queue| if_sampled(queue, ratio(8.0 * queue.sent_bytes, queue.window_s))),
    one!("utilisation", "",
        "what the link carried, over what it could carry in the window, its layer's bytes included",
        |queue| if_sampled(queue, ratio(8.0 * queue.carried_bytes, queue.capacity_bits))),
    spread!("queue_delay_" [mean p50 p95 p99 max] "_rttmin", "RTTmin",
        "time that the link takes for what waits at a sample, in base RTTs",
        |queue| queue.delay_s, 1.0 / queue.rtt_s),
    spread!("queue_delay_" [p50 p95 max] "_ms", "ms",
        "time that the link takes for what waits at a sample",
        |queue| queue.delay_s, 1e3),
    spread!("queue_bytes_" [mean p50 p95 max] "", "B", "what waits at a sample, on the wire",
        |queue| queue.queue_bytes, 1.0),
    one!("loss_ratio", "", "packets dropped by the queue or lost at random, over those offered",
        |queue| ratio(lost(queue), queue.sent_packets + lost(queue) + queue.filtered_packets)),
    one!("mark_ratio", "", "packets marked CE, over packets sent",
        |queue| ratio(marked(queue), queue.sent_packets)),
    one!("drops", "packets", "dropped by the queue",
        |queue| if_sampled(queue, queue.dropped_packets)),
    one!("marks", "packets", "marked CE, by the queue or at random",
        |queue| if_sampled(queue, marked(queue))),
    one!("filtered_acks", "packets", "ACKs that CAKE's ACK filter took out, which are not lost",
        |queue| if_sampled(queue, queue.filtered_packets)),
    one!("random_losses", "packets", "lost at random, before the queue",
        |queue| if_sampled(queue, queue.random_lost_packets)),
];

fn lost(queue: &QueueTotals) -> f64 {
    queue.dropped_packets + queue.random_lost_packets
}

fn marked(queue: &QueueTotals) -> f64 {
    queue.marked_packets + queue.random_marked_packets
}

fn if_sampled(queue: &QueueTotals, value: f64) -> f64 {
    if queue.is_sampled {
        value
    } else {
        f64::NAN
    }
}
