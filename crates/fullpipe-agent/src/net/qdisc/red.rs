//! RED as netlink options (linux/pkt_sched.h), with what tc derives from its parameters (iproute2
//! tc/q_red.c).

use fullpipe_net::queue::red::{Derived, Params};

use super::spec::{bytes_u32, flag, Spec};
use crate::net::netlink::Message;

// TCA_RED_*
const PARMS: u16 = 1;
const STAB: u16 = 2;
const MAX_P: u16 = 3;
/// TC_RED_ECN
const ECN: u8 = 1;
/// TC_RED_ADAPTATIVE
const ADAPTIVE: u8 = 4;

pub(super) fn red(
    limit_bytes: Option<u64>,
    rate_bps: u64,
    params: &Params,
) -> Result<Spec, String> {
    let bad = |what: &str| format!("path.qdisc.aqm: red {what}");
    let limit_bytes = limit_bytes.unwrap_or(u64::from(u32::MAX));
    let limit = bytes_u32("path.qdisc.limit_bytes", limit_bytes)?;
    let (Ok(min), Ok(max)) = (
        u32::try_from(params.min_bytes),
        u32::try_from(params.max_bytes),
    ) else {
        return Err(bad("min and max must be below 4 GiB"));
    };
    if min >= max {
        return Err(bad("min must be below max"));
    }
    let Some(derived) = Derived::by_tc(params, rate_bps) else {
        return Err(bad("burst_packets is too small for min_bytes"));
    };
    let probability = f64::from(params.max_probability_ppm) / 1e6;
    // tc_red_eval_P(): for kernels before TCA_RED_MAX_P.
    let plog = (0..32)
        .find(|&log| probability / f64::from(max - min) * f64::from(2u32).powi(log) > 1.0)
        .unwrap_or(31) as u8;
    // struct tc_red_qopt: limit, qth_min, qth_max, Wlog, Plog, Scell_log, flags
    let mut qopt = [limit, min, max].map(u32::to_ne_bytes).concat();
    qopt.extend_from_slice(&[
        derived.wlog as u8,
        plog,
        derived.cell_log as u8,
        (ECN * u8::from(params.ecn)) | (ADAPTIVE * u8::from(params.adaptive)),
    ]);
    let mut options = Message::attributes();
    options.attribute(PARMS, &qopt);
    options.attribute(STAB, &derived.halvings);
    options.attribute_u32(MAX_P, (probability * f64::from(2u32).powi(32)) as u32);
    let line = format!(
        "red limit {limit} min {min} max {max} avpkt {} burst {} probability {probability}{}{}",
        params.avpkt_bytes,
        params.burst_packets,
        flag(params.ecn, "ecn"),
        flag(params.adaptive, "adaptive")
    );
    Ok(Spec::of("red", &options, line))
}
