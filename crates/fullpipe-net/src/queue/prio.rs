//! Bands in strict priority, chosen by DSCP: sch_prio.c with a FIFO in each band and one u32 filter
//! a DSCP.

use serde::{Deserialize, Serialize};

use super::discipline::{Discipline, Environment, Outcome, Parameters};
use super::fifo::Fifo;
use crate::packet::Packet;

const DSCPS: usize = 64;

/// Parameters of sch_prio. Each band has the qdisc's limit.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of FIFOs (tc: 3).
    pub bands: u8,
    /// Band of packets whose DSCP has no filter.
    pub default_band: u8,
    /// Pairs of DSCP and band; band 0 goes first.
    pub filters: Vec<(u8, u8)>,
}

impl Parameters for Params {}

/// The bands, the first served first.
#[derive(Debug)]
pub(crate) struct Prio<P> {
    bands: Vec<Fifo<P>>,
    band_of: [u8; DSCPS],
}

impl<P: Packet> Discipline<P> for Prio<P> {
    type Params = Params;

    fn new(params: &Params, environment: &Environment) -> Self {
        let last = params.bands.max(1) - 1;
        let mut band_of = [params.default_band.min(last); DSCPS];
        for &(dscp, band) in &params.filters {
            band_of[usize::from(dscp) % DSCPS] = band.min(last);
        }
        let band = || Fifo::limited(environment.limit_bytes, environment.limit_packets);
        Self {
            bands: (0..=last).map(|_| band()).collect(),
            band_of,
        }
    }

    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        let band = self.band_of[usize::from(packet.dscp()) % DSCPS];
        self.bands[usize::from(band)].enqueue(now_ns, packet, outcome);
    }

    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        self.bands
            .iter_mut()
            .find_map(|band| band.dequeue(now_ns, outcome))
    }
}

#[cfg(test)]
pub(super) mod tests;
