//! netem's limit: most packets that a delay holds (sch_netem.c, netem_enqueue()).

use std::collections::VecDeque;

/// When the packets leave that the delay holds, in order.
#[derive(Clone, Debug)]
pub struct DelayLimit {
    most: usize,
    exits_ns: VecDeque<u64>,
    dropped: u64,
}

impl DelayLimit {
    /// For at most `most` packets.
    pub fn new(most: u32) -> Self {
        Self {
            most: most as usize,
            exits_ns: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Whether a packet that arrives now finds room; it is dropped otherwise. Times never decrease.
    pub fn has_room(&mut self, now_ns: u64) -> bool {
        while self.exits_ns.front().is_some_and(|&at_ns| at_ns <= now_ns) {
            self.exits_ns.pop_front();
        }
        let has_room = self.exits_ns.len() < self.most;
        self.dropped += u64::from(!has_room);
        has_room
    }

    /// A packet stays until then. One that leaves at once, as it overtakes, takes no room.
    pub fn hold(&mut self, now_ns: u64, exit_ns: u64) {
        if exit_ns > now_ns {
            let place = self.exits_ns.partition_point(|&at_ns| at_ns <= exit_ns);
            self.exits_ns.insert(place, exit_ns);
        }
    }

    /// Packets dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_holds_as_many_packets_as_its_limit() {
        let mut limit = DelayLimit::new(3);
        let taken = (0..10).filter(|&now_ns| {
            let has_room = limit.has_room(now_ns);
            if has_room {
                limit.hold(now_ns, now_ns + 5);
            }
            has_room
        });
        // Three in each 5 ns: 0, 1, 2, and from 5 on, when the first one leaves.
        assert_eq!(taken.collect::<Vec<_>>(), [0, 1, 2, 5, 6, 7]);
        assert_eq!(limit.dropped(), 4);
    }

    #[test]
    fn a_packet_that_leaves_before_others_gives_its_room_back_first() {
        let mut limit = DelayLimit::new(2);
        limit.hold(0, 10);
        limit.hold(0, 4);
        assert!(!limit.has_room(3));
        assert!(limit.has_room(4));
    }

    #[test]
    fn what_overtakes_takes_no_room() {
        let mut limit = DelayLimit::new(1);
        limit.hold(0, 0);
        assert!(limit.has_room(0));
        limit.hold(0, 1);
        assert!(!limit.has_room(0));
    }
}
