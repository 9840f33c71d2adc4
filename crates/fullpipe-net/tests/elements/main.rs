//! Path elements against the formulas, RFCs and kernel sources that define them.

mod conservation;
mod packet;
