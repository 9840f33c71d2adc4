//! A page that programs load: a stock web server, and a stock client that is started for each load.
//! Begin and end of a load are read from the client's standard error (curl --verbose --trace-time).
//! Must never know what is in the programs' command lines.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use fullpipe_plan::stream::Frame;
use fullpipe_plan::{Page, PageRow};
use nix::sys::epoll::EpollFlags;

use crate::activity::Run;
use crate::request::Web;
use crate::sink::Sink;
use crate::token::{PageSocket, Token};

/// The server's folder, with `PAGE/OBJECT` below it.
const ROOT: &str = "/run/web";
/// A client writes a time before these marks.
const BEGINS: &str = " *   Trying ";
const ENDS: (&str, &str) = (" * Connection #", " left intact");
const DAY_US: u64 = 86_400_000_000;

/// A page that is loaded by programs.
pub(super) struct WebFlow {
    page: Page,
    index: usize,
    client_node: usize,
    client_line: Vec<String>,
    server: Child,
    client: Option<Load>,
    next_ns: Option<u64>,
    row: PageRow,
    ended: Vec<PageRow>,
}

/// A load under way.
struct Load {
    process: Child,
    /// Readable when the process has ended.
    _end: OwnedFd,
    row: PageRow,
}

impl WebFlow {
    /// Starts the server; the client starts when the page is due.
    pub(super) fn open(
        page: &Page,
        index: u32,
        web: &Web,
        congestion_control: &str,
        ends: [(usize, Ipv4Addr); 2],
        run: &Run,
    ) -> Result<Self, String> {
        let place = |error: io::Error| format!("page {}: {error}", page.name);
        let folder = format!("{ROOT}/{index}");
        fs::create_dir_all(&folder).map_err(place)?;
        for (number, object) in page.objects.iter().enumerate() {
            let file = File::create(format!("{folder}/{number}")).map_err(place)?;
            let bytes = object.bytes.saturating_sub(web.header_bytes).max(1);
            file.set_len(bytes).map_err(place)?;
        }
        let words = [
            ("{address}", ends[1].1.to_string()),
            ("{page}", index.to_string()),
            ("{last}", page.objects.len().saturating_sub(1).to_string()),
            ("{connections}", page.connections.to_string()),
        ];
        let line = |template: &[String]| -> Vec<String> {
            let filled = template.iter().map(|word| {
                words.iter().fold(word.clone(), |word, (name, value)| {
                    word.replace(name, value)
                })
            });
            filled.collect()
        };
        // The programs do not set TCP_CONGESTION.
        for (node, _) in ends {
            let node = &run.topology.nodes[node];
            node.enter()?;
            node.set("tcp_congestion_control", congestion_control)?;
        }
        let server = start(&line(&web.server), &format!("{folder}.server")).map_err(place)?;
        Ok(Self {
            index: index as usize,
            client_node: ends[0].0,
            client_line: line(&web.client),
            server,
            client: None,
            next_ns: Some(page.start_ns),
            row: PageRow {
                page_id: u64::from(index),
                page: page.name.clone().into(),
                load: 0,
                start_us: 0,
                done_us: None,
                objects: page.objects.len() as u64,
                bytes: page.objects.iter().map(|object| object.bytes).sum(),
            },
            ended: Vec::new(),
            page: page.clone(),
        })
    }

    /// When the next load is due, if it is not on the agenda yet.
    pub(super) fn arm_ns(&mut self) -> Option<u64> {
        self.next_ns.take()
    }

    /// Starts a load.
    pub(super) fn load(&mut self, t_ns: u64, run: &Run) -> io::Result<()> {
        run.topology.nodes[self.client_node]
            .enter()
            .map_err(io::Error::other)?;
        let process = start(&self.client_line, &self.told())?;
        let end = end_of(&process)?;
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        let token = Token::Page(self.index, PageSocket::Program);
        run.poller.watch(&end, flags, token)?;
        self.row.start_us = t_ns / 1000;
        self.client = Some(Load {
            process,
            _end: end,
            row: self.row.clone(),
        });
        self.row.load += 1;
        Ok(())
    }

