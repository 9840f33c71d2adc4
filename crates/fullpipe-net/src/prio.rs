//! Bands in strict priority, chosen by DSCP: sch_prio.c with a FIFO in each band and one u32 filter
//! a DSCP.

use crate::discipline::{Discipline, Outcome};
use crate::fifo::Fifo;
use crate::Packet;

const DSCPS: usize = 64;

/// The bands, the first served first.
#[derive(Debug)]
pub(crate) struct Prio<P> {
    bands: Vec<Fifo<P>>,
    band_of: [u8; DSCPS],
}

impl<P: Packet> Prio<P> {
    /// `filters` are pairs of DSCP and band; all other packets go to `default_band`.
    pub(crate) fn new(
        bands: u8,
        default_band: u8,
        filters: &[(u8, u8)],
        limit_bytes: Option<u64>,
        limit_packets: Option<u32>,
    ) -> Self {
        let last = bands.max(1) - 1;
        let mut band_of = [default_band.min(last); DSCPS];
        for &(dscp, band) in filters {
            band_of[usize::from(dscp) % DSCPS] = band.min(last);
        }
        Self {
            bands: (0..=last)
                .map(|_| Fifo::new(limit_bytes, limit_packets))
                .collect(),
            band_of,
        }
    }
}

impl<P: Packet> Discipline<P> for Prio<P> {
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>) {
        let band = self.band_of[usize::from(packet.dscp()) % DSCPS];
        self.bands[usize::from(band)].enqueue(now_ns, packet, outcome);
    }

    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        self.bands
            .iter_mut()
            .find_map(|band| band.dequeue(now_ns, outcome))
    }

    fn bytes(&self) -> u64 {
        self.bands.iter().map(Fifo::bytes).sum()
    }

    fn packets(&self) -> usize {
        self.bands.iter().map(Fifo::packets).sum()
    }
}
