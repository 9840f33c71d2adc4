//! Attaches queue disciplines, classes and filters to ports, and changes them.

use super::spec::{Filter, Spec};
use crate::net::namespace::Node;
use crate::net::netlink::{Message, CREATE};

/// Flags of a request that changes what is there.
pub(super) const CHANGE: u16 = 0;
/// TC_H_ROOT of linux/pkt_sched.h
pub(crate) const ROOT: u32 = 0xffff_ffff;

/// `major:` as a handle.
pub(crate) const fn handle(major: u32) -> u32 {
    major << 16
}

/// The only class of a qdisc that has just one (netem, tbf).
pub(crate) const fn inside(handle: u32) -> u32 {
    handle | 1
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

/// A u32 filter on the DSCP of IPv4.
fn add_filter(node: &mut Node, port_index: u32, parent: u32, filter: Filter) -> Result<(), String> {
    // linux/pkt_cls.h
    const TCA_U32_CLASSID: u16 = 1;
    const TCA_U32_SEL: u16 = 5;
    const TC_U32_TERMINAL: u8 = 1;
    const DSCP_MASK: u32 = 0x00fc_0000;
    let mut fixed = tcmsg(port_index, 0, parent);
    // tcm_info: priority 1, protocol IPv4 in network order.
    let info = 1u32 << 16 | u32::from((libc::ETH_P_IP as u16).to_be());
    fixed[16..20].copy_from_slice(&info.to_ne_bytes());
    // struct tc_u32_sel: flags, offshift, nkeys, ...
    let mut selector = vec![TC_U32_TERMINAL, 0, 1, 0];
    selector.resize(16, 0);
    // struct tc_u32_key: mask, value, offset 0 of the IP header, no moving offset.
    selector.extend_from_slice(&DSCP_MASK.to_be_bytes());
    selector.extend_from_slice(&(u32::from(filter.dscp) << 18).to_be_bytes());
    selector.extend_from_slice(&[0; 8]);
    let mut message = Message::request(libc::RTM_NEWTFILTER, CREATE, &fixed);
    message.attribute_text(libc::TCA_KIND, "u32");
    message.nested(libc::TCA_OPTIONS, |options| {
        options.attribute_u32(TCA_U32_CLASSID, parent | (u32::from(filter.band) + 1));
        options.attribute(TCA_U32_SEL, &selector);
    });
    node.netlink.ask(message).map_err(|error| {
        let (dscp, band) = (filter.dscp, filter.band);
        format!(
            "{}: filter of DSCP {dscp} to band {band}: {error}",
            node.name
        )
    })
}

/// Changes the parameters of a qdisc, which keeps its packets.
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

pub(super) fn put(
    node: &mut Node,
    message_type: u16,
    flags: u16,
    (port_index, parent, handle): (u32, u32, u32),
    spec: &Spec,
) -> Result<(), String> {
    let nested = match spec.is_nested {
        true => libc::NLA_F_NESTED as u16,
        false => 0,
    };
    let mut message = Message::request(message_type, flags, &tcmsg(port_index, handle, parent));
    message.attribute_text(libc::TCA_KIND, spec.kind);
    message.attribute(libc::TCA_OPTIONS | nested, &spec.options);
    node.netlink.ask(message).map_err(|error| {
        format!(
            "{}: tc {}: {error} (does this kernel have sch_{}?)",
            node.name,
            spec.line,
            module(spec.kind)
        )
    })
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
