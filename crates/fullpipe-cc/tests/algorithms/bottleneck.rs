//! A flow through one drop-tail bottleneck, small enough to be read whole: what drives a
//! [`Controller`] in tests. It is no TCP: every packet is new data, an ACK answers each packet, a
//! packet is lost once three later ones were delivered, and nothing else is modelled. Where the
//! algorithm leaves recovery to its host, the window falls to ssthresh at once and rests.

use std::collections::VecDeque;

use crate::made;
use fullpipe_cc::{
    flags, Ack, CaState, Conn, Controller, Ctl, Event, EventKind, Info, Phase, INFINITE,
};

pub(crate) use crate::seen::Seen;

pub(crate) const MSS: u32 = 1500;
const DUP_THRESH: u64 = 3;
const INITIAL_CWND: u32 = 10;

/// The path and what limits the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) rate_bps: u64,
    pub(crate) rtt_us: u64,
    pub(crate) buffer_packets: u64,
    /// Receiver's window, in packets.
    pub(crate) receive_window: u32,
    /// Every n-th packet is lost before the bottleneck; 0: none.
    pub(crate) lose_every: u64,
    /// Packets that find more than this in the queue are marked CE; `u64::MAX`: none.
    pub(crate) mark_above: u64,
    /// A token bucket before the bottleneck: its rate, 0 for none, and its depth in packets.
    pub(crate) police_bps: u64,
    pub(crate) bucket_packets: u64,
}

impl Path {
    pub(crate) fn new(rate_mbps: u64, rtt_ms: u64, buffer_bdp: f64) -> Self {
        let path = Self {
            rate_bps: rate_mbps * 1_000_000,
            rtt_us: rtt_ms * 1000,
            buffer_packets: u64::MAX,
            receive_window: u32::MAX,
            lose_every: 0,
            mark_above: u64::MAX,
            police_bps: 0,
            bucket_packets: 0,
        };
        let buffer_packets = (path.bdp() * buffer_bdp) as u64;
        Self {
            buffer_packets,
            ..path
        }
    }

    /// Packets that fill the path without a queue.
    pub(crate) fn bdp(&self) -> f64 {
        self.rate_bps as f64 * self.rtt_us as f64 / 8e6 / f64::from(MSS)
    }

    fn packet_us(&self) -> f64 {
        f64::from(MSS) * 8e6 / self.rate_bps as f64
    }
}

/// What was true after an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) t_us: u64,
    pub(crate) phase: Phase,
    pub(crate) cwnd: u32,
    pub(crate) inflight: u32,
    pub(crate) pacing_bps: u64,
    pub(crate) queue_us: f64,
    pub(crate) delivered: u32,
    pub(crate) lost: u32,
    /// In flight, and lost since, when the acknowledged packet was sent: as the ring says ...
    pub(crate) ring: (u32, u32),
    /// ... and as it was.
    pub(crate) truth: (u32, u32),
    pub(crate) info: Info,
}

struct Packet {
    id: u64,
    sent_us: u64,
    first_sent_us: u64,
    delivered_us: u64,
    delivered: u32,
    delivered_ce: u32,
    app_limited: bool,
    arrives_us: f64,
    dropped: bool,
    marked: bool,
    tx_inflight: u32,
    lost_before: u32,
}

pub(crate) struct Flow {
    pub(crate) path: Path,
    cc: Controller,
    pub(crate) conn: Conn,
    pub(crate) ctl: Ctl,
    now_us: f64,
    next_send_us: f64,
    link_free_us: f64,
    first_sent_us: u64,
    next_id: u64,
    inflight: VecDeque<Packet>,
    in_network: u32,
    /// Recovery repairs what was lost below this...
    high_id: u64,
    /// ... and ends when as many packets more were delivered.
    recovery_until: Option<u64>,
    usage_until: u64,
    most_out: u32,
    tokens: f64,
    tokens_us: f64,
    min_rtt_us: u64,
    pub(crate) rows: Vec<Row>,
}

