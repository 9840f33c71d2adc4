//! Flows of transports other than TCP: calls their endpoints, sends what they hand down, and delivers what
//! arrives. Must never know which transport it is.

use fullpipe_net::{Direction, Ecn};

use super::Simulation;
use crate::agenda::Event;
use crate::packet::InFlight;

impl Simulation<'_> {
    /// A flow starts: its client connects.
    pub(super) fn start_endpoints(&mut self, flow: usize) {
        let now_ns = self.now_ns();
        self.record.event(now_ns, flow, "start", 0);
        self.endpoints.start(flow, now_ns);
        self.serve_endpoint(flow, 0);
    }

    /// An endpoint's timer expires, or its application writes (flow * 2 + end).
    pub(super) fn endpoint_timer(&mut self, index: usize) {
        let (flow, end) = (index / 2, index % 2);
        let now_ns = self.now_ns();
        let rings = |alarm: &mut crate::agenda::Alarm| alarm.rings(now_ns);
        if self.endpoints.alarm(flow, end).is_some_and(rings) {
            self.endpoints.on_timer(flow, end, now_ns);
            self.serve_endpoint(flow, end);
        }
    }

    /// A flow's application stops.
    pub(super) fn stop_endpoints(&mut self, flow: usize) {
        if self.endpoints.is_started(flow) {
            for end in 0..2 {
                self.serve_endpoint(flow, end);
            }
        }
    }

    /// A datagram reaches its host.
    pub(super) fn deliver_opaque(
        &mut self,
        direction: Direction,
        packet: &InFlight,
        payload: u32,
        ecn: Ecn,
    ) {
        let now_ns = self.now_ns();
        let flow = packet.flow_id as usize;
        self.record.data.delivered += u64::from(packet.body.is_data());
        self.endpoints
            .receive(flow, direction, payload, ecn, now_ns);
        self.serve_endpoint(flow, direction.back().index());
    }

    /// Sends what an endpoint has to send, and sets its timer.
    fn serve_endpoint(&mut self, flow: usize, end: usize) {
        let now_ns = self.now_ns();
        let due_ns = self.endpoints.serve(self.plan, flow, end, now_ns);
        for news in self.endpoints.news.drain(..) {
            self.record.event(now_ns, flow, news.event, news.value);
        }
        // What enters the network may reach another endpoint at once.
        let mut leaving = std::mem::take(&mut self.endpoints.leaving);
        for datagram in leaving.drain(..) {
            let direction = datagram.direction;
            let mut packet = self.hosts.packet(flow, direction, datagram.body);
            self.record.count_sent(&packet.body);
            if self.hosts.loss.passes(direction, &mut packet) {
                self.enter_row(direction, &packet);
            } else {
                self.record.count_lost(&packet.body);
                self.packet_gone(&packet);
            }
        }
        self.endpoints.leaving = leaving;
        if let Some(alarm) = self.endpoints.alarm(flow, end) {
            let event = Event::Endpoint((flow * 2 + end) as u32);
            alarm.set(&mut self.agenda, due_ns.max(now_ns), event);
        }
    }
}
