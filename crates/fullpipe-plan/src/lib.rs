//! What every engine is given and what every engine returns.
//!
//! A [`Plan`] is a scenario with all units resolved to integers and all defaults filled in; the
//! Python front end writes it as JSON, so that units are parsed in one place. [`Tables`] are the
//! columns of a recording; Python turns them into Parquet. This crate must never know how a plan
//! is run.

mod applications;
pub mod calls;
mod cc_row;
mod flow;
mod host;
mod links;
mod plan;
mod probe;
mod route;
mod rows;
pub mod stream;
mod sysctl;
mod tables;
mod traffic;

pub use applications::{Datagrams, Lookup, Page, PageObject, Protocol};
pub use cc_row::CcSamples;
pub use flow::{CcChoice, EcnKind, Flow, OnOff, Pattern, Stack};
pub use fullpipe_net::Kernel;
pub use host::{AckPolicy, CcFacts, HostOptions, HostWork, Pacing, RateRestart, ReaderPauses};
pub use links::{Access, ConnectionOrigin, Link, TCP_HEADERS_BYTES};
pub use plan::Plan;
pub use probe::{Probe, ProbeKind};
pub use route::{FlowDirection, Hosts, Route};
pub use rows::{
    CcRow, Column, CpuRow, DatagramRow, EventRow, FlowRow, FlowSampleRow, NicRow, ObjectRow,
    PageRow, PingRow, QueueRow, Table, TcpMemoryRow, Text, TrafficRow, TrafficSampleRow,
};
pub use sysctl::Sysctl;
pub use tables::Tables;
pub use traffic::{Configuration, Intervals, Sizes, Traffic, TrafficSender, TrafficSource};
