//! From a signal-to-noise ratio to the probability that an MPDU is lost: additive white Gaussian
//! noise, Gray-mapped QAM, the standard's convolutional code with hard decisions.
//!
//! Bounds and coefficients of the punctured codes: Frenger, Orten, Ottosson, "Convolutional codes
//! with optimum distance spectrum", IEEE Communications Letters 3(11), 1999. Floating point is used
//! only here, to fill a table.

use super::phy::modulation;

const STEP_MDB: i32 = 250;
const LOWEST_MDB: i32 = -10_000;
const STEPS: usize = 281;
/// Modulation and coding schemes of 802.11ac.
const MODES: usize = 10;

/// Probability that one bit survives decoding, as -ln, by MCS and steps of a quarter of a dB. An entry is worked
/// out when it is first needed: it takes some 5,000 instructions, and a channel uses few of them.
#[derive(Clone, Debug)]
pub(crate) struct ErrorTable {
    streams: u32,
    hazard: Vec<[Option<f64>; STEPS]>,
}

impl ErrorTable {
    /// For a channel whose power is shared by `streams`.
    pub(crate) fn new(streams: u32) -> Self {
        Self {
            streams,
            hazard: vec![[None; STEPS]; MODES],
        }
    }

    /// Probability that an MPDU of `bytes` is lost, in 2^-32.
    pub(crate) fn lost(&mut self, mcs: u32, snr_mdb: i32, bytes: u32) -> u64 {
        let step = (snr_mdb - LOWEST_MDB) / STEP_MDB;
        let step = step.clamp(0, STEPS as i32 - 1) as usize;
        let streams = self.streams;
        let bit = self.hazard[mcs as usize][step].get_or_insert_with(|| hazard(mcs, step, streams));
        let hazard = *bit * f64::from(bytes) * 8.0;
        ((1.0 - (-hazard).exp()) * 4_294_967_296.0) as u64
    }
}

fn hazard(mcs: u32, step: usize, streams: u32) -> f64 {
    let mdb = LOWEST_MDB + STEP_MDB * step as i32;
    let snr = 10f64.powf(f64::from(mdb) / 10_000.0) / f64::from(streams);
    -(1.0 - coded_bit_error(mcs, snr)).ln()
}

/// Bit error ratio behind the decoder, at most one half.
fn coded_bit_error(mcs: u32, snr: f64) -> f64 {
    let (bits, numerator, _) = modulation(mcs);
    let p = raw_bit_error(bits, snr);
    // Chernoff's bound of confusing two sequences at distance d: D^d.
    let d = (4.0 * p * (1.0 - p)).sqrt();
    let sum = |first: i32, step: i32, weights: &[f64]| -> f64 {
        let terms = weights.iter().enumerate();
        terms
            .map(|(i, weight)| weight * d.powi(first + step * i as i32))
            .sum()
    };
    let bound = match numerator {
        1 => {
            sum(
                10,
                2,
                &[
                    36.0,
                    211.0,
                    1404.0,
                    11633.0,
                    77433.0,
                    502_690.0,
                    3_322_763.0,
                ],
            ) / 2.0
        }
        2 => sum(6, 1, &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27128.0]) / 4.0,
        3 => sum(5, 1, &[42.0, 201.0, 1492.0, 10469.0, 62935.0]) / 6.0,
        _ => sum(4, 1, &[92.0, 528.0, 8694.0, 79453.0, 792_114.0]) / 10.0,
    };
    bound.min(0.5)
}

/// Bit error ratio of Gray-mapped BPSK, QPSK and square QAM (Proakis, Digital Communications).
fn raw_bit_error(bits: u64, snr: f64) -> f64 {
    match bits {
        1 => tail((2.0 * snr).sqrt()),
        2 => tail(snr.sqrt()),
        bits => {
            let points = f64::from(1u32 << bits);
            let edge = 1.0 - points.sqrt().recip();
            4.0 / bits as f64 * edge * tail((3.0 * snr / (points - 1.0)).sqrt())
        }
    }
}

