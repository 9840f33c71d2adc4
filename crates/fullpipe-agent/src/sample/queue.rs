//! Queues, drops and marks of a path's bottlenecks.

use fullpipe_plan::QueueRow;

use super::burst_loss::BurstLoss;
use super::protocols::Protocols;
use super::qdisc_counters::{counters, dropped_below};
use crate::net::{DirectionQueue, LossPlace, Node, Topology};

/// Reads the queues of a path.
pub(crate) struct QueueMeter {
    directions: Vec<Metered>,
}

/// What is read of a direction.
struct Metered {
    direction: DirectionQueue,
    /// Counters of the IP layer where random marks are seen.
    marks: Option<Protocols>,
    burst_losses: Vec<BurstLoss>,
}

impl QueueMeter {
    pub(crate) fn new(topology: &Topology, mtu_bytes: u32) -> Result<Self, String> {
        let nodes = &topology.nodes;
        let mut directions = Vec::with_capacity(topology.directions.len());
        for direction in &topology.directions {
            let marks = direction
                .marks_seen
                .map(|seen| Protocols::open_extensions(&nodes[seen.node]));
            let of_bursts = direction.losses.iter().filter(|place| place.is_of_bursts);
            directions.push(Metered {
                direction: direction.clone(),
                marks: marks.transpose()?,
                burst_losses: of_bursts
                    .map(|place| BurstLoss::new(*place, nodes, mtu_bytes))
                    .collect::<Result<_, _>>()?,
            });
        }
        Ok(Self { directions })
    }

    /// A row for each bottleneck.
    pub(crate) fn rows(
        &mut self,
        nodes: &mut [Node],
        t_us: u64,
        mut put: impl FnMut(QueueRow),
    ) -> Result<(), String> {
        // Marks are read before the queues whose own are subtracted.
        let mut marks_seen = Vec::with_capacity(self.directions.len());
        for metered in &self.directions {
            let counts = metered.marks.as_ref().map(Protocols::read).transpose()?;
            marks_seen.push(counts.map_or(0, |counts| counts.of("IpExt", "InCEPkts")));
        }
        let mut queues = Vec::with_capacity(self.directions.len());
        for metered in &self.directions {
            let place = metered.direction.queue;
            queues.push(place.map(|place| counters(nodes, place)).transpose()?);
        }
        for (index, metered) in self.directions.iter_mut().enumerate() {
            let Some(queue) = queues[index] else {
                continue;
            };
            let direction = &metered.direction;
            let marked = direction.marks_seen.map_or(0, |seen| {
                let of_queue = queues[seen.with_queue_of].map_or(0, |queue| queue.marked_packets);
                marks_seen[index].saturating_sub(of_queue)
            });
            let mut lost_or_marked = 0;
            for place in direction.losses.iter().filter(|place| !place.is_of_bursts) {
                lost_or_marked += netem_drops(nodes, *place)?;
            }
            let mut lost = lost_or_marked.saturating_sub(marked);
            for burst_loss in &mut metered.burst_losses {
                lost += burst_loss.packets(nodes)?;
            }
            let policed = direction.policed.map(|place| counters(nodes, place));
            // The policer's discipline counts what the queue drops or filters, too.
            let dropped_packets = policed.transpose()?.map_or(queue.dropped_packets, |all| {
                (all.dropped_packets).saturating_sub(queue.filtered_packets)
            });
            let beyond = direction.limited.map(|place| counters(nodes, place));
            let beyond = beyond.transpose()?.map_or(0, |netem| netem.dropped_packets);
            put(QueueRow {
                t_us,
                queue: direction.name.clone(),
                queue_bytes: queue.backlog_bytes,
                queue_packets: queue.backlog_packets,
                sent_bytes: queue.sent_bytes,
                sent_packets: queue.sent_packets,
                dropped_packets: dropped_packets + beyond,
                filtered_packets: queue.filtered_packets,
                marked_packets: queue.marked_packets,
                random_lost_packets: lost,
                random_marked_packets: marked,
            });
        }
        Ok(())
    }
}

/// What netem lost or marked; it counts what is dropped below it too.
fn netem_drops(nodes: &mut [Node], place: LossPlace) -> Result<u64, String> {
    let all = counters(nodes, place.netem)?.dropped_packets;
    Ok(all.saturating_sub(dropped_below(nodes, place)?))
}
