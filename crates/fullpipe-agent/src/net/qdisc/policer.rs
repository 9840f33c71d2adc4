//! A policer (act_police.c) of all packets of a port: a filter of a prio, which passes them to one band.

use fullpipe_net::impair::policer::Params;

use super::attach::tcmsg;
use super::spec::{rate_spec, ticks, PacketCost, Spec};
use crate::net::namespace::Node;
use crate::net::netlink::{Message, CREATE};

/// linux/pkt_sched.h: TC_PRIO_MAX, and the fewest bands.
const TC_PRIO_MAX: usize = 15;
const BANDS: u32 = 2;
// linux/pkt_cls.h
const TCA_MATCHALL_CLASSID: u16 = 1;
const TCA_MATCHALL_ACT: u16 = 2;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_POLICE_TBF: u16 = 1;
const TCA_POLICE_RATE: u16 = 2;
const TCA_POLICE_RATE64: u16 = 8;
const TC_ACT_SHOT: u32 = 2;
/// Of a rate table, which the kernel wants and no longer reads (qdisc_get_rtab()).
const RATE_TABLE_BYTES: usize = 1024;
const CELL_LOG: u8 = 3;
/// A packet of any size may pass, as far as tokens reach.
const MTU_BYTES: u32 = u32::MAX;

/// The discipline that a policer's filter belongs to.
pub(crate) fn policed() -> Spec {
    let mut options = BANDS.to_ne_bytes().to_vec();
    options.extend_from_slice(&[0; TC_PRIO_MAX + 1]);
    Spec::new("prio", options, format!("prio bands {BANDS}"))
}

/// Polices what enters that discipline. Returns what tc would be told.
pub(crate) fn police(
    node: &mut Node,
    port_index: u32,
    parent: u32,
    params: &Params,
) -> Result<String, String> {
    let mut fixed = tcmsg(port_index, 0, parent);
    // tcm_info: priority 1, all protocols in network order.
    let info = 1u32 << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
    fixed[16..20].copy_from_slice(&info.to_ne_bytes());
    let mut message = Message::request(libc::RTM_NEWTFILTER, CREATE, &fixed);
    message.attribute_text(libc::TCA_KIND, "matchall");
    message.nested(libc::TCA_OPTIONS, |options| {
        options.attribute_u32(TCA_MATCHALL_CLASSID, parent | 1);
        options.nested(TCA_MATCHALL_ACT, |actions| {
            actions.nested(1, |action| {
                action.attribute_text(TCA_ACT_KIND, "police");
                action.nested(TCA_ACT_OPTIONS, |options| bucket(options, params));
            });
        });
    });
    let (rate_bps, burst_bytes) = (params.rate_bps, params.burst_bytes);
    let line = format!(
        "filter matchall action police rate {rate_bps}bit burst {burst_bytes} conform-exceed drop"
    );
    node.netlink.ask(message).map_err(|error| {
        format!(
            "{}: tc {line}: {error} (does this kernel have cls_matchall and act_police?)",
            node.name
        )
    })?;
    Ok(line)
}

/// The action's options.
fn bucket(options: &mut Message, params: &Params) {
    let bytes_per_s = (params.rate_bps / 8).max(1);
    let mut rate = rate_spec(bytes_per_s, PacketCost::default());
    rate[0] = CELL_LOG;
    // struct tc_police: index, action, limit, burst, mtu, rate, peakrate, refcnt, bindcnt, capab
    let mut police = [
        0,
        TC_ACT_SHOT,
        0,
        ticks(params.burst_bytes, bytes_per_s),
        MTU_BYTES,
    ]
    .map(u32::to_ne_bytes)
    .concat();
    police.extend_from_slice(&rate);
    police.extend_from_slice(&[0; 24]);
    options.attribute(TCA_POLICE_TBF, &police);
    options.attribute(TCA_POLICE_RATE, &[0; RATE_TABLE_BYTES]);
    options.attribute_u64(TCA_POLICE_RATE64, bytes_per_s);
}
