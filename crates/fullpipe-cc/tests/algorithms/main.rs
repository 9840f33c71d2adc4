//! The algorithms one after the other, and what all of them keep to, as one program: to link one for each
//! file took longer than to run it.
//!
//! Files named `by_hand` give an algorithm hand-made events and compare each answer with the rule of
//! its source; the others drive it through a bottleneck. Their hosts: `calls` does nothing by itself,
//! `hand` answers with one ACK a round trip, `bottleneck` is a flow through one drop-tail queue.

mod bbr1;
mod bbr1_by_hand;
mod bbr2;
mod bbr3;
mod bbr3_bounds_by_hand;
mod bbr3_by_hand;
mod bbr3_ecn;
mod bbr3_model_by_hand;
mod bbr3_sets_by_hand;
mod bbrnplus;
mod bottleneck;
mod calls;
mod cubic;
mod cubic_by_hand;
mod dctcp;
mod hand;
mod made;
mod magnitudes_by_hand;
mod networks;
mod prague;
mod prague_by_hand;
mod reno;
mod reno_by_hand;
mod replay;
mod ring;
mod seen;
mod sends;
mod starts;
mod starts_by_hand;
mod tarn;
mod tarn_by_hand;
