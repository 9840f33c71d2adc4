//! Flows like those of a backbone link: they match what bless2025 (section VI) publishes about MAWI's
//! capture of 10 June 2020. 10 % of the flows are above 18.2 kB, 90 % of the bytes are in flows above
//! 6.4 MB and half of them in flows above 280.7 MB. The rest is assumed
//! (docs/reference/applications.md): the shape of the distribution between these points, arrivals in
//! bursts, and pauses.

use std::collections::BinaryHeap;

use fullpipe_net::Rng;

use crate::draw::{exponential, lognormal, uniform};
use crate::trace::{Chunk, Trace, TraceFlow};

/// The published 90th percentile of sizes. Below it sizes are log-uniform from `LEAST_BYTES`.
const P90_BYTES: f64 = 18_200.0;
const LEAST_BYTES: f64 = 40.0;
/// Above it sizes follow a bounded Pareto distribution. Its two constants solve two equations: the shares of
/// bytes above 6.4 and 280.7 MB are 0.9 and 0.5. The mean is `MEAN_BYTES`.
const TAIL_SHAPE: f64 = 0.572_733_549_4;
const LARGEST_BYTES: f64 = 1.424_155_248_6e9;
const MEAN_BYTES: f64 = 301_411.204_6;
/// Mean number of flows in a burst, and their mean distance.
const BURST_FLOWS: f64 = 5.0;
const WITHIN_BURST_NS: f64 = 100e6;
/// A flow has about (size / P90_BYTES)^0.4 chunks, and at most this many.
const CHUNK_EXPONENT: f64 = 0.4;
const MAX_CHUNKS: f64 = 200.0;
/// bless2025's threshold of a pause, by how much pauses exceed it on average, and their maximum.
const LEAST_PAUSE_NS: f64 = 100e6;
const PAUSE_NS: f64 = 400e6;
const PAUSE_SIGMA: f64 = 1.0;
const LONGEST_PAUSE_NS: f64 = 10e9;
/// The fastest flow of the capture: none starts too late to end within it at this rate.
const FLOW_BPS: f64 = 1e9;

/// Integral of the sizes from quantile 0 to this one, in bytes per flow.
fn bytes_up_to(quantile: f64) -> f64 {
    // LEAST_BYTES * ratio^(q / 0.9) up to 0.9.
    let ratio = P90_BYTES / LEAST_BYTES;
    let body =
        LEAST_BYTES * 0.9 / libm::log(ratio) * (libm::pow(ratio, quantile.min(0.9) / 0.9) - 1.0);
    if quantile <= 0.9 {
        return body;
    }
    // P90_BYTES * rest^(-1 / shape), where rest falls from 1 to that of the largest size.
    let cut = 1.0 - libm::pow(P90_BYTES / LARGEST_BYTES, TAIL_SHAPE);
    let rest = 1.0 - (quantile - 0.9) / 0.1 * cut;
    let power = 1.0 - 1.0 / TAIL_SHAPE;
    body + 0.1 * P90_BYTES / cut * (1.0 - libm::pow(rest, power)) / power
}

/// Mean size in one of `count` strata of equal probability. Unlike midpoints, the means of all strata add up
/// to the distribution's mean.
fn stratum_bytes(rank: usize, count: usize) -> f64 {
    let at = |rank: usize| bytes_up_to(rank as f64 / count as f64);
    (at(rank + 1) - at(rank)) * count as f64
}

/// Flows over `duration_ns` with a mean of `rate_bps` of payload. Sizes are the means of as
/// many strata of the distribution, in a random order, so that rate and published shares hold in every
/// trace. An error if there are no flows, or more than 16 million.
pub fn backbone(seed: u64, duration_ns: u64, rate_bps: u64) -> Result<Trace, String> {
    let wanted_bytes = rate_bps as f64 / 8e9 * duration_ns as f64;
    let count = libm::round(wanted_bytes / MEAN_BYTES);
    if !(1.0..=16e6).contains(&count) {
        return Err(format!(
            "backbone: {count} flows of {MEAN_BYTES} bytes on average; from 1 to 16 million"
        ));
    }
    let count = count as usize;
    let mut rng = Rng::new(seed);
    let mut sizes: Vec<u64> = (0..count)
        .map(|rank| stratum_bytes(rank, count) as u64)
        .collect();
    for last in (1..count).rev() {
        sizes.swap(last, rng.up_to(last as u64) as usize);
    }
    let starts = starts_ns(&mut rng, count, duration_ns as f64);
    let mut flows = Vec::with_capacity(count);
    for (bytes, start) in sizes.into_iter().zip(starts) {
        let chunks = chunks(&mut rng, bytes);
        let pauses: u64 = chunks.iter().map(|chunk| chunk.pause_ns).sum();
        let least_ns = pauses as f64 + bytes as f64 * 8e9 / FLOW_BPS;
        // A flow that would end too late starts at a random time before.
        let latest = duration_ns as f64 - least_ns;
        let start = if start > latest {
            uniform(&mut rng) * latest.max(0.0)
        } else {
            start
        };
        flows.push((start as u64, chunks));
    }
    flows.sort_by_key(|&(start_ns, _)| start_ns);
    let mut all = Vec::new();
    let mut made = Vec::with_capacity(count);
    for (start_ns, chunks) in flows {
        made.push(TraceFlow {
            start_ns,
            first_chunk: all.len() as u32,
        });
        all.extend(chunks);
    }
    Trace::new(made, all)
}

