//! The congestion control: what it sees of the connection, and what it has decided.

use fullpipe_cc::trace::CallLog;
use fullpipe_cc::{flags, Ack, Conn, Controller, Ctl, Event, EventKind, INFINITE};
use fullpipe_plan::{CcFacts, Pacing};

use super::config::SenderConfig;
use super::cwnd_use::CwndUse;
use super::flight::{Flight, LostPacket};
use super::peer::Peer;
use super::rate::RateState;
use super::recovery::Recovery;
use super::rtt::Rtt;
use super::stream::Stream;
use super::timers::NEVER_NS;
use super::write_queue::WriteQueue;

/// The parts of a sender of which few algorithms want to see something.
pub(super) struct Details<'a> {
    pub(super) flight: &'a Flight,
    pub(super) recovery: &'a Recovery,
    pub(super) cwnd_use: &'a CwndUse,
    pub(super) rtt: &'a Rtt,
    pub(super) stream: &'a Stream,
    pub(super) queue: &'a WriteQueue,
    pub(super) peer: &'a Peer,
}

/// One connection's congestion control.
pub(super) struct Control {
    cc: Controller,
    ctl: Ctl,
    /// What the algorithm sees. Facts that change rarely are written when they change, the others by
    /// [`Self::see`] before each call.
    conn: Conn,
    /// It is told of each lost packet.
    reports_losses: bool,
}

impl Control {
    pub(super) fn new(config: &SenderConfig, cc: Controller) -> Self {
        let cc = match config.facts {
            CcFacts::Google => cc.without_ring(),
            CcFacts::Stock => cc,
        };
        let owns_cwnd = cc.wants(flags::OWNS_CWND);
        Self {
            ctl: Ctl {
                cwnd: config.initial_cwnd,
                ssthresh: INFINITE,
                ..Ctl::default()
            },
            conn: Conn {
                pacing_rate_cap_bytes_per_s: config.max_pacing_bytes_per_s,
                mss_bytes: config.mss_bytes,
                cwnd_clamp: u32::MAX,
                gso_max_segs: config.gso_max_segments,
                seed: config.seed,
                is_paced: u8::from(
                    config.pacing == Pacing::Fq || owns_cwnd || config.is_rate_limited(),
                ),
                ..Conn::default()
            },
            reports_losses: config.facts == CcFacts::Google && cc.wants(flags::WANTS_RING),
            cc,
        }
    }

    /// Traces every call; `name` is the congestion control's name in the scenario.
    pub(super) fn trace(&mut self, log: &CallLog, name: &str) {
        self.cc.trace(log, name, "simulator");
    }

    pub(super) fn controller(&self) -> &Controller {
        &self.cc
    }

    #[inline(always)] // as all that only read
    pub(super) fn wants(&self, flag: u32) -> bool {
        self.cc.wants(flag)
    }

    /// Whether the algorithm sets window and pacing in every state.
    #[inline(always)]
    pub(super) fn owns_cwnd(&self) -> bool {
        self.cc.wants(flags::OWNS_CWND)
    }

    /// Whether the least burst may be asked for only where something is sent.
    #[inline(always)]
    pub(super) fn asks_late(&self) -> bool {
        self.cc.on_send_is_pure()
    }

    /// What is decided.
    #[inline(always)]
    pub(super) fn ctl(&self) -> &Ctl {
        &self.ctl
    }

    /// As [`Self::ctl`], where the host decides.
    #[inline(always)]
    pub(super) fn ctl_mut(&mut self) -> &mut Ctl {
        &mut self.ctl
    }

    #[inline(always)]
    pub(super) fn cwnd(&self) -> u32 {
        self.ctl.cwnd
    }

    #[inline(always)]
    pub(super) fn pacing_rate(&self) -> u64 {
        self.ctl.pacing_rate_bytes_per_s
    }

    /// When the algorithm wants to be called.
    #[inline(always)]
    pub(super) fn timer_ns(&self) -> u64 {
        match self.ctl.timer_us {
            0 => NEVER_NS,
            us => us.saturating_mul(1000),
        }
    }

    /// The clock has moved.
    #[inline(always)]
    pub(super) fn see_time(&mut self, now_ns: u64) {
        self.conn.now_ns = now_ns;
        self.conn.now_us = now_ns / 1000;
    }

    /// Now, in us.
    #[inline(always)]
    pub(super) fn now_us(&self) -> u64 {
        self.conn.now_us
    }

    /// The handshake agreed on ECN or did not; `is_low`: the path marks early.
    pub(super) fn see_ecn(&mut self, is_used: bool, is_low: bool) {
        self.conn.ecn_ok = u8::from(is_used);
        self.conn.ecn_low = u8::from(is_low);
    }

