//! The tables of a recording. Engines push rows; Python receives columns and writes Parquet.

use crate::cc_row::CcSamples;
use crate::rows::{
    CpuRow, DatagramRow, EventRow, FlowRow, FlowSampleRow, NicRow, ObjectRow, PageRow, PingRow,
    QueueRow, Table, TcpMemoryRow, TrafficRow, TrafficSampleRow,
};

/// All rows of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// One row a flow.
    pub flows: Vec<FlowRow>,
    /// Flow samples in the order of time, then flow.
    pub flow_samples: Vec<FlowSampleRow>,
    /// Queue samples.
    pub queue_samples: Vec<QueueRow>,
    /// Probe answers in the order of sending.
    pub ping_samples: Vec<PingRow>,
    /// Algorithm samples.
    pub cc_samples: CcSamples,
    /// Events in the order of time.
    pub events: Vec<EventRow>,
    /// Flows of traffic in the order of their ends; `None`: the plan has no traffic.
    pub traffic: Option<Vec<TrafficRow>>,
    /// Samples of the selected traffic flows, in the order of time; `None`: none is selected.
    pub traffic_samples: Option<Vec<TrafficSampleRow>>,
    /// Loads of pages in the order of their ends; `None`: the plan has no page.
    pub page_loads: Option<Vec<PageRow>>,
    /// Their objects; `None`: the plan has no page.
    pub page_objects: Option<Vec<ObjectRow>>,
    /// Datagrams in the order of sending; `None`: the plan has no stream of them.
    pub datagrams: Option<Vec<DatagramRow>>,
    /// Processors; `None`: the engine has none, as for the next two.
    pub cpu_samples: Option<Vec<CpuRow>>,
    /// Ports of hosts.
    pub nic_samples: Option<Vec<NicRow>>,
    /// Memory of TCP.
    pub tcp_memory_samples: Option<Vec<TcpMemoryRow>>,
}

impl Tables {
    /// The tables as columns, in a fixed order; each one's rows are freed before the next is made.
    pub fn into_columns(self) -> impl Iterator<Item = Table> {
        let makers: [Box<dyn FnOnce() -> Table>; 6] = [
            Box::new(move || FlowRow::table(&self.flows)),
            Box::new(move || FlowSampleRow::table(&self.flow_samples)),
            Box::new(move || QueueRow::table(&self.queue_samples)),
            Box::new(move || PingRow::table(&self.ping_samples)),
            Box::new(move || self.cc_samples.table()),
            Box::new(move || EventRow::table(&self.events)),
        ];
        let own = [
            self.traffic.map(|rows| TrafficRow::table(&rows)),
            self.traffic_samples
                .map(|rows| TrafficSampleRow::table(&rows)),
            self.page_loads.map(|rows| PageRow::table(&rows)),
            self.page_objects.map(|rows| ObjectRow::table(&rows)),
            self.datagrams.map(|rows| DatagramRow::table(&rows)),
            self.cpu_samples.map(|rows| CpuRow::table(&rows)),
            self.nic_samples.map(|rows| NicRow::table(&rows)),
            self.tcp_memory_samples
                .map(|rows| TcpMemoryRow::table(&rows)),
        ];
        let own = own.into_iter().flatten();
        makers.into_iter().map(|make| make()).chain(own)
    }
}
