//! Which kernel's queue disciplines do what: one predicate for each change that moves packets, with the
//! commit that made it and the first mainline release that has it.
//!
//! Stable releases take over fixes, so a late 6.1 has rules that 6.18 as released lacks.

use crate::kernel::Kernel;

/// The rules of the kernel that a queue is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules(Kernel);

impl Rules {
    /// The rules of this release; `None`: of the newest.
    pub(crate) fn of(kernel: Option<Kernel>) -> Self {
        Self(kernel.unwrap_or(Kernel::NEWEST))
    }

    /// fq has three bands in weighted round robin: commit 29f834aa326e, in 6.7. A new flow that is found
    /// empty then always becomes an old one (fq_dequeue()); before, only if there were old ones.
    ///
    /// A flow that appears joins band 0 whatever its packet's band is: fq_enqueue() calls
    /// fq_flow_add_tail() before it sets the flow's band, which is 0 until then. The band of the other
    /// flows is served first until its credit of 196,608 bytes is used. 7.3 still does so.
    pub(crate) fn fq_has_bands(self) -> bool {
        self.0 >= Kernel::Linux6_12
    }

    /// Packets bypass fq's flows while none of them is ready: fq_fastpath_check(), commit 076433bd78d7,
    /// in 6.7.
    pub(crate) fn fq_has_fast_path(self) -> bool {
        self.0 >= Kernel::Linux6_12
    }

    /// CoDel forgets that the delay was above the target when it finds its queue empty:
    /// codel_dequeue(), commit 815980fe6dbb of 23 March 2026, in 7.0 and in stable releases since. Before,
    /// a packet that came after a pause could be dropped for the delay of the last one before it.
    pub(crate) fn codel_forgets_when_empty(self) -> bool {
        self.0 >= Kernel::Linux7_3 || matches!(self.0, Kernel::Linux6_1 | Kernel::Linux6_12_117)
    }
}
