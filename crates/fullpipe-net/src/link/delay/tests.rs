//! The delay line lets every packet go at its time, whatever times it is given.

use super::DelayLine;
use proptest::prelude::*;

proptest! {
    #[test]
    fn packets_come_out_when_due_and_those_due_together_as_they_came(
        delays in prop::collection::vec(0..500u64, 1..200),
    ) {
        let mut line = DelayLine::default();
        let mut head_ns = None;
        let mut expected = Vec::new();
        for (id, &delay_ns) in delays.iter().enumerate() {
            let due_ns = id as u64 * 10 + delay_ns;
            if let Some(due_ns) = line.push(due_ns, &id) {
                head_ns = Some(due_ns);
            }
            expected.push((due_ns, id));
        }
        prop_assert_eq!(head_ns, line.due_ns());
        expected.sort_unstable();
        for (due_ns, id) in expected {
            prop_assert_eq!(line.due_ns(), Some(due_ns));
            prop_assert_eq!(due_ns.checked_sub(1).and_then(|early| line.ready(early)), None);
            prop_assert_eq!(line.ready(due_ns), Some(&id));
            line.leave();
        }
        prop_assert!(line.is_empty());
    }
}
