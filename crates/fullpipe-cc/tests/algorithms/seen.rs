//! An algorithm's variables by the names that BBR's have, as plain integers.

use fullpipe_cc::{Controller, Info, INFINITE, ONE};

pub(crate) trait Seen {
    /// The variables; those that have no value, or that the algorithm does not have, are 0 or
    /// [`INFINITE`].
    fn info(&self) -> Info;
}

impl Seen for Controller {
    fn info(&self) -> Info {
        let mut info = Info {
            inflight_longterm: INFINITE,
            inflight_shortterm: INFINITE,
            ..Info::default()
        };
        let values = self.variables();
        for (variable, value) in self.algorithm().variables.iter().zip(values) {
            let Some(value) = value else { continue };
            let gain = (value * f64::from(ONE)) as u32;
            match variable.column {
                "phase" => info.phase = value as u32,
                "bw_bps" => info.bw_bytes_per_s = value as u64 / 8,
                "max_bw_bps" => info.max_bw_bytes_per_s = value as u64 / 8,
                "bw_shortterm_bps" => info.bw_shortterm_bytes_per_s = value as u64 / 8,
                "min_rtt_us" => info.min_rtt_us = value as u32,
                "pacing_gain" => info.pacing_gain = gain,
                "cwnd_gain" => info.cwnd_gain = gain,
                "inflight_longterm_packets" => info.inflight_longterm = value as u32,
                "inflight_shortterm_packets" => info.inflight_shortterm = value as u32,
                "extra_acked_packets" => info.extra_acked = value as u32,
                "round_count" => info.round_count = value as u32,
                _ => {}
            }
        }
        info
    }
}
