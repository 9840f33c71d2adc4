//! Packets lost at the port of a host that sends bursts. netem sees a burst as one packet there and counts
//! it as one, so they are what the host's transports sent, less what passed netem and what waits. It must
//! never know what else happens to packets.

use super::protocols::Protocols;
use super::qdisc_counters::{counters, dropped_below};
use crate::net::{LossPlace, Node};

const ETHERNET_BYTES: u32 = 14;
/// What transports send, in packets: TCP counts segments, and repeated ones apart.
const SENT: [(&str, &str); 4] = [
    ("Tcp", "OutSegs"),
    ("Tcp", "RetransSegs"),
    ("Udp", "OutDatagrams"),
    ("Icmp", "OutMsgs"),
];

/// Readings for one sample, at most. A host at 1 Gbit/s sends a burst about every 100 us, and a reading
/// takes a part of that.
const READINGS_MAX: usize = 8;

/// Counts them. ARP's requests (`host.arp`) pass netem and no transport sent them: each makes the count
/// one less.
pub(super) struct BurstLoss {
    place: LossPlace,
    transports: Protocols,
    /// Of a full packet, with its link header.
    frame_bytes: u64,
    lost_packets: u64,
}

impl BurstLoss {
    pub(super) fn new(place: LossPlace, nodes: &[Node], mtu_bytes: u32) -> Result<Self, String> {
        Ok(Self {
            place,
            transports: Protocols::open(&nodes[place.netem.node])?,
            frame_bytes: u64::from(mtu_bytes + ETHERNET_BYTES),
            lost_packets: 0,
        })
    }

    /// Packets lost so far.
    pub(super) fn packets(&mut self, nodes: &mut [Node]) -> Result<u64, String> {
        let mut sent = self.sent()?;
        for _ in 0..READINGS_MAX {
            let elsewhere = self.elsewhere(nodes)?;
            // Too few where packets were sent meanwhile: they are elsewhere, but not in `sent`.
            self.lost_packets = self.lost_packets.max(sent.saturating_sub(elsewhere));
            let sent_before = sent;
            sent = self.sent()?;
            if sent == sent_before {
                break;
            }
        }
        Ok(self.lost_packets)
    }

    /// Packets that the transports have sent.
    fn sent(&self) -> Result<u64, String> {
        let counts = self.transports.read()?;
        Ok(SENT.iter().map(|(of, name)| counts.of(of, name)).sum())
    }

    /// Packets that netem did not lose.
    fn elsewhere(&self, nodes: &mut [Node]) -> Result<u64, String> {
        let netem = counters(nodes, self.place.netem)?;
        // Bursts wait uncut: how many packets they are is known from their bytes.
        let waiting = netem.backlog_bytes.div_ceil(self.frame_bytes);
        let waiting = waiting.max(netem.backlog_packets);
        Ok(netem.sent_packets + waiting + dropped_below(nodes, self.place)?)
    }
}
