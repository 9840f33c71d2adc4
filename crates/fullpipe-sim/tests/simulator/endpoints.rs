//! Endpoints of other transports in the network: a transport of a few lines, whose every datagram can be
//! counted by hand, beside TCP and over links that lose, copy and mark.

use crate::parts::{self, flow, wire};
use fullpipe_net::impair::{self, crandom, loss};
use fullpipe_net::WireDirection;
use fullpipe_plan::{CcChoice, Flow, Plan};
use fullpipe_sim::transport::{Endpoint, Sample, Setup, Status, Transmit, Transport, NONE};
use fullpipe_sim::{run, Inputs, Outcome};

const MS: u64 = 1_000_000;
/// Of the datagrams that carry data, and of those that acknowledge.
const BYTES: usize = 1000;
const ACK_BYTES: usize = 10;

/// Sends one datagram of data after the other: the next when the last one was acknowledged, or after 1 s.
/// The first byte counts, so that copies are known.
#[derive(Default)]
struct StopAndWait {
    sends: bool,
    is_client: bool,
    /// What waits to be sent: its number, and its size.
    next: Option<(u8, usize)>,
    number: u8,
    is_waiting: bool,
    sent_ns: u64,
    backlog_bytes: u64,
    received_bytes: u64,
    is_established: bool,
    is_finished: bool,
    has_written_all: bool,
    marks: u64,
}

impl StopAndWait {
    fn send(&mut self, now_ns: u64) {
        if self.sends && !self.is_waiting && self.backlog_bytes >= BYTES as u64 {
            self.number = self.number.wrapping_add(1);
            self.next = Some((self.number, BYTES));
            self.is_waiting = true;
            self.sent_ns = now_ns;
        }
    }
}

impl Endpoint for StopAndWait {
    fn start(&mut self, _now_ns: u64) {
        self.is_established = true;
        if !self.sends {
            self.next = Some((0, ACK_BYTES)); // tells the server to begin
        }
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], ecn: u8) {
        self.marks += u64::from(ecn == 3);
        self.is_established = true;
        if self.sends {
            if self.is_waiting && datagram[0] == self.number {
                self.is_waiting = false;
                self.backlog_bytes -= BYTES as u64;
                self.is_finished = self.has_written_all && self.backlog_bytes < BYTES as u64;
            }
            self.send(now_ns);
        } else {
            if datagram[0] == self.number.wrapping_add(1) {
                self.number = datagram[0];
                self.received_bytes += datagram.len() as u64;
            }
            self.next = Some((datagram[0], ACK_BYTES));
        }
    }

    fn on_timer(&mut self, now_ns: u64) {
        if self.is_waiting && now_ns >= self.sent_ns + 1000 * MS {
            self.next = Some((self.number, BYTES));
            self.sent_ns = now_ns;
        }
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let taken = bytes.min(10_000_u64.saturating_sub(self.backlog_bytes));
        self.backlog_bytes += taken;
        self.send(now_ns);
        taken
    }

    fn finish(&mut self, _now_ns: u64) {
        self.has_written_all = true;
    }

    fn transmit(&mut self, _now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let (number, bytes) = self.next.take()?;
        buffer[..bytes].fill(number);
        Some(Transmit {
            bytes,
            datagram_bytes: bytes,
            ecn: 2,
        })
    }

    fn status(&mut self) -> Status {
        Status {
            timer_ns: match self.is_waiting {
                true => self.sent_ns + 1000 * MS,
                false => NONE,
            },
            received_bytes: self.received_bytes,
            is_established: self.is_established,
            is_finished: self.is_finished,
            is_closed: false,
        }
    }

    fn sample(&mut self) -> Sample {
        Sample {
            cwnd_bytes: BYTES as u64,
            datagram_bytes: BYTES as u64,
            inflight_bytes: u64::from(self.is_waiting) * BYTES as u64,
            ..Sample::default()
        }
    }

    fn failure(&self) -> Option<String> {
        (!self.is_client && self.marks > 0).then(|| format!("{} marks", self.marks))
    }
}

struct Waiting;

impl Transport for Waiting {
    fn open(&self, cc: &str, setup: &Setup) -> Option<Result<[Box<dyn Endpoint>; 2], String>> {
        let end = |is_client: bool| {
            Box::new(StopAndWait {
                sends: setup.server_sends != is_client,
                is_client,
                ..StopAndWait::default()
            }) as Box<dyn Endpoint>
        };
        (cc == "stop:wait").then(|| Ok([end(true), end(false)]))
    }
}

fn waiting(index: usize) -> Flow {
    Flow {
        cc: CcChoice {
            name: "stop:wait".to_owned(),
            algorithm: None,
            params: Vec::new(),
        },
        ecn: false,
        ..flow(index, 0, 0, None)
    }
}

/// A link of 8 Mbit/s with 10 ms in each direction. A datagram of data is on it for 1.042 ms, an ACK
/// for 0.052 ms.
fn plan(flows: Vec<Flow>) -> Plan {
    let direction = || WireDirection {
        delay_ns: 10 * MS,
        ..wire(Some(8_000_000), 100)
    };
    parts::plan(direction(), direction(), flows)
}

