//! All that one way of a wire does to packets besides queueing and delaying them: before its queue a
//! second copy and a policer, behind it waiting for others, extra delay and overtaking. Loss is the
//! wire's own.

use fullpipe_plan::{Damage as Plan, GilbertElliott as Bursts};

use crate::chance::Event;
use crate::hold::Hold;
use crate::policer::Policer;
use crate::reorder::Reorder;
use crate::rng::{derive_seed, purpose};
use crate::wifi_jitter::WifiJitter;

/// The elements that a plan asks for.
#[derive(Debug)]
pub(crate) struct Damage<P> {
    duplicate: Option<Event>,
    pub(crate) policer: Option<Policer>,
    pub(crate) hold: Option<Hold<P>>,
    jitter: Option<WifiJitter>,
    reorder: Option<Reorder>,
    /// When the last packet that overtook nobody comes out.
    last_exit_ns: u64,
}

impl<P> Damage<P> {
    /// Of the way with this index; `None` where the plan asks for nothing.
    pub(crate) fn new(plan: &Plan, seed: u64, index: u32) -> Result<Option<Self>, String> {
        check(plan)?;
        let seed = |purpose| derive_seed(seed, purpose, index);
        let made = Self {
            duplicate: plan.duplicate.as_ref().map(|chance| {
                let (often, correlated) = (chance.probability_ppm, chance.correlation_ppm);
                Event::new(often, correlated, seed(purpose::DUPLICATE))
            }),
            policer: plan.policer.as_ref().map(Policer::new),
            hold: plan.hold.as_ref().map(Hold::new),
            jitter: plan
                .wifi_jitter_ns
                .map(|mean_ns| WifiJitter::new(mean_ns, seed(purpose::WIFI_JITTER))),
            reorder: plan
                .reorder
                .as_ref()
                .map(|reorder| Reorder::new(reorder, seed(purpose::REORDER))),
            last_exit_ns: 0,
        };
        let is_any = made.duplicate.is_some()
            || made.policer.is_some()
            || made.hold.is_some()
            || made.jitter.is_some()
            || made.reorder.is_some();
        Ok(is_any.then_some(made))
    }

    /// Whether the next packet comes twice.
    pub(crate) fn duplicates(&mut self) -> bool {
        self.duplicate.as_mut().is_some_and(Event::happens)
    }

    /// When a packet that would leave at `at_ns` does: with its extra delay, never before those ahead
    /// of it, or else now.
    pub(crate) fn exit_ns(&mut self, now_ns: u64, at_ns: u64) -> u64 {
        if self.reorder.as_mut().is_some_and(Reorder::skips_delay) {
            return now_ns;
        }
        let extra_ns = self.jitter.as_mut().map_or(0, WifiJitter::next_ns);
        self.last_exit_ns = self.last_exit_ns.max(at_ns + extra_ns);
        self.last_exit_ns
    }
}

fn check(plan: &Plan) -> Result<(), String> {
    if let Some(policer) = &plan.policer {
        if policer.rate_bps == 0 || policer.burst_bytes == 0 {
            return Err("policer: rate and burst must be above 0".into());
        }
    }
    let is_chain = |chain: &Bursts| {
        let all = [
            chain.to_bad_ppm,
            chain.to_good_ppm,
            chain.loss_bad_ppm,
            chain.loss_good_ppm,
        ];
        all.iter().all(|&ppm| ppm <= 1_000_000)
    };
    if plan.gemodel.as_ref().is_some_and(|chain| !is_chain(chain)) {
        return Err("gemodel: probabilities are at most 1000000 ppm".into());
    }
    Ok(())
}
