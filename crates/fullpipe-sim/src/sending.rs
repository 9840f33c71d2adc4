//! What leaves a host: an application writes, TCP sends, and its packets enter the row, at once or when
//! the host lets them. Never where they go from there, nor what comes back.

use fullpipe_net::Direction;
use fullpipe_plan::Pacing;
use fullpipe_tcp::{Burst, Data};
use fullpipe_workload::Writing;

use crate::connection::Leaving;
use crate::ends::NEVER_NS;
use crate::events::Event;
use crate::packet::{Body, InFlight, Label, HEADER_BYTES};
use crate::recorder;
use crate::run::Simulation;

/// Where a flow's data enter the row, and as whose.
struct Road {
    flow: usize,
    owner: u32,
    label: Label,
    direction: Direction,
    link: usize,
}

impl Simulation<'_> {
    pub(crate) fn stop(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        connection.sender.stop();
        connection.stopped = true;
        self.transmit(flow); // its FIN
    }

    pub(crate) fn write(&mut self, flow: usize) {
        if self.connections[flow].visit.is_some() {
            self.write_chunk(flow);
            self.transmit(flow);
            return;
        }
        let connection = &mut self.connections[flow];
        if connection.stopped {
            return;
        }
        if let Some(writer) = &mut connection.writer {
            let (writing, at_ns) = writer.step();
            match writing {
                Writing::Bytes(bytes) => connection.sender.write_bytes(bytes),
                Writing::Unlimited => connection.sender.set_unlimited(true),
                Writing::Nothing => connection.sender.set_unlimited(false),
            }
            self.agenda.schedule(at_ns, Event::Write(flow as u32));
            self.transmit(flow);
            return;
        }
        let amount_bytes = self.plan.flows.get(flow).and_then(|flow| flow.amount_bytes);
        let left_bytes = amount_bytes.map(|amount| amount - connection.sender.written_bytes());
        if let Some(last) = left_bytes.filter(|&left| left <= connection.sender.mss_bytes().into())
        {
            connection.sender.write_last(last);
            self.transmit(flow);
            return;
        }
        connection.sender.write(1);
        let next_ns = self.now_ns + connection.write_interval_ns;
        self.agenda.schedule(next_ns, Event::Write(flow as u32));
        self.transmit(flow);
    }

    #[inline(never)]
    pub(crate) fn transmit(&mut self, flow: usize) {
        self.transmit_here(flow);
    }

    #[inline(always)] // behind every ACK
    pub(crate) fn transmit_here(&mut self, flow: usize) {
        let sender = &mut self.connections[flow].sender;
        sender.transmit(self.now_ns, &mut self.outgoing);
        self.send_out(flow);
    }

    pub(crate) fn sender_timer(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        if connection.sender_timer_ns != self.now_ns {
            return; // an earlier deadline took this one's place
        }
        connection.sender_timer_ns = NEVER_NS;
        if connection
            .sender
            .timer_ns()
            .is_none_or(|at_ns| at_ns > self.now_ns)
        {
            self.arm(flow);
            return;
        }
        let sender = &mut connection.sender;
        sender.on_timer(self.now_ns, &mut self.outgoing);
        self.send_out(flow);
    }

    /// Hands what TCP sent to the network, now or when it departs. What leaves at once makes room
    /// below TCP (tcp_wfree()), so that it may send more.
    #[inline(always)] // most ACKs let nothing go
    fn send_out(&mut self, flow: usize) {
        if !self.outgoing.is_empty() {
            self.send_all(flow);
        }
        let connection = &self.connections[flow];
        let (has_events, arms) = (
            connection.sender.has_events(),
            connection.sender_may_expire_sooner(),
        );
        if has_events {
            self.note_events(flow);
        }
        if arms {
            self.arm(flow);
        }
    }

    #[inline(never)]
    fn send_all(&mut self, flow: usize) {
        while !self.outgoing.is_empty() {
            // What leaves may set off something that sends too.
            let mut outgoing = std::mem::take(&mut self.outgoing);
            let made_room = self.hand_down(flow, &mut outgoing);
            self.outgoing = outgoing;
            if made_room {
                let sender = &mut self.connections[flow].sender;
                sender.transmit(self.now_ns, &mut self.outgoing);
            }
        }
    }

    /// True if something left through fq at once.
    fn hand_down(&mut self, flow: usize, outgoing: &mut Vec<Burst>) -> bool {
        let mut made_room = false;
        let access_bps = self.plan.host.access_rate_bps;
        let is_fq = self.plan.host.pacing == Pacing::Fq;
        let sending_costs = self.sending_costs();
        if !is_fq && access_bps == 0 && !sending_costs {
            self.enter_all(flow, outgoing);
            return false;
        }
        let (owner, direction) = (self.owner(flow), self.connections[flow].data_direction);
        let packets = outgoing.drain(..).flat_map(|burst| {
            let unmade = if sending_costs { burst.count } else { 0 };
            let of_each = std::iter::once(unmade).chain(std::iter::repeat(0));
            of_each.zip(burst.packets())
        });
        let mut ready_ns = self.now_ns;
        for (mut unmade, data) in packets {
            // What fq holds back is made when it lets it go (validate_xmit_skb()).
            if unmade > 0 && data.departs_ns <= self.now_ns {
                ready_ns = self.makes_burst(owner, direction, unmade);
                unmade = 0;
            }
            self.note_sent(flow, &data);
            let connection = &mut self.connections[flow];
            let mut enters_ns = data.departs_ns.max(ready_ns);
            let wire_bits = u64::from(HEADER_BYTES + data.payload_bytes) * 8;
            if let Some(serialized_ns) = (wire_bits * 1_000_000_000).checked_div(access_bps) {
                enters_ns = connection.access_free_ns.max(enters_ns) + serialized_ns;
                connection.access_free_ns = enters_ns;
            }
            if enters_ns <= self.now_ns && connection.leaving.is_empty() {
                if is_fq {
                    connection.sender.departed(u64::from(data.payload_bytes));
                    made_room = true;
                }
                let road = self.road(flow);
                self.enter(&road, data);
                continue;
            }
            if connection.leaving.is_empty() {
                self.agenda
                    .schedule(enters_ns, Event::Departure(flow as u32));
            }
            connection.leaving.push_back(Leaving {
                enters_ns,
                unmade,
                data,
            });
        }
        made_room
    }

    /// Bursts whose time has come leave the sender's host; under fq that makes room.
    pub(crate) fn depart(&mut self, flow: usize) {
        while let Some(&first) = self.connections[flow].leaving.front() {
            let Leaving {
                enters_ns,
                unmade,
                data,
            } = first;
            if enters_ns > self.now_ns {
                self.agenda
                    .schedule(enters_ns, Event::Departure(flow as u32));
                break;
            }
            if unmade > 0 {
                self.make_now(flow, unmade);
                continue;
            }
            let connection = &mut self.connections[flow];
            connection.leaving.pop_front();
            connection.sender.departed(u64::from(data.payload_bytes));
            let road = self.road(flow);
            self.enter(&road, data);
        }
        if self.plan.host.pacing == Pacing::Fq {
            self.transmit(flow);
        }
    }

    /// The burst whose time has come is made, and none of it leaves before all is.
    fn make_now(&mut self, flow: usize, packets: u32) {
        let (owner, direction) = (self.owner(flow), self.connections[flow].data_direction);
        let ready_ns = self.makes_burst(owner, direction, packets);
        let leaving = self.connections[flow].leaving.iter_mut();
        for (number, packet) in leaving.enumerate() {
            if number > 0 && packet.unmade > 0 {
                break; // the next burst
            }
            packet.unmade = 0;
            packet.enters_ns = packet.enters_ns.max(ready_ns);
        }
    }

    /// Nothing lies between TCP and the network.
    fn enter_all(&mut self, flow: usize, outgoing: &mut Vec<Burst>) {
        let road = self.road(flow);
        for burst in outgoing.drain(..) {
            self.enter_burst(&road, &burst);
        }
    }

    /// What all data packets of a flow have in common.
    fn road(&self, flow: usize) -> Road {
        let owner = self.owner(flow);
        let direction = self.connections[flow].data_direction;
        Road {
            flow,
            owner: owner as u32,
            label: self.labels[owner].towards(direction),
            direction,
            link: self.network.first_link(owner as u32, direction),
        }
    }

    /// TCP hands packets down, and they leave their sender's host: together where nothing happens to
    /// one that does not to the others.
    fn enter_burst(&mut self, road: &Road, burst: &Burst) {
        if self.pcap.is_some() || !self.egress.is_open(road.direction) {
            for data in burst.packets() {
                self.note_sent(road.flow, &data);
                self.enter(road, data);
            }
            return;
        }
        match burst.data.payload_bytes {
            0 => self.control.sent += u64::from(burst.count),
            _ => self.sent += u64::from(burst.count),
        }
        self.connections[road.flow].under_way += burst.count;
        let first = InFlight {
            owner: road.owner,
            label: road.label,
            body: Body::Data(burst.data),
        };
        self.offer_burst(road.link, road.direction, &first, burst.count);
    }

    /// A data packet leaves its sender's host.
    fn enter(&mut self, road: &Road, data: Data) {
        let mut packet = InFlight {
            owner: road.owner,
            label: road.label,
            body: Body::Data(data),
        };
        if self.egress.passes(road.direction, &mut packet) {
            self.connections[road.flow].under_way += 1;
            self.offer_burst(road.link, road.direction, &packet, 1);
        } else {
            self.lost += u64::from(packet.body.is_data());
            self.control.lost += u64::from(packet.body.is_control());
        }
    }

    /// TCP hands a packet down.
    fn note_sent(&mut self, flow: usize, data: &Data) {
        match data.payload_bytes {
            0 => self.control.sent += 1,
            _ => self.sent += 1,
        }
        if self.pcap.is_some() {
            let begin = self.connections[flow].sender.sequence_bytes(data.number);
            self.capture(|pcap| pcap.data(flow as u32, begin, data));
        }
    }

    /// One event for the sender's earliest timer, unless the one on the agenda comes before: a later
    /// deadline is found then.
    #[inline(never)] // few ACKs leave an earlier one
    fn arm(&mut self, flow: usize) {
        let connection = &mut self.connections[flow];
        let Some(at_ns) = connection.sender.timer_ns() else {
            return;
        };
        let at_ns = at_ns.max(self.now_ns);
        if at_ns < connection.sender_timer_ns {
            connection.sender_timer_ns = at_ns;
            self.agenda.schedule(at_ns, Event::Sender(flow as u32));
        }
    }

    #[inline(never)] // rare
    fn note_events(&mut self, flow: usize) {
        let is_of_plan = flow < self.plan.flows.len();
        let sender = &mut self.connections[flow].sender;
        if !is_of_plan {
            drop(sender.take_events());
            return;
        }
        let cwnd = u64::from(sender.cwnd());
        let rows = sender
            .take_events()
            .map(|event| recorder::event_row(self.now_ns, flow, event.name(), cwnd));
        self.tables.events.extend(rows);
    }
}
