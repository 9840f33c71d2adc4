//! Which flows and probes share a host: those that have the same delays and need the same settings.
//! Whoever has jitter or a link of its own has a host of its own.

use fullpipe_scenario::{Direction, Flow, Jitter, Plan};

/// What tells hosts on the senders' side apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SenderSide {
    pub(crate) reverse_delay_ns: u64,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) ecn: bool,
    own: Option<usize>,
}

/// What tells hosts on the receivers' side apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceiverSide {
    pub(crate) forward_delay_ns: u64,
    own: Option<usize>,
}

/// All hosts, and where each flow and the probes are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Groups {
    pub(crate) senders: Vec<SenderSide>,
    pub(crate) receivers: Vec<ReceiverSide>,
    /// Positions in `senders` and `receivers`, one pair a flow.
    pub(crate) flows: Vec<(usize, usize)>,
    /// `None`: there are no probes.
    pub(crate) probes: Option<(usize, usize)>,
}

impl Groups {
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut groups = Self::default();
        for (index, flow) in plan.flows.iter().enumerate() {
            let pair = groups.place(plan, Some(flow), index);
            groups.flows.push(pair);
        }
        if !plan.probes.is_empty() {
            groups.probes = Some(groups.place(plan, None, plan.flows.len()));
        }
        groups
    }

    fn place(&mut self, plan: &Plan, flow: Option<&Flow>, index: usize) -> (usize, usize) {
        let path = &plan.path;
        let own = |get: fn(&Flow) -> Option<u64>, common| flow.and_then(get).unwrap_or(common);
        let jitter = flow
            .and_then(|flow| flow.jitter.clone())
            .or_else(|| path.jitter.clone())
            .filter(|jitter| jitter.max_ns > 0);
        let own_link = |direction| {
            let sends = flow.is_some_and(|flow| flow.direction == direction);
            sends && plan.host.access_rate_bps > 0
        };
        // A probe's packets carry no ECN: it goes where there is a host for its delays.
        let matching = self.senders.first().is_some_and(|first| first.ecn);
        let sender = SenderSide {
            reverse_delay_ns: own(|flow| flow.reverse_delay_ns, path.reverse_delay_ns),
            own: (jitter.is_some() || own_link(Direction::Up)).then_some(index),
            jitter,
            ecn: flow.map_or(matching, |flow| flow.ecn),
        };
        let receiver = ReceiverSide {
            forward_delay_ns: own(|flow| flow.forward_delay_ns, path.forward_delay_ns),
            own: own_link(Direction::Down).then_some(index),
        };
        (
            position(&mut self.senders, sender),
            position(&mut self.receivers, receiver),
        )
    }
}

fn position<T: PartialEq>(known: &mut Vec<T>, wanted: T) -> usize {
    known
        .iter()
        .position(|one| *one == wanted)
        .unwrap_or_else(|| {
            known.push(wanted);
            known.len() - 1
        })
}
