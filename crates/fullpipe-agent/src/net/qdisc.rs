//! Queue disciplines as netlink options (linux/pkt_sched.h), each with a line for people in tc's
//! words. It must never know where in a path one stands.

use fullpipe_plan::{Aqm, Chance, GilbertElliott, Loss, Qdisc, Reorder};

use super::disciplines;
use super::namespace::Node;
use super::netlink::{Message, CREATE};
use super::red;

/// Flags of a request to change what is there.
const CHANGE: u16 = 0;
/// A packet and a bit: the credit that testbeds give htb (bytes).
const BURST_BYTES: u64 = 1600;
/// netem holds a path's delay and must never be what drops.
const NETEM_LIMIT_PACKETS: u32 = 1_000_000;
/// A queue that is limited by nothing else.
pub(super) const UNLIMITED_PACKETS: u32 = 1_000_000;
const LINKLAYER_ETHERNET: u8 = 1;
/// Psched ticks are 64 ns (PSCHED_SHIFT 6).
const NS_PER_TICK: u64 = 64;

/// htb's class that everything goes to.
pub(crate) const HTB_CLASS: u32 = 0x1_0010;
pub(crate) const ROOT: u32 = 0xffff_ffff;

/// `major:` as a handle.
pub(crate) const fn handle(major: u32) -> u32 {
    major << 16
}

/// The only class of a qdisc that has just one (netem, tbf).
pub(crate) const fn inside(handle: u32) -> u32 {
    handle | 1
}

/// A queue discipline, ready to be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) kind: &'static str,
    options: Vec<u8>,
    /// As tc would take it.
    pub(crate) line: String,
    /// What stands in its bands (prio), and which packets go where.
    pub(super) bands: Vec<Self>,
    pub(super) filters: Vec<Filter>,
}

/// Packets of a DSCP go to a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) dscp: u8,
    pub(super) band: u8,
}

impl Spec {
    pub(super) fn new(kind: &'static str, options: Vec<u8>, line: String) -> Self {
        Self {
            kind,
            options,
            line,
            bands: Vec::new(),
            filters: Vec::new(),
        }
    }
}

/// What netem does to every packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Netem {
    /// Least delay.
    pub(crate) delay_ns: u64,
    /// Each packet draws up to this much more, and waits for those before it.
    pub(crate) jitter_ns: u64,
    /// Packets wait for a slot, which begins so long (least, most) after the first of them came.
    pub(crate) slot_ns: Option<(u64, u64)>,
    /// A packet that is delayed less than the one before it waits for that.
    pub(crate) keeps_order: bool,
    pub(crate) loss: Option<Loss>,
    pub(crate) gemodel: Option<GilbertElliott>,
    pub(crate) duplicate: Option<Chance>,
    pub(crate) reorder: Option<Reorder>,
    /// Of its random numbers, where the kernel takes one (Linux 6.7 and later).
    pub(crate) seed: u64,
}

/// Attaches a qdisc to a port of a node.
pub(crate) fn attach(
    node: &mut Node,
    port_index: u32,
    parent: u32,
    handle: u32,
    spec: &Spec,
) -> Result<(), String> {
    let place = (port_index, parent, handle);
    put(node, libc::RTM_NEWQDISC, CREATE, place, spec)?;
    for (band, inner) in spec.bands.iter().enumerate() {
        let class = handle | (band as u32 + 1);
        // Any handle that no other qdisc of the port has.
        let own = handle + ((band as u32 + 1) << 20);
        attach(node, port_index, class, own, inner)?;
    }
    for filter in &spec.filters {
        add_filter(node, port_index, handle, *filter)?;
    }
    Ok(())
}

