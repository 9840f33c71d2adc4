//! Per-flow fair queueing at a bottleneck: sch_fq.c's deficit round robin.
//!
//! Its pacing belongs to a sender's own host, where the socket's rate is known; a router's fq sees
//! no departure times, so here flows are only served in turn.

use std::collections::VecDeque;

use crate::Packet;

#[derive(Debug)]
struct Flow<P> {
    key: u32,
    packets: VecDeque<P>,
    credit: i64,
    listed: bool,
}

/// The flows and their two lists.
#[derive(Debug)]
pub(crate) struct Fq<P> {
    flows: Vec<Flow<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    flow_limit: usize,
    limit_packets: usize,
    bytes: u64,
    packets: usize,
}

impl<P: Packet> Fq<P> {
    pub(crate) fn new(quantum_bytes: u32, flow_limit: u32, limit_packets: Option<u32>) -> Self {
        Self {
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum_bytes),
            flow_limit: flow_limit as usize,
            limit_packets: limit_packets.map_or(usize::MAX, |limit| limit as usize),
            bytes: 0,
            packets: 0,
        }
    }

    /// A packet beyond the qdisc's or its flow's limit is given back (fq_enqueue()).
    pub(crate) fn enqueue(&mut self, packet: P) -> Result<(), P> {
        if self.packets >= self.limit_packets {
            return Err(packet);
        }
        let key = packet.flow_key();
        let index = self
            .flows
            .iter()
            .position(|flow| flow.key == key)
            .unwrap_or_else(|| {
                self.flows.push(Flow {
                    key,
                    packets: VecDeque::new(),
                    credit: 0,
                    listed: false,
                });
                self.flows.len() - 1
            });
        let flow = &mut self.flows[index];
        if flow.packets.len() >= self.flow_limit {
            return Err(packet);
        }
        self.bytes += u64::from(packet.wire_bytes());
        self.packets += 1;
        flow.packets.push_back(packet);
        if !flow.listed {
            flow.listed = true;
            flow.credit = flow.credit.max(self.quantum);
            self.new.push_back(index);
        }
        Ok(())
    }

    pub(crate) fn dequeue(&mut self) -> Option<P> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let Some(packet) = flow.packets.pop_front() else {
                list.pop_front();
                if from_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            flow.credit -= i64::from(packet.wire_bytes());
            self.bytes -= u64::from(packet.wire_bytes());
            self.packets -= 1;
            return Some(packet);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }
}
