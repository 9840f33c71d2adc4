//! Packets between `snd_una` and `snd_nxt`: what was sent, sacked, lost, sent again; and their
//! order of sending (Linux's retransmission queue and its tsorted list).

/// No packet.
pub(crate) const NIL: u32 = u32::MAX;

pub(crate) const SACKED: u8 = 1;
pub(crate) const LOST: u8 = 2;
/// The retransmission is in flight.
pub(crate) const RETRANS: u8 = 4;
pub(crate) const EVER_RETRANS: u8 = 8;
/// Sent while application-limited.
pub(crate) const APP_LIMITED: u8 = 16;
const LISTED: u8 = 32;
/// Taken for lost by a timeout, which Linux leaves in the order of sending.
pub(crate) const TIMED_OUT: u8 = 64;

/// One packet's record (Linux tcp_skb_cb.tx and sk_buff.skb_mstamp_ns).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// When it was last sent.
    pub(crate) at_ns: u64,
    /// Send time of the packet that began its rate sample.
    pub(crate) first_tx_us: u64,
    /// When `delivered` last grew before it was sent; 0: its sample was taken.
    pub(crate) delivered_us: u64,
    pub(crate) delivered: u32,
    pub(crate) delivered_ce: u32,
    /// The how-manieth transmission it was, wraps. Linux compares times of sending, which its
    /// clock keeps apart; simulated packets may leave at one time.
    pub(crate) order: u32,
    /// In flight once the whole burst that it belongs to was sent (Google's tx.in_flight).
    pub(crate) burst_inflight: u32,
    /// Packets lost before it was sent (Google's tx.lost).
    pub(crate) lost: u32,
    prev: u32,
    next: u32,
    /// Packets of its burst that were sent after it.
    pub(crate) behind: u16,
    pub(crate) flags: u8,
}

/// A ring indexed by packet number, and a list through it in the order of sending.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    ring: Vec<Sent>,
    head: u32,
    tail: u32,
    transmissions: u32,
}

impl Scoreboard {
    pub(crate) fn new() -> Self {
        Self {
            ring: vec![Sent::default(); 64],
            head: NIL,
            tail: NIL,
            transmissions: 0,
        }
    }

    /// Makes room for `count` packets from `first` on, `from` being the oldest that is kept.
    pub(crate) fn reserve(&mut self, from: u32, first: u32, count: u32) {
        let need = (first + count - from) as usize;
        if need > self.ring.len() {
            self.grow(from, first, need);
        }
    }

    #[inline(never)]
    fn grow(&mut self, from: u32, first: u32, need: usize) {
        let old = std::mem::take(&mut self.ring);
        let mask = old.len() - 1;
        self.ring = vec![Sent::default(); need.next_power_of_two()];
        let new_mask = self.ring.len() - 1;
        for number in from..first {
            self.ring[number as usize & new_mask] = old[number as usize & mask];
        }
    }

    pub(crate) fn get(&self, number: u32) -> &Sent {
        let mask = self.ring.len() - 1;
        &self.ring[number as usize & mask]
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Sent {
        let mask = self.ring.len() - 1;
        &mut self.ring[number as usize & mask]
    }

    /// The packet sent longest ago that is neither delivered nor marked lost.
    pub(crate) fn oldest(&self) -> u32 {
        self.head
    }

    /// The one sent after it.
    pub(crate) fn after(&self, number: u32) -> u32 {
        self.get(number).next
    }

    /// A packet is sent for the first time, and there is room for it. Its record still says what is left
    /// of another packet's, flags apart.
    #[inline]
    pub(crate) fn sent_first(&mut self, number: u32) -> &mut Sent {
        self.get_mut(number).flags = 0;
        self.newest(number)
    }

    /// A packet is sent again.
    pub(crate) fn sent_again(&mut self, number: u32) -> &mut Sent {
        self.unlink(number);
        self.get_mut(number).flags |= EVER_RETRANS;
        self.newest(number)
    }

    /// A packet outside the order of sending becomes the newest transmission.
    fn newest(&mut self, number: u32) -> &mut Sent {
        self.transmissions = self.transmissions.wrapping_add(1);
        let order = self.transmissions;
        let record = self.append(number);
        record.order = order;
        record
    }

    fn append(&mut self, number: u32) -> &mut Sent {
        let tail = self.tail;
        let record = self.get_mut(number);
        record.flags |= LISTED;
        record.prev = tail;
        record.next = NIL;
        if tail == NIL {
            self.head = number;
        } else {
            self.get_mut(tail).next = number;
        }
        self.tail = number;
        self.get_mut(number)
    }

    /// Puts what timeouts took out of the order of sending back to its place.
    pub(crate) fn restore_timed_out(&mut self, from: u32, to: u32) {
        if (from..to).all(|number| self.get(number).flags & TIMED_OUT == 0) {
            return;
        }
        let is_out = |flags: u8| flags & (LISTED | TIMED_OUT) != 0 && flags & SACKED == 0;
        let mut out: Vec<u32> = (from..to)
            .filter(|&number| is_out(self.get(number).flags))
            .collect();
        let newest = self.transmissions;
        out.sort_by_key(|&number| std::cmp::Reverse(newest.wrapping_sub(self.get(number).order)));
        for number in out {
            self.get_mut(number).flags &= !TIMED_OUT;
            self.unlink(number);
            self.append(number);
        }
    }

    /// Takes a packet out of the order of sending.
    #[inline]
    pub(crate) fn unlink(&mut self, number: u32) {
        let record = self.get_mut(number);
        if record.flags & LISTED == 0 {
            return;
        }
        record.flags &= !LISTED;
        let (prev, next) = (record.prev, record.next);
        if prev == NIL {
            self.head = next;
        } else {
            self.get_mut(prev).next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            self.get_mut(next).prev = prev;
        }
    }
}

/// Whether the transmission `a` was made after `b`.
pub(crate) fn is_later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
