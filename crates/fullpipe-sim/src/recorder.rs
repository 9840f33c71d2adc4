//! Rows of a recording from the state of the simulation.

use fullpipe_net::{AnyLink, Direction, Link};
use fullpipe_plan::{EventRow, Flow, FlowDirection, FlowRow, FlowSampleRow, QueueRow, Text};
use fullpipe_tcp::{Receiver, Sender};

use crate::ends::Egress;
use crate::packet::InFlight;

pub(crate) fn flow_sample(
    t_us: u64,
    id: u64,
    sender: &Sender,
    receiver: &Receiver,
) -> FlowSampleRow {
    let totals = sender.totals();
    let (delivered, delivered_ce) = sender.delivered();
    FlowSampleRow {
        t_us,
        flow_id: id,
        bytes_delivered: receiver.delivered_bytes(),
        bytes_acked: sender.acked_bytes(),
        cwnd_packets: u64::from(sender.cwnd()),
        ssthresh_packets: sender.ssthresh().map(u64::from),
        inflight_packets: u64::from(sender.inflight()),
        srtt_us: Some(u64::from(sender.srtt_us())).filter(|&us| us > 0),
        min_rtt_us: sender.min_rtt_us().map(u64::from),
        pacing_rate_bps: sender.pacing_rate().map(|rate| rate * 8),
        delivery_rate_bps: sender.delivery_rate_bps(),
        packets_sent: totals.packets_sent,
        packets_retransmitted: totals.packets_retransmitted,
        packets_lost: totals.packets_lost,
        packets_delivered: u64::from(delivered),
        packets_delivered_ce: u64::from(delivered_ce),
        receive_window_bytes: receiver.window_bytes(),
        ca_state: sender.ca_state() as u64,
    }
}

/// The rows of one link's two ways; `egress` is what the hosts themselves lost and marked.
pub(crate) fn queue_samples<'a>(
    t_us: u64,
    names: &'a [Text; 2],
    link: &'a AnyLink<InFlight>,
    egress: Option<&'a Egress>,
) -> impl Iterator<Item = QueueRow> + 'a {
    Direction::BOTH.into_iter().filter_map(move |direction| {
        let state = link.state(direction)?;
        let (lost, marked) = egress.map_or((0, 0), |egress| egress.totals(direction));
        Some(QueueRow {
            t_us,
            queue: names[direction.index()].clone(),
            queue_bytes: state.queue_bytes,
            queue_packets: state.queue_packets,
            sent_bytes: state.counters.sent_bytes,
            sent_packets: state.counters.sent_packets,
            dropped_packets: state.counters.dropped_packets,
            marked_packets: state.counters.marked_packets,
            random_lost_packets: state.lost_packets + lost,
            random_marked_packets: state.marked_packets + marked,
        })
    })
}

pub(crate) fn flow_row(
    flow_id: u64,
    flow: &Flow,
    base_rtt_us: u64,
    completion_us: Option<u64>,
    sender: &Sender,
    receiver: &Receiver,
) -> FlowRow {
    let totals = sender.totals();
    let (delivered, delivered_ce) = sender.delivered();
    FlowRow {
        flow_id,
        flow: flow.name.clone().into(),
        cc: flow.cc.name.clone().into(),
        direction: if flow.direction == FlowDirection::Up {
            "up"
        } else {
            "down"
        }
        .into(),
        start_us: flow.start_ns / 1000,
        completion_us,
        bytes_delivered: receiver.delivered_bytes(),
        bytes_acked: sender.acked_bytes(),
        packets_sent: totals.packets_sent,
        packets_retransmitted: totals.packets_retransmitted,
        packets_lost: totals.packets_lost,
        packets_delivered: u64::from(delivered),
        packets_delivered_ce: u64::from(delivered_ce),
        recoveries: totals.recoveries,
        timeouts: totals.timeouts,
        undos: totals.undos,
        base_rtt_us,
        mss_bytes: u64::from(sender.mss_bytes()),
    }
}

pub(crate) fn event_row(now_ns: u64, flow: usize, event: &'static str, value: u64) -> EventRow {
    EventRow {
        t_us: now_ns / 1000,
        flow_id: Some(flow as u64),
        event: event.into(),
        value,
    }
}
