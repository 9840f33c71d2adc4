//! prio: bands in strict order, chosen by DSCP (tc-prio(8)).

use fullpipe_plan::Aqm;

use crate::packet::{queue, TestPacket};

const EF: u8 = 46;
const CS1: u8 = 8;

#[test]
fn a_lower_band_waits_until_those_above_are_empty() {
    let aqm = Aqm::Prio {
        bands: 3,
        default_band: 1,
        filters: vec![(EF, 0), (CS1, 2)],
    };
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
