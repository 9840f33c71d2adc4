//! The three-way handshake: its packets, its timers, and the RTT it measures. RFC 9293 section 3.5 and
//! RFC 6298 as in Linux 6.12: tcp_connect(), tcp_retransmit_timer(), tcp_check_req(),
//! reqsk_timer_handler(), tcp_init_transfer().

use fullpipe_ticks::expires_ns;

const NS_PER_MS: u64 = 1_000_000;
/// TCP_TIMEOUT_INIT and TCP_RTO_MAX.
const TIMEOUT_NS: u64 = 1_000_000_000;
const TIMEOUT_MAX_NS: u64 = 120_000_000_000;
/// sysctl tcp_syn_linear_timeouts: timeouts of a SYN before back-off begins.
const LINEAR_TIMEOUTS: u32 = 4;
/// sysctl tcp_syn_retries, after the linear timeouts, and tcp_synack_retries.
const SYN_RETRIES: u32 = 6;
const SYN_ACK_RETRIES: u32 = 5;
/// sysctl tcp_invalid_ratelimit: least interval between answers to repeated SYNs.
const REPEAT_INTERVAL_NS: u64 = 500_000_000;
/// Largest window of a SYN, whose window field is not scaled (RFC 7323 section 2.2).
const UNSCALED_WINDOW_BYTES: u64 = 65_535;

/// A packet of a handshake. `sent_ns` and `echo_ns` are its timestamp and timestamp echo (RFC 7323).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakePacket {
    /// From the client.
    Syn {
        /// Its timestamp.
        sent_ns: u64,
        /// Requests ECN (RFC 3168 section 6.1.1).
        ecn: bool,
    },
    /// From the server.
    SynAck {
        /// Its timestamp.
        sent_ns: u64,
        /// The SYN's.
        echo_ns: u64,
        /// Agrees to ECN.
        ecn: bool,
        /// Offered window.
        window_bytes: u64,
    },
    /// From the client, to the SYN-ACK.
    Ack {
        /// Its timestamp.
        sent_ns: u64,
        /// The SYN-ACK's.
        echo_ns: u64,
        /// Offered window.
        window_bytes: u64,
    },
}

/// What one end knows once the connection is established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Established {
    /// This end connected.
    pub is_active: bool,
    /// RTT of the handshake; of one with retransmissions by timestamps, which count milliseconds
    /// (tcp_ack_update_rtt()).
    pub rtt_ns: u64,
    /// The peer's window.
    pub window_bytes: u64,
    /// Both ends use ECN.
    pub ecn: bool,
    /// The peer's timestamp, to be echoed.
    pub peer_sent_ns: u64,
    /// Retransmissions of this end's SYN or SYN-ACK.
    pub retransmissions: u32,
    /// Those of them that a timer caused (req->num_timeout); a SYN-ACK also answers a repeated SYN.
    pub timeouts: u32,
    /// After more than one retransmission the initial window is one packet (RFC 5681 section 3.1,
    /// tcp_init_transfer()).
    pub has_window_of_one: bool,
}

/// The end that connects (the active open).
#[derive(Clone, Debug, Default)]
pub struct Client {
    ecn: bool,
    first_ns: u64,
    retransmissions: u32,
    timer_ns: Option<u64>,
    is_established: bool,
}

impl Client {
    /// A client that requests ECN, or does not.
    pub fn new(ecn: bool) -> Self {
        Self {
            ecn,
            ..Self::default()
        }
    }

    /// The first SYN.
    pub fn connect(&mut self, now_ns: u64) -> HandshakePacket {
        self.first_ns = now_ns;
        self.send(now_ns)
    }

    /// When the SYN's retransmission timer expires.
    pub fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// The SYN again if its timer has expired; never after the last retry.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<HandshakePacket> {
        self.timer_ns.take_if(|at_ns| *at_ns <= now_ns)?;
        if self.retransmissions == LINEAR_TIMEOUTS + SYN_RETRIES {
            return None;
        }
        self.retransmissions += 1;
        Some(self.send(now_ns))
    }

    /// Whether it has given up.
    pub fn has_failed(&self) -> bool {
        !self.is_established && self.timer_ns.is_none() && self.retransmissions > 0
    }

    /// A SYN-ACK arrived: `Some` if that establishes the connection. Each SYN-ACK must be answered with
    /// [`Client::answer`], since the first answer may have been lost.
    pub fn on_syn_ack(&mut self, now_ns: u64, syn_ack: &HandshakePacket) -> Option<Established> {
        let &HandshakePacket::SynAck {
            sent_ns,
            echo_ns,
            ecn,
            window_bytes,
        } = syn_ack
        else {
            return None;
        };
        if std::mem::replace(&mut self.is_established, true) {
            return None;
        }
        self.timer_ns = None;
        Some(Established {
            is_active: true,
            rtt_ns: rtt_ns(now_ns, echo_ns, self.retransmissions > 0),
            window_bytes,
            ecn: ecn && self.ecn,
            peer_sent_ns: sent_ns,
            retransmissions: self.retransmissions,
            timeouts: self.retransmissions,
            // If the SYN-ACK echoes the first SYN, the timeouts were spurious
            // (tcp_try_undo_spurious_syn()).
            has_window_of_one: self.retransmissions > 1 && echo_ns != self.first_ns,
        })
    }

    /// The ACK of a SYN-ACK. Linux sends it without data, unless the application is already blocked in
    /// write().
    pub fn answer(now_ns: u64, syn_ack: &HandshakePacket, window_bytes: u64) -> HandshakePacket {
        let echo_ns = match *syn_ack {
            HandshakePacket::SynAck { sent_ns, .. } => sent_ns,
            _ => 0,
        };
        HandshakePacket::Ack {
            sent_ns: now_ns,
            echo_ns,
            window_bytes,
        }
    }

    fn send(&mut self, now_ns: u64) -> HandshakePacket {
        let doublings = self.retransmissions.saturating_sub(LINEAR_TIMEOUTS);
        self.timer_ns = Some(expires_ns(now_ns, timeout_ns(doublings)));
        HandshakePacket::Syn {
            sent_ns: now_ns,
            // A middlebox may have dropped the first SYN for its ECN bits (RFC 3168 section 6.1.1.1,
            // sysctl tcp_ecn_fallback).
            ecn: self.ecn && self.retransmissions == 0,
        }
    }
}

