//! The recording: counters of packets, and the rows of its tables. Must never know what causes them.

use fullpipe_cc::algorithm;
use fullpipe_net::{AnyLink, Direction, Link};
use fullpipe_plan::{
    CcRow, CcSamples, DatagramRow, EventRow, Flow, FlowDirection, FlowRow, FlowSampleRow,
    ObjectRow, PageRow, PingRow, Plan, QueueRow, Table, Tables, Text, TrafficRow, TrafficSampleRow,
};
use fullpipe_tcp::{Burst, Receiver, Sender, SenderEvent};
use fullpipe_workload::Datagram;

use crate::packet::{Body, InFlight};

/// Rows of a table that are passed on at a time.
const ROWS_AT_ONCE: usize = 1 << 14;

/// What becomes of packets; those in no count are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent by hosts.
    pub sent: u64,
    /// Delivered to hosts.
    pub delivered: u64,
    /// Dropped by queues, or lost by chance.
    pub lost: u64,
}

/// Takes rows of a table during a run.
pub(crate) type RowSink<'a> = &'a mut (dyn FnMut(Table) + Send);

/// The recording so far.
pub(crate) struct Record<'a> {
    plan: &'a Plan,
    tables: Tables,
    rows: Option<RowSink<'a>>,
    /// Of each link's queues.
    queue_names: Vec<[Text; 2]>,
    /// Requests of each probe.
    requests: Vec<u64>,
    /// Packets with data.
    pub(crate) data: Counts,
    /// Packets that open or close connections.
    pub(crate) control: Counts,
}

impl<'a> Record<'a> {
    pub(crate) fn new(plan: &'a Plan, rows: Option<RowSink<'a>>) -> Self {
        let mut cc_samples = CcSamples::default();
        for flow in &plan.flows {
            if let Some(algorithm) = flow.cc.algorithm.as_deref().and_then(algorithm) {
                cc_samples.declare(algorithm);
            }
        }
        let has_samples = plan.traffic.iter().any(|group| !group.samples.is_empty());
        Self {
            plan,
            tables: Tables {
                cc_samples,
                traffic: (!plan.traffic.is_empty()).then(Vec::new),
                traffic_samples: has_samples.then(Vec::new),
                page_loads: (!plan.pages.is_empty()).then(Vec::new),
                page_objects: (!plan.pages.is_empty()).then(Vec::new),
                datagrams: (!plan.datagrams.is_empty()).then(Vec::new),
                ..Tables::default()
            },
            rows,
            queue_names: plan.links.iter().map(|link| link.queue_names()).collect(),
            requests: vec![0; plan.probes.len()],
            data: Counts::default(),
            control: Counts::default(),
        }
    }

    /// The tables at the end of the run.
    pub(crate) fn into_tables(self) -> Tables {
        self.tables
    }

    pub(crate) fn count_sent(&mut self, body: &Body) {
        self.data.sent += u64::from(body.is_data());
        self.control.sent += u64::from(body.is_control());
    }

    pub(crate) fn count_burst(&mut self, burst: &Burst) {
        match burst.data.payload_bytes {
            0 => self.control.sent += u64::from(burst.count),
            _ => self.data.sent += u64::from(burst.count),
        }
    }

    /// A FIN without data was counted as delivered data.
    #[inline(never)] // one a connection
    pub(crate) fn recount_lone_fin(&mut self) {
        self.data.delivered -= 1;
        self.control.delivered += 1;
    }

    pub(crate) fn count_lost(&mut self, body: &Body) {
        self.data.lost += u64::from(body.is_data());
        self.control.lost += u64::from(body.is_control());
    }

    /// An event of a connection; only those of the plan's flows are recorded.
    pub(crate) fn event(&mut self, now_ns: u64, connection: usize, name: &'static str, value: u64) {
        if connection < self.plan.flows.len() {
            self.tables.events.push(EventRow {
                t_us: now_ns / 1000,
                flow_id: Some(connection as u64),
                event: name.into(),
                value,
            });
            pass_on(&mut self.rows, &mut self.tables.events, EventRow::table);
        }
    }

    /// Events of a sender, with its window as their value.
    pub(crate) fn sender_events(
        &mut self,
        now_ns: u64,
        connection: usize,
        cwnd: u32,
        events: impl Iterator<Item = SenderEvent>,
    ) {
        for event in events {
            self.event(now_ns, connection, event.name(), cwnd.into());
        }
    }

