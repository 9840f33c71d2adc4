//! What else a link does to packets besides delaying and queueing them.

use serde::{Deserialize, Serialize};

/// Damage of one way of a wire; `None`: none of that kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Damage {
    /// Loss in bursts, before the queue.
    pub gemodel: Option<GilbertElliott>,
    /// Packets that come twice, before the queue.
    pub duplicate: Option<Chance>,
    /// A limit without a queue, before the queue.
    pub policer: Option<Policer>,
    /// Packets that wait for one another, behind the queue.
    pub hold: Option<Hold>,
    /// picoquic's model of Wi-Fi: the mean of its extra delay, about.
    pub wifi_jitter_ns: Option<u64>,
    /// Packets that are not delayed, and so overtake others.
    pub reorder: Option<Reorder>,
}

/// A two-state chain of loss (Gilbert 1960, Elliott 1963) as netem has it (`loss gemodel`).
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// From good to bad with each packet, parts per million: netem's p.
    pub to_bad_ppm: u32,
    /// From bad to good: r.
    pub to_good_ppm: u32,
    /// Loss while bad: 1-h.
    pub loss_bad_ppm: u32,
    /// Loss while good: 1-k.
    pub loss_good_ppm: u32,
}

/// netem's correlated chance.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    /// Probability, parts per million.
    pub probability_ppm: u32,
    /// Correlation of successive draws, parts per million; 0: independent.
    pub correlation_ppm: u32,
}

/// A token bucket that drops what finds too few tokens (act_police.c).
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// At which tokens come.
    pub rate_bps: u64,
    /// Most that gather.
    pub burst_bytes: u64,
}

/// Packets leave together: when the first of them has waited so long, or when so many wait.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// How long the first one waits.
    pub time_ns: u64,
    /// How many wait at most; `None`: any number.
    pub packets: Option<u32>,
}

/// netem's reordering: of every `gap` packets one may leave without its delay.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// The chance of that packet.
    pub chance: Chance,
    /// 1: every packet may.
    pub gap: u32,
}

/// Random loss as netem defines it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Probability, parts per million.
    pub probability_ppm: u32,
    /// netem's correlation of successive draws, parts per million; 0: independent.
    pub correlation_ppm: u32,
    /// Mark CE instead of dropping where the packet can carry it (netem `ecn`).
    pub ecn: bool,
    /// One draw for a whole burst, as netem at a sender's own egress, which sees GSO packets
    /// before they are cut.
    pub per_burst: bool,
}

/// Random extra delay that never reorders.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// How the delay is drawn.
    pub shape: JitterShape,
    /// Its largest value: uniform over 0..=max.
    pub max_ns: u64,
}

/// bless2025 section V.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum JitterShape {
    /// Each packet draws its own delay; it leaves no earlier than the packet before it.
    PerPacket,
    /// A slot draws a delay when its first packet arrives; packets that arrive while the slot
    /// waits or is used leave with it, at once.
    Slotted,
}
