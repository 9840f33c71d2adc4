//! What a kernel decides by its own random numbers: drops and marks of some disciplines, and the hashes of
//! flows, which order queues that are equally long. The model is played with many seeds.

use fullpipe_net::{Aqm, Kernel};

use super::answer::Answer;
use super::compare::compare;
use super::model::{play_seeded, MODEL_SEED};
use super::script::Script;
use crate::compare::{Difference, Disagreement};

/// The model is played with so many seeds.
const SEEDS: u64 = 100;
/// A kernel's figure may be so many standard deviations, and one packet, from the model's mean: a wrong alarm
/// is expected in one of some 100,000 normal figures.
const MOST_DEVIATIONS: f64 = 4.5;

/// Mean and variance of a figure of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Of all seeds.
    pub mean: f64,
    /// Of all seeds.
    pub variance: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        Self {
            mean,
            variance: squares.sum::<f64>() / count,
        }
    }

    fn has(self, value: f64) -> bool {
        (value - self.mean).abs() <= MOST_DEVIATIONS * self.variance.sqrt() + 1.0
    }
}

/// What is compared where chance decides: packets lost, and packets marked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures<T> {
    /// Packets that did not leave.
    pub lost: T,
    /// Packets that left with CE and arrived without.
    pub marked: T,
}

/// The figures of an answer.
pub fn figures(script: &Script, answer: &Answer) -> Figures<f64> {
    let is_marked = |packet: u32, tos: u8| {
        let arrival = script.events.get(packet as usize);
        tos & 3 == 3 && arrival.is_some_and(|arrival| arrival.tos & 3 != 3)
    };
    let left = answer.left.iter();
    let marked = left.filter(|departure| is_marked(departure.packet, departure.tos));
    Figures {
        lost: (script.events.len() - answer.left.len()) as f64,
        marked: marked.count() as f64,
    }
}

/// The model's figures over many seeds. The error says what the model refused.
pub fn spreads(script: &Script, kernel: Kernel) -> Result<Figures<Spread>, String> {
    let answers = (0..SEEDS).map(|number| play_seeded(script, kernel, MODEL_SEED + number));
    let answers = answers.collect::<Result<Vec<_>, String>>()?;
    let all: Vec<_> = answers.iter().map(|one| figures(script, one)).collect();
    let spread = |of: fn(&Figures<f64>) -> f64| Spread::of(&all.iter().map(of).collect::<Vec<_>>());
    Ok(Figures {
        lost: spread(|figures| figures.lost),
        marked: spread(|figures| figures.marked),
    })
}

/// Where the model differs from a kernel's answer; `None`: it agrees in every packet with some seed, which
/// decides about chance and about the order of the flows' hashes. Where chance decides packets, their numbers
/// may agree instead.
pub fn judge(
    script: &Script,
    answer: &Answer,
    kernel: Kernel,
) -> Result<Option<Disagreement>, String> {
    let Some(first) = compare(answer, &play_seeded(script, kernel, MODEL_SEED)?) else {
        return Ok(None);
    };
    for number in 1..SEEDS {
        if compare(answer, &play_seeded(script, kernel, MODEL_SEED + number)?).is_none() {
            return Ok(None);
        }
    }
    match has_chance(&script.qdisc.aqm) {
        true => judge_figures(script, answer, kernel, first),
        false => Ok(Some(first)),
    }
}

/// Where the figures differ, or `first` if chance decides nothing.
fn judge_figures(
    script: &Script,
    answer: &Answer,
    kernel: Kernel,
    first: Disagreement,
) -> Result<Option<Disagreement>, String> {
    let (own, spreads) = (figures(script, answer), spreads(script, kernel)?);
    if spreads.lost.variance + spreads.marked.variance == 0.0 {
        return Ok(Some(first));
    }
    let pairs = [
        ("lost", own.lost, spreads.lost),
        ("marked", own.marked, spreads.marked),
    ];
    let outside = pairs
        .into_iter()
        .filter(|(_, value, spread)| !spread.has(*value));
    let differences: Vec<Difference> = outside
        .map(|(what, value, spread)| Difference {
            what: what.to_owned(),
            kernel: value.to_string(),
            model: format!("{:.1} +- {:.1}", spread.mean, spread.variance.sqrt()),
        })
        .collect();
    Ok((!differences.is_empty()).then(|| Disagreement {
        event: script.events.len().saturating_sub(1),
        differences,
    }))
}

fn has_chance(aqm: &Aqm) -> bool {
    matches!(
        aqm,
        Aqm::Red(_) | Aqm::Pie(_) | Aqm::FqPie(_) | Aqm::Dualpi2(_)
    )
}

#[cfg(test)]
mod tests {
    use super::super::{draw, Kind};
    use super::*;

    const KERNEL: Kernel = Kernel::Linux6_12_117;

    #[test]
    fn the_model_with_another_seed_agrees_and_one_that_drops_all_does_not() {
        for (name, kind) in Kind::ALL {
            for number in 0..4 {
                let script = draw(9, number, kind, KERNEL).expect("a script");
                let answer = play_seeded(&script, KERNEL, 77_777).expect("an answer");
                assert_eq!(judge(&script, &answer, KERNEL), Ok(None), "{name} {number}");
                let nothing = Answer {
                    left: Vec::new(),
                    ..answer
                };
                let judged = judge(&script, &nothing, KERNEL).expect("a judgement");
                assert!(judged.is_some(), "{name} {number}");
            }
        }
    }
}
