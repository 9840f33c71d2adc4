//! The past of a variable, as far back as a delay reaches. Memory depends on the longest delay, not
//! on the simulated time.

use std::collections::VecDeque;

/// Every value of the last `reach` steps. Values that are read together are adjacent: with many
/// flows, memory access dominates the time of a step.
#[derive(Default)]
pub(crate) struct Ring<T = f64> {
    values: Vec<T>,
    mask: usize,
}

impl<T: Copy> Ring<T> {
    /// A ring that can be read `reach` steps back from the newest value, holding the value of step 0.
    pub(crate) fn new(reach: usize, initial: T) -> Self {
        let size = (reach + 4).next_power_of_two();
        Self {
            values: vec![initial; size],
            mask: size - 1,
        }
    }

    /// Sets the value of step `n`. Steps are set in order, each once.
    #[inline]
    pub(crate) fn set(&mut self, n: usize, value: T) {
        let slot = n & self.mask;
        self.values[slot] = value;
    }

    /// The value of step `n`.
    #[inline]
    pub(crate) fn get(&self, n: usize) -> T {
        self.values[n & self.mask]
    }

    /// The value `back` steps before step `n`, or of step 0 where that is before the start.
    #[inline]
    pub(crate) fn before(&self, n: usize, back: usize) -> T {
        self.get(n.saturating_sub(back))
    }
}

impl<const N: usize> Ring<[f64; N]> {
    /// The values at a time between two steps; before the start, those of step 0.
    #[inline]
    pub(crate) fn at(&self, time: f64) -> [f64; N] {
        let time = time.max(0.0);
        let step = time as usize;
        let part = time - step as f64;
        let (here, next) = (self.get(step), self.get(step + 1));
        std::array::from_fn(|i| here[i] + part * (next[i] - here[i]))
    }
}

/// The past of a variable that rarely changes, stored as its changes. Reads must not go back
/// in time from one call to the next.
pub(crate) struct Changes {
    starts: VecDeque<u32>,
    values: VecDeque<f64>,
}

impl Changes {
    /// A history that holds the value of step 0.
    pub(crate) fn new(initial: f64) -> Self {
        Self {
            starts: VecDeque::from([0]),
            values: VecDeque::from([initial]),
        }
    }

    /// Sets the value of step `n`.
    #[inline]
    pub(crate) fn set(&mut self, n: usize, value: f64) {
        if self.values.back() != Some(&value) {
            self.starts.push_back(n as u32);
            self.values.push_back(value);
        }
    }

    /// The newest value.
    #[inline]
    pub(crate) fn newest(&self) -> f64 {
        *self
            .values
            .back()
            .expect("holds the value of step 0 at least")
    }

    /// The value of step `n`; drops older values.
    #[inline]
    pub(crate) fn advance_to(&mut self, n: usize) -> f64 {
        while self.starts.len() > 1 && self.starts[1] as usize <= n {
            self.starts.pop_front();
            self.values.pop_front();
        }
        self.values[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_returns_the_value_of_every_step_within_reach() {
        let mut ring = Ring::new(10, 0.0);
        for n in 1..1000 {
            ring.set(n, n as f64);
            for back in 0..=10 {
                assert_eq!(ring.before(n, back), n.saturating_sub(back) as f64);
            }
        }
    }

    #[test]
    fn changes_return_what_a_full_history_would() {
        let value = |n: usize| ((n / 7) % 5) as f64;
        let mut changes = Changes::new(value(0));
        for n in 1..1000_usize {
            changes.set(n, value(n));
            assert_eq!(changes.newest(), value(n));
            assert_eq!(
                changes.advance_to(n.saturating_sub(100)),
                value(n.saturating_sub(100))
            );
        }
    }
}
