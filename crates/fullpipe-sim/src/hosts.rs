//! What the hosts at the ends have in common: by which numbers the network knows whom, the packets that
//! carry those, probes, and what is noted of them. What they send is in `sending.rs`, what reaches them
//! in `arriving.rs`; never where a packet goes once it has entered the row.

use std::io;

use fullpipe_net::Direction;
use fullpipe_plan::PingRow;

use crate::events::Event;
use crate::packet::{Body, InFlight};
use crate::pcap::PcapWriter;
use crate::recorder;
use crate::run::Simulation;

impl Simulation<'_> {
    /// Number by which the network knows a connection: the plan's flows, all that are none, and
    /// behind them the connections that are opened later.
    pub(crate) fn owner(&self, flow: usize) -> usize {
        if flow < self.plan.flows.len() {
            flow
        } else {
            flow + self.others()
        }
    }

    /// The connection of an owner that is one.
    pub(crate) fn place(&self, owner: u32) -> usize {
        let owner = owner as usize;
        if owner < self.plan.flows.len() {
            owner
        } else {
            owner - self.others()
        }
    }

    /// Owners that are no connections.
    fn others(&self) -> usize {
        self.plan.probes.len() + self.plan.pages.len() + self.plan.datagrams.len()
    }

    pub(crate) fn packet(&self, flow: usize, direction: Direction, body: Body) -> InFlight {
        self.packet_of(self.owner(flow), direction, body)
    }

    pub(crate) fn packet_of(&self, owner: usize, direction: Direction, body: Body) -> InFlight {
        InFlight {
            owner: owner as u32,
            label: self.labels[owner].towards(direction),
            body,
        }
    }

    pub(crate) fn probe(&mut self, probe: usize) {
        let plan = &self.plan.probes[probe];
        let row = self.tables.ping_samples.len() as u32;
        self.tables.ping_samples.push(PingRow {
            t_us: self.now_ns / 1000,
            probe: plan.name.clone().into(),
            seq: self.probe_counts[probe],
            rtt_us: None,
        });
        self.probe_counts[probe] += 1;
        self.agenda
            .schedule(self.now_ns + plan.interval_ns, Event::Probe(probe as u32));
        let owner = self.plan.flows.len() + probe;
        let request = self.packet_of(owner, Direction::Forward, Body::Probe { row });
        self.enter_row(Direction::Forward, &request);
    }

    /// Something of one of the plan's own flows is noted.
    pub(crate) fn note(&mut self, flow: usize, event: &'static str, value: u64) {
        if flow < self.plan.flows.len() {
            let row = recorder::event_row(self.now_ns, flow, event, value);
            self.tables.events.push(row);
        }
    }

    pub(crate) fn capture(&mut self, write: impl FnOnce(&mut PcapWriter) -> io::Result<()>) {
        if let Some(pcap) = &mut self.pcap {
            if let Err(error) = write(pcap) {
                self.pcap_error = Some(error);
                self.pcap = None;
            }
        }
    }
}
