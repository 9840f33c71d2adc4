//! Path elements against the formulas, RFCs and kernel sources that define them.

mod allocation;
mod cake;
mod codel;
mod conservation;
mod damage;
mod delay;
mod direct;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod host;
mod jitter;
mod loss;
mod packet;
mod prio;
mod red;
mod sfq;
mod shaper;
mod tbf;
mod traces;
mod wire;
