//! Rows of many runs, as columns: tables `runs`, `flows`, `path`.

use fullpipe_plan::{Column, Table, Text};

use crate::numbers::{mean, quantiles, ratio};
use crate::samples::{FlowSamples, Flows, PingSamples, QueueSamples, Samples};
use crate::window::{Growth, Window};
use crate::Facts;

/// Declares what one row of a table has of real numbers. Rows are kept whole: behind a run nothing is
/// left in the processor's caches, and a column each would be as many misses.
macro_rules! numbers {
    ($name:ident { $($column:ident),* $(,)? }) => {
        #[derive(Debug)]
        struct $name {
            $($column: f64,)*
        }

        impl $name {
            fn columns(rows: &[Self]) -> Vec<(&'static str, Column)> {
                vec![$((
                    stringify!($column),
                    Column::F64(rows.iter().map(|row| row.$column).collect()),
                ),)*]
            }
        }
    };
}

numbers!(RunNumbers {
    goodput_bps,
    jain,
    retransmit_ratio,
    ping_p50_ms,
    ping_p95_ms,
    ping_p99_ms,
    ping_max_ms,
});

numbers!(FlowNumbers {
    start_s,
    completion_s,
    goodput_bps,
    share,
    retransmit_ratio,
    rtt_min_us,
    rtt_p50_us,
    rtt_p95_us,
    rtt_p99_us,
    rtt_mean_us,
    cwnd_mean_packets,
});

numbers!(PathNumbers {
    utilisation,
    queue_delay_mean_rttmin,
    queue_delay_p50_rttmin,
    queue_delay_p95_rttmin,
    queue_delay_p99_rttmin,
    queue_delay_max_rttmin,
    queue_delay_p50_ms,
    queue_delay_p95_ms,
    queue_bytes_mean,
    loss_ratio,
    drops,
    marks,
});

/// What was measured of runs, in the order in which they came.
#[derive(Debug, Default)]
pub struct Measures {
    run: Vec<u64>,
    flow_id: Vec<u64>,
    names: Names,
    runs: Vec<RunNumbers>,
    flows: Vec<FlowNumbers>,
    path: Vec<PathNumbers>,
    of_flows: Vec<OfFlow>,
    some: Vec<f64>,
}

#[derive(Debug, Default)]
struct Names {
    flow: Vec<Text>,
    cc: Vec<Text>,
    direction: Vec<Text>,
}

/// Samples of one flow; its memory is used again for each run, as is `Measures::some`.
#[derive(Debug, Default)]
struct OfFlow {
    growth: Growth<3>,
    srtt_us: Vec<f64>,
    min_rtt_us: Vec<f64>,
    cwnd_packets: Vec<f64>,
}

impl OfFlow {
    fn clear(&mut self) {
        self.growth = Growth::default();
        self.srtt_us.clear();
        self.min_rtt_us.clear();
        self.cwnd_packets.clear();
    }
}

/// Totals of a run's flows.
#[derive(Default)]
struct Totals {
    rate_bps: f64,
    square: f64,
    sent: f64,
    retransmitted: f64,
}

impl Measures {
    /// Measures a run, and takes the names of its flows. Samples of flows that are not in `flows` do
    /// not count.
    pub fn add(&mut self, samples: &mut Samples, facts: &Facts) {
        let window = Window::new(facts, &samples.flow_samples.t_us);
        let count = samples.flows.flow.len();
        let totals = self.add_flows(&samples.flows, &samples.flow_samples, &window);
        self.add_run(count, &totals, &samples.ping_samples, &window);
        self.add_path(&samples.queue_samples, &window, facts);
        self.names.flow.append(&mut samples.flows.flow);
        self.names.cc.append(&mut samples.flows.cc);
        self.names.direction.append(&mut samples.flows.direction);
    }

    /// The tables; `run` says which of the runs a flow is of.
    pub fn into_tables(self) -> [Table; 3] {
        let mut flows = vec![
            ("run", Column::U64(self.run)),
            ("flow_id", Column::U64(self.flow_id)),
            ("flow", Column::Text(self.names.flow)),
            ("cc", Column::Text(self.names.cc)),
            ("direction", Column::Text(self.names.direction)),
        ];
        flows.extend(FlowNumbers::columns(&self.flows));
        [
            Table {
                name: "runs",
                columns: RunNumbers::columns(&self.runs),
            },
            Table {
                name: "flows",
                columns: flows,
            },
            Table {
                name: "path",
                columns: PathNumbers::columns(&self.path),
            },
        ]
    }

