//! The bottleneck's rate, as Linux's htb shapes it.
//!
//! A packet passes at once while tokens are not negative, and its bytes are charged afterwards
//! (sch_htb.c, htb_charge_class()): an idle shaper adds no serialization delay, and gathers up to `burst`
//! bytes of credit. The testbeds of the papers use htb, so base RTTs agree with theirs. Fractions of a ns
//! are carried over, so that no rate drifts.

use super::framing::Overhead;

const NS_PER_S: u64 = 1_000_000_000;

/// A token bucket that charges after sending.
#[derive(Debug)]
pub struct Shaper {
    rate_bps: u64,
    burst_ns: u64,
    /// When the bucket was, or will be, full: `burst_ns` after tokens are at zero.
    full_at_ns: u64,
    /// Remainder of the divisions so far, in bit * ns / s.
    carry: u64,
    overhead: Option<Overhead>,
    last: Cost,
}

/// The time of a packet: whole ns, and the remainder of the division. Kept, because most packets are as long
/// as the one before.
#[derive(Debug, Default)]
struct Cost {
    wire_bytes: u32,
    ns: u64,
    rest: u64,
}

impl Shaper {
    /// A shaper of `rate_bps` that saves at most `burst_bytes` while idle. Its bucket is full at first
    /// (htb_change_class()).
    pub fn new(rate_bps: u64, burst_bytes: u32) -> Self {
        let burst_ns = u64::from(burst_bytes) * 8 * NS_PER_S / rate_bps;
        Self {
            rate_bps,
            burst_ns,
            full_at_ns: 0,
            carry: 0,
            overhead: None,
            last: Cost::default(),
        }
    }

    /// The same shaper of a link layer that adds to packets (psched_l2t_ns()).
    #[must_use]
    pub fn with_overhead(self, overhead: Option<Overhead>) -> Self {
        Self { overhead, ..self }
    }

    /// Changes the rate. Debt stays (htb_change_class()).
    pub fn set_rate(&mut self, rate_bps: u64, burst_bytes: u32) {
        let burst_ns = u64::from(burst_bytes) * 8 * NS_PER_S / rate_bps;
        self.full_at_ns = (self.full_at_ns + burst_ns).saturating_sub(self.burst_ns);
        self.rate_bps = rate_bps;
        self.burst_ns = burst_ns;
        self.carry = 0;
        self.last = Cost::default();
    }

    /// When a packet may pass: not after now if one may pass now.
    #[inline]
    pub fn ready_ns(&self) -> u64 {
        self.full_at_ns.saturating_sub(self.burst_ns)
    }

    /// Charges a packet that passes at `now_ns`.
    #[inline(always)] // at every packet
    pub fn charge(&mut self, now_ns: u64, wire_bytes: u32) {
        if self.full_at_ns < now_ns {
            self.full_at_ns = now_ns;
            self.carry = 0;
        }
        if self.last.wire_bytes != wire_bytes {
            let bytes = match &self.overhead {
                None => wire_bytes,
                Some(overhead) => overhead.on_link(wire_bytes),
            };
            let cost = u64::from(bytes) * 8 * NS_PER_S;
            self.last = Cost {
                wire_bytes,
                ns: cost / self.rate_bps,
                rest: cost % self.rate_bps,
            };
        }
        self.full_at_ns += self.last.ns;
        self.carry += self.last.rest;
        if self.carry >= self.rate_bps {
            self.carry -= self.rate_bps;
            self.full_at_ns += 1;
        }
    }
}

#[cfg(test)]
mod tests;
