//! Which queue loses a packet when memory is full: a heap of all queues by their backlogs, as in sch_cake.c.
//! Of equally long queues the one that has been on top stays there (cake_heapify(), cake_heapify_up()).

use super::hash::QUEUES;

/// CAKE_MAX_TINS
const MAX_TINS: usize = 8;
const SIZE: usize = MAX_TINS * QUEUES;
/// The heap is kept in order for so many departures after the last overflow (q->overflow_timeout).
const KEPT_DEPARTURES: u32 = 65_535;

/// The heap, whose entries are numbers of queues.
#[derive(Debug)]
pub(super) struct Overflow {
    heap: Vec<u16>,
    /// The place of each queue in it.
    places: Vec<u16>,
    departures_left: u32,
}

impl Overflow {
    pub(super) fn new() -> Self {
        let all: Vec<u16> = (0..SIZE).map(|queue| queue as u16).collect();
        Self {
            heap: all.clone(),
            places: all,
            departures_left: 0,
        }
    }

    /// The tin and the queue that are longest.
    pub(super) fn longest(&mut self, backlog: impl Fn(usize, usize) -> u64) -> (usize, usize) {
        if self.departures_left == 0 {
            for place in (0..SIZE / 2).rev() {
                self.sink(place, &backlog);
            }
        }
        self.departures_left = KEPT_DEPARTURES;
        split(self.heap[0])
    }

    /// A queue has become longer.
    #[inline]
    pub(super) fn grown(
        &mut self,
        tin: usize,
        queue: usize,
        backlog: impl Fn(usize, usize) -> u64,
    ) {
        if self.departures_left > 0 {
            self.rise(self.place(tin, queue), &backlog);
        }
    }

    /// A queue has become shorter.
    #[inline]
    pub(super) fn shrunk(
        &mut self,
        tin: usize,
        queue: usize,
        backlog: impl Fn(usize, usize) -> u64,
    ) {
        if self.departures_left > 0 {
            self.sink(self.place(tin, queue), &backlog);
        }
    }

    /// A packet has left.
    #[inline]
    pub(super) fn departed(&mut self) {
        self.departures_left = self.departures_left.saturating_sub(1);
    }

    fn place(&self, tin: usize, queue: usize) -> usize {
        self.places[queue % QUEUES * MAX_TINS + tin].into()
    }

    fn backlog_at(&self, place: usize, backlog: &impl Fn(usize, usize) -> u64) -> u64 {
        let (tin, queue) = split(self.heap[place]);
        backlog(tin, queue)
    }

    fn sink(&mut self, place: usize, backlog: &impl Fn(usize, usize) -> u64) {
        let mut place = place;
        loop {
            let (mut most, mut bytes) = (place, self.backlog_at(place, backlog));
            for child in [2 * place + 1, 2 * place + 2] {
                if child < SIZE && self.backlog_at(child, backlog) > bytes {
                    (most, bytes) = (child, self.backlog_at(child, backlog));
                }
            }
            if most == place {
                return;
            }
            self.swap(place, most);
            place = most;
        }
    }

    fn rise(&mut self, place: usize, backlog: &impl Fn(usize, usize) -> u64) {
        let mut place = place;
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.backlog_at(place, backlog) <= self.backlog_at(parent, backlog) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[usize::from(self.heap[one])] = one as u16;
        self.places[usize::from(self.heap[other])] = other as u16;
    }
}

/// Tin and queue of a number.
fn split(number: u16) -> (usize, usize) {
    (
        usize::from(number) % MAX_TINS,
        usize::from(number) / MAX_TINS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Backlogs of some queues of tin 1.
    fn of(backlogs: &[u64]) -> impl Fn(usize, usize) -> u64 + '_ {
        |tin, queue| match tin {
            1 => backlogs.get(queue).copied().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn the_longest_queue_is_on_top_and_one_that_draws_level_does_not_displace_it() {
        let mut overflow = Overflow::new();
        assert_eq!(overflow.longest(of(&[5, 9, 7])), (1, 1));
        overflow.grown(1, 2, of(&[5, 9, 9]));
        assert_eq!(overflow.longest(of(&[5, 9, 9])), (1, 1));
        overflow.shrunk(1, 1, of(&[5, 8, 9]));
        assert_eq!(overflow.longest(of(&[5, 8, 9])), (1, 2));
        overflow.grown(1, 0, of(&[10, 8, 9]));
        assert_eq!(overflow.longest(of(&[10, 8, 9])), (1, 0));
    }

    #[test]
    fn order_is_made_anew_long_after_the_last_overflow() {
        let mut overflow = Overflow::new();
        assert_eq!(overflow.longest(of(&[5, 9])), (1, 1));
        for _ in 0..KEPT_DEPARTURES {
            overflow.departed();
        }
        overflow.grown(1, 0, of(&[20, 9]));
        assert_eq!(overflow.longest(of(&[20, 9])), (1, 0));
    }
}