fn outcome(plan: &Plan) -> Outcome {
    let inputs = Inputs {
        transports: &[&Waiting],
        ..Inputs::default()
    };
    run(plan, inputs, &mut |_| true).unwrap()
}

#[test]
fn a_datagram_takes_what_the_link_takes() {
    let mut one = waiting(0);
    one.amount_bytes = Some(100_000);
    let outcome = outcome(&plan(vec![one]));
    let row = &outcome.tables.flows[0];
    assert_eq!((row.bytes_delivered, row.packets_sent), (100_000, 100));
    // htb charges after sending, so on an idle link a datagram takes the delay only.
    let completion_us = row.completion_us.unwrap();
    assert!(
        (2_000_000..2_001_000).contains(&completion_us),
        "{completion_us}"
    );
}

#[test]
fn the_server_may_send_the_data() {
    let mut down = waiting(0);
    down.direction = fullpipe_plan::FlowDirection::Down;
    let outcome = outcome(&plan(vec![down]));
    let row = &outcome.tables.flows[0];
    assert!((480..=500).contains(&row.packets_sent), "{row:?}");
    assert_eq!(row.direction, "down");
}

#[test]
fn an_application_that_stops_writes_no_more() {
    // From 20 ms on, which the handshake takes, a datagram each 20 ms up to 1 s.
    let mut one = waiting(0);
    one.stop_ns = Some(1000 * MS);
    let outcome = outcome(&plan(vec![one]));
    let row = &outcome.tables.flows[0];
    assert!((48..=60).contains(&row.packets_sent), "{row:?}");
    assert!(
        row.completion_us.is_some_and(|us| us < 1_300_000),
        "{row:?}"
    );
}

#[test]
fn losses_and_copies_are_counted_and_none_is_kept() {
    let mut plan = plan(vec![waiting(0), waiting(1), flow(2, 0, 0, None)]);
    plan.access.loss = Some(loss_of(50_000));
    let outcome = outcome(&plan);
    let rows = &outcome.tables.flows;
    assert!(outcome.packets_lost > 0);
    for row in &rows[..2] {
        // Every loss of a datagram or of its ACK is a second of waiting.
        assert!((50..450).contains(&row.packets_sent), "{row:?}");
        assert!(row.bytes_delivered <= row.packets_sent * BYTES as u64);
    }
    assert!(rows[2].bytes_delivered > 0, "TCP runs beside them");
}

fn loss_of(probability_ppm: u32) -> loss::Params {
    loss::Params {
        probability_ppm,
        correlation_ppm: 0,
        ecn: false,
        per_burst: false,
    }
}

#[test]
fn copies_reach_their_host_twice_and_nothing_twice_counts() {
    // As many bytes as without copies: the receiver knows the number of a copy, and acknowledges it again.
    let mut one = waiting(0);
    one.amount_bytes = Some(50_000);
    let mut plan = plan(vec![one]);
    let fullpipe_net::Medium::Wire { forward, .. } = &mut plan.links[0].medium else {
        panic!("a wire")
    };
    forward.impairments = Some(impair::Params {
        duplicate: Some(crandom::Params {
            probability_ppm: 1_000_000,
            correlation_ppm: 0,
        }),
        ..impair::Params::default()
    });
    let outcome = outcome(&plan);
    let row = &outcome.tables.flows[0];
    assert_eq!((row.bytes_delivered, row.packets_sent), (50_000, 50));
    assert_eq!((outcome.packets_delivered, outcome.packets_lost), (100, 0));
    assert_eq!(outcome.packets_in_flight, 0);
    let events: Vec<_> = (outcome.tables.events.iter())
        .map(|row| (row.event.as_ref(), row.value))
        .collect();
    assert_eq!(events[..2], [("start", 0), ("established", 1)]);
    assert_eq!((events.len(), events[2].0), (3, "finish"));
}

#[test]
fn without_ecn_no_bit_of_it_leaves_the_host() {
    let mut plan = plan(vec![waiting(0)]);
    plan.access.loss = Some(loss::Params {
        ecn: true,
        ..loss_of(100_000)
    });
    assert!(outcome(&plan).transport_failures.is_empty());
    plan.flows[0].ecn = true;
    assert_eq!(outcome(&plan).transport_failures.len(), 1, "marks arrived");
}

#[test]
fn a_name_that_no_transport_has_is_an_error() {
    let plan = plan(vec![waiting(0)]);
    let error = run(&plan, Inputs::default(), &mut |_| true).unwrap_err();
    assert!(
        error.0.contains("stop:wait is not in the simulator"),
        "{error}"
    );
}

#[test]
fn the_same_plan_gives_the_same_tables() {
    let mut plan = plan(vec![waiting(0), flow(1, 1, 0, None)]);
    plan.access.loss = Some(loss_of(20_000));
    assert_eq!(outcome(&plan).tables, outcome(&plan).tables);
}
