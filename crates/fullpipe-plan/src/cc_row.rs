//! An algorithm's own variables as a row: the same in the simulator and from the kernel's map.

use fullpipe_cc::{Info, Phase, INFINITE, ONE};

use crate::tables::CcRow;

impl CcRow {
    /// The row of a flow at a moment; what the algorithm has no value for becomes null.
    pub fn of(t_us: u64, flow_id: u64, info: &Info) -> Self {
        let rate = |bytes_per_s: u64| Some(bytes_per_s.saturating_mul(8)).filter(|&bps| bps > 0);
        let bound = |packets: u32| (packets < INFINITE).then_some(u64::from(packets));
        let gain = |gain: u32| f64::from(gain) / f64::from(ONE);
        Self {
            t_us,
            flow_id,
            phase: Phase::from_raw(info.phase).name().into(),
            bw_bps: rate(info.bw_bytes_per_s),
            max_bw_bps: rate(info.max_bw_bytes_per_s),
            bw_shortterm_bps: rate(info.bw_shortterm_bytes_per_s),
            min_rtt_us: Some(u64::from(info.min_rtt_us)).filter(|&us| us > 0),
            pacing_gain: gain(info.pacing_gain),
            cwnd_gain: gain(info.cwnd_gain),
            inflight_longterm_packets: bound(info.inflight_longterm),
            inflight_shortterm_packets: bound(info.inflight_shortterm),
            extra_acked_packets: u64::from(info.extra_acked),
            round_count: u64::from(info.round_count),
        }
    }
}
