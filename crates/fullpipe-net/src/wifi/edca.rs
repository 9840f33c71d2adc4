//! Enhanced distributed channel access (IEEE 802.11-2020, 10.23.2). One `Edcaf` is the contention of one
//! access category at one node. Knows no frames.

use super::params::WifiAccess;
use crate::rng::Rng;

/// Access category of a packet by its DSCP: RFC 8325 section 4 as Linux's cfg80211_classify8021d()
/// has it since 6.8, and the user priorities' categories of 802.11 table 10-1. 0 BK, 1 BE, 2 VI,
/// 3 VO.
pub fn category_of_dscp(dscp: u8) -> usize {
    let priority = match dscp {
        10 | 12 | 14 | 16 => 0,
        18 | 20 | 22 => 3,
        24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 => 4,
        44 | 46 => 6,
        48 => 7,
        other => other >> 3,
    };
    [1, 0, 0, 1, 2, 2, 3, 3][usize::from(priority & 7)]
}

/// The contention of one category at one node.
#[derive(Clone, Debug)]
pub(crate) struct Edcaf {
    aifs_ns: u64,
    slot_ns: u64,
    cw_min: u32,
    cw_max: u32,
    cw: u32,
    /// Slots left to count once the medium has been idle for AIFS.
    slots: u64,
    /// Since when a frame waits; `None`: none does.
    pub(crate) wants_from_ns: Option<u64>,
}

impl Edcaf {
    pub(crate) fn new(access: &WifiAccess, sifs_ns: u64, slot_ns: u64) -> Self {
        Self {
            aifs_ns: sifs_ns + u64::from(access.aifsn) * slot_ns,
            slot_ns,
            cw_min: access.cw_min,
            cw_max: access.cw_max,
            cw: access.cw_min,
            slots: 0,
            wants_from_ns: None,
        }
    }

    /// When it sends if the medium, idle since `idle_from_ns`, stays idle. A frame that arrives after the
    /// backoff ended is sent at the next slot boundary (10.23.2.4).
    pub(crate) fn access_ns(&self, idle_from_ns: u64) -> Option<u64> {
        let wants_ns = self.wants_from_ns?;
        let aifs_end_ns = idle_from_ns + self.aifs_ns;
        let at_ns = aifs_end_ns + self.slots * self.slot_ns;
        if at_ns >= wants_ns {
            return Some(at_ns);
        }
        let slots = (wants_ns - aifs_end_ns).div_ceil(self.slot_ns);
        Some(aifs_end_ns + slots * self.slot_ns)
    }

    /// Stops the countdown at another frame. Counted slots stay counted, and the busy time counts as one slot
    /// if AIFS had passed.
    pub(crate) fn freeze(&mut self, idle_from_ns: u64, noticed_ns: u64) {
        if self.slots == 0 {
            return;
        }
        let aifs_end_ns = idle_from_ns.saturating_add(self.aifs_ns);
        if let Some(counted_ns) = noticed_ns.checked_sub(aifs_end_ns) {
            let counted = counted_ns / self.slot_ns + 1;
            self.slots = self.slots.saturating_sub(counted);
        }
    }

    /// A frame arrived. If the medium is busy and no backoff is pending, one begins.
    pub(crate) fn want(&mut self, now_ns: u64, busy: bool, rng: &mut Rng) {
        if self.wants_from_ns.is_none() {
            self.wants_from_ns = Some(now_ns);
            if busy && self.slots == 0 {
                self.draw(rng);
            }
        }
    }

    pub(crate) fn succeeded(&mut self, rng: &mut Rng) {
        self.cw = self.cw_min;
        self.draw(rng);
    }

