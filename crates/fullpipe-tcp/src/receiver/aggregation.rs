//! GRO: packets that arrive within some time are processed together (napi_gro_receive()).

/// Nothing is held back.
const NEVER_NS: u64 = u64::MAX;

/// What GRO holds back.
#[derive(Debug)]
pub(super) struct Aggregation {
    /// For how long; 0: GRO is off.
    hold_ns: u64,
    until_ns: u64,
}

impl Aggregation {
    pub(super) fn new(hold_ns: u64) -> Self {
        Self {
            hold_ns,
            until_ns: NEVER_NS,
        }
    }

    #[inline(always)] // for every packet, as below
    pub(super) fn is_on(&self) -> bool {
        self.hold_ns > 0
    }

    #[inline(always)]
    pub(super) fn is_holding(&self) -> bool {
        self.until_ns != NEVER_NS
    }

    /// When the packets are processed; `u64::MAX`: none are held back.
    #[inline(always)]
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Holds a packet back, with others if there are some.
    pub(super) fn hold(&mut self, now_ns: u64) {
        if !self.is_holding() {
            self.until_ns = now_ns + self.hold_ns;
        }
    }

    /// The packets are processed.
    #[inline(always)]
    pub(super) fn release(&mut self) {
        self.until_ns = NEVER_NS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_held_from_the_first_ones_arrival_on() {
        let mut aggregation = Aggregation::new(100);
        aggregation.hold(1000);
        aggregation.hold(1090);
        assert_eq!(aggregation.until_ns(), 1100);
        aggregation.release();
        assert!(!aggregation.is_holding());
        aggregation.hold(1200);
        assert_eq!(aggregation.until_ns(), 1300);
    }
}
