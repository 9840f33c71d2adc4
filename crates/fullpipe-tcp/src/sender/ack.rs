//! Processes ACKs: what they acknowledge and SACK, ECN marks, RTT samples, then the call of the congestion
//! control. Order and names follow tcp_ack() of tcp_input.c.

use fullpipe_cc::{flags, Ack as CcAck, Event, EventKind};

use crate::packet::Ack;

use super::ack_info::AckInfo;
use super::recovery::Resend;
use super::Sender;

const NS_PER_MS: u64 = 1_000_000;

impl Sender {
    /// Processes an ACK. Call [`Sender::transmit`] afterwards.
    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.advance_clock(now_ns);
        self.read_clock();
        self.small_queue.begin_softirq();
        self.peer.count(ack);
        let una = self.flight.una();
        if ack.next > self.flight.next() || self.peer.drops(ack, una) {
            return;
        }
        if ack.next < una {
            self.on_old_ack(ack);
            return;
        }
        match self.is_predicted(ack) {
            true => self.process_ack::<true>(ack),
            false => self.process_unpredicted_ack(ack),
        }
    }

    /// Whether it only acknowledges the next packets while none is missing (header prediction, the fast
    /// path of tcp_ack()).
    #[inline(always)] // as `process_ack`
    fn is_predicted(&self, ack: &Ack) -> bool {
        let acknowledges = ack.count == 0 && ack.next > self.flight.una();
        let is_quiet = self.recovery.is_idle() && self.flight.is_untouched();
        acknowledges && is_quiet && !self.ecn.is_used()
    }

    #[inline(never)]
    fn process_unpredicted_ack(&mut self, ack: &Ack) {
        match self.flight.is_empty() {
            true => self.process_ack_of_nothing(ack),
            false => self.process_ack::<false>(ack),
        }
    }

    /// Nothing is unacknowledged: the congestion control sees no such ACK (tcp_ack(), no_queue).
    fn process_ack_of_nothing(&mut self, ack: &Ack) {
        self.recheck_app_limited();
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            is_slow: true,
            window_changed: self.peer.updates_window(ack, self.flight.una()),
            ..AckInfo::default()
        };
        let delivered_before = self.rate.delivered();
        let window_before = self.peer.window_bytes();
        let is_newest = self.peer.take_header(ack, info.window_changed);
        if self.peer.window_bytes() != window_before && self.has_unsent() {
            self.restart_after_idle(); // tcp_ack_update_window()
        }
        self.resend = Resend::Nothing;
        if ack.count > 0 {
            self.deliveries().sack(ack, &mut info);
        }
        info.newly_delivered = self.rate.delivered().wrapping_sub(delivered_before);
        self.process_marks(ack, is_newest, &mut info);
        self.report_ack(&info);
        if info.is_dsack {
            self.alert(self.flight.una(), &mut info);
        }
        self.answer_probe(ack, &mut info);
        self.answer_window_probe();
    }

    /// With `PREDICTED` ([`Self::is_predicted`]) the compiler leaves out everything but the fast path.
    #[inline(always)] // keeps `AckInfo` in registers
    fn process_ack<const PREDICTED: bool>(&mut self, ack: &Ack) {
        self.recheck_app_limited();
        // Without losses and SACKs every packet out is in flight.
        let prior_inflight = match PREDICTED {
            true => self.flight.out(),
            false => self.flight.inflight(),
        };
        let prior_lost = self.flight.total_lost();
        let prior_sacked = self.flight.sacked();
        let prior_una = self.flight.una();
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            advanced: PREDICTED || ack.next > prior_una,
            window_changed: PREDICTED || self.peer.updates_window(ack, prior_una),
            ..AckInfo::default()
        };
        info.is_dupack = !PREDICTED && !info.window_changed && !ack.fin;
        info.is_slow = ack.count > 0 || ack.window_bytes != self.peer.window_bytes();
        let is_newest = self.peer.take_header(ack, info.window_changed);
        self.resend = Resend::Nothing;
        if info.advanced {
            self.recovery.advanced();
        }

        self.deliver::<PREDICTED>(ack, &mut info);
        if !PREDICTED {
            self.process_marks(ack, is_newest, &mut info);
        }
        info.is_delayed = (PREDICTED || prior_sacked == 0) && self.is_ack_maybe_delayed(ack, &info);
        let rtt_us = self.process_rtt(&mut info);
        if self.control.wants(flags::WANTS_RTT) {
            self.report_rtt(rtt_us, &info);
        }
        self.report_ack(&info);
        if !PREDICTED {
            self.answer_probe(ack, &mut info);
            if self.recovery.is_dubious(&info) {
                self.alert(prior_una, &mut info);
            }
        }
        if info.sets_timer && !self.schedule_loss_probe(self.rtt.timeout_ns()) {
            self.restart_timeout();
        }

        let losses = self.flight.total_lost().wrapping_sub(prior_lost);
        let grew = info.newly_delivered > 0;
        let (now_us, min_rtt_us) = (self.control.now_us(), self.rtt.min_us());
        self.rate
            .generate(&mut info.sample, grew, now_us, min_rtt_us);
        self.cong_control(&info, rtt_us, losses, prior_inflight);
    }

    /// Takes packets for delivered that the ACK names.
    #[inline(always)] // as `process_ack`
    fn deliver<const PREDICTED: bool>(&mut self, ack: &Ack, info: &mut AckInfo) {
        let delivered_before = self.rate.delivered();
        if !PREDICTED && ack.count > 0 {
            self.deliveries().sack(ack, info);
        } else {
            self.flight.see_blocks(&[]);
        }
        self.deliveries().acknowledge::<PREDICTED>(ack.next, info);
        let delivered = self.rate.delivered();
        info.newly_delivered = delivered.wrapping_sub(delivered_before);
        self.recovery
            .learn_reordering(info, (&self.flight, &self.stream), delivered);
    }

    /// An ACK older than one before: only its SACK blocks count (tcp_ack(), old_ack).
    #[inline(never)] // rare
    fn on_old_ack(&mut self, ack: &Ack) {
        if ack.count == 0 {
            return;
        }
        let mut info = AckInfo {
            echo_ns: ack.echo_ns,
            ..AckInfo::default()
        };
        self.resend = Resend::Nothing;
        let delivered = self.rate.delivered();
        self.deliveries().sack(ack, &mut info);
        // What it delivers is not counted (sack_delivered of tcp_ack()).
        self.rate.set_delivered(delivered);
        self.recovery
            .learn_reordering(&info, (&self.flight, &self.stream), delivered);
        self.alert(self.flight.una(), &mut info);
    }

    fn process_marks(&mut self, ack: &Ack, is_newest: bool, info: &mut AckInfo) {
        let marks = self.ecn.marks(ack, is_newest, info.newly_delivered);
        info.ece = marks.echo;
        self.rate.count_marked(marks.packets);
    }

    /// tcp_ack_update_rtt(): returns the congestion control's RTT sample in us, and sets `sets_timer`.
    #[inline(always)] // as `process_ack`
    fn process_rtt(&mut self, info: &mut AckInfo) -> Option<u32> {
        let now_ns = self.now_ns;
        let acked = info.acked.filter(|_| !info.acked_retransmission);
        let mut rtts_us = acked.map(|acked| acked.rtts_us(now_ns));
        let newly_sacked = info.newly_sacked.map(|sacked| sacked.rtts_us(now_ns));
        if let Some((first_us, last_us)) = newly_sacked {
            rtts_us = Some((rtts_us.map_or(first_us, |(acked_us, _)| acked_us), last_us));
        }
        if rtts_us.is_none() && info.advanced && info.echo_ns > 0 {
            let echoed_us = self.echoed_rtt_us(info.echo_ns);
            rtts_us = Some((echoed_us, echoed_us));
        }
        info.sets_timer = info.advanced
            || newly_sacked.is_some_and(|(first_us, _)| {
                let oldest_ns = self.flight.first_sent_ns();
                !self.flight.is_empty() && first_us > now_ns.saturating_sub(oldest_ns) / 1000
            });
        let (sequence_us, control_us) = rtts_us?;
        let control_us = control_us as u32;
        // tcp_update_rtt_min(): a delayed ACK's RTT does not replace a smaller one that expires.
        if !info.is_delayed || control_us <= self.rtt.min_us() {
            self.rtt.sample_min(control_us, self.control.now_us());
        }
        let (una, next) = (self.flight.una(), self.flight.next());
        self.rtt.sample(sequence_us as i64, una, next);
        self.rtt.reset_back_off();
        self.control.see_rtt(self.rtt.smoothed_us());
        Some(control_us)
    }

    /// tcp_rtt_tsopt_us(): the RTT by the timestamp echo, in whole milliseconds.
    fn echoed_rtt_us(&self, echo_ns: u64) -> u64 {
        let elapsed_ms = (self.now_ns / NS_PER_MS).saturating_sub(echo_ns / NS_PER_MS);
        elapsed_ms.max(1) * 1000
    }

    /// Reports an RTT sample, and to an algorithm that wants every ACK also that there is none
    /// (pkts_acked() of tcp_clean_rtx_queue()).
    #[inline(always)] // as `process_ack`
    fn report_rtt(&mut self, rtt_us: Option<u32>, info: &AckInfo) {
        let wants_every = self.control.wants(flags::WANTS_EVERY_RTT);
        if rtt_us.is_none() && !wants_every {
            return;
        }
        let since = match wants_every {
            true => info.delivered_since(self.rate.delivered()),
            false => 0,
        };
        self.show();
        self.control.on_event(Event {
            kind: EventKind::Rtt as u32,
            value: rtt_us.unwrap_or(u32::MAX),
            packets: info.acked_packets,
            is_app_limited: since,
        });
    }

    /// Reports the ACK (tcp_in_ack_event()).
    #[inline(always)] // as `process_ack`
    fn report_ack(&mut self, info: &AckInfo) {
        if self.control.wants(flags::WANTS_ACKS) {
            self.tell(EventKind::Ack, info.ack_bits());
        }
    }

    /// Lets recovery answer an ACK that is more than progress.
    fn alert(&mut self, prior_una: u32, info: &mut AckInfo) {
        let can_send_new = self.has_sendable();
        let (recovery, flight, mut surroundings) = self.parts();
        let decision = recovery.alert(&mut surroundings, flight, (prior_una, can_send_new), info);
        self.resend = decision.resend;
        if let Some(wait_us) = decision.reorder_wait_us {
            self.timers.await_reordered(self.now_ns, wait_us);
            info.sets_timer = false;
        }
    }

    /// Lets recovery see an ACK while a loss probe is out.
    #[inline(always)] // as `process_ack`
    fn answer_probe(&mut self, ack: &Ack, info: &mut AckInfo) {
        if self.recovery.has_probe_out() {
            let (recovery, flight, mut surroundings) = self.parts();
            recovery.answer_probe(&mut surroundings, flight, ack, info);
        }
    }

    /// tcp_clean_rtx_queue(): the ACK covers a single short packet that was alone in flight.
    #[inline(always)] // as `process_ack`
    fn is_ack_maybe_delayed(&self, ack: &Ack, info: &AckInfo) -> bool {
        info.acked_packets == 1
            && !info.acked_retransmission
            && self.stream.is_short(self.flight.una() - 1)
            && info.delivered_since(self.rate.delivered()) == 1
            && !(info.sacked || info.ece || ack.dsack)
    }

    /// tcp_cong_control().
    #[inline(always)] // as `process_ack`
    fn cong_control(&mut self, info: &AckInfo, rtt_us: Option<u32>, losses: u32, inflight: u32) {
        if !self.control.owns_cwnd() {
            return self.avoid_congestion(info, losses);
        }
        let sample = &info.sample;
        // A partly acknowledged buffer keeps its end sequence (tcp_clean_rtx_queue() trims its start).
        let end = sample.end.wrapping_mul(self.config.mss_bytes);
        let age_us = self
            .control
            .now_us()
            .saturating_sub(self.rate.first_tx_us());
        let mut ack = CcAck {
            prior_us: sample.prior_us,
            prior_delivered: sample.prior_delivered,
            prior_delivered_ce: sample.prior_delivered_ce,
            delivered: sample.delivered,
            delivered_ce: sample.delivered_ce,
            interval_us: sample.interval_us,
            rtt_us: rtt_us.map_or(-1, |us| us as i32),
            losses,
            acked_sacked: info.newly_delivered,
            prior_inflight: inflight,
            last_end_seq: end,
            is_app_limited: u8::from(sample.is_app_limited),
            is_retrans: u8::from(sample.is_retrans),
            is_ack_delayed: u8::from(info.is_delayed),
            is_probe_answer: u8::from(info.answers_tlp),
            age_us: age_us as u32,
            tx_inflight: sample.tx_inflight,
            lost: self.flight.total_lost().wrapping_sub(sample.prior_lost),
        };
        self.show();
        self.control.on_ack(&mut ack);
    }

    /// The window of an algorithm that leaves recovery to the host (tcp_cong_avoid()).
    #[inline(always)] // as `process_ack`
    fn avoid_congestion(&mut self, info: &AckInfo, losses: u32) {
        let acked_sacked = info.newly_delivered;
        if self.recovery.is_reducing() {
            let (recovery, flight, mut surroundings) = self.parts();
            let is_clean = info.advanced && losses == 0;
            recovery.reduce(&mut surroundings, flight, acked_sacked, is_clean);
        } else if self.recovery.lets_cwnd_rise(info) {
            self.show();
            self.control.on_ack(&mut CcAck {
                acked_sacked,
                ..CcAck::default()
            });
            self.cwnd_use.restamp(self.now_ns);
            if std::mem::take(&mut self.control.ctl_mut().enters_cwr) != 0 {
                let (recovery, flight, mut surroundings) = self.parts();
                recovery.enter_cwr(&mut surroundings, flight);
            }
        }
        self.update_pacing_rate();
    }
}