    fn add_flows(&mut self, flows: &Flows, samples: &FlowSamples, window: &Window) -> Totals {
        let count = flows.flow.len();
        if self.of_flows.len() < count {
            self.of_flows.resize_with(count, OfFlow::default);
        }
        let of_flows = &mut self.of_flows[..count];
        of_flows.iter_mut().for_each(OfFlow::clear);
        for (index, &flow) in samples.flow_id.iter().enumerate() {
            let Some(of_flow) = of_flows.get_mut(flow) else {
                continue;
            };
            let t_us = samples.t_us[index];
            of_flow.growth.add(window, t_us, samples.counters[index]);
            if window.has_sample(t_us) {
                of_flow.srtt_us.push(samples.srtt_us[index]);
                of_flow.min_rtt_us.push(samples.min_rtt_us[index]);
                of_flow.cwnd_packets.push(samples.cwnd_packets[index]);
            }
        }
        let volume_bytes = of_flows
            .iter()
            .map(|flow| flow.growth.grown()[0])
            .fold(0.0, |a, b| a + b);
        let mut totals = Totals::default();
        let run = self.runs.len() as u64;
        for (flow, of_flow) in of_flows.iter_mut().enumerate() {
            let [volume, sent, retransmitted] = of_flow.growth.grown();
            let start_s = flows.start_us[flow] / 1e6;
            let done_s = flows.completion_us[flow] / 1e6;
            let begin_s = window.start_s.max(start_s);
            let active_s = begin_s.max(window.end_s.min(done_s)) - begin_s;
            let rate_bps = if active_s > 0.0 {
                8.0 * volume / active_s
            } else {
                0.0
            };
            totals.rate_bps += rate_bps;
            totals.square += rate_bps * rate_bps;
            totals.sent += sent;
            totals.retransmitted += retransmitted;
            self.run.push(run);
            self.flow_id.push(flow as u64);
            let rtt_mean_us = mean(&of_flow.srtt_us);
            let [rtt_min_us] = quantiles(&mut of_flow.min_rtt_us, [0.0]);
            let [rtt_p50_us, rtt_p95_us, rtt_p99_us] =
                quantiles(&mut of_flow.srtt_us, [0.5, 0.95, 0.99]);
            self.flows.push(FlowNumbers {
                start_s,
                completion_s: done_s - start_s,
                goodput_bps: rate_bps,
                share: ratio(volume, volume_bytes),
                retransmit_ratio: ratio(retransmitted, sent),
                rtt_min_us,
                rtt_p50_us,
                rtt_p95_us,
                rtt_p99_us,
                rtt_mean_us,
                cwnd_mean_packets: mean(&of_flow.cwnd_packets),
            });
        }
        totals
    }

    fn add_run(&mut self, flows: usize, totals: &Totals, pings: &PingSamples, window: &Window) {
        let answers = pings.t_us.iter().zip(&pings.rtt_us);
        self.some.clear();
        self.some.extend(
            answers
                .filter(|(t_us, _)| window.has(**t_us))
                .map(|(_, rtt_us)| rtt_us / 1000.0),
        );
        let [ping_p50_ms, ping_p95_ms, ping_p99_ms, ping_max_ms] =
            quantiles(&mut self.some, [0.5, 0.95, 0.99, 1.0]);
        let square = totals.rate_bps * totals.rate_bps;
        self.runs.push(RunNumbers {
            goodput_bps: if flows > 0 { totals.rate_bps } else { f64::NAN },
            jain: ratio(square, flows as f64 * totals.square),
            retransmit_ratio: ratio(totals.retransmitted, totals.sent),
            ping_p50_ms,
            ping_p95_ms,
            ping_p99_ms,
            ping_max_ms,
        });
    }

    fn add_path(&mut self, samples: &QueueSamples, window: &Window, facts: &Facts) {
        let rtt_s = facts.rtt_ns as f64 / 1e9;
        let mut growth = Growth::<6>::default();
        let some = &mut self.some;
        some.clear();
        for (index, &t_us) in samples.t_us.iter().enumerate() {
            growth.add(window, t_us, samples.counters[index]);
            if window.has_sample(t_us) {
                some.push(samples.queue_bytes[index]);
            }
        }
        let seen = !some.is_empty();
        let if_seen = |value: f64| if seen { value } else { f64::NAN };
        // Engines that cannot tell what chance took leave those two out.
        let [sent_bytes, sent_packets, dropped, marked, lost, random_marked] = growth.grown();
        let [lost, random_marked] = [lost, random_marked].map(or_zero);
        let gone = dropped + lost;
        let offered_bits = facts.rate_bps * (window.end_s - window.start_s);
        let queue_bytes_mean = mean(some);
        for waiting in some.iter_mut() {
            *waiting = *waiting * 8.0 / facts.rate_bps / rtt_s;
        }
        let queue_delay_mean_rttmin = mean(some);
        let [p50, p95, p99, max] = quantiles(some, [0.5, 0.95, 0.99, 1.0]);
        self.path.push(PathNumbers {
            utilisation: if_seen(ratio(8.0 * sent_bytes, offered_bits)),
            queue_delay_mean_rttmin,
            queue_delay_p50_rttmin: p50,
            queue_delay_p95_rttmin: p95,
            queue_delay_p99_rttmin: p99,
            queue_delay_max_rttmin: max,
            queue_delay_p50_ms: p50 * rtt_s * 1e3,
            queue_delay_p95_ms: p95 * rtt_s * 1e3,
            queue_bytes_mean,
            loss_ratio: ratio(gone, sent_packets + gone),
            drops: if_seen(dropped),
            marks: if_seen(marked + random_marked),
        });
    }
}

fn or_zero(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value
    }
}
