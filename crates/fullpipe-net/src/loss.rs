//! Random loss as netem defines it (sch_netem.c, loss_event() and get_crandom()).

use fullpipe_plan::Loss;

use crate::chance::Event;
use crate::gilbert::GilbertElliott;
use crate::Packet;

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

/// A source of verdicts.
#[derive(Clone, Debug)]
pub struct LossSource {
    chance: Event,
    marks: bool,
}

impl LossSource {
    /// Probability and correlation are turned into netem's 32-bit fractions.
    pub fn new(loss: &Loss, seed: u64) -> Self {
        Self {
            chance: Event::new(loss.probability_ppm, loss.correlation_ppm, seed),
            marks: loss.ecn,
        }
    }

    /// The verdict on the next packet. Lost when the draw is at most the threshold, as netem's
    /// `loss >= get_crandom()`.
    #[allow(clippy::should_implement_trait)] // endless, and not to be adapted as an iterator
    pub fn next(&mut self) -> Verdict {
        match (self.chance.happens(), self.marks) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }
}

/// What decides at a gate.
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
    /// Where one draw holds for a burst: the last one.
    burst_verdict: Option<Verdict>,
    lost: u64,
    marked: u64,
}

impl LossGate {
    /// As the plan describes it.
    pub fn new(loss: &Loss, seed: u64) -> Self {
        Self {
            source: Source::Chance(LossSource::new(loss, seed)),
            burst_verdict: loss.per_burst.then_some(Verdict::Pass),
            lost: 0,
            marked: 0,
        }
    }

    /// Where a chain decides.
    pub fn in_bursts(chain: GilbertElliott) -> Self {
        Self {
            source: Source::Bursts(chain),
            burst_verdict: None,
            lost: 0,
            marked: 0,
        }
    }

    /// False if the packet is gone; it may have been marked otherwise.
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
