//! The extended fluid model: BBRv3 and BBRv2 against loss-based flows over a drop-tail bottleneck.

mod bbr3;
mod link;
mod loss_based;
mod random;
mod run;
mod sender;
mod spec;

pub use run::run;
pub use spec::{Cc, ExtendedOutcome, ExtendedSpec, ExtendedTrace, FlowSpec};
