//! Arrivals of flows: one generator per traffic group.

use std::ops::Range;
use std::sync::Arc;

use fullpipe_net::Rng;
use fullpipe_plan::{Configuration, Intervals, Sizes, TrafficSource};

use crate::draw::{exponential, lognormal};
use crate::sizes;
use crate::trace::Trace;

/// A flow that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFlow {
    /// When, since the start of the group.
    pub at_ns: u64,
    /// Payload that it sends.
    pub bytes: u64,
    /// Its chunks in the trace, if it pauses between them.
    pub chunks: Option<Range<usize>>,
}

/// The flows of a group, in the order of arrival.
pub struct Flows {
    rng: Rng,
    /// Time of the last arrival, in ps so that rounding errors of small intervals do not add up.
    at_ps: u128,
    kind: Kind,
}

enum Kind {
    /// A list of arrival times and sizes.
    Listed(std::vec::IntoIter<(u64, u64)>),
    Drawn(Intervals, f64, Sizes),
    /// A trace, its next flow, and whether flows pause between chunks.
    Trace(Arc<Trace>, usize, bool),
    /// A trace to draw from, and how many flows are left.
    Synthetic(Arc<Trace>, usize),
}

impl Flows {
    /// The flows of a source. `trace` holds the flows of its file, its generator, or its list with pauses.
    pub fn new(
        source: &TrafficSource,
        trace: Option<Arc<Trace>>,
        seed: u64,
    ) -> Result<Self, String> {
        let of_trace = |configuration: &Configuration| {
            let trace = trace.ok_or("trace: its flows were not brought along")?;
            let count = trace.len();
            Ok::<_, String>(match configuration {
                Configuration::Replay => Kind::Trace(trace, 0, true),
                Configuration::Collapsed => Kind::Trace(trace, 0, false),
                Configuration::Synthetic => Kind::Synthetic(trace, count),
            })
        };
        let kind = match source {
            TrafficSource::Drawn {
                arrivals,
                mean_interval_ps,
                sizes,
            } => {
                sizes::check(sizes)?;
                if *mean_interval_ps == 0 {
                    return Err("mean_interval_ps: must be above 0".to_owned());
                }
                Kind::Drawn(arrivals.clone(), *mean_interval_ps as f64, sizes.clone())
            }
            TrafficSource::Listed { chunks, .. } if !chunks.is_empty() => {
                of_trace(&Configuration::Replay)?
            }
            TrafficSource::Listed { flows, .. } => {
                let in_order = flows.windows(2).all(|pair| pair[0].0 <= pair[1].0);
                if !in_order || flows.iter().any(|&(_, bytes)| bytes == 0) {
                    return Err("flows: out of order, or without bytes".to_owned());
                }
                Kind::Listed(flows.clone().into_iter())
            }
            TrafficSource::File { configuration, .. }
            | TrafficSource::Backbone { configuration, .. } => of_trace(configuration)?,
        };
        Ok(Self {
            rng: Rng::new(seed),
            at_ps: 0,
            kind,
        })
    }
}

impl Iterator for Flows {
    type Item = NewFlow;