impl Flow {
    /// A connection whose handshake has measured the RTT, with parameters changed by name.
    pub(crate) fn new(name: &str, path: Path, changes: &[(&str, u32)], seed: u32) -> Self {
        let mut cc = made::controller(name, changes);
        let conn = Conn {
            mss_bytes: MSS,
            pacing_rate_cap_bytes_per_s: u64::MAX,
            srtt_us: path.rtt_us as u32,
            cwnd_clamp: u32::MAX,
            gso_max_segs: 45,
            now_us: 1_000_000,
            delivered: 1,
            seed,
            ..Conn::default()
        };
        let mut ctl = Ctl {
            cwnd: INITIAL_CWND,
            ssthresh: INFINITE,
            ..Ctl::default()
        };
        cc.init(&conn, &mut ctl);
        Self {
            path,
            cc,
            conn,
            ctl,
            now_us: 1e6,
            next_send_us: 1e6,
            link_free_us: 0.0,
            first_sent_us: 0,
            next_id: 0,
            inflight: VecDeque::new(),
            in_network: 0,
            high_id: 0,
            recovery_until: None,
            usage_until: 0,
            most_out: 0,
            tokens: path.bucket_packets as f64,
            tokens_us: 1e6,
            min_rtt_us: path.rtt_us,
            rows: Vec::new(),
        }
    }

    /// Runs for so long, keeping one row an ACK.
    pub(crate) fn run(&mut self, seconds: f64) -> &[Row] {
        let end_us = self.now_us + seconds * 1e6;
        let first = self.rows.len();
        while self.now_us < end_us {
            let ack_us = self
                .inflight
                .iter()
                .find(|p| !p.dropped)
                .map(|p| p.arrives_us);
            let send_us = self.can_send().then(|| self.next_send_us.max(self.now_us));
            match (send_us, ack_us) {
                (Some(send_us), ack_us) if ack_us.is_none_or(|ack_us| send_us <= ack_us) => {
                    self.set_now(send_us);
                    self.send();
                }
                (_, Some(ack_us)) => {
                    self.set_now(ack_us);
                    self.receive_ack();
                }
                _ => self.time_out(),
            }
        }
        &self.rows[first..]
    }

    /// An event from outside, such as the end of a recovery that was spurious.
    pub(crate) fn event(&mut self, kind: EventKind, value: u32) {
        let event = Event {
            kind: kind as u32,
            value,
            ..Event::default()
        };
        self.cc.on_event(&self.conn, event, &mut self.ctl);
    }

    pub(crate) fn info(&self) -> Info {
        self.cc.info()
    }

    pub(crate) fn phase(&self) -> Phase {
        Phase::from_raw(self.info().phase)
    }

    fn can_send(&self) -> bool {
        self.in_network < self.ctl.cwnd.min(self.path.receive_window)
    }

    fn set_now(&mut self, now_us: f64) {
        self.now_us = now_us;
        self.conn.now_us = now_us as u64;
        self.conn.now_ns = (now_us * 1000.0) as u64;
        self.conn.edt_ns = self.conn.now_ns;
    }

    fn update_conn(&mut self) {
        self.conn.packets_out = self.in_network;
        self.conn.inflight = self.in_network;
        self.conn.snd_nxt = (self.next_id as u32).wrapping_mul(MSS);
        let oldest = self
            .inflight
            .front()
            .map_or(self.next_id, |packet| packet.id);
        self.conn.snd_una = (oldest as u32).wrapping_mul(MSS);
    }

    fn send(&mut self) {
        self.update_conn();
        if self.in_network == 0 {
            self.first_sent_us = self.conn.now_us;
            self.conn.delivered_us = self.conn.now_us;
            self.event(EventKind::TxStart, 0);
        }
        self.event(EventKind::Send, 0);
        let id = self.next_id;
        let waiting = ((self.link_free_us - self.now_us) / self.path.packet_us()).max(0.0);
        let every = self.path.lose_every;
        let lost = every != 0 && id % every == every - 1;
        let dropped = lost || waiting > self.path.buffer_packets as f64 || !self.takes_token();
        if !dropped {
            self.link_free_us = self.link_free_us.max(self.now_us) + self.path.packet_us();
        }
        self.inflight.push_back(Packet {
            id,
            sent_us: self.conn.now_us,
            first_sent_us: self.first_sent_us,
            delivered_us: self.conn.delivered_us,
            delivered: self.conn.delivered,
            delivered_ce: self.conn.delivered_ce,
            app_limited: self.conn.app_limited != 0,
            arrives_us: self.link_free_us + self.path.rtt_us as f64,
            dropped,
            marked: waiting > self.path.mark_above as f64,
            tx_inflight: self.in_network + 1,
            lost_before: self.conn.lost,
        });
        self.next_id += 1;
        self.in_network += 1;
        let spacing_us = match self.ctl.pacing_rate_bytes_per_s {
            0 => 0.0,
            rate => f64::from(MSS) * 1e6 / rate as f64,
        };
        self.next_send_us = self.now_us.max(self.next_send_us) + spacing_us;
        self.note_window_use();
    }

