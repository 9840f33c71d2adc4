//! The differential test of queue disciplines. A [`Script`] says what a queue is and which packets arrive at
//! it, and when. A kernel's queue (in `fullpipe-agent`) and that of `fullpipe-net` ([`play`]) answer with what
//! leaves the link behind it: which packet, when, with which ECN bits. [`judge`] names the first difference.
//!
//! [`draw`] makes random scripts of a [`Kind`].

mod answer;
mod chance;
mod compare;
mod draw;
mod model;
mod options;
mod script;
mod traffic;

pub use answer::{Answer, Departure};
pub use chance::{figures, judge, spreads, Figures, Spread};
pub use compare::compare;
pub use draw::draw;
pub use model::play;
pub use options::Kind;
pub use script::{shorter, Arrival, Script, LEAST_BYTES};