/// Start times of `count` flows: bursts start at random times, and the flows of a burst follow one another.
fn starts_ns(rng: &mut Rng, count: usize, duration_ns: f64) -> Vec<f64> {
    let mut starts = Vec::with_capacity(count);
    while starts.len() < count {
        let mut at = uniform(rng) * duration_ns;
        loop {
            starts.push(at);
            at += exponential(rng) * WITHIN_BURST_NS;
            let ends = uniform(rng) * BURST_FLOWS < 1.0;
            if ends || at >= duration_ns || starts.len() == count {
                break;
            }
        }
    }
    starts
}

fn chunks(rng: &mut Rng, bytes: u64) -> Vec<Chunk> {
    let most = libm::pow(bytes as f64 / P90_BYTES, CHUNK_EXPONENT).min(MAX_CHUNKS);
    let count = 1 + (2.0 * uniform(rng) * (most - 1.0).max(0.0)) as u64;
    // Cut at random positions, so lengths are about exponential.
    let mut cuts: BinaryHeap<u64> = (1..count).map(|_| rng.up_to(bytes)).collect();
    cuts.push(bytes);
    let mut cuts = cuts.into_sorted_vec();
    cuts.dedup();
    cuts.retain(|&cut| cut > 0);
    let mut from = 0;
    cuts.into_iter()
        .map(|cut| {
            let own = LEAST_PAUSE_NS + PAUSE_NS * lognormal(rng, PAUSE_SIGMA);
            let pause_ns = if from == 0 {
                0.0
            } else {
                own.min(LONGEST_PAUSE_NS)
            };
            let chunk = Chunk {
                pause_ns: pause_ns as u64,
                bytes: cut - from,
            };
            from = cut;
            chunk
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_traces_have_the_rate_and_the_mean_of_the_distribution() {
        // The mean of a bounded Pareto distribution, and that of log-uniform sizes (textbooks).
        let (low, high, shape) = (P90_BYTES, LARGEST_BYTES, TAIL_SHAPE);
        let tail = low.powf(shape) / (1.0 - (low / high).powf(shape)) * shape / (1.0 - shape)
            * (high.powf(1.0 - shape) - low.powf(1.0 - shape));
        let body = (P90_BYTES - LEAST_BYTES) / (P90_BYTES / LEAST_BYTES).ln();
        let mean = 0.9 * body + 0.1 * tail;
        assert!((mean / MEAN_BYTES - 1.0).abs() < 1e-6, "{mean}");
        for seconds in [5, 20, 60, 300] {
            let trace = backbone(3, seconds * 1_000_000_000, 1_250_000_000).unwrap();
            let total: u64 = (0..trace.len()).map(|flow| trace.bytes(flow)).sum();
            let found = total as f64 / trace.len() as f64;
            assert!(
                (found / mean - 1.0).abs() < 1e-4,
                "{seconds} s: {found} against {mean}"
            );
            let rate_bps = total as f64 * 8.0 / seconds as f64;
            assert!(
                (rate_bps / 1.25e9 - 1.0).abs() < 1e-3,
                "{seconds} s: {rate_bps}"
            );
        }
    }

    #[test]
    fn a_backbones_flows_meet_the_published_shares() {
        let second = 1_000_000_000;
        let trace = backbone(1, 900 * second, 1_250_000_000).unwrap();
        let sizes: Vec<u64> = (0..trace.len()).map(|flow| trace.bytes(flow)).collect();
        let total: u64 = sizes.iter().sum();
        let above = |bound: u64| sizes.iter().filter(move |&&bytes| bytes > bound);
        let flows = above(18_200).count() as f64 / sizes.len() as f64;
        assert!((flows - 0.1).abs() < 1e-4, "{flows}");
        for (bound, wanted) in [(6_400_000, 0.9), (280_700_000, 0.5)] {
            let share = above(bound).sum::<u64>() as f64 / total as f64;
            assert!((share - wanted).abs() < 0.005, "{share}");
        }
        let rate_bps = total as f64 * 8.0 / 900.0;
        assert!((rate_bps / 1.25e9 - 1.0).abs() < 0.005, "{rate_bps}");
        assert!(trace.start_ns(trace.len() - 1) < 900 * second);
        for flow in 0..trace.len() {
            let first = trace.chunks(flow).start;
            let pauses = trace.chunks(flow).map(|chunk| trace.chunk(chunk).pause_ns);
            for (position, pause_ns) in (first..).zip(pauses) {
                assert_eq!(pause_ns >= 100_000_000, position > first);
            }
        }
        assert_eq!(trace, backbone(1, 900 * second, 1_250_000_000).unwrap());
    }
}