    fn next(&mut self) -> Option<NewFlow> {
        let (rng, at_ps) = (&mut self.rng, &mut self.at_ps);
        let (bytes, chunks) = match &mut self.kind {
            Kind::Listed(flows) => {
                let (at_ns, bytes) = flows.next()?;
                *at_ps = u128::from(at_ns) * 1000;
                (bytes, None)
            }
            Kind::Drawn(intervals, mean_ps, sizes) => {
                let factor = match intervals {
                    Intervals::Poisson => exponential(rng),
                    Intervals::Lognormal { sigma_milli } => {
                        lognormal(rng, f64::from(*sigma_milli) / 1000.0)
                    }
                };
                *at_ps += (*mean_ps * factor) as u128;
                (sizes::draw(sizes, rng), None)
            }
            Kind::Trace(trace, next, pauses) => {
                let flow = *next;
                if flow == trace.len() {
                    return None;
                }
                *next += 1;
                *at_ps = u128::from(trace.start_ns(flow)) * 1000;
                let chunks = trace.chunks(flow);
                let several = *pauses && chunks.len() > 1;
                (trace.bytes(flow), several.then_some(chunks))
            }
            Kind::Synthetic(trace, left) => {
                *left = left.checked_sub(1)?;
                let last = trace.len() as u64 - 1;
                // The interval before the first flow counts as one too.
                let flow = rng.up_to(last) as usize;
                let before_ns = if flow == 0 {
                    0
                } else {
                    trace.start_ns(flow - 1)
                };
                *at_ps += u128::from(trace.start_ns(flow) - before_ns) * 1000;
                (trace.bytes(rng.up_to(last) as usize), None)
            }
        };
        Some(NewFlow {
            at_ns: u64::try_from(*at_ps / 1000).unwrap_or(u64::MAX),
            bytes,
            chunks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Chunk, TraceFlow};

    fn drawn(arrivals: Intervals) -> Vec<NewFlow> {
        let source = TrafficSource::Drawn {
            arrivals,
            mean_interval_ps: 2_000_000,
            sizes: Sizes::Fixed { bytes: 7 },
        };
        Flows::new(&source, None, 5)
            .unwrap()
            .take(200_000)
            .collect()
    }

    #[test]
    fn intervals_have_the_mean_and_the_variation_that_their_shapes_say() {
        let sigma = 1.0f64;
        // Squared coefficients of variation: 1, and exp(sigma^2) - 1.
        for (shape, wanted) in [
            (Intervals::Poisson, 1.0),
            (
                Intervals::Lognormal { sigma_milli: 1000 },
                (sigma * sigma).exp() - 1.0,
            ),
        ] {
            let times: Vec<f64> = drawn(shape).iter().map(|flow| flow.at_ns as f64).collect();
            let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean / 2000.0 - 1.0).abs() < 0.02, "{mean}");
            assert!(
                (variance / mean / mean / wanted - 1.0).abs() < 0.1,
                "{variance}"
            );
        }
    }

    #[test]
    fn a_list_of_drawn_flows_is_the_same_flows() {
        let flows: Vec<NewFlow> = drawn(Intervals::Poisson).drain(..100).collect();
        let listed = |flows: Vec<(u64, u64)>| {
            let chunks = Vec::new();
            let source = TrafficSource::Listed { flows, chunks };
            Flows::new(&source, None, 1).map(Iterator::collect::<Vec<_>>)
        };
        let pairs = flows.iter().map(|flow| (flow.at_ns, flow.bytes));
        assert_eq!(listed(pairs.collect()), Ok(flows));
        assert_eq!(listed(Vec::new()), Ok(Vec::new()));
        assert!(listed(vec![(2, 1), (1, 1)]).is_err());
        assert!(listed(vec![(1, 0)]).is_err());
    }

    #[test]
    fn a_trace_is_replayed_collapsed_or_drawn_anew() {
        let flow = |start_ns, first_chunk| TraceFlow {
            start_ns,
            first_chunk,
        };
        let chunk = |pause_ns, bytes| Chunk { pause_ns, bytes };
        let chunks = vec![chunk(0, 10), chunk(200_000_000, 20), chunk(0, 5)];
        let trace = Arc::new(Trace::new(vec![flow(100, 0), flow(400, 2)], chunks).unwrap());
        let made = |configuration| {
            let source = TrafficSource::Backbone {
                seed: 1,
                duration_ns: 1,
                rate_bps: 1,
                configuration,
            };
            let flows = Flows::new(&source, Some(trace.clone()), 3).unwrap();
            flows.collect::<Vec<_>>()
        };
        let flow = |at_ns, bytes, chunks| NewFlow {
            at_ns,
            bytes,
            chunks,
        };
        assert_eq!(
            made(Configuration::Replay),
            [flow(100, 30, Some(0..2)), flow(400, 5, None)]
        );
        assert_eq!(
            made(Configuration::Collapsed),
            [flow(100, 30, None), flow(400, 5, None)]
        );
        let synthetic = made(Configuration::Synthetic);
        assert_eq!(synthetic.len(), 2);
        for flow in &synthetic {
            assert!([5, 30].contains(&flow.bytes) && flow.chunks.is_none());
        }
    }
}
