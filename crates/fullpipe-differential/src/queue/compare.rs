//! Names the first packet in which a kernel's queue and the model's differ.

use super::answer::{Answer, Departure};
use crate::compare::{Difference, Disagreement};

/// A kernel takes time for an arrival, a timer and a departure, some 15 us, and fq_pie_timer() for its 1,024
/// flows.
const LATE_US: u64 = 250;

/// The first packet in which the answers differ; `None`: they agree.
pub fn compare(kernel: &Answer, model: &Answer) -> Option<Disagreement> {
    let longest = kernel.left.len().max(model.left.len());
    (0..longest).find_map(|place| {
        let pair = (kernel.left.get(place), model.left.get(place));
        let what = match pair {
            (Some(left), Some(own)) if left.packet == own.packet => same_packet(left, own)?,
            (left, own) => other_packet((kernel, left), (model, own)),
        };
        let words = |departure: Option<&Departure>| {
            departure.map_or_else(|| "none".to_owned(), |departure| departure.words())
        };
        let packet = pair.0.or(pair.1).map_or(0, |departure| departure.packet);
        Some(Disagreement {
            event: packet as usize,
            differences: vec![Difference {
                what: what.to_owned(),
                kernel: words(pair.0),
                model: words(pair.1),
            }],
        })
    })
}

/// How the same packet differs.
fn same_packet(kernel: &Departure, model: &Departure) -> Option<&'static str> {
    if kernel.tos != model.tos {
        return Some("mark");
    }
    (kernel.at_us.abs_diff(model.at_us) > LATE_US).then_some("time")
}

/// Why another packet leaves at the same place.
fn other_packet(
    (kernel, left): (&Answer, Option<&Departure>),
    (model, own): (&Answer, Option<&Departure>),
) -> &'static str {
    if own.is_some_and(|own| !kernel.has(own.packet)) {
        "dropped by the kernel"
    } else if left.is_some_and(|left| !model.has(left.packet)) {
        "dropped by the model"
    } else {
        "order"
    }
}

impl Departure {
    fn words(&self) -> String {
        let ecn = ["", " ECT(1)", " ECT(0)", " CE"][usize::from(self.tos & 3)];
        format!("packet {}{ecn} at {} us", self.packet, self.at_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(left: &[(u32, u64, u8)]) -> Answer {
        Answer {
            script: "a".to_owned(),
            left: left.iter().map(|&each| each.into()).collect(),
        }
    }

    fn kind(kernel: &[(u32, u64, u8)], model: &[(u32, u64, u8)]) -> Option<String> {
        compare(&answer(kernel), &answer(model)).map(|first| first.kind())
    }

    #[test]
    fn drops_order_marks_and_times_are_told_apart() {
        let both = [(0, 10, 0), (1, 900, 2), (2, 2_000, 2)];
        assert_eq!(kind(&both, &both), None);
        assert_eq!(
            kind(&[both[0], both[2]], &both).as_deref(),
            Some("dropped by the kernel")
        );
        assert_eq!(
            kind(&both, &both[..2]).as_deref(),
            Some("dropped by the model")
        );
        assert_eq!(
            kind(&both, &[both[0], both[2], both[1]]).as_deref(),
            Some("order")
        );
        let marked = [both[0], (1, 900, 3), both[2]];
        assert_eq!(kind(&both, &marked).as_deref(), Some("mark"));
        let late = |by_us| [both[0], (1, 900 + by_us, 2), both[2]];
        assert_eq!(kind(&late(LATE_US), &both), None);
        assert_eq!(kind(&late(LATE_US + 1), &both).as_deref(), Some("time"));
    }

    #[test]
    fn the_packet_that_differs_is_named_with_both_values() {
        let first = compare(&answer(&[(0, 10, 3)]), &answer(&[(0, 12, 2)]));
        assert_eq!(
            first.expect("they differ").to_string(),
            "event 0: mark: kernel packet 0 CE at 10 us, model packet 0 ECT(0) at 12 us;"
        );
    }
}
