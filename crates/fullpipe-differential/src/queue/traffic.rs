//! Random traffic of a script: phases with a load, pauses between them, flows of different kinds.

use super::script::{Arrival, LEAST_BYTES};
use crate::path::Dice;

/// A kernel takes time for an arrival: the next one comes no sooner.
const APART_US: u64 = 60;
/// The queue is made at 0; packets begin to arrive once it is there.
const FIRST_US: u64 = 8_000;
const PACKETS: (u64, u64) = (40, 110);
const PACKETS_OF_LASTING_LOAD: (u64, u64) = (150, 250);
/// A script is over after this time, so that slow links have fewer packets.
const MOST_US: u64 = 12_000_000;
const FULL_BYTES: u64 = 1_514;
/// Best effort, EF, CS1, AF41, CS5.
const DSCPS: [u8; 7] = [0, 0, 0, 46, 8, 34, 40];

/// What a flow sends.
struct Flow {
    number: u8,
    tos: u8,
    /// Least and most bytes of a packet.
    bytes: (u64, u64),
}

impl Flow {
    fn draw(dice: &mut Dice, number: u8) -> Self {
        let ecn = dice.choose(&[0, 0, 2, 2, 1, 3]);
        let full = (FULL_BYTES, FULL_BYTES);
        Self {
            number,
            tos: dice.choose(&DSCPS) << 2 | ecn,
            bytes: dice.choose(&[full, full, (66, 66), (214, 214), (66, FULL_BYTES)]),
        }
    }
}

/// Loads in percent of the rate; 0: a burst.
const LOADS: [u64; 8] = [0, 30, 70, 95, 110, 150, 250, 400];
const LASTING_LOADS: [u64; 4] = [95, 110, 130, 170];
const PAUSES_US: [u64; 6] = [0, 0, 7_000, 40_000, 150_000, 700_000];
const SHORT_PAUSES_US: [u64; 4] = [0, 0, 0, 7_000];

/// Packets for a link of that rate. A lasting load gives controllers time to act.
pub(super) fn draw(dice: &mut Dice, rate_bps: u64, lasts: bool) -> Vec<Arrival> {
    let count = dice.between(1, 6) as u8;
    let flows: Vec<Flow> = (0..count).map(|number| Flow::draw(dice, number)).collect();
    let ((least, most), loads, pauses_us): (_, &[u64], &[u64]) = match lasts {
        true => (PACKETS_OF_LASTING_LOAD, &LASTING_LOADS, &SHORT_PAUSES_US),
        false => (PACKETS, &LOADS, &PAUSES_US),
    };
    let packets = dice.between(least, most);
    let mut events = Vec::new();
    let mut at_us = FIRST_US + dice.up_to(20_000);
    while (events.len() as u64) < packets && at_us < MOST_US {
        let phase = dice.between(4, 40).min(packets - events.len() as u64);
        let load = dice.choose(loads);
        let active = dice.between(1, u64::from(count)) as usize;
        let first = dice.up_to(u64::from(count) - 1) as usize;
        for _ in 0..phase {
            let pick = (first + dice.up_to(active as u64 - 1) as usize) % flows.len();
            let flow = &flows[pick];
            let bytes = dice.between(flow.bytes.0, flow.bytes.1) as u32;
            events.push(Arrival {
                at_us,
                bytes: bytes.max(LEAST_BYTES),
                flow: flow.number,
                tos: flow.tos,
            });
            let mean_us = match load {
                0 => 0,
                load => u64::from(bytes) * 8_000_000 * 100 / (rate_bps * load),
            };
            at_us += APART_US + mean_us / 2 + dice.up_to(mean_us);
        }
        at_us += dice.choose(pauses_us);
    }
    events
}
