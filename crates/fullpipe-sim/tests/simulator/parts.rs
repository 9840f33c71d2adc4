//! What plans of tests are made of.

use fullpipe_cc::sets;
use fullpipe_net::queue::fifo;
use fullpipe_net::{Aqm, Medium, Qdisc, WireDirection};
use fullpipe_plan::{
    Access, AckPolicy, CcChoice, CcFacts, Flow, FlowDirection, HostOptions, Hosts, Kernel, Link,
    Pacing, Plan, RateRestart, Route,
};

pub(crate) const WIRE_BYTES: u64 = 1514;

/// A bulk flow of one of the sets.
pub(crate) fn flow(index: usize, set: usize, start_ms: u64, window: Option<u64>) -> Flow {
    let set = &sets()[set % sets().len()];
    Flow {
        name: format!("flow.{index}"),
        cc: CcChoice {
            name: set.name.to_owned(),
            algorithm: Some(set.algorithm.to_owned()),
            params: set.values.clone(),
        },
        start_ns: start_ms * 1_000_000,
        stop_ns: None,
        amount_bytes: None,
        app_rate_bps: None,
        pattern: None,
        direction: FlowDirection::Up,
        route: Route::default(),
        hosts: Hosts::default(),
        dscp: 0,
        forward_delay_ns: None,
        reverse_delay_ns: None,
        jitter: None,
        receive_window_bytes: window,
        nodelay: false,
        ecn: index % 2 == 0,
        ecn_kind: Default::default(),
        max_pacing_rate_bps: None,
        stack: None,
    }
}

/// A direction with a FIFO, or without a rate.
pub(crate) fn wire(rate_bps: Option<u64>, buffer_packets: u64) -> WireDirection {
    WireDirection {
        rate_bps,
        delay_ns: 0,
        qdisc: Qdisc {
            limit_bytes: Some(buffer_packets * WIRE_BYTES),
            limit_packets: None,
            aqm: Aqm::Fifo(fifo::Params {}),
        },
        loss: None,
        rate_steps: Vec::new(),
        delay_steps: Vec::new(),
        overhead: None,
        rate_trace: None,
        delay_trace: None,
        impairments: None,
    }
}

/// One link without traffic but these flows, for ten seconds.
pub(crate) fn plan(forward: WireDirection, reverse: WireDirection, flows: Vec<Flow>) -> Plan {
    Plan {
        name: "test".to_owned(),
        seed: 1,
        duration_ns: 10_000_000_000,
        sample_interval_ns: 10_000_000,
        links: vec![Link {
            name: "path".to_owned(),
            medium: Medium::Wire {
                forward: Box::new(forward),
                reverse: Box::new(reverse),
            },
        }],
        access: Access {
            mtu_bytes: 1500,
            forward_delay_ns: 0,
            reverse_delay_ns: 0,
            jitter: None,
            loss: None,
            reverse_loss: None,
        },
        path: (),
        flows,
        probes: Vec::new(),
        traffic: Vec::new(),
        pages: Vec::new(),
        datagrams: Vec::new(),
        host: host(),
    }
}

/// Hosts as by default.
pub(crate) fn host() -> HostOptions {
    HostOptions {
        pacing: Pacing::Internal,
        pacing_shift: 10,
        gso_max_segments: 44,
        receive_aggregation_ns: 0,
        ack_policy: AckPolicy::Linux,
        tcp: Kernel::default(),
        cc_facts: CcFacts::default(),
        rate_restart: RateRestart::default(),
        receive_low_water_bytes: 1,
        rmem_max_bytes: 64 << 20,
        wmem_max_bytes: 64 << 20,
        initial_cwnd_packets: 10,
        access_rate_bps: 0,
        arp: false,
        work: None,
        reader_pauses: None,
        program_timer_ns: 0,
        sysctl: fullpipe_plan::Sysctl::default(),
    }
}
