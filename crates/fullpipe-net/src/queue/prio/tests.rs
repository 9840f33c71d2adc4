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

use crate::testing::{queue, Hand, TestPacket};

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

#[test]
fn bands_that_do_not_exist_are_the_last_one() {
    let order = |bands, default_band, filters: &[(u8, u8)]| {
        let mut hand = Hand::new(Aqm::Prio(Params {
            bands,
            default_band,
            filters: filters.to_vec(),
        }));
        for (id, dscp) in (0..).zip([0, CS1, EF, 63]) {
            let mut packet = TestPacket::new(id, 1, 100);
            packet.dscp = dscp;
            hand.offer(0, packet, 1);
        }
        hand.ids(0, 9)
    };
    assert_eq!(order(3, 9, &[(CS1, 2), (EF, 1), (63, 0)]), [3, 2, 0, 1]);
    assert_eq!(order(3, 0, &[(CS1, 7), (EF, 2), (63, 1)]), [0, 3, 1, 2]);
    assert_eq!(order(2, 1, &[(CS1, 0), (EF, 1), (63, 0)]), [1, 3, 0, 2]);
    assert_eq!(order(0, 1, &[(CS1, 0)]), [0, 1, 2, 3]);
}