/// A u32 filter on the DSCP of IPv4 (linux/pkt_cls.h, struct tc_u32_sel).
fn add_filter(node: &mut Node, port_index: u32, parent: u32, filter: Filter) -> Result<(), String> {
    const TERMINAL: u8 = 1;
    const DSCP_MASK: u32 = 0x00fc_0000;
    let mut fixed = tcmsg(port_index, 0, parent);
    // Priority 1, protocol IPv4 in network order.
    let info = 1u32 << 16 | u32::from((libc::ETH_P_IP as u16).to_be());
    fixed[16..20].copy_from_slice(&info.to_ne_bytes());
    let mut selector = vec![TERMINAL, 0, 1, 0];
    selector.resize(16, 0);
    // The key: mask, value, offset 0 of the IP header, no moving offset.
    selector.extend_from_slice(&DSCP_MASK.to_be_bytes());
    selector.extend_from_slice(&(u32::from(filter.dscp) << 18).to_be_bytes());
    selector.extend_from_slice(&[0; 8]);
    let mut message = Message::request(libc::RTM_NEWTFILTER, CREATE, &fixed);
    message.attribute_text(libc::TCA_KIND, "u32");
    message.nested(libc::TCA_OPTIONS, |options| {
        options.attribute_u32(1, parent | (u32::from(filter.band) + 1));
        options.attribute(5, &selector);
    });
    node.netlink.ask(message).map_err(|error| {
        let (dscp, band) = (filter.dscp, filter.band);
        format!(
            "{}: filter of DSCP {dscp} to band {band}: {error}",
            node.name
        )
    })
}

/// htb's one class, of a rate.
pub(crate) fn attach_htb_class(
    node: &mut Node,
    port_index: u32,
    rate_bps: u64,
) -> Result<(), String> {
    put_htb_class(node, port_index, rate_bps, CREATE)
}

/// Another rate for it; what is owed stays owed (htb_change_class()).
pub(crate) fn change_htb_class(
    node: &mut Node,
    port_index: u32,
    rate_bps: u64,
) -> Result<(), String> {
    put_htb_class(node, port_index, rate_bps, CHANGE)
}

fn put_htb_class(
    node: &mut Node,
    port_index: u32,
    rate_bps: u64,
    flags: u16,
) -> Result<(), String> {
    let place = (port_index, handle(1), HTB_CLASS);
    put(
        node,
        libc::RTM_NEWTCLASS,
        flags,
        place,
        &htb_class(rate_bps),
    )
}

/// Other parameters for a qdisc; what it holds it keeps.
pub(crate) fn change(
    node: &mut Node,
    port_index: u32,
    parent: u32,
    handle: u32,
    spec: &Spec,
) -> Result<(), String> {
    let place = (port_index, parent, handle);
    put(node, libc::RTM_NEWQDISC, CHANGE, place, spec)
}

fn put(
    node: &mut Node,
    kind: u16,
    flags: u16,
    (port_index, parent, handle): (u32, u32, u32),
    spec: &Spec,
) -> Result<(), String> {
    let mut message = Message::request(kind, flags, &tcmsg(port_index, handle, parent));
    message.attribute_text(libc::TCA_KIND, spec.kind);
    message.attribute(libc::TCA_OPTIONS | nested_flag(spec.kind), &spec.options);
    node.netlink.ask(message).map_err(|error| {
        format!(
            "{}: tc {}: {error} (does this kernel have sch_{}?)",
            node.name,
            spec.line,
            module(spec.kind)
        )
    })
}

/// Younger disciplines insist that nested attributes say so (nla_parse_nested()).
fn nested_flag(kind: &str) -> u16 {
    match kind {
        "fq_pie" | "dualpi2" => libc::NLA_F_NESTED as u16,
        _ => 0,
    }
}

fn module(kind: &str) -> &str {
    match kind {
        "bfifo" | "pfifo" => "fifo",
        other => other,
    }
}

/// linux/rtnetlink.h, struct tcmsg.
pub(crate) fn tcmsg(port_index: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut fixed = [0; 20];
    fixed[4..8].copy_from_slice(&port_index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&handle.to_ne_bytes());
    fixed[12..16].copy_from_slice(&parent.to_ne_bytes());
    fixed
}

