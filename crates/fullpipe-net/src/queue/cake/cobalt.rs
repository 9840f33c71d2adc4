//! COBALT: CoDel and BLUE side by side, as sch_cake.c has them. CoDel signals to flows that answer;
//! BLUE raises a probability of dropping while a queue overflows, for flows that do not.

use crate::rng::Rng;

/// Square roots up to here come from a table of four Newton steps each (REC_INV_SQRT_CACHE).
const TABLE: usize = 16;
const INV_SQRT: [u32; TABLE] = inverse_square_roots();
/// BLUE's steps: 1/256 up, 1/4096 down (cake_set_rate()).
const STEP_UP: u32 = 1 << 24;
const STEP_DOWN: u32 = 1 << 20;

/// Interval and target for a tin's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Law {
    pub(super) interval_ns: u64,
    pub(super) target_ns: u64,
    /// Serialization of one full packet.
    pub(super) mtu_ns: u64,
}

/// The fate of a packet; both may be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signal {
    pub(super) mark: bool,
    pub(super) drop: bool,
}

/// State of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// 1/sqrt(count) of 2^32. 0 in a queue that never signalled: its first signal comes with the
    /// packet after the first late one, not an interval later (cobalt_vars_init() zeroes it).
    inv_sqrt: u32,
    drop_next_ns: u64,
    blue_changed_ns: u64,
    blue: u32,
    dropping: bool,
}

impl Cobalt {
    /// A packet was dropped because memory was full (cobalt_queue_full()).
    pub(super) fn on_full(&mut self, law: &Law, now_ns: u64) {
        if now_ns - self.blue_changed_ns > law.target_ns {
            self.blue = self.blue.saturating_add(STEP_UP);
            self.blue_changed_ns = now_ns;
        }
        self.dropping = true;
        self.drop_next_ns = now_ns;
        self.count = self.count.max(1);
    }

    /// The queue was empty when it was served (cobalt_queue_empty()).
    pub(super) fn on_empty(&mut self, law: &Law, now_ns: u64) {
        if self.blue > 0 && now_ns - self.blue_changed_ns > law.target_ns {
            self.blue = self.blue.saturating_sub(STEP_DOWN);
            self.blue_changed_ns = now_ns;
        }
        self.dropping = false;
        if self.is_due(now_ns) {
            self.step_to(self.count - 1, law);
        }
    }

    /// Whether nothing of an empty queue's history is left to decay.
    pub(super) fn is_at_rest(&self, now_ns: u64) -> bool {
        self.blue == 0 && self.count == 0 && now_ns >= self.drop_next_ns
    }

