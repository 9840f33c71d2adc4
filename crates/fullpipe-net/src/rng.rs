//! Random numbers: a value-stable generator, one for each purpose.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A generator of one purpose's random numbers. Its stream is fixed by its seed for ever
/// (PCG-MCG-128/64, M. O'Neill, HMC-CS-2014-0905).
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// From a seed made by [`derive_seed`].
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Uniform over 0..2^32.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Uniform over 0..=max, without modulo bias beyond 2^-64.
    pub fn up_to(&mut self, max: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * (u128::from(max) + 1)) >> 64) as u64
    }
}

/// The purposes of random numbers. Every engine derives the same seed for the same purpose.
pub mod purpose {
    /// Random loss at the senders' egress.
    pub const LOSS: u32 = 1;
    /// Random loss of ACKs.
    pub const REVERSE_LOSS: u32 = 2;
    /// Delay of single packets.
    pub const JITTER: u32 = 3;
    /// Congestion controls, by flow.
    pub const CC: u32 = 4;
    /// Drops and marks of a queue, by link and direction.
    pub const QUEUE: u32 = 5;
    /// Host time of packets, by flow.
    pub const HOST: u32 = 6;
    /// Random loss of a link, by link and direction.
    pub const LINK_LOSS: u32 = 7;
    /// Arrivals and sizes of traffic's flows, by group.
    pub const TRAFFIC: u32 = 8;
    /// Congestion controls of traffic's flows, by flow.
    pub const TRAFFIC_CC: u32 = 9;
    /// Host time of packets of traffic's flows, by flow.
    pub const TRAFFIC_HOST: u32 = 10;
    /// Silences of datagram streams, by stream.
    pub const DATAGRAMS: u32 = 11;
    /// Writes of a flow's application, by flow.
    pub const PATTERN: u32 = 12;
    /// Congestion controls of pages' connections, in the order in which they open.
    pub const PAGE_CC: u32 = 13;
    /// Host time of packets of pages' connections, likewise.
    pub const PAGE_HOST: u32 = 14;
    /// Pauses of the receiving application.
    pub const READER: u32 = 15;
    /// Backoff on a Wi-Fi channel.
    pub const WIFI_BACKOFF: u32 = 20;
    /// Losses of MPDUs on it.
    pub const WIFI_LOSS: u32 = 21;
    /// Queues of its nodes.
    pub const WIFI_QUEUE: u32 = 22;
    /// Duplicated packets, by link and direction.
    pub const DUPLICATE: u32 = 30;
    /// Packets that overtake others, by link and direction.
    pub const REORDER: u32 = 31;
    /// Extra delays of a link, by link and direction.
    pub const WIFI_JITTER: u32 = 32;
    /// netem's jitter of a link, by link and direction.
    pub const NETEM_JITTER: u32 = 33;
    /// Bad and good times of a link, by link and direction.
    pub const BAD_TIMES: u32 = 34;
}

/// The seed for one purpose of one part of a run. Neighbouring inputs give unrelated seeds
/// (splitmix64 finalizer, twice).
pub fn derive_seed(seed: u64, purpose: u32, index: u32) -> u64 {
    let part = (u64::from(purpose) << 32) | u64::from(index);
    mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(part))
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