/// The queue of a bottleneck. CAKE brings its own shaper and takes the rate itself.
pub(crate) fn queue(qdisc: &Qdisc, rate_bps: u64) -> Result<Spec, String> {
    let packets = qdisc.limit_packets.unwrap_or(UNLIMITED_PACKETS);
    Ok(match qdisc.aqm {
        Aqm::Fifo => fifo(qdisc)?,
        Aqm::Fq {
            quantum_bytes,
            flow_limit_packets,
        } => fq(Some((packets, quantum_bytes, flow_limit_packets))),
        Aqm::Codel {
            target_ns,
            interval_ns,
            ecn,
        } => codel(packets, target_ns, interval_ns, ecn),
        Aqm::FqCodel { .. } => fq_codel(packets, &qdisc.aqm),
        Aqm::Red { .. } => red(qdisc, rate_bps)?,
        _ => disciplines::spec(qdisc, rate_bps)?,
    })
}

pub(super) fn fifo(qdisc: &Qdisc) -> Result<Spec, String> {
    let (kind, limit) = match (qdisc.limit_bytes, qdisc.limit_packets) {
        (Some(_), Some(_)) => {
            return Err("path.qdisc: a fifo is limited in bytes or in packets, not both".into())
        }
        (Some(bytes), None) => ("bfifo", bytes_u32("path.qdisc.limit_bytes", bytes)?),
        (None, packets) => ("pfifo", packets.unwrap_or(UNLIMITED_PACKETS)),
    };
    Ok(Spec::new(
        kind,
        limit.to_ne_bytes().to_vec(),
        format!("{kind} limit {limit}"),
    ))
}

/// sch_fq; `None`: with its defaults, as a sender's host has it.
pub(crate) fn fq(limits: Option<(u32, u32, u32)>) -> Spec {
    let mut options = Message::attributes();
    let mut line = "fq".to_owned();
    if let Some((packets, quantum_bytes, flow_packets)) = limits {
        options.attribute_u32(1, packets);
        options.attribute_u32(2, flow_packets);
        options.attribute_u32(3, quantum_bytes);
        line = format!("fq limit {packets} flow_limit {flow_packets} quantum {quantum_bytes}");
    }
    Spec::new("fq", options.bytes().to_vec(), line)
}

fn codel(packets: u32, target_ns: u64, interval_ns: u64, ecn: bool) -> Spec {
    let mut options = Message::attributes();
    options.attribute_u32(1, us(target_ns));
    options.attribute_u32(2, packets);
    options.attribute_u32(3, us(interval_ns));
    options.attribute_u32(4, u32::from(ecn));
    Spec::new(
        "codel",
        options.bytes().to_vec(),
        format!(
            "codel limit {packets} target {}us interval {}us{}",
            us(target_ns),
            us(interval_ns),
            if ecn { " ecn" } else { "" }
        ),
    )
}

fn fq_codel(packets: u32, aqm: &Aqm) -> Spec {
    let Aqm::FqCodel {
        target_ns,
        interval_ns,
        quantum_bytes,
        flows,
        memory_limit_bytes,
        ecn,
    } = *aqm
    else {
        unreachable!("called for fq_codel only")
    };
    let memory = u32::try_from(memory_limit_bytes).unwrap_or(u32::MAX);
    let mut options = Message::attributes();
    options.attribute_u32(1, us(target_ns));
    options.attribute_u32(2, packets);
    options.attribute_u32(3, us(interval_ns));
    options.attribute_u32(4, u32::from(ecn));
    options.attribute_u32(5, flows);
    options.attribute_u32(6, quantum_bytes);
    options.attribute_u32(9, memory);
    Spec::new(
        "fq_codel",
        options.bytes().to_vec(),
        format!(
            "fq_codel limit {packets} flows {flows} quantum {quantum_bytes} target {}us \
             interval {}us memory_limit {memory} {}",
            us(target_ns),
            us(interval_ns),
            if ecn { "ecn" } else { "noecn" }
        ),
    )
}

