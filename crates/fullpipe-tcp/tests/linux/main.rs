//! The sender and the receiver against what RFCs say in numbers and what Linux does where RFCs
//! leave it open. No network: the tests play it, packet by packet.

mod ecn;
mod facts;
mod growth;
mod loss_detection;
mod opening;
mod peer;
mod rate;
mod receiver;
mod recovery;
mod reordering;
mod small_queues;
mod ticks;
mod timeout;
