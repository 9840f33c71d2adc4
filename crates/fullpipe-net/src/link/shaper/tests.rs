//! The shaper's rate is exact: fractions of a ns never add up to a drift.

use super::Shaper;
use crate::{Framing, Overhead};
use proptest::prelude::*;

#[test]
fn a_million_back_to_back_packets_take_exactly_their_bits_over_the_rate() {
    for rate_bps in [
        7u64,
        999_999_937,
        1_000_000_000,
        2_500_000_000,
        10_000_000_000,
        400_000_000_000,
    ] {
        let mut shaper = Shaper::new(rate_bps, 0);
        let mut bits = 0u128;
        for index in 0..1_000_000u32 {
            let bytes = 64 + index / 4 % 1451;
            let ready_ns = shaper.ready_ns();
            if rate_bps == 7 && index > 1000 {
                break; // 7 bit/s: the clock would pass 2^64 ns
            }
            shaper.charge(ready_ns, bytes);
            bits += u128::from(bytes) * 8;
        }
        let exact_ns = bits * 1_000_000_000 / u128::from(rate_bps);
        assert_eq!(u128::from(shaper.ready_ns()), exact_ns, "{rate_bps} bit/s");
    }
}

#[test]
fn an_idle_shaper_lets_its_burst_pass_at_once_and_then_one_packet_more() {
    // htb lets a packet pass while tokens are not negative, and charges it then
    // (sch_htb.c, htb_class_mode() and htb_charge_class()).
    let mut shaper = Shaper::new(8_000_000, 3000); // 1 us per byte
    let now_ns = 1_000_000_000;
    let mut passed = 0;
    while shaper.ready_ns() <= now_ns {
        shaper.charge(now_ns, 1500);
        passed += 1;
    }
    assert_eq!(passed, 3);
    assert_eq!(shaper.ready_ns(), now_ns + 1_500_000);
}

#[test]
fn packets_cost_their_cells_and_what_the_link_layer_adds() {
    // 1500 + 40 (PPPoE over LLC/SNAP) = 1540 bytes: 33 cells of 53; 52 + 40 = 92: 2 cells.
    let overhead = Overhead {
        bytes: Some(40),
        mpu_bytes: 0,
        framing: Framing::Atm,
    };
    let mut shaper = Shaper::new(8_000_000, 0).with_overhead(Some(overhead)); // 1 us per byte
    shaper.charge(0, 1514);
    assert_eq!(shaper.ready_ns(), 33 * 53 * 1000);
    shaper.charge(33 * 53 * 1000, 66);
    assert_eq!(shaper.ready_ns(), 35 * 53 * 1000);
}

#[test]
fn a_shaper_begins_with_a_full_bucket() {
    // htb_change_class(): cl->tokens = PSCHED_TICKS2NS(hopt->buffer) of a new class.
    let mut shaper = Shaper::new(8_000_000, 3000); // 1 us per byte
    for _ in 0..3 {
        assert_eq!(shaper.ready_ns(), 0);
        shaper.charge(0, 1500);
    }
    assert_eq!(shaper.ready_ns(), 1_500_000);
    // What is owed stays owed at another rate.
    shaper.set_rate(16_000_000, 3000);
    assert_eq!(shaper.ready_ns(), 1_500_000);
    shaper.charge(1_500_000, 1500);
    assert_eq!(shaper.ready_ns(), 1_500_000 + 750_000);
}

proptest! {
    #[test]
    fn no_interval_sees_more_than_its_rate_and_the_burst_and_one_packet(
        rate_bps in 10_000u64..40_000_000_000,
        burst in 0..20_000u32,
        gaps in prop::collection::vec((0..200_000u64, 60..1515u32), 2..200)
    ) {
        let mut shaper = Shaper::new(rate_bps, burst);
        let mut now_ns = 0;
        let mut passed: Vec<(u64, u32)> = Vec::new();
        for (gap_ns, bytes) in gaps {
            now_ns = (now_ns + gap_ns).max(shaper.ready_ns());
            shaper.charge(now_ns, bytes);
            passed.push((now_ns, bytes));
        }
        let &(end_ns, last) = passed.last().expect("not empty");
        let mut bytes = 0u64;
        for &(start_ns, size) in passed.iter().rev() {
            bytes += u64::from(size);
            let allowed = (end_ns - start_ns + 1) as f64 * rate_bps as f64 / 8e9;
            prop_assert!((bytes - u64::from(last)) as f64 <= allowed + f64::from(burst) + 1e-6 * allowed);
        }
    }
}
