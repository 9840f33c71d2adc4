//! Major numbers of qdisc handles, the same on every port.

pub(super) const HTB: u32 = 1;
pub(super) const POLICER: u32 = 2;
pub(super) const ACCESS: u32 = 3;
pub(super) const LOSS: u32 = 5;
pub(super) const DELAY: u32 = 6;
pub(super) const PACING: u32 = 7;
pub(super) const JITTER: u32 = 8;
pub(super) const QUEUE: u32 = 0x10;
