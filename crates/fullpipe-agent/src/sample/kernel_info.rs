//! What the kernel's own algorithms tell of themselves (TCP_CC_INFO; linux/inet_diag.h, struct
//! tcp_bbr_info, and its longer form in Google's v3 kernel), as a row of `cc_samples`.

use std::os::fd::OwnedFd;

use fullpipe_plan::CcRow;

use super::tcp_info::{option, TcpInfo};
use crate::net::netlink::u32_at;

/// u32 words of the stock kernel's struct.
const BBR1_WORDS: usize = 5;
/// u32 words of v3's struct.
const BBR3_WORDS: usize = 13;
/// Gains are in 1/256.
const GAIN_ONE: f64 = 256.0;
const CA_STATE_LOSS: u8 = 4;

/// A row with what the kernel reports; loss-based algorithms have only a phase.
pub(crate) fn kernel_row(socket: &OwnedFd, info: &TcpInfo, t_us: u64, flow_id: u64) -> CcRow {
    let mut raw = [0u8; 256];
    let words = option(socket, libc::TCP_CC_INFO, &mut raw).unwrap_or(0) / 4;
    let row = CcRow {
        t_us,
        flow_id,
        ..CcRow::default()
    };
    if words < BBR1_WORDS {
        let phase = if info.snd_cwnd < info.snd_ssthresh || info.ca_state == CA_STATE_LOSS {
            "slow_start"
        } else {
            "avoidance"
        };
        return CcRow {
            phase: phase.into(),
            ..row
        };
    }
    let word = |index| u32_at(&raw, index).unwrap_or(0);
    let rate = |index| {
        let bytes_per_s = u64::from(word(index)) | u64::from(word(index + 1)) << 32;
        (bytes_per_s > 0 && bytes_per_s != u64::MAX).then(|| bytes_per_s.saturating_mul(8))
    };
    let row = CcRow {
        bw_bps: rate(0),
        min_rtt_us: (word(2) != u32::MAX).then_some(u64::from(word(2))),
        pacing_gain: f64::from(word(3)) / GAIN_ONE,
        cwnd_gain: f64::from(word(4)) / GAIN_ONE,
        ..row
    };
    if words < BBR3_WORDS {
        return CcRow {
            phase: bbr1_phase(word(3), word(4), info.snd_cwnd).into(),
            ..row
        };
    }
    let bound = |index| {
        let packets = word(index);
        (packets != u32::MAX).then_some(u64::from(packets))
    };
    CcRow {
        phase: bbr3_phase(raw[37]).into(),
        max_bw_bps: rate(5),
        bw_shortterm_bps: rate(7),
        inflight_shortterm_packets: bound(10),
        inflight_longterm_packets: bound(11),
        extra_acked_packets: u64::from(word(12)),
        ..row
    }
}

/// The stock kernel gives no mode, but every mode has its own gains (tcp_bbr.c, bbr_high_gain,
/// bbr_drain_gain, bbr_cwnd_gain): 2885/1000 and 1000/2885 in startup and drain, 1 for both in
/// PROBE_RTT, 5/4, 3/4 and 1 otherwise.
fn bbr1_phase(pacing_gain: u32, cwnd_gain: u32, cwnd: u32) -> &'static str {
    const MIN_CWND: u32 = 4;
    match (pacing_gain, cwnd_gain) {
        (gain, _) if gain > 700 => "startup",
        (gain, _) if gain < 100 => "drain",
        (256, 256) if cwnd <= MIN_CWND => "probe_rtt",
        (256, 256) => "probe_rtt",
        (gain, _) if gain > 256 => "up",
        (gain, _) if gain < 256 => "down",
        _ => "cruise",
    }
}

/// enum tcp_bbr_phase of Google's v3 kernel.
fn bbr3_phase(phase: u8) -> &'static str {
    match phase {
        1 => "startup",
        2 => "drain",
        3 => "probe_rtt",
        4 => "up",
        5 => "down",
        6 => "cruise",
        7 => "refill",
        _ => "none",
    }
}
