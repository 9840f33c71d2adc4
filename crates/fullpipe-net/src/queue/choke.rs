//! CHOKe (Pan, Prabhakar, Psounis 2000): sch_choke.c. An arriving packet is compared with one drawn from the
//! queue; if both are of one flow, both are dropped. Else RED decides, on an average in packets.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use crate::packet::Packet;
use crate::rng::Rng;

/// Parameters of sch_choke.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Below this average nothing is dropped (tc: a third of `max_packets`).
    pub min_packets: u32,
    /// Above this average everything is (tc: a quarter of the limit).
    pub max_packets: u32,
    /// Probability at `max_packets`, in parts per million (tc: 20,000).
    pub max_probability_ppm: u32,
    /// Weight of the average, as -log2.
    pub wlog: u32,
    /// Marks packets that can carry a mark instead of dropping them.
    pub ecn: bool,
}

impl Parameters for Params {}

/// A FIFO behind CHOKe.
#[derive(Debug)]
pub(crate) struct Choke<P> {
    packets: VecDeque<P>,
    bytes: u64,
    params: Params,
    limit_packets: usize,
    /// Scaled by 2^wlog.
    average: u64,
    rng: Rng,
}

impl<P: Packet> Choke<P> {
    /// choke_match_random()
    fn draws_same_flow(&mut self, packet: &P) -> Option<usize> {
        let index = self.rng.up_to(self.packets.len().checked_sub(1)? as u64) as usize;
        (self.packets[index].flow_key() == packet.flow_key()).then_some(index)
    }

    /// RED's probability, without its count since the last drop.
    fn signals(&mut self) -> bool {
        let average = self.average >> self.params.wlog;
        let above = average.saturating_sub(u64::from(self.params.min_packets));
        let width = u64::from(self.params.max_packets - self.params.min_packets).max(1);
        let ppm = u64::from(self.params.max_probability_ppm) * above / width;
        above >= width || self.rng.up_to(999_999) < ppm
    }
}

impl<P: Packet> Discipline<P> for Choke<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            params: params.clone(),
            limit_packets: environment.most_packets(),
            average: 0,
            rng: Rng::new(environment.seed),
        }
    }

    /// choke_enqueue()
    fn enqueue(&mut self, _now_ns: u64, mut packet: P, outcome: &mut Outcome<P>) {
        self.average += self.packets.len() as u64;
        self.average -= self.average >> self.params.wlog;
        if self.average >> self.params.wlog >= u64::from(self.params.min_packets) {
            if let Some(index) = self.draws_same_flow(&packet) {
                if let Some(victim) = self.packets.remove(index) {
                    self.bytes -= u64::from(victim.wire_bytes());

                    outcome.drop(victim);
                }
                outcome.drop(packet);
                return;
            }
            if self.signals() {
                if !self.params.ecn || !packet.ecn_capable() {
                    outcome.drop(packet);
                    return;
                }
                outcome.mark(&mut packet);
            }
        }
        if self.packets.len() >= self.limit_packets {
            outcome.drop(packet);
            return;
        }
        self.bytes += u64::from(packet.wire_bytes());
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, _now_ns: u64, _outcome: &mut Outcome<P>) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
pub(super) mod tests;
