//! Moves packets through the network: into the row of links, from link to link, and out of it to the hosts.
//! Must never know what a packet is for.

use fullpipe_net::{Direction, Packet};
use fullpipe_tcp::Data;

use super::Simulation;
use crate::agenda::NEVER_NS;
use crate::network::{Batch, Departure, Treatment};
use crate::packet::{Body, InFlight, IpHeader};

impl Simulation<'_> {
    /// A packet enters the row.
    #[inline(always)] // as `offer`
    pub(super) fn enter_row(&mut self, direction: Direction, packet: &InFlight) {
        let link = self.network.first_link(packet.flow_id, direction);
        self.offer(link, direction, packet);
    }

    /// A link's timer expires.
    pub(super) fn link_timer(&mut self, index: usize) {
        if !self.network.timer_rings(index, self.now_ns()) {
            return;
        }
        match self.network.treatment(index) {
            Treatment::Queued => self.pass_in_turn(index),
            Treatment::General { .. } => self.general_timer(index),
        }
    }

    /// A queue lets packets pass, one after the other while nothing else happens in between.
    #[inline(always)] // at nearly every link's timer
    fn pass_in_turn(&mut self, index: usize) {
        loop {
            let due_ns = self.pass_next(index);
            if self.network.is_timer_set(index) || !self.continues(due_ns) {
                return self.network.set_timer(&mut self.agenda, index, due_ns);
            }
        }
    }

    #[inline(never)]
    fn general_timer(&mut self, index: usize) {
        let batch = self.network.advance(self.now_ns(), index);
        self.forward_batch(&batch);
    }

    /// Packets between two links have reached the second one.
    pub(super) fn next_link_reached(&mut self, index: usize) {
        let now_ns = self.now_ns();
        if !self.network.arrival_rings(index, now_ns) {
            return;
        }
        let direction = Direction::of_index(index);
        while let Some(packet) = self.network.arrived(index, now_ns) {
            match self.network.next_link(packet.flow_id, index / 2, direction) {
                Some(next) => self.offer(next, direction, &packet),
                None => debug_assert!(false, "packets leave the row at their last link"),
            }
        }
        self.network.await_arrival(&mut self.agenda, index);
    }

    /// A packet enters a link.
    #[inline(always)] // most ACKs are only delayed: once around `forward`
    fn offer(&mut self, link: usize, direction: Direction, packet: &InFlight) {
        let index = link * 2 + direction.index();
        match self.network.treatment(index) {
            Treatment::General {
                constant_delay_ns: Some(delay_ns),
            } => self.forward(link, self.now_ns() + delay_ns, direction, packet),
            Treatment::Queued => self.enqueue(index, packet, 1),
            Treatment::General { .. } => self.offer_general(link, direction, packet),
        }
    }

    /// A burst of `count` data packets enters a link, represented by its first ([`Packet::clear_last_flags`]).
    pub(super) fn offer_burst(
        &mut self,
        link: usize,
        direction: Direction,
        burst: &InFlight,
        count: u32,
    ) {
        let index = link * 2 + direction.index();
        if let Treatment::Queued = self.network.treatment(index) {
            return self.enqueue(index, burst, count);
        }
        let mut burst = *burst;
        for others in (0..count).rev() {
            let packet = burst.split_first(others);
            self.offer(link, direction, &packet);
        }
    }

    #[inline(never)] // once a burst
    fn enqueue(&mut self, index: usize, burst: &InFlight, count: u32) {
        if !self.network.enqueue(&mut self.agenda, index, burst, count) {
            return self.enqueue_idle(index, *burst, count);
        }
        self.lose_dropped();
    }

    /// Packets reach an idle queue: each passes at once, until one has to wait.
    #[inline(never)]
    fn enqueue_idle(&mut self, index: usize, mut burst: InFlight, count: u32) {
        for others in (0..count).rev() {
            if !self.network.is_idle(index) {
                return self.enqueue(index, &burst, others + 1);
            }
            let packet = burst.split_first(others);
            if !self.network.enqueue_one(self.now_ns(), index, &packet) {
                self.lose_dropped();
                continue;
            }
            let due_ns = self.pass_next(index);
            self.network.set_timer(&mut self.agenda, index, due_ns);
        }
    }

    /// A queue lets the next packet pass. Returns when it has to be called next.
    #[inline(always)] // into its two callers
    fn pass_next(&mut self, index: usize) -> u64 {
        let now_ns = self.now_ns();
        match self.network.depart(now_ns, index) {
            Departure::Nothing { due_ns } => {
                self.lose_dropped();
                due_ns
            }
            Departure::Packet { packet, at_ns } => self.forward_departed(index, at_ns, &packet),
            Departure::Data {
                flow_id,
                header,
                data,
                at_ns,
                due_ns,
            } => {
                let (link, direction) = (index / 2, Direction::of_index(index));
                let reaches_host = at_ns <= now_ns && due_ns > now_ns;
                if reaches_host && self.hosts.is_open_behind(flow_id, direction, link) {
                    self.lose_dropped();
                    self.deliver_data(flow_id, &data);
                    return due_ns;
                }
                self.forward_data(index, at_ns, flow_id, header, &data)
            }
        }
    }

    /// Data that do not reach their host at once become a packet again.
    #[inline(never)] // else every packet is written twice
    fn forward_data(
        &mut self,
        index: usize,
        at_ns: u64,
        flow_id: u32,
        header: IpHeader,
        data: &Data,
    ) -> u64 {
        let packet = InFlight {
            flow_id,
            header,
            body: Body::Data(*data),
        };
        self.forward_departed(index, at_ns, &packet)
    }

    /// Moves on a packet that left a queue, and others that may leave now too. Returns when the queue has
    /// to be called next.
    #[inline(never)]
    fn forward_departed(&mut self, index: usize, at_ns: u64, packet: &InFlight) -> u64 {
        let now_ns = self.now_ns();
        let (link, direction) = (index / 2, Direction::of_index(index));
        let due_ns = self.network.due_ns(index);
        if due_ns <= now_ns {
            let batch = self.network.depart_all(now_ns, index);
            self.lose_dropped();
            self.forward(link, at_ns, direction, packet);
            self.forward_batch(&batch);
            return NEVER_NS; // its timer is set
        }
        self.lose_dropped();
        self.forward(link, at_ns, direction, packet);
        due_ns
    }

    #[inline(never)]
    fn offer_general(&mut self, link: usize, direction: Direction, packet: &InFlight) {
        let agenda = &mut self.agenda;
        if let Some(batch) = self.network.offer(agenda, link, direction, packet) {
            self.forward_batch(&batch);
        }
    }

    /// Counts what a call of a link dropped and duplicated, and moves on what it passed.
    fn forward_batch(&mut self, batch: &Batch) {
        while let Some(packet) = self.network.pop_duplicated() {
            self.record.count_sent(&packet.body);
            self.hosts.packet_added(&packet);
            if let Body::Opaque { payload, .. } = packet.body {
                self.endpoints.payloads.copied(payload);
            }
        }
        self.lose_dropped();
        for position in self.network.exits(batch) {
            let exit = self.network.exit(position);
            self.forward(batch.link, exit.at_ns, exit.direction, &exit.packet);
        }
        self.network.end_batch(&mut self.agenda, batch);
    }

    /// Counts packets that a link dropped.
    #[inline(always)] // mostly there are none
    fn lose_dropped(&mut self) {
        if self.network.has_dropped() {
            self.lose_all();
        }
    }

    #[inline(never)]
    fn lose_all(&mut self) {
        while let Some(packet) = self.network.pop_dropped() {
            self.record.count_lost(&packet.body);
            self.packet_gone(&packet);
        }
    }

    /// A packet has left a link; at `at_ns` it reaches the next link, or the hosts' side of the row.
    #[inline(always)] // as `leave_row`, where most packets go
    fn forward(&mut self, link: usize, at_ns: u64, direction: Direction, packet: &InFlight) {
        match self.network.next_link(packet.flow_id, link, direction) {
            None => self.leave_row(at_ns, direction, packet),
            Some(next) => self.forward_to_link(link, next, at_ns, direction, packet),
        }
    }

    #[inline(never)]
    fn forward_to_link(
        &mut self,
        link: usize,
        next: usize,
        at_ns: u64,
        direction: Direction,
        packet: &InFlight,
    ) {
        let index = link * 2 + direction.index();
        if self
            .network
            .carries_now(&mut self.agenda, index, at_ns, packet)
        {
            self.offer(next, direction, packet);
        }
    }
}
