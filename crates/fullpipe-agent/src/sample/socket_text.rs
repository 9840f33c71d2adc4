//! TCP_INFO in the words of `ss -i` (iproute2, misc/ss.c, tcp_stats_print()). It must never know what a
//! flow is.

use std::fmt::{Display, Write as _};

use super::tcp_info::TcpInfo;

/// TCPI_OPT_* of linux/tcp.h, and ss's word for each.
const OPTIONS: [(u8, &str); 4] = [(1, "ts"), (2, "sack"), (8, "ecn"), (16, "ecnseen")];
const WINDOW_SCALES: u8 = 4;
/// tcpi_delivery_rate_app_limited.
const APP_LIMITED: u8 = 1;
/// Above this ss takes the threshold for infinite.
const MOST_SSTHRESH: u32 = 0xffff;
/// A kernel's first value (net.ipv4.tcp_reordering).
const USUAL_REORDERING: u32 = 3;

/// One line for a socket with that congestion control.
pub(crate) fn socket_text(info: &TcpInfo, congestion_control: &str) -> String {
    let mut text = String::new();
    let is_set = |bit| info.options & bit != 0;
    for (_, word) in OPTIONS.iter().filter(|(bit, _)| is_set(*bit)) {
        let _ = write!(text, " {word}");
    }
    let _ = write!(text, " {congestion_control}");
    if is_set(WINDOW_SCALES) {
        let scales = info.window_scales;
        let _ = write!(text, " wscale:{},{}", scales & 15, scales >> 4);
    }
    let ms = |us: u32| f64::from(us) / 1000.0;
    let mut put = |name: &str, is_shown: bool, value: &dyn Display| {
        // A blank, not a colon, separates rates from their names.
        let colon = if name.ends_with(' ') { "" } else { ":" };
        if is_shown {
            let _ = write!(text, " {name}{colon}{value}");
        }
    };
    put("rto", info.rto > 0, &ms(info.rto));
    put("backoff", info.backoff > 0, &info.backoff);
    let rtt = format!("{}/{}", ms(info.rtt), ms(info.rttvar));
    put("rtt", info.rtt > 0, &rtt);
    put("ato", info.ato > 0, &ms(info.ato));
    put("mss", info.snd_mss > 0, &info.snd_mss);
    put("pmtu", info.pmtu > 0, &info.pmtu);
    put("rcvmss", info.rcv_mss > 0, &info.rcv_mss);
    put("advmss", info.advmss > 0, &info.advmss);
    put("cwnd", info.snd_cwnd > 0, &info.snd_cwnd);
    let is_finite = info.snd_ssthresh < MOST_SSTHRESH;
    put("ssthresh", is_finite, &info.snd_ssthresh);
    for (name, value) in [
        ("bytes_sent", info.bytes_sent),
        ("bytes_retrans", info.bytes_retrans),
        ("bytes_acked", info.bytes_acked),
        ("bytes_received", info.bytes_received),
        ("segs_out", info.segs_out.into()),
        ("segs_in", info.segs_in.into()),
        ("data_segs_out", info.data_segs_out.into()),
        ("data_segs_in", info.data_segs_in.into()),
    ] {
        put(name, value > 0, &value);
    }
    put("lastsnd", info.last_data_sent > 0, &info.last_data_sent);
    put("lastrcv", info.last_data_recv > 0, &info.last_data_recv);
    put("lastack", info.last_ack_recv > 0, &info.last_ack_recv);
    let bps = |bytes_per_s: u64| format!("{}bps", bytes_per_s.saturating_mul(8));
    let is_paced = info.pacing_rate > 0 && info.pacing_rate != u64::MAX;
    put("pacing_rate ", is_paced, &bps(info.pacing_rate));
    let rate = bps(info.delivery_rate);
    put("delivery_rate ", info.delivery_rate > 0, &rate);
    put("delivered", info.delivered > 0, &info.delivered);
    put("delivered_ce", info.delivered_ce > 0, &info.delivered_ce);
    put("app_limited ", info.flags & APP_LIMITED != 0, &"");
    for (name, value) in [
        ("busy", info.busy_time),
        ("rwnd_limited", info.rwnd_limited),
        ("sndbuf_limited", info.sndbuf_limited),
    ] {
        put(name, value > 0, &format!("{}ms", value / 1000));
    }
    put("unacked", info.unacked > 0, &info.unacked);
    let retrans = format!("{}/{}", info.retrans, info.total_retrans);
    put("retrans", info.total_retrans > 0, &retrans);
    put("lost", info.lost > 0, &info.lost);
    put("sacked", info.sacked > 0, &info.sacked);
    put("dsack_dups", info.dsack_dups > 0, &info.dsack_dups);
    let is_unusual = info.reordering != USUAL_REORDERING;
    put("reordering", is_unusual, &info.reordering);
    put("reord_seen", info.reord_seen > 0, &info.reord_seen);
    put("rcv_rtt", info.rcv_rtt > 0, &ms(info.rcv_rtt));
    put("rcv_space", info.rcv_space > 0, &info.rcv_space);
    put("rcv_ssthresh", info.rcv_ssthresh > 0, &info.rcv_ssthresh);
    put("notsent", info.notsent_bytes > 0, &info.notsent_bytes);
    let has_minimum = info.min_rtt > 0 && info.min_rtt != u32::MAX;
    put("minrtt", has_minimum, &ms(info.min_rtt));
    put("rcv_ooopack", info.rcv_ooopack > 0, &info.rcv_ooopack);
    put("snd_wnd", info.snd_wnd > 0, &info.snd_wnd);
    put("rcv_wnd", info.rcv_wnd > 0, &info.rcv_wnd);
    put("rehash", info.rehash > 0, &info.rehash);
    text.trim_start().replace("  ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sockets_line_has_the_words_and_units_of_ss() {
        let info = TcpInfo {
            options: 7,
            window_scales: 0x97,
            rto: 204_000,
            rtt: 40_125,
            rttvar: 250,
            snd_mss: 1448,
            snd_cwnd: 52,
            snd_ssthresh: 46,
            bytes_sent: 9000,
            flags: APP_LIMITED,
            pacing_rate: 1000,
            busy_time: 5_000_000,
            total_retrans: 4,
            reordering: 3,
            min_rtt: 40_000,
            ..TcpInfo::default()
        };
        assert_eq!(
            socket_text(&info, "cubic"),
            "ts sack cubic wscale:7,9 rto:204 rtt:40.125/0.25 mss:1448 cwnd:52 ssthresh:46 \
             bytes_sent:9000 pacing_rate 8000bps app_limited busy:5000ms retrans:0/4 minrtt:40"
        );
    }

    #[test]
    fn what_a_socket_does_not_have_is_left_out() {
        let info = TcpInfo {
            snd_ssthresh: 0x7fff_ffff,
            pacing_rate: u64::MAX,
            min_rtt: u32::MAX,
            reordering: 7,
            ..TcpInfo::default()
        };
        assert_eq!(socket_text(&info, "reno"), "reno reordering:7");
    }
}
