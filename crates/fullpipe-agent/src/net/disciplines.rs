//! Netlink options of the disciplines that home routers and operators use: CAKE, PIE, FQ-PIE, SFQ,
//! TBF, prio with its filters, DualPI2 (linux/pkt_sched.h, linux/pkt_cls.h). It must never know
//! where in a path one stands.

use fullpipe_plan::{Aqm, CakeAckFilter, CakeFraming, CakeIsolation, CakeTins, Qdisc};

use super::netlink::Message;
use super::qdisc::{bytes_u32, fifo, rate_spec, ticks, us, Filter, Spec, UNLIMITED_PACKETS};

pub(super) fn spec(qdisc: &Qdisc, rate_bps: u64) -> Result<Spec, String> {
    let packets = qdisc.limit_packets.unwrap_or(UNLIMITED_PACKETS);
    match &qdisc.aqm {
        Aqm::Cake { .. } => cake(qdisc, rate_bps),
        Aqm::Pie { .. } | Aqm::FqPie { .. } => Ok(pie(packets, &qdisc.aqm)),
        Aqm::Sfq {
            quantum_bytes,
            flows,
            buckets,
            depth_packets,
            head_drop,
        } => {
            let options = [packets, *buckets, *flows, *depth_packets];
            Ok(sfq(*quantum_bytes, options, *head_drop))
        }
        Aqm::Tbf { burst_bytes } => {
            let limit = qdisc.limit_bytes.unwrap_or(u64::from(u32::MAX / 2));
            let limit = bytes_u32("path.qdisc.limit_bytes", limit)?;
            Ok(tbf(rate_bps, *burst_bytes, limit))
        }
        Aqm::Prio {
            bands,
            default_band,
            filters,
        } => prio(qdisc, *bands, *default_band, filters),
        Aqm::Dualpi2 { .. } => Ok(dualpi2(packets, &qdisc.aqm)),
        other => unreachable!("{other:?} is not made here"),
    }
}

fn finish(kind: &'static str, options: &Message, line: String) -> Spec {
    Spec::new(kind, options.bytes().to_vec(), line)
}

