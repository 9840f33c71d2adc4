//! Random loss as netem defines it (sch_netem.c, loss_event() and get_crandom()).

use serde::{Deserialize, Serialize};

use super::crandom::{self, Chance};
use super::gilbert::GilbertElliott;
use crate::packet::Packet;

/// netem's `loss random`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Probability, parts per million.
    pub probability_ppm: u32,
    /// netem's correlation of successive draws, parts per million; 0: independent.
    pub correlation_ppm: u32,
    /// Marks CE instead of dropping where the packet can carry it (netem `ecn`).
    pub ecn: bool,
    /// One draw for a whole burst, as netem at a sender's own egress, which sees GSO packets before
    /// they are segmented.
    pub per_burst: bool,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It is lost.
    Drop,
    /// It is marked, if it can be; lost otherwise.
    Mark,
}

/// Draws verdicts.
#[derive(Clone, Debug)]
pub struct LossSource {
    chance: Chance,
    marks: bool,
}

impl LossSource {
    /// Probability and correlation are turned into netem's 32-bit fractions.
    pub fn new(params: &Params, seed: u64) -> Self {
        Self {
            chance: Chance::new(
                &crandom::Params {
                    probability_ppm: params.probability_ppm,
                    correlation_ppm: params.correlation_ppm,
                },
                seed,
            ),
            marks: params.ecn,
        }
    }

    /// The verdict on the next packet. Lost when the draw is at most the threshold, as netem's
    /// `loss >= get_crandom()`.
    #[allow(clippy::should_implement_trait)] // no iterator: it never ends
    pub fn next(&mut self) -> Verdict {
        match (self.chance.happens(), self.marks) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }
}

/// What draws a gate's verdicts.
#[derive(Clone, Debug)]
enum Source {
    Chance(LossSource),
    Bursts(GilbertElliott),
}

impl Source {
    fn next(&mut self) -> Verdict {
        match self {
            Self::Chance(source) => source.next(),
            Self::Bursts(chain) => match chain.loses() {
                true => Verdict::Drop,
                false => Verdict::Pass,
            },
        }
    }
}

/// A place where packets are lost or marked by chance, and counted.
#[derive(Clone, Debug)]
pub struct LossGate {
    source: Source,
    /// The last verdict, where one draw holds for a whole burst.
    burst_verdict: Option<Verdict>,
    lost: u64,
    marked: u64,
}

impl LossGate {
    /// A gate with netem's random loss.
    pub fn new(params: &Params, seed: u64) -> Self {
        Self {
            source: Source::Chance(LossSource::new(params, seed)),
            burst_verdict: params.per_burst.then_some(Verdict::Pass),
            lost: 0,
            marked: 0,
        }
    }

    /// A gate whose losses a Gilbert-Elliott chain decides.
    pub fn in_bursts(chain: GilbertElliott) -> Self {
        Self {
            source: Source::Bursts(chain),
            burst_verdict: None,
            lost: 0,
            marked: 0,
        }
    }

    /// It is now this time; losses of a chain by time depend on it.
    pub fn advance(&mut self, now_ns: u64) {
        if let Source::Bursts(chain) = &mut self.source {
            chain.advance(now_ns);
        }
    }

    /// False: the packet is lost. It may be marked instead.
    pub fn passes<P: Packet>(&mut self, packet: &mut P) -> bool {
        let verdict = match self.burst_verdict {
            Some(verdict) if packet.follows_in_burst() => verdict,
            _ => self.source.next(),
        };
        if self.burst_verdict.is_some() {
            self.burst_verdict = Some(verdict);
        }
        match verdict {
            Verdict::Pass => true,
            Verdict::Mark if packet.ecn_capable() => {
                packet.mark_ce();
                self.marked += 1;
                true
            }
            Verdict::Mark | Verdict::Drop => {
                self.lost += 1;
                false
            }
        }
    }

    /// Packets lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets marked so far.
    pub fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests;
