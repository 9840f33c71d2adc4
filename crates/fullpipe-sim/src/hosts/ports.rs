//! Addresses and ports of flows as one number each, by which queue disciplines tell flows apart.
//!
//! A connection that opens gets ports of its own, also where it takes the place of one that is over: it is
//! another flow to a queue, whose state for the former one does not count for it.

use std::collections::VecDeque;

/// So many closed connections come before ports are used again. Linux hands out some 28,000 ephemeral ports
/// (ip_local_port_range); a queue discipline has 1024 queues.
const CLOSED: usize = 8192;

/// Hands out ports, and takes back those of closed connections.
#[derive(Debug, Default)]
pub(super) struct Ports {
    next: u32,
    /// Those of closed connections, the oldest first.
    closed: VecDeque<u32>,
}

impl Ports {
    /// Ports that no flow has had, or that were closed long ago.
    pub(super) fn open(&mut self) -> u32 {
        if self.closed.len() > CLOSED {
            if let Some(ports) = self.closed.pop_front() {
                return ports;
            }
        }
        self.next += 1;
        self.next - 1
    }

    /// The connection with these ports is over.
    pub(super) fn close(&mut self, ports: u32) {
        self.closed.push_back(ports);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_open_one_after_another_have_numbers_in_their_order() {
        let mut ports = Ports::default();
        assert_eq!([ports.open(), ports.open(), ports.open()], [0, 1, 2]);
    }

    #[test]
    fn ports_are_used_again_only_after_thousands_of_connections() {
        let mut ports = Ports::default();
        let open = ports.open();
        for number in 1..=CLOSED as u32 + 1 {
            let opened = ports.open();
            assert_eq!(opened, number);
            ports.close(opened);
        }
        assert_eq!(ports.open(), 1, "the one that was closed first");
        assert_ne!(ports.open(), open, "it is still open");
    }

    #[test]
    fn a_million_short_flows_take_no_more_numbers_than_are_open_and_closed() {
        let mut ports = Ports::default();
        for _ in 0..1_000_000 {
            let opened = ports.open();
            ports.close(opened);
        }
        assert!(ports.next <= CLOSED as u32 + 2);
    }
}
