//! Every parameter set through random paths: whatever the path, the connection goes on, and window
//! and rate stay in bounds that the path sets. (tests/cc/fuzz.c feeds what no network would.)

use crate::bottleneck::{Flow, Path};
use fullpipe_cc::{flags, sets, INFINITE};
use proptest::prelude::*;

fn path() -> impl Strategy<Value = Path> {
    let lose_every = prop_oneof![2 => Just(0u64), 2 => 30u64..2000, 1 => 3u64..30];
    let mark_above = prop_oneof![3 => Just(u64::MAX), 1 => 0u64..100];
    (1u64..60, 1u64..250, 0.05f64..6.0, lose_every, mark_above).prop_map(
        |(rate_mbps, rtt_ms, buffer_bdp, lose_every, mark_above)| {
            let mut path = Path::new(rate_mbps, rtt_ms, buffer_bdp);
            path.buffer_packets = path.buffer_packets.max(1);
            path.lose_every = lose_every;
            path.mark_above = mark_above;
            path
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn on_every_path_each_set_goes_on_within_bounds(
        path in path(),
        set in 0..sets().len(),
        seed: u32,
    ) {
        let set = &sets()[set];
        let owns_cwnd = fullpipe_cc::algorithm(set.algorithm).unwrap().flags() & flags::OWNS_CWND != 0;
        let mut flow = Flow::new(set.name, path, &[], seed);
        // 60 round trips; on a slow path with a short one as many packets as bring 20 ACKs; and
        // what timeouts of 200 ms leave time for, as the first window may be lost but for some.
        let packets_s = 100.0 * 1500.0 * 8.0 / path.rate_bps as f64;
        let seconds = (path.rtt_us as f64 / 1e6 * 60.0).min(4.0).max(packets_s).max(1.0);
        let rows = flow.run(seconds).to_vec();
        prop_assert!(rows.len() > 20, "{}: {} ACKs", set.name, rows.len());
        let link_bytes_per_s = path.rate_bps / 8;
        for row in &rows {
            prop_assert!(row.cwnd >= 1);
            prop_assert!(row.info.max_bw_bytes_per_s <= link_bytes_per_s + link_bytes_per_s / 10 + 3000,
                "{}: {} of {link_bytes_per_s}", set.name, row.info.max_bw_bytes_per_s);
            if owns_cwnd {
                let most = if set.algorithm.starts_with("bbr") {
                    prop_assert!(row.info.pacing_gain > 0 && row.info.cwnd_gain > 0);
                    // 2.89 times the link's rate, or what the initial window asks for.
                    let initial = 10 * 1500 * 1_000_000 / path.rtt_us;
                    3 * (link_bytes_per_s + link_bytes_per_s / 10).max(initial) + 10_000
                } else {
                    // Prague knows no rate: twice its window in the shortest round trip.
                    2 * u64::from(row.cwnd) * 1514 * 1_000_000 / path.rtt_us
                };
                let rate = row.pacing_bps / 8;
                prop_assert!(rate > 0 && rate <= most, "{}: {rate} of {most}", set.name);
            }
        }
        prop_assert!(flow.ctl.ssthresh >= 1 && flow.ctl.ssthresh <= INFINITE);
        // It never stalls: the last tenth of the time brought something too.
        let (first, last) = (rows[0].t_us, rows[rows.len() - 1].t_us);
        let late = rows.iter().filter(|row| row.t_us > last - (last - first) / 10).count();
        prop_assert!(late > 0);
    }
}
