//! Load of the measured machine, ten times a second: times of processors, traffic of its hosts' ports,
//! memory of TCP. It must never judge (health.rs does).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;

use fullpipe_plan::stream::Frame;
use fullpipe_plan::{CpuRow, NicRow, TcpMemoryRow};

use super::cpu::{Processors, Times};
use super::proc_file::read_proc;
use super::protocols::Protocols;
use crate::net::{Node, Topology};

/// Interval between samples: CPUnetLOG's 10 Hz.
pub(crate) const HOST_INTERVAL_NS: u64 = 100_000_000;
/// Most hosts whose ports are read: each read costs the measured machine time.
pub(crate) const MAX_HOSTS: usize = 64;

/// Counters of one port: bytes and packets, received and sent.
type Counters = [u64; 4];

/// Reads this machine. Everything is counted from [`HostMeter::begin`] on.
pub(crate) struct HostMeter {
    machine: &'static str,
    ports: Vec<Ports>,
    protocols: Vec<HostProtocols>,
    sockstat: Option<File>,
    page_bytes: u64,
    processors: Processors,
    times_before: Vec<Times>,
}

/// The counters of one host's protocols (snmp, netstat), and what they were at first.
struct HostProtocols {
    host: String,
    files: [Protocols; 2],
    before: Vec<(String, u64)>,
}

/// The ports of one host.
struct Ports {
    host: String,
    file: File,
    before: Vec<(String, Counters)>,
}

impl HostMeter {
    /// The hosts of a topology; for one that is not ours, this machine's own ports.
    pub(crate) fn new(
        machine: &'static str,
        processors: Processors,
        topology: &Topology,
    ) -> Result<Self, String> {
        let all = [
            &topology.flow_ends,
            &topology.probe_ends,
            &topology.application_ends,
            &topology.traffic_ends,
        ];
        let hosts: BTreeSet<usize> = all
            .into_iter()
            .flatten()
            .flatten()
            .map(|&(node, _)| node)
            .filter(|&node| node < topology.nodes.len())
            .collect();
        let mut ports = Vec::new();
        let mut protocols = Vec::new();
        for node in hosts.into_iter().take(MAX_HOSTS) {
            let node = &topology.nodes[node];
            protocols.push(HostProtocols::open(node)?);
            ports.push(Ports::open(node.name.clone())?);
        }
        if topology.nodes.is_empty() {
            ports.push(Ports::open(machine.to_owned())?);
        }
        Ok(Self {
            machine,
            ports,
            protocols,
            // A kernel without these counters is no reason not to measure.
            sockstat: File::open("/proc/thread-self/net/sockstat").ok(),
            page_bytes: page_bytes(),
            processors,
            times_before: Vec::new(),
        })
    }

    /// Makes the current counters the zero of all later rows.
    pub(crate) fn begin(&mut self) {
        self.times_before = self.processors.times();
        for ports in &mut self.ports {
            ports.before = ports.read();
        }
    }

    /// Of each host what its protocols have counted since they were opened, as `nstat` shows it.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&str, String)> {
        self.protocols
            .iter()
            .map(|protocols| (protocols.host.as_str(), protocols.grown()))
    }

    /// Rows of this moment.
    pub(crate) fn rows(&self, t_us: u64, mut put: impl FnMut(Frame)) {
        for now in self.processors.times() {
            let known = self.times_before.iter().find(|times| times.cpu == now.cpu);
            // A processor that came online meanwhile counts from then on.
            let before = known.copied().unwrap_or(now);
            let since = |of: fn(&Times) -> u64| of(&now).saturating_sub(of(&before)) / 1000;
            put(Frame::Cpu(CpuRow {
                t_us,
                machine: self.machine.into(),
                cpu: now.cpu,
                user_us: since(|times| times.user_ns),
                system_us: since(|times| times.system_ns),
                irq_us: since(|times| times.irq_ns),
                softirq_us: since(|times| times.softirq_ns),
                steal_us: since(|times| times.steal_ns),
                idle_us: since(|times| times.idle_ns),
            }));
        }
        for ports in &self.ports {
            for (nic, now) in ports.read() {
                let known = ports.before.iter().find(|(name, _)| *name == nic);
                let before = known.map_or(now, |(_, counters)| *counters);
                let [received_bytes, received_packets, sent_bytes, sent_packets] =
                    std::array::from_fn(|index| now[index].saturating_sub(before[index]));
                put(Frame::Nic(NicRow {
                    t_us,
                    host: ports.host.clone().into(),
                    nic: nic.into(),
                    received_bytes,
                    received_packets,
                    sent_bytes,
                    sent_packets,
                }));
            }
        }
        let told = self.sockstat.as_ref().map(read_proc);
        if let Some([sockets, orphans, pages]) = told.and_then(|text| sockets(&text.ok()?)) {
            put(Frame::TcpMemory(TcpMemoryRow {
                t_us,
                machine: self.machine.into(),
                memory_bytes: pages * self.page_bytes,
                sockets,
                orphans,
            }));
        }
    }
}