fn red(qdisc: &Qdisc, rate_bps: u64) -> Result<Spec, String> {
    let bytes = qdisc.limit_bytes.unwrap_or(u64::from(u32::MAX));
    let limit = bytes_u32("path.qdisc.limit_bytes", bytes)?;
    let parameters = red::derive(&qdisc.aqm, rate_bps)?;
    let mut options = Message::attributes();
    options.attribute(1, &parameters.qopt(limit));
    options.attribute(2, &parameters.idle_decay);
    options.attribute_u32(3, parameters.max_probability);
    Ok(Spec::new(
        "red",
        options.bytes().to_vec(),
        format!("red limit {limit} {}", parameters.line),
    ))
}

/// htb that sends everything to [`HTB_CLASS`].
pub(crate) fn htb() -> Spec {
    let mut options = Message::attributes();
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts
    let glob = [3, 10, HTB_CLASS & 0xffff, 0, 0];
    options.attribute(2, &glob.map(u32::to_ne_bytes).concat());
    Spec::new("htb", options.bytes().to_vec(), "htb default 10".to_owned())
}

fn htb_class(rate_bps: u64) -> Spec {
    let bytes_per_s = rate_bps / 8;
    let rate = rate_spec(bytes_per_s);
    let credit = ticks(BURST_BYTES, bytes_per_s).to_ne_bytes();
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio
    let mut opt = [rate, rate].concat();
    opt.extend_from_slice(&credit);
    opt.extend_from_slice(&credit);
    opt.extend_from_slice(&1514u32.to_ne_bytes());
    opt.extend_from_slice(&[0; 8]);
    let mut options = Message::attributes();
    options.attribute(1, &opt);
    options.attribute_u64(6, bytes_per_s);
    options.attribute_u64(7, bytes_per_s);
    Spec::new(
        "htb",
        options.bytes().to_vec(),
        format!("htb rate {rate_bps}bit burst {BURST_BYTES} cburst {BURST_BYTES}"),
    )
}

/// A link of a rate that takes packets one by one (tbf cuts bursts larger than its credit).
pub(crate) fn tbf(rate_bps: u64, mtu_bytes: u32) -> Spec {
    let burst_bytes = (BURST_BYTES as u32).max(mtu_bytes + 14);
    disciplines::tbf(rate_bps, burst_bytes, u32::MAX / 2)
}

