//! Links: the contract that every kind follows, and the wire, whose directions are independent.

mod contract;
pub(crate) mod delay;
pub(crate) mod framing;
mod general;
pub(crate) mod params;
mod passed;
mod queued;
mod shaped;
pub(crate) mod shaper;
pub(crate) mod wire;

pub use self::contract::{Link, Passage};
pub use self::params::WireDirection;
pub use self::passed::{Direction, DirectionState, Exit, Passed};
pub use self::queued::QueuedDirection;
