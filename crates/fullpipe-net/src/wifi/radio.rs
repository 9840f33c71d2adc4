//! The radio link of one station: its rates, its signal-to-noise ratio, its errors.

use super::minstrel::RateControl;
use super::params::WifiStation;

#[derive(Debug)]
pub(super) struct Radio {
    /// To the access point, and from it.
    pub(super) rates: [RateControl; 2],
    snr_mdb: Vec<(u64, i32)>,
    /// Index of the current entry of `snr_mdb`.
    cursor: usize,
    /// Probability of losing an MPDU for other reasons, in 2^-32.
    pub(super) error: u64,
}

impl Radio {
    pub(super) fn new(station: &WifiStation, rate: RateControl) -> Result<Self, String> {
        if !station.snr_mdb.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err("snr_mdb: times must rise".into());
        }
        Ok(Self {
            rates: [rate.clone(), rate],
            snr_mdb: station.snr_mdb.clone(),
            cursor: 0,
            error: (u64::from(station.error_ppm.min(1_000_000)) << 32) / 1_000_000,
        })
    }

    /// The signal-to-noise ratio now; `None`: nothing is lost to noise.
    pub(super) fn snr_mdb(&mut self, now_ns: u64) -> Option<i32> {
        while let Some(&(from_ns, _)) = self.snr_mdb.get(self.cursor + 1) {
            if from_ns > now_ns {
                break;
            }
            self.cursor += 1;
        }
        self.snr_mdb.get(self.cursor).map(|&(_, mdb)| mdb)
    }
}