/// TCA_CAKE_*
fn cake(qdisc: &Qdisc, rate_bps: u64) -> Result<Spec, String> {
    let Aqm::Cake {
        rtt_ns,
        target_ns,
        shapes,
        tins,
        isolation,
        ack_filter,
        overhead_bytes,
        mpu_bytes,
        framing,
        ingress,
        autorate_ingress,
        wash,
        split_gso,
    } = qdisc.aqm
    else {
        unreachable!("called for CAKE only")
    };
    let (tins, tins_name) = match tins {
        CakeTins::Diffserv3 => (0, "diffserv3"),
        CakeTins::Diffserv4 => (1, "diffserv4"),
        CakeTins::Diffserv8 => (2, "diffserv8"),
        CakeTins::Besteffort => (3, "besteffort"),
        CakeTins::Precedence => (4, "precedence"),
    };
    let (isolation, isolation_name) = match isolation {
        CakeIsolation::Flowblind => (0, "flowblind"),
        CakeIsolation::Srchost => (1, "srchost"),
        CakeIsolation::Dsthost => (2, "dsthost"),
        CakeIsolation::Hosts => (3, "hosts"),
        CakeIsolation::Flows => (4, "flows"),
        CakeIsolation::DualSrchost => (5, "dual-srchost"),
        CakeIsolation::DualDsthost => (6, "dual-dsthost"),
        CakeIsolation::TripleIsolate => (7, "triple-isolate"),
    };
    let (ack_filter, filter_name) = match ack_filter {
        CakeAckFilter::No => (0, "no-ack-filter"),
        CakeAckFilter::Filter => (1, "ack-filter"),
        CakeAckFilter::Aggressive => (2, "ack-filter-aggressive"),
    };
    let (framing, framing_name) = match framing {
        CakeFraming::None => (0, "noatm"),
        CakeFraming::Atm => (1, "atm"),
        CakeFraming::Ptm => (2, "ptm"),
    };
    let mut options = Message::attributes();
    let mut line = String::from("cake");
    if shapes {
        options.attribute_u64(2, rate_bps / 8);
        line += &format!(" bandwidth {rate_bps}bit");
    } else {
        options.attribute_u64(2, 0);
        line += " unlimited";
    }
    options.attribute_u32(3, tins);
    options.attribute_u32(4, framing);
    options.attribute_u32(5, isolation);
    line += &format!(" {tins_name} {isolation_name} {filter_name} {framing_name}");
    if let Some(bytes) = overhead_bytes {
        options.attribute(6, &bytes.to_ne_bytes());
        line += &format!(" overhead {bytes}");
    }
    options.attribute_u32(7, us(rtt_ns));
    options.attribute_u32(8, us(target_ns));
    line += &format!(" rtt {}us target {}us", us(rtt_ns), us(target_ns));
    if let Some(bytes) = qdisc.limit_bytes {
        let memory = bytes_u32("path.qdisc.limit_bytes", bytes)?;
        options.attribute_u32(10, memory);
        line += &format!(" memlimit {memory}");
    }
    if mpu_bytes > 0 {
        options.attribute_u32(14, mpu_bytes);
        line += &format!(" mpu {mpu_bytes}");
    }
    for (attribute, is_on, name) in [
        (9, autorate_ingress, "autorate-ingress"),
        (13, wash, "wash"),
        (15, ingress, "ingress"),
        (17, split_gso, "split-gso"),
    ] {
        options.attribute_u32(attribute, u32::from(is_on));
        if is_on {
            line += &format!(" {name}");
        }
    }
    options.attribute_u32(16, ack_filter);
    Ok(finish("cake", &options, line))
}

/// TCA_PIE_* and TCA_FQ_PIE_*
fn pie(packets: u32, aqm: &Aqm) -> Spec {
    let (Aqm::Pie {
        target_ns,
        update_ns,
        alpha,
        beta,
        byte_mode,
        rate_estimator,
        ecn,
    }
    | Aqm::FqPie {
        target_ns,
        update_ns,
        alpha,
        beta,
        byte_mode,
        rate_estimator,
        ecn,
        ..
    }) = *aqm
    else {
        unreachable!("called for PIE and FQ-PIE only")
    };
    let times = [us(target_ns), us(update_ns)];
    let flags = [ecn, byte_mode, rate_estimator].map(u32::from);
    let mut options = Message::attributes();
    let mut line = format!(
        "limit {packets} target {}us tupdate {}us alpha {alpha} beta {beta}",
        times[0], times[1]
    );
    for (is_on, name) in [
        (ecn, " ecn"),
        (byte_mode, " bytemode"),
        (rate_estimator, " dq_rate_estimator"),
    ] {
        if is_on {
            line += name;
        }
    }
    let Aqm::FqPie {
        ecn_percent,
        quantum_bytes,
        flows,
        ..
    } = *aqm
    else {
        let values = [
            times[0], packets, times[1], alpha, beta, flags[0], flags[1], flags[2],
        ];
        for (index, value) in values.into_iter().enumerate() {
            options.attribute_u32(index as u16 + 1, value);
        }
        return finish("pie", &options, format!("pie {line}"));
    };
    for (attribute, value) in [
        (1, packets),
        (2, flows),
        (3, times[0]),
        (4, times[1]),
        (5, alpha),
        (6, beta),
        (7, quantum_bytes),
        (9, ecn_percent),
        (10, flags[0]),
        (11, flags[1]),
        (12, flags[2]),
    ] {
        options.attribute_u32(attribute, value);
    }
    let line =
        format!("fq_pie {line} flows {flows} quantum {quantum_bytes} ecn_prob {ecn_percent}");
    finish("fq_pie", &options, line)
}

