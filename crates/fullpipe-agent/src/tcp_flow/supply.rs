//! What the application of a flow has to write. It must never know a socket.

/// Bytes that the application may write, now and in total.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    /// Yet to write; `None`: no limit.
    left_bytes: Option<u64>,
    /// To write now, if the application writes at a rate, by a pattern or in chunks.
    credit_bytes: Option<u64>,
    written_bytes: u64,
}

impl Supply {
    /// An application with an amount, or without; a patient one waits for [`Supply::add_credit`].
    pub(super) fn new(amount_bytes: Option<u64>, is_patient: bool) -> Self {
        Self {
            left_bytes: amount_bytes,
            credit_bytes: is_patient.then_some(0),
            written_bytes: 0,
        }
    }

    /// What it would write now.
    pub(super) fn wanted_bytes(&self) -> u64 {
        let may = self.credit_bytes.unwrap_or(u64::MAX);
        may.min(self.left_bytes.unwrap_or(u64::MAX))
    }

    /// No more than this is left in total.
    pub(super) fn ends_within(&self, bytes: u64) -> bool {
        self.left_bytes.is_some_and(|left| left <= bytes)
    }

    /// An application with an amount has nothing to write now.
    pub(super) fn is_empty(&self) -> bool {
        self.left_bytes.is_some() && self.wanted_bytes() == 0
    }

    /// What has been written.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// TCP took this much.
    pub(super) fn take(&mut self, bytes: u64) {
        self.written_bytes += bytes;
        for budget in [&mut self.left_bytes, &mut self.credit_bytes] {
            *budget = budget.map(|before| before - bytes);
        }
    }

    /// A patient application may write this much more.
    pub(super) fn add_credit(&mut self, bytes: u64) {
        self.credit_bytes = self.credit_bytes.map(|credit| credit + bytes);
    }

    /// It writes as much as TCP takes, or waits for credit, of which it has none.
    pub(super) fn set_patient(&mut self, is_patient: bool) {
        self.credit_bytes = is_patient.then_some(0);
    }

    /// It writes nothing more.
    pub(super) fn stop(&mut self) {
        self.left_bytes = Some(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patient_application_writes_its_credit_and_no_more_than_its_amount() {
        let mut supply = Supply::new(Some(10), true);
        assert_eq!((supply.wanted_bytes(), supply.is_empty()), (0, true));
        supply.add_credit(6);
        supply.take(4);
        assert_eq!((supply.wanted_bytes(), supply.is_empty()), (2, false));
        supply.add_credit(100);
        assert_eq!(supply.wanted_bytes(), 6);
        supply.take(6);
        assert!(supply.is_empty() && supply.ends_within(0));
        assert_eq!(supply.written_bytes(), 10);
    }

    #[test]
    fn an_application_without_an_amount_is_never_empty_and_ends_when_it_stops() {
        let mut supply = Supply::new(None, false);
        assert_eq!(supply.wanted_bytes(), u64::MAX);
        supply.take(1 << 40);
        supply.set_patient(true);
        assert_eq!((supply.wanted_bytes(), supply.is_empty()), (0, false));
        supply.stop();
        assert!(supply.is_empty() && supply.ends_within(0));
        assert_eq!(supply.written_bytes(), 1 << 40);
    }
}
