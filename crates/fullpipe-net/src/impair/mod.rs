//! Impairments: what one direction of a wire does to packets besides queueing and delaying them.
//! Duplication and policing come before its queue, holding, extra delay and reordering behind it.
//! Random loss is the direction's own.

pub mod crandom;
pub mod delay_limit;
pub mod gilbert;
pub mod hold;
pub mod jitter;
pub mod loss;
pub mod netem_jitter;
pub mod policer;
pub mod reorder;
#[cfg(test)]
mod tests;
pub mod wifi_jitter;

use serde::{Deserialize, Serialize};

use self::crandom::Chance;
use self::delay_limit::DelayLimit;
use self::hold::Hold;
use self::netem_jitter::NetemJitter;
use self::policer::Policer;
use self::reorder::Reorder;
use self::wifi_jitter::WifiJitter;
use crate::rng::{derive_seed, purpose};

/// Impairments of one direction of a wire; `None`: none of that kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Loss in bursts, before the queue.
    pub gemodel: Option<gilbert::Params>,
    /// Duplication of packets, before the queue.
    pub duplicate: Option<crandom::Params>,
    /// A rate limit without a queue, before the queue.
    pub policer: Option<policer::Params>,
    /// Packets that leave in groups, behind the queue.
    pub hold: Option<hold::Params>,
    /// picoquic's model of Wi-Fi: the approximate mean of its extra delay.
    pub wifi_jitter_ns: Option<u64>,
    /// Packets that are not delayed, and so overtake others.
    pub reorder: Option<reorder::Params>,
    /// Most packets that the delay holds: netem's limit. `None`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_limit_packets: Option<u32>,
    /// netem's random part of the delay, which reorders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem_jitter: Option<netem_jitter::Params>,
}

impl Params {
    fn check(&self) -> Result<(), String> {
        if let Some(policer) = &self.policer {
            policer.check()?;
        }
        if let Some(jitter) = &self.netem_jitter {
            jitter.check()?;
        }
        match &self.gemodel {
            Some(chain) => chain.check(),
            None => Ok(()),
        }
    }
}

/// The impairments that a plan asks for, but for loss.
#[derive(Debug)]
pub(crate) struct Impairments<P> {
    duplicate: Option<Chance>,
    pub(crate) policer: Option<Policer>,
    pub(crate) hold: Option<Hold<P>>,
    jitter: Option<WifiJitter>,
    reorder: Option<Reorder>,
    netem_jitter: Option<NetemJitter>,
    pub(crate) delay_limit: Option<DelayLimit>,
    /// When the last packet that did not overtake others reaches the far end.
    last_exit_ns: u64,
}

impl<P> Impairments<P> {
    /// Those of the direction with this index; `None`: the plan asks for none.
    pub(crate) fn new(params: &Params, seed: u64, index: u32) -> Result<Option<Self>, String> {
        params.check()?;
        let seed = |purpose| derive_seed(seed, purpose, index);
        let impairments = Self {
            duplicate: (params.duplicate.as_ref())
                .map(|params| Chance::new(params, seed(purpose::DUPLICATE))),
            policer: params.policer.as_ref().map(Policer::new),
            hold: params.hold.as_ref().map(Hold::new),
            jitter: (params.wifi_jitter_ns)
                .map(|mean_ns| WifiJitter::new(mean_ns, seed(purpose::WIFI_JITTER))),
            reorder: (params.reorder.as_ref())
                .map(|params| Reorder::new(params, seed(purpose::REORDER))),
            netem_jitter: (params.netem_jitter.as_ref())
                .map(|params| NetemJitter::new(params, seed(purpose::NETEM_JITTER))),
            delay_limit: params.delay_limit_packets.map(DelayLimit::new),
            last_exit_ns: 0,
        };
        let is_any = impairments.duplicate.is_some()
            || impairments.policer.is_some()
            || impairments.hold.is_some()
            || impairments.jitter.is_some()
            || impairments.reorder.is_some()
            || impairments.netem_jitter.is_some()
            || impairments.delay_limit.is_some();
        Ok(is_any.then_some(impairments))
    }

    /// Whether the next packet is duplicated.
    pub(crate) fn duplicates(&mut self) -> bool {
        self.duplicate.as_mut().is_some_and(Chance::happens)
    }

    /// When a packet that would reach the far end at `at_ns` does; `None`: the delay holds no more packets
    /// and drops it.
    pub(crate) fn exit_ns(&mut self, now_ns: u64, at_ns: u64) -> Option<u64> {
        let Some(mut limit) = self.delay_limit.take() else {
            return Some(self.delayed_ns(now_ns, at_ns));
        };
        let exit_ns = limit
            .has_room(now_ns)
            .then(|| self.delayed_ns(now_ns, at_ns));
        if let Some(exit_ns) = exit_ns {
            limit.hold(now_ns, exit_ns);
        }
        self.delay_limit = Some(limit);
        exit_ns
    }

    /// The same without a limit: later by its extra delay and not before the packets ahead of it, or now
    /// if it overtakes them. netem's jitter keeps no order.
    fn delayed_ns(&mut self, now_ns: u64, at_ns: u64) -> u64 {
        if self.reorder.as_mut().is_some_and(Reorder::skips_delay) {
            return now_ns;
        }
        if let Some(jitter) = &mut self.netem_jitter {
            // A packet whose delay would be negative leaves at once.
            return at_ns.saturating_add_signed(jitter.next_ns()).max(now_ns);
        }
        let extra_ns = self.jitter.as_mut().map_or(0, WifiJitter::next_ns);
        self.last_exit_ns = self.last_exit_ns.max(at_ns + extra_ns);
        self.last_exit_ns
    }
}
