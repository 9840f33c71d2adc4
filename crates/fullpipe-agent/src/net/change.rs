//! Changes of rate and delay while a run lasts: a list of times and netlink requests. This module must
//! not know a clock.

use super::major;
use super::namespace::Node;
use super::qdisc::{self, handle, Spec};

/// A change of a qdisc at a time of the run.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) at_ns: u64,
    pub(super) node: usize,
    pub(super) port_index: u32,
    pub(super) what: What,
}

/// What changes.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// The rate of htb's class.
    Rate(u64),
    /// The delay line: its parent and new parameters.
    Delay(u32, Spec),
}

impl Change {
    /// Applies the change by netlink.
    pub(crate) fn apply(&self, nodes: &mut [Node]) -> Result<(), String> {
        let node = &mut nodes[self.node];
        match &self.what {
            What::Rate(rate_bps) => qdisc::put_htb_class(node, self.port_index, *rate_bps, false),
            What::Delay(parent, spec) => {
                qdisc::change(node, self.port_index, *parent, handle(major::DELAY), spec)
            }
        }
    }
}
