//! What a host costs: a packet waits for those before it, and never the link for the host.

use super::Host;
use proptest::prelude::*;

/// When a host that gets a packet at `now_ns` is done.
fn handled_ns(host: &mut Host, now_ns: u64) -> u64 {
    host.handle(now_ns);
    host.free_ns()
}

/// A full packet at 10 Mbit/s and at 10 Gbit/s.
const SLOW_NS: u64 = 1_211_200;
const FAST_NS: u64 = 1_211;

#[test]
fn a_lone_packet_takes_one_to_two_us_and_the_second_of_a_burst_waits_for_it() {
    let mut host = Host::new(SLOW_NS, 1);
    for index in 1..1000 {
        let now_ns = index * SLOW_NS;
        let first_ns = handled_ns(&mut host, now_ns);
        let second_ns = handled_ns(&mut host, now_ns);
        assert!((1000..=2000).contains(&(first_ns - now_ns)));
        assert!((1000..=2000).contains(&(second_ns - first_ns)));
    }
}

proptest! {
    #[test]
    fn a_host_keeps_up_with_a_full_link_and_reorders_nothing(
        packet_ns in prop::sample::select(vec![FAST_NS, 12_112, SLOW_NS]),
        seed in any::<u64>()
    ) {
        let mut host = Host::new(packet_ns, seed);
        let mut last_ns = 0;
        for index in 0..1000 {
            let now_ns = index * packet_ns;
            let handled_ns = handled_ns(&mut host, now_ns);
            prop_assert!(handled_ns >= last_ns, "overtook the packet ahead");
            prop_assert!(handled_ns - now_ns <= packet_ns / 2, "fell behind its link");
            last_ns = handled_ns;
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times(seed in any::<u64>()) {
        let times = |mut host: Host| (0..100).map(|i| handled_ns(&mut host, i * 500)).collect::<Vec<_>>();
        let host = || Host::new(SLOW_NS, seed);
        prop_assert_eq!(times(host()), times(host()));
        prop_assert_ne!(times(host()), times(Host::new(SLOW_NS, !seed)));
    }
}
