//! Random queues: the options of each discipline, drawn from their ranges.

use fullpipe_net::queue::cake::{self, AckFilter, Isolation, Tins};
use fullpipe_net::queue::{codel, dualpi2, fifo, fq, fq_codel, fq_pie, pie, prio, red, sfq, tbf};
use fullpipe_net::{Aqm, Framing, Qdisc};

use crate::path::Dice;

const MS: u64 = 1_000_000;
/// A full packet on the wire.
const FRAME_BYTES: u64 = 1_514;

/// A discipline that scripts are drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// pfifo and bfifo
    Fifo,
    /// sch_codel
    Codel,
    /// sch_fq_codel
    FqCodel,
    /// sch_fq
    Fq,
    /// sch_sfq
    Sfq,
    /// sch_tbf
    Tbf,
    /// sch_prio
    Prio,
    /// sch_cake
    Cake,
    /// sch_red
    Red,
    /// sch_pie
    Pie,
    /// sch_fq_pie
    FqPie,
    /// sch_dualpi2
    Dualpi2,
}

impl Kind {
    /// All of them with the names of plans.
    pub const ALL: [(&'static str, Self); 12] = [
        ("fifo", Self::Fifo),
        ("codel", Self::Codel),
        ("fq_codel", Self::FqCodel),
        ("fq", Self::Fq),
        ("sfq", Self::Sfq),
        ("tbf", Self::Tbf),
        ("prio", Self::Prio),
        ("cake", Self::Cake),
        ("red", Self::Red),
        ("pie", Self::Pie),
        ("fq_pie", Self::FqPie),
        ("dualpi2", Self::Dualpi2),
    ];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(own, _)| *own == name).map(|(_, kind)| *kind)
    }

    /// Whether its controller needs a load for seconds before it acts.
    pub(super) fn is_slow(self) -> bool {
        matches!(self, Self::Pie | Self::FqPie | Self::Dualpi2)
    }

    /// Whether the machine's queue takes all packets that can be marked for L4S (the agent's `any_ect`), so that
    /// only ECT(1) can be compared.
    pub(super) fn has_l4s_only(self) -> bool {
        self == Self::Dualpi2
    }

    /// A queue of that discipline at a link of that rate.
    pub(super) fn draw(self, dice: &mut Dice, rate_bps: u64) -> Qdisc {
        let packets = dice.either(500, (4, 60), (100, 2_000));
        let bytes = dice.either(
            500,
            (4 * FRAME_BYTES, 60 * FRAME_BYTES),
            (200_000, 2_000_000),
        );
        let (limit_bytes, limit_packets) = match self {
            Self::Fifo | Self::Prio if dice.happens(500) => (Some(bytes), None),
            Self::Tbf | Self::Red => (Some(bytes), None),
            Self::Cake => (dice.happens(400).then_some(bytes), None),
            Self::Sfq => (None, Some(packets.min(127) as u32)),
            _ => (None, Some(packets as u32)),
        };
        Qdisc {
            limit_bytes,
            limit_packets,
            aqm: self.aqm(dice, rate_bps),
        }
    }

    fn aqm(self, dice: &mut Dice, rate_bps: u64) -> Aqm {
        match self {
            Self::Fifo => Aqm::Fifo(fifo::Params {}),
            Self::Codel => Aqm::Codel(codel(dice)),
            Self::FqCodel => Aqm::FqCodel(fq_codel(dice)),
            Self::Fq => Aqm::Fq(fq::Params {
                quantum_bytes: quantum(dice),
                flow_limit_packets: dice.log(3, 100) as u32,
                ce_threshold_ns: ce_threshold(dice),
                kernel: None,
            }),
            Self::Sfq => Aqm::Sfq(sfq::Params {
                quantum_bytes: quantum(dice),
                flows: dice.between(4, 127) as u32,
                buckets: 1_024,
                depth_packets: dice.log(4, 127) as u32,
                head_drop: dice.happens(500),
            }),
            Self::Tbf => Aqm::Tbf(tbf::Params {
                burst_bytes: dice.log(1_600, 50_000) as u32,
            }),
            Self::Prio => Aqm::Prio(prio(dice)),
            Self::Cake => Aqm::Cake(cake(dice)),
            Self::Red => Aqm::Red(red(dice)),
            Self::Pie => Aqm::Pie(pie(dice)),
            Self::FqPie => Aqm::FqPie(fq_pie(dice)),
            Self::Dualpi2 => Aqm::Dualpi2(dualpi2(dice, rate_bps)),
        }
    }
}

/// Half the time the defaults, else a target and an interval.
fn delays(dice: &mut Dice) -> (u64, u64) {
    match dice.happens(400) {
        true => (5 * MS, 100 * MS),
        false => (
            dice.log(1_000, 40_000) * 1_000,
            dice.log(10_000, 200_000) * 1_000,
        ),
    }
}

fn ce_threshold(dice: &mut Dice) -> Option<u64> {
    (dice.happens(300)).then(|| dice.log(1_000, 50_000) * 1_000)
}

fn quantum(dice: &mut Dice) -> u32 {
    match dice.happens(500) {
        true => FRAME_BYTES as u32,
        false => dice.log(300, 6_000) as u32,
    }
}