    pub(crate) fn failed(&mut self, rng: &mut Rng) {
        self.cw = (2 * self.cw + 1).min(self.cw_max);
        self.draw(rng);
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.slots = rng.up_to(u64::from(self.cw));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::access;
    use super::*;

    #[test]
    fn classes_follow_rfc_8325_as_linux_has_it() {
        // CS0, CS1, AF21, AF41, CS5, EF, CS6.
        let categories = [0, 8, 18, 34, 40, 46, 48].map(category_of_dscp);
        assert_eq!(categories, [1, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn arbitration_spaces_are_43_79_34_and_34_us_at_5_ghz() {
        let waits = access(65_535).map(|access| {
            let mut edcaf = Edcaf::new(&access, 16_000, 9_000);
            edcaf.wants_from_ns = Some(0);
            edcaf.access_ns(0).unwrap()
        });
        assert_eq!(waits, [79_000, 43_000, 34_000, 34_000]);
    }

    #[test]
    fn the_window_doubles_to_its_maximum_and_returns() {
        let mut rng = Rng::new(1);
        let mut edcaf = Edcaf::new(&access(0)[1], 16_000, 9_000);
        let mut windows = Vec::new();
        for _ in 0..8 {
            edcaf.failed(&mut rng);
            windows.push(edcaf.cw);
        }
        assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 1023, 1023]);
        edcaf.succeeded(&mut rng);
        assert_eq!(edcaf.cw, 15);
    }

    #[test]
    fn a_busy_medium_counts_one_slot_and_none_before_aifs() {
        let mut edcaf = Edcaf::new(&access(0)[1], 16_000, 9_000);
        edcaf.slots = 10;
        edcaf.freeze(0, 34_000);
        assert_eq!(edcaf.slots, 10);
        edcaf.freeze(0, 43_000 + 2 * 9_000);
        assert_eq!(edcaf.slots, 7);
    }

    #[test]
    fn a_late_frame_goes_at_the_next_slot_boundary() {
        let mut edcaf = Edcaf::new(&access(0)[1], 16_000, 9_000);
        edcaf.wants_from_ns = Some(100_000);
        assert_eq!(edcaf.access_ns(0), Some(43_000 + 7 * 9_000));
    }

    #[test]
    fn each_codepoint_has_the_category_of_rfc_8325() {
        // Section 4.3, table: EF 46 and VA 44, CS6 48, CS7 56 voice; AF4x, CS4, AF3x, CS3, CS5 video; AF2x, AF1x,
        // CS2 and CS0 best effort; CS1 background. Others by their first three bits.
        let mut expected = [1; 64];
        for (dscps, category) in [
            (8..16, 0),
            (16..24, 0),
            (24..32, 1),
            (32..48, 2),
            (48..64, 3),
        ] {
            expected[dscps].fill(category);
        }
        for (dscp, category) in [
            (10, 1),
            (12, 1),
            (14, 1),
            (16, 1),
            (18, 1),
            (20, 1),
            (22, 1),
            (24, 2),
            (26, 2),
            (28, 2),
            (30, 2),
            (44, 3),
            (46, 3),
        ] {
            expected[dscp] = category;
        }
        for (dscp, category) in expected.into_iter().enumerate() {
            assert_eq!(category_of_dscp(dscp as u8), category, "DSCP {dscp}");
        }
    }

    #[test]
    fn a_frame_waits_for_its_slots_behind_aifs() {
        // AIFS 43 us, slots of 9 us: three are left. One that wants to send later takes the next boundary.
        let mut edcaf = Edcaf::new(&access(0)[1], 16_000, 9_000);
        assert_eq!(edcaf.access_ns(0), None);
        edcaf.slots = 3;
        for (wants_us, at_us) in [(0, 70), (70, 70), (71, 79), (79, 79), (80, 88)] {
            edcaf.wants_from_ns = Some(wants_us * 1000);
            assert_eq!(edcaf.access_ns(0), Some(at_us * 1000), "{wants_us}");
            assert_eq!(edcaf.access_ns(5_000_000), Some(5_070_000));
        }
        // Before the end of AIFS nothing counts, at it one slot, and never more than there are.
        for (noticed_us, left) in [(42, 3), (43, 2), (51, 2), (52, 1), (100, 0)] {
            let mut frozen = edcaf.clone();
            frozen.freeze(0, noticed_us * 1000);
            assert_eq!(frozen.slots, left, "{noticed_us}");
        }
    }

    #[test]
    fn a_backoff_begins_only_where_the_medium_is_busy_and_none_is_pending() {
        let access = WifiAccess {
            cw_min: 1023,
            ..access(0)[1]
        };
        for (slots, busy, draws) in [(0, true, true), (0, false, false), (5, true, false)] {
            let mut edcaf = Edcaf::new(&access, 16_000, 9_000);
            edcaf.slots = slots;
            edcaf.want(7, busy, &mut Rng::new(1));
            assert_eq!(edcaf.slots != slots, draws, "{slots} {busy}");
            edcaf.want(9, true, &mut Rng::new(2));
            assert_eq!(edcaf.wants_from_ns, Some(7));
        }
    }
}
