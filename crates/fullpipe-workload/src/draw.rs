//! Random reals. They use the crate libm, so that the same seed gives the same numbers on every machine.

use fullpipe_net::Rng;

const MANTISSA: u64 = 1 << 53;

/// Uniform over (0, 1).
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.up_to(MANTISSA - 1) as f64 + 0.5) / MANTISSA as f64
}

/// Exponential with mean 1.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    -libm::log(uniform(rng))
}

/// Normal with mean 0 and standard deviation 1 (Box and Muller).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(rng));
    radius * libm::cos(2.0 * std::f64::consts::PI * uniform(rng))
}

/// Log-normal with mean 1; `sigma` is the standard deviation of its logarithm.
pub(crate) fn lognormal(rng: &mut Rng, sigma: f64) -> f64 {
    libm::exp(sigma * normal(rng) - sigma * sigma / 2.0)
}
