//! A flow over one bottleneck with a queue that drops nothing, small enough to be read whole: what drives a
//! [`Host`] in tests. Every packet is answered by an ACK. Times are in ns.

use std::collections::VecDeque;

use fullpipe_quic_cc::host::{Host, Sent, Start};
use fullpipe_quic_cc::Settings;

pub(crate) const PACKET_BYTES: u64 = 1250;
pub(crate) const START_NS: u64 = 1_000_000_000;

/// How the stack paces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// At the algorithm's rate.
    Rate,
    /// By 1.25 windows an RTT, as quinn does, which reads no rate: it is in the window.
    Window,
    /// As quinn would with the algorithm's window alone.
    WindowAlone,
}

/// What was seen over the last tenth of the run, and the host at its end.
pub(crate) struct Seen {
    pub(crate) host: Host,
    pub(crate) goodput_bps: f64,
    pub(crate) mean_queue_ns: f64,
}

pub(crate) fn host(name: &str) -> Host {
    let start = Start {
        now_ns: START_NS,
        datagram_bytes: PACKET_BYTES as u32,
        burst_datagrams: 10,
    };
    let settings = Settings::new(name).expect("built in").seed(1);
    settings.host(0, &start)
}

/// A flow that always has data.
pub(crate) fn run(name: &str, rate_bps: u64, rtt_ns: u64, seconds: u64, pacing: Pacing) -> Seen {
    let mut host = host(name);
    let packet_ns = PACKET_BYTES * 8 * 1_000_000_000 / rate_bps;
    let end_ns = START_NS + seconds * 1_000_000_000;
    let watched_from_ns = end_ns - seconds * 100_000_000;
    let mut now_ns = START_NS;
    let (mut leaves_at_ns, mut link_free_ns) = (START_NS, START_NS);
    let mut acks: VecDeque<(u64, Sent)> = VecDeque::new();
    let (mut delivered, mut queued_ns) = (0u64, 0u64);
    while now_ns < end_ns {
        let window = match pacing {
            Pacing::Rate | Pacing::WindowAlone => host.window_bytes(),
            Pacing::Window => host.window_of_rate_bytes(),
        };
        let is_open = host.inflight_bytes() + PACKET_BYTES <= window;
        let next_ack_ns = acks.front().map(|&(at_ns, _)| at_ns);
        let sends_at_ns = is_open.then_some(leaves_at_ns.max(now_ns));
        if let Some(at_ns) = sends_at_ns.filter(|&at| next_ack_ns.is_none_or(|ack| at < ack)) {
            now_ns = at_ns;
            let sent = host.sent(now_ns, PACKET_BYTES);
            link_free_ns = link_free_ns.max(now_ns) + packet_ns;
            acks.push_back((link_free_ns + rtt_ns, sent));
            let rate = match pacing {
                Pacing::Rate => host.pacing_rate_bytes_per_s().unwrap_or(u64::MAX),
                Pacing::Window | Pacing::WindowAlone => {
                    let rtt_us = host.smoothed_rtt_us().unwrap_or(1000).max(1);
                    window * 5 / 4 * 1_000_000 / rtt_us
                }
            };
            leaves_at_ns = now_ns + PACKET_BYTES * 1_000_000_000 / rate.max(1);
        } else {
            let (at_ns, sent) = acks.pop_front().expect("a full window is in flight");
            now_ns = at_ns;
            host.acked(now_ns, sent.at_ns, Some(sent), PACKET_BYTES);
            host.acks_end(now_ns, None, false);
            if now_ns >= watched_from_ns {
                delivered += 1;
                queued_ns += now_ns - sent.at_ns - rtt_ns - packet_ns;
            }
        }
    }
    Seen {
        host,
        goodput_bps: (delivered * PACKET_BYTES * 8) as f64 / (seconds as f64 / 10.0),
        mean_queue_ns: queued_ns as f64 / delivered as f64,
    }
}
