//! A token bucket that drops and never queues, as Linux polices (act_police.c, tcf_police_act()): a
//! packet that needs more tokens than there are is dropped and takes none.

use serde::{Deserialize, Serialize};

/// Rate and depth of the bucket.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// At which tokens come.
    pub rate_bps: u64,
    /// Most tokens.
    pub burst_bytes: u64,
}

impl Params {
    pub(super) fn check(&self) -> Result<(), String> {
        match self.rate_bps > 0 && self.burst_bytes > 0 {
            true => Ok(()),
            false => Err("policer: rate and burst must be above 0".into()),
        }
    }
}

const NS_PER_S: u128 = 1_000_000_000;

/// The bucket; full at first.
#[derive(Clone, Debug)]
pub struct Policer {
    rate_bps: u128,
    /// Tokens are bits times ns per s: exact at every rate.
    most: u128,
    tokens: u128,
    last_ns: u64,
    dropped: u64,
}

impl Policer {
    /// Rate and burst must be above 0.
    pub fn new(params: &Params) -> Self {
        let most = u128::from(params.burst_bytes) * 8 * NS_PER_S;
        Self {
            rate_bps: params.rate_bps.into(),
            most,
            tokens: most,
            last_ns: 0,
            dropped: 0,
        }
    }

    /// Whether a packet that arrives now conforms. Times never decrease.
    pub fn passes(&mut self, now_ns: u64, wire_bytes: u32) -> bool {
        let gained = u128::from(now_ns - self.last_ns) * self.rate_bps;
        self.tokens = self.most.min(self.tokens + gained);
        self.last_ns = now_ns;
        let cost = u128::from(wire_bytes) * 8 * NS_PER_S;
        let passes = cost <= self.tokens;
        match passes {
            true => self.tokens -= cost,
            false => self.dropped += 1,
        }
        passes
    }

    /// Packets dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
