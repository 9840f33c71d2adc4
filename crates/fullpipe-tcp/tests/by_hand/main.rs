//! One mechanism of TCP after the other, against numbers worked out by hand from RFCs and from Linux.
//!
//! Only `script.rs` (a sender and its peer) and `reader.rs` (a receiver and what comes to it) call the
//! crate. Tests say which packets come and when, as a packetdrill script does, and compare what is sent,
//! and when, with what the source says.

mod delayed_acks_by_hand;
mod facts_by_hand;
mod frto_by_hand;
mod marks_by_hand;
mod pacing_by_hand;
mod prr_by_hand;
mod psh_by_hand;
mod rack_by_hand;
mod reader;
mod rtt_by_hand;
mod script;
mod tlp_by_hand;
mod undo_by_hand;
mod window_by_hand;
mod window_probes_by_hand;
mod writes_by_hand;
