//! The sender around its recovery.

use fullpipe_cc::{Ctl, Event};

use super::control::{Control, Details};
use super::cwnd_use::CwndUse;
use super::flight::{Flight, LostPacket};
use super::journal::{Journal, SenderEvent};
use super::peer::Peer;
use super::rate::RateState;
use super::recovery::{Context, Recovery};
use super::rtt::Rtt;
use super::stream::Stream;
use super::write_queue::WriteQueue;

/// The parts of a sender other than [`Recovery`] and [`Flight`], for a step of recovery.
pub(super) struct Surroundings<'a> {
    pub(super) now_ns: u64,
    pub(super) control: &'a mut Control,
    pub(super) cwnd_use: &'a mut CwndUse,
    pub(super) journal: &'a mut Journal,
    pub(super) rate: &'a RateState,
    pub(super) rtt: &'a Rtt,
    pub(super) stream: &'a Stream,
    pub(super) queue: &'a WriteQueue,
    pub(super) peer: &'a Peer,
}

impl Surroundings<'_> {
    /// Shows the congestion control all parts, before it is called.
    fn show(&mut self, recovery: &Recovery, flight: &Flight) {
        self.control.see(flight, recovery, self.rate, self.cwnd_use);
        if self.control.wants_details() {
            self.control.see_details(&Details {
                flight,
                recovery,
                cwnd_use: self.cwnd_use,
                rtt: self.rtt,
                stream: self.stream,
                queue: self.queue,
                peer: self.peer,
            });
        }
    }
}

impl Context for Surroundings<'_> {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn rtt(&self) -> &Rtt {
        self.rtt
    }

    fn owns_cwnd(&self) -> bool {
        self.control.owns_cwnd()
    }

    fn ctl(&self) -> &Ctl {
        self.control.ctl()
    }

    fn ctl_mut(&mut self) -> &mut Ctl {
        self.control.ctl_mut()
    }

    fn tell(&mut self, recovery: &Recovery, flight: &Flight, event: Event) {
        self.show(recovery, flight);
        self.control.on_event(event);
    }

    fn tell_lost(&mut self, recovery: &Recovery, flight: &Flight, packet: &LostPacket) {
        if self.control.reports_losses() {
            self.show(recovery, flight);
            self.control.on_lost(packet);
        }
    }

    fn full_packets(&self, first: u32, end: u32) -> u32 {
        self.stream.full_packets(first, end)
    }

    fn restamp_cwnd(&mut self) {
        self.cwnd_use.restamp(self.now_ns);
    }

    fn record(&mut self, event: SenderEvent) {
        self.journal.record(event);
    }
}
