//! What one direction of a link can carry over time, by its plan. Must never know what it carried.

use std::sync::Arc;

use fullpipe_net::trace::{RateTrace, OPPORTUNITY_BYTES};

const OPPORTUNITY_BITS: f64 = 8.0 * OPPORTUNITY_BYTES as f64;

/// What a link can carry.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Capacity {
    /// No limit, or none that the plan tells (Wi-Fi).
    #[default]
    Unknown,
    /// A rate in bit/s from each time (s) on, in the order of time; nothing before the first.
    Rates(Vec<(f64, f64)>),
    /// Delivery opportunities (Mahimahi).
    Trace(Arc<RateTrace>),
}

impl Capacity {
    /// Bits that the link can carry from one time to another; NaN where that is not known.
    pub fn bits(&self, start_s: f64, end_s: f64) -> f64 {
        match self {
            Self::Unknown => f64::NAN,
            Self::Rates(rates) => pieces(rates)
                .map(|(from_s, until_s, rate_bps)| {
                    let overlap_s = until_s.min(end_s) - from_s.max(start_s);
                    rate_bps * overlap_s.max(0.0)
                })
                .fold(0.0, |sum, bits| sum + bits),
            Self::Trace(trace) => {
                let count =
                    opportunities_before(trace, end_s) - opportunities_before(trace, start_s);
                count as f64 * OPPORTUNITY_BITS
            }
        }
    }

    /// Whether its rate is set again between two times. A trace varies by nature.
    pub(crate) fn changes_in(&self, start_s: f64, end_s: f64) -> bool {
        let is_within = |at_s: f64| at_s > start_s && at_s < end_s;
        matches!(self, Self::Rates(rates) if rates.iter().any(|&(at_s, _)| is_within(at_s)))
    }

    /// How long the link takes from `at_s` on to carry so many bytes. Infinite where its rate stays 0,
    /// NaN where what it carries is not known.
    pub fn drain_s(&self, at_s: f64, bytes: f64) -> f64 {
        match self {
            Self::Unknown => f64::NAN,
            _ if bytes <= 0.0 => 0.0,
            Self::Rates(rates) => drain_by_rates(rates, at_s, 8.0 * bytes),
            Self::Trace(trace) => {
                let needed = (bytes / OPPORTUNITY_BYTES as f64).ceil() as u64;
                let last = opportunities_before(trace, at_s) + needed - 1;
                let count = trace.times_ms.len() as u64;
                let within = (last % count) as usize;
                let at_ms = last / count * trace.period_ms() + u64::from(trace.times_ms[within]);
                at_ms as f64 / 1e3 - at_s
            }
        }
    }
}

fn drain_by_rates(rates: &[(f64, f64)], at_s: f64, bits: f64) -> f64 {
    let mut left = bits;
    for (from_s, until_s, rate_bps) in pieces(rates) {
        if until_s <= at_s || rate_bps == 0.0 {
            continue;
        }
        let begin_s = from_s.max(at_s);
        let most = rate_bps * (until_s - begin_s);
        if left <= most {
            return begin_s - at_s + left / rate_bps;
        }
        left -= most;
    }
    f64::INFINITY
}

/// Start, end and rate of each piece.
fn pieces(rates: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    let ends = rates[1..].iter().map(|&(from_s, _)| from_s);
    let ends = ends.chain([f64::INFINITY]);
    rates
        .iter()
        .zip(ends)
        .map(|(&(from_s, rate), until_s)| (from_s, until_s, rate))
}

/// How many opportunities there are before a time. One at that time does not count: a sample is taken
/// before the packets that leave at its time.
fn opportunities_before(trace: &RateTrace, at_s: f64) -> u64 {
    let at_ms = (at_s * 1e3 - ROUNDING_MS).ceil() as u64; // negative times become 0
    let Some(last_ms) = at_ms.checked_sub(1) else {
        return 0;
    };
    let within = last_ms % trace.period_ms();
    let rounds = last_ms / trace.period_ms() * trace.times_ms.len() as u64;
    rounds
        + trace
            .times_ms
            .partition_point(|&ms| u64::from(ms) <= within) as u64
}

/// Times come out of divisions: 4.1 s is 4099.999999999999 ms, 1.1 s is 1100.0000000000002 ms.
const ROUNDING_MS: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s (1 MB a second), none from 2 s to 3 s, then 16 Mbit/s.
    fn steps() -> Capacity {
        Capacity::Rates(vec![(0.0, 8e6), (2.0, 0.0), (3.0, 16e6)])
    }

    #[test]
    fn capacity_is_the_integral_of_the_rate() {
        assert_eq!(steps().bits(1.0, 4.0), 8e6 + 0.0 + 16e6);
        assert_eq!(steps().bits(2.0, 3.0), 0.0);
        assert_eq!(steps().bits(-1.0, 0.5), 4e6);
        assert!(Capacity::Unknown.bits(0.0, 1.0).is_nan());
    }

    #[test]
    fn a_backlog_drains_at_the_rates_that_follow() {
        // 1 MB is left when the outage begins: it waits a second, and takes half a second.
        assert_eq!(steps().drain_s(1.0, 2e6), 1.0 + 1.0 + 0.5);
        assert_eq!(steps().drain_s(2.5, 1e6), 0.5 + 0.5);
        assert_eq!(steps().drain_s(5.0, 1e6), 0.5);
        assert_eq!(steps().drain_s(2.5, 0.0), 0.0);
        let ends = Capacity::Rates(vec![(0.0, 8e6), (1.0, 0.0)]);
        assert_eq!(ends.drain_s(0.5, 1e6), f64::INFINITY);
        assert_eq!(ends.drain_s(0.5, 4e5), 0.4);
        assert!(Capacity::Unknown.drain_s(0.0, 1.0).is_nan());
    }

    #[test]
    fn a_trace_carries_a_packet_at_each_opportunity_and_repeats() {
        let times_ms = vec![2, 5, 5, 10];
        let trace = Capacity::Trace(Arc::new(RateTrace { times_ms }));
        let packets = |from_s, until_s| trace.bits(from_s, until_s) / 8.0 / 1514.0;
        assert_eq!(packets(0.0, 0.0101), 4.0);
        assert_eq!(packets(0.002, 0.005), 1.0);
        assert_eq!(packets(0.0, 1.0001), 400.0);
        assert_eq!(packets(0.010, 0.0121), 2.0);
        // At 6 ms two opportunities of 5 ms have passed: the next are at 10, 12 and 15 ms.
        let close = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(close(trace.drain_s(0.006, 1514.0), 0.004));
        assert!(close(trace.drain_s(0.006, 1515.0), 0.006));
        assert!(close(trace.drain_s(0.006, 4.0 * 1514.0), 0.009));
    }

    #[test]
    fn a_sample_is_taken_before_the_packets_that_leave_at_its_time() {
        let times_ms = vec![2, 5, 5, 10];
        let trace = Capacity::Trace(Arc::new(RateTrace { times_ms }));
        let packets = |from_s, until_s| trace.bits(from_s, until_s) / 8.0 / 1514.0;
        assert_eq!(packets(0.0, 0.005), 1.0);
        assert_eq!(packets(0.005, 0.010), 2.0);
        assert_eq!(packets(0.0, 0.0), 0.0);
        assert_eq!(trace.drain_s(0.005, 2.0 * 1514.0), 0.0);
        // Of every time that is a multiple of 0.1 s, however it is rounded.
        for tenths in 1..1000 {
            let at_s = f64::from(tenths) * 0.1;
            assert_eq!(packets(0.0, at_s), f64::from(tenths) * 40.0 - 1.0);
        }
    }
}
