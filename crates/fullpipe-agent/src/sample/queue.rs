//! Queues, drops and marks, by netlink. Each request names a qdisc's handle: dumping all of them would cost
//! more than the traffic.

use std::fs::File;
use std::io;

use fullpipe_plan::QueueRow;

use super::proc_file::read_proc;
use crate::net::netlink::{attribute, u32_at, Message, ECHO};
use crate::net::qdisc::{marks, tcmsg};
use crate::net::{DirectionQueue, Node, Place, Topology};

/// TCA_STATS_* of linux/gen_stats.h
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_APP: u16 = 4;

/// Counters of one qdisc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) backlog_bytes: u64,
    pub(crate) backlog_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) dropped_packets: u64,
    pub(crate) marked_packets: u64,
}

/// Reads the queues of a path.
pub(crate) struct QueueMeter {
    /// With counters of the IP layer, where random marks are seen.
    directions: Vec<(DirectionQueue, Option<File>)>,
}

impl QueueMeter {
    pub(crate) fn new(topology: &Topology) -> Result<Self, String> {
        let mut directions = Vec::with_capacity(topology.directions.len());
        for direction in &topology.directions {
            let mut file = None;
            if let Some((node, _)) = direction.marks_seen_at {
                topology.nodes[node].enter()?;
                let path = "/proc/thread-self/net/netstat";
                file = Some(File::open(path).map_err(|error| format!("{path}: {error}"))?);
            }
            directions.push((direction.clone(), file));
        }
        Ok(Self { directions })
    }

    /// A row for each bottleneck.
    pub(crate) fn rows(
        &self,
        nodes: &mut [Node],
        t_us: u64,
        mut put: impl FnMut(QueueRow),
    ) -> Result<(), String> {
        for (direction, file) in &self.directions {
            let Some(place) = direction.queue else {
                continue;
            };
            let queue = counters(nodes, place)?;
            let mut lost = 0;
            for (netem, below) in &direction.losses {
                let below =
                    below.map_or(Ok(Counters::default()), |place| counters(nodes, place))?;
                let all = counters(nodes, *netem)?.dropped_packets;
                lost += all.saturating_sub(below.dropped_packets);
            }
            let mut marked = 0;
            if let (Some((_, with_queue)), Some(file)) = (direction.marks_seen_at, file) {
                let own = if with_queue { queue.marked_packets } else { 0 };
                let seen = ce_packets(file).map_err(|error| format!("netstat: {error}"))?;
                marked = seen.saturating_sub(own).min(lost);
            }
            put(QueueRow {
                t_us,
                queue: direction.name.clone(),
                queue_bytes: queue.backlog_bytes,
                queue_packets: queue.backlog_packets,
                sent_bytes: queue.sent_bytes,
                sent_packets: queue.sent_packets,
                dropped_packets: queue.dropped_packets,
                marked_packets: queue.marked_packets,
                random_lost_packets: lost - marked,
                random_marked_packets: marked,
            });
        }
        Ok(())
    }
}

/// Counters of a qdisc now.
pub(crate) fn counters(nodes: &mut [Node], place: Place) -> Result<Counters, String> {
    let fixed = tcmsg(place.port_index, place.handle, 0);
    let message = Message::request(libc::RTM_GETQDISC, ECHO, &fixed);
    let mut found = None;
    let node = &mut nodes[place.node];
    node.netlink
        .ask_for(message, |body| found = found.or_else(|| parse(body)))
        .map_err(|error| format!("{}: reading a qdisc: {error}", node.name))?;
    found.ok_or_else(|| format!("{}: a qdisc has no statistics", node.name))
}

fn parse(body: &[u8]) -> Option<Counters> {
    let attributes = body.get(20..)?;
    let stats = attribute(attributes, libc::TCA_STATS2)?;
    let basic = attribute(stats, STATS_BASIC)?;
    let queue = attribute(stats, STATS_QUEUE)?;
    let word = |index| u32_at(queue, index).map(u64::from);
    let kind = attribute(attributes, libc::TCA_KIND)?;
    let app = attribute(stats, STATS_APP);
    Some(Counters {
        sent_bytes: u64::from_ne_bytes(*basic.first_chunk()?),
        sent_packets: u64::from(u32_at(basic, 2)?),
        backlog_packets: word(0)?,
        backlog_bytes: word(1)?,
        dropped_packets: word(2)?,
        marked_packets: app.map_or(0, |app| marks(kind, app)),
    })
}

/// InCEPkts of the IpExt lines: a line of names and a line of values.
fn ce_packets(file: &File) -> io::Result<u64> {
    let text = read_proc(file)?;
    let mut lines = text.lines().filter(|line| line.starts_with("IpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return Ok(0);
    };
    let found = names
        .split(' ')
        .zip(values.split(' '))
        .find(|(name, _)| *name == "InCEPkts");
    Ok(found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0))
}
