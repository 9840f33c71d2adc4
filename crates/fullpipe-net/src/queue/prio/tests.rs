//! prio: bands in strict order, chosen by DSCP (tc-prio(8)).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..5u8, 0..5u8).prop_map(|(bands, default_band)| Params {
        bands,
        default_band,
        filters: vec![(EF, 0), (CS1, 4)],
    })
}

/// The most bytes and packets that may wait, for limits of so many: each band has them.
pub(crate) fn most_waiting(params: &Params, bytes: u64, packets: u64) -> (u64, u64) {
    let bands = u64::from(params.bands);
    (bytes.saturating_mul(bands), packets.saturating_mul(bands))
}

use crate::testing::{queue, TestPacket};

const EF: u8 = 46;
const CS1: u8 = 8;

#[test]
fn a_lower_band_waits_until_those_above_are_empty() {
    let aqm = Aqm::Prio(Params {
        bands: 3,
        default_band: 1,
        filters: vec![(EF, 0), (CS1, 2)],
    });
    let mut queue = queue(aqm, None, Some(2));
    let mut dropped = Vec::new();
    for (id, dscp) in [
        (0, CS1),
        (1, 0),
        (2, EF),
        (3, 10),
        (4, EF),
        (5, CS1),
        (6, EF),
    ] {
        let mut packet = TestPacket::new(id, 1, 100);
        packet.dscp = dscp;
        queue.enqueue(0, packet, &mut dropped);
    }
    let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(0, &mut dropped))
        .map(|packet| packet.id)
        .collect();
    assert_eq!(order, [2, 4, 1, 3, 0, 5]);
    // The limit is each band's own.
    assert_eq!(dropped[0].id, 6);
}