    /// A probe's request is sent; returns its row.
    pub(crate) fn probe_request(&mut self, now_ns: u64, probe: usize) -> u32 {
        let row = self.tables.ping_samples.len() as u32;
        self.tables.ping_samples.push(PingRow {
            t_us: now_ns / 1000,
            probe: self.plan.probes[probe].name.clone().into(),
            seq: self.requests[probe],
            rtt_us: None,
        });
        self.requests[probe] += 1;
        row
    }

    /// A reply to the request of a row arrived. Of copies the first one counts.
    pub(crate) fn probe_reply(&mut self, now_ns: u64, row: u32) {
        let row = &mut self.tables.ping_samples[row as usize];
        row.rtt_us.get_or_insert(now_ns / 1000 - row.t_us);
    }

    /// A datagram of a stream is sent; returns its row.
    pub(crate) fn datagram_sent(&mut self, now_ns: u64, stream: u32, datagram: &Datagram) -> u32 {
        let rows = self.tables.datagrams.get_or_insert_with(Vec::new);
        let row = rows.len() as u32;
        rows.push(DatagramRow {
            t_us: now_ns / 1000,
            stream_id: u64::from(stream),
            seq: datagram.seq,
            frame: datagram.frame,
            bytes: u64::from(datagram.bytes),
            delay_us: None,
        });
        row
    }

    /// The datagram of a row arrived. Of copies the first one counts.
    pub(crate) fn datagram_delivered(&mut self, now_ns: u64, row: u32) {
        let rows = self.tables.datagrams.as_mut();
        if let Some(row) = rows.and_then(|rows| rows.get_mut(row as usize)) {
            row.delay_us.get_or_insert(now_ns / 1000 - row.t_us);
        }
    }

    /// Finished loads of a page, and their objects.
    pub(crate) fn page_rows(&mut self, (loads, objects): (Vec<PageRow>, Vec<ObjectRow>)) {
        let tables = &mut self.tables;
        tables.page_loads.get_or_insert_with(Vec::new).extend(loads);
        tables
            .page_objects
            .get_or_insert_with(Vec::new)
            .extend(objects);
    }

    /// A flow of a traffic group ended.
    pub(crate) fn traffic_row(&mut self, row: TrafficRow) {
        let rows = self.tables.traffic.get_or_insert_with(Vec::new);
        rows.push(row);
        pass_on(&mut self.rows, rows, TrafficRow::table);
    }

    /// A sample of a flow of a traffic group.
    pub(crate) fn traffic_sample(
        &mut self,
        now_ns: u64,
        (group, number): (u32, u64),
        sender: &Sender,
        receiver: &Receiver,
    ) {
        let sample = flow_sample(now_ns, 0, sender, receiver);
        let row = TrafficSampleRow::of(u64::from(group), number, &sample);
        let rows = self.tables.traffic_samples.get_or_insert_with(Vec::new);
        rows.push(row);
        pass_on(&mut self.rows, rows, TrafficSampleRow::table);
    }

    /// A sample of a flow of the plan, and of its algorithm.
    pub(crate) fn flow_sample(
        &mut self,
        now_ns: u64,
        flow: usize,
        sender: &Sender,
        receiver: &Receiver,
    ) {
        let row = flow_sample(now_ns, flow as u64, sender, receiver);
        self.tables.flow_samples.push(row);
        pass_on(
            &mut self.rows,
            &mut self.tables.flow_samples,
            FlowSampleRow::table,
        );
        if sender.is_established() {
            let samples = &mut self.tables.cc_samples;
            samples.push(now_ns / 1000, flow as u64, sender.controller());
            self.pass_on_cc();
        }
    }

    /// A sample of a flow of another transport than TCP, and of its congestion control.
    pub(crate) fn opaque_sample(&mut self, row: FlowSampleRow, cc: CcRow) {
        let tells = !cc.phase.is_empty() || cc.bw_bps.is_some();
        self.tables.flow_samples.push(row);
        pass_on(
            &mut self.rows,
            &mut self.tables.flow_samples,
            FlowSampleRow::table,
        );
        if tells {
            self.tables.cc_samples.push_row(cc);
            self.pass_on_cc();
        }
    }