    #[inline(always)]
    pub(super) fn see_rtt(&mut self, srtt_us: u32) {
        self.conn.srtt_us = srtt_us;
    }

    /// When the next packet may leave.
    #[inline(always)]
    pub(super) fn see_next_departure(&mut self, at_ns: u64) {
        self.conn.edt_ns = at_ns;
    }

    /// A burst was sent.
    #[inline(always)]
    pub(super) fn see_sent(&mut self, at_ns: u64, next: u32) {
        self.conn.last_send_us = at_ns / 1000;
        self.conn.snd_nxt = next.wrapping_mul(self.conn.mss_bytes);
    }

    /// Before every call: what changes often. Where [`Self::wants_details`] says so, they are to follow.
    #[inline(always)]
    pub(super) fn see(
        &mut self,
        flight: &Flight,
        recovery: &Recovery,
        rate: &RateState,
        cwnd_use: &CwndUse,
    ) {
        let conn = &mut self.conn;
        conn.delivered_us = rate.delivered_us();
        conn.delivered = rate.delivered();
        conn.delivered_ce = rate.delivered_ce();
        conn.app_limited = rate.app_limited();
        conn.lost = flight.total_lost();
        conn.packets_out = flight.out();
        conn.inflight = flight.inflight();
        conn.snd_una = flight.una().wrapping_mul(conn.mss_bytes);
        conn.ca_state = recovery.state() as u8;
        conn.prior_ca_state = recovery.prior_state() as u8;
        conn.is_cwnd_limited = u8::from(cwnd_use.is_limited(&self.ctl));
        conn.is_cwnd_full = u8::from(cwnd_use.was_full());
    }

    /// Whether the algorithm wants to see [`Details`].
    #[inline(always)]
    pub(super) fn wants_details(&self) -> bool {
        self.cc.wants(flags::WANTS_DETAILS)
    }

    /// The second part of `struct cc_conn`. Timestamps count milliseconds, as Linux's.
    pub(super) fn see_details(&mut self, details: &Details<'_>) {
        let &Details {
            flight,
            recovery,
            cwnd_use,
            rtt,
            stream,
            queue,
            peer,
        } = details;
        let unsent = queue.unsent_bytes(stream.bytes_before(flight.next()));
        let conn = &mut self.conn;
        conn.min_rtt_us = rtt.least_us().unwrap_or(0);
        conn.rttvar_us = rtt.deviation_us();
        conn.unsent_bytes = unsent.min(u64::from(u32::MAX)) as u32;
        conn.unsent_packets = conn.unsent_bytes.div_ceil(conn.mss_bytes);
        conn.acks = peer.acks();
        (conn.rcv_tsval, conn.rcv_tsecr) = peer.last_timestamps_ms();
        conn.ts_tick_us = 1000;
        conn.sacked_out = flight.sacked();
        conn.lost_out = flight.lost();
        conn.retrans_out = flight.retransmitted();
        conn.max_packets_out = cwnd_use.most_out();
        conn.high_seq = recovery.end().wrapping_mul(conn.mss_bytes);
        conn.reordering = recovery.dupthresh();
        conn.prior_cwnd = recovery.prior_cwnd();
    }

    /// The connection is established.
    pub(super) fn init(&mut self) {
        self.cc.init(&self.conn, &mut self.ctl);
    }

    #[inline(always)] // for every ACK
    pub(super) fn on_ack(&mut self, ack: &mut Ack) {
        self.cc.on_ack(&self.conn, ack, &mut self.ctl);
    }

    #[inline]
    pub(super) fn on_event(&mut self, event: Event) {
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    /// Whether the algorithm is told of each lost packet.
    pub(super) fn reports_losses(&self) -> bool {
        self.reports_losses
    }

    /// A packet was marked lost.
    pub(super) fn on_lost(&mut self, packet: &LostPacket) {
        self.conn.lost_age_us = packet.age_us;
        self.on_event(Event {
            kind: EventKind::Lost as u32,
            value: packet.tx_inflight,
            packets: packet.lost,
            is_app_limited: packet.is_app_limited.into(),
        });
        self.conn.lost_age_us = 0;
    }

    /// The least packets of a burst of an algorithm that owns its window.
    #[inline(always)]
    pub(super) fn on_send(&mut self) -> u32 {
        self.cc.on_send(&self.conn, &mut self.ctl)
    }

    /// The same of an algorithm that does not.
    #[inline(always)]
    pub(super) fn least_burst(&mut self) -> u32 {
        self.cc.least_burst(&mut self.ctl)
    }

    /// Changes the decisions from outside the algorithm.
    pub(super) fn amend(&mut self, change: impl FnOnce(&mut Ctl)) {
        self.cc.amend(&self.conn, &mut self.ctl, change);
    }
}