fn codel(dice: &mut Dice) -> codel::Params {
    let (target_ns, interval_ns) = delays(dice);
    codel::Params {
        target_ns,
        interval_ns,
        ecn: dice.happens(500),
        ce_threshold_ns: ce_threshold(dice),
        kernel: None,
    }
}

fn fq_codel(dice: &mut Dice) -> fq_codel::Params {
    let (target_ns, interval_ns) = delays(dice);
    fq_codel::Params {
        target_ns,
        interval_ns,
        quantum_bytes: quantum(dice),
        flows: 1_024,
        memory_limit_bytes: match dice.happens(600) {
            true => 32 << 20,
            false => dice.log(10_000, 100_000),
        },
        ecn: dice.happens(500),
        ce_threshold_ns: ce_threshold(dice),
        kernel: None,
    }
}

fn prio(dice: &mut Dice) -> prio::Params {
    let bands = dice.between(2, 5) as u8;
    let band = |dice: &mut Dice| dice.up_to(u64::from(bands) - 1) as u8;
    prio::Params {
        bands,
        default_band: band(dice),
        filters: [46, 8, 34]
            .into_iter()
            .map(|dscp| (dscp, band(dice)))
            .collect(),
    }
}

fn cake(dice: &mut Dice) -> cake::Params {
    let rtt_ns = match dice.happens(500) {
        true => 100 * MS,
        false => dice.log(10_000, 300_000) * 1_000,
    };
    cake::Params {
        rtt_ns,
        target_ns: (rtt_ns / 20).max(1_000),
        shapes: dice.happens(700),
        tins: dice.choose(&[
            Tins::Besteffort,
            Tins::Diffserv3,
            Tins::Diffserv4,
            Tins::Diffserv8,
            Tins::Precedence,
        ]),
        isolation: dice.choose(&[
            Isolation::Flowblind,
            Isolation::Srchost,
            Isolation::Dsthost,
            Isolation::Hosts,
            Isolation::Flows,
            Isolation::DualSrchost,
            Isolation::DualDsthost,
            Isolation::TripleIsolate,
        ]),
        ack_filter: AckFilter::No,
        overhead_bytes: (dice.happens(400)).then(|| dice.up_to(60) as i32),
        mpu_bytes: dice.choose(&[0, 0, 64, 84]),
        framing: dice.choose(&[Framing::None, Framing::None, Framing::Atm, Framing::Ptm]),
        ingress: dice.happens(300),
        autorate_ingress: false,
        wash: dice.happens(300),
        split_gso: true,
    }
}

fn red(dice: &mut Dice) -> red::Params {
    let min_bytes = dice.log(3_000, 30_000);
    // Between thresholds that lie close together nothing is left to chance.
    let max_bytes = match dice.happens(400) {
        true => min_bytes + 1,
        false => min_bytes * dice.between(2, 4),
    };
    let avpkt_bytes = dice.between(300, 1_500) as u32;
    red::Params {
        min_bytes,
        max_bytes,
        max_probability_ppm: dice.log(10_000, 500_000) as u32,
        avpkt_bytes,
        burst_packets: ((2 * min_bytes + max_bytes) / (3 * u64::from(avpkt_bytes))) as u32 + 1,
        ecn: dice.happens(500),
        adaptive: dice.happens(250),
    }
}

fn pie(dice: &mut Dice) -> pie::Params {
    let is_default = dice.happens(400);
    let or = |default: u64, drawn: u64| if is_default { default } else { drawn };
    pie::Params {
        target_ns: or(15, dice.log(5, 60)) * MS,
        update_ns: or(15, dice.log(8, 40)) * MS,
        alpha: or(2, dice.log(1, 16)) as u32,
        beta: or(20, dice.log(4, 32)) as u32,
        byte_mode: dice.happens(400),
        rate_estimator: dice.happens(400),
        ecn: dice.happens(500),
    }
}

fn fq_pie(dice: &mut Dice) -> fq_pie::Params {
    let pie = pie(dice);
    fq_pie::Params {
        target_ns: pie.target_ns,
        update_ns: pie.update_ns,
        alpha: pie.alpha,
        beta: pie.beta,
        byte_mode: pie.byte_mode,
        rate_estimator: pie.rate_estimator,
        ecn: pie.ecn,
        ecn_percent: dice.between(1, 99) as u32,
        quantum_bytes: quantum(dice),
        flows: 1_024,
    }
}

fn dualpi2(dice: &mut Dice, rate_bps: u64) -> dualpi2::Params {
    let is_default = dice.happens(400);
    let or = |default: u64, drawn: u64| if is_default { default } else { drawn };
    // Without gains the probability stays 0, and nothing is left to chance.
    let gains = if dice.happens(300) {
        (0, 0)
    } else {
        (or(41, dice.log(10, 200)), or(819, dice.log(200, 2_000)))
    };
    let frame_us = FRAME_BYTES * 8_000_000 / rate_bps;
    dualpi2::Params {
        target_ns: or(15, dice.log(5, 60)) * MS,
        update_ns: or(16, dice.log(8, 40)) * MS,
        alpha: gains.0 as u32,
        beta: gains.1 as u32,
        step_ns: or(1_000, dice.log(500, 4 * frame_us.max(500))) * 1_000,
        coupling: or(2, dice.between(1, 4)) as u32,
        classic_percent: or(10, dice.between(0, 50)) as u32,
        drop_overload: dice.happens(500),
        min_qlen_step_packets: dice.choose(&[0, 0, 2]),
    }
}
