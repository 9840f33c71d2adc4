//! FQ-PIE: fair shares, and a drop probability for each flow (sch_fq_pie.c).

use proptest::prelude::*;

use super::Params;
use crate::queue::Aqm;

/// Parameters of all kinds.
pub(crate) fn any_params() -> impl Strategy<Value = Params> {
    let times = 1..30_000_000u64;
    (times, 0..33u32, 0..33u32, any::<[bool; 3]>(), 1..9u32).prop_map(
        |(target_ns, alpha, beta, flags, flows)| {
            let [byte_mode, rate_estimator, ecn] = flags;
            Params {
                target_ns,
                update_ns: 15 * MS,
                alpha,
                beta,
                byte_mode,
                rate_estimator,
                ecn,
                ecn_percent: 10,
                quantum_bytes: FRAME_BYTES,
                flows,
            }
        },
    )
}

/// The most bytes and packets that may wait, for limits of so many.
pub(crate) fn most_waiting(_: &Params, _: u64, packets: u64) -> (u64, u64) {
    (u64::MAX, packets)
}

use crate::testing::{queue, TestPacket, FRAME_BYTES, MS};

#[test]
fn only_the_flow_that_overloads_its_queue_is_dropped_from_and_the_others_get_their_share() {
    let aqm = Aqm::FqPie(Params {
        target_ns: 15 * MS,
        update_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        byte_mode: false,
        rate_estimator: false,
        ecn: false,
        ecn_percent: 10,
        quantum_bytes: FRAME_BYTES,
        flows: 1024,
    });
    let mut queue = queue(aqm, None, Some(10_240));
    let (mut dropped, mut sent) = (Vec::new(), [0u32; 2]);
    // One packet leaves a ms. Flow 0 sends one in three ms, flow 1 three in two.
    let mut id = 0;
    for ms in 0..60_000u64 {
        let offers = [u64::from(ms % 3 == 0), 1 + ms % 2];
        for (flow, count) in offers.into_iter().enumerate() {
            for _ in 0..count {
                let packet = TestPacket::new(id, flow as u32, FRAME_BYTES);
                queue.enqueue(ms * MS, packet, &mut dropped);
                id += 1;
            }
        }
        if let Some(packet) = queue.dequeue(ms * MS, &mut dropped) {
            sent[packet.flow as usize] += 1;
        }
    }
    assert!(dropped.iter().all(|packet| packet.flow == 1));
    assert!(sent[0].abs_diff(20_000) <= 2, "{sent:?}");
    // Of 90,000 it gets the 40,000 that are left: 5/9 must go, and little may wait.
    assert!(dropped.len().abs_diff(50_000) < 1000, "{}", dropped.len());
    assert!(queue.packets() < 300, "{}", queue.packets());
}
