//! Changes of rate and delay while a run lasts: a list of times and netlink requests. This module must
//! not know a clock.

use super::filler;
use super::major;
use super::namespace::Node;
use super::qdisc::{self, handle, Shape, Spec};

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
    /// That of htb's class.
    Shape(Shape),
    /// The delay line: its parent and new parameters.
    Delay(u32, Spec),
}

impl Change {
    /// Applies the change by netlink.
    pub(crate) fn apply(&self, nodes: &mut [Node]) -> Result<(), String> {
        let node = &mut nodes[self.node];
        match &self.what {
            What::Shape(shape) => {
                qdisc::put_htb_class(node, self.port_index, *shape, false)?;
                match shape {
                    Shape::Outage(_) => filler::send(node, self.port_index),
                    Shape::Rate(..) => Ok(()),
                }
            }
            What::Delay(parent, spec) => {
                qdisc::change(node, self.port_index, *parent, handle(major::DELAY), spec)
            }
        }
    }
}
