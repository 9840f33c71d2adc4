//! Means, quantiles and ratios; NaN where there is nothing.

/// NaN where there is nothing below.
pub(crate) fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 {
        above / below
    } else {
        f64::NAN
    }
}

/// Jain's index of those values that are known (not NaN).
pub fn jain(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values.into_iter()).jain()
}

/// Values that are known, in rising order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    sorted: Vec<f64>,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { sorted }
    }

    pub(crate) fn count(&self) -> f64 {
        self.sorted.len() as f64
    }

    pub(crate) fn mean(&self) -> f64 {
        ratio(self.sum(|value| value), self.count())
    }

    /// With linear interpolation between ranks (NumPy's default; method 7 of Hyndman, Fan, "Sample
    /// Quantiles in Statistical Packages", 1996).
    fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.sorted.len().checked_sub(1) else {
            return f64::NAN;
        };
        let place = last as f64 * share;
        let low = self.sorted[place.floor() as usize];
        let high = self.sorted[place.ceil() as usize];
        match place.fract() {
            // The difference of two infinite values does not exist.
            _ if low == high => low,
            0.0 => low,
            between => low + (high - low) * between,
        }
    }

    pub(crate) fn p5(&self) -> f64 {
        self.quantile(0.05)
    }

    pub(crate) fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p95(&self) -> f64 {
        self.quantile(0.95)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// Jain's index (sum x)^2 / (n sum x^2), 1/n to 1.
    ///
    /// Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301 (1984).
    pub(crate) fn jain(&self) -> f64 {
        let sum = self.sum(|value| value);
        ratio(sum * sum, self.count() * self.sum(|value| value * value))
    }

    fn sum(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.sorted.iter().fold(0.0, |sum, &value| sum + of(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied())
    }

    #[test]
    fn a_quantile_lies_between_ranks_and_ignores_missing_values() {
        let values = spread(&[f64::NAN, 4.0, 1.0, 3.0, 2.0]);
        let found = [0.0, 0.5, 0.95, 1.0].map(|share| values.quantile(share));
        assert_eq!(found, [1.0, 2.5, 3.8499999999999996, 4.0]);
        assert!(spread(&[f64::NAN]).quantile(0.5).is_nan());
        assert_eq!(
            spread(&[1.0, f64::INFINITY, f64::INFINITY]).quantile(0.75),
            f64::INFINITY
        );
    }

    #[test]
    fn a_mean_of_nothing_and_a_share_of_nothing_do_not_exist() {
        assert_eq!(spread(&[1.0, f64::NAN, 2.0]).mean(), 1.5);
        assert!(spread(&[]).mean().is_nan() && ratio(0.0, 0.0).is_nan());
    }

    #[test]
    fn jains_index_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(spread(&[3.0, 3.0, 3.0]).jain(), 1.0);
        assert_eq!(spread(&[5.0, 0.0, 0.0, 0.0]).jain(), 0.25);
        assert!(spread(&[0.0, 0.0]).jain().is_nan() && spread(&[]).jain().is_nan());
    }
}
