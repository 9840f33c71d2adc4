//! Pages and streams of datagrams over the simulated network: the workloads' state machines say what
//! is opened and written, here it is done. Must never decide when, or how much.
//!
//! A connection of a page is two of TCP's, one each way, which share a handshake and look like one
//! to the network: what either acknowledges costs a packet of its own.

use std::collections::VecDeque;

use fullpipe_net::{derive_seed, purpose, Direction};
use fullpipe_plan::{
    CcChoice, DatagramRow, EcnKind, Flow, FlowDirection, Newcomer, Page, Plan, Route,
};
use fullpipe_tcp::Established;
use fullpipe_workload::{DatagramSource, PageLoader, Step};

use crate::connection::{connection, Seeds};
use crate::ends::lines;
use crate::events::Event;
use crate::packet::{Body, Label};
use crate::run::{BadPlan, Simulation};

/// A server hands TCP more when less than this waits (as with TCP_NOTSENT_LOWAT).
const UNSENT_BYTES: u64 = 131_072;
/// Payload of a query, and of its answer, for a name of usual length (RFC 1035).
const QUERY_BYTES: u32 = 50;
const ANSWER_BYTES: u32 = 100;

/// What a connection is to a page.
#[derive(Clone, Copy)]
pub(crate) struct PageEnd {
    page: u32,
    number: u32,
    /// The connection of the other direction.
    other: u32,
    carries_requests: bool,
    /// Payload that its receiver has read.
    read_bytes: u64,
    /// The application has closed it.
    pub(crate) is_over: bool,
}

/// All pages and streams of a plan.
pub(crate) struct Applications {
    pages: Vec<PageRun>,
    streams: Vec<DatagramSource>,
    /// What workloads want done, each with its page; done when the event that set it off is over.
    steps: VecDeque<(u32, Step)>,
    /// Something happened that workloads were told of.
    pub(crate) were_told: bool,
    scratch: Vec<Step>,
    connections: u32,
}

struct PageRun {
    loader: PageLoader,
    /// Requests and answers of each connection that is open.
    open: Vec<Option<[u32; 2]>>,
    armed_ns: Option<u64>,
    /// One flow each way: what its connections are like.
    members: [Flow; 2],
}

impl Applications {
    pub(crate) fn new(plan: &Plan) -> Result<Self, BadPlan> {
        let mut pages = Vec::with_capacity(plan.pages.len());
        for (index, page) in (0..).zip(&plan.pages) {
            let members =
                [FlowDirection::Up, FlowDirection::Down].map(|direction| member(page, direction));
            // What would go wrong with every connection goes wrong now.
            connection(plan, &members[0], &Seeds::default(), true)
                .map_err(|BadPlan(text)| BadPlan(format!("pages.{index}: {text}")))?;
            pages.push(PageRun {
                loader: PageLoader::new(page, index),
                open: vec![None; page.connections as usize],
                armed_ns: None,
                members,
            });
        }
        let streams = (0..)
            .zip(&plan.datagrams)
            .map(|(index, stream)| {
                DatagramSource::new(stream, derive_seed(plan.seed, purpose::DATAGRAMS, index))
            })
            .collect();
        Ok(Self {
            pages,
            streams,
            steps: VecDeque::new(),
            were_told: false,
            scratch: Vec::new(),
            connections: 0,
        })
    }

    /// Routes of their owners, which stand behind the probes': pages, then streams.
    pub(crate) fn routes(plan: &Plan) -> impl Iterator<Item = Route> + '_ {
        let pages = plan.pages.iter().map(|page| page.route);
        pages.chain(plan.datagrams.iter().map(|stream| stream.route))
    }

    /// Hosts and DSCPs of these owners.
    pub(crate) fn labels(plan: &Plan) -> impl Iterator<Item = Label> + '_ {
        let pages = plan.pages.iter().map(|page| (page.hosts, page.dscp));
        let streams = plan.datagrams.iter().map(|one| (one.hosts, one.dscp));
        pages
            .chain(streams)
            .map(|(hosts, dscp)| Label::new(hosts, dscp))
    }

    fn tell(&mut self, page: u32, tell: impl FnOnce(&mut PageLoader, &mut Vec<Step>)) {
        self.were_told = true;
        tell(&mut self.pages[page as usize].loader, &mut self.scratch);
        let steps = self.scratch.drain(..).map(|step| (page, step));
        self.steps.extend(steps);
    }
}

fn member(page: &Page, direction: FlowDirection) -> Flow {
    Flow {
        name: page.name.clone(),
        cc: CcChoice::clone(&page.cc),
        start_ns: 0,
        stop_ns: None,
        amount_bytes: None,
        app_rate_bps: None,
        pattern: None,
        direction,
        route: page.route,
        hosts: page.hosts,
        dscp: page.dscp,
        forward_delay_ns: None,
        reverse_delay_ns: None,
        jitter: None,
        receive_window_bytes: None,
        ecn: page.ecn,
        ecn_kind: EcnKind::Classic,
    }
}

