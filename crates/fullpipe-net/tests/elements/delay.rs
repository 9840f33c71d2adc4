//! The delay line keeps the order, whatever due times it is given.

use fullpipe_net::DelayLine;
use proptest::prelude::*;

proptest! {
    #[test]
    fn packets_come_out_in_order_and_never_early(delays in prop::collection::vec(0..500u64, 1..200)) {
        let mut line = DelayLine::default();
        let mut head_ns = None;
        for (id, &delay_ns) in delays.iter().enumerate() {
            let due_ns = id as u64 * 10 + delay_ns;
            if let Some(due_ns) = line.push(due_ns, id) {
                head_ns = Some(due_ns);
            }
        }
        prop_assert_eq!(head_ns, line.due_ns());
        let mut latest_ns = 0;
        for (id, &delay_ns) in delays.iter().enumerate() {
            latest_ns = latest_ns.max(id as u64 * 10 + delay_ns);
            prop_assert_eq!(line.due_ns(), Some(latest_ns));
            prop_assert_eq!(latest_ns.checked_sub(1).and_then(|early| line.pop(early)), None);
            prop_assert_eq!(line.pop(latest_ns), Some(id));
        }
        prop_assert!(line.is_empty());
    }
}