/// The standard normal distribution's upper tail: its integral by Simpson's rule over the range
/// that counts.
fn tail(x: f64) -> f64 {
    const PARTS: i32 = 64;
    let width = 8.0 / f64::from(PARTS);
    let density = |y: f64| (-y * y / 2.0).exp();
    let sum: f64 = (0..=PARTS)
        .map(|i| {
            let weight = match i {
                0 | PARTS => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * density(x + f64::from(i) * width)
        })
        .sum();
    sum * width / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_tail_has_its_tabled_values() {
        for (x, q) in [(0.0, 0.5), (1.0, 0.158_655), (3.0, 0.001_349_9)] {
            assert!((tail(x) / q - 1.0).abs() < 1e-3, "Q({x}) = {}", tail(x));
        }
    }

    #[test]
    fn less_signal_faster_modes_and_more_bytes_lose_more() {
        let mut table = ErrorTable::new(1);
        for mcs in 0..8 {
            for mdb in (0..30_000).step_by(1000) {
                let lost = table.lost(mcs, mdb, 1538);
                assert!(table.lost(mcs, mdb + 1000, 1538) <= lost);
                assert!(table.lost(mcs, mdb, 100) <= lost);
                // MCS 4 (16-QAM 3/4) and 5 (64-QAM 2/3) lie close; the others are far apart.
                assert!(table.lost(mcs + 1, mdb, 1538) + (1 << 20) >= lost);
            }
        }
    }

    #[test]
    fn receivers_decode_where_the_standards_sensitivities_say_they_must() {
        // Minimum sensitivities of 20 MHz (table 19-23), over -101 dBm of noise and with the 15 dB
        // that the standard grants to noise figure (10) and implementation (5): one PSDU in ten of
        // 4096 bytes may be lost.
        let sensitivities = [-82, -79, -77, -74, -70, -66, -65, -64];
        let mut table = ErrorTable::new(1);
        for (mcs, dbm) in sensitivities.into_iter().enumerate() {
            let snr_mdb = (dbm + 101 - 15 + 3) * 1000;
            let lost = table.lost(mcs as u32, snr_mdb, 4096);
            assert!(lost < (1 << 32) / 10, "MCS {mcs} at {snr_mdb} mdB: {lost}");
        }
    }

    #[test]
    fn losses_are_those_of_the_union_bound_in_double_precision() {
        // The formulas of this file's head, worked out apart with the complementary error function: MCS,
        // signal in mdB, bytes, streams, probability.
        let mut tables = [1, 2].map(ErrorTable::new);
        for (mcs, snr_mdb, bytes, streams, expected) in [
            (0, 3500, 1538, 1, 0.41856),
            (1, 6500, 1538, 1, 0.42979),
            (2, 9250, 1538, 1, 0.54499),
            (3, 13_000, 1538, 1, 0.417_127),
            (4, 16_000, 1538, 1, 0.504_794),
            (5, 20_750, 1538, 1, 0.485_443),
            (6, 22_000, 1538, 1, 0.483_043),
            (7, 23_250, 1538, 1, 0.409_692),
            (8, 27_750, 1538, 1, 0.567_814),
            (9, 29_000, 1538, 1, 0.544_193),
            (3, 16_000, 1538, 2, 0.427_247),
            (1, 5750, 100, 1, 0.369_341),
        ] {
            let table = &mut tables[streams - 1];
            let lost = table.lost(mcs, snr_mdb, bytes) as f64 / 4_294_967_296.0;
            assert!((lost / expected - 1.0).abs() < 1e-3, "MCS {mcs}: {lost}");
        }
        // Steps of a quarter of a dB, from -10 to 60 dB.
        let table = &mut tables[0];
        assert_eq!(table.lost(7, 23_250, 1538), table.lost(7, 23_499, 1538));
        assert!(table.lost(7, 23_250, 1538) > table.lost(7, 23_500, 1538));
        assert_eq!(table.lost(7, -90_000, 1538), table.lost(7, -10_000, 1538));
        assert_eq!(table.lost(7, 90_000, 1538), 0);
    }
}