/// struct tc_ratespec. A link layer that is named needs no rate table.
pub(super) fn rate_spec(bytes_per_s: u64) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[1] = LINKLAYER_ETHERNET;
    spec[8..].copy_from_slice(&u32::try_from(bytes_per_s).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// Time that `bytes` take, in ticks (iproute2 tc_core.c, tc_calc_xmittime()).
pub(super) fn ticks(bytes: u64, bytes_per_s: u64) -> u32 {
    let ns = bytes * 1_000_000_000 / bytes_per_s.max(1);
    u32::try_from(ns.div_ceil(NS_PER_TICK)).unwrap_or(u32::MAX)
}

pub(crate) fn netem(netem: &Netem) -> Spec {
    let mut line = format!("netem limit {NETEM_LIMIT_PACKETS}");
    let loss = netem.loss.as_ref();
    let fraction = |ppm: u32| ((u64::from(ppm) * u64::from(u32::MAX)) / 1_000_000) as u32;
    let percent = |ppm: u32| f64::from(ppm) / 1e4;
    let mut options = Message::attributes();
    // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter
    let probability = loss.map_or(0, |loss| fraction(loss.probability_ppm));
    let gap = netem
        .reorder
        .as_ref()
        .map_or(0, |reorder| reorder.gap.max(1));
    let twice = netem.duplicate.as_ref();
    let copies = twice.map_or(0, |chance| fraction(chance.probability_ppm));
    let qopt = [0, NETEM_LIMIT_PACKETS, probability, gap, copies, 0];
    options.put(&qopt.map(u32::to_ne_bytes).concat());
    // netem draws from delay - jitter ..= delay + jitter.
    let half_ns = netem.jitter_ns / 2;
    options.attribute_u64(10, netem.delay_ns + half_ns);
    if netem.delay_ns > 0 || netem.jitter_ns > 0 {
        line += &format!(" delay {}ns", netem.delay_ns + half_ns);
    }
    if netem.jitter_ns > 0 {
        options.attribute_u64(11, half_ns);
        line += &format!(" {half_ns}ns");
    }
    if netem.jitter_ns > 0 || netem.keeps_order {
        // With a rate, a packet leaves no earlier than the one before it (netem_enqueue()); this
        // one takes no time of its own.
        let endless = 1_000_000_000_000u64;
        let rate = [u32::MAX, 0, 0, 0];
        options.attribute(6, &rate.map(u32::to_ne_bytes).concat());
        options.attribute_u64(8, endless);
        line += " rate 8tbit";
    }
    if let Some((least_ns, most_ns)) = netem.slot_ns {
        let mut slot = [0u8; 40];
        slot[..8].copy_from_slice(&least_ns.to_ne_bytes());
        slot[8..16].copy_from_slice(&most_ns.to_ne_bytes());
        options.attribute(12, &slot);
        line += &format!(" slot {least_ns}ns {most_ns}ns");
    }
    if loss.is_some() || twice.is_some() {
        // struct tc_netem_corr: delay, loss, duplicate
        let of_loss = loss.map_or(0, |loss| fraction(loss.correlation_ppm));
        let of_copies = twice.map_or(0, |chance| fraction(chance.correlation_ppm));
        let correlation = [0, of_loss, of_copies];
        options.attribute(1, &correlation.map(u32::to_ne_bytes).concat());
    }
    if let Some(chance) = twice {
        line += &format!(" duplicate {}%", percent(chance.probability_ppm));
    }
    if let Some(Reorder { chance, gap }) = &netem.reorder {
        let parts = [chance.probability_ppm, chance.correlation_ppm].map(fraction);
        options.attribute(3, &parts.map(u32::to_ne_bytes).concat());
        line += &format!(" reorder {}% gap {gap}", percent(chance.probability_ppm));
    }
    if let Some(chain) = &netem.gemodel {
        // struct tc_netem_gemodel: p, r, h, k1; h is what passes while bad.
        let bad = 1_000_000u32.saturating_sub(chain.loss_bad_ppm);
        let parts = [
            chain.to_bad_ppm,
            chain.to_good_ppm,
            bad,
            chain.loss_good_ppm,
        ]
        .map(fraction);
        options.nested(5, |inner| {
            inner.attribute(2, &parts.map(u32::to_ne_bytes).concat());
        });
        line += &format!(
            " loss gemodel {}% {}% {}% {}%",
            percent(chain.to_bad_ppm),
            percent(chain.to_good_ppm),
            percent(chain.loss_bad_ppm),
            percent(chain.loss_good_ppm)
        );
    }
    if let Some(loss) = loss {
        options.attribute_u32(7, u32::from(loss.ecn));
        line += &format!(
            " loss {}% {}%{}",
            f64::from(loss.probability_ppm) / 1e4,
            f64::from(loss.correlation_ppm) / 1e4,
            if loss.ecn { " ecn" } else { "" }
        );
    }
    options.attribute_u64(14, netem.seed);
    Spec::new("netem", options.bytes().to_vec(), line)
}

pub(super) fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

pub(super) fn bytes_u32(key: &str, bytes: u64) -> Result<u32, String> {
    u32::try_from(bytes)
        .map_err(|_| format!("{key}: {bytes} is above 4294967295, the kernel's most"))
}