/// The end that listens (the passive open).
#[derive(Clone, Debug, Default)]
pub struct Server {
    request: Option<Request>,
    is_established: bool,
}

/// A SYN that was answered (struct request_sock).
#[derive(Clone, Copy, Debug)]
struct Request {
    syn_ns: u64,
    ecn: bool,
    window_bytes: u64,
    first_ns: u64,
    timeouts: u32,
    retransmissions: u32,
    timer_ns: Option<u64>,
    answered_repeat_ns: Option<u64>,
}

impl Request {
    fn answer(&mut self, now_ns: u64) -> HandshakePacket {
        self.timer_ns = Some(expires_ns(now_ns, timeout_ns(self.timeouts)));
        HandshakePacket::SynAck {
            sent_ns: now_ns,
            // The first SYN's timestamp, even in an answer to a later one (ts_recent).
            echo_ns: self.syn_ns,
            ecn: self.ecn,
            window_bytes: self.window_bytes.min(UNSCALED_WINDOW_BYTES),
        }
    }
}

impl Server {
    /// A SYN arrived; the SYN-ACK, if there is one, offers `window_bytes`.
    pub fn on_syn(
        &mut self,
        now_ns: u64,
        syn: &HandshakePacket,
        window_bytes: u64,
    ) -> Option<HandshakePacket> {
        let &HandshakePacket::Syn { sent_ns, ecn } = syn else {
            return None;
        };
        if self.is_established {
            return None;
        }
        if let Some(request) = &mut self.request {
            let recent = |at_ns: u64| now_ns - at_ns < REPEAT_INTERVAL_NS;
            if request.answered_repeat_ns.is_some_and(recent) {
                return None;
            }
            request.answered_repeat_ns = Some(now_ns);
            request.retransmissions += 1;
            return Some(request.answer(now_ns));
        }
        let request = self.request.insert(Request {
            syn_ns: sent_ns,
            ecn,
            window_bytes,
            first_ns: now_ns,
            timeouts: 0,
            retransmissions: 0,
            timer_ns: None,
            answered_repeat_ns: None,
        });
        Some(request.answer(now_ns))
    }

    /// When the SYN-ACK's retransmission timer expires.
    pub fn timer_ns(&self) -> Option<u64> {
        self.request.and_then(|request| request.timer_ns)
    }

    /// The SYN-ACK again if its timer has expired. After the last retry the request is dropped.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<HandshakePacket> {
        let request = self.request.as_mut()?;
        request.timer_ns.take_if(|at_ns| *at_ns <= now_ns)?;
        if request.timeouts == SYN_ACK_RETRIES {
            self.request = None;
            return None;
        }
        request.timeouts += 1;
        request.retransmissions += 1;
        Some(request.answer(now_ns))
    }

    /// The ACK of the SYN-ACK arrived: `Some` if that establishes the connection.
    pub fn on_ack(&mut self, now_ns: u64, ack: &HandshakePacket) -> Option<Established> {
        let &HandshakePacket::Ack {
            sent_ns,
            echo_ns,
            window_bytes,
        } = ack
        else {
            return None;
        };
        let request = self.request.take()?;
        self.is_established = true;
        Some(Established {
            is_active: false,
            rtt_ns: rtt_ns(now_ns, echo_ns, request.retransmissions > 0),
            window_bytes,
            ecn: request.ecn,
            peer_sent_ns: sent_ns,
            retransmissions: request.retransmissions,
            timeouts: request.timeouts,
            // Without a timeout all retransmissions answered repeated SYNs, and do not count
            // (tcp_create_openreq_child()).
            has_window_of_one: request.retransmissions > 1
                && request.timeouts > 0
                && echo_ns != request.first_ns,
        })
    }

    /// Data arrived, which acknowledge the SYN-ACK as well.
    pub fn on_data(&mut self) {
        if self.request.is_some() {
            self.request = None;
            self.is_established = true;
        }
    }
}

/// tcp_synack_rtt_meas(), tcp_rtt_tsopt_us(): a packet that was sent twice has only its timestamp.
fn rtt_ns(now_ns: u64, echo_ns: u64, is_repeated: bool) -> u64 {
    match is_repeated {
        true => {
            (now_ns / NS_PER_MS)
                .saturating_sub(echo_ns / NS_PER_MS)
                .max(1)
                * NS_PER_MS
        }
        false => now_ns.saturating_sub(echo_ns),
    }
}

fn timeout_ns(doublings: u32) -> u64 {
    (TIMEOUT_NS << doublings.min(16)).min(TIMEOUT_MAX_NS)
}
