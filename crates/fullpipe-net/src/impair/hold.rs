//! Packets that leave in groups, as behind a receiver that aggregates ACKs or a slotted medium.

use serde::{Deserialize, Serialize};

/// A group leaves when its first packet has waited so long, or when it has so many packets.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// How long the first packet waits.
    pub time_ns: u64,
    /// Most packets of a group; `None`: any number.
    pub packets: Option<u32>,
}

/// The group that is waiting.
#[derive(Clone, Debug)]
pub struct Hold<P> {
    time_ns: u64,
    most: usize,
    waiting: Vec<P>,
    due_ns: Option<u64>,
}

impl<P> Hold<P> {
    /// No packets wait yet.
    pub fn new(params: &Params) -> Self {
        Self {
            time_ns: params.time_ns,
            most: params
                .packets
                .map_or(usize::MAX, |packets| packets.max(1) as usize),
            waiting: Vec::with_capacity(64),
            due_ns: None,
        }
    }

    /// Adds a packet. The first one determines when the group leaves; one that completes the group
    /// releases it now.
    pub fn put(&mut self, now_ns: u64, packet: P) {
        self.due_ns = self.due_ns.or(Some(now_ns + self.time_ns));
        self.waiting.push(packet);
        if self.waiting.len() >= self.most {
            self.due_ns = Some(now_ns);
        }
    }

    /// The packets that leave now, in their order.
    pub fn release(&mut self, now_ns: u64) -> impl Iterator<Item = P> + '_ {
        let is_due = self.due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        if is_due {
            self.due_ns = None;
        }
        let end = if is_due { self.waiting.len() } else { 0 };
        self.waiting.drain(..end)
    }

    /// When the group leaves; `None`: no packet waits.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Packets waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
