//! The smooth switches of the fluid model. The shortcuts return exactly what the long way returns:
//! below 2^-53 an addend no longer changes 1.0.

/// exp(-40) < 2^-53, so the sigmoid is exactly 0 or 1 beyond this argument of the exponential.
const SATURATED: f64 = 40.0;

fn sigmoid(sharpness: f64, v: f64) -> f64 {
    let e = sharpness * v;
    if v >= 0.0 {
        if e > SATURATED {
            return 1.0;
        }
        1.0 / (1.0 + (-e).exp())
    } else {
        if e < -SATURATED {
            return 0.0;
        }
        1.0 - 1.0 / (1.0 + e.exp())
    }
}

/// Differentiable unit step at 0 (sharpness 500).
#[inline]
pub(crate) fn step_sharp(v: f64) -> f64 {
    sigmoid(500.0, v)
}

/// Smoother unit step at 0 (sharpness 5), used for BBR's probing pulses.
#[inline]
pub(crate) fn step_smooth(v: f64) -> f64 {
    sigmoid(5.0, v)
}

/// Differentiable max(v, 0).
#[inline]
pub(crate) fn ramp(v: f64) -> f64 {
    v * step_sharp(v)
}

/// Unit step at 0 (1 at 0).
#[inline]
pub(crate) fn indicator(v: f64) -> f64 {
    if v >= 0.0 {
        1.0
    } else {
        0.0
    }
}

/// Number of whole steps in a time, cut off, never rounded: the published program indexes so.
#[inline]
pub(crate) fn whole_steps(time_ms: f64, step_ms: f64) -> usize {
    (time_ms / step_ms) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcuts_equal_the_long_way_bit_for_bit() {
        for k in -40_000..=40_000_i32 {
            let v = f64::from(k) * 1e-4;
            for sharpness in [5.0, 500.0] {
                let long = if v >= 0.0 {
                    1.0 / (1.0 + (-sharpness * v).exp())
                } else {
                    1.0 - 1.0 / (1.0 + (sharpness * v).exp())
                };
                assert_eq!(
                    sigmoid(sharpness, v).to_bits(),
                    long.to_bits(),
                    "{sharpness} {v}"
                );
            }
        }
    }
}
