//! CHOKe: a flow that fills the queue loses pairs of packets (Pan et al. 2000).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;
use crate::testing::{queue, TestPacket, FRAME_BYTES};

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    (1..20u32, 1..60u32, 0..=1_000_000u32, any::<bool>()).prop_map(
        |(min_packets, above, max_probability_ppm, ecn)| Params {
            min_packets,
            max_packets: min_packets + above,
            max_probability_ppm,
            wlog: 4,
            ecn,
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets)
}

#[test]
fn a_flow_alone_in_the_queue_loses_the_packet_that_it_meets_as_well() {
    let params = Params {
        min_packets: 5,
        max_packets: 100,
        max_probability_ppm: 0,
        wlog: 1,
        ecn: false,
    };
    let mut queue = queue(Aqm::Choke(params), None, Some(1000));
    let mut dropped = Vec::new();
    for id in 0..100 {
        queue.enqueue(0, TestPacket::new(id, 1, FRAME_BYTES), &mut dropped);
    }
    assert!(
        dropped.len() > 40 && dropped.len() % 2 == 0,
        "{}",
        dropped.len()
    );
}
