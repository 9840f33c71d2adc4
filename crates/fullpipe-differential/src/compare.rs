//! Names the first event after which a kernel and the model differ.

use std::fmt;

use serde::Serialize;

use crate::answer::{Answer, Packet, Step};
use crate::info::FIELDS;

/// A kernel may send a packet so much later than the model, which has no costs: a tick's work and bursts of
/// packets before it.
const LATE_US: u64 = 800;

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// A field of tcp_info, or `sent`, `info`, `stopped`.
    pub what: String,
    /// The kernel's value.
    pub kernel: String,
    /// The model's.
    pub model: String,
}

/// The first event in which two answers differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// Its position in the script.
    pub event: usize,
    /// All that differs.
    pub differences: Vec<Difference>,
}

impl Disagreement {
    /// What differs, as a word: the names in their order.
    pub fn kind(&self) -> String {
        let names = self.differences.iter().map(|one| one.what.as_str());
        names.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "event {}:", self.event)?;
        for one in &self.differences {
            write!(
                out,
                " {}: kernel {}, model {};",
                one.what, one.kernel, one.model
            )?;
        }
        Ok(())
    }
}

/// The first event in which the answers differ; `None`: they agree.
pub fn compare(kernel: &Answer, model: &Answer) -> Option<Disagreement> {
    let both = kernel.steps.iter().zip(&model.steps);
    let first = both.enumerate().find_map(|(event, (kernel, model))| {
        let differences = step(kernel, model);
        (!differences.is_empty()).then_some(Disagreement { event, differences })
    });
    first.or_else(|| end(kernel, model))
}

fn step(kernel: &Step, model: &Step) -> Vec<Difference> {
    let mut differences = Vec::new();
    match (&kernel.info, &model.info) {
        (Some(kernel), Some(model)) => {
            differences.extend(
                kernel
                    .differences(model)
                    .into_iter()
                    .map(|place| Difference {
                        what: FIELDS[place].name.to_owned(),
                        kernel: kernel.0[place].to_string(),
                        model: model.0[place].to_string(),
                    }),
            );
        }
        (None, None) => {}
        (kernel, model) => {
            let words = |is_there: bool| if is_there { "established" } else { "none" }.to_owned();
            differences.push(Difference {
                what: "info".to_owned(),
                kernel: words(kernel.is_some()),
                model: words(model.is_some()),
            });
        }
    }
    differences.extend(packets(&kernel.sent, &model.sent));
    differences
}

/// The first packet that only one side has sent, or that differs.
fn packets(kernel: &[Packet], model: &[Packet]) -> Option<Difference> {
    let longest = kernel.len().max(model.len());
    let words = |packet: Option<&Packet>| packet.map_or("none".to_owned(), Packet::words);
    (0..longest).find_map(|place| {
        let (kernel, model) = (kernel.get(place), model.get(place));
        let is_same = kernel.zip(model).is_some_and(|(kernel, model)| {
            let same = Packet {
                at_us: model.at_us,
                ..*kernel
            };
            same == *model && kernel.at_us.abs_diff(model.at_us) <= LATE_US
        });
        (!is_same).then(|| Difference {
            what: "sent".to_owned(),
            kernel: words(kernel),
            model: words(model),
        })
    })
}

/// One of them ended before the other.
fn end(kernel: &Answer, model: &Answer) -> Option<Disagreement> {
    let is_same = kernel.stopped == model.stopped && kernel.steps.len() == model.steps.len();
    (!is_same).then(|| Disagreement {
        event: kernel.steps.len().min(model.steps.len()),
        differences: vec![Difference {
            what: "stopped".to_owned(),
            kernel: kernel.stopped.clone().unwrap_or_default(),
            model: model.stopped.clone().unwrap_or_default(),
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Flags;
    use crate::info::Info;

    fn answer(cwnd: u64, rtt_us: u64, starts: &[u64]) -> Answer {
        let mut info = Info([0; FIELDS.len()]);
        info.0[7] = cwnd;
        info.0[21] = rtt_us;
        let packet = |&start| Packet {
            at_us: 100,
            start,
            bytes: 1000,
            flags: Flags::default(),
            ecn: 0,
        };
        Answer {
            script: "a".to_owned(),
            steps: vec![
                Step::default(),
                Step {
                    info: Some(info),
                    sent: starts.iter().map(packet).collect(),
                },
            ],
            stopped: None,
        }
    }

    #[test]
    fn the_first_event_that_differs_is_named_with_field_and_values() {
        let found = compare(&answer(10, 100, &[0, 1000]), &answer(9, 100, &[0]));
        let found = found.expect("they differ");
        assert_eq!((found.event, found.kind()), (1, "snd_cwnd sent".to_owned()));
        assert_eq!(
            found.to_string(),
            "event 1: snd_cwnd: kernel 10, model 9; sent: kernel 1000:2000  at 100 us, model none;"
        );
    }

    #[test]
    fn a_kernel_may_take_time_for_a_packet_and_no_more() {
        assert_eq!(
            compare(&answer(10, 40_300, &[]), &answer(10, 40_000, &[])),
            None
        );
        assert!(compare(&answer(10, 40_301, &[]), &answer(10, 40_000, &[])).is_some());
        let mut late = answer(10, 100, &[0]);
        late.steps[1].sent[0].at_us += LATE_US;
        assert_eq!(compare(&late, &answer(10, 100, &[0])), None);
        late.steps[1].sent[0].at_us += 1;
        assert!(compare(&late, &answer(10, 100, &[0])).is_some());
    }

    #[test]
    fn a_field_that_the_kernel_does_not_report_is_not_compared_and_a_missing_step_is() {
        let mut old = answer(10, 100, &[]);
        let new = answer(10, 100, &[]);
        if let Some(info) = &mut old.steps[1].info {
            info.0[7] = Info::UNKNOWN;
        }
        assert_eq!(compare(&old, &new), None);
        old.steps.pop();
        assert_eq!(compare(&old, &new).map(|found| found.event), Some(1));
    }
}
