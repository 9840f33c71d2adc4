//! Each queue discipline as netlink options, and where its statistics count marks. Attributes have
//! their numbers of linux/pkt_sched.h and tc's names. A new discipline is a function here, its arm in
//! [`queue`] and, if it marks, its arm in [`marks`].

use fullpipe_net::queue::{codel, dualpi2, fq, fq_codel, fq_pie, pie, prio, sfq};
use fullpipe_net::{Aqm, Qdisc};

use super::cake::{self, cake};
use super::red::red;
use super::shaper;
use super::spec::{bytes_u32, flag, Filter, Options, Spec, UNLIMITED_PACKETS};
use crate::net::netlink::u32_at;

/// The queue of a bottleneck. A discipline that shapes takes the rate itself.
pub(crate) fn queue(qdisc: &Qdisc, rate_bps: u64) -> Result<Spec, String> {
    let bytes = qdisc.limit_bytes;
    let packets = qdisc.limit_packets.unwrap_or(UNLIMITED_PACKETS);
    match &qdisc.aqm {
        Aqm::Fifo(_) => fifo(qdisc),
        Aqm::Fq(params) => Ok(fq(packets, params)),
        Aqm::Codel(params) => Ok(codel(packets, params)),
        Aqm::FqCodel(params) => Ok(fq_codel(packets, params)),
        Aqm::Red(params) => red(bytes, rate_bps, params),
        Aqm::Cake(params) => cake(bytes, rate_bps, params),
        Aqm::Pie(params) => Ok(pie(packets, params)),
        Aqm::FqPie(params) => Ok(fq_pie(packets, params)),
        Aqm::Sfq(params) => Ok(sfq(packets, params)),
        Aqm::Tbf(params) => {
            let limit = bytes.unwrap_or(u64::from(u32::MAX / 2));
            let limit = bytes_u32("path.qdisc.limit_bytes", limit)?;
            Ok(shaper::tbf(rate_bps, params.burst_bytes, limit))
        }
        Aqm::Prio(params) => prio(qdisc, params),
        Aqm::Dualpi2(params) => Ok(dualpi2(packets, params)),
    }
}

/// Packets that a discipline has marked, by its own statistics (TCA_STATS_APP): a word of its struct.
pub(crate) fn marks(kind: &[u8], statistics: &[u8]) -> u64 {
    let word = |index| u64::from(u32_at(statistics, index).unwrap_or(0));
    match kind {
        b"red\0" => word(3), // struct tc_red_xstats
        // struct tc_codel_xstats and tc_fq_codel_xstats: ecn_mark and ce_mark
        b"codel\0" => word(6) + word(8),
        b"fq_codel\0" => word(3) + word(7),
        b"fq\0" => word(20),     // struct tc_fq_qd_stats
        b"pie\0" => word(9),     // struct tc_pie_xstats
        b"fq_pie\0" => word(4),  // struct tc_fq_pie_xstats
        b"dualpi2\0" => word(6), // struct tc_dualpi2_xstats
        b"cake\0" => cake::marks(statistics),
        _ => 0,
    }
}

/// ACKs that a discipline's ACK filter took out, by the same statistics.
pub(crate) fn filtered(kind: &[u8], statistics: &[u8]) -> u64 {
    match kind {
        b"cake\0" => cake::filtered(statistics),
        _ => 0,
    }
}

fn fifo(qdisc: &Qdisc) -> Result<Spec, String> {
    let (kind, limit) = match (qdisc.limit_bytes, qdisc.limit_packets) {
        (Some(_), Some(_)) => {
            return Err("path.qdisc: a fifo is limited in bytes or in packets, not both".into())
        }
        (Some(bytes), None) => ("bfifo", bytes_u32("path.qdisc.limit_bytes", bytes)?),
        (None, packets) => ("pfifo", packets.unwrap_or(UNLIMITED_PACKETS)),
    };
    // struct tc_fifo_qopt: limit
    let options = limit.to_ne_bytes().to_vec();
    Ok(Spec::new(kind, options, format!("{kind} limit {limit}")))
}

/// sch_fq with its defaults, as on a sender's host.
pub(crate) fn pacing_fq() -> Spec {
    Options::of("fq").spec()
}

/// TCA_FQ_*
fn fq(packets: u32, params: &fq::Params) -> Spec {
    Options::of("fq")
        .word(1, "limit", packets)
        .word(2, "flow_limit", params.flow_limit_packets)
        .word(3, "quantum", params.quantum_bytes)
        .time_if(12, "ce_threshold", params.ce_threshold_ns)
        .spec()
}

/// TCA_CODEL_*
fn codel(packets: u32, params: &codel::Params) -> Spec {
    Options::of("codel")
        .time(1, "target", params.target_ns)
        .word(2, "limit", packets)
        .time(3, "interval", params.interval_ns)
        .flag(4, "ecn", params.ecn)
        .time_if(5, "ce_threshold", params.ce_threshold_ns)
        .spec()
}

