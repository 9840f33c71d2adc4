//! Time of one packet through each path element. Millions of packets a second leave a few tens of ns for
//! each.
#![allow(missing_docs)] // what criterion's macros define

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use fullpipe_net::impair::jitter::{self, JitterSource};
use fullpipe_net::impair::loss::{self, LossSource};
use fullpipe_net::queue::{cake, codel, dualpi2, fifo, fq, fq_codel, pie, red, sfq};
use fullpipe_net::{Aqm, DelayLine, Ecn, Packet, Qdisc, Queue, Shaper};

const FLOWS: u32 = 16;
const WAITING: u32 = 400;
/// A packet at 1 Gbit/s.
const PACKET_NS: u64 = 12_112;
const MS: u64 = 1_000_000;

/// About as large as a simulator's packet.
#[derive(Clone, Copy)]
struct BenchPacket {
    flow: u32,
    bytes: u32,
    marked: bool,
    send_at_ns: u64,
    _rest: u64,
}

impl Packet for BenchPacket {
    fn wire_bytes(&self) -> u32 {
        self.bytes
    }

    fn flow_key(&self) -> u32 {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect0
    }

    fn mark_ce(&mut self) {
        self.marked = true;
    }

    fn pacing_time_ns(&self) -> u64 {
        self.send_at_ns
    }
}

fn qdiscs() -> Vec<(&'static str, Aqm, bool)> {
    let (target_ns, interval_ns) = (5 * MS, 100 * MS);
    let fq = Aqm::Fq(fq::Params {
        quantum_bytes: 3028,
        flow_limit_packets: 10_000,
        ce_threshold_ns: None,
        kernel: None,
    });
    let fq_codel = Aqm::FqCodel(fq_codel::Params {
        target_ns,
        interval_ns,
        quantum_bytes: 1514,
        flows: 1024,
        memory_limit_bytes: 32 << 20,
        ecn: true,
        ce_threshold_ns: None,
        kernel: None,
    });
    let codel = Aqm::Codel(codel::Params {
        target_ns,
        interval_ns,
        ecn: true,
        ce_threshold_ns: None,
        kernel: None,
    });
    let red = Aqm::Red(red::Params {
        min_bytes: 200_000,
        max_bytes: 1_000_000,
        max_probability_ppm: 20_000,
        avpkt_bytes: 1000,
        burst_packets: 500,
        ecn: true,
        adaptive: false,
    });
    let cake = |tins, isolation| {
        Aqm::Cake(cake::Params {
            rtt_ns: interval_ns,
            target_ns,
            shapes: false,
            tins,
            isolation,
            ack_filter: cake::AckFilter::No,
            overhead_bytes: None,
            mpu_bytes: 0,
            framing: cake::Framing::None,
            ingress: false,
            autorate_ingress: false,
            wash: false,
            split_gso: true,
        })
    };
    let pie = Aqm::Pie(pie::Params {
        target_ns: 15 * MS,
        update_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        byte_mode: false,
        rate_estimator: false,
        ecn: true,
    });
    let sfq = Aqm::Sfq(sfq::Params {
        quantum_bytes: 1514,
        flows: 128,
        buckets: 1024,
        depth_packets: 127,
        head_drop: false,
    });
    let dualpi2 = Aqm::Dualpi2(dualpi2::Params {
        target_ns: 15 * MS,
        update_ns: 16 * MS,
        alpha: 41,
        beta: 819,
        step_ns: MS,
        coupling: 2,
        classic_percent: 10,
        drop_overload: true,
        min_qlen_step_packets: 0,
    });
    vec![
        (
            "cake besteffort flows",
            cake(cake::Tins::Besteffort, cake::Isolation::Flows),
            false,
        ),
        (
            "cake diffserv4 triple-isolate",
            cake(cake::Tins::Diffserv4, cake::Isolation::TripleIsolate),
            false,
        ),
        ("pie", pie, false),
        ("sfq", sfq, false),
        ("dualpi2", dualpi2, false),
        ("fifo", Aqm::Fifo(fifo::Params {}), false),
        ("fq", fq.clone(), false),
        ("fq, pacing", fq, true),
        ("codel", codel, false),
        ("fq_codel", fq_codel, false),
        ("red", red, false),
    ]
}

/// A standing queue of [`WAITING`] packets of [`FLOWS`] flows: one comes, one leaves.
fn queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    group.throughput(Throughput::Elements(1));
    for (name, aqm, paced) in qdiscs() {
        let qdisc = Qdisc {
            limit_bytes: None,
            limit_packets: Some(10_000),
            aqm,
        };
        let mut queue = Queue::new(&qdisc, 1_000_000_000, 1500, 1);
        let mut dropped = Vec::new();
        let mut now_ns = MS;
        let mut number = 0u32;
        let mut offer = |queue: &mut Queue<BenchPacket>, now_ns, dropped: &mut Vec<_>| {
            number = number.wrapping_add(1);
            let packet = BenchPacket {
                flow: number % FLOWS,
                bytes: 1514,
                marked: false,
                send_at_ns: if paced { now_ns + 4 * MS } else { 0 },
                _rest: 0,
            };
            queue.enqueue(now_ns, packet, dropped);
        };
        for _ in 0..WAITING {
            offer(&mut queue, now_ns, &mut dropped);
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                now_ns += PACKET_NS;
                offer(&mut queue, now_ns, &mut dropped);
                dropped.clear();
                black_box(queue.dequeue(now_ns, &mut dropped))
            });
        });
    }
    group.finish();
}

fn others(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("element");
    group.throughput(Throughput::Elements(1));
    let mut now_ns = 0;
    let mut shaper = Shaper::new(999_999_937, 1600);
    group.bench_function("shaper", |bencher| {
        bencher.iter(|| shaper.charge(black_box(shaper.ready_ns()), 1514));
    });
    let mut line = DelayLine::default();
    for index in 0..WAITING {
        line.push(u64::from(index), &index);
    }
    group.bench_function("delay line", |bencher| {
        bencher.iter(|| {
            now_ns += PACKET_NS;
            line.push(now_ns + MS, &0);
            black_box(line.ready(u64::MAX));
            line.leave();
        });
    });
    let loss = loss::Params {
        probability_ppm: 10_000,
        correlation_ppm: 250_000,
        ecn: false,
        per_burst: false,
    };
    let mut loss = LossSource::new(&loss, 1);
    group.bench_function("loss", |bencher| bencher.iter(|| black_box(loss.next())));
    for shape in [jitter::Shape::PerPacket, jitter::Shape::Slotted] {
        let max_ns = 10 * MS;
        let mut jitter = JitterSource::new(&jitter::Params { shape, max_ns }, 1);
        group.bench_function(format!("jitter {shape:?}"), |bencher| {
            bencher.iter(|| {
                now_ns += PACKET_NS;
                black_box(jitter.release_ns(now_ns))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, queues, others);
criterion_main!(benches);