impl HostProtocols {
    /// Enters the node.
    fn open(node: &Node) -> Result<Self, String> {
        let files = [Protocols::open(node)?, Protocols::open_extensions(node)?];
        let before = read_all(&files);
        Ok(Self {
            host: node.name.clone(),
            files,
            before,
        })
    }

    /// A line for each counter that grew.
    fn grown(&self) -> String {
        let mut text = String::new();
        for (name, value) in read_all(&self.files) {
            let known = self.before.iter().find(|(known, _)| *known == name);
            let growth = value.saturating_sub(known.map_or(0, |(_, before)| *before));
            if growth > 0 {
                let _ = writeln!(text, "{name} {growth}");
            }
        }
        text
    }
}

/// A file that cannot be read has no counters.
fn read_all(files: &[Protocols]) -> Vec<(String, u64)> {
    let read = files.iter().filter_map(|file| file.read().ok());
    read.flat_map(|counts| counts.all()).collect()
}

impl Ports {
    /// Of the namespace that the thread is in.
    fn open(host: String) -> Result<Self, String> {
        let path = "/proc/thread-self/net/dev";
        Ok(Self {
            file: File::open(path).map_err(|error| format!("{host}: {path}: {error}"))?,
            host,
            before: Vec::new(),
        })
    }

    fn read(&self) -> Vec<(String, Counters)> {
        read_proc(&self.file).map_or_else(|_| Vec::new(), |text| counters(&text))
    }
}

/// Ports of /proc/net/dev without the loopback: 8 columns received, 8 columns sent.
fn counters(text: &str) -> Vec<(String, Counters)> {
    text.lines()
        .filter_map(|line| {
            let (name, numbers) = line.split_once(':')?;
            let name = name.trim();
            let numbers: Vec<u64> = numbers
                .split_ascii_whitespace()
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?;
            let at = |index: usize| numbers.get(index).copied();
            let found = [at(0)?, at(1)?, at(8)?, at(9)?];
            (name != "lo").then(|| (name.to_owned(), found))
        })
        .collect()
}

/// Sockets, orphans, and pages of the line `TCP:` of
/// /proc/net/sockstat; all three are the machine's (net/ipv4/proc.c sockstat_seq_show()).
fn sockets(text: &str) -> Option<[u64; 3]> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let value = |name: &str| -> Option<u64> {
        let mut words = line.split(' ').skip_while(|word| *word != name);
        words.nth(1)?.parse().ok()
    };
    Some([value("alloc")?, value("orphan")?, value("mem")?])
}

fn page_bytes() -> u64 {
    let known = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    known.ok().flatten().map_or(4096, |bytes| bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_without_the_loopback_and_headings() {
        let text = "Inter-|   Receive       |  Transmit\n face |bytes packets\n\
                    \x20   lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n\
                    \x20 eth0:1500 3 0 0 0 0 0 0 66 1 0 0 0 0 0 0\n";
        assert_eq!(counters(text), [("eth0".to_owned(), [1500, 3, 66, 1])]);
        assert_eq!(counters("eth0: 1 2 3"), []);
    }

    #[test]
    fn the_memory_of_tcp_is_found_by_name() {
        let text =
            "sockets: used 9\nTCP: inuse 3 orphan 1 tw 4 alloc 5 mem 20\nUDP: inuse 2 mem 1\n";
        assert_eq!(sockets(text), Some([5, 1, 20]));
        assert_eq!(sockets("TCP: inuse 3"), None);
    }
}