    /// The client has ended: its output has the begin and the end of the load.
    pub(super) fn loaded(&mut self, t_ns: u64) -> io::Result<()> {
        let Some(mut load) = self.client.take() else {
            return Ok(());
        };
        let status = load.process.wait()?;
        let by_interval_ns = load.row.start_us * 1000 + self.page.interval_ns;
        let at_ns = by_interval_ns.max(t_ns + self.page.pause_ns);
        let has_time = self.page.stop_ns.is_none_or(|stop_ns| at_ns < stop_ns);
        let most = self.page.loads.map_or(u64::MAX, u64::from);
        self.next_ns = Some(at_ns).filter(|_| has_time && self.row.load < most);
        let told = fs::read_to_string(self.told())?;
        let took_us = took_us(&told, self.page.objects.len());
        load.row.done_us = took_us.map(|us| load.row.start_us + us);
        self.ended.push(load.row);
        match took_us {
            Some(_) if status.success() => Ok(()),
            _ => {
                let last = told.lines().last().unwrap_or("no word");
                Err(io::Error::other(format!("the client: {status}; {last}")))
            }
        }
    }

    /// Rows of loads that have ended; at the end, of the one under way too.
    pub(super) fn rows(&mut self, is_end: bool, sink: &mut dyn Sink) {
        let running = self.client.iter().filter(|_| is_end);
        self.ended.extend(running.map(|load| load.row.clone()));
        for row in self.ended.drain(..) {
            sink.put(&Frame::Page(row));
        }
    }

    /// The file of the client's output.
    fn told(&self) -> String {
        format!("{ROOT}/{}.client", self.row.page_id)
    }
}

impl Drop for WebFlow {
    fn drop(&mut self) {
        let clients = self.client.iter_mut().map(|load| &mut load.process);
        for process in clients.chain([&mut self.server]) {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Starts a program in the namespace that the thread is in; its output goes to a file.
fn start(line: &[String], told: &str) -> io::Result<Child> {
    let (program, arguments) = line
        .split_first()
        .ok_or_else(|| io::Error::other("no program"))?;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(told)?)
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))
}

/// A descriptor that becomes readable when the process ends (pidfd_open(2)).
fn end_of(process: &Child) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers; the new descriptor has no other owner.
    unsafe {
        let raw = libc::syscall(libc::SYS_pidfd_open, process.id() as libc::pid_t, 0);
        nix::errno::Errno::result(raw)
            .map(|raw| OwnedFd::from_raw_fd(raw as i32))
            .map_err(io::Error::from)
    }
}

/// From the first attempt to connect until the last of so many transfers was over.
fn took_us(told: &str, objects: usize) -> Option<u64> {
    let begins = told.lines().filter(|line| line.contains(BEGINS));
    let ends = told
        .lines()
        .filter(|line| line.contains(ENDS.0) && line.ends_with(ENDS.1));
    let (begin, ends): (_, Vec<u64>) = (
        begins.filter_map(|line| moment_us(line, BEGINS)).next()?,
        ends.filter_map(|line| moment_us(line, ENDS.0)).collect(),
    );
    let last = *ends.last().filter(|_| ends.len() == objects)?;
    Some((last + DAY_US - begin) % DAY_US)
}

/// `HH:MM:SS.ffffff` right before a mark, in us of the day.
fn moment_us(line: &str, mark: &str) -> Option<u64> {
    let before = line.get(..line.find(mark)?)?;
    let text = before.get(before.len().checked_sub(15)?..)?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let seconds = number(0, 2)? * 3600 + number(3, 5)? * 60 + number(6, 8)?;
    Some(seconds * 1_000_000 + number(9, 15)?)
}

#[cfg(test)]
mod tests {
    use super::took_us;

    const TOLD: &str = "\
23:59:59.900000 *   Trying 10.0.0.2:8080...
23:59:59.950000 *   Trying 10.0.0.2:8080...
-- progress 23:59:59.990000 * Connection #0 to host 10.0.0.2 left intact
00:00:00.100001 * Connection #1 to host 10.0.0.2 left intact
";

    #[test]
    fn a_load_lasts_from_the_first_attempt_to_the_last_end_over_midnight() {
        assert_eq!(took_us(TOLD, 2), Some(200_001));
    }

    #[test]
    fn a_load_without_all_its_objects_has_no_end() {
        assert_eq!(took_us(TOLD, 3), None);
        assert_eq!(took_us("curl: (7) refused", 1), None);
        assert_eq!(took_us("x *   Trying \n", 0), None);
    }
}
