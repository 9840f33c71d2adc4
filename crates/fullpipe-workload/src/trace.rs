//! Flows of a trace: when each starts, the chunks that it sends, and the pauses before them.

use std::ops::Range;

use fullpipe_plan::TrafficSource;

/// Payload that is sent without a pause, and the pause before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Pause of the application before it; 0 for the first chunk of a flow.
    pub pause_ns: u64,
    /// Payload.
    pub bytes: u64,
}

/// One flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFlow {
    /// When it starts, since the start of the trace.
    pub start_ns: u64,
    /// Position of its first chunk; its chunks end where the next flow's begin.
    pub first_chunk: u32,
}

/// Flows in the order of their starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    flows: Vec<TraceFlow>,
    chunks: Vec<Chunk>,
}

impl Trace {
    /// A trace; an error if flows are out of order or without chunks, or chunks are empty.
    pub fn new(flows: Vec<TraceFlow>, chunks: Vec<Chunk>) -> Result<Self, String> {
        let trace = Self { flows, chunks };
        if trace.flows.first().is_none_or(|flow| flow.first_chunk != 0) {
            return Err("trace: no flows".to_owned());
        }
        let in_order = trace.flows.windows(2).all(|pair| {
            pair[0].start_ns <= pair[1].start_ns && pair[0].first_chunk < pair[1].first_chunk
        });
        let last = trace
            .flows
            .last()
            .map_or(0, |flow| flow.first_chunk as usize);
        let sound = last < trace.chunks.len() && trace.chunks.iter().all(|chunk| chunk.bytes > 0);
        match in_order && sound {
            true => Ok(trace),
            false => Err("trace: flows out of order, or without bytes".to_owned()),
        }
    }

    /// The trace of a list of flows; `None` if they have no pauses.
    pub fn of_list(source: &TrafficSource) -> Result<Option<Self>, String> {
        let TrafficSource::Listed { flows, chunks } = source else {
            return Ok(None);
        };
        if chunks.is_empty() {
            return Ok(None);
        }
        let whole = |of: &[(u64, u64)]| of.iter().map(|chunk| chunk.1).sum::<u64>();
        let mut pairs = flows.iter().zip(chunks);
        if flows.len() != chunks.len() || pairs.any(|(flow, of)| flow.1 != whole(of)) {
            return Err("flows: chunks that are not theirs".to_owned());
        }
        let mut first_chunk = 0;
        let starts = flows.iter().zip(chunks).map(|(&(start_ns, _), of)| {
            let flow = TraceFlow {
                start_ns,
                first_chunk,
            };
            first_chunk += of.len() as u32;
            flow
        });
        let starts = starts.collect();
        let chunks = chunks.iter().flatten();
        let chunks = chunks.map(|&(pause_ns, bytes)| Chunk { pause_ns, bytes });
        Self::new(starts, chunks.collect()).map(Some)
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// When a flow starts.
    pub fn start_ns(&self, flow: usize) -> u64 {
        self.flows[flow].start_ns
    }

    /// Positions of a flow's chunks.
    pub fn chunks(&self, flow: usize) -> Range<usize> {
        let end = self
            .flows
            .get(flow + 1)
            .map(|next| next.first_chunk as usize);
        self.flows[flow].first_chunk as usize..end.unwrap_or(self.chunks.len())
    }

    /// A chunk by its position.
    pub fn chunk(&self, position: usize) -> Chunk {
        self.chunks[position]
    }

    /// Payload of a flow.
    pub fn bytes(&self, flow: usize) -> u64 {
        let chunks = &self.chunks[self.chunks(flow)];
        chunks.iter().map(|chunk| chunk.bytes).sum()
    }
}
