//! A host that does nothing by itself: each call is the test's. For algorithms that leave recovery
//! to the host.

pub(crate) use crate::made::stored;

use crate::made;
use fullpipe_cc::{Ack, Conn, Controller, Ctl, Event, EventKind, INFINITE};

pub(crate) const MSS: u32 = 1448;

pub(crate) struct Caller {
    cc: Controller,
    pub(crate) conn: Conn,
    pub(crate) ctl: Ctl,
}

impl Caller {
    pub(crate) fn new(name: &str, cwnd: u32) -> Self {
        Self::with(name, cwnd, &[])
    }

    /// A fresh connection whose window limits it, with parameters changed by name.
    pub(crate) fn with(name: &str, cwnd: u32, changes: &[(&str, u32)]) -> Self {
        Self::prepared(name, cwnd, changes, |_| {})
    }

    /// The same on a connection that is changed before the algorithm sees it.
    pub(crate) fn prepared(
        name: &str,
        cwnd: u32,
        changes: &[(&str, u32)],
        prepare: impl FnOnce(&mut Conn),
    ) -> Self {
        let mut cc = made::controller(name, changes);
        let mut conn = Conn {
            mss_bytes: MSS,
            cwnd_clamp: u32::MAX,
            pacing_rate_cap_bytes_per_s: u64::MAX,
            gso_max_segs: 45,
            now_us: 1_000_000,
            is_cwnd_limited: 1,
            ..Conn::default()
        };
        prepare(&mut conn);
        let mut ctl = Ctl {
            cwnd,
            ssthresh: INFINITE,
            ..Ctl::default()
        };
        cc.init(&conn, &mut ctl);
        Self { cc, conn, ctl }
    }

    /// So many packets were acknowledged, and the window was sent.
    pub(crate) fn ack(&mut self, packets: u32) {
        let una = self.conn.snd_una.wrapping_add(packets.wrapping_mul(MSS));
        self.conn.snd_una = una;
        self.conn.snd_nxt = una.wrapping_add(self.ctl.cwnd.wrapping_mul(MSS));
        self.deliver(packets);
    }

    /// An ACK of so many packets on the connection as it is.
    pub(crate) fn deliver(&mut self, packets: u32) {
        let mut ack = Ack {
            acked_sacked: packets,
            ..Ack::default()
        };
        self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
    }

    pub(crate) fn event(&mut self, kind: EventKind, value: u32, packets: u32) {
        let event = Event {
            kind: kind as u32,
            value,
            packets,
            is_app_limited: 0,
        };
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    /// A published variable, by the name of its column; `None`: it has no value now.
    pub(crate) fn variable(&self, column: &str) -> Option<f64> {
        let variables = &self.cc.algorithm().variables;
        let index = variables.iter().position(|known| known.column == column);
        self.cc.variables()[index.expect("a known variable")]
    }

    pub(crate) fn wait_us(&mut self, us: u64) {
        self.conn.now_us += us;
        self.conn.now_ns = self.conn.now_us * 1000;
    }

    /// A window's ACKs, evenly over an RTT.
    pub(crate) fn round(&mut self, rtt_us: u64) {
        let packets = u64::from(self.ctl.cwnd);
        let begin_us = self.conn.now_us;
        for packet in 1..=packets {
            self.wait_us(begin_us + rtt_us * packet / packets - self.conn.now_us);
            self.event(EventKind::Rtt, rtt_us as u32, 1);
            self.ack(1);
        }
    }
}
