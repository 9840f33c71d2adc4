//! CAKE's estimate of the capacity above it, from the gaps between arriving packets (sch_cake.c,
//! cake_enqueue(), CAKE_FLAG_AUTORATE_INGRESS).

const NS_PER_S: u64 = 1_000_000_000;
/// Least time between two changes of the bandwidth.
const HOLD_NS: u64 = 250_000_000;

#[derive(Debug, Default)]
pub(super) struct Autorate {
    last_ns: u64,
    mean_gap_ns: u64,
    window_since_ns: u64,
    window_bytes: u64,
    /// Bytes a second.
    peak: u64,
    changed_ns: u64,
}

impl Autorate {
    /// A packet arrived. Returns the new bandwidth, if it changes.
    pub(super) fn on_arrival(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        self.window_bytes += bytes;
        let gap_ns = (now_ns - self.last_ns).min(NS_PER_S);
        self.last_ns = now_ns;
        self.mean_gap_ns = faster_up(self.mean_gap_ns, gap_ns);
        // Within a burst the rate says nothing.
        if gap_ns <= self.mean_gap_ns {
            return None;
        }
        let window_ns = now_ns - self.window_since_ns;
        let rate = u128::from(self.window_bytes) * u128::from(NS_PER_S) / u128::from(window_ns);
        self.peak = faster_up(self.peak, u64::try_from(rate).unwrap_or(u64::MAX));
        self.window_bytes = 0;
        self.window_since_ns = now_ns;
        if now_ns <= self.changed_ns + HOLD_NS {
            return None;
        }
        self.changed_ns = now_ns;
        Some((self.peak / 16) * 15 + (self.peak % 16) * 15 / 16)
    }
}

/// A moving average that rises by a quarter of the difference and falls by a 256th.
fn faster_up(mean: u64, sample: u64) -> u64 {
    let shift = if sample > mean { 2 } else { 8 };
    mean - (mean >> shift) + (sample >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_becomes_15_sixteenths_of_a_steady_arrival_rate() {
        let mut autorate = Autorate::default();
        let (mut now_ns, mut set) = (0, Vec::new());
        // 10 Mbit/s with gaps that alternate, as bursts of two would have.
        for packet in 0..20_000u64 {
            now_ns += if packet % 2 == 0 { 400_000 } else { 2_000_000 };
            set.extend(autorate.on_arrival(now_ns, 1500).map(|rate| (now_ns, rate)));
        }
        let last = set.last().expect("the window of 24 s is long enough").1;
        assert!(
            (last as f64 / (1_250_000.0 * 15.0 / 16.0) - 1.0).abs() < 0.02,
            "{last}"
        );
        assert!(set.windows(2).all(|pair| pair[1].0 - pair[0].0 > HOLD_NS));
    }
}
