//! Counters of a namespace's protocols: the files snmp and netstat of /proc/net. It must never know what
//! they are read for.

use std::fs::File;

use super::proc_file::read_proc;
use crate::net::Node;

/// One of the two files.
pub(super) struct Protocols(File);

/// What it said at one time.
pub(super) struct Counts(String);

impl Protocols {
    /// IP, ICMP, UDP and TCP, with the counters of their MIBs.
    pub(super) fn open(node: &Node) -> Result<Self, String> {
        Self::of(node, "snmp")
    }

    /// Linux's own counters.
    pub(super) fn open_extensions(node: &Node) -> Result<Self, String> {
        Self::of(node, "netstat")
    }

    /// Enters the node.
    fn of(node: &Node, name: &str) -> Result<Self, String> {
        node.enter()?;
        let path = format!("/proc/thread-self/net/{name}");
        let failed = |error| format!("{}: {path}: {error}", node.name);
        File::open(&path).map(Self).map_err(failed)
    }

    pub(super) fn read(&self) -> Result<Counts, String> {
        let failed = |error| format!("counters of protocols: {error}");
        read_proc(&self.0).map(Counts).map_err(failed)
    }
}

impl Counts {
    /// Every counter by the name that nstat(8) gives it: protocol and name in one word.
    pub(super) fn all(&self) -> Vec<(String, u64)> {
        let lines: Vec<&str> = self.0.lines().collect();
        let mut all = Vec::new();
        for pair in lines.chunks_exact(2) {
            let (Some((protocol, names)), Some((_, values))) =
                (pair[0].split_once(": "), pair[1].split_once(": "))
            else {
                continue;
            };
            for (name, value) in names.split(' ').zip(values.split(' ')) {
                // The one that is negative, MaxConn, is no counter.
                all.extend(
                    value
                        .parse()
                        .ok()
                        .map(|value| (format!("{protocol}{name}"), value)),
                );
            }
        }
        all
    }

    /// 0 where the kernel has no such counter. A protocol has a line of names and a line of values.
    pub(super) fn of(&self, protocol: &str, name: &str) -> u64 {
        let lines = self.0.lines();
        let mut lines = lines.filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
            return 0;
        };
        let mut pairs = names.split(' ').zip(values.split(' '));
        let value = pairs.find(|(found, _)| *found == name);
        value.map_or(0, |(_, value)| value.parse().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_below_its_name_in_the_lines_of_its_protocol() {
        let counts = Counts(
            "TcpExt: OutSegs InCEPkts\nTcpExt: 1 2\n\
             Tcp: MaxConn OutSegs RetransSegs\nTcp: -1 30 4\n\
             IpExt: InOctets InCEPkts\nIpExt: 500 6\n"
                .to_owned(),
        );
        assert_eq!(counts.of("Tcp", "OutSegs"), 30);
        assert_eq!(counts.of("Tcp", "RetransSegs"), 4);
        assert_eq!(counts.of("IpExt", "InCEPkts"), 6);
        assert_eq!(counts.of("Udp", "OutDatagrams"), 0);
        assert_eq!(counts.of("Tcp", "InCEPkts"), 0);
        let all = counts.all();
        assert_eq!(all[1], ("TcpExtInCEPkts".to_owned(), 2));
        assert!(all.contains(&("TcpRetransSegs".to_owned(), 4)) && all.len() == 6);
    }
}
