//! Traces of flows that plans name, which only Python reads from their files.

use std::collections::HashMap;
use std::sync::Arc;

use fullpipe_sim::Traces;
use fullpipe_workload::{Chunk, Trace, TraceFlow};

/// A trace as columns, as `_native.traffic.Trace.parts()` has them: one value a flow of when it begins (ns)
/// and how many chunks it has; one value a chunk of the pause before it (ns) and its payload.
pub(crate) type Parts = [Vec<u64>; 4];

/// Traces by the SHA-256 of their files.
pub(crate) fn of_parts(parts: HashMap<String, Parts>) -> Traces {
    let all = parts.into_iter();
    all.map(|(sha256, parts)| (sha256, Arc::new(trace(&parts))))
        .collect()
}

fn trace([starts, counts, pauses, bytes]: &Parts) -> Trace {
    let mut first_chunk = 0;
    let flows = starts.iter().zip(counts).map(|(&start_ns, &count)| {
        let flow = TraceFlow {
            start_ns,
            first_chunk,
        };
        first_chunk += count as u32;
        flow
    });
    let flows = flows.collect();
    let chunks = pauses.iter().zip(bytes);
    let chunks = chunks.map(|(&pause_ns, &bytes)| Chunk { pause_ns, bytes });
    Trace::new(flows, chunks.collect()).expect("Python wrote what it reads")
}
