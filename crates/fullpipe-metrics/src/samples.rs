//! What of a recording's tables metrics read, as columns; NaN for null.

use fullpipe_plan::{Tables, Text};

use crate::facts::QueueFacts;

/// The table `flows`.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Names in the plan.
    pub flow: Vec<Text>,
    /// The names the user gave the congestion controls.
    pub cc: Vec<Text>,
    /// `up` or `down`.
    pub direction: Vec<Text>,
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
    /// The same in packets.
    pub queue_packets: Vec<f64>,
    /// `sent_bytes`, `sent_packets`, `dropped_packets`, `marked_packets`, `random_lost_packets`,
    /// `random_marked_packets`, `filtered_packets`.
    pub counters: Vec<[f64; 7]>,
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
    /// One for each queue that is measured.
    pub queues: Vec<QueueSamples>,
    pub ping_samples: PingSamples,
}

impl Samples {
    /// Becomes those of a run in memory, with the samples of these queues. Many runs one after another
    /// use the same memory.
    pub fn become_of(&mut self, tables: Tables, queues: &[QueueFacts]) {
        self.clear();
        self.queues.resize_with(queues.len(), QueueSamples::default);
        for row in tables.flows {
            let flows = &mut self.flows;
            flows.flow.push(row.flow);
            flows.cc.push(row.cc);
            flows.direction.push(row.direction);
            flows.start_us.push(row.start_us as f64);
            flows.completion_us.push(real(row.completion_us));
        }
        for row in &tables.flow_samples {
            let samples = &mut self.flow_samples;
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
        for row in &tables.queue_samples {
            let Some(place) = queues.iter().position(|queue| queue.name == row.queue) else {
                continue;
            };
            let samples = &mut self.queues[place];
            samples.t_us.push(row.t_us as f64);
            samples.queue_bytes.push(row.queue_bytes as f64);
            samples.queue_packets.push(row.queue_packets as f64);
            samples.counters.push([
                row.sent_bytes as f64,
                row.sent_packets as f64,
                row.dropped_packets as f64,
                row.marked_packets as f64,
                row.random_lost_packets as f64,
                row.random_marked_packets as f64,
                row.filtered_packets as f64,
            ]);
        }
        for row in &tables.ping_samples {
            self.ping_samples.t_us.push(row.t_us as f64);
            self.ping_samples.rtt_us.push(real(row.rtt_us));
        }
    }

    fn clear(&mut self) {
        let Self {
            flows,
            flow_samples,
            queues,
            ping_samples,
        } = self;
        for texts in [&mut flows.flow, &mut flows.cc, &mut flows.direction] {
            texts.clear();
        }
        for numbers in [
            &mut flows.start_us,
            &mut flows.completion_us,
            &mut flow_samples.t_us,
            &mut flow_samples.srtt_us,
            &mut flow_samples.min_rtt_us,
            &mut flow_samples.cwnd_packets,
            &mut ping_samples.t_us,
            &mut ping_samples.rtt_us,
        ] {
            numbers.clear();
        }
        flow_samples.flow_id.clear();
        flow_samples.counters.clear();
        for queue in queues {
            queue.t_us.clear();
            queue.queue_bytes.clear();
            queue.queue_packets.clear();
            queue.counters.clear();
        }
    }
}

fn real(value: Option<u64>) -> f64 {
    value.map_or(f64::NAN, |value| value as f64)
}
