//! A timer wheel for later events: a ring of time slots, each an unsorted list that is sorted when its time
//! comes. The cost of an event does not depend on their number. Must never know what an event is.

use std::collections::BTreeMap;

use super::event::Pending;

/// A slot lasts 2^15 ns, so the ring spans 0.13 s: timeouts are due later.
const SLOT_SHIFT: u32 = 15;
const RING_SHIFT: u32 = 12;
const SLOTS: usize = 1 << RING_SHIFT;
/// Up to this many events are inserted into the open slot in order.
const FEW: usize = 64;
const WORD: usize = u64::BITS as usize;
/// No event.
const NIL: u32 = u32::MAX;

/// An event in the list of its slot.
#[derive(Debug)]
struct Node {
    pending: Pending,
    next: u32,
}

/// Events beyond the ring that fall into one span of its length.
#[derive(Debug)]
struct Span {
    first_slot: u64,
    events: Vec<Pending>,
}

/// Events, ordered by slot.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Sorted events of the open slot and a few of slots before it; the next one is last.
    open: Vec<Pending>,
    open_slot: u64,
    /// There are events in slots before the open one.
    is_behind: bool,
    /// The first event of each slot of the ring, and a bit for each slot that has one.
    heads: Vec<u32>,
    occupied: [u64; SLOTS / WORD],
    nodes: Vec<Node>,
    free: u32,
    /// Events that were beyond the ring, by their spans.
    far: BTreeMap<u64, Span>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            open_slot: 0,
            is_behind: false,
            heads: vec![NIL; SLOTS],
            occupied: [0; SLOTS / WORD],
            nodes: Vec::new(),
            free: NIL,
            far: BTreeMap::new(),
        }
    }
}

fn slot(pending: &Pending) -> u64 {
    pending.at_ns >> SLOT_SHIFT
}

impl Wheel {
    /// Adds an event. `now_ns` is a lower bound for all events, this one included.
    pub(crate) fn push(&mut self, now_ns: u64, pending: Pending) {
        let slot = slot(&pending);
        let comes_before = slot < self.open_slot && !self.is_behind && self.open.len() < FEW;
        if !self.open.is_empty() && (comes_before || slot == self.open_slot) {
            // The greatest event is due first.
            let place = self.open.partition_point(|other| *other < pending);
            self.open.insert(place, pending);
            return;
        }
        self.is_behind |= slot < self.open_slot;
        self.put(now_ns, slot, pending);
    }

    fn put(&mut self, now_ns: u64, slot: u64, pending: Pending) {
        if slot - (now_ns >> SLOT_SHIFT) < SLOTS as u64 {
            self.link(slot as usize % SLOTS, pending);
        } else {
            let span = self.far.entry(slot >> RING_SHIFT).or_insert(Span {
                first_slot: slot,
                events: Vec::new(),
            });
            span.first_slot = span.first_slot.min(slot);
            span.events.push(pending);
        }
    }

    fn link(&mut self, place: usize, pending: Pending) {
        let node = Node {
            pending,
            next: self.heads[place],
        };
        self.occupied[place / WORD] |= 1 << (place % WORD);
        match self.nodes.get_mut(self.free as usize) {
            Some(unused) => {
                self.heads[place] = self.free;
                self.free = std::mem::replace(unused, node).next;
            }
            None => {
                self.heads[place] = self.nodes.len() as u32;
                self.nodes.push(node);
            }
        }
    }

    /// A lower bound for all events; `u64::MAX`: there are none.
    pub(crate) fn none_before_ns(&self, now_ns: u64) -> u64 {
        match self.open.last() {
            Some(first) if !self.is_behind => first.at_ns,
            _ => self
                .first_slot(now_ns)
                .map_or(u64::MAX, |slot| slot << SLOT_SHIFT),
        }
    }

    /// Takes the event that is due first.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Pending> {
        if self.open.is_empty() || self.is_behind {
            while let Some(pending) = self.open.pop() {
                // An earlier slot comes first.
                self.put(now_ns, slot(&pending), pending);
            }
            let slot = self.first_slot(now_ns)?;
            if let Some(only) = self.only(now_ns, slot) {
                return Some(only);
            }
            self.open_slot(now_ns, slot);
        }
        self.open.pop()
    }

    /// Takes the event of the first slot if it is its only one, which needs no sorting. No slot is open.
    #[inline]
    fn only(&mut self, now_ns: u64, slot: u64) -> Option<Pending> {
        let far = self.far.first_key_value();
        let comes_near = far.is_some_and(|(&span, _)| span <= slot >> RING_SHIFT);
        if comes_near || slot - (now_ns >> SLOT_SHIFT) >= SLOTS as u64 {
            return None;
        }
        let place = slot as usize % SLOTS;
        let first = self.heads[place];
        let node = self.nodes.get_mut(first as usize)?;
        if node.next != NIL {
            return None;
        }
        node.next = std::mem::replace(&mut self.free, first);
        let pending = node.pending;
        self.heads[place] = NIL;
        self.occupied[place / WORD] &= !(1 << (place % WORD));
        Some(pending)
    }

    /// The first slot with events while none is open.
    fn first_slot(&self, now_ns: u64) -> Option<u64> {
        let far = self.far.first_key_value().map(|(_, span)| span.first_slot);
        let near = self.first_of_ring(now_ns >> SLOT_SHIFT);
        near.into_iter().chain(far).min()
    }

    fn first_of_ring(&self, now_slot: u64) -> Option<u64> {
        let begin = now_slot as usize % SLOTS;
        let words = self.occupied.len();
        // The first word is examined twice: from the first place on, and up to it.
        for step in 0..=words {
            let word = (begin / WORD + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (begin % WORD);
            }
            if bits != 0 {
                let place = word * WORD + bits.trailing_zeros() as usize;
                let ahead = (place + SLOTS - begin) % SLOTS;
                return Some(now_slot + ahead as u64);
            }
        }
        None
    }

    fn open_slot(&mut self, now_ns: u64, first: u64) {
        let place = first as usize % SLOTS;
        if first - (now_ns >> SLOT_SHIFT) < SLOTS as u64 {
            let mut at = std::mem::replace(&mut self.heads[place], NIL);
            self.occupied[place / WORD] &= !(1 << (place % WORD));
            while let Some(node) = self.nodes.get_mut(at as usize) {
                self.open.push(node.pending);
                let next = std::mem::replace(&mut node.next, self.free);
                self.free = std::mem::replace(&mut at, next);
            }
        }
        self.come_near(now_ns, first);
        self.open.sort_unstable();
        self.open_slot = first;
        self.is_behind = false;
    }

    /// Slot `first` opens. If events that were beyond the ring are in its span, moves those of the slot into
    /// the open one, and the others into the ring, which takes all of them once the time is in the span.
    fn come_near(&mut self, now_ns: u64, first: u64) {
        let Some(entry) = self.far.first_entry() else {
            return;
        };
        if *entry.key() > first >> RING_SHIFT {
            return;
        }
        for pending in entry.remove().events {
            match slot(&pending) {
                slot if slot == first => self.open.push(pending),
                slot => self.put(now_ns, slot, pending),
            }
        }
    }
}
