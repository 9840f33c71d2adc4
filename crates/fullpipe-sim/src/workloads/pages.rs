//! Pages: what their loaders want done, and which connections are theirs. `sim/applications.rs` does it.
//! Must never decide when, or how much.
//!
//! A connection of a page is two of TCP's, one in each direction, which share a handshake and look like one
//! to the network. What either acknowledges costs a packet of its own; they close as one.

use std::collections::VecDeque;

use fullpipe_plan::{CcChoice, EcnKind, Flow, FlowDirection, ObjectRow, Page, PageRow, Plan};
use fullpipe_workload::{PageLoader, Step};

use crate::agenda::{Agenda, Alarm, Event};

/// A server writes into TCP while less than this is unsent (as with TCP_NOTSENT_LOWAT).
pub(crate) const UNSENT_BYTES: u64 = 131_072;
/// Payload of a DNS query and its reply, for a name of typical length (RFC 1035).
pub(crate) const QUERY_BYTES: u32 = 50;
pub(crate) const REPLY_BYTES: u32 = 100;

/// What a connection of TCP is to a page.
#[derive(Clone, Copy)]
pub(crate) struct PageConnection {
    pub(crate) page: u32,
    /// Its number at the page's loader.
    pub(crate) number: u32,
    /// The connection of the other direction.
    pub(crate) other: u32,
    pub(crate) carries_requests: bool,
    /// Payload that its receiver has read.
    pub(crate) read_bytes: u64,
    /// The application has closed it.
    pub(crate) is_closed: bool,
}

/// All pages of a plan.
pub(crate) struct Pages {
    pages: Vec<PageState>,
    /// What loaders want done, each with its page. Steps are done between events, so that no packet is
    /// being handled.
    steps: VecDeque<(u32, Step)>,
    /// A loader was notified since steps were done.
    is_notified: bool,
    scratch: Vec<Step>,
    /// Connections opened so far.
    opened: u32,
}

struct PageState {
    loader: PageLoader,
    /// Connections that carry requests and responses, for each open connection of the loader.
    open: Vec<Option<[u32; 2]>>,
    alarm: Alarm,
    /// Flows like its connections, one in each direction.
    templates: [Flow; 2],
}

impl Pages {
    pub(crate) fn new(plan: &Plan) -> Self {
        let page = |(index, page): (u32, &Page)| PageState {
            loader: PageLoader::new(page, index),
            open: vec![None; page.connections as usize],
            alarm: Alarm::default(),
            templates: [FlowDirection::Up, FlowDirection::Down]
                .map(|direction| template(page, direction)),
        };
        Self {
            pages: (0..).zip(&plan.pages).map(page).collect(),
            steps: VecDeque::new(),
            is_notified: false,
            scratch: Vec::new(),
            opened: 0,
        }
    }

    /// Flows like the connections of each page.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &[Flow; 2]> {
        self.pages.iter().map(|page| &page.templates)
    }

    /// Whether a loader was notified since [`Self::finish_steps`].
    #[inline]
    pub(crate) fn is_notified(&self) -> bool {
        self.is_notified
    }

    /// Notifies a page's loader of something.
    pub(crate) fn notify(
        &mut self,
        page: u32,
        notify: impl FnOnce(&mut PageLoader, &mut Vec<Step>),
    ) {
        self.is_notified = true;
        notify(&mut self.pages[page as usize].loader, &mut self.scratch);
        let steps = self.scratch.drain(..).map(|step| (page, step));
        self.steps.extend(steps);
    }

    /// A page's timer expired.
    pub(crate) fn on_timer(&mut self, page: u32, now_ns: u64) {
        if self.pages[page as usize].alarm.rings(now_ns) {
            self.notify(page, |loader, steps| loader.on_timer(now_ns, steps));
        }
    }

    /// The next step that a loader wants done, with its page.
    pub(crate) fn next_step(&mut self) -> Option<(u32, Step)> {
        self.steps.pop_front()
    }

    /// All steps are done: schedules the pages' timers.
    pub(crate) fn finish_steps(&mut self, agenda: &mut Agenda) {
        self.is_notified = false;
        for (index, page) in (0..).zip(&mut self.pages) {
            if let Some(at_ns) = page.loader.due_ns() {
                page.alarm.set(agenda, at_ns, Event::Page(index));
            }
        }
    }

    /// Rows of finished loads; at the end of the run, of all.
    pub(crate) fn take_rows(
        &mut self,
        is_end: bool,
    ) -> impl Iterator<Item = (Vec<PageRow>, Vec<ObjectRow>)> + '_ {
        let pages = self.pages.iter_mut();
        pages.map(move |page| page.loader.take_rows(is_end))
    }

    /// The connections of an open connection of a loader: of requests and of responses.
    pub(crate) fn open_pair(&self, page: u32, number: u32) -> Option<[usize; 2]> {
        let pair = self.pages[page as usize].open[number as usize];
        pair.map(|pair| pair.map(|connection| connection as usize))
    }

    pub(crate) fn set_open_pair(&mut self, page: u32, number: u32, pair: Option<[u32; 2]>) {
        self.pages[page as usize].open[number as usize] = pair;
    }

    /// The flow of a new connection, and the connection's serial number among all pages'.
    pub(crate) fn new_flow(&mut self, page: u32, side: usize, now_ns: u64) -> (&Flow, u32) {
        let serial = self.opened;
        self.opened += 1;
        let flow = &mut self.pages[page as usize].templates[side];
        flow.start_ns = now_ns;
        (flow, serial)
    }

    /// How much a server writes next; 0: nothing for now.
    pub(crate) fn next_write(&mut self, page: u32, number: u32) -> u64 {
        self.pages[page as usize].loader.next_write(number)
    }
}

fn template(page: &Page, direction: FlowDirection) -> Flow {
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
        nodelay: page.nodelay,
        ecn: page.ecn,
        ecn_kind: EcnKind::Classic,
        max_pacing_rate_bps: None,
        stack: None,
    }
}
