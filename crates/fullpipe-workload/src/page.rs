//! Loading a web page as a browser, curl or http-getter does, and the server that responds. Both ends are one
//! state machine, so requests need no content: they are known by their order. Must never know what carries
//! them.

use std::collections::VecDeque;

use fullpipe_plan::{Lookup, ObjectRow, Page, PageRow, Protocol};

/// A frame of HTTP/2 (RFC 9113 section 4.2, SETTINGS_MAX_FRAME_SIZE's initial value).
const FRAME_BYTES: u64 = 16_384;
/// Timeout of a DNS query (resolv.conf(5), RES_TIMEOUT).
const LOOKUP_TIMEOUT_NS: u64 = 5_000_000_000;

/// What an engine must do. Connections are numbered below `Page::connections`; opening a number again makes a
/// new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a DNS query to the server; [`PageLoader::on_answer`] takes the reply.
    Lookup(u32),
    /// Connect from the near host.
    Open(u32),
    /// The near end writes this many bytes.
    Request(u32, u32),
    /// The far end has data to write, as [`PageLoader::next_write`] returns.
    Respond(u32),
    /// Both ends close; later data of this connection are ignored.
    Close(u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// Waits for the name; if it sent a query of its own, then at this time.
    Looking(Option<u64>),
    Opening,
    Open,
}

#[derive(Debug, Default)]
struct Connection {
    state: State,
    /// The object to request once it is open; with HTTP/1.1 also the one it is receiving.
    current: Option<usize>,
    /// Requested objects whose requests have not arrived completely.
    asked: VecDeque<usize>,
    request_bytes: u64,
    /// Objects that the server is preparing, and until when.
    thinking: VecDeque<(u64, usize)>,
    /// Objects that the server has not written completely, and what is left of each.
    sending: VecDeque<(usize, u64)>,
    /// Objects that the client has not read completely.
    written: VecDeque<(usize, u64)>,
}

/// One page of a plan, which is loaded repeatedly.
#[derive(Debug)]
pub struct PageLoader {
    page: Page,
    page_id: u64,
    connections: Vec<Connection>,
    is_name_known: bool,
    /// Objects of the current levels that are not requested yet.
    queue: VecDeque<usize>,
    /// The first object of the next level.
    next_level_from: usize,
    /// Number of objects of the current levels that have not arrived.
    left: usize,
    objects: Vec<ObjectRow>,
    left_bytes: Vec<u64>,
    load: u32,
    load_start_ns: u64,
    /// When the next load starts; `None` during a load, and after the last.
    next_ns: Option<u64>,
    pages: Vec<PageRow>,
    /// Objects of finished loads.
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
            connections: (0..count).map(|_| Connection::default()).collect(),
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

    /// When to call [`Self::on_timer`].
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

    /// Does what is due; a call that is too early does nothing.
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

    /// The reply to a DNS query arrived.
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

    /// The near end is established.
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

    /// The far end received `bytes` more.
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

    /// How much the far end writes next; 0: nothing.
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

    /// The near end received `bytes` more in order.
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

    /// Rows of finished loads; at the end of the run, of the current one too.
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

    /// Moves on to the next level; false if there is none.
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

    /// Assigns objects to idle connections.
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

    /// Objects that the server has prepared are written.
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

    /// An object has arrived completely on this connection.
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
                    *connection = Connection::default();
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
