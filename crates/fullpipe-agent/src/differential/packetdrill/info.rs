//! Fields of struct tcp_info by their names.

use std::collections::BTreeMap;
use std::mem::offset_of;

use crate::sample::TcpInfo;

macro_rules! fields {
    ($info:expr, $bytes:expr, $($name:ident),* $(,)?) => {{
        let mut named = BTreeMap::new();
        $(
            // A kernel that knows fewer fields gives fewer bytes.
            if offset_of!(TcpInfo, $name) < $bytes {
                named.insert(stringify!($name).to_owned(), u64::from($info.$name));
            }
        )*
        named
    }};
}

/// Of a kernel that gave so many bytes.
pub(super) fn fields(info: &TcpInfo, bytes: usize) -> BTreeMap<String, u64> {
    let mut named = fields!(
        info,
        bytes,
        state,
        ca_state,
        retransmits,
        probes,
        backoff,
        options,
        rto,
        ato,
        snd_mss,
        rcv_mss,
        unacked,
        sacked,
        lost,
        retrans,
        fackets,
        last_data_sent,
        last_ack_sent,
        last_data_recv,
        last_ack_recv,
        pmtu,
        rcv_ssthresh,
        rtt,
        rttvar,
        snd_ssthresh,
        snd_cwnd,
        advmss,
        reordering,
        rcv_rtt,
        rcv_space,
        total_retrans,
        pacing_rate,
        max_pacing_rate,
        bytes_acked,
        bytes_received,
        segs_out,
        segs_in,
        notsent_bytes,
        min_rtt,
        data_segs_in,
        data_segs_out,
        delivery_rate,
        busy_time,
        rwnd_limited,
        sndbuf_limited,
        delivered,
        delivered_ce,
        bytes_sent,
        bytes_retrans,
        dsack_dups,
        reord_seen,
        rcv_ooopack,
        snd_wnd,
        rcv_wnd,
        rehash,
        total_rto,
        total_rto_recoveries,
        total_rto_time,
        received_ce,
    );
    let bits = [
        ("snd_wscale", info.window_scales & 0xf),
        ("rcv_wscale", info.window_scales >> 4),
        ("delivery_rate_app_limited", info.flags & 1),
        ("fastopen_client_fail", info.flags >> 1 & 3),
    ];
    named.extend(bits.map(|(name, value)| (name.to_owned(), value.into())));
    named
}
