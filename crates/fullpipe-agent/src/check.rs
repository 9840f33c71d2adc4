//! What of a plan this agent cannot do, said before anything is built.

use fullpipe_scenario::{AckPolicy, Aqm, Link, Medium, Plan, ProbeKind};

/// `sk_pacing_shift` of every socket; only drivers can change it (sk_pacing_shift_update()).
const KERNEL_PACING_SHIFT: u8 = 10;

/// For a path of namespaces. The error names the key and says what would be right.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let host = &plan.host;
    let bad = |sentence: String| Err(sentence);
    check_basics(plan)?;
    let rates_bps = plan.links.iter().flat_map(Link::rates_bps).flatten();
    if rates_bps.min().is_some_and(|least_bps| least_bps < 8000) {
        return bad("path.rate: a kernel's bottleneck passes 8 kbit/s or more".into());
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

/// For a path between two hosts, which is what it is.
pub(crate) fn check_for_peers(plan: &Plan) -> Result<(), String> {
    check_basics(plan)?;
    let ends = &plan.ends;
    let has = |key: &str, is_set: bool| match is_set {
        true => Err(format!(
            "{key}: a real network has its own; leave it out, or run without --peer"
        )),
        false => Ok(()),
    };
    has("path.loss", ends.loss.is_some())?;
    has("path.reverse_loss", ends.reverse_loss.is_some())?;
    has("path.jitter", ends.jitter.is_some())?;
    if let Medium::Wire { forward, .. } = &plan.links[0].medium {
        has("path.qdisc", forward.qdisc.aqm != Aqm::Fifo)?;
    }
    for flow in &plan.flows {
        let is_own = flow.forward_delay_ns.is_some() || flow.reverse_delay_ns.is_some();
        has(&format!("flow {}: rtt", flow.name), is_own)?;
        has(
            &format!("flow {}: jitter", flow.name),
            flow.jitter.is_some(),
        )?;
    }
    match plan
        .probes
        .iter()
        .find(|probe| probe.kind == ProbeKind::Udp)
    {
        Some(probe) => Err(format!(
            "probe {}: kind: the far end answers ping; udp is for paths of namespaces",
            probe.name
        )),
        None => Ok(()),
    }
}

fn check_basics(plan: &Plan) -> Result<(), String> {
    if plan.duration_ns == 0 || plan.sample_interval_ns == 0 {
        return Err("duration_ns and sample_interval_ns must be above 0".into());
    }
    if plan.links.is_empty() {
        return Err("links: there must be at least one".into());
    }
    let is_wifi = |link: &Link| matches!(link.medium, Medium::Wifi { .. });
    if plan.links.iter().any(is_wifi) {
        return Err("wifi: only engine sim has a Wi-Fi channel".into());
    }
    let steps = |link: &Link| {
        let Medium::Wire { forward, reverse } = &link.medium else {
            return false;
        };
        [forward, reverse]
            .iter()
            .any(|way| !way.rate_steps.is_empty() || !way.delay_steps.is_empty())
    };
    if plan.links.len() > 1 || plan.links.iter().any(steps) {
        return Err("links: a row of links, and what changes, are for engine sim so far".into());
    }
    if plan.flows.is_empty() {
        return Err("flows: there must be at least one".into());
    }
    if plan.probes.iter().any(|probe| probe.interval_ns == 0) {
        return Err("probes.interval_ns must be above 0".into());
    }
    Ok(())
}
