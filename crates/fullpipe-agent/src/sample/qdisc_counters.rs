//! What a qdisc has counted, by netlink. Each request names its handle: dumping all qdiscs would cost more
//! than the traffic. It must never know what a counter means for a path.

use crate::net::netlink::{attribute, u32_at, Message, ECHO};
use crate::net::qdisc::{filtered, marks, tcmsg};
use crate::net::{LossPlace, Node, Place};

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
    pub(crate) filtered_packets: u64,
    pub(crate) marked_packets: u64,
    pub(crate) requeues: u64,
    pub(crate) overlimits: u64,
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

pub(super) fn parse(body: &[u8]) -> Option<Counters> {
    let attributes = body.get(20..)?;
    let stats = attribute(attributes, libc::TCA_STATS2)?;
    let basic = attribute(stats, STATS_BASIC)?;
    let queue = attribute(stats, STATS_QUEUE)?;
    let word = |index| u32_at(queue, index).map(u64::from);
    let kind = attribute(attributes, libc::TCA_KIND)?;
    let app = attribute(stats, STATS_APP);
    let filtered_packets = app.map_or(0, |app| filtered(kind, app));
    Some(Counters {
        sent_bytes: u64::from_ne_bytes(*basic.first_chunk()?),
        sent_packets: u64::from(u32_at(basic, 2)?),
        backlog_packets: word(0)?,
        backlog_bytes: word(1)?,
        // The kernel counts what it filters as drops too.
        dropped_packets: word(2)?.saturating_sub(filtered_packets),
        filtered_packets,
        marked_packets: app.map_or(0, |app| marks(kind, app)),
        requeues: word(3)?,
        overlimits: word(4)?,
    })
}

/// Packets dropped or filtered below a netem, which counts them too (qdisc_tree_reduce_backlog()).
pub(super) fn dropped_below(nodes: &mut [Node], place: LossPlace) -> Result<u64, String> {
    let below = place.below.map(|below| counters(nodes, below));
    let gone = |below: Counters| below.dropped_packets + below.filtered_packets;
    Ok(below.transpose()?.map_or(0, gone))
}
