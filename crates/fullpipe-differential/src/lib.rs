//! The differential test of TCP. A [`Script`] says what a peer sends and what the application does, and when.
//! A [`Subject`] is the TCP that it is played to: the model of `fullpipe-tcp` ([`Model`]), or a kernel's socket
//! (in `fullpipe-agent`). [`play`] returns an [`Answer`]: after every event what `TCP_INFO` says, and every
//! packet sent. [`compare`] names the first event in which two answers differ.
//!
//! The same for queue disciplines is in [`queue`]. Scripts that users bring are in [`packetdrill`].
//!
//! [`draw`] makes random scripts: a random peer on a random path plays to the model. [`shorter`] leaves events
//! out, so that a difference can be reduced to what it needs.

mod answer;
mod compare;
mod draw;
mod info;
mod model;
pub mod packetdrill;
mod path;
mod peer;
mod play;
pub mod queue;
mod script;
mod shorter;

pub use answer::{Answer, Flags, Packet, Step};
pub use compare::{compare, Difference, Disagreement};
pub use draw::draw;
pub use info::{Field, Info, FIELDS};
pub use model::{Model, ECHO_APART_US, SYN_WINDOW_BYTES};
pub use play::{play, Subject};
pub use script::{Action, Event, Host, Peer, PeerAck, Script, WINDOW_SHIFT};
pub use shorter::shorter;