/// TCA_FQ_CODEL_*
fn fq_codel(packets: u32, params: &fq_codel::Params) -> Spec {
    let memory = u32::try_from(params.memory_limit_bytes).unwrap_or(u32::MAX);
    let ecn = if params.ecn { "ecn" } else { "noecn" };
    Options::of("fq_codel")
        .time(1, "target", params.target_ns)
        .word(2, "limit", packets)
        .time(3, "interval", params.interval_ns)
        .choice(4, (u32::from(params.ecn), ecn))
        .word(5, "flows", params.flows)
        .word(6, "quantum", params.quantum_bytes)
        .time_if(7, "ce_threshold", params.ce_threshold_ns)
        .word(9, "memory_limit", memory)
        .spec()
}

/// TCA_PIE_*
fn pie(packets: u32, params: &pie::Params) -> Spec {
    Options::of("pie")
        .time(1, "target", params.target_ns)
        .word(2, "limit", packets)
        .time(3, "tupdate", params.update_ns)
        .word(4, "alpha", params.alpha)
        .word(5, "beta", params.beta)
        .flag(6, "ecn", params.ecn)
        .flag(7, "bytemode", params.byte_mode)
        .flag(8, "dq_rate_estimator", params.rate_estimator)
        .spec()
}

/// TCA_FQ_PIE_*
fn fq_pie(packets: u32, params: &fq_pie::Params) -> Spec {
    Options::of("fq_pie")
        .word(1, "limit", packets)
        .word(2, "flows", params.flows)
        .time(3, "target", params.target_ns)
        .time(4, "tupdate", params.update_ns)
        .word(5, "alpha", params.alpha)
        .word(6, "beta", params.beta)
        .word(7, "quantum", params.quantum_bytes)
        .word(9, "ecn_prob", params.ecn_percent)
        .flag(10, "ecn", params.ecn)
        .flag(11, "bytemode", params.byte_mode)
        .flag(12, "dq_rate_estimator", params.rate_estimator)
        .nested()
}

fn sfq(packets: u32, params: &sfq::Params) -> Spec {
    // struct tc_sfq_qopt_v1: quantum, perturb_period, limit, divisor, flows; depth, headdrop; then 44
    // bytes of RED's parameters and statistics.
    const RED_BYTES: usize = 44;
    let sfq::Params {
        quantum_bytes,
        flows,
        buckets,
        depth_packets,
        head_drop,
    } = *params;
    let fields = [
        quantum_bytes,
        0,
        packets,
        buckets,
        flows,
        depth_packets,
        u32::from(head_drop),
    ];
    let mut options = fields.map(u32::to_ne_bytes).concat();
    options.resize(options.len() + RED_BYTES, 0);
    let line = format!(
        "sfq limit {packets} quantum {quantum_bytes} flows {flows} divisor {buckets} depth \
         {depth_packets}{}",
        flag(head_drop, "headdrop")
    );
    Spec::new("sfq", options, line)
}

fn prio(qdisc: &Qdisc, params: &prio::Params) -> Result<Spec, String> {
    // struct tc_prio_qopt: bands, priomap. Packets that no filter takes go to the default band.
    const TC_PRIO_MAX: usize = 15;
    let prio::Params {
        bands,
        default_band,
        ref filters,
    } = *params;
    let mut options = u32::from(bands).to_ne_bytes().to_vec();
    options.extend_from_slice(&[default_band; TC_PRIO_MAX + 1]);
    let mut line = format!("prio bands {bands} default {default_band}");
    for (dscp, band) in filters {
        line += &format!(" dscp {dscp} band {band}");
    }
    let mut spec = Spec::new("prio", options, line);
    for _ in 0..bands {
        spec.bands.push(fifo(qdisc)?);
    }
    spec.filters = filters
        .iter()
        .map(|&(dscp, band)| Filter { dscp, band })
        .collect();
    Ok(spec)
}

/// TCA_DUALPI2_*, since Linux 6.17.
fn dualpi2(packets: u32, params: &dualpi2::Params) -> Spec {
    // Stock TCP sends ECT(0) with every congestion control, so all packets that can be marked are
    // queued as L4S; the front end refuses others.
    const TC_DUALPI2_ECN_MASK_ANY_ECT: u8 = 3;
    let (coupling, classic_percent) = (params.coupling, params.classic_percent);
    let byte = |value: u32| [u8::try_from(value).unwrap_or(u8::MAX)];
    let overload = ["overflow", "drop_on_overload"][usize::from(params.drop_overload)];
    Options::of("dualpi2")
        .word(1, "limit", packets)
        .time(3, "target", params.target_ns)
        .time(4, "tupdate", params.update_ns)
        .word_in(5, "alpha", params.alpha, "/256")
        .word_in(6, "beta", params.beta, "/256")
        .time(8, "step_thresh", params.step_ns)
        .word(9, "min_qlen_step", params.min_qlen_step_packets)
        .attribute(10, &byte(coupling), &format!("coupling_factor {coupling}"))
        .attribute(11, &[u8::from(params.drop_overload)], overload)
        .attribute(
            13,
            &byte(classic_percent),
            &format!("classic_protection {classic_percent}%"),
        )
        .attribute(14, &[TC_DUALPI2_ECN_MASK_ANY_ECT], "any_ect")
        .nested()
}
