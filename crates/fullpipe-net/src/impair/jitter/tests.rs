//! Params as bless2025 section V describes it: it never reorders.

use super::{JitterSource, Params, Shape};
use proptest::prelude::*;

fn source(shape: Shape, max_ns: u64, seed: u64) -> JitterSource {
    JitterSource::new(&Params { shape, max_ns }, seed)
}

proptest! {
    #[test]
    fn nothing_is_reordered_or_delayed_beyond_the_maximum(
        slotted in any::<bool>(),
        max_ns in 0..40_000_000u64,
        seed in any::<u64>(),
        gaps in prop::collection::vec(0..5_000_000u64, 1..300)
    ) {
        let shape = if slotted { Shape::Slotted } else { Shape::PerPacket };
        let mut jitter = source(shape, max_ns, seed);
        let (mut now_ns, mut last_ns) = (0, 0);
        for gap_ns in gaps {
            now_ns += gap_ns;
            let release_ns = jitter.release_ns(now_ns);
            prop_assert!(release_ns >= last_ns, "overtook the packet ahead");
            prop_assert!(release_ns >= now_ns && release_ns <= now_ns + max_ns);
            last_ns = release_ns;
        }
    }
}

#[test]
fn isolated_packets_are_delayed_uniformly_in_both_shapes() {
    const MAX_NS: u64 = 20_000_000;
    const N: u64 = 100_000;
    for shape in [Shape::PerPacket, Shape::Slotted] {
        let mut jitter = source(shape, MAX_NS, 5);
        let mut delays = Vec::new();
        for index in 0..N {
            let now_ns = index * 2 * MAX_NS;
            delays.push(jitter.release_ns(now_ns) - now_ns);
        }
        delays.sort_unstable();
        // Kolmogorov-Smirnov distance from the uniform distribution, 0.1 % level: 1.95 / sqrt(n).
        let distance = delays
            .iter()
            .enumerate()
            .map(|(rank, &ns)| (rank as f64 / N as f64 - ns as f64 / MAX_NS as f64).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / (N as f64).sqrt(), "{shape:?}: {distance}");
    }
}

#[test]
fn a_slot_takes_all_that_arrive_until_it_starts_and_then_a_new_one_is_drawn() {
    let mut jitter = source(Shape::Slotted, 10_000_000, 3);
    for _ in 0..200 {
        let mut now_ns = jitter.release_ns(0) + 1;
        let slot_ns = jitter.release_ns(now_ns);
        // Whatever arrives before the slot starts, or right then, leaves in it.
        while now_ns < slot_ns {
            now_ns = (now_ns + 1_000_000).min(slot_ns);
            assert_eq!(jitter.release_ns(now_ns), slot_ns);
        }
        assert!(jitter.release_ns(slot_ns + 1) > slot_ns);
        jitter = source(Shape::Slotted, 10_000_000, slot_ns);
    }
}

#[test]
fn per_packet_jitter_of_a_dense_stream_leaves_in_bursts_behind_the_slowest() {
    // With packets much closer than the jitter, a packet leaves with the largest of
    // (arrival + own delay) so far: most packets leave at the very time of one ahead of them.
    let mut jitter = source(Shape::PerPacket, 20_000_000, 9);
    let releases: Vec<_> = (0..10_000u64)
        .map(|index| jitter.release_ns(index * 100_000))
        .collect();
    let together = releases
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .count();
    assert!(together > 9000, "{together}");
}