    /// Judges a packet that is about to leave (cobalt_should_drop()). `bulk_flows` is 0 but in
    /// ingress mode.
    #[inline]
    pub(super) fn judge(
        &mut self,
        law: &Law,
        now_ns: u64,
        sojourn_ns: u64,
        ecn_capable: bool,
        bulk_flows: u32,
        rng: &mut Rng,
    ) -> Signal {
        let is_late = sojourn_ns > law.target_ns
            && sojourn_ns > law.mtu_ns * u64::from(bulk_flows) * 2
            && sojourn_ns > law.mtu_ns * 4;
        let was_due = self.is_due(now_ns);
        // Whether `now` is past the next signal, as the schedule stood before this call changed it.
        let mut is_past = now_ns > self.drop_next_ns;
        let mut signal = Signal::default();
        if is_late {
            if !self.dropping {
                self.dropping = true;
                self.drop_next_ns = self.after(now_ns, law);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if was_due && self.dropping {
            signal.mark = ecn_capable;
            signal.drop = !ecn_capable;
            self.step_to(self.count.saturating_add(1), law);
            is_past = now_ns > self.drop_next_ns;
        } else if was_due {
            while self.is_due(now_ns) {
                self.step_to(self.count - 1, law);
            }
            is_past = now_ns > self.drop_next_ns;
        }
        if self.blue > 0 && !signal.drop {
            signal.drop = rng.next_u32() < self.blue;
        }
        if self.count == 0 {
            self.drop_next_ns = now_ns + law.interval_ns;
        } else if is_past && !signal.drop {
            self.drop_next_ns = now_ns;
        }
        signal
    }

    fn is_due(&self, now_ns: u64) -> bool {
        self.count > 0 && now_ns >= self.drop_next_ns
    }

    fn step_to(&mut self, count: u32, law: &Law) {
        self.count = count;
        self.inv_sqrt = match INV_SQRT.get(count as usize) {
            Some(&known) => known,
            None => newton_step(self.inv_sqrt, count),
        };
        self.drop_next_ns = self.after(self.drop_next_ns, law);
    }

    /// interval / sqrt(count) later; the interval counts modulo 2^32 ns (reciprocal_scale()).
    fn after(&self, at_ns: u64, law: &Law) -> u64 {
        let interval = law.interval_ns & u64::from(u32::MAX);
        at_ns + ((interval * u64::from(self.inv_sqrt)) >> 32)
    }
}

/// One step of Newton's method towards 1/sqrt(count), of 2^32.
const fn newton_step(inv_sqrt: u32, count: u32) -> u32 {
    let square = ((inv_sqrt as u64) * (inv_sqrt as u64)) >> 32;
    let value = (3u64 << 32).wrapping_sub((count as u64) * square) >> 2;
    (value.wrapping_mul(inv_sqrt as u64) >> (32 - 2 + 1)) as u32
}

const fn inverse_square_roots() -> [u32; TABLE] {
    let mut table = [u32::MAX; TABLE];
    let mut value = u32::MAX;
    let mut count = 1;
    while count < TABLE {
        let mut step = 0;
        while step < 4 {
            value = newton_step(value, count as u32);
            step += 1;
        }
        table[count] = value;
        count += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PARAMS: Law = Law {
        interval_ns: 100 * MS,
        target_ns: 5 * MS,
        mtu_ns: MS / 10,
    };

    #[test]
    fn the_table_holds_reciprocal_square_roots() {
        for (count, &value) in INV_SQRT.iter().enumerate().skip(1) {
            let wanted = 2f64.powi(32) / (count as f64).sqrt();
            assert!((f64::from(value) / wanted - 1.0).abs() < 0.001, "{count}");
        }
        // One step from the neighbour leaves 1.5 times the square of their distance.
        let mut value = INV_SQRT[TABLE - 1];
        for count in TABLE as u32..1000 {
            value = newton_step(value, count);
            let wanted = 2f64.powi(32) / f64::from(count).sqrt();
            assert!((f64::from(value) / wanted - 1.0).abs() < 0.002, "{count}");
        }
    }

    /// Times of drops in a queue whose packets all waited `sojourn_ns`, one packet a ms.
    fn drops(cobalt: &mut Cobalt, from_ns: u64, packets: u64, sojourn_ns: u64) -> Vec<u64> {
        let mut rng = Rng::new(1);
        (0..packets)
            .map(|packet| from_ns + packet * MS)
            .filter(|&now_ns| {
                let signal = cobalt.judge(&PARAMS, now_ns, sojourn_ns, false, 0, &mut rng);
                assert!(!signal.mark);
                signal.drop
            })
            .collect()
    }

    #[test]
    fn signals_of_a_queue_that_stays_late_come_at_intervals_of_the_inverse_square_root() {
        let mut cobalt = Cobalt::default();
        let at = drops(&mut cobalt, 1000 * MS, 1000, 20 * MS);
        // Count is 2 after the first signal.
        for (number, pair) in at.windows(2).enumerate() {
            let gap_ms = (pair[1] - pair[0]) as f64 / MS as f64;
            let wanted_ms = 100.0 / ((number + 2) as f64).sqrt();
            assert!((gap_ms - wanted_ms).abs() <= 1.0, "{number}: {gap_ms}");
        }
        assert_eq!(at.first(), Some(&(1001 * MS)));
    }

    #[test]
    fn a_queue_that_signalled_before_waits_an_interval_first() {
        let mut cobalt = Cobalt::default();
        drops(&mut cobalt, 1000 * MS, 3, 20 * MS);
        // On time for long enough to forget.
        assert!(drops(&mut cobalt, 1003 * MS, 1000, MS).is_empty());
        let at = drops(&mut cobalt, 2003 * MS, 200, 20 * MS);
        assert_eq!(at[0], 2103 * MS);
    }

    #[test]
    fn four_full_packets_may_wait_whatever_the_target() {
        let law = Law {
            mtu_ns: 10 * MS,
            ..PARAMS
        };
        let mut rng = Rng::new(1);
        let mut signals = |sojourn_ns| {
            let mut cobalt = Cobalt::default();
            (0..500u64)
                .filter(|step| {
                    cobalt
                        .judge(&law, (1000 + step) * MS, sojourn_ns, true, 0, &mut rng)
                        .mark
                })
                .count()
        };
        assert_eq!(signals(40 * MS), 0);
        assert!(signals(41 * MS) > 3);
    }

    #[test]
    fn blue_rises_by_a_256th_a_target_while_full_and_falls_by_a_4096th_while_empty() {
        let mut cobalt = Cobalt::default();
        for step in 1..=20u64 {
            cobalt.on_full(&PARAMS, step * 6 * MS);
            cobalt.on_full(&PARAMS, step * 6 * MS + 1);
        }
        assert_eq!(cobalt.blue, 20 * STEP_UP);
        for step in 0..10u64 {
            cobalt.on_empty(&PARAMS, 1000 * MS + step * 6 * MS);
        }
        assert_eq!(cobalt.blue, 20 * STEP_UP - 10 * STEP_DOWN);
        let mut rng = Rng::new(3);
        let dropped = (0..100_000u64)
            .filter(|_| cobalt.judge(&PARAMS, 2000 * MS, 0, true, 0, &mut rng).drop)
            .count();
        let wanted = 100_000.0 * f64::from(cobalt.blue) / 2f64.powi(32);
        assert!((dropped as f64 / wanted - 1.0).abs() < 0.03, "{dropped}");
    }

    /// A tenth of a ms.
    const TENTH: u64 = MS / 10;

    #[test]
    fn signals_and_counts_follow_cobalt_should_drop() {
        // Columns: time in tenths of a ms, whether the packet waited longer than the target, whether it is
        // marked, and then the count and the time of the next signal in us. 100 ms by the table's square root
        // of 2 are 70.6708 ms, of 3 57.7350.
        let mut cobalt = Cobalt::default();
        let mut rng = Rng::new(1);
        for (at, is_late, marked, count, next_us) in [
            (10_000, false, false, 0, 1_100_000), // an activity timeout: an interval
            (10_000, true, false, 1, 1_000_000),  // no square root yet: at once
            (10_000, true, true, 2, 1_070_670),
            (10_706, true, false, 2, 1_070_670),
            (10_707, true, true, 3, 1_128_405),
            // On time: nothing is due, and then one of the counts is forgotten in each of its intervals.
            (11_000, false, false, 3, 1_128_405),
            (11_285, false, false, 2, 1_199_076),
            // Late again: from now on, by the count that is left.
            (11_500, true, false, 2, 1_220_670),
            (12_206, true, false, 2, 1_220_670),
            (12_207, true, true, 3, 1_278_405),
            // On time for long: 2 at 1278.4, 1 at 1349.1, 0 at 1449.1.
            (13_490, false, false, 2, 1_349_076),
            (13_491, false, false, 1, 1_449_076),
            (14_491, false, false, 0, 1_549_100),
        ] {
            let sojourn_ns = if is_late { 5 * MS + 1 } else { 5 * MS };
            let signal = cobalt.judge(&PARAMS, at * TENTH, sojourn_ns, true, 0, &mut rng);
            assert_eq!(
                signal,
                Signal {
                    mark: marked,
                    drop: false
                },
                "{at}"
            );
            assert_eq!(cobalt.count, count, "{at}");
            let next_ns = cobalt.drop_next_ns;
            assert!(next_ns.abs_diff(next_us * 1000) <= 1000, "{at}: {next_ns}");
        }
    }

    #[test]
    fn a_signal_that_is_overdue_moves_to_now_unless_the_packet_is_dropped() {
        // cobalt_should_drop(): "Overload the drop_next field as an activity timeout", if schedule > 0. With a
        // count of 2 that was due long ago: a mark leaves the next one at now, a drop in the past.
        for (ecn_capable, next_ns) in [(true, 2000 * MS), (false, 1_070_670 * 1000)] {
            let mut cobalt = Cobalt {
                count: 1,
                inv_sqrt: INV_SQRT[1],
                drop_next_ns: 1000 * MS,
                dropping: true,
                ..Cobalt::default()
            };
            let mut rng = Rng::new(1);
            let signal = cobalt.judge(&PARAMS, 2000 * MS, 20 * MS, ecn_capable, 0, &mut rng);
            assert_eq!((signal.mark, signal.drop), (ecn_capable, !ecn_capable));
            assert!(
                cobalt.drop_next_ns.abs_diff(next_ns) < 2000,
                "{}",
                cobalt.drop_next_ns
            );
        }
    }

    #[test]
    fn a_packet_is_late_above_the_target_four_mtu_times_and_two_for_each_bulk_flow() {
        let late = |sojourn_ns, mtu_ns, bulk_flows| {
            let mut cobalt = Cobalt::default();
            let law = Law { mtu_ns, ..PARAMS };
            cobalt.judge(
                &law,
                1000 * MS,
                sojourn_ns,
                true,
                bulk_flows,
                &mut Rng::new(1),
            );
            cobalt.dropping
        };
        for (least_ns, mtu_ns, bulk_flows) in [
            (5 * MS, MS, 0),
            (8 * MS, 2 * MS, 1),
            (8 * MS, 2 * MS, 2),
            (12 * MS, 2 * MS, 3),
        ] {
            assert!(
                !late(least_ns, mtu_ns, bulk_flows),
                "{least_ns} {bulk_flows}"
            );
            assert!(
                late(least_ns + 1, mtu_ns, bulk_flows),
                "{least_ns} {bulk_flows}"
            );
        }
    }

    #[test]
    fn a_full_queue_signals_at_once_and_an_empty_one_forgets_when_a_signal_is_due() {
        // cobalt_queue_full() and cobalt_queue_empty(). BLUE moves when more than the target has passed.
        let mut cobalt = Cobalt::default();
        cobalt.on_full(&PARAMS, 5 * MS);
        assert_eq!((cobalt.blue, cobalt.count, cobalt.dropping), (0, 1, true));
        assert_eq!(cobalt.drop_next_ns, 5 * MS);
        cobalt.count = 3;
        cobalt.on_full(&PARAMS, 5 * MS + 1);
        assert_eq!((cobalt.blue, cobalt.count), (STEP_UP, 3));
        cobalt.on_full(&PARAMS, 10 * MS + 1);
        assert_eq!(cobalt.blue, STEP_UP);
        cobalt.on_full(&PARAMS, 10 * MS + 2);
        assert_eq!(
            (cobalt.blue, cobalt.drop_next_ns),
            (2 * STEP_UP, 10 * MS + 2)
        );
        cobalt.drop_next_ns += 1;
        cobalt.on_empty(&PARAMS, 10 * MS + 2);
        assert!(!cobalt.dropping && cobalt.count == 3, "not due yet");
        cobalt.on_empty(&PARAMS, 10 * MS + 3);
        assert_eq!((cobalt.count, cobalt.blue), (2, 2 * STEP_UP));
        assert!(cobalt.drop_next_ns.abs_diff(80 * MS + 670_849) < 10);
        cobalt.on_empty(&PARAMS, 15 * MS + 2);
        assert_eq!(cobalt.blue, 2 * STEP_UP);
        cobalt.on_empty(&PARAMS, 15 * MS + 3);
        assert_eq!(cobalt.blue, 2 * STEP_UP - STEP_DOWN);
        assert!(!cobalt.is_at_rest(1000 * MS));
        // An empty queue without BLUE's drops does not postpone its next step up.
        let mut idle = Cobalt::default();
        idle.on_empty(&PARAMS, 100 * MS);
        idle.on_full(&PARAMS, 101 * MS);
        assert_eq!(idle.blue, STEP_UP);
        for (blue, count, now_ns, expected) in [
            (0, 0, 7, true),
            (0, 0, 6, false),
            (1, 0, 7, false),
            (0, 1, 7, false),
        ] {
            let resting = Cobalt {
                blue,
                count,
                drop_next_ns: 7,
                ..Cobalt::default()
            };
            assert_eq!(
                resting.is_at_rest(now_ns),
                expected,
                "{blue} {count} {now_ns}"
            );
        }
    }
}
