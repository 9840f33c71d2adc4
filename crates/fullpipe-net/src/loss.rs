//! Random loss as netem defines it (sch_netem.c, loss_event() and get_crandom()).

use fullpipe_scenario::Loss;

use crate::rng::Rng;
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
    threshold: u32,
    rho: u32,
    marks: bool,
    last: u32,
    rng: Rng,
}

impl LossSource {
    /// Probability and correlation are turned into netem's 32-bit fractions.
    pub fn new(loss: &Loss, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            threshold: fraction(loss.probability_ppm),
            rho: fraction(loss.correlation_ppm),
            marks: loss.ecn,
            last: rng.next_u32(),
            rng,
        }
    }

    /// The verdict on the next packet. Lost when the draw is at most the threshold, as netem's
    /// `loss >= get_crandom()`.
    #[allow(clippy::should_implement_trait)] // endless, and not to be adapted as an iterator
    pub fn next(&mut self) -> Verdict {
        if self.threshold == 0 || self.draw() > self.threshold {
            Verdict::Pass
        } else if self.marks {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Exponential smoothing of draws: answer = value * (1 - rho) + last * rho.
    fn draw(&mut self) -> u32 {
        let value = u64::from(self.rng.next_u32());
        if self.rho == 0 {
            return value as u32;
        }
        let rho = u64::from(self.rho) + 1;
        let answer = (value * ((1 << 32) - rho) + u64::from(self.last) * rho) >> 32;
        self.last = answer as u32;
        self.last
    }
}

/// A place where packets are lost or marked by chance, and counted.
#[derive(Clone, Debug)]
pub struct LossGate {
    source: LossSource,
    /// Where one draw holds for a burst: the last one.
    burst_verdict: Option<Verdict>,
    lost: u64,
    marked: u64,
}

impl LossGate {
    /// As the plan describes it.
    pub fn new(loss: &Loss, seed: u64) -> Self {
        Self {
            source: LossSource::new(loss, seed),
            burst_verdict: loss.per_burst.then_some(Verdict::Pass),
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

/// Of 2^32 - 1, rounded to the nearest (iproute2 q_netem.c, set_percent()).
fn fraction(ppm: u32) -> u32 {
    ((u64::from(ppm) * u64::from(u32::MAX) + 500_000) / 1_000_000) as u32
}
