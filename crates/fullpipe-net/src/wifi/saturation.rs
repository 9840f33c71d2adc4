//! A channel with background traffic only: the throughput of saturated stations.

use serde::Serialize;

use super::params::Wifi;
use super::state::Channel;
use super::station::Totals;
use crate::packet::{Ecn, Packet};

/// Traffic from or to one station in one category during the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Index of the station in the plan.
    pub station: usize,
    /// From the station to the access point.
    pub up: bool,
    /// 0 BK, 1 BE, 2 VI, 3 VO.
    pub category: u8,
    /// Its totals.
    #[serde(flatten)]
    pub totals: Totals,
}

/// The packet type of a channel that has background traffic only.
#[derive(Clone, Copy, Debug)]
struct Never {}

impl Packet for Never {
    fn wire_bytes(&self) -> u32 {
        0
    }

    fn flow_key(&self) -> u32 {
        0
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn mark_ce(&mut self) {}
}

/// Runs the background traffic of `wifi` and returns the traffic between `from_ns` and `to_ns`, one entry for
/// each source.
pub fn saturation(wifi: &Wifi, seed: u64, from_ns: u64, to_ns: u64) -> Result<Vec<Share>, String> {
    let mut channel = Channel::<Never>::new(wifi, seed)?;
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    channel.advance(from_ns, &mut delivered, &mut dropped);
    let before = shares(wifi, &channel);
    channel.advance(to_ns, &mut delivered, &mut dropped);
    let mut after = shares(wifi, &channel);
    for (now, then) in after.iter_mut().zip(&before) {
        now.totals = now.totals.since(&then.totals);
    }
    Ok(after)
}

fn shares(wifi: &Wifi, channel: &Channel<Never>) -> Vec<Share> {
    let stations = wifi.stations.iter().enumerate();
    let all = stations.flat_map(|(station, plan)| {
        plan.background.iter().map(move |background| Share {
            station,
            up: background.up,
            category: background.category,
            totals: channel.totals(station, background.up, usize::from(background.category)),
        })
    });
    all.collect()
}
