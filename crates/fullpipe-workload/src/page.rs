//! A page as a browser, curl or http-getter loads it, and the server that answers: what is looked up,
//! opened, asked for and written, and when all has come. Both ends are one state machine, for a
//! request on its way says nothing but its place in the order. Must never know what carries it.

use std::collections::VecDeque;

use fullpipe_plan::{Lookup, ObjectRow, Page, PageRow, Protocol};

/// A frame of HTTP/2 (RFC 9113 section 4.2, SETTINGS_MAX_FRAME_SIZE's initial value).
const FRAME_BYTES: u64 = 16_384;
/// A resolver asks again after this (resolv.conf(5), RES_TIMEOUT).
const LOOKUP_TIMEOUT_NS: u64 = 5_000_000_000;

/// What an engine must do. A connection is a number below `Page::connections`; it is another one
/// each time it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a query to the server and call [`PageLoader::on_answer`] when it is answered.
    Lookup(u32),
    /// Connect from the near host.
    Open(u32),
    /// The near end writes so much.
    Request(u32, u32),
    /// The far end has something to write: [`PageLoader::next_write`] says how much.
    Respond(u32),
    /// Both ends close; nothing of this connection counts any more.
    Close(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// It waits for a name; the query of its own was sent then.
    Looking(Option<u64>),
    Opening,
    Open,
}

#[derive(Debug)]
struct Connection {
    state: State,
    /// What it asks for when it is open (HTTP/1.1: or is receiving).
    current: Option<usize>,
    /// Objects asked for, whose requests have not arrived whole.
    asked: VecDeque<usize>,
    request_bytes: u64,
    /// What the server thinks about, and until when.
    thinking: VecDeque<(u64, usize)>,
    /// What it has not written, and how much of it.
    sending: VecDeque<(usize, u64)>,
    /// What it has written and the client has not read.
    written: VecDeque<(usize, u64)>,
}

impl Connection {
    fn new() -> Self {
        Self {
            state: State::Closed,
            current: None,
            asked: VecDeque::new(),
            request_bytes: 0,
            thinking: VecDeque::new(),
            sending: VecDeque::new(),
            written: VecDeque::new(),
        }
    }
}

/// One page of a plan, loaded again and again.
#[derive(Debug)]
pub struct PageLoader {
    page: Page,
    page_id: u64,
    connections: Vec<Connection>,
    is_name_known: bool,
    /// Objects of this load that nobody has asked for, of the levels that may be.
    queue: VecDeque<usize>,
    /// The first object of a level that may not be asked for yet.
    next_level_from: usize,
    /// Objects of the levels that may be asked for, which have not come.
    left: usize,
    objects: Vec<ObjectRow>,
    left_bytes: Vec<u64>,
    load: u32,
    load_start_ns: u64,
    /// When the next load begins; `None`: one is under way, or no more will.
    next_ns: Option<u64>,
    pages: Vec<PageRow>,
    /// Objects of loads that have ended.
    finished: Vec<ObjectRow>,
}

impl PageLoader {
    /// The page at this position of the plan.
    pub fn new(page: &Page, page_id: u32) -> Self {
        let count = match page.protocol {
            Protocol::Http1 => page.connections.max(1),
            Protocol::Http2 => 1,
        };
        Self {
            connections: (0..count).map(|_| Connection::new()).collect(),
            page_id: u64::from(page_id),
            is_name_known: false,
            queue: VecDeque::new(),
            next_level_from: 0,
            left: 0,
            objects: Vec::new(),
            left_bytes: Vec::new(),
            load: 0,
            load_start_ns: 0,
            next_ns: Some(page.start_ns),
            pages: Vec::new(),
            finished: Vec::new(),
            page: page.clone(),
        }
    }

    /// When [`Self::on_timer`] wants to be called.
    pub fn due_ns(&self) -> Option<u64> {
        let of_connections = self.connections.iter().flat_map(|connection| {
            let looking_ns = match connection.state {
                State::Looking(Some(sent_ns)) => Some(sent_ns + LOOKUP_TIMEOUT_NS),
                _ => None,
            };
            let thinking_ns = connection.thinking.front().map(|&(until_ns, _)| until_ns);
            [looking_ns, thinking_ns]
        });
        of_connections.chain([self.next_ns]).flatten().min()
    }

