//! Does what workloads want done: opens connections for flows of traffic groups and for pages, reads and
//! writes for them, and sends datagrams. Must never decide when, or how much.

use fullpipe_net::{derive_seed, purpose, Direction};
use fullpipe_plan::{ConnectionOrigin, FlowDirection};
use fullpipe_tcp::Established;
use fullpipe_workload::Step;

use super::Simulation;
use crate::agenda::Event;
use crate::hosts::{connection, Application, Seeds};
use crate::packet::{Body, InFlight};
use crate::workloads::{Arrived, PageConnection, Progress, QUERY_BYTES, REPLY_BYTES, UNSENT_BYTES};

impl Simulation<'_> {
    /// A flow of a traffic group arrives.
    pub(super) fn flow_arrives(&mut self, group: usize) {
        let Some(Arrived {
            flow,
            pooled,
            writes_chunks,
            is_sampled,
            serial,
        }) = self.workloads.pool.arrive(&mut self.agenda, group)
        else {
            return;
        };
        let seeds = Seeds {
            cc: derive_seed(self.plan.seed, purpose::TRAFFIC_CC, serial),
            host: derive_seed(self.plan.seed, purpose::TRAFFIC_HOST, serial),
        };
        let Ok(mut made) = connection(self.plan, flow, &seeds, writes_chunks) else {
            debug_assert!(false, "one like it was made at the start");
            return;
        };
        made.application = Application::Pool(Some(Box::new(pooled)));
        let (flow, route) = (flow.clone(), flow.route);
        let reused = self.workloads.pool.reuse();
        let at = reused.unwrap_or(self.hosts.connections.len());
        let flow_id = match reused {
            Some(at) => self.hosts.replace(self.plan, &flow, at, made),
            None => self.hosts.add(self.plan, &flow, made),
        };
        let origin = ConnectionOrigin::Traffic(group);
        let ports = self.hosts.ports(flow_id);
        self.network
            .set_route(self.plan, flow_id, ports, route, origin);
        if is_sampled {
            self.workloads.pool.sample(at);
        }
        self.start(at);
    }

    /// Data of a flow of a traffic group were acknowledged.
    pub(super) fn pooled_flow_acked(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let acked = &mut self.hosts.connections[connection];
        let Application::Pool(Some(flow)) = &mut acked.application else {
            return;
        };
        let progress = self.workloads.pool.on_acked(now_ns, flow, &acked.sender);
        match progress {
            Progress::Continues => {}
            Progress::WritesAt(at_ns) => {
                self.agenda.schedule(at_ns, Event::Write(connection as u32));
            }
            Progress::Ends => self.end_pooled_flow(connection, Some(now_ns)),
        }
    }

    /// A flow of a traffic group ends; its connection may still have to send its FIN and last ACKs.
    pub(super) fn end_pooled_flow(&mut self, connection: usize, completion_ns: Option<u64>) {
        let ended = &mut self.hosts.connections[connection];
        let Application::Pool(Some(flow)) = &mut ended.application else {
            return;
        };
        flow.end(completion_ns.is_some());
        let (start_ns, base_rtt_ns) = (ended.start_ns, ended.base_rtt_ns);
        let row = flow.row(start_ns, base_rtt_ns, completion_ns, &ended.sender);
        self.record.traffic_row(row);
        if self.workloads.pool.end_samples(connection) {
            self.sample_pooled_flow(connection);
        }
    }

    /// Samples the flows of traffic groups for which the plan wants that.
    pub(super) fn sample_pool(&mut self) {
        for position in 0..self.workloads.pool.sampled().len() {
            let connection = self.workloads.pool.sampled()[position];
            self.sample_pooled_flow(connection as usize);
        }
    }

    fn sample_pooled_flow(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let sampled = &self.hosts.connections[connection];
        if let Some(flow) = sampled.pooled() {
            let (sender, receiver) = (&sampled.sender, &sampled.receiver);
            self.record
                .traffic_sample(now_ns, flow.id(), sender, receiver);
        }
    }

    /// Rows of flows of traffic groups that have not ended.
    pub(super) fn record_unfinished_flows(&mut self) {
        for unfinished in &self.hosts.connections[self.plan.flows.len()..] {
            if let Some(flow) = unfinished.pooled().filter(|flow| !flow.has_ended()) {
                let (start_ns, base_rtt_ns) = (unfinished.start_ns, unfinished.base_rtt_ns);
                let row = flow.row(start_ns, base_rtt_ns, None, &unfinished.sender);
                self.record.traffic_row(row);
            }
        }
    }

    /// A packet has left the network.
    pub(super) fn packet_gone(&mut self, packet: &InFlight) {
        if let Body::Opaque { payload, .. } = packet.body {
            self.endpoints.payloads.release(payload);
        } else if packet.body.is_of_connection() {
            self.packet_left(self.hosts.ids.connection(packet.flow_id));
        }
    }

    /// A packet of a connection has left the network: the connection may be over.
    #[inline]
    pub(super) fn packet_left(&mut self, connection: usize) {
        let left = &mut self.hosts.connections[connection];
        left.packets_in_flight -= 1;
        if matches!(left.application, Application::Pool(Some(_))) {
            self.release_if_over(connection);
        }
    }

    fn release_if_over(&mut self, connection: usize) {
        let over = &mut self.hosts.connections[connection];
        let is_closed = over.sender.is_closed();
        let is_over = over.pooled().is_some_and(|flow| flow.is_over(is_closed));
        if is_over && over.has_left() {
            over.application = Application::Pool(None);
            over.sender_alarm.forget();
            over.receiver_alarm.forget();
            self.workloads.pool.release(connection);
        }
    }

    /// Does what the loaders of pages want done.
    pub(super) fn do_page_steps(&mut self) {
        while let Some((page, step)) = self.workloads.pages.next_step() {
            match step {
                Step::Lookup(number) => self.send_dns(page, number, Direction::Forward),
                Step::Open(number) => self.open_page_connection(page, number),
                Step::Request(number, bytes) => {
                    if let Some([requests, _]) = self.workloads.pages.open_pair(page, number) {
                        let sender = &mut self.hosts.connections[requests].sender;
                        sender.write_bytes(u64::from(bytes));
                        self.transmit(requests);
                    }
                }
                Step::Respond(number) => {
                    if let Some([_, responses]) = self.workloads.pages.open_pair(page, number) {
                        self.serve_page(responses);
                    }
                }
                Step::Close(number) => self.close_page_connection(page, number),
            }
        }
        self.record_pages(false);
        self.workloads.pages.finish_steps(&mut self.agenda);
    }

    /// Rows of loads that have ended; at the end of the run, of all.
    pub(super) fn record_pages(&mut self, is_end: bool) {
        for rows in self.workloads.pages.take_rows(is_end) {
            self.record.page_rows(rows);
        }
    }

    /// Sends a DNS query, or its reply.
    fn send_dns(&mut self, page: u32, number: u32, direction: Direction) {
        let bytes = match direction {
            Direction::Forward => QUERY_BYTES,
            Direction::Reverse => REPLY_BYTES,
        };
        let body = Body::Dns {
            page,
            number,
            bytes,
        };
        let flow_id = self.hosts.ids.of_page(page);
        self.send_unlost(flow_id, direction, body);
    }

    /// A DNS query or its reply arrives.
    pub(super) fn deliver_dns(&mut self, direction: Direction, page: u32, number: u32) {
        match direction {
            Direction::Forward => self.send_dns(page, number, Direction::Reverse),
            Direction::Reverse => self
                .workloads
                .pages
                .notify(page, |loader, steps| loader.on_answer(number, steps)),
        }
    }

    fn open_page_connection(&mut self, page: u32, number: u32) {
        let now_ns = self.now_ns();
        let first = self.hosts.connections.len() as u32;
        let origin = ConnectionOrigin::Page(self.hosts.ids.of_page(page));
        for side in 0..2 {
            let (flow, serial) = self.workloads.pages.new_flow(page, side, now_ns);
            let seeds = Seeds {
                cc: derive_seed(self.plan.seed, purpose::PAGE_CC, serial),
                host: derive_seed(self.plan.seed, purpose::PAGE_HOST, serial),
            };
            let Ok(mut made) = connection(self.plan, flow, &seeds, true) else {
                debug_assert!(false, "one like it was made at the start");
                return;
            };
            made.application = Application::Page(PageConnection {
                page,
                number,
                other: first + 1 - side as u32,
                carries_requests: side == 0,
                read_bytes: 0,
                is_closed: false,
            });
            let flow_id = self.hosts.add(self.plan, flow, made);
            let ports = self.hosts.ports(flow_id);
            self.network
                .set_route(self.plan, flow_id, ports, flow.route, origin);
        }
        self.hosts.share_ports();
        let pair = Some([first, first + 1]);
        self.workloads.pages.set_open_pair(page, number, pair);
        self.start(first as usize);
    }

    /// The near end of a page's connection is established.
    pub(super) fn page_opened(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        if let Some(opened) = self.hosts.connections[connection].page() {
            self.workloads.pages.notify(opened.page, |loader, steps| {
                loader.on_open(opened.number, now_ns, steps)
            });
        }
    }

    /// The far end of a page's connection is established: it can respond.
    pub(super) fn page_accepted(&mut self, connection: usize, established: &Established) {
        let now_ns = self.now_ns();
        let Some(accepted) = self.hosts.connections[connection].page() else {
            return;
        };
        let responses = &mut self.hosts.connections[accepted.other as usize];
        if !responses.sender.is_established() {
            let established = Established {
                window_bytes: responses.receiver.window_bytes(),
                ..*established
            };
            responses.sender.establish(now_ns, &established);
            responses.is_started = true;
        }
    }

    /// Data of a page's connection arrived: the application reads what is in order.
    pub(super) fn read_page_data(&mut self, connection: usize) {
        let now_ns = self.now_ns();
        let reading = &self.hosts.connections[connection];
        let Some(mut state) = reading.page() else {
            return;
        };
        let next = reading.receiver.next_number();
        let in_order = reading.sender.bytes_before(next);
        let new_bytes = in_order.saturating_sub(state.read_bytes);
        if new_bytes == 0 || state.is_closed {
            return;
        }
        if state.carries_requests {
            // If the last packet of the handshake was lost, the data establish the connection.
            let established = Established {
                is_active: false,
                rtt_ns: reading.base_rtt_ns,
                window_bytes: 0,
                ecn: self.plan.pages[state.page as usize].ecn,
                peer_sent_ns: 0,
                retransmissions: 0,
                timeouts: 0,
                has_window_of_one: false,
            };
            self.page_accepted(connection, &established);
        }
        state.read_bytes = in_order;
        self.hosts.connections[connection].application = Application::Page(state);
        self.workloads.pages.notify(state.page, |loader, steps| {
            if state.carries_requests {
                loader.on_request_bytes(state.number, new_bytes, now_ns, steps);
            } else {
                loader.on_response_bytes(state.number, new_bytes, now_ns, steps);
            }
        });
    }

    /// The server of a page writes what it has until its socket takes no more: what TCP sends at once makes
    /// room for more.
    pub(super) fn serve_page(&mut self, connection: usize) {
        while self.fill_page_socket(connection) {
            self.transmit(connection);
        }
    }

    /// A server writes while less than [`UNSENT_BYTES`] are unsent. False if it wrote nothing.
    fn fill_page_socket(&mut self, connection: usize) -> bool {
        let serving = &mut self.hosts.connections[connection];
        let Some(state) = serving.page() else {
            return false;
        };
        if state.carries_requests || state.is_closed {
            return false;
        }
        let mut has_written = false;
        while serving.sender.unsent_bytes() < UNSENT_BYTES {
            let bytes = self.workloads.pages.next_write(state.page, state.number);
            if bytes == 0 {
                break;
            }
            serving.sender.write_bytes(bytes);
            has_written = true;
        }
        has_written
    }

    /// The client closes a connection. It is one to the network, so only the direction of requests sends FINs.
    fn close_page_connection(&mut self, page: u32, number: u32) {
        let pair = self.workloads.pages.open_pair(page, number);
        self.workloads.pages.set_open_pair(page, number, None);
        for connection in pair.into_iter().flatten() {
            let closing = &mut self.hosts.connections[connection];
            let Application::Page(state) = &mut closing.application else {
                continue;
            };
            state.is_closed = true;
            if state.carries_requests && closing.sender.is_established() {
                self.stop(connection);
            }
        }
    }

    /// A stream sends the datagrams that are due.
    pub(super) fn send_datagrams(&mut self, stream: u32) {
        let now_ns = self.now_ns();
        let direction = match self.plan.datagrams[stream as usize].direction {
            FlowDirection::Up => Direction::Forward,
            FlowDirection::Down => Direction::Reverse,
        };
        let flow_id = self.hosts.ids.of_stream(stream);
        while let Some(datagram) = self.workloads.streams[stream as usize].take(now_ns) {
            let body = Body::Datagram {
                row: self.record.datagram_sent(now_ns, stream, &datagram),
                bytes: datagram.bytes,
            };
            let mut packet = self.hosts.packet(flow_id, direction, body);
            if self.hosts.capture.is_on() {
                self.capture_exchange(direction, &packet);
            }
            if self.hosts.loss.passes(direction, &mut packet) {
                self.enter_row(direction, &packet);
            }
        }
        if let Some(at_ns) = self.workloads.streams[stream as usize].due_ns() {
            self.agenda.schedule(at_ns, Event::Datagram(stream));
        }
    }
}
