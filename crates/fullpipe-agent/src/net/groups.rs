//! The hosts of a plan and their settings. The plan says which flows share one.

use fullpipe_net::impair::jitter;
use fullpipe_plan::{EcnKind, Flow, Hosts, Plan, Route};

/// A host on the senders' side.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SenderSide {
    /// The first link of its routes.
    pub(crate) enter: u16,
    pub(crate) reverse_delay_ns: u64,
    pub(crate) jitter: Option<jitter::Params>,
    /// The ECN that its connections request; `None`: no ECN.
    pub(crate) ecn: Option<EcnKind>,
}

/// A host on the receivers' side.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReceiverSide {
    /// The last link of its routes.
    pub(crate) leave: u16,
    pub(crate) forward_delay_ns: u64,
}

/// All hosts, and where each flow and the probes are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Groups {
    pub(crate) senders: Vec<SenderSide>,
    pub(crate) receivers: Vec<ReceiverSide>,
    /// Positions in `senders` and `receivers`, one pair a flow.
    pub(crate) flows: Vec<(usize, usize)>,
    /// The same for each probe.
    pub(crate) probes: Vec<(usize, usize)>,
    /// Pages, then streams of datagrams.
    pub(crate) applications: Vec<(usize, usize)>,
    /// Senders of all groups of traffic.
    pub(crate) traffic: Vec<(usize, usize)>,
}

impl Groups {
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut groups = Self::default();
        for flow in &plan.flows {
            let pair = groups.place(plan, Some(flow), flow.hosts, flow.route);
            groups.flows.push(pair);
        }
        for probe in &plan.probes {
            let pair = groups.place(plan, None, probe.hosts, probe.route);
            groups.probes.push(pair);
        }
        let pages = plan.pages.iter().map(|page| (page.hosts, page.route));
        let streams = plan.datagrams.iter().map(|one| (one.hosts, one.route));
        for (hosts, route) in pages.chain(streams) {
            let pair = groups.place(plan, None, hosts, route);
            groups.applications.push(pair);
        }
        for traffic in &plan.traffic {
            for sender in 0..traffic.senders.len() {
                let member = traffic.member(sender);
                let pair = groups.place(plan, Some(&member), member.hosts, member.route);
                groups.traffic.push(pair);
            }
        }
        groups
    }

    /// The first flow of a host decides its settings.
    fn place(
        &mut self,
        plan: &Plan,
        flow: Option<&Flow>,
        hosts: Hosts,
        route: Route,
    ) -> (usize, usize) {
        let (near, far) = (usize::from(hosts.near), usize::from(hosts.far));
        let (forward_delay_ns, reverse_delay_ns) = plan.end_delays_ns(flow);
        if near >= self.senders.len() {
            let jitter = flow
                .and_then(|flow| flow.jitter.clone())
                .or_else(|| plan.access.jitter.clone())
                .filter(|jitter| jitter.max_ns > 0);
            let matching = self.senders.first().and_then(|first| first.ecn);
            self.senders.resize(near, SenderSide::default());
            self.senders.push(SenderSide {
                enter: route.enter,
                reverse_delay_ns,
                jitter,
                ecn: flow.map_or(matching, |flow| flow.ecn.then_some(flow.ecn_kind)),
            });
        }
        if far >= self.receivers.len() {
            self.receivers.resize(far, ReceiverSide::default());
            self.receivers.push(ReceiverSide {
                leave: route.leave,
                forward_delay_ns,
            });
        }
        (near, far)
    }
}
