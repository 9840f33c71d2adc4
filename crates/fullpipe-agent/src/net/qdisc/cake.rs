//! CAKE as netlink options, and its statistics (linux/pkt_sched.h).

use fullpipe_net::queue::cake::{AckFilter, Framing, Isolation, Params, Tins};

use super::spec::{bytes_u32, Options, Spec};
use crate::net::netlink::{attribute, u32_at};

/// TCA_CAKE_BASE_RATE64
const BASE_RATE64: u16 = 2;
/// TCA_CAKE_OVERHEAD
const OVERHEAD: u16 = 6;
// TCA_CAKE_STATS_* and, of each tin, TCA_CAKE_TIN_STATS_*
const STATS_TIN_STATS: u16 = 10;
const TIN_STATS_ACKS_DROPPED_PACKETS: u16 = 6;
const TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;
/// TC_CAKE_MAX_TINS
const MAX_TINS: u16 = 8;

pub(super) fn cake(
    limit_bytes: Option<u64>,
    rate_bps: u64,
    params: &Params,
) -> Result<Spec, String> {
    // enum CAKE_DIFFSERV_*
    let tins = match params.tins {
        Tins::Diffserv3 => (0, "diffserv3"),
        Tins::Diffserv4 => (1, "diffserv4"),
        Tins::Diffserv8 => (2, "diffserv8"),
        Tins::Besteffort => (3, "besteffort"),
        Tins::Precedence => (4, "precedence"),
    };
    // enum CAKE_FLOW_*
    let isolation = match params.isolation {
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
    let ack_filter = match params.ack_filter {
        AckFilter::No => (0, "no-ack-filter"),
        AckFilter::Filter => (1, "ack-filter"),
        AckFilter::Aggressive => (2, "ack-filter-aggressive"),
    };
    // enum CAKE_ATM_*
    let framing = match params.framing {
        Framing::None => (0, "noatm"),
        Framing::Atm => (1, "atm"),
        Framing::Ptm => (2, "ptm"),
    };
    let (rate, rate_name) = match params.shapes {
        true => (rate_bps / 8, format!("bandwidth {rate_bps}bit")),
        false => (0, "unlimited".to_owned()),
    };
    // TCA_CAKE_*
    let mut options = Options::of("cake")
        .attribute(BASE_RATE64, &rate.to_ne_bytes(), &rate_name)
        .choice(3, tins)
        .choice(5, isolation)
        .choice(16, ack_filter)
        .choice(4, framing)
        .time(7, "rtt", params.rtt_ns)
        .time(8, "target", params.target_ns)
        .flag(9, "autorate-ingress", params.autorate_ingress)
        .flag(13, "wash", params.wash)
        .flag(15, "ingress", params.ingress)
        .flag(17, "split-gso", params.split_gso);
    if let Some(bytes) = params.overhead_bytes {
        options = options.attribute(OVERHEAD, &bytes.to_ne_bytes(), &format!("overhead {bytes}"));
    }
    if let Some(bytes) = limit_bytes {
        let memory = bytes_u32("path.qdisc.limit_bytes", bytes)?;
        options = options.word(10, "memlimit", memory);
    }
    if params.mpu_bytes > 0 {
        options = options.word(14, "mpu", params.mpu_bytes);
    }
    Ok(options.spec())
}

/// Packets that all tins have marked.
pub(super) fn marks(statistics: &[u8]) -> u64 {
    of_all_tins(statistics, TIN_STATS_ECN_MARKED_PACKETS)
}

/// ACKs that the ACK filters of all tins took out.
pub(super) fn filtered(statistics: &[u8]) -> u64 {
    of_all_tins(statistics, TIN_STATS_ACKS_DROPPED_PACKETS)
}

fn of_all_tins(statistics: &[u8], counter: u16) -> u64 {
    let tins = attribute(statistics, STATS_TIN_STATS).unwrap_or(&[]);
    (1..=MAX_TINS)
        .filter_map(|tin| attribute(attribute(tins, tin)?, counter))
        .filter_map(|raw| u32_at(raw, 0))
        .map(u64::from)
        .sum()
}
