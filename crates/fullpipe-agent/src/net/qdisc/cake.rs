//! CAKE as netlink options, and its statistics (linux/pkt_sched.h).

use fullpipe_net::queue::cake::{AckFilter, Framing, Isolation, Params, Tins};

use super::spec::{bytes_u32, flag, us, Spec};
use crate::net::netlink::{attribute, u32_at, Message};

// TCA_CAKE_*
const BASE_RATE64: u16 = 2;
const DIFFSERV_MODE: u16 = 3;
const ATM: u16 = 4;
const FLOW_MODE: u16 = 5;
const OVERHEAD: u16 = 6;
const RTT: u16 = 7;
const TARGET: u16 = 8;
const AUTORATE: u16 = 9;
const MEMORY: u16 = 10;
const WASH: u16 = 13;
const MPU: u16 = 14;
const INGRESS: u16 = 15;
const ACK_FILTER: u16 = 16;
const SPLIT_GSO: u16 = 17;
// TCA_CAKE_STATS_* and, of each tin, TCA_CAKE_TIN_STATS_*
const STATS_TIN_STATS: u16 = 10;
const TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;
/// TC_CAKE_MAX_TINS
const MAX_TINS: u16 = 8;

pub(super) fn cake(
    limit_bytes: Option<u64>,
    rate_bps: u64,
    params: &Params,
) -> Result<Spec, String> {
    // enum CAKE_DIFFSERV_*
    let (tins, tins_name) = match params.tins {
        Tins::Diffserv3 => (0, "diffserv3"),
        Tins::Diffserv4 => (1, "diffserv4"),
        Tins::Diffserv8 => (2, "diffserv8"),
        Tins::Besteffort => (3, "besteffort"),
        Tins::Precedence => (4, "precedence"),
    };
    // enum CAKE_FLOW_*
    let (isolation, isolation_name) = match params.isolation {
        Isolation::Flowblind => (0, "flowblind"),
        Isolation::Srchost => (1, "srchost"),
        Isolation::Dsthost => (2, "dsthost"),
        Isolation::Hosts => (3, "hosts"),
        Isolation::Flows => (4, "flows"),
        Isolation::DualSrchost => (5, "dual-srchost"),
        Isolation::DualDsthost => (6, "dual-dsthost"),
        Isolation::TripleIsolate => (7, "triple-isolate"),
    };
    // enum CAKE_ACK_*
    let (ack_filter, filter_name) = match params.ack_filter {
        AckFilter::No => (0, "no-ack-filter"),
        AckFilter::Filter => (1, "ack-filter"),
        AckFilter::Aggressive => (2, "ack-filter-aggressive"),
    };
    // enum CAKE_ATM_*
    let (framing, framing_name) = match params.framing {
        Framing::None => (0, "noatm"),
        Framing::Atm => (1, "atm"),
        Framing::Ptm => (2, "ptm"),
    };
    let (rate, rate_name) = match params.shapes {
        true => (rate_bps / 8, format!("bandwidth {rate_bps}bit")),
        false => (0, "unlimited".to_owned()),
    };
    let mut options = Message::attributes();
    options.attribute_u64(BASE_RATE64, rate);
    options.attribute_u32(DIFFSERV_MODE, tins);
    options.attribute_u32(ATM, framing);
    options.attribute_u32(FLOW_MODE, isolation);
    let mut line =
        format!("cake {rate_name} {tins_name} {isolation_name} {filter_name} {framing_name}");
    if let Some(bytes) = params.overhead_bytes {
        options.attribute(OVERHEAD, &bytes.to_ne_bytes());
        line += &format!(" overhead {bytes}");
    }
    let (rtt_us, target_us) = (us(params.rtt_ns), us(params.target_ns));
    options.attribute_u32(RTT, rtt_us);
    options.attribute_u32(TARGET, target_us);
    line += &format!(" rtt {rtt_us}us target {target_us}us");
    if let Some(bytes) = limit_bytes {
        let memory = bytes_u32("path.qdisc.limit_bytes", bytes)?;
        options.attribute_u32(MEMORY, memory);
        line += &format!(" memlimit {memory}");
    }
    if params.mpu_bytes > 0 {
        options.attribute_u32(MPU, params.mpu_bytes);
        line += &format!(" mpu {}", params.mpu_bytes);
    }
    for (attribute, is_set, name) in [
        (AUTORATE, params.autorate_ingress, "autorate-ingress"),
        (WASH, params.wash, "wash"),
        (INGRESS, params.ingress, "ingress"),
        (SPLIT_GSO, params.split_gso, "split-gso"),
    ] {
        options.attribute_u32(attribute, u32::from(is_set));
        line += &flag(is_set, name);
    }
    options.attribute_u32(ACK_FILTER, ack_filter);
    Ok(Spec::of("cake", &options, line))
}

/// Packets that all tins have marked.
pub(super) fn marks(statistics: &[u8]) -> u64 {
    let tins = attribute(statistics, STATS_TIN_STATS).unwrap_or(&[]);
    (1..=MAX_TINS)
        .filter_map(|tin| attribute(attribute(tins, tin)?, TIN_STATS_ECN_MARKED_PACKETS))
        .filter_map(|raw| u32_at(raw, 0))
        .map(u64::from)
        .sum()
}
