//! What of a plan this agent cannot do, said before anything is built.

use fullpipe_scenario::{AckPolicy, Plan};

/// `sk_pacing_shift` of every socket; only drivers can change it (sk_pacing_shift_update()).
const KERNEL_PACING_SHIFT: u8 = 10;

/// The error names the key and says what would be right.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let host = &plan.host;
    let bad = |sentence: String| Err(sentence);
    if plan.duration_ns == 0 || plan.sample_interval_ns == 0 {
        return bad("duration_ns and sample_interval_ns must be above 0".into());
    }
    if plan.flows.is_empty() {
        return bad("flows: there must be at least one".into());
    }
    if plan.path.rate_bps < 8000 || plan.path.reverse_rate_bps.is_some_and(|rate| rate < 8000) {
        return bad("path.rate: a kernel's bottleneck passes 8 kbit/s or more".into());
    }
    if plan.probes.iter().any(|probe| probe.interval_ns == 0) {
        return bad("probes.interval_ns must be above 0".into());
    }
    if host.pacing_shift != KERNEL_PACING_SHIFT {
        return bad(format!(
            "host.tsq: a kernel allows 1 ms (sk_pacing_shift {KERNEL_PACING_SHIFT}) and no program \
             can change it; other values are for engine sim"
        ));
    }
    if host.ack_policy == AckPolicy::EverySecond {
        return bad(
            "host.ack_policy: a kernel acknowledges as linux or every_packet; every_second is for \
             engine sim"
                .into(),
        );
    }
    if host.receive_aggregation_ns > 0 {
        return bad(
            "host.receive_aggregation: the receivers' ports have no GRO; values above 0 are for \
             engine sim"
                .into(),
        );
    }
    Ok(())
}
