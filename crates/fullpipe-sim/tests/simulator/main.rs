//! Whole runs of the simulator, as one program: to link one for each file took longer than to run it.

mod by_hand;
mod endpoints;
mod handshakes;
mod parts;
mod properties;
mod traffic;
