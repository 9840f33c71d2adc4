//! Compiled core of the fluid models: delay-differential systems integrated with a fixed step and a
//! bounded history. It knows nothing of Python, of scenarios or of units other than milliseconds
//! and segments, and whatever is random comes in with the spec, as numbers or as a seed.
//!
//! Two models: at the root that of Scherrer, Legner, Perrig, Schmid, "Model-Based Insights on the Performance, Fairness, and
//! Stability of BBR", IMC 2022, as the authors' published program computes it
//! (simonschdev/imc22-bbr-fluid-model, 9ad01fa); in [`extended`] one of BBRv3 and BBRv2 against
//! loss-based flows, derived in docs/background/models.md.

mod batch;
mod bbr;
mod cubic;
pub mod extended;
mod history;
pub mod json;
mod link;
mod math;
mod outcome;
mod reno;
mod run;
mod sender;
pub mod sharing;
mod spec;

pub use batch::run_many;
pub use outcome::{Outcome, Trace};
pub use run::run;
pub use spec::{Aqm, Cc, FlowSpec, Spec, SpecError};
