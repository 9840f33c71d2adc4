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
    pub fn of(tables: &Tables, queue: &str) -> Self {
        let mut found = Self::default();
        for row in &tables.flows {
            let flows = &mut found.flows;
            flows.flow.push(row.flow.clone());
            flows.cc.push(row.cc.clone());
            flows.direction.push(row.direction.clone());
            flows.start_us.push(row.start_us as f64);
            flows.completion_us.push(real(row.completion_us));
        }
        for row in &tables.flow_samples {
            let samples = &mut found.flow_samples;
            samples.t_us.push(row.t_us as f64);
            samples.flow_id.push(row.flow_id as usize);
            samples.srtt_us.push(real(row.srtt_us));
            samples.min_rtt_us.push(real(row.min_rtt_us));
            samples.cwnd_packets.push(row.cwnd_packets as f64);
            samples.counters.push([
                row.bytes_delivered as f64,
                row.packets_sent as f64,
                row.packets_retransmitted as f64,
            ]);
        }
        for row in tables.queue_samples.iter().filter(|row| row.queue == queue) {
            let samples = &mut found.queue_samples;
            samples.t_us.push(row.t_us as f64);
            samples.queue_bytes.push(row.queue_bytes as f64);
            samples.counters.push([
                row.sent_bytes as f64,
                row.sent_packets as f64,
                row.dropped_packets as f64,
                row.marked_packets as f64,
                row.random_lost_packets as f64,
                row.random_marked_packets as f64,
            ]);
        }
        for row in &tables.ping_samples {
            found.ping_samples.t_us.push(row.t_us as f64);
            found.ping_samples.rtt_us.push(real(row.rtt_us));
        }
        found
    }
}

fn real(value: Option<u64>) -> f64 {
    value.map_or(f64::NAN, |value| value as f64)
}