    /// Does what is due; too early a call does nothing.
    pub fn on_timer(&mut self, now_ns: u64, steps: &mut Vec<Step>) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if let State::Looking(Some(sent_ns)) = connection.state {
                if sent_ns + LOOKUP_TIMEOUT_NS <= now_ns {
                    connection.state = State::Looking(Some(now_ns));
                    steps.push(Step::Lookup(index as u32));
                }
            }
            self.answer(index, now_ns, steps);
        }
        if self.next_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.begin(now_ns, steps);
        }
    }

    /// A query was answered.
    pub fn on_answer(&mut self, connection: u32, steps: &mut Vec<Step>) {
        let is_once = self.page.lookup == Lookup::Once;
        self.is_name_known |= is_once;
        for (index, other) in self.connections.iter_mut().enumerate() {
            let is_meant = is_once || index == connection as usize;
            if is_meant && matches!(other.state, State::Looking(_)) {
                other.state = State::Opening;
                steps.push(Step::Open(index as u32));
            }
        }
    }

    /// The near end is connected.
    pub fn on_open(&mut self, connection: u32, now_ns: u64, steps: &mut Vec<Step>) {
        let Some(opened) = self.connections.get_mut(connection as usize) else {
            return;
        };
        if opened.state != State::Opening {
            return;
        }
        opened.state = State::Open;
        if let Some(object) = opened.current {
            self.ask(connection as usize, object, steps);
        }
        self.dispatch(now_ns, steps);
    }

    /// The far end received so much more.
    pub fn on_request_bytes(
        &mut self,
        connection: u32,
        bytes: u64,
        now_ns: u64,
        steps: &mut Vec<Step>,
    ) {
        let index = connection as usize;
        let Some(asked) = self.connections.get_mut(index) else {
            return;
        };
        asked.request_bytes += bytes;
        let whole = u64::from(self.page.request_bytes.max(1));
        while asked.request_bytes >= whole {
            let Some(object) = asked.asked.pop_front() else {
                break;
            };
            asked.request_bytes -= whole;
            asked
                .thinking
                .push_back((now_ns + self.page.think_ns, object));
        }
        self.answer(index, now_ns, steps);
    }

    /// What the far end writes next, now that all before is with TCP; 0: nothing.
    pub fn next_write(&mut self, connection: u32) -> u64 {
        let Some(connection) = self.connections.get_mut(connection as usize) else {
            return 0;
        };
        let Some((object, left)) = connection.sending.pop_front() else {
            return 0;
        };
        let bytes = match self.page.protocol {
            Protocol::Http1 => left,
            Protocol::Http2 => left.min(FRAME_BYTES),
        };
        if left > bytes {
            connection.sending.push_back((object, left - bytes));
        }
        connection.written.push_back((object, bytes));
        bytes
    }

    /// The near end received so much more, in order.
    pub fn on_response_bytes(
        &mut self,
        connection: u32,
        mut bytes: u64,
        now_ns: u64,
        steps: &mut Vec<Step>,
    ) {
        let index = connection as usize;
        while bytes > 0 {
            let written = match self.connections.get_mut(index) {
                Some(connection) => &mut connection.written,
                None => return,
            };
            let Some((object, left)) = written.front_mut() else {
                return;
            };
            let (object, taken) = (*object, bytes.min(*left));
            *left -= taken;
            bytes -= taken;
            if *left == 0 {
                written.pop_front();
            }
            let row = &mut self.objects[object];
            row.first_byte_us.get_or_insert(now_ns / 1000);
            self.left_bytes[object] -= taken;
            if self.left_bytes[object] == 0 {
                row.done_us = Some(now_ns / 1000);
                self.come(index, now_ns, steps);
            }
        }
    }

    /// Rows of loads that have ended; at the end of the run, of the one under way too.
    pub fn take_rows(&mut self, is_end: bool) -> (Vec<PageRow>, Vec<ObjectRow>) {
        if is_end && !self.objects.is_empty() {
            self.pages.push(self.page_row(None));
            self.finished.append(&mut self.objects);
        }
        (
            std::mem::take(&mut self.pages),
            std::mem::take(&mut self.finished),
        )
    }

    fn begin(&mut self, now_ns: u64, steps: &mut Vec<Step>) {
        self.next_ns = None;
        self.load_start_ns = now_ns;
        self.is_name_known = self.page.lookup == Lookup::None;
        self.left_bytes = self
            .page
            .objects
            .iter()
            .map(|object| object.bytes)
            .collect();
        let row = |(number, bytes): (usize, &u64)| ObjectRow {
            page_id: self.page_id,
            load: u64::from(self.load),
            object: number as u64,
            bytes: *bytes,
            ..ObjectRow::default()
        };
        self.objects = self.left_bytes.iter().enumerate().map(row).collect();
        self.next_level_from = 0;
        self.next_level();
        self.dispatch(now_ns, steps);
    }

    /// Objects of the next level may be asked for; false: there is none.
    fn next_level(&mut self) -> bool {
        let objects = &self.page.objects[self.next_level_from..];
        let Some(level) = objects.first().map(|object| object.level) else {
            return false;
        };
        let count = objects
            .iter()
            .take_while(|object| object.level == level)
            .count();
        let end = self.next_level_from + count;
        self.queue.extend(self.next_level_from..end);
        self.next_level_from = end;
        self.left = count;
        true
    }

    /// Gives objects to connections that are free.
    fn dispatch(&mut self, now_ns: u64, steps: &mut Vec<Step>) {
        for index in 0..self.connections.len() {
            loop {
                let connection = &self.connections[index];
                let is_free = match self.page.protocol {
                    Protocol::Http1 => connection.current.is_none(),
                    Protocol::Http2 => {
                        connection.current.is_none() || connection.state == State::Open
                    }
                };
                if !is_free {
                    break;
                }
                let Some(object) = self.queue.pop_front() else {
                    return;
                };
                self.objects[object].asked_us = now_ns / 1000;
                self.objects[object].connection = index as u64;
                self.connections[index].current = Some(object);
                match self.connections[index].state {
                    State::Open => self.ask(index, object, steps),
                    _ => self.connect(index, now_ns, steps),
                }
            }
        }
    }

    fn connect(&mut self, index: usize, now_ns: u64, steps: &mut Vec<Step>) {
        let is_asked = self.page.lookup == Lookup::Once
            && self
                .connections
                .iter()
                .any(|other| matches!(other.state, State::Looking(Some(_))));
        self.connections[index].state = if self.is_name_known {
            steps.push(Step::Open(index as u32));
            State::Opening
        } else if is_asked {
            State::Looking(None)
        } else {
            steps.push(Step::Lookup(index as u32));
            State::Looking(Some(now_ns))
        };
    }

    fn ask(&mut self, index: usize, object: usize, steps: &mut Vec<Step>) {
        self.connections[index].asked.push_back(object);
        steps.push(Step::Request(index as u32, self.page.request_bytes.max(1)));
    }

    /// What the server has thought about long enough is to be written.
    fn answer(&mut self, index: usize, now_ns: u64, steps: &mut Vec<Step>) {
        let connection = &mut self.connections[index];
        let mut has_more = false;
        while let Some(&(until_ns, object)) = connection.thinking.front() {
            if until_ns > now_ns {
                break;
            }
            connection.thinking.pop_front();
            connection
                .sending
                .push_back((object, self.left_bytes[object]));
            has_more = true;
        }
        if has_more {
            steps.push(Step::Respond(index as u32));
        }
    }

    /// An object has come whole on this connection.
    fn come(&mut self, index: usize, now_ns: u64, steps: &mut Vec<Step>) {
        self.connections[index].current = None;
        self.left -= 1;
        if self.left > 0 || self.next_level() {
            self.dispatch(now_ns, steps);
            return;
        }
        self.pages.push(self.page_row(Some(now_ns / 1000)));
        self.finished.append(&mut self.objects);
        self.load += 1;
        if !self.page.keeps_connections {
            for (index, connection) in self.connections.iter_mut().enumerate() {
                if connection.state != State::Closed {
                    steps.push(Step::Close(index as u32));
                    *connection = Connection::new();
                }
            }
        }
        let by_interval_ns = self.load_start_ns.saturating_add(self.page.interval_ns);
        let at_ns = by_interval_ns.max(now_ns.saturating_add(self.page.pause_ns));
        let has_time = self.page.stop_ns.is_none_or(|stop_ns| at_ns < stop_ns);
        let has_more = self.page.loads.is_none_or(|most| self.load < most);
        self.next_ns = Some(at_ns).filter(|_| has_time && has_more);
    }

    fn page_row(&self, done_us: Option<u64>) -> PageRow {
        PageRow {
            page_id: self.page_id,
            page: self.page.name.clone().into(),
            load: u64::from(self.load),
            start_us: self.load_start_ns / 1000,
            done_us,
            objects: self.objects.len() as u64,
            bytes: self.objects.iter().map(|object| object.bytes).sum(),
        }
    }
}
