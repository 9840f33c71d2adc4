//! Means, quantiles and ratios, NaN for none. Sums run in the order of the values.

/// NaN where there is nothing below.
pub(crate) fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 {
        above / below
    } else {
        f64::NAN
    }
}

/// Of the values that are not NaN.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let known = values.iter().filter(|value| !value.is_nan());
    let (sum, count) = known.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    ratio(sum, count as f64)
}

/// Of the values that are not NaN, with linear interpolation between ranks (NumPy's default; method 7
/// of Hyndman, Fan, "Sample Quantiles in Statistical Packages", 1996). Leaves the values in another
/// order.
pub(crate) fn quantiles<const N: usize>(values: &mut Vec<f64>, shares: [f64; N]) -> [f64; N] {
    values.retain(|value| !value.is_nan());
    if values.is_empty() {
        return [f64::NAN; N];
    }
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len() - 1;
    shares.map(|share| {
        let place = last as f64 * share;
        let low = place.floor();
        let from = values[low as usize];
        let to = values[(low as usize + 1).min(last)];
        from + (to - from) * (place - low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_ranks_and_ignores_what_is_not_there() {
        let mut values = vec![f64::NAN, 4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            quantiles(&mut values, [0.0, 0.5, 0.95, 1.0]),
            [1.0, 2.5, 3.8499999999999996, 4.0]
        );
        assert!(quantiles(&mut vec![f64::NAN], [0.5])[0].is_nan());
    }

    #[test]
    fn a_mean_of_nothing_and_a_share_of_nothing_do_not_exist() {
        assert_eq!(mean(&[1.0, f64::NAN, 2.0]), 1.5);
        assert!(mean(&[]).is_nan() && ratio(0.0, 0.0).is_nan());
    }
}
