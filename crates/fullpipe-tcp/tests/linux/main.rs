//! The sender and the receiver against numbers from RFCs, and against Linux where RFCs leave it open.
//! There is no network: tests exchange the packets themselves.

mod ecn;
mod facts;
mod fast_retransmit;
mod growth;
mod handshake;
mod loss_detection;
mod peer;
mod rate;
mod receiver;
mod reordering;
mod small_queues;
mod ticks;
mod timeout;
