//! Moves packets through the network: into the row of links, from link to link, and out of it to the hosts.
//! Must never know what a packet is for.

use fullpipe_net::{Batch, Direction, LinkDirection, Packet, Passage};
use fullpipe_tcp::Data;

use super::Simulation;
use crate::agenda::NEVER_NS;
use crate::packet::{Body, InFlight, IpHeader};

impl Simulation<'_> {
    /// A packet enters the row.
    #[inline(always)] // as `offer`
    pub(super) fn enter_row(&mut self, direction: Direction, packet: &InFlight) {
        let first = self.network.row.first_link(packet.flow_id, direction);
        self.offer(first, packet);
    }

    /// A link's timer expires.
    pub(super) fn link_timer(&mut self, timer: LinkDirection) {
        if !self.network.timer_rings(timer, self.now_ns()) {
            return;
        }
        match self.network.row.passage(timer) {
            Passage::Queued => self.pass_in_turn(timer),
            Passage::Offered | Passage::Delayed(_) => self.general_timer(timer),
        }
    }

    /// A queue lets packets pass, one after the other while nothing else happens in between.
    #[inline(always)] // at nearly every link's timer
    fn pass_in_turn(&mut self, at: LinkDirection) {
        loop {
            let due_ns = self.pass_next(at);
            if self.network.is_timer_set(at) || !self.continues(due_ns) {
                return self.network.set_timer(&mut self.agenda, at, due_ns);
            }
        }
    }

    #[inline(never)]
    fn general_timer(&mut self, timer: LinkDirection) {
        let batch = self.network.row.advance(self.now_ns(), timer);
        self.forward_batch(&batch);
    }

    /// Packets between two links have reached the second one.
    pub(super) fn next_link_reached(&mut self, at: LinkDirection) {
        let now_ns = self.now_ns();
        if !self.network.arrival_rings(at, now_ns) {
            return;
        }
        while let Some(packet) = self.network.row.arrived(now_ns, at) {
            match self.network.row.next_link(packet.flow_id, at) {
                Some(next) => self.offer(next, &packet),
                None => debug_assert!(false, "packets leave the row at their last link"),
            }
        }
        self.network.await_arrival(&mut self.agenda, at);
    }

    /// A packet enters a link.
    #[inline(always)] // most ACKs are only delayed: once around `forward`
    fn offer(&mut self, at: LinkDirection, packet: &InFlight) {
        match self.network.row.passage(at) {
            Passage::Delayed(delay_ns) => self.forward(at, self.now_ns() + delay_ns, packet),
            Passage::Queued => self.enqueue(at, packet, 1),
            Passage::Offered => self.offer_general(at, packet),
        }
    }

    /// A burst of `count` data packets enters a link, represented by its first ([`Packet::clear_last_flags`]).
    pub(super) fn offer_burst(&mut self, at: LinkDirection, burst: &InFlight, count: u32) {
        if self.network.row.passage(at) == Passage::Queued {
            return self.enqueue(at, burst, count);
        }
        let mut burst = *burst;
        for others in (0..count).rev() {
            let packet = burst.split_first(others);
            self.offer(at, &packet);
        }
    }

    #[inline(never)] // once a burst
    fn enqueue(&mut self, at: LinkDirection, burst: &InFlight, count: u32) {
        let now_ns = self.now_ns();
        let Some((queue, passed)) = self.network.row.queued(at) else {
            return;
        };
        let due_ns = queue.due_ns();
        if due_ns == NEVER_NS {
            return self.enqueue_idle(at, *burst, count);
        }
        queue.enqueue(now_ns, burst, count, &mut passed.dropped);
        self.network.set_timer(&mut self.agenda, at, due_ns);
        self.lose_dropped();
    }

    /// Packets reach an idle queue: each passes at once, until one has to wait.
    #[inline(never)]
    fn enqueue_idle(&mut self, at: LinkDirection, mut burst: InFlight, count: u32) {
        let now_ns = self.now_ns();
        for others in (0..count).rev() {
            let Some((queue, passed)) = self.network.row.queued(at) else {
                return;
            };
            if queue.due_ns() != NEVER_NS {
                return self.enqueue(at, &burst, others + 1);
            }
            let packet = burst.split_first(others);
            if !queue.enqueue(now_ns, &packet, 1, &mut passed.dropped) {
                self.lose_dropped();
                continue;
            }
            let due_ns = self.pass_next(at);
            self.network.set_timer(&mut self.agenda, at, due_ns);
        }
    }

    /// A queue lets the next packet pass. Returns when it has to be called next.
    #[inline(always)] // into its two callers
    fn pass_next(&mut self, at: LinkDirection) -> u64 {
        let now_ns = self.now_ns();
        let Some((queue, passed)) = self.network.row.queued(at) else {
            return NEVER_NS;
        };
        let Some((first, is_followed)) = queue.choose(now_ns, &mut passed.dropped) else {
            let due_ns = queue.due_ns();
            self.lose_dropped();
            return due_ns;
        };
        let Body::Data(data) = &first.body else {
            let packet = *first;
            let at_ns = queue.send(now_ns);
            let due_ns = queue.due_ns();
            return self.forward_departed(at, at_ns, due_ns, &packet);
        };
        // The rest of the packet is mostly not needed.
        let (flow_id, header, mut data) = (first.flow_id, first.header, *data);
        if is_followed {
            data.clear_last_flags();
        }
        let at_ns = queue.send(now_ns);
        let due_ns = queue.due_ns();
        let reaches_host = at_ns <= now_ns && due_ns > now_ns;
        if reaches_host && self.hosts.is_open_behind(flow_id, at) {
            self.lose_dropped();
            self.deliver_data(flow_id, &data);
            return due_ns;
        }
        self.forward_data(at, at_ns, due_ns, flow_id, header, &data)
    }

    /// Data that do not reach their host at once become a packet again.
    #[inline(never)] // else every packet is written twice
    fn forward_data(
        &mut self,
        at: LinkDirection,
        at_ns: u64,
        due_ns: u64,
        flow_id: u32,
        header: IpHeader,
        data: &Data,
    ) -> u64 {
        let packet = InFlight {
            flow_id,
            header,
            body: Body::Data(*data),
        };
        self.forward_departed(at, at_ns, due_ns, &packet)
    }

    /// Moves on a packet that left a queue, and others that may leave now too. Returns when the queue has
    /// to be called next.
    #[inline(never)]
    fn forward_departed(
        &mut self,
        at: LinkDirection,
        at_ns: u64,
        due_ns: u64,
        packet: &InFlight,
    ) -> u64 {
        let now_ns = self.now_ns();
        if due_ns <= now_ns {
            let batch = self.network.row.send_all(now_ns, at);
            self.lose_dropped();
            self.forward(at, at_ns, packet);
            self.forward_batch(&batch);
            return NEVER_NS; // its timer is set
        }
        self.lose_dropped();
        self.forward(at, at_ns, packet);
        due_ns
    }

    #[inline(never)]
    fn offer_general(&mut self, at: LinkDirection, packet: &InFlight) {
        if let Some(batch) = self.network.offer(&mut self.agenda, at, packet) {
            self.forward_batch(&batch);
        }
    }

    /// Counts what a call of a link dropped and duplicated, and moves on what it passed.
    fn forward_batch(&mut self, batch: &Batch) {
        while let Some(packet) = self.network.row.pop_duplicated() {
            self.record.count_sent(&packet.body);
            self.hosts.packet_added(&packet);
            if let Body::Opaque { payload, .. } = packet.body {
                self.endpoints.payloads.copied(payload);
            }
        }
        self.lose_dropped();
        for position in self.network.row.exits(batch) {
            let exit = self.network.row.exit(position);
            let at = LinkDirection::new(batch.timer.link(), exit.direction);
            self.forward(at, exit.at_ns, &exit.packet);
        }
        self.network.end_batch(&mut self.agenda, batch);
    }

    /// Counts packets that a link dropped.
    #[inline(always)] // mostly there are none
    fn lose_dropped(&mut self) {
        if self.network.row.has_dropped() {
            self.lose_all();
        }
    }

    #[inline(never)]
    fn lose_all(&mut self) {
        while let Some(packet) = self.network.row.pop_dropped() {
            self.record.count_lost(&packet.body);
            self.packet_gone(&packet);
        }
    }

    /// A packet has left a link; at `at_ns` it reaches the next link, or the hosts' side of the row.
    #[inline(always)] // as `leave_row`, where most packets go
    fn forward(&mut self, at: LinkDirection, at_ns: u64, packet: &InFlight) {
        match self.network.row.next_link(packet.flow_id, at) {
            None => self.leave_row(at_ns, at.direction(), packet),
            Some(next) => self.forward_to_link(at, next, at_ns, packet),
        }
    }

    #[inline(never)]
    fn forward_to_link(
        &mut self,
        at: LinkDirection,
        next: LinkDirection,
        at_ns: u64,
        packet: &InFlight,
    ) {
        let agenda = &mut self.agenda;
        if self.network.carries_now(agenda, at, at_ns, packet) {
            self.offer(next, packet);
        }
    }
}
