//! Shapers of a link's rate: htb with one class, and tbf.

use fullpipe_net::{Framing, Overhead, LINK_HEADER_BYTES};

use super::attach::{handle, put, CHANGE};
use super::spec::{rate_spec, ticks, PacketCost, Spec};
use crate::net::namespace::Node;
use crate::net::netlink::{Message, CREATE};

/// The class that gets all packets.
pub(crate) const HTB_CLASS: u32 = 0x1_0010;
/// Credit that testbeds give htb: a packet and a bit (bytes).
const BURST_BYTES: u32 = 1600;
// linux/pkt_sched.h
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// TC_HTB_PROTOVER
const HTB_VERSION: u32 = 3;
/// What tc gives r2q and the class's quantum.
const HTB_RATE_TO_QUANTUM: u32 = 10;
const HTB_QUANTUM_BYTES: u32 = 1514;
const NS_PER_S: u64 = 1_000_000_000;

/// htb that sends all packets to [`HTB_CLASS`].
pub(crate) fn htb() -> Spec {
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts
    let glob = [HTB_VERSION, HTB_RATE_TO_QUANTUM, HTB_CLASS & 0xffff, 0, 0];
    let mut options = Message::attributes();
    options.attribute(TCA_HTB_INIT, &glob.map(u32::to_ne_bytes).concat());
    Spec::of("htb", &options, "htb default 10".to_owned())
}

/// What htb's class lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A rate, in bit/s, and what the link layer adds to packets.
    Rate(u64, Option<Overhead>),
    /// One packet of any size, which lasts for so many ns. htb has no rate of 0.
    Outage(u64),
}

/// What a packet costs during an outage, whatever its size: the most that a class can say (struct
/// tc_ratespec, `mpu`).
const OUTAGE_PACKET_BYTES: u16 = u16::MAX;
/// htb keeps credit as time, so that a bucket of bytes would be one of milliseconds during an outage.
const OUTAGE_BURST_BYTES: u32 = 1;

/// A link layer's overhead, which is in place of the Ethernet header, as htb's, which is added to it.
fn packet_cost(overhead: Option<Overhead>) -> PacketCost {
    overhead.map_or_else(PacketCost::default, |overhead| {
        let header_bytes = LINK_HEADER_BYTES as i32;
        let more = overhead.bytes.unwrap_or(header_bytes) - header_bytes;
        PacketCost {
            overhead_bytes: u16::try_from(more).unwrap_or(0),
            mpu_bytes: u16::try_from(overhead.mpu_bytes).unwrap_or(u16::MAX),
            is_atm: overhead.framing == Framing::Atm,
        }
    })
}

fn htb_class(shape: Shape) -> Spec {
    let (bytes_per_s, cost, burst_bytes) = match shape {
        Shape::Rate(rate_bps, overhead) => (rate_bps / 8, packet_cost(overhead), BURST_BYTES),
        Shape::Outage(length_ns) => {
            let bytes_per_s = u64::from(OUTAGE_PACKET_BYTES) * NS_PER_S / length_ns.max(1);
            let cost = PacketCost {
                mpu_bytes: OUTAGE_PACKET_BYTES,
                ..PacketCost::default()
            };
            (bytes_per_s.max(1), cost, OUTAGE_BURST_BYTES)
        }
    };
    let rate = rate_spec(bytes_per_s, cost);
    let credit = ticks(u64::from(burst_bytes), bytes_per_s).to_ne_bytes();
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio
    let mut opt = [rate, rate].concat();
    opt.extend_from_slice(&credit);
    opt.extend_from_slice(&credit);
    opt.extend_from_slice(&HTB_QUANTUM_BYTES.to_ne_bytes());
    opt.extend_from_slice(&[0; 8]);
    let mut options = Message::attributes();
    options.attribute(TCA_HTB_PARMS, &opt);
    options.attribute_u64(TCA_HTB_RATE64, bytes_per_s);
    options.attribute_u64(TCA_HTB_CEIL64, bytes_per_s);
    let rate_bps = 8 * bytes_per_s;
    let mut line = format!("htb rate {rate_bps}bit burst {burst_bytes} cburst {burst_bytes}");
    if cost.overhead_bytes > 0 || cost.is_atm {
        let layer = if cost.is_atm { "atm" } else { "ethernet" };
        let (overhead, mpu) = (cost.overhead_bytes, cost.mpu_bytes);
        line.push_str(&format!(" overhead {overhead} mpu {mpu} linklayer {layer}"));
    }
    Spec::of("htb", &options, line)
}

/// What tc would be told of htb's class.
pub(crate) fn class_line(shape: Shape) -> String {
    htb_class(shape).line
}

/// Adds htb's class or changes it: what is owed stays owed (htb_change_class()).
pub(crate) fn put_htb_class(
    node: &mut Node,
    port_index: u32,
    shape: Shape,
    is_new: bool,
) -> Result<(), String> {
    let flags = if is_new { CREATE } else { CHANGE };
    let place = (port_index, handle(1), HTB_CLASS);
    let class = htb_class(shape);
    put(node, libc::RTM_NEWTCLASS, flags, place, &class)
}

/// The rate of a link that sends packets one by one (tbf segments bursts larger than its credit).
pub(crate) fn link_rate(rate_bps: u64, mtu_bytes: u32) -> Spec {
    let burst_bytes = BURST_BYTES.max(mtu_bytes + LINK_HEADER_BYTES);
    tbf(rate_bps, burst_bytes, u32::MAX / 2)
}

pub(super) fn tbf(rate_bps: u64, burst_bytes: u32, limit_bytes: u32) -> Spec {
    let bytes_per_s = rate_bps / 8;
    // struct tc_tbf_qopt: rate, peakrate, limit, buffer, mtu
    let mut qopt = rate_spec(bytes_per_s, PacketCost::default()).to_vec();
    qopt.extend_from_slice(&[0; 12]);
    qopt.extend_from_slice(&limit_bytes.to_ne_bytes());
    qopt.extend_from_slice(&ticks(u64::from(burst_bytes), bytes_per_s).to_ne_bytes());
    qopt.extend_from_slice(&0u32.to_ne_bytes());
    let mut options = Message::attributes();
    options.attribute(TCA_TBF_PARMS, &qopt);
    options.attribute_u64(TCA_TBF_RATE64, bytes_per_s);
    options.attribute_u32(TCA_TBF_BURST, burst_bytes);
    let line = format!("tbf rate {rate_bps}bit burst {burst_bytes} limit {limit_bytes}");
    Spec::of("tbf", &options, line)
}
