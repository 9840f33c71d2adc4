//! Handshakes and ends are packets: they take the path's time, wait in its queues, are lost and sent
//! again (RFC 6298, Linux's timers), and none disappears.

use crate::parts::{self, flow, wire, WIRE_BYTES};
use fullpipe_net::impair::loss;
use fullpipe_net::WireDirection;
use fullpipe_plan::{Flow, FlowDirection, Plan};
use fullpipe_sim::{run, Inputs, Outcome};

const MS: u64 = 1_000_000;
const RATE_BPS: u64 = 10_000_000;
/// Each way's half of the RTT, and the flows' start, which is a tick of the kernel's timers.
const HALF_NS: u64 = 20 * MS;
const START_NS: u64 = 64 * MS;
/// A lost SYN is sent again 256 ticks of 4 ms after its start's: 250 are a second, and the timer wheel
/// counts so long a wait by eight ticks (kernel/time/timer.c).
const REPEATS_NS: u64 = 64 * MS + 1024 * MS;

/// One link of 10 Mbit/s with this buffer, without limit on the way back, and 20 ms each way.
fn plan(flows: Vec<Flow>, buffer_packets: u64) -> Plan {
    let direction = |rate_bps| WireDirection {
        delay_ns: HALF_NS,
        ..wire(rate_bps, buffer_packets)
    };
    Plan {
        duration_ns: 20_000 * MS,
        ..parts::plan(direction(Some(RATE_BPS)), direction(None), flows)
    }
}

fn short(index: usize, direction: FlowDirection, packets: u64) -> Flow {
    Flow {
        amount_bytes: Some(packets * 1448),
        direction,
        ..flow(index, 0, START_NS / MS, None)
    }
}

fn outcome(plan: &Plan) -> Outcome {
    run(plan, Inputs::default(), &mut |_| true).expect("the plan is sound")
}

/// When something first happened to a flow.
fn when(done: &Outcome, flow: u64, event: &str) -> Option<u64> {
    let rows = &done.tables.events;
    let row = rows
        .iter()
        .find(|row| row.flow_id == Some(flow) && row.event == event);
    row.map(|row| row.t_us * 1000)
}

fn loses(probability: f64) -> Option<loss::Params> {
    Some(loss::Params {
        probability_ppm: (probability * 1e6) as u32,
        correlation_ppm: 0,
        ecn: false,
        per_burst: false,
    })
}

#[test]
fn an_idle_path_opens_a_connection_in_one_rtt_and_a_server_that_sends_in_one_and_a_half() {
    // An idle htb passes a packet at once, so a SYN of 74 bytes costs nothing but the delay. The near
    // host connects: what the far one sends waits for the third packet.
    for (direction, halves) in [(FlowDirection::Up, 2), (FlowDirection::Down, 3)] {
        let done = outcome(&plan(vec![short(0, direction, 4)], 100));
        let took_ns = when(&done, 0, "established").expect("it opens") - START_NS;
        assert_eq!(took_ns, halves * HALF_NS);
    }
}

#[test]
fn a_short_flow_costs_the_bytes_of_all_its_packets() {
    // By hand, forward: SYN 74, ACK 66, four packets of 1514, FIN 66, ACK of the peer's FIN 66.
    let done = outcome(&plan(vec![short(0, FlowDirection::Up, 4)], 100));
    let rows = done.tables.queue_samples.iter().rev();
    let row = rows
        .clone()
        .find(|row| row.queue == "forward")
        .expect("it is sampled");
    assert_eq!(row.sent_packets, 8);
    assert_eq!(row.sent_bytes, 74 + 66 + 4 * WIRE_BYTES + 66 + 66);
    // The initial window leaves behind the handshake's ACK, whose charge and the packets' delay each
    // next one but the first two (htb's credit of 1600 bytes): three packets of 1514 less the credit's
    // rest of 1600 - 66.
    let owed_bytes = 66 + 3 * WIRE_BYTES - 1600;
    let last_ns = START_NS + 3 * HALF_NS + owed_bytes * 8 * 1_000_000_000 / RATE_BPS;
    let finish_ns = when(&done, 0, "finish").expect("it ends");
    assert_eq!(finish_ns / 1000, (last_ns + HALF_NS) / 1000);
}

#[test]
fn a_fin_waits_for_the_window_as_data_do() {
    // tcp_cwnd_test() since Linux 6.10. The first ACK returns 80 ms after the start, which is 144 ms.
    for (packets, beside) in [(9, 3), (10, 2)] {
        let done = outcome(&plan(vec![short(0, FlowDirection::Up, packets)], 100));
        let sent_by = |t_us| {
            let mut rows = done.tables.queue_samples.iter();
            let row = rows.find(|row| row.queue == "forward" && row.t_us == t_us);
            row.expect("it is sampled").sent_packets
        };
        // SYN, the handshake's ACK, data, and with room in the window the FIN.
        assert_eq!(sent_by(140_000), packets + beside);
        // At the end the FIN and the ACK of the peer's.
        assert_eq!(sent_by(1_000_000), packets + 4);
    }
}

