//! Each queue discipline as netlink options, and where its statistics count marks (linux/pkt_sched.h). A new
//! discipline is a function here, its arm in [`queue`] and, if it marks, its arm in [`marks`].

use fullpipe_net::queue::{codel, dualpi2, fq, fq_codel, fq_pie, pie, prio, sfq};
use fullpipe_net::{Aqm, Qdisc};

use super::cake::{self, cake};
use super::red::red;
use super::shaper;
use super::spec::{bytes_u32, flag, us, words, Filter, Spec, UNLIMITED_PACKETS};
use crate::net::netlink::u32_at;

/// The queue of a bottleneck. A discipline that shapes takes the rate itself.
pub(crate) fn queue(qdisc: &Qdisc, rate_bps: u64) -> Result<Spec, String> {
    let bytes = qdisc.limit_bytes;
    let packets = qdisc.limit_packets.unwrap_or(UNLIMITED_PACKETS);
    match &qdisc.aqm {
        Aqm::Fifo(_) => fifo(qdisc),
        Aqm::Fq(params) => Ok(fq(Some((packets, params)))),
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
        b"red\0" => word(3),      // struct tc_red_xstats
        b"codel\0" => word(6),    // struct tc_codel_xstats
        b"fq_codel\0" => word(3), // struct tc_fq_codel_xstats
        b"pie\0" => word(9),      // struct tc_pie_xstats
        b"fq_pie\0" => word(4),   // struct tc_fq_pie_xstats
        b"dualpi2\0" => word(6),  // struct tc_dualpi2_xstats
        b"cake\0" => cake::marks(statistics),
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

/// sch_fq; `None`: with its defaults, as on a sender's host.
pub(crate) fn fq(limits: Option<(u32, &fq::Params)>) -> Spec {
    const TCA_FQ_PLIMIT: u16 = 1;
    const TCA_FQ_FLOW_PLIMIT: u16 = 2;
    const TCA_FQ_QUANTUM: u16 = 3;
    let Some((packets, params)) = limits else {
        return Spec::of("fq", &words([]), "fq".to_owned());
    };
    let (flow_packets, quantum) = (params.flow_limit_packets, params.quantum_bytes);
    let options = words([
        (TCA_FQ_PLIMIT, packets),
        (TCA_FQ_FLOW_PLIMIT, flow_packets),
        (TCA_FQ_QUANTUM, quantum),
    ]);
    let line = format!("fq limit {packets} flow_limit {flow_packets} quantum {quantum}");
    Spec::of("fq", &options, line)
}

fn codel(packets: u32, params: &codel::Params) -> Spec {
    const TCA_CODEL_TARGET: u16 = 1;
    const TCA_CODEL_LIMIT: u16 = 2;
    const TCA_CODEL_INTERVAL: u16 = 3;
    const TCA_CODEL_ECN: u16 = 4;
    let (target_us, interval_us) = (us(params.target_ns), us(params.interval_ns));
    let options = words([
        (TCA_CODEL_TARGET, target_us),
        (TCA_CODEL_LIMIT, packets),
        (TCA_CODEL_INTERVAL, interval_us),
        (TCA_CODEL_ECN, u32::from(params.ecn)),
    ]);
    let line = format!(
        "codel limit {packets} target {target_us}us interval {interval_us}us{}",
        flag(params.ecn, "ecn")
    );
    Spec::of("codel", &options, line)
}

fn fq_codel(packets: u32, params: &fq_codel::Params) -> Spec {
    const TCA_FQ_CODEL_TARGET: u16 = 1;
    const TCA_FQ_CODEL_LIMIT: u16 = 2;
    const TCA_FQ_CODEL_INTERVAL: u16 = 3;
    const TCA_FQ_CODEL_ECN: u16 = 4;
    const TCA_FQ_CODEL_FLOWS: u16 = 5;
    const TCA_FQ_CODEL_QUANTUM: u16 = 6;
    const TCA_FQ_CODEL_MEMORY_LIMIT: u16 = 9;
    let (target_us, interval_us) = (us(params.target_ns), us(params.interval_ns));
    let (flows, quantum) = (params.flows, params.quantum_bytes);
    let memory = u32::try_from(params.memory_limit_bytes).unwrap_or(u32::MAX);
    let options = words([
        (TCA_FQ_CODEL_TARGET, target_us),
        (TCA_FQ_CODEL_LIMIT, packets),
        (TCA_FQ_CODEL_INTERVAL, interval_us),
        (TCA_FQ_CODEL_ECN, u32::from(params.ecn)),
        (TCA_FQ_CODEL_FLOWS, flows),
        (TCA_FQ_CODEL_QUANTUM, quantum),
        (TCA_FQ_CODEL_MEMORY_LIMIT, memory),
    ]);
    let line = format!(
        "fq_codel limit {packets} flows {flows} quantum {quantum} target {target_us}us \
         interval {interval_us}us memory_limit {memory} {}",
        if params.ecn { "ecn" } else { "noecn" }
    );
    Spec::of("fq_codel", &options, line)
}

fn pie(packets: u32, params: &pie::Params) -> Spec {
    const TCA_PIE_TARGET: u16 = 1;
    const TCA_PIE_LIMIT: u16 = 2;
    const TCA_PIE_TUPDATE: u16 = 3;
    const TCA_PIE_ALPHA: u16 = 4;
    const TCA_PIE_BETA: u16 = 5;
    const TCA_PIE_ECN: u16 = 6;
    const TCA_PIE_BYTEMODE: u16 = 7;
    const TCA_PIE_DQ_RATE_ESTIMATOR: u16 = 8;
    let (target_us, update_us) = (us(params.target_ns), us(params.update_ns));
    let (alpha, beta) = (params.alpha, params.beta);
    let options = words([
        (TCA_PIE_TARGET, target_us),
        (TCA_PIE_LIMIT, packets),
        (TCA_PIE_TUPDATE, update_us),
        (TCA_PIE_ALPHA, alpha),
        (TCA_PIE_BETA, beta),
        (TCA_PIE_ECN, u32::from(params.ecn)),
        (TCA_PIE_BYTEMODE, u32::from(params.byte_mode)),
        (TCA_PIE_DQ_RATE_ESTIMATOR, u32::from(params.rate_estimator)),
    ]);
    let line = format!(
        "pie limit {packets} target {target_us}us tupdate {update_us}us alpha {alpha} beta {beta}\
         {}{}{}",
        flag(params.ecn, "ecn"),
        flag(params.byte_mode, "bytemode"),
        flag(params.rate_estimator, "dq_rate_estimator")
    );
    Spec::of("pie", &options, line)
}

fn fq_pie(packets: u32, params: &fq_pie::Params) -> Spec {
    const TCA_FQ_PIE_LIMIT: u16 = 1;
    const TCA_FQ_PIE_FLOWS: u16 = 2;
    const TCA_FQ_PIE_TARGET: u16 = 3;
    const TCA_FQ_PIE_TUPDATE: u16 = 4;
    const TCA_FQ_PIE_ALPHA: u16 = 5;
    const TCA_FQ_PIE_BETA: u16 = 6;
    const TCA_FQ_PIE_QUANTUM: u16 = 7;
    const TCA_FQ_PIE_ECN_PROB: u16 = 9;
    const TCA_FQ_PIE_ECN: u16 = 10;
    const TCA_FQ_PIE_BYTEMODE: u16 = 11;
    const TCA_FQ_PIE_DQ_RATE_ESTIMATOR: u16 = 12;
    let (target_us, update_us) = (us(params.target_ns), us(params.update_ns));
    let (alpha, beta) = (params.alpha, params.beta);
    let (flows, quantum, ecn_percent) = (params.flows, params.quantum_bytes, params.ecn_percent);
    let options = words([
        (TCA_FQ_PIE_LIMIT, packets),
        (TCA_FQ_PIE_FLOWS, flows),
        (TCA_FQ_PIE_TARGET, target_us),
        (TCA_FQ_PIE_TUPDATE, update_us),
        (TCA_FQ_PIE_ALPHA, alpha),
        (TCA_FQ_PIE_BETA, beta),
        (TCA_FQ_PIE_QUANTUM, quantum),
        (TCA_FQ_PIE_ECN_PROB, ecn_percent),
        (TCA_FQ_PIE_ECN, u32::from(params.ecn)),
        (TCA_FQ_PIE_BYTEMODE, u32::from(params.byte_mode)),
        (
            TCA_FQ_PIE_DQ_RATE_ESTIMATOR,
            u32::from(params.rate_estimator),
        ),
    ]);
    let line = format!(
        "fq_pie limit {packets} target {target_us}us tupdate {update_us}us alpha {alpha} beta \
         {beta}{}{}{} flows {flows} quantum {quantum} ecn_prob {ecn_percent}",
        flag(params.ecn, "ecn"),
        flag(params.byte_mode, "bytemode"),
        flag(params.rate_estimator, "dq_rate_estimator")
    );
    Spec::of("fq_pie", &options, line).nested()
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
    let head_drop_word = u32::from(head_drop);
    let fields = [
        quantum_bytes,
        0,
        packets,
        buckets,
        flows,
        depth_packets,
        head_drop_word,
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

fn dualpi2(packets: u32, params: &dualpi2::Params) -> Spec {
    // linux/pkt_sched.h since 6.17
    const TCA_DUALPI2_LIMIT: u16 = 1;
    const TCA_DUALPI2_TARGET: u16 = 3;
    const TCA_DUALPI2_TUPDATE: u16 = 4;
    const TCA_DUALPI2_ALPHA: u16 = 5;
    const TCA_DUALPI2_BETA: u16 = 6;
    const TCA_DUALPI2_STEP_THRESH_US: u16 = 8;
    const TCA_DUALPI2_COUPLING: u16 = 10;
    const TCA_DUALPI2_DROP_OVERLOAD: u16 = 11;
    const TCA_DUALPI2_C_PROTECTION: u16 = 13;
    const TCA_DUALPI2_ECN_MASK: u16 = 14;
    // Stock TCP sends ECT(0) with every congestion control, so all packets that can be marked are
    // queued as L4S; the front end refuses others.
    const TC_DUALPI2_ECN_MASK_ANY_ECT: u8 = 3;
    let (target_us, update_us) = (us(params.target_ns), us(params.update_ns));
    let (alpha, beta, step_us) = (params.alpha, params.beta, us(params.step_ns));
    let (coupling, classic_percent) = (params.coupling, params.classic_percent);
    let mut options = words([
        (TCA_DUALPI2_LIMIT, packets),
        (TCA_DUALPI2_TARGET, target_us),
        (TCA_DUALPI2_TUPDATE, update_us),
        (TCA_DUALPI2_ALPHA, alpha),
        (TCA_DUALPI2_BETA, beta),
        (TCA_DUALPI2_STEP_THRESH_US, step_us),
    ]);
    let byte = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    for (attribute, value) in [
        (TCA_DUALPI2_COUPLING, byte(coupling)),
        (TCA_DUALPI2_DROP_OVERLOAD, u8::from(params.drop_overload)),
        (TCA_DUALPI2_C_PROTECTION, byte(classic_percent)),
        (TCA_DUALPI2_ECN_MASK, TC_DUALPI2_ECN_MASK_ANY_ECT),
    ] {
        options.attribute(attribute, &[value]);
    }
    let line = format!(
        "dualpi2 limit {packets} target {target_us}us tupdate {update_us}us alpha {alpha}/256 beta \
         {beta}/256 step_thresh {step_us}us coupling_factor {coupling} classic_protection \
         {classic_percent}% any_ect {}",
        match params.drop_overload {
            true => "drop_on_overload",
            false => "overflow",
        }
    );
    Spec::of("dualpi2", &options, line).nested()
}
