//! Refuses plans that this agent cannot run, before anything is built.

use fullpipe_net::Aqm;
use fullpipe_plan::{AckPolicy, Flow, Link, Plan, ProbeKind};

/// `sk_pacing_shift` of every socket; only drivers can change it (sk_pacing_shift_update()).
const KERNEL_PACING_SHIFT: u8 = 10;

/// For a path of namespaces. The error names the key and says what would be right.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    check_basics(plan)?;
    for link in &plan.links {
        check_link(plan, link).map_err(|error| format!("link {}: {error}", link.name))?;
    }
    let rates_bps = plan.links.iter().flat_map(Link::rates_bps).flatten();
    if rates_bps.min().is_some_and(|least_bps| least_bps < 8000) {
        return Err("path.rate: a kernel's bottleneck passes 8 kbit/s or more".into());
    }
    check_tcp(plan)?;
    check_host(plan)
}

/// What a kernel's TCP does, whatever a plan says.
fn check_tcp(plan: &Plan) -> Result<(), String> {
    let host = &plan.host;
    let bad = |sentence: String| Err(sentence);
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
    if !host.rate_restart.is_unacknowledged() {
        return bad(
            "host.rate_restart: a kernel begins intervals as unacknowledged; inflight is for engine \
             sim"
                .into(),
        );
    }
    if !host.tcp.is_default() {
        return bad(
            "host.tcp: a kernel has the TCP it has (--kernel chooses one); other values are for \
             engine sim"
                .into(),
        );
    }
    if plan.flows.iter().any(|flow| flow.stack.is_some()) {
        return bad("flow.tcp: both ends have this kernel's TCP; for engine sim".into());
    }
    let is_own = |flow: &Flow| flow.cc.algorithm.is_some();
    if host.sysctl.tcp_min_tso_segs.is_some() && plan.flows.iter().any(is_own) {
        return bad(
            "host.sysctl.tcp_min_tso_segs: fullpipe's algorithms answer for themselves in a kernel; \
             use the kernel's own (kernel:cubic), or engine sim"
                .into(),
        );
    }
    Ok(())
}

/// What a kernel's host does, whatever a plan says.
fn check_host(plan: &Plan) -> Result<(), String> {
    let host = &plan.host;
    let bad = |sentence: &str| Err(sentence.to_owned());
    if host.work.is_some() {
        return bad(
            "host.packet_cost, host.ack_cost, host.send_cost, host.handshake_cost: a kernel's work \
             costs what it costs; for engine sim",
        );
    }
    if host.reader_pauses.is_some() {
        return bad(
            "host.reader_pause: for engine sim; --background-processes keeps a kernel busy",
        );
    }
    if host.receive_aggregation_ns > 0 {
        return bad(
            "host.receive_aggregation: the receivers' ports have no GRO; values above 0 are for \
             engine sim",
        );
    }
    Ok(())
}

/// Features that links of a kernel lack.
fn check_link(plan: &Plan, link: &Link) -> Result<(), String> {
    for direction in link.medium.wire().into_iter().flatten() {
        let refuse = |key: &str, is_set: bool| match is_set {
            true => Err(format!(
                "{key}: for engine sim; a kernel has no such element here"
            )),
            false => Ok(()),
        };
        let impairments = direction.impairments.clone().unwrap_or_default();
        let held = impairments.hold.as_ref();
        let by_time = (impairments.gemodel.as_ref()).is_some_and(|chain| chain.mean_ns.is_some());
        refuse("gemodel.good", by_time)?;
        refuse("wifi_jitter", impairments.wifi_jitter_ns.is_some())?;
        refuse(
            "hold.packets",
            held.is_some_and(|hold| hold.packets.is_some()),
        )?;
        if direction.qdisc.kernel().is_some() {
            return Err(
                "qdisc_options.kernel: a kernel has its own queue disciplines (--kernel chooses one); \
                 for engine sim"
                    .into(),
            );
        }
        refuse("rate_trace", direction.rate_trace.is_some())?;
        refuse("delay_trace", direction.delay_trace.is_some())?;
        let marks = direction.loss.as_ref().is_some_and(|loss| loss.ecn);
        refuse("loss_marks", marks && link.name != "path")?;
        if direction.qdisc.shapes() && !direction.rate_steps.is_empty() {
            return Err("rate_steps: a qdisc that shapes itself has a constant rate".into());
        }
        let mut steps = direction
            .rate_steps
            .windows(2)
            .chain(direction.delay_steps.windows(2));
        if steps.any(|pair| pair[0].0 >= pair[1].0) {
            return Err("rate_steps, delay_steps: times must rise".into());
        }
    }
    let outside = |at: u16| usize::from(at) >= plan.links.len();
    let flows = plan.flows.iter().map(|flow| flow.route);
    let probes = plan.probes.iter().map(|probe| probe.route);
    let traffic = plan.traffic.iter().map(|traffic| traffic.route);
    match flows
        .chain(probes)
        .chain(traffic)
        .any(|route| outside(route.leave) || route.enter > route.leave)
    {
        true => Err("route: enter must not be after leave, and leave must be a link".into()),
        false => Ok(()),
    }
}

/// For a path between two hosts, which cannot be changed.
pub(crate) fn check_for_peers(plan: &Plan) -> Result<(), String> {
    check_basics(plan)?;
    let access = &plan.access;
    let has = |key: &str, is_set: bool| match is_set {
        true => Err(format!(
            "{key}: a real network has its own; leave it out, or run without --peer"
        )),
        false => Ok(()),
    };
    has("host.sysctl", !plan.host.sysctl.is_default())?;
    has("path.loss", access.loss.is_some())?;
    has("path.reverse_loss", access.reverse_loss.is_some())?;
    has("path.jitter", access.jitter.is_some())?;
    has("link", plan.links.len() > 1 || plan.links[0].name != "path")?;
    if let Some([forward, _]) = plan.links[0].medium.wire() {
        has("path.qdisc", !matches!(forward.qdisc.aqm, Aqm::Fifo(_)))?;
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
    if plan.links.iter().any(|link| link.medium.wire().is_none()) {
        return Err("link.kind: a kernel's links are wires; the others are for engine sim".into());
    }
    let applications = plan.pages.len() + plan.datagrams.len() + plan.traffic.len();
    if plan.flows.len() + applications == 0 {
        return Err("flows: there must be at least one".into());
    }
    if plan.probes.iter().any(|probe| probe.interval_ns == 0) {
        return Err("probes.interval_ns must be above 0".into());
    }
    Ok(())
}
