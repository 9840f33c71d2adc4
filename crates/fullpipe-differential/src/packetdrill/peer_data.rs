//! The peer's data as packets: `fullpipe-tcp` numbers them, a script numbers bytes.

use super::machine::Halt;
use super::program::{Action, Program};
use super::segment::SYN;

/// Where packets of the peer begin and end, in bytes from the first.
pub(super) struct PeerData(Vec<u32>);

impl PeerData {
    pub(super) fn of(program: &Program) -> Self {
        let mut bounds = vec![0];
        for op in &program.ops {
            if let Action::Inject(segment) = &op.action {
                if segment.bytes > 0 && !segment.has(SYN) {
                    let start = segment.sequence.wrapping_sub(1);
                    bounds.extend([start, start.wrapping_add(segment.bytes)]);
                }
            }
        }
        bounds.sort_unstable();
        bounds.dedup();
        Self(bounds)
    }

    /// The packet that has these bytes.
    pub(super) fn packet(&self, start: u32, bytes: u32) -> Result<u32, Halt> {
        let number = self.0.binary_search(&start).ok();
        let is_whole = |number: &usize| self.0.get(number + 1) == Some(&start.wrapping_add(bytes));
        let number = number.filter(is_whole).map(|number| number as u32);
        number.ok_or_else(|| Halt::Unsupported("peer's packets that overlap".to_owned()))
    }

    /// The first byte of a packet.
    pub(super) fn start(&self, number: u32) -> u32 {
        let last = self.0.last().copied().unwrap_or(0);
        self.0.get(number as usize).copied().unwrap_or(last)
    }

    /// The largest payload, if there is any.
    pub(super) fn largest(&self) -> Option<u32> {
        self.0.windows(2).map(|pair| pair[1] - pair[0]).max()
    }
}