    fn pass_on_cc(&mut self) {
        let samples = &mut self.tables.cc_samples;
        if let Some(take) = self.rows.as_mut().filter(|_| samples.len() >= ROWS_AT_ONCE) {
            take(samples.table());
            samples.clear();
        }
    }

    /// Samples of all queues. `at_hosts` are packets lost and marked at the hosts in both directions, which
    /// count for the first link.
    pub(crate) fn queue_samples(
        &mut self,
        now_ns: u64,
        links: &[AnyLink<InFlight>],
        at_hosts: [(u64, u64); 2],
    ) {
        let mut at_hosts = Some(at_hosts);
        for (names, link) in self.queue_names.iter().zip(links) {
            let extra = at_hosts.take().unwrap_or_default();
            for direction in Direction::BOTH {
                let Some(state) = link.state(direction) else {
                    continue;
                };
                let (lost, marked) = extra[direction.index()];
                self.tables.queue_samples.push(QueueRow {
                    t_us: now_ns / 1000,
                    queue: names[direction.index()].clone(),
                    queue_bytes: state.queue_bytes,
                    queue_packets: state.queue_packets,
                    sent_bytes: state.counters.sent_bytes,
                    sent_packets: state.counters.sent_packets,
                    dropped_packets: state.counters.dropped_packets,
                    filtered_packets: state.counters.filtered_packets,
                    marked_packets: state.counters.marked_packets,
                    random_lost_packets: state.lost_packets + lost,
                    random_marked_packets: state.marked_packets + marked,
                });
            }
        }
        pass_on(
            &mut self.rows,
            &mut self.tables.queue_samples,
            QueueRow::table,
        );
    }

    /// The totals of a flow of another transport than TCP.
    pub(crate) fn opaque_row(&mut self, row: FlowRow) {
        self.tables.flows.push(row);
    }

    /// The totals of a flow of the plan.
    pub(crate) fn flow_row(
        &mut self,
        id: usize,
        completion_us: Option<u64>,
        sender: &Sender,
        receiver: &Receiver,
    ) {
        let flow = &self.plan.flows[id];
        let base_rtt_us = self.plan.base_rtt_ns(flow) / 1000;
        let row = flow_row(
            id as u64,
            flow,
            base_rtt_us,
            completion_us,
            sender,
            receiver,
        );
        self.tables.flows.push(row);
    }
}

/// Passes the rows of a table on where they are many, so that memory does not grow with time. Rows of
/// probes and datagrams stay: their answers are filled in later.
fn pass_on<R>(sink: &mut Option<RowSink<'_>>, rows: &mut Vec<R>, table: fn(&[R]) -> Table) {
    if rows.len() >= ROWS_AT_ONCE {
        if let Some(take) = sink {
            take(table(rows));
            rows.clear();
        }
    }
}

fn flow_sample(now_ns: u64, id: u64, sender: &Sender, receiver: &Receiver) -> FlowSampleRow {
    let totals = sender.totals();
    let (delivered, delivered_ce) = sender.delivered();
    FlowSampleRow {
        t_us: now_ns / 1000,
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

fn flow_row(
    id: u64,
    flow: &Flow,
    base_rtt_us: u64,
    completion_us: Option<u64>,
    sender: &Sender,
    receiver: &Receiver,
) -> FlowRow {
    let totals = sender.totals();
    let (delivered, delivered_ce) = sender.delivered();
    let direction = match flow.direction {
        FlowDirection::Up => "up",
        FlowDirection::Down => "down",
    };
    FlowRow {
        flow_id: id,
        flow: flow.name.clone().into(),
        cc: flow.cc.name.clone().into(),
        direction: direction.into(),
        start_us: flow.start_ns / 1000,
        completion_us,
        bytes_delivered: receiver.delivered_bytes(),
        bytes_acked: sender.acked_bytes(),
        packets_sent: totals.packets_sent,
        packets_retransmitted: totals.packets_retransmitted,
        packets_lost: totals.packets_lost,
        packets_delivered: u64::from(delivered),
        packets_delivered_ce: u64::from(delivered_ce),
        recoveries: Some(totals.recoveries),
        timeouts: totals.timeouts,
        undos: Some(totals.undos),
        base_rtt_us,
        mss_bytes: u64::from(sender.mss_bytes()),
    }
}
