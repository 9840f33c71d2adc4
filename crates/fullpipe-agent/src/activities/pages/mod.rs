//! The pages of a plan. This module must not know how one is loaded.

mod own;
mod programs;

use std::io;

use nix::sys::epoll::EpollFlags;

use crate::activity::{Activity, Run};
use crate::agenda::Task;
use crate::sink::Sink;
use crate::token::PageSocket;

use own::PageFlow;
use programs::WebFlow;

/// The pages of the plan.
pub(super) struct Pages(Vec<AnyPage>);

/// A page that the agent or programs load.
enum AnyPage {
    Own(Box<PageFlow>),
    Programs(Box<WebFlow>),
}

impl Activity for Pages {
    /// A page and its descriptor.
    type Socket = (usize, PageSocket);
    /// The page whose timer may have expired.
    type Task = usize;

    fn open(run: &mut Run) -> Result<Self, String> {
        let plan = run.plan();
        let mut pages = Self(Vec::with_capacity(plan.pages.len()));
        let ends = run.topology.application_ends.iter();
        for ((index, page), &ends) in (0..).zip(&plan.pages).zip(ends) {
            let name = run.congestion.name(plan.flows.len() + index as usize);
            pages.0.push(match &run.request.web {
                None => AnyPage::Own(Box::new(PageFlow::open(page, index, name, ends, run)?)),
                Some(web) => {
                    let page = WebFlow::open(page, index, web, name, ends, run)?;
                    AnyPage::Programs(Box::new(page))
                }
            });
        }
        for index in 0..pages.0.len() {
            pages.arm(index, run);
        }
        Ok(pages)
    }

    fn handle(
        &mut self,
        (index, socket): (usize, PageSocket),
        flags: EpollFlags,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) {
        let t_ns = run.t_ns();
        let done = match &mut self.0[index] {
            AnyPage::Own(page) => page.handle(socket, flags, t_ns, run),
            AnyPage::Programs(page) => page.loaded(t_ns),
        };
        note(index, done, run);
        self.arm(index, run);
    }

    fn due(
        &mut self,
        index: usize,
        _due_ns: u64,
        run: &mut Run,
        _sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let t_ns = run.t_ns();
        let done = match &mut self.0[index] {
            AnyPage::Own(page) => page.on_timer(t_ns, run),
            AnyPage::Programs(page) => page.load(t_ns, run),
        };
        note(index, done, run);
        self.arm(index, run);
        Ok(())
    }

    fn rows(&mut self, _t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        self.put(false, sink);
        Ok(())
    }

    fn end(&mut self, _t_ns: u64, _run: &mut Run, sink: &mut dyn Sink) -> Result<(), String> {
        self.put(true, sink);
        Ok(())
    }
}

impl Pages {
    /// Puts a page's next timer on the agenda.
    fn arm(&mut self, index: usize, run: &mut Run) {
        let due_ns = match &mut self.0[index] {
            AnyPage::Own(page) => page.arm_ns(),
            AnyPage::Programs(page) => page.arm_ns(),
        };
        if let Some(at_ns) = due_ns {
            run.agenda.add(at_ns, Task::Page(index));
        }
    }

    /// Rows of loads that have ended; at the end, of all.
    fn put(&mut self, is_end: bool, sink: &mut dyn Sink) {
        for page in &mut self.0 {
            match page {
                AnyPage::Own(page) => page.rows(is_end, sink),
                AnyPage::Programs(page) => page.rows(is_end, sink),
            }
        }
    }
}

fn note(index: usize, done: io::Result<()>, run: &mut Run) {
    if let Err(error) = done {
        let name = &run.plan().pages[index].name;
        run.health.add_problem(format!("page {name}: {error}"));
    }
}
