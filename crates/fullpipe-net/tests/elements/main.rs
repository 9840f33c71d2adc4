//! Path elements against the formulas, RFCs and kernel sources that define them.

mod codel;
mod conservation;
mod delay;
mod fifo;
mod fq;
mod fq_codel;
mod host;
mod jitter;
mod loss;
mod packet;
mod red;
mod shaper;
