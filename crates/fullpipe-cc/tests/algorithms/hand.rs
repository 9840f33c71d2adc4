//! A host that does only what the test says: one ACK a round trip, each field of it the test's.

use crate::made;
use fullpipe_cc::{Ack, Conn, Controller, Ctl, Event, EventKind, Phase, INFINITE};

pub(crate) use crate::made::stored;
pub(crate) use crate::seen::Seen;

pub(crate) const MSS: u32 = 1448;
/// What a round delivers, and how long it takes, where nothing else is said.
pub(crate) const PACKETS: u32 = 10;
pub(crate) const RTT_US: u64 = 10_000;

pub(crate) struct Hand {
    pub(crate) cc: Controller,
    pub(crate) conn: Conn,
    pub(crate) ctl: Ctl,
    /// What is sent in a round trip, where the window allows.
    pub(crate) packets: u32,
}

impl Hand {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, &[], |_| {})
    }

    /// With parameters changed by name, on a connection that is changed before it begins.
    pub(crate) fn with(
        name: &str,
        changes: &[(&str, u32)],
        prepare: impl FnOnce(&mut Conn),
    ) -> Self {
        let mut cc = made::controller(name, changes).without_ring();
        let mut conn = Conn {
            now_us: 1_000_000,
            now_ns: 1_000_000_000,
            mss_bytes: MSS,
            delivered: 1,
            delivered_us: 1_000_000,
            inflight: PACKETS,
            packets_out: PACKETS,
            srtt_us: RTT_US as u32,
            cwnd_clamp: u32::MAX,
            pacing_rate_cap_bytes_per_s: u64::MAX,
            gso_max_segs: 45,
            seed: 1,
            ..Conn::default()
        };
        prepare(&mut conn);
        let mut ctl = Ctl {
            cwnd: 10,
            ssthresh: INFINITE,
            ..Ctl::default()
        };
        cc.init(&conn, &mut ctl);
        Self {
            cc,
            conn,
            ctl,
            packets: PACKETS,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        Phase::from_raw(self.cc.info().phase)
    }

    /// The next round trip's ACK: what was in flight is delivered, as much as the window allows sent.
    pub(crate) fn next_ack(&mut self) -> Ack {
        let (prior_us, prior_delivered) = (self.conn.delivered_us, self.conn.delivered);
        self.conn.now_us += RTT_US;
        self.conn.now_ns = self.conn.now_us * 1000;
        self.conn.edt_ns = self.conn.now_ns;
        self.conn.delivered_us = self.conn.now_us;
        let packets = self.conn.inflight;
        self.conn.delivered += packets;
        self.conn.inflight = self.packets.min(self.ctl.cwnd);
        Ack {
            prior_us,
            prior_delivered,
            delivered: packets as i32,
            interval_us: RTT_US as i32,
            rtt_us: RTT_US as i32 + 1,
            acked_sacked: packets,
            prior_inflight: packets,
            tx_inflight: packets,
            ..Ack::default()
        }
    }

    /// This ACK reports so many packets lost.
    pub(crate) fn lose(&mut self, ack: &mut Ack, packets: u32) {
        self.conn.lost += packets;
        ack.losses = packets;
        ack.lost = packets;
    }

    pub(crate) fn deliver(&mut self, mut ack: Ack) {
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    pub(crate) fn round(&mut self) {
        let ack = self.next_ack();
        self.deliver(ack);
    }

    /// Round trips until it is in this phase.
    pub(crate) fn until(&mut self, phase: Phase) {
        for _ in 0..2000 {
            if self.phase() == phase {
                return;
            }
            self.round();
        }
        panic!("never in {phase:?}");
    }

    pub(crate) fn event(&mut self, kind: EventKind, value: u32) {
        self.packet_event(kind, value, 0, false);
    }

    pub(crate) fn packet_event(
        &mut self,
        kind: EventKind,
        value: u32,
        packets: u32,
        is_app_limited: bool,
    ) {
        let event = Event {
            kind: kind as u32,
            value,
            packets,
            is_app_limited: u32::from(is_app_limited),
        };
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    /// A packet sent with so many in flight was marked lost, as the `lost`-th since its sending.
    pub(crate) fn mark_lost(&mut self, tx_inflight: u32, lost: u32, is_app_limited: bool) {
        self.conn.lost += 1;
        self.packet_event(EventKind::Lost, tx_inflight, lost, is_app_limited);
    }
}
