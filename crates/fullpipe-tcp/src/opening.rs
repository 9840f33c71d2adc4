//! How a connection opens: three packets, their timers, and what they tell of the path. RFC 9293
//! section 3.5 and RFC 6298 as Linux 6.12 has them: tcp_connect(), tcp_retransmit_timer(),
//! tcp_check_req(), reqsk_timer_handler(), tcp_init_transfer().

use crate::ticks::expires_ns;

/// TCP_TIMEOUT_INIT and TCP_RTO_MAX.
const TIMEOUT_NS: u64 = 1_000_000_000;
const TIMEOUT_MAX_NS: u64 = 120_000_000_000;
/// sysctl tcp_syn_linear_timeouts: so many timeouts of a SYN do not lengthen the next one.
const LINEAR_TIMEOUTS: u32 = 4;
/// sysctl tcp_syn_retries, beyond the linear ones, and tcp_synack_retries.
const SYN_RETRIES: u32 = 6;
const SYN_ACK_RETRIES: u32 = 5;
/// sysctl tcp_invalid_ratelimit: repeated SYNs are answered no more often than this.
const REPEAT_INTERVAL_NS: u64 = 500_000_000;
/// Most that the window field of a SYN can say: it is never scaled (RFC 7323 section 2.2).
const UNSCALED_WINDOW_BYTES: u64 = 65_535;

/// A packet of a handshake. Times are timestamps (RFC 7323): when it was sent, and when that was
/// sent which it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// From the end that connects.
    Syn {
        /// Its timestamp.
        sent_ns: u64,
        /// It asks for ECN (RFC 3168 section 6.1.1).
        ecn: bool,
    },
    /// The answer.
    SynAck {
        /// Its timestamp.
        sent_ns: u64,
        /// The SYN's.
        echo_ns: u64,
        /// It agrees to ECN.
        ecn: bool,
        /// Offered window.
        window_bytes: u64,
    },
    /// The answer's answer.
    Ack {
        /// Its timestamp.
        sent_ns: u64,
        /// The SYN-ACK's.
        echo_ns: u64,
        /// Offered window.
        window_bytes: u64,
    },
}

/// What an end knows once its connection is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// How long the exchange took, by timestamps.
    pub rtt_ns: u64,
    /// The peer's window.
    pub window_bytes: u64,
    /// Both ends have agreed to ECN.
    pub ecn: bool,
    /// The peer's timestamp, to be echoed.
    pub peer_sent_ns: u64,
    /// How often this end's packet was sent again.
    pub retransmissions: u32,
    /// How many of these a timer asked for; a SYN-ACK that answers a repeated SYN was not
    /// (req->num_timeout).
    pub timeouts: u32,
    /// More than one repetition was needed, so data begin with one packet (RFC 5681 section 3.1,
    /// tcp_init_transfer()).
    pub begins_with_one: bool,
}

/// The end that connects.
#[derive(Clone, Debug, Default)]
pub struct Client {
    ecn: bool,
    first_ns: u64,
    retransmissions: u32,
    timer_ns: Option<u64>,
    is_open: bool,
}

impl Client {
    /// One that asks for ECN or does not.
    pub fn new(ecn: bool) -> Self {
        Self {
            ecn,
            ..Self::default()
        }
    }

    /// The first SYN.
    pub fn connect(&mut self, now_ns: u64) -> Opening {
        self.first_ns = now_ns;
        self.send(now_ns)
    }

