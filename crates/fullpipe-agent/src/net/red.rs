//! What tc derives from RED's parameters before the kernel sees them (iproute2 tc/tc_red.c; Floyd
//! and Jacobson 1993).

use fullpipe_plan::Aqm;

/// Ticks of 64 ns in a us.
const TICKS_PER_US: f64 = 15.625;
/// TC_RED_ECN
const FLAG_ECN: u8 = 1;

/// Parameters as the kernel takes them.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    min_bytes: u32,
    max_bytes: u32,
    /// Weight of the average, as -log2.
    wlog: u8,
    /// Probability per byte above the minimum, as -log2 (kernels before max_P).
    plog: u8,
    /// Shift of the idle time to the index of [`Parameters::idle_decay`].
    cell_log: u8,
    ecn: bool,
    pub(crate) idle_decay: [u8; 256],
    /// Of 2^32.
    pub(crate) max_probability: u32,
    pub(crate) line: String,
}

impl Parameters {
    /// struct tc_red_qopt.
    pub(crate) fn qopt(&self, limit_bytes: u32) -> [u8; 16] {
        let mut raw = [0; 16];
        raw[0..4].copy_from_slice(&limit_bytes.to_ne_bytes());
        raw[4..8].copy_from_slice(&self.min_bytes.to_ne_bytes());
        raw[8..12].copy_from_slice(&self.max_bytes.to_ne_bytes());
        raw[12] = self.wlog;
        raw[13] = self.plog;
        raw[14] = self.cell_log;
        raw[15] = if self.ecn { FLAG_ECN } else { 0 };
        raw
    }
}

pub(crate) fn derive(aqm: &Aqm, rate_bps: u64) -> Result<Parameters, String> {
    let Aqm::Red {
        min_bytes,
        max_bytes,
        max_probability_ppm,
        avpkt_bytes,
        burst_packets,
        ecn,
    } = *aqm
    else {
        unreachable!("called for red only")
    };
    let bad = |what: &str| format!("path.qdisc.aqm: red {what}");
    let (Ok(min), Ok(max)) = (u32::try_from(min_bytes), u32::try_from(max_bytes)) else {
        return Err(bad("min and max must be below 4 GiB"));
    };
    if min >= max {
        return Err(bad("min must be below max"));
    }
    let probability = f64::from(max_probability_ppm) / 1e6;
    let average = f64::from(avpkt_bytes.max(1));
    let wlog = weight(f64::from(min) / average, f64::from(burst_packets))
        .ok_or_else(|| bad("burst_packets is too small for min_bytes"))?;
    let plog = (0..32)
        .find(|&log| probability / f64::from(max - min) * f64::from(2u32).powi(log) > 1.0)
        .unwrap_or(31) as u8;
    let (cell_log, idle_decay) = idle_decay(wlog, average, rate_bps)
        .ok_or_else(|| bad("cannot be tabulated for this rate and average packet"))?;
    Ok(Parameters {
        min_bytes: min,
        max_bytes: max,
        wlog,
        plog,
        cell_log,
        ecn,
        idle_decay,
        max_probability: (probability * f64::from(2u32).powi(32)) as u32,
        line: format!(
            "min {min} max {max} avpkt {avpkt_bytes} burst {burst_packets} probability \
             {probability}{}",
            if ecn { " ecn" } else { "" }
        ),
    })
}

/// The smallest weight that lets `burst` packets pass an empty queue: tc_red_eval_ewma().
fn weight(min_packets: f64, burst: f64) -> Option<u8> {
    let wanted = burst + 1.0 - min_packets;
    if wanted < 1.0 {
        return None;
    }
    (1..32u8).find(|&log| {
        let weight = f64::from(2u32).powi(-i32::from(log));
        wanted <= (1.0 - (1.0 - weight).powf(burst)) / weight
    })
}

/// How many shifts the average decays in an idle time: tc_red_eval_idle_damping().
fn idle_decay(wlog: u8, average_bytes: f64, rate_bps: u64) -> Option<(u8, [u8; 256])> {
    let packet_us = average_bytes * 8e6 / rate_bps.max(1) as f64;
    let packet_ticks = packet_us * TICKS_PER_US;
    let per_tick = -(1.0 - f64::from(2u32).powi(-i32::from(wlog))).ln() / packet_ticks;
    let longest = 31.0 / per_tick;
    let cell_log = (0..32u8).find(|&log| longest / f64::from(2u32).powi(log.into()) < 512.0)?;
    let mut table = [31u8; 256];
    for (index, cell) in table[..255].iter_mut().enumerate() {
        let ticks = index as f64 * f64::from(2u32).powi(cell_log.into());
        *cell = (ticks * per_tick).min(31.0) as u8;
    }
    Some((cell_log, table))
}