#[test]
fn an_application_with_a_rate_and_an_amount_ends() {
    // A packet each 10 ms from the handshake's end on; the last is short.
    let mut paced = short(0, FlowDirection::Up, 5);
    paced.amount_bytes = Some(4 * 1448 + 100);
    paced.app_rate_bps = Some(1448 * 8 * 100);
    let done = outcome(&plan(vec![paced], 100));
    let finish_ns = when(&done, 0, "finish").expect("it ends");
    assert_eq!(finish_ns, START_NS + 4 * HALF_NS + 40 * MS);
    assert_eq!(done.tables.flows[0].bytes_acked, 4 * 1448 + 100);
}

#[test]
fn a_lost_syn_costs_linuxs_second_and_its_wheel() {
    let mut seen = [0; 3];
    for seed in 0..40 {
        let mut plan = plan(vec![short(0, FlowDirection::Up, 4)], 100);
        plan.seed = seed;
        plan.access.loss = loses(0.4);
        let done = outcome(&plan);
        let Some(at_ns) = when(&done, 0, "established") else {
            continue;
        };
        // The first four timeouts are a second each.
        let repeats = (at_ns - START_NS) / (1024 * MS);
        if repeats < 3 {
            assert_eq!(at_ns, START_NS + repeats * 1024 * MS + 2 * HALF_NS);
            // Both of the kernel's counters (tcpi_total_rto, tcpi_total_retrans) have them. Of the
            // flow's data a timeout of their own may follow.
            let row = &done.tables.flows[0];
            let later = done
                .tables
                .events
                .iter()
                .filter(|row| row.event == "rto" && row.t_us * 1000 > at_ns);
            assert_eq!(row.timeouts - later.count() as u64, repeats);
            assert!(row.packets_retransmitted >= row.timeouts);
            seen[repeats as usize] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 1), "{seen:?}");
    assert_eq!(START_NS + 1024 * MS, REPEATS_NS);
}

#[test]
fn timeouts_of_an_end_that_is_never_answered_are_all_of_its_syns() {
    // sysctl tcp_syn_linear_timeouts and tcp_syn_retries: four and six.
    let mut plan = plan(vec![short(0, FlowDirection::Up, 4)], 100);
    plan.duration_ns = 300_000 * MS;
    plan.access.loss = loses(1.0);
    let done = outcome(&plan);
    let row = &done.tables.flows[0];
    assert_eq!((row.timeouts, row.packets_retransmitted), (10, 10));
    assert!(when(&done, 0, "connect_timeout").is_some());
}

#[test]
fn a_lost_syn_ack_is_repeated_by_whichever_end_is_first() {
    let mut repeated = 0;
    for seed in 0..20 {
        let mut plan = plan(vec![short(0, FlowDirection::Up, 4)], 100);
        plan.seed = seed;
        plan.access.reverse_loss = loses(0.4);
        let done = outcome(&plan);
        let at_ns = when(&done, 0, "established").expect("within 20 s");
        if at_ns == START_NS + 2 * HALF_NS {
            continue;
        }
        repeated += 1;
        // The server's timer began 20 ms after the client's; both count ticks, so within a bucket.
        let second_ns = at_ns - (REPEATS_NS + HALF_NS);
        assert!(
            at_ns > START_NS + 1000 * MS && second_ns % (1024 * MS) < 64 * MS,
            "{at_ns}"
        );
    }
    assert!(repeated > 3);
}

#[test]
fn a_syn_waits_in_the_queue_that_it_finds() {
    let bulk = flow(0, 0, 0, None);
    let late = Flow {
        start_ns: 5_000 * MS,
        ..short(1, FlowDirection::Up, 4)
    };
    let done = outcome(&plan(vec![bulk, late], 100));
    let found = done
        .tables
        .queue_samples
        .iter()
        .find(|row| row.t_us == 5_000_000);
    let queue_bytes = found.expect("it is sampled").queue_bytes;
    assert!(queue_bytes > 20 * WIRE_BYTES, "{queue_bytes}");
    let took_ns = when(&done, 1, "established").expect("it opens") - 5_000 * MS;
    let waited_ns = took_ns - 2 * HALF_NS;
    let queue_ns = |bytes: u64| bytes * 8 * 1_000_000_000 / RATE_BPS;
    // To the packet that is in service.
    assert!((queue_ns(queue_bytes)..=queue_ns(queue_bytes + WIRE_BYTES)).contains(&waited_ns));
}

#[test]
fn no_packet_of_handshakes_data_and_ends_disappears() {
    let mut lost = 0;
    for seed in 0..6 {
        let both = [FlowDirection::Up, FlowDirection::Down];
        let flows = (0..12).map(|index| short(index, both[index % 2], 1 + 5 * index as u64));
        let mut plan = plan(flows.collect(), 8);
        plan.seed = seed;
        plan.duration_ns = 300_000 * MS;
        plan.sample_interval_ns = 10_000 * MS;
        plan.access.loss = loses(0.1);
        plan.access.reverse_loss = loses(0.1);
        let done = outcome(&plan);
        let ended = done
            .tables
            .flows
            .iter()
            .all(|flow| flow.completion_us.is_some());
        assert!(ended, "seed {seed}");
        assert_eq!(done.packets_in_flight, 0);
        assert_eq!(
            done.control.sent,
            done.control.delivered + done.control.lost
        );
        // SYN and SYN-ACK, the handshake's ACK, and the last one: four a flow at least.
        assert!(done.control.sent >= 4 * 12);
        lost += done.control.lost;
    }
    assert!(lost > 10, "{lost}");
}