    /// When a SYN is due again.
    pub fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// The SYN once more where that is due; `None` for ever once the last one stayed unanswered.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Opening> {
        self.timer_ns.take_if(|at_ns| *at_ns <= now_ns)?;
        if self.retransmissions == LINEAR_TIMEOUTS + SYN_RETRIES {
            return None;
        }
        self.retransmissions += 1;
        Some(self.send(now_ns))
    }

    /// It has given up.
    pub fn has_failed(&self) -> bool {
        !self.is_open && self.timer_ns.is_none() && self.retransmissions > 0
    }

    /// A SYN-ACK arrived; the connection is open if it was not before. Each is to be answered with
    /// [`Client::answer`], since the peer may have lost the first one.
    pub fn on_syn_ack(&mut self, now_ns: u64, syn_ack: &Opening) -> Option<Opened> {
        let &Opening::SynAck {
            sent_ns,
            echo_ns,
            ecn,
            window_bytes,
        } = syn_ack
        else {
            return None;
        };
        if std::mem::replace(&mut self.is_open, true) {
            return None;
        }
        self.timer_ns = None;
        Some(Opened {
            rtt_ns: now_ns.saturating_sub(echo_ns),
            window_bytes,
            ecn: ecn && self.ecn,
            peer_sent_ns: sent_ns,
            retransmissions: self.retransmissions,
            timeouts: self.retransmissions,
            // An echo of the first SYN says that the timeouts were spurious
            // (tcp_try_undo_spurious_syn()).
            begins_with_one: self.retransmissions > 1 && echo_ns != self.first_ns,
        })
    }

    /// The answer to a SYN-ACK. Linux sends it alone: only where an application waits inside
    /// write() do data carry it.
    pub fn answer(now_ns: u64, syn_ack: &Opening, window_bytes: u64) -> Opening {
        let echo_ns = match *syn_ack {
            Opening::SynAck { sent_ns, .. } => sent_ns,
            _ => 0,
        };
        Opening::Ack {
            sent_ns: now_ns,
            echo_ns,
            window_bytes,
        }
    }

    fn send(&mut self, now_ns: u64) -> Opening {
        let doublings = self.retransmissions.saturating_sub(LINEAR_TIMEOUTS);
        self.timer_ns = Some(expires_ns(now_ns, timeout_ns(doublings)));
        Opening::Syn {
            sent_ns: now_ns,
            // What swallowed the first SYN may have disliked its ECN bits (RFC 3168 section
            // 6.1.1.1, sysctl tcp_ecn_fallback).
            ecn: self.ecn && self.retransmissions == 0,
        }
    }
}

/// The end that is connected to.
#[derive(Clone, Debug, Default)]
pub struct Server {
    request: Option<Request>,
    is_open: bool,
}

/// A SYN that was answered (request_sock).
#[derive(Clone, Copy, Debug)]
struct Request {
    syn_ns: u64,
    ecn: bool,
    window_bytes: u64,
    first_ns: u64,
    timeouts: u32,
    retransmissions: u32,
    timer_ns: Option<u64>,
    repeated_ns: Option<u64>,
}

impl Request {
    fn answer(&mut self, now_ns: u64) -> Opening {
        self.timer_ns = Some(expires_ns(now_ns, timeout_ns(self.timeouts)));
        Opening::SynAck {
            sent_ns: now_ns,
            // That of the first SYN which came, also when a later one is answered (ts_recent).
            echo_ns: self.syn_ns,
            ecn: self.ecn,
            window_bytes: self.window_bytes.min(UNSCALED_WINDOW_BYTES),
        }
    }
}

impl Server {
    /// A SYN arrived; this end will offer `window_bytes`.
    pub fn on_syn(&mut self, now_ns: u64, syn: &Opening, window_bytes: u64) -> Option<Opening> {
        let &Opening::Syn { sent_ns, ecn } = syn else {
            return None;
        };
        if self.is_open {
            return None;
        }
        if let Some(request) = &mut self.request {
            let recent = |at_ns: u64| now_ns - at_ns < REPEAT_INTERVAL_NS;
            if request.repeated_ns.is_some_and(recent) {
                return None;
            }
            request.repeated_ns = Some(now_ns);
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
            repeated_ns: None,
        });
        Some(request.answer(now_ns))
    }

    /// When a SYN-ACK is due again.
    pub fn timer_ns(&self) -> Option<u64> {
        self.request.and_then(|request| request.timer_ns)
    }

    /// The SYN-ACK once more where that is due. After the last one the request is forgotten.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Opening> {
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

    /// The ACK of the SYN-ACK arrived, or what shows that it was sent; the connection is open if it
    /// was not before.
    pub fn on_ack(&mut self, now_ns: u64, ack: &Opening) -> Option<Opened> {
        let &Opening::Ack {
            sent_ns,
            echo_ns,
            window_bytes,
        } = ack
        else {
            return None;
        };
        let request = self.request.take()?;
        self.is_open = true;
        Some(Opened {
            rtt_ns: now_ns.saturating_sub(echo_ns),
            window_bytes,
            ecn: request.ecn,
            peer_sent_ns: sent_ns,
            retransmissions: request.retransmissions,
            timeouts: request.timeouts,
            // Repetitions that only answered repeated SYNs do not count (tcp_create_openreq_child()).
            begins_with_one: request.retransmissions > 1
                && request.timeouts > 0
                && echo_ns != request.first_ns,
        })
    }

    /// Data arrived: they acknowledge the SYN-ACK as well.
    pub fn on_data(&mut self) {
        if self.request.is_some() {
            self.request = None;
            self.is_open = true;
        }
    }
}

fn timeout_ns(doublings: u32) -> u64 {
    (TIMEOUT_NS << doublings.min(16)).min(TIMEOUT_MAX_NS)
}