    /// Whether the policer, if there is one, lets a packet pass.
    fn takes_token(&mut self) -> bool {
        if self.path.police_bps == 0 {
            return true;
        }
        let packets_per_us = self.path.police_bps as f64 / 8e6 / f64::from(MSS);
        let filled = self.tokens + (self.now_us - self.tokens_us) * packets_per_us;
        self.tokens = filled.min(self.path.bucket_packets as f64);
        self.tokens_us = self.now_us;
        let passes = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(passes));
        passes
    }

    /// Linux tcp_cwnd_validate(): was the window used up within the last round?
    fn note_window_use(&mut self) {
        let limited = self.in_network >= self.ctl.cwnd;
        let oldest = self
            .inflight
            .front()
            .map_or(self.next_id, |packet| packet.id);
        let was_limited = self.conn.is_cwnd_limited != 0;
        if oldest >= self.usage_until
            || limited
            || (!was_limited && self.in_network > self.most_out)
        {
            self.conn.is_cwnd_limited = u8::from(limited);
            self.conn.is_cwnd_full = u8::from(limited);
            self.most_out = self.in_network;
            self.usage_until = self.next_id;
        }
    }

    fn receive_ack(&mut self) {
        let prior_inflight = self.in_network;
        let index = self
            .inflight
            .iter()
            .position(|p| !p.dropped)
            .expect("an ACK is due");
        let packet = self.inflight.remove(index).expect("found above");
        self.in_network -= 1;
        self.conn.delivered += 1;
        self.conn.delivered_ce += u32::from(packet.marked);
        self.conn.delivered_us = self.conn.now_us;
        let rtt_us = self.conn.now_us - packet.sent_us;
        self.min_rtt_us = self.min_rtt_us.min(rtt_us);
        self.conn.srtt_us = ((u64::from(self.conn.srtt_us) * 7 + rtt_us) / 8) as u32;

        let losses = self.mark_lost(packet.id.saturating_sub(DUP_THRESH - 1));
        if losses > 0 && self.recovery_until.is_none() {
            self.high_id = self.next_id;
            self.recovery_until = Some(self.next_id + u64::from(losses));
            self.update_conn();
            self.event(EventKind::Ssthresh, 0);
            self.set_ca_state(CaState::Recovery);
            if !self.cc.wants(flags::OWNS_CWND) {
                self.ctl.cwnd = self.ctl.ssthresh;
            }
        } else if losses > 0 && packet.id < self.high_id {
            self.recovery_until = self.recovery_until.map(|until| until + u64::from(losses));
        } else if self.recovery_until.is_some_and(|until| packet.id >= until) {
            self.recovery_until = None;
            self.event(EventKind::CompleteCwr, 0);
            self.set_ca_state(CaState::Open);
        }

        let send_us = packet.sent_us - packet.first_sent_us;
        let ack_us = self.conn.now_us - packet.delivered_us;
        self.first_sent_us = packet.sent_us;
        let interval_us = send_us.max(ack_us);
        let valid = interval_us >= self.min_rtt_us;
        let delivered = self.conn.delivered.wrapping_sub(packet.delivered) as i32;
        self.update_conn();
        let mut ack = Ack {
            prior_us: packet.delivered_us.max(1),
            prior_delivered: packet.delivered,
            delivered,
            delivered_ce: (self.conn.delivered_ce - packet.delivered_ce) as i32,
            prior_delivered_ce: packet.delivered_ce,
            interval_us: if valid { interval_us as i32 } else { -1 },
            rtt_us: rtt_us as i32,
            losses,
            acked_sacked: 1,
            prior_inflight,
            last_end_seq: ((packet.id + 1) as u32).wrapping_mul(MSS),
            is_app_limited: u8::from(packet.app_limited),
            age_us: rtt_us as u32,
            ..Ack::default()
        };
        if self.cc.wants(flags::WANTS_RTT) {
            self.event(EventKind::Rtt, rtt_us as u32);
        }
        if self.cc.wants(flags::OWNS_CWND) || self.recovery_until.is_none() {
            self.cc.on_ack(&self.conn, &mut ack, &mut self.ctl);
        }
        let info = self.cc.info();
        self.rows.push(Row {
            t_us: self.conn.now_us - 1_000_000,
            phase: Phase::from_raw(info.phase),
            cwnd: self.ctl.cwnd,
            inflight: self.in_network,
            pacing_bps: self.ctl.pacing_rate_bytes_per_s * 8,
            queue_us: (self.link_free_us - self.now_us).max(0.0),
            delivered: self.conn.delivered,
            lost: self.conn.lost,
            ring: (ack.tx_inflight, ack.lost),
            truth: (packet.tx_inflight, self.conn.lost - packet.lost_before),
            info,
        });
    }

    /// Drops from the books every packet below `id` that will never arrive: nothing overtakes, so these
    /// are the first.
    fn mark_lost(&mut self, id: u64) -> u32 {
        let is_lost = |packet: &&Packet| packet.dropped && packet.id < id;
        let losses = self.inflight.iter().take_while(is_lost).count();
        self.inflight.drain(..losses);
        let losses = losses as u32;
        self.in_network -= losses;
        self.conn.lost = self.conn.lost.wrapping_add(losses);
        losses
    }

    fn set_ca_state(&mut self, state: CaState) {
        self.event(EventKind::State, state as u32);
        self.conn.prior_ca_state = self.conn.ca_state;
        self.conn.ca_state = state as u8;
    }

    /// Nothing will arrive and nothing may be sent: a retransmission timeout.
    pub(crate) fn time_out(&mut self) {
        self.set_now(self.now_us + 200_000.0);
        self.update_conn();
        self.conn.lost = self.conn.lost.wrapping_add(self.in_network);
        self.event(EventKind::Ssthresh, 0);
        self.event(EventKind::Rto, 0);
        self.inflight.clear();
        self.in_network = 0;
        self.update_conn();
        self.ctl.cwnd = 1;
        self.set_ca_state(CaState::Loss);
        self.recovery_until = Some(self.next_id);
    }
}

