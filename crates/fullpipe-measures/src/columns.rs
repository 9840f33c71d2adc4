//! Rows of many runs, as columns: tables `runs`, `flows`, `path`.

use fullpipe_scenario::{Column, Table};

use crate::numbers::{mean, quantiles, ratio};
use crate::samples::{FlowSamples, Flows, PingSamples, QueueSamples, Samples};
use crate::window::{Growth, Window};
use crate::Facts;

/// Declares a table whose columns are real numbers.
macro_rules! numbers {
    ($name:ident { $($column:ident),* $(,)? }) => {
        #[derive(Debug, Default)]
        struct $name {
            $($column: Vec<f64>,)*
        }

        impl $name {
            fn into_columns(self) -> Vec<(&'static str, Column)> {
                vec![$((stringify!($column), Column::F64(self.$column)),)*]
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
    count: u64,
    run: Vec<u64>,
    flow_id: Vec<u64>,
    names: Flows,
    runs: RunNumbers,
    flows: FlowNumbers,
    path: PathNumbers,
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
    /// Measures a run. Samples of flows that are not in `flows` do not count.
    pub fn add(&mut self, samples: Samples, facts: &Facts) {
        let window = Window::new(facts, &samples.flow_samples.t_us);
        let count = samples.flows.flow.len();
        let totals = self.add_flows(&samples.flows, &samples.flow_samples, &window);
        self.add_run(count, &totals, &samples.ping_samples, &window);
        self.add_path(&samples.queue_samples, &window, facts);
        self.names.flow.extend(samples.flows.flow);
        self.names.cc.extend(samples.flows.cc);
        self.names.direction.extend(samples.flows.direction);
        self.count += 1;
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
        flows.extend(self.flows.into_columns());
        [
            Table {
                name: "runs",
                columns: self.runs.into_columns(),
            },
            Table {
                name: "flows",
                columns: flows,
            },
            Table {
                name: "path",
                columns: self.path.into_columns(),
            },
        ]
    }

    fn add_flows(&mut self, flows: &Flows, samples: &FlowSamples, window: &Window) -> Totals {
        let count = flows.flow.len();
        let mut growth = vec![Growth::<3>::NONE; count];
        let (mut srtt, mut least, mut cwnd) = (
            vec![Vec::new(); count],
            vec![Vec::new(); count],
            vec![Vec::new(); count],
        );
        for (index, &flow) in samples.flow_id.iter().enumerate() {
            if flow >= count {
                continue;
            }
            let t_us = samples.t_us[index];
            growth[flow].add(window, t_us, samples.counters[index]);
            if window.has(t_us) {
                srtt[flow].push(samples.srtt_us[index]);
                least[flow].push(samples.min_rtt_us[index]);
                cwnd[flow].push(samples.cwnd_packets[index]);
            }
        }
        let volume_bytes = growth
            .iter()
            .map(|flow| flow.grown()[0])
            .fold(0.0, |a, b| a + b);
        let mut totals = Totals::default();
        for (flow, growth) in growth.iter().enumerate() {
            let [volume, sent, retransmitted] = growth.grown();
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
            let rows = &mut self.flows;
            self.run.push(self.count);
            self.flow_id.push(flow as u64);
            rows.start_s.push(start_s);
            rows.completion_s.push(done_s - start_s);
            rows.goodput_bps.push(rate_bps);
            rows.share.push(ratio(volume, volume_bytes));
            rows.retransmit_ratio.push(ratio(retransmitted, sent));
            rows.rtt_mean_us.push(mean(&srtt[flow]));
            rows.cwnd_mean_packets.push(mean(&cwnd[flow]));
            let [rtt_min] = quantiles(std::mem::take(&mut least[flow]), [0.0]);
            let rtt = quantiles(std::mem::take(&mut srtt[flow]), [0.5, 0.95, 0.99]);
            rows.rtt_min_us.push(rtt_min);
            rows.rtt_p50_us.push(rtt[0]);
            rows.rtt_p95_us.push(rtt[1]);
            rows.rtt_p99_us.push(rtt[2]);
        }
        totals
    }

    fn add_run(&mut self, flows: usize, totals: &Totals, pings: &PingSamples, window: &Window) {
        let answers = pings.t_us.iter().zip(&pings.rtt_us);
        let rtt_ms = answers
            .filter(|(t_us, _)| window.has(**t_us))
            .map(|(_, rtt_us)| rtt_us / 1000.0)
            .collect();
        let ping = quantiles(rtt_ms, [0.5, 0.95, 0.99, 1.0]);
        let runs = &mut self.runs;
        runs.goodput_bps
            .push(if flows > 0 { totals.rate_bps } else { f64::NAN });
        runs.jain.push(ratio(
            totals.rate_bps * totals.rate_bps,
            flows as f64 * totals.square,
        ));
        runs.retransmit_ratio
            .push(ratio(totals.retransmitted, totals.sent));
        runs.ping_p50_ms.push(ping[0]);
        runs.ping_p95_ms.push(ping[1]);
        runs.ping_p99_ms.push(ping[2]);
        runs.ping_max_ms.push(ping[3]);
    }

    fn add_path(&mut self, samples: &QueueSamples, window: &Window, facts: &Facts) {
        let rtt_s = facts.rtt_ns as f64 / 1e9;
        let mut growth = Growth::<6>::NONE;
        let mut waiting = Vec::new();
        for (index, &t_us) in samples.t_us.iter().enumerate() {
            growth.add(window, t_us, samples.counters[index]);
            if window.has(t_us) {
                waiting.push(samples.queue_bytes[index]);
            }
        }
        let if_seen = |value: f64| if waiting.is_empty() { f64::NAN } else { value };
        // Engines that cannot tell what chance took leave those two out.
        let [sent_bytes, sent_packets, dropped, marked, lost, random_marked] = growth.grown();
        let [lost, random_marked] = [lost, random_marked].map(or_zero);
        let gone = dropped + lost;
        let offered_bits = facts.rate_bps * (window.end_s - window.start_s);
        let path = &mut self.path;
        path.utilisation
            .push(if_seen(ratio(8.0 * sent_bytes, offered_bits)));
        path.loss_ratio.push(ratio(gone, sent_packets + gone));
        path.drops.push(if_seen(dropped));
        path.marks.push(if_seen(marked + random_marked));
        path.queue_bytes_mean.push(mean(&waiting));
        let delay: Vec<f64> = waiting
            .iter()
            .map(|bytes| bytes * 8.0 / facts.rate_bps / rtt_s)
            .collect();
        path.queue_delay_mean_rttmin.push(mean(&delay));
        let spread = quantiles(delay, [0.5, 0.95, 0.99, 1.0]);
        path.queue_delay_p50_rttmin.push(spread[0]);
        path.queue_delay_p95_rttmin.push(spread[1]);
        path.queue_delay_p99_rttmin.push(spread[2]);
        path.queue_delay_max_rttmin.push(spread[3]);
        path.queue_delay_p50_ms.push(spread[0] * rtt_s * 1e3);
        path.queue_delay_p95_ms.push(spread[1] * rtt_s * 1e3);
    }
}

fn or_zero(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value
    }
}
