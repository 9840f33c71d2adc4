//! What every engine is given and what every engine returns.
//!
//! A [`Plan`] is a scenario with all units resolved to integers and all defaults filled in; the
//! Python front end writes it as JSON, so that units are parsed in one place. [`Tables`] are the
//! columns of a recording; Python turns them into Parquet. This crate must never know how a plan
//! is run.

mod applications;
mod cc_row;
mod damage;
mod links;
mod plan;
pub mod stream;
mod tables;
pub mod traces;
mod traffic;
mod wifi;

pub use applications::{Datagrams, Lookup, Page, PageObject, Pattern, Protocol, Turns};
pub use damage::{Chance, Damage, GilbertElliott, Hold, Policer, Reorder};
pub use links::{Ends, Hosts, Link, Medium, Newcomer, Route, Wire};
pub use plan::{
    AckPolicy, Aqm, CakeAckFilter, CakeFraming, CakeIsolation, CakeTins, CcChoice, CcFacts,
    Direction, EcnKind, Flow, HostOptions, HostWork, Jitter, JitterShape, Loss, Pacing, Plan,
    Probe, ProbeKind, Qdisc, ReaderPauses, TcpRules,
};
pub use tables::{
    CcRow, Column, CpuRow, DatagramRow, EventRow, FlowRow, FlowSampleRow, NicRow, ObjectRow,
    PageRow, PingRow, QueueRow, Table, Tables, TcpMemoryRow, Text, TrafficRow, TrafficSampleRow,
};
pub use traces::TraceFile;
pub use traffic::{Configuration, Intervals, Sizes, Traffic, TrafficSender, TrafficSource};
pub use wifi::{
    Wifi, WifiAccess, WifiBackground, WifiBand, WifiQueues, WifiRate, WifiRules, WifiStandard,
    WifiStation,
};