/// struct tc_sfq_qopt_v1: quantum, perturb_period, limit, divisor, flows; depth, headdrop; what is
/// RED's and statistics stays 0.
fn sfq(quantum: u32, [packets, buckets, flows, depth]: [u32; 4], head_drop: bool) -> Spec {
    let words = [
        quantum,
        0,
        packets,
        buckets,
        flows,
        depth,
        u32::from(head_drop),
    ];
    let mut options = words.map(u32::to_ne_bytes).concat();
    options.resize(options.len() + 3 * 4 + 4 + 4 + 6 * 4, 0);
    let line = format!(
        "sfq limit {packets} quantum {quantum} flows {flows} divisor {buckets} depth {depth}{}",
        if head_drop { " headdrop" } else { "" }
    );
    Spec::new("sfq", options, line)
}

/// struct tc_tbf_qopt: rate, peakrate, limit, buffer, mtu
pub(super) fn tbf(rate_bps: u64, burst_bytes: u32, limit_bytes: u32) -> Spec {
    let bytes_per_s = rate_bps / 8;
    let mut qopt = rate_spec(bytes_per_s).to_vec();
    qopt.extend_from_slice(&[0; 12]);
    qopt.extend_from_slice(&limit_bytes.to_ne_bytes());
    qopt.extend_from_slice(&ticks(u64::from(burst_bytes), bytes_per_s).to_ne_bytes());
    qopt.extend_from_slice(&0u32.to_ne_bytes());
    let mut options = Message::attributes();
    options.attribute(1, &qopt);
    options.attribute_u64(4, bytes_per_s);
    options.attribute_u32(6, burst_bytes);
    let line = format!("tbf rate {rate_bps}bit burst {burst_bytes} limit {limit_bytes}");
    finish("tbf", &options, line)
}

/// struct tc_prio_qopt: bands, priomap. Every packet that no filter takes goes to the default.
fn prio(qdisc: &Qdisc, bands: u8, default_band: u8, filters: &[(u8, u8)]) -> Result<Spec, String> {
    let mut options = u32::from(bands).to_ne_bytes().to_vec();
    options.extend_from_slice(&[default_band; 16]);
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

/// TC_DUALPI2_ECN_MASK_ANY_ECT. Stock TCP sends ECT(0) whatever the congestion control, so here every
/// packet that can be marked is L4S's; the front end lets no others near it.
const ANY_ECT: u8 = 3;

/// TCA_DUALPI2_*
fn dualpi2(packets: u32, aqm: &Aqm) -> Spec {
    let Aqm::Dualpi2 {
        target_ns,
        update_ns,
        alpha,
        beta,
        step_ns,
        coupling,
        classic_percent,
        drop_overload,
    } = *aqm
    else {
        unreachable!("called for DualPI2 only")
    };
    let mut options = Message::attributes();
    for (attribute, value) in [
        (1, packets),
        (3, us(target_ns)),
        (4, us(update_ns)),
        (5, alpha),
        (6, beta),
        (8, us(step_ns)),
    ] {
        options.attribute_u32(attribute, value);
    }
    let byte = |value: u32| [u8::try_from(value).unwrap_or(u8::MAX)];
    options.attribute(10, &byte(coupling));
    options.attribute(11, &[u8::from(drop_overload)]);
    options.attribute(13, &byte(classic_percent));
    options.attribute(14, &[ANY_ECT]);
    let line = format!(
        "dualpi2 limit {packets} target {}us tupdate {}us alpha {alpha}/256 beta {beta}/256 \
         step_thresh {}us coupling_factor {coupling} classic_protection {classic_percent}% any_ect {}",
        us(target_ns),
        us(update_ns),
        us(step_ns),
        if drop_overload {
            "drop_on_overload"
        } else {
            "overflow"
        }
    );
    finish("dualpi2", &options, line)
}