/// The part of the rows during the n-th visit of a phase.
pub(crate) fn visit(rows: &[Row], phase: Phase, n: usize) -> &[Row] {
    let starts = phases(rows).into_iter().enumerate();
    let (index, _) = starts
        .filter(|(_, (seen, _))| *seen == phase)
        .nth(n)
        .expect("the phase is visited that often");
    let runs: Vec<&[Row]> = rows.chunk_by(|a, b| a.phase == b.phase).collect();
    runs[index]
}

/// The phases in order, each with the time at which it began.
pub(crate) fn phases(rows: &[Row]) -> Vec<(Phase, f64)> {
    let mut seen: Vec<(Phase, f64)> = Vec::new();
    for row in rows {
        if seen.last().is_none_or(|(phase, _)| *phase != row.phase) {
            seen.push((row.phase, row.t_us as f64 / 1e6));
        }
    }
    seen
}

/// Goodput of the rows, as a share of the rate.
pub(crate) fn utilisation(rows: &[Row], path: &Path) -> f64 {
    let (first, last) = (rows.first().expect("rows"), rows.last().expect("rows"));
    let packets = f64::from(last.delivered - first.delivered);
    packets * path.packet_us() / (last.t_us - first.t_us) as f64
}

/// The longest queue of the rows, in base RTTs.
pub(crate) fn peak_queue_rtt(rows: &[Row], path: &Path) -> f64 {
    let peak = rows.iter().map(|row| row.queue_us).fold(0.0, f64::max);
    peak / path.rtt_us as f64
}
