//! Background traffic: flows of stations that exist only on the channel, backlogged or at a rate.

use super::params::WifiBackground;

/// Frames that a backlogged source keeps queued: more than an A-MPDU holds.
const READY_FRAMES: u32 = 200;
const ETHERNET_BYTES: u32 = 14;

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) node: usize,
    pub(crate) peer: usize,
    pub(crate) category: usize,
    pub(crate) wire_bytes: u32,
    /// `None`: backlogged.
    interval_ns: Option<u64>,
    next_ns: u64,
    waiting: u32,
}

impl Source {
    /// The source of station `station` (from 0) of the channel.
    pub(crate) fn new(background: &WifiBackground, station: usize) -> Result<Self, String> {
        let bits = u64::from(background.packet_bytes) * 8;
        if background.category > 3 || !(28..=2304).contains(&background.packet_bytes) {
            return Err("background: category must be 0 to 3, packet_bytes 28 to 2304".into());
        }
        let (node, peer) = if background.up {
            (station + 1, 0)
        } else {
            (0, station)
        };
        Ok(Self {
            node,
            peer,
            category: usize::from(background.category),
            wire_bytes: background.packet_bytes + ETHERNET_BYTES,
            interval_ns: background
                .rate_bps
                .map(|rate_bps| (bits * 1_000_000_000 / rate_bps.max(1)).max(1)),
            next_ns: 0,
            waiting: 0,
        })
    }

    /// When its next frame is due; `None`: it is backlogged.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.interval_ns.map(|_| self.next_ns)
    }

    /// Frames that are due.
    pub(crate) fn due(&mut self, now_ns: u64) -> u32 {
        let frames = match self.interval_ns {
            None => READY_FRAMES - self.waiting,
            Some(interval_ns) if self.next_ns <= now_ns => {
                self.next_ns += interval_ns;
                1
            }
            Some(_) => 0,
        };
        self.waiting += frames;
        frames
    }

    /// One of its frames was delivered or dropped.
    pub(crate) fn done(&mut self) {
        self.waiting -= 1;
    }
}
