//! What the simulator requires of a plan; the front end has checked the rest.

use fullpipe_plan::Plan;
use thiserror::Error;

use crate::packet::MAX_HOSTS;

/// Most links in a row.
const MAX_LINKS: usize = 64;

/// A plan that cannot be run; the message names key and value.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadPlan(pub String);

/// Checks a plan.
pub(crate) fn check(plan: &Plan) -> Result<(), BadPlan> {
    let bad = |text: &str| Err(BadPlan(text.to_owned()));
    if plan.duration_ns == 0 || plan.sample_interval_ns == 0 {
        return bad("duration_ns and sample_interval_ns: must be above 0");
    }
    if plan.links.is_empty() || plan.links.len() > MAX_LINKS {
        return Err(BadPlan(format!("links: from 1 to {MAX_LINKS}")));
    }
    if !(128..=65_000).contains(&plan.access.mtu_bytes) {
        return bad("ends.mtu_bytes: must be from 128 to 65000");
    }
    let flows = plan.flows.iter().map(|flow| (flow.route, flow.hosts));
    let probes = plan.probes.iter().map(|probe| (probe.route, probe.hosts));
    let pages = plan.pages.iter().map(|page| (page.route, page.hosts));
    let datagrams = plan.datagrams.iter().map(|one| (one.route, one.hosts));
    let traffic = plan.traffic.iter().flat_map(|group| {
        let hosts = group.senders.iter().map(|sender| sender.hosts);
        hosts.map(|hosts| (group.route, hosts))
    });
    let others = flows.chain(probes).chain(pages).chain(datagrams);
    for (route, hosts) in others.chain(traffic) {
        if route.enter > route.leave || usize::from(route.leave) >= plan.links.len() {
            return bad("route: enter must not be after leave, and leave must be a link");
        }
        if hosts.near.max(hosts.far) >= MAX_HOSTS {
            return Err(BadPlan(format!(
                "hosts: at most {MAX_HOSTS} on either side"
            )));
        }
    }
    let has_applications = !plan.pages.is_empty() || !plan.datagrams.is_empty();
    if plan.flows.is_empty() && plan.traffic.is_empty() && !has_applications {
        return bad(
            "flows: there must be at least one, or traffic, a page or a stream of datagrams",
        );
    }
    if plan.probes.iter().any(|probe| probe.interval_ns == 0) {
        return bad("probes.interval_ns: must be above 0");
    }
    if plan.host.initial_cwnd_packets == 0 || plan.host.gso_max_segments == 0 {
        return bad("host.initial_cwnd_packets, host.gso_max_segments: must be above 0");
    }
    if let Some(name) = plan.host.sysctl.of_kernels_only() {
        return Err(BadPlan(format!(
            "host.sysctl.{name}: the simulator has Linux's default only; other values are for \
             engines with a kernel (--engine vm)"
        )));
    }
    if let Some(pauses) = &plan.host.reader_pauses {
        if pauses.for_ns.saturating_add(pauses.spread_ns) >= pauses.every_ns {
            return bad("host.reader_pauses: for_ns and spread_ns must be less than every_ns");
        }
        if pauses.spread_ns > pauses.for_ns {
            return bad("host.reader_pauses: spread_ns must be at most for_ns");
        }
    }
    Ok(())
}
