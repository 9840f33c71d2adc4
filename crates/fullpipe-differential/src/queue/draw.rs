//! Random scripts. All randomness comes from the seed and the script's number.

use fullpipe_net::{derive_seed, Kernel};

use super::answer::Answer;
use super::model::{play_delayed, play_seeded, MODEL_SEED};
use super::options::Kind;
use super::script::Script;
use super::traffic;
use crate::path::Dice;

/// The purpose of the random numbers here, and of the delays of packets.
const PURPOSE: u32 = 51;
/// Rates of links.
const RATES_BPS: (u64, u64) = (200_000, 20_000_000);
/// Rates of links whose load lasts for seconds, and how many of a thousand are such.
const LASTING_RATES_BPS: (u64, u64) = (400_000, 1_600_000);
const LASTING: u64 = 250;
/// What a kernel may take until a packet is in the queue.
const DELAY_US: u64 = 25;
/// So often a script is played with other delays; it must not matter.
const TRIALS: u64 = 6;
/// So often a script is drawn again.
const ATTEMPTS: u64 = 40;

/// The script of that number. Of scripts whose outcome a kernel's microseconds decide another is drawn. The
/// error says what the model refused, or that all were such.
pub fn draw(seed: u64, number: u64, kind: Kind, kernel: Kernel) -> Result<Script, String> {
    let index = ((kind as u64) << 24 | number) as u32;
    for attempt in 0..ATTEMPTS {
        let mut dice = Dice::new(derive_seed(seed, PURPOSE + 100 * attempt as u32, index));
        let mut script = sketch(&mut dice, kind);
        script.name = format!("{}-{seed}-{number}", name(kind));
        let answer = play_seeded(&script, kernel, MODEL_SEED)?;
        if (0..TRIALS).all(|_| is_same(&script, &answer, &mut dice, kernel)) {
            return Ok(script);
        }
    }
    Err(format!(
        "{}-{seed}-{number}: microseconds decide all that was drawn",
        name(kind)
    ))
}

fn sketch(dice: &mut Dice, kind: Kind) -> Script {
    let lasts = kind.is_slow() || dice.happens(LASTING);
    let (least, most) = if lasts { LASTING_RATES_BPS } else { RATES_BPS };
    let rate_bps = dice.log(least, most) & !7;
    let qdisc = kind.draw(dice, rate_bps);
    let mut events = traffic::draw(dice, rate_bps, lasts);
    if kind.has_l4s_only() {
        for arrival in &mut events {
            arrival.become_l4s();
        }
    }
    Script {
        name: String::new(),
        rate_bps,
        qdisc,
        events,
    }
}

fn name(kind: Kind) -> &'static str {
    Kind::ALL[kind as usize].0
}

/// Whether the same packets leave in the same order with the same marks if each is a little late.
fn is_same(script: &Script, answer: &Answer, dice: &mut Dice, kernel: Kernel) -> bool {
    let most_us = dice.up_to(DELAY_US);
    let late = play_delayed(script, kernel, MODEL_SEED, |_| dice.up_to(most_us));
    let what = |answer: &Answer| -> Vec<(u32, u8)> {
        let left = answer.left.iter();
        left.map(|departure| (departure.packet, departure.tos))
            .collect()
    };
    late.is_ok_and(|late| what(&late) == what(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_its_name_and_drawn_the_same_again() {
        for (name, kind) in Kind::ALL {
            assert_eq!(Kind::named(name), Some(kind));
            assert_eq!(super::name(kind), name);
            let drawn = |seed, number| draw(seed, number, kind, Kernel::default());
            assert_eq!(drawn(1, 2), drawn(1, 2), "{name}");
            assert_ne!(drawn(1, 2), drawn(1, 3), "{name}");
            assert_ne!(drawn(1, 2), drawn(2, 2), "{name}");
        }
    }
}
