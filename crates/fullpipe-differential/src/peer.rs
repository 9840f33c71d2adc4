//! The peer of a drawn script: a receiver in bytes that acknowledges as RFC 9293, 2018, 2883 and 3168 say.

use crate::script::PeerAck;

/// Most SACK blocks of an ACK (RFC 2018 section 3, beside timestamps).
const BLOCKS_MAX: usize = 3;

/// A segment that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) sent_us: u64,
    pub(crate) is_marked: bool,
    pub(crate) has_cwr: bool,
}

/// What the peer has received.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    next: u64,
    /// What lies beyond a hole, the newest first.
    blocks: Vec<[u64; 2]>,
    duplicate: Option<[u64; 2]>,
    echo_us: u64,
    echoes_mark: bool,
    unacknowledged: u32,
}

impl Receiver {
    /// A segment arrives; whether it must be acknowledged at once.
    pub(crate) fn take(&mut self, segment: &Segment) -> bool {
        self.echoes_mark = self.echoes_mark && !segment.has_cwr || segment.is_marked;
        let range = [segment.start, segment.end];
        let holds = |block: &[u64; 2]| block[0] <= range[0] && range[1] <= block[1];
        if segment.end <= self.next || self.blocks.iter().any(holds) {
            self.duplicate = Some(range);
            if let Some(place) = self.blocks.iter().position(holds) {
                let block = self.blocks.remove(place);
                self.blocks.insert(0, block);
            }
            return true;
        }
        if segment.start > self.next {
            self.insert(range);
            return true;
        }
        // RFC 7323 section 4.3: the timestamp of the earliest segment that is not acknowledged.
        if self.unacknowledged == 0 {
            self.echo_us = segment.sent_us;
        }
        self.unacknowledged += 1;
        let fills_hole = !self.blocks.is_empty();
        self.next = segment.end;
        while let Some(place) = self.blocks.iter().position(|block| block[0] <= self.next) {
            self.next = self.next.max(self.blocks.remove(place)[1]);
        }
        fills_hole || self.unacknowledged >= 2
    }

    fn insert(&mut self, range: [u64; 2]) {
        let mut merged = range;
        self.blocks.retain(|block| {
            let touches = block[0] <= merged[1] && merged[0] <= block[1];
            if touches {
                merged = [merged[0].min(block[0]), merged[1].max(block[1])];
            }
            !touches
        });
        self.blocks.insert(0, merged);
    }

    /// The next byte expected.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether something waits for a delayed ACK.
    pub(crate) fn owes_ack(&self) -> bool {
        self.unacknowledged > 0
    }

    /// An ACK of all that has arrived.
    pub(crate) fn acknowledge(&mut self, window: u64) -> PeerAck {
        self.unacknowledged = 0;
        let duplicate = self.duplicate.take();
        let blocks = duplicate.into_iter().chain(self.blocks.iter().copied());
        PeerAck {
            next: self.next,
            sack: blocks.take(BLOCKS_MAX).collect(),
            window,
            echo_us: self.echo_us,
            ece: self.echoes_mark,
        }
    }
}

/// The window of a peer whose application stops reading now and then. It takes no room back.
#[derive(Debug)]
pub(crate) struct PeerWindow {
    bytes: u64,
    /// The first byte beyond what was offered.
    edge: u64,
    /// When the application reads again.
    reads_us: u64,
}

impl PeerWindow {
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            bytes,
            edge: 0,
            reads_us: 0,
        }
    }

    /// The SYN-ACK offered this.
    pub(crate) fn opened(&mut self, bytes: u64) {
        self.edge = bytes;
    }

    /// The application stops reading until `reads_us`.
    pub(crate) fn pause(&mut self, reads_us: u64) {
        self.reads_us = reads_us;
    }

    pub(crate) fn is_paused(&self, at_us: u64) -> bool {
        at_us < self.reads_us
    }

    /// What an ACK offers beyond byte `next`: a multiple of 8, as the window's scale asks.
    pub(crate) fn offer(&mut self, next: u64, at_us: u64) -> u64 {
        if !self.is_paused(at_us) {
            self.edge = self.edge.max(next + self.bytes);
        }
        self.edge.saturating_sub(next) & !7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_closes_while_its_application_pauses_and_opens_again() {
        let mut window = PeerWindow::new(4_000);
        assert_eq!(window.offer(1_000, 10), 4_000);
        window.pause(50);
        let offers: Vec<u64> = [(2_000, 20), (4_995, 30), (5_000, 40), (5_000, 50)]
            .map(|(next, at_us)| window.offer(next, at_us))
            .into();
        assert_eq!(offers, [3_000, 0, 0, 4_000]);
    }

    fn takes(receiver: &mut Receiver, start: u64) -> PeerAck {
        receiver.take(&Segment {
            start,
            end: start + 1000,
            sent_us: start,
            is_marked: false,
            has_cwr: false,
        });
        receiver.acknowledge(8)
    }

    #[test]
    fn blocks_are_the_newest_first_and_a_duplicate_before_them() {
        // RFC 2018 section 4 and RFC 2883 section 4.
        let mut receiver = Receiver::default();
        for (start, next, sack) in [
            (0, 1000, vec![]),
            (2000, 1000, vec![[2000, 3000]]),
            (4000, 1000, vec![[4000, 5000], [2000, 3000]]),
            (2000, 1000, vec![[2000, 3000], [2000, 3000], [4000, 5000]]),
            (3000, 1000, vec![[2000, 5000]]),
            (0, 1000, vec![[0, 1000], [2000, 5000]]),
            (1000, 5000, vec![]),
        ] {
            let ack = takes(&mut receiver, start);
            assert_eq!((ack.next, ack.sack), (next, sack), "{start}");
        }
    }
}
