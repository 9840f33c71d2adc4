//! Sizes of flows.

use fullpipe_net::Rng;
use fullpipe_plan::Sizes;

use crate::draw::uniform;

/// Probability 1 in a plan's points.
const CERTAIN: f64 = 1e9;

/// One size in bytes, at least 1.
pub(crate) fn draw(sizes: &Sizes, rng: &mut Rng) -> u64 {
    let bytes = match sizes {
        Sizes::Fixed { bytes } => *bytes,
        Sizes::List { bytes } => bytes[rng.up_to(bytes.len() as u64 - 1) as usize],
        Sizes::Cdf { points } => at_probability(points, uniform(rng) * CERTAIN),
        Sizes::Pareto {
            shape_milli,
            min_bytes,
            max_bytes,
        } => pareto(
            uniform(rng),
            f64::from(*shape_milli) / 1000.0,
            *min_bytes as f64,
            *max_bytes as f64,
        ) as u64,
    };
    bytes.max(1)
}

/// The size at a probability (in 10^-9) of a CDF, by linear interpolation.
fn at_probability(points: &[(u64, u64)], probability: f64) -> u64 {
    let above = points.partition_point(|&(_, p)| (p as f64) < probability);
    let (high, high_p) = points[above.min(points.len() - 1)];
    if above == 0 || high_p as f64 <= probability {
        return high;
    }
    let (low, low_p) = points[above - 1];
    let share = (probability - low_p as f64) / (high_p - low_p) as f64;
    low + (share * (high - low) as f64) as u64
}

/// A Pareto distribution of shape `a` cut off at `min` and `max`, at a probability.
pub(crate) fn pareto(probability: f64, a: f64, min: f64, max: f64) -> f64 {
    let kept = 1.0 - libm::pow(min / max, a);
    min / libm::pow(1.0 - probability * kept, 1.0 / a)
}

/// Why a distribution cannot be drawn from.
pub(crate) fn check(sizes: &Sizes) -> Result<(), String> {
    let sound = match sizes {
        Sizes::Fixed { bytes } => *bytes > 0,
        Sizes::List { bytes } => !bytes.is_empty(),
        Sizes::Cdf { points } => {
            let rises = points
                .windows(2)
                .all(|p| p[0].0 <= p[1].0 && p[0].1 <= p[1].1);
            rises && points.last().is_some_and(|last| last.1 as f64 == CERTAIN)
        }
        Sizes::Pareto {
            shape_milli,
            min_bytes,
            max_bytes,
        } => *shape_milli > 0 && 0 < *min_bytes && min_bytes < max_bytes,
    };
    sound
        .then_some(())
        .ok_or_else(|| "sizes: no distribution".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdf_is_followed_by_straight_lines_and_steps_where_a_size_stands_twice() {
        let points = [
            (0, 0),
            (100, 500_000_000),
            (100, 800_000_000),
            (200, 1_000_000_000),
        ];
        for (probability, bytes) in [(0.25, 50), (0.5, 100), (0.7, 100), (0.9, 150), (1.0, 200)] {
            assert_eq!(at_probability(&points, probability * CERTAIN), bytes);
        }
    }

    #[test]
    fn pareto_keeps_its_bounds_and_its_tail() {
        assert!((pareto(0.0, 1.2, 1e3, 1e6) - 1e3).abs() < 1e-6);
        assert!((pareto(1.0, 1.2, 1e3, 1e6) - 1e6).abs() < 1e-3);
        // P(S > x) = ((min/x)^a - (min/max)^a) / (1 - (min/max)^a) of a distribution cut off at max.
        let cut = 1e-3f64.powf(1.2);
        let above = (0.1f64.powf(1.2) - cut) / (1.0 - cut);
        assert!((pareto(1.0 - above, 1.2, 1e3, 1e6) - 1e4).abs() < 1e-3);
    }
}