impl Simulation<'_> {
    /// Puts first times on the agenda, and tables where rows will be.
    pub(crate) fn begin_applications(&mut self) {
        if !self.plan.pages.is_empty() {
            self.tables.page_loads = Some(Vec::new());
            self.tables.page_objects = Some(Vec::new());
        }
        if !self.plan.datagrams.is_empty() {
            self.tables.datagrams = Some(Vec::new());
        }
        self.arm_pages();
        for (index, stream) in (0..).zip(&self.applications.streams) {
            if let Some(at_ns) = stream.due_ns() {
                self.agenda.schedule(at_ns, Event::Datagram(index));
            }
        }
    }

    fn arm_pages(&mut self) {
        for (index, page) in (0..).zip(&mut self.applications.pages) {
            let Some(at_ns) = page.loader.due_ns() else {
                continue;
            };
            if page.armed_ns.is_none_or(|armed_ns| at_ns < armed_ns) {
                page.armed_ns = Some(at_ns);
                self.agenda.schedule(at_ns, Event::Page(index));
            }
        }
    }

    /// The time for which a page asked.
    pub(crate) fn page_timer(&mut self, index: u32) {
        let page = &mut self.applications.pages[index as usize];
        if page.armed_ns != Some(self.now_ns) {
            return; // an earlier time took this one's place
        }
        page.armed_ns = None;
        let now_ns = self.now_ns;
        let tell = |loader: &mut PageLoader, steps: &mut _| loader.on_timer(now_ns, steps);
        self.applications.tell(index, tell);
        self.do_steps();
    }

    /// Does what the workloads want done. Called between events, so that no packet is in hand.
    pub(crate) fn do_steps(&mut self) {
        while let Some((page, step)) = self.applications.steps.pop_front() {
            match step {
                Step::Lookup(number) => self.look_up(page, number),
                Step::Open(number) => self.open(page, number),
                Step::Request(number, bytes) => {
                    if let Some([requests, _]) = self.open_pair(page, number) {
                        let sender = &mut self.connections[requests].sender;
                        sender.write_bytes(u64::from(bytes));
                        self.transmit(requests);
                    }
                }
                Step::Respond(number) => {
                    if let Some([_, answers]) = self.open_pair(page, number) {
                        self.serve(answers);
                    }
                }
                Step::Close(number) => self.close(page, number),
            }
        }
        self.applications.were_told = false;
        self.keep_loads(false);
        self.arm_pages();
    }

    fn open_pair(&self, page: u32, number: u32) -> Option<[usize; 2]> {
        let pair = self.applications.pages[page as usize].open[number as usize];
        pair.map(|pair| pair.map(|flow| flow as usize))
    }

    fn page_owner(&self, page: u32) -> usize {
        self.plan.flows.len() + self.plan.probes.len() + page as usize
    }

    fn look_up(&mut self, page: u32, number: u32) {
        let owner = self.page_owner(page);
        let query = Body::Name {
            page,
            number,
            bytes: QUERY_BYTES,
        };
        let query = self.packet_of(owner, Direction::Forward, query);
        self.enter_row(Direction::Forward, &query);
    }

    /// A query or its answer arrives.
    pub(crate) fn on_name(&mut self, owner: usize, direction: Direction, page: u32, number: u32) {
        if direction == Direction::Forward {
            let answer = Body::Name {
                page,
                number,
                bytes: ANSWER_BYTES,
            };
            let answer = self.packet_of(owner, Direction::Reverse, answer);
            self.enter_row(Direction::Reverse, &answer);
        } else {
            self.applications
                .tell(page, |loader, steps| loader.on_answer(number, steps));
        }
    }

    fn open(&mut self, page: u32, number: u32) {
        let first = self.connections.len() as u32;
        let new = Newcomer::Page(self.page_owner(page));
        for side in 0..2 {
            let owner = self.owner(self.connections.len());
            let member = &mut self.applications.pages[page as usize].members[side];
            member.start_ns = self.now_ns;
            let serial = self.applications.connections;
            self.applications.connections += 1;
            let seeds = Seeds {
                cc: derive_seed(self.plan.seed, purpose::PAGE_CC, serial),
                host: derive_seed(self.plan.seed, purpose::PAGE_HOST, serial),
            };
            let Ok(mut made) = connection(self.plan, member, &seeds, true) else {
                debug_assert!(false, "one like it was made at the start");
                return;
            };
            made.page = Some(PageEnd {
                page,
                number,
                other: first + 1 - side as u32,
                carries_requests: side == 0,
                read_bytes: 0,
                is_over: false,
            });
            let label = Label::new(member.hosts, member.dscp);
            self.lines
                .extend(lines(self.plan, Some(member), owner as u32));
            self.network.take_in(self.plan, owner, member.route, new);
            self.labels
                .push(if side == 0 { label } else { label.second() });
            self.connections.push(made);
        }
        self.applications.pages[page as usize].open[number as usize] = Some([first, first + 1]);
        self.start(first as usize);
    }

    /// The near end of a page's connection is open.
    pub(crate) fn page_opened(&mut self, flow: usize) {
        if let Some(end) = self.connections[flow].page {
            let now_ns = self.now_ns;
            self.applications.tell(end.page, |loader, steps| {
                loader.on_open(end.number, now_ns, steps)
            });
        }
    }

    /// The far end of a page's connection is open: it can answer.
    pub(crate) fn page_accepted(&mut self, flow: usize, opened: &Established) {
        let Some(end) = self.connections[flow].page else {
            return;
        };
        let answers = &mut self.connections[end.other as usize];
        if !answers.sender.is_established() {
            let window_bytes = answers.receiver.window_bytes();
            let opened = Established {
                window_bytes,
                ..*opened
            };
            answers.sender.establish(self.now_ns, &opened);
            answers.started = true;
        }
    }

    /// Data of a page's connection arrived: its reader takes what is in order.
    pub(crate) fn page_data(&mut self, flow: usize) {
        let Some(mut end) = self.connections[flow].page else {
            return;
        };
        let connection = &self.connections[flow];
        let there = connection
            .sender
            .bytes_before(connection.receiver.next_number());
        let new = there.saturating_sub(end.read_bytes);
        if new == 0 || end.is_over {
            return;
        }
        if end.carries_requests {
            // The last packet of the handshake was lost: the data open the connection.
            let opened = Established {
                rtt_ns: connection.base_rtt_ns,
                window_bytes: 0,
                ecn: self.plan.pages[end.page as usize].ecn,
                peer_sent_ns: 0,
                retransmissions: 0,
                timeouts: 0,
                has_window_of_one: false,
            };
            self.page_accepted(flow, &opened);
        }
        end.read_bytes = there;
        self.connections[flow].page = Some(end);
        let now_ns = self.now_ns;
        self.applications.tell(end.page, |loader, steps| {
            if end.carries_requests {
                loader.on_request_bytes(end.number, new, now_ns, steps);
            } else {
                loader.on_response_bytes(end.number, new, now_ns, steps);
            }
        });
    }

    /// A server's connection has room: it writes what it has.
    pub(crate) fn serve(&mut self, flow: usize) {
        let Some(end) = self.connections[flow].page else {
            return;
        };
        if end.carries_requests || end.is_over {
            return;
        }
        let mut has_written = false;
        while self.connections[flow].sender.unsent_bytes() < UNSENT_BYTES {
            let loader = &mut self.applications.pages[end.page as usize].loader;
            let bytes = loader.next_write(end.number);
            if bytes == 0 {
                break;
            }
            self.connections[flow].sender.write_bytes(bytes);
            has_written = true;
        }
        if has_written {
            self.transmit(flow);
        }
    }

    fn close(&mut self, page: u32, number: u32) {
        let pair = self.open_pair(page, number);
        self.applications.pages[page as usize].open[number as usize] = None;
        for flow in pair.into_iter().flatten() {
            if let Some(end) = &mut self.connections[flow].page {
                end.is_over = true;
            }
            if self.connections[flow].sender.is_established() {
                self.stop(flow);
            }
        }
    }

    /// A datagram of a stream leaves.
    pub(crate) fn datagram(&mut self, index: u32) {
        let stream = &self.plan.datagrams[index as usize];
        let direction = match stream.direction {
            FlowDirection::Up => Direction::Forward,
            FlowDirection::Down => Direction::Reverse,
        };
        let before = self.plan.flows.len() + self.plan.probes.len() + self.plan.pages.len();
        let owner = before + index as usize;
        while let Some(datagram) = self.applications.streams[index as usize].take(self.now_ns) {
            let rows = self.tables.datagrams.get_or_insert_with(Vec::new);
            let row = rows.len() as u32;
            rows.push(DatagramRow {
                t_us: self.now_ns / 1000,
                stream_id: u64::from(index),
                seq: datagram.seq,
                frame: datagram.frame,
                bytes: u64::from(datagram.bytes),
                delay_us: None,
            });
            let body = Body::Datagram {
                row,
                bytes: datagram.bytes,
            };
            let mut packet = self.packet_of(owner, direction, body);
            if self.egress.passes(direction, &mut packet) {
                self.enter_row(direction, &packet);
            }
        }
        if let Some(at_ns) = self.applications.streams[index as usize].due_ns() {
            self.agenda.schedule(at_ns, Event::Datagram(index));
        }
    }

    /// A datagram arrives.
    pub(crate) fn on_datagram(&mut self, row: u32) {
        let t_us = self.now_ns / 1000;
        let rows = self.tables.datagrams.as_mut();
        if let Some(row) = rows.and_then(|rows| rows.get_mut(row as usize)) {
            row.delay_us = Some(t_us - row.t_us);
        }
    }

    /// Rows of loads that have ended; at the end of the run, of all.
    pub(crate) fn keep_loads(&mut self, is_end: bool) {
        for page in &mut self.applications.pages {
            let (loads, objects) = page.loader.take_rows(is_end);
            self.tables
                .page_loads
                .get_or_insert_with(Vec::new)
                .extend(loads);
            self.tables
                .page_objects
                .get_or_insert_with(Vec::new)
                .extend(objects);
        }
    }
}
