//! What of a recording's tables metrics read, as columns; NaN for null.

use fullpipe_scenario::Tables;

/// The table `flows`.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Names in the plan.
    pub flow: Vec<String>,
    /// The names the user gave the congestion controls.
    pub cc: Vec<String>,
    /// `up` or `down`.
    pub direction: Vec<String>,
    /// When they were told to connect.
    pub start_us: Vec<f64>,
    /// When their last bytes were acknowledged; NaN: did not finish.
    pub completion_us: Vec<f64>,
}

/// The table `flow_samples`.
#[derive(Clone, Debug, Default)]
pub struct FlowSamples {
    /// Since the start of the run, never falling for one flow.
    pub t_us: Vec<f64>,
    /// Positions in the plan.
    pub flow_id: Vec<usize>,
    /// Smoothed RTTs.
    pub srtt_us: Vec<f64>,
    /// Least RTTs.
    pub min_rtt_us: Vec<f64>,
    /// Congestion windows.
    pub cwnd_packets: Vec<f64>,
    /// `bytes_delivered`, `packets_sent`, `packets_retransmitted`.
    pub counters: Vec<[f64; 3]>,
}

/// The rows of `queue_samples` that are about one queue.
#[derive(Clone, Debug, Default)]
pub struct QueueSamples {
    /// Since the start of the run, never falling.
    pub t_us: Vec<f64>,
    /// What waited.
    pub queue_bytes: Vec<f64>,
    /// `sent_bytes`, `sent_packets`, `dropped_packets`, `marked_packets`, `random_lost_packets`,
    /// `random_marked_packets`.
    pub counters: Vec<[f64; 6]>,
}

/// The table `ping_samples`.
#[derive(Clone, Debug, Default)]
pub struct PingSamples {
    /// When requests were sent.
    pub t_us: Vec<f64>,
    /// NaN: no answer.
    pub rtt_us: Vec<f64>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // as the tables are called
pub struct Samples {
    pub flows: Flows,
    pub flow_samples: FlowSamples,
    pub queue_samples: QueueSamples,
    pub ping_samples: PingSamples,
}

impl Samples {
    /// Those of a run in memory, with the samples of this queue.
    pub fn of(tables: Tables, queue: &str) -> Self {
        let mut found = Self::default();
        for row in tables.flows {
            let flows = &mut found.flows;
            flows.flow.push(row.flow);
            flows.cc.push(row.cc);
            flows.direction.push(row.direction);
            flows.start_us.push(row.start_us as f64);
            flows.completion_us.push(real(row.completion_us));
        }
        let rows = &tables.flow_samples;
        found.flow_samples = FlowSamples {
            t_us: rows.iter().map(|row| row.t_us as f64).collect(),
            flow_id: rows.iter().map(|row| row.flow_id as usize).collect(),
            srtt_us: rows.iter().map(|row| real(row.srtt_us)).collect(),
            min_rtt_us: rows.iter().map(|row| real(row.min_rtt_us)).collect(),
            cwnd_packets: rows.iter().map(|row| row.cwnd_packets as f64).collect(),
            counters: rows
                .iter()
                .map(|row| {
                    [
                        row.bytes_delivered as f64,
                        row.packets_sent as f64,
                        row.packets_retransmitted as f64,
                    ]
                })
                .collect(),
        };
        let rows = || tables.queue_samples.iter().filter(|row| row.queue == queue);
        found.queue_samples = QueueSamples {
            t_us: rows().map(|row| row.t_us as f64).collect(),
            queue_bytes: rows().map(|row| row.queue_bytes as f64).collect(),
            counters: rows()
                .map(|row| {
                    [
                        row.sent_bytes as f64,
                        row.sent_packets as f64,
                        row.dropped_packets as f64,
                        row.marked_packets as f64,
                        row.random_lost_packets as f64,
                        row.random_marked_packets as f64,
                    ]
                })
                .collect(),
        };
        let rows = &tables.ping_samples;
        found.ping_samples = PingSamples {
            t_us: rows.iter().map(|row| row.t_us as f64).collect(),
            rtt_us: rows.iter().map(|row| real(row.rtt_us)).collect(),
        };
        found
    }
}

fn real(value: Option<u64>) -> f64 {
    value.map_or(f64::NAN, |value| value as f64)
}
