//! Durations of PPDUs and control frames of 802.11n (HT) and 802.11ac (VHT), IEEE 802.11-2020 clauses 17, 19
//! and 21. Knows no contention.

use super::params::{Wifi, WifiBand, WifiStandard};

const US: u64 = 1000;
/// Non-HT OFDM (clause 17): preamble 16 us and SIGNAL 4 us, then symbols of 4 us.
const LEGACY_PREAMBLE_NS: u64 = 20 * US;
const SYMBOL_NS: u64 = 4 * US;
const SHORT_SYMBOL_NS: u64 = 3_600;
/// SERVICE field and the tail bits of one encoder.
const SERVICE_BITS: u64 = 16;
const TAIL_BITS: u64 = 6;
/// Bytes of Ack and CTS, of RTS and CF-End, of BlockAckReq and of the compressed BlockAck.
const ACK_BYTES: u64 = 14;
const RTS_BYTES: u64 = 20;
const BLOCK_ACK_REQUEST_BYTES: u64 = 24;
const BLOCK_ACK_BYTES: u64 = 32;
/// aPPDUMaxTime of HT-mixed and VHT PPDUs.
pub(crate) const MAX_PPDU_NS: u64 = 5_484 * US;
/// A receiver tells a frame from noise within this time.
pub(crate) const DETECTION_NS: u64 = 4 * US;

/// Coded bits of one subcarrier and the code rate, by MCS of one stream.
const MODULATIONS: [(u64, u64, u64); 10] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
];

/// One modulation and coding scheme on the channel's width and streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Index of the modulation: 0 to 9.
    pub(crate) mcs: u32,
    /// Data bits of a symbol.
    pub(crate) bits_per_symbol: u64,
    /// Bits that are not data: SERVICE and the encoders' tails.
    overhead_bits: u64,
    /// Rate of the control frames that answer, in Mbit/s.
    control_mbps: u64,
}

/// Bits of a constellation point and the code rate of a mode.
pub(crate) fn modulation(mcs: u32) -> (u64, u64, u64) {
    MODULATIONS[mcs as usize]
}

/// The channel's durations.
#[derive(Clone, Debug)]
pub(crate) struct Phy {
    preamble_ns: u64,
    pub(crate) symbol_ns: u64,
    /// PPDUs end on a multiple of this after their preamble.
    grain_ns: u64,
    /// Signal extension of each OFDM PPDU at 2.4 GHz.
    extension_ns: u64,
    pub(crate) sifs_ns: u64,
    pub(crate) slot_ns: u64,
    /// Timeout of an answer, after the end of a frame.
    pub(crate) timeout_ns: u64,
    pub(crate) beacon_ns: u64,
    /// Whether a single MPDU is sent as an A-MPDU of one (VHT).
    pub(crate) always_ampdu: bool,
    modes: [Option<Mode>; 10],
}

impl Phy {
    /// The durations of a plan's channel. The error names a key.
    pub(crate) fn new(wifi: &Wifi) -> Result<Self, String> {
        let n = wifi.standard == WifiStandard::N;
        let (widths, most): (&[u32], u32) = if n {
            (&[20, 40], 4)
        } else {
            (&[20, 40, 80, 160], 8)
        };
        if !widths.contains(&wifi.width_mhz) {
            return Err(format!("width_mhz: must be one of {widths:?}"));
        }
        if !(1..=most).contains(&wifi.streams) {
            return Err(format!("streams: must be from 1 to {most}"));
        }
        if !n && wifi.band == WifiBand::Ghz2 {
            return Err("band: 802.11ac has no 2.4 GHz".into());
        }
        let streams = u64::from(wifi.streams);
        // One long training field for each stream, four for three and eight for more than six.
        let trainings = [1, 2, 4, 4, 6, 6, 8, 8][wifi.streams as usize - 1];
        // HT-mixed: 20 legacy, 8 HT-SIG, 4 HT-STF; VHT: 20, 8 VHT-SIG-A, 4 VHT-STF, 4 VHT-SIG-B.
        let sig_b = u64::from(!n && wifi.rules.vht_sig_b);
        let (symbol_ns, grain_ns) = match wifi.short_guard_interval {
            false => (SYMBOL_NS, SYMBOL_NS),
            true if wifi.rules.round_short_guard_interval => (SHORT_SYMBOL_NS, SYMBOL_NS),
            true => (SHORT_SYMBOL_NS, SHORT_SYMBOL_NS),
        };
        let (sifs_ns, extension_ns) = match wifi.band {
            WifiBand::Ghz2 => (10 * US, 6 * US),
            WifiBand::Ghz5 => (16 * US, 0),
        };
        let slot_ns = 9 * US;
        let mut phy = Self {
            preamble_ns: (32 + 4 * (trainings + sig_b)) * US,
            symbol_ns,
            grain_ns,
            extension_ns,
            sifs_ns,
            slot_ns,
            timeout_ns: sifs_ns + slot_ns + LEGACY_PREAMBLE_NS,
            beacon_ns: 0,
            always_ampdu: !n,
            modes: [None; 10],
        };
        phy.beacon_ns = match (wifi.band, n) {
            // 138 bytes at 1 Mbit/s behind DSSS's long preamble and header.
            (WifiBand::Ghz2, _) => 192 * US + 138 * 8 * US,
            (WifiBand::Ghz5, true) => phy.legacy_ns(138, 6),
            (WifiBand::Ghz5, false) => phy.legacy_ns(159, 6),
        };
        for mcs in 0..if n { 8 } else { 10 } {
            phy.modes[mcs as usize] = mode(wifi, mcs, streams);
        }
        Ok(phy)
    }

    /// A mode of the channel; `None`: it does not exist at this width with so many streams.
    pub(crate) fn mode(&self, mcs: u32) -> Option<Mode> {
        self.modes.get(mcs as usize).copied().flatten()
    }

    /// A data PPDU of `psdu_bytes`.
    pub(crate) fn ppdu_ns(&self, mode: Mode, psdu_bytes: u64) -> u64 {
        let symbols = (8 * psdu_bytes + mode.overhead_bits).div_ceil(mode.bits_per_symbol);
        let payload_ns = (symbols * self.symbol_ns).div_ceil(self.grain_ns) * self.grain_ns;
        self.preamble_ns + payload_ns + self.extension_ns
    }

    /// Duration of so many bytes within a data PPDU.
    pub(crate) fn payload_ns(&self, mode: Mode, bytes: u64) -> u64 {
        8 * bytes * self.symbol_ns / mode.bits_per_symbol
    }

    /// The most bytes whose PPDU lasts no longer than `limit_ns`.
    pub(crate) fn most_bytes(&self, mode: Mode, limit_ns: u64) -> u64 {
        let payload_ns = limit_ns.saturating_sub(self.preamble_ns + self.extension_ns);
        let symbols = payload_ns / self.grain_ns * self.grain_ns / self.symbol_ns;
        (symbols * mode.bits_per_symbol).saturating_sub(mode.overhead_bits) / 8
    }

    pub(crate) fn ack_ns(&self, mode: Mode) -> u64 {
        self.legacy_ns(ACK_BYTES, mode.control_mbps)
    }

    pub(crate) fn block_ack_ns(&self, mode: Mode) -> u64 {
        self.legacy_ns(BLOCK_ACK_BYTES, mode.control_mbps)
    }

    pub(crate) fn block_ack_request_ns(&self, mode: Mode) -> u64 {
        self.legacy_ns(BLOCK_ACK_REQUEST_BYTES, mode.control_mbps)
    }

    pub(crate) fn rts_ns(&self, mode: Mode) -> u64 {
        self.legacy_ns(RTS_BYTES, mode.control_mbps)
    }

    pub(crate) fn cts_ns(&self, mode: Mode) -> u64 {
        self.legacy_ns(ACK_BYTES, mode.control_mbps)
    }

    /// At the lowest basic rate, so that all nodes hear that the medium is free.
    pub(crate) fn cf_end_ns(&self) -> u64 {
        self.legacy_ns(RTS_BYTES, 6)
    }

    /// EIFS less DIFS (10.3.2.3.7): SIFS and an Ack at the lowest basic rate.
    pub(crate) fn eifs_extra_ns(&self) -> u64 {
        self.sifs_ns + self.legacy_ns(ACK_BYTES, 6)
    }

    fn legacy_ns(&self, bytes: u64, mbps: u64) -> u64 {
        let symbols = (SERVICE_BITS + 8 * bytes + TAIL_BITS).div_ceil(4 * mbps);
        LEGACY_PREAMBLE_NS + symbols * SYMBOL_NS + self.extension_ns
    }
}

/// Data bits of a symbol, and whether the mode exists (equations of 19.3.5 and tables of 21.5).
fn mode(wifi: &Wifi, mcs: u32, streams: u64) -> Option<Mode> {
    let (bits, numerator, denominator) = modulation(mcs);
    let subcarriers = match wifi.width_mhz {
        20 => 52,
        40 => 108,
        80 => 234,
        _ => 468,
    };
    let coded_bits = subcarriers * bits * streams;
    let data_bits = coded_bits * numerator / denominator;
    // One encoder for each 300 (HT), 540 or, at the short guard interval, 600 Mbit/s (VHT).
    let symbol_ns = if wifi.short_guard_interval {
        SHORT_SYMBOL_NS
    } else {
        SYMBOL_NS
    };
    let rate_kbps = data_bits * 1_000_000 / symbol_ns;
    let per_encoder_kbps = match (wifi.standard, wifi.short_guard_interval) {
        (WifiStandard::N, false) => 300_000,
        (WifiStandard::N, true) => 350_000,
        (WifiStandard::Ac, false) => 540_000,
        (WifiStandard::Ac, true) => 600_000,
    };
    let encoders = rate_kbps.div_ceil(per_encoder_kbps).max(1);
    let whole = coded_bits * numerator % denominator == 0
        && data_bits % encoders == 0
        && (coded_bits / encoders) % denominator == 0;
    if wifi.standard == WifiStandard::Ac && !whole {
        return None;
    }
    Some(Mode {
        mcs,
        bits_per_symbol: data_bits,
        overhead_bits: SERVICE_BITS + TAIL_BITS * encoders,
        // The highest basic rate (6, 12, 24) not above the same modulation's non-HT rate.
        control_mbps: match mcs {
            0 => 6,
            1 | 2 => 12,
            _ => 24,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{channel, ns3};
    use super::*;

    fn phy(standard: WifiStandard, width_mhz: u32, streams: u32, short: bool) -> Phy {
        let mut wifi = channel(1);
        wifi.standard = standard;
        wifi.width_mhz = width_mhz;
        wifi.streams = streams;
        wifi.short_guard_interval = short;
        wifi.rules = ns3();
        Phy::new(&wifi).unwrap()
    }

    #[test]
    fn a_symbol_carries_the_bits_of_the_standards_tables() {
        let bits = |standard, width, streams, mcs| {
            phy(standard, width, streams, false)
                .mode(mcs)
                .unwrap()
                .bits_per_symbol
        };
        assert_eq!(bits(WifiStandard::N, 20, 1, 7), 260);
        assert_eq!(bits(WifiStandard::N, 40, 2, 7), 1080);
        assert_eq!(bits(WifiStandard::Ac, 80, 1, 9), 1560);
        assert_eq!(bits(WifiStandard::Ac, 80, 2, 8), 2808);
        assert_eq!(bits(WifiStandard::Ac, 20, 1, 0), 26);
    }

    #[test]
    fn modes_that_a_width_lacks_do_not_exist() {
        let has = |width, streams, mcs| {
            phy(WifiStandard::Ac, width, streams, false)
                .mode(mcs)
                .is_some()
        };
        assert!(!has(20, 1, 9) && !has(20, 2, 9) && has(20, 3, 9));
        assert!(has(40, 1, 9) && has(80, 1, 9));
        assert!(!has(80, 3, 6), "80 MHz, 3 streams, MCS 6");
    }

    #[test]
    fn durations_are_those_worked_out_by_hand() {
        // 28 MPDUs of 1538 bytes: 27 * 1544 + 1542 = 43230 bytes; 345862 bits in 1331 symbols.
        let n = phy(WifiStandard::N, 20, 1, false);
        let mode = n.mode(7).unwrap();
        assert_eq!(n.ppdu_ns(mode, 43_230), 5_360_000);
        assert_eq!(n.ppdu_ns(mode, 1_538), 228_000);
        assert_eq!((n.ack_ns(mode), n.block_ack_ns(mode)), (28_000, 32_000));
        assert_eq!(n.block_ack_request_ns(mode), 32_000);
        assert_eq!((n.cf_end_ns(), n.beacon_ns), (52_000, 208_000));
        assert_eq!(phy(WifiStandard::Ac, 80, 1, false).beacon_ns, 236_000);
    }

    #[test]
    fn the_most_bytes_of_a_time_take_that_time_and_one_more_takes_longer() {
        for short in [false, true] {
            let phy = phy(WifiStandard::Ac, 80, 2, short);
            let mode = phy.mode(8).unwrap();
            for limit_ns in [100_000, 1_432_000, 4_048_123, MAX_PPDU_NS] {
                let bytes = phy.most_bytes(mode, limit_ns);
                assert!(phy.ppdu_ns(mode, bytes) <= limit_ns);
                assert!(phy.ppdu_ns(mode, bytes + 1) > limit_ns);
            }
        }
    }

    #[test]
    fn data_bits_of_a_symbol_are_those_of_the_standards_tables_for_each_mode() {
        // Tables 19-27, 19-31, 21-30, 21-38 and 21-46: one stream.
        let of = |standard, width| {
            let phy = phy(standard, width, 1, false);
            let modes = (0..10).filter_map(|mcs| phy.mode(mcs));
            modes.map(|mode| mode.bits_per_symbol).collect::<Vec<_>>()
        };
        let narrow = [26, 52, 78, 104, 156, 208, 234, 260, 312];
        assert_eq!(of(WifiStandard::N, 20), narrow[..8]);
        assert_eq!(of(WifiStandard::Ac, 20), narrow);
        let wide = [54, 108, 162, 216, 324, 432, 486, 540, 648, 720];
        assert_eq!(of(WifiStandard::N, 40), wide[..8]);
        assert_eq!(of(WifiStandard::Ac, 40), wide);
        let vht80 = [117, 234, 351, 468, 702, 936, 1053, 1170, 1404, 1560];
        assert_eq!(of(WifiStandard::Ac, 80), vht80);
        assert_eq!(of(WifiStandard::Ac, 160), vht80.map(|bits| 2 * bits));
    }

    #[test]
    fn control_frames_take_whole_symbols_at_the_basic_rate_below_the_data() {
        // 20 us and symbols of 4 us with 24, 48 or 96 bits for 22 bits and 14, 20, 24 and 32 bytes.
        let phy = phy(WifiStandard::N, 20, 1, false);
        for (mcs, ack, rts, request, block_ack) in [
            (0, 44, 52, 56, 68),
            (1, 32, 36, 40, 44),
            (2, 32, 36, 40, 44),
            (3, 28, 28, 32, 32),
            (7, 28, 28, 32, 32),
        ] {
            let mode = phy.mode(mcs).unwrap();
            let times = [
                phy.ack_ns(mode),
                phy.cts_ns(mode),
                phy.rts_ns(mode),
                phy.block_ack_request_ns(mode),
                phy.block_ack_ns(mode),
            ];
            assert_eq!(
                times,
                [ack, ack, rts, request, block_ack].map(|us| us * US),
                "MCS {mcs}"
            );
        }
        assert_eq!(phy.eifs_extra_ns(), (16 + 44) * US);
        assert_eq!(phy.timeout_ns, (16 + 9 + 20) * US);
    }

    #[test]
    fn preambles_guard_intervals_and_the_band_change_a_ppdus_duration() {
        // 1538 bytes at 260 bits a symbol: 48 symbols of 4 or 3.6 us behind 32 us and training fields of 4.
        let data_us = |change: fn(&mut Wifi)| {
            let mut wifi = channel(1);
            wifi.rules = ns3();
            change(&mut wifi);
            let phy = Phy::new(&wifi).unwrap();
            phy.ppdu_ns(phy.mode(7).unwrap(), 1538) / 100
        };
        assert_eq!(data_us(|_| {}), 2280);
        assert_eq!(data_us(|wifi| wifi.short_guard_interval = true), 360 + 1728);
        let rounded = data_us(|wifi| {
            wifi.short_guard_interval = true;
            wifi.rules.round_short_guard_interval = true;
        });
        assert_eq!(rounded, 360 + 1760);
        assert_eq!(data_us(|wifi| wifi.band = WifiBand::Ghz2), 2280 + 60);
        // 520, 780 and 1040 bits: 24, 16 and 12 symbols; 2, 4 and 4 training fields.
        assert_eq!(data_us(|wifi| wifi.streams = 2), 400 + 960);
        assert_eq!(data_us(|wifi| wifi.streams = 3), 480 + 640);
        assert_eq!(data_us(|wifi| wifi.streams = 4), 480 + 480);
        assert_eq!(data_us(|wifi| wifi.standard = WifiStandard::Ac), 2280);
        let with_sig_b = data_us(|wifi| {
            wifi.standard = WifiStandard::Ac;
            wifi.rules.vht_sig_b = true;
        });
        assert_eq!(with_sig_b, 2280 + 40);
        let mut wifi = channel(1);
        wifi.band = WifiBand::Ghz2;
        let phy = Phy::new(&wifi).unwrap();
        // SIFS 10; 138 bytes at 1 Mbit/s behind 192 us.
        assert_eq!(
            (phy.sifs_ns, phy.timeout_ns, phy.beacon_ns),
            (10_000, 39_000, 1_296_000)
        );
    }

    #[test]
    fn a_second_encoder_has_tail_bits_of_its_own() {
        // 80 MHz, two streams, 400 ns, MCS 9: 867 Mbit/s need two encoders; 387 bytes and 28 bits are more
        // than the 3120 bits of a symbol, with 22 they were not. At 800 ns, 780 Mbit/s, it needs two as well;
        // MCS 4 at 351 Mbit/s one.
        let symbols = |short, mcs, bytes| {
            let phy = phy(WifiStandard::Ac, 80, 2, short);
            let mode = phy.mode(mcs).unwrap();
            (phy.ppdu_ns(mode, bytes) - phy.ppdu_ns(mode, 0)) / phy.symbol_ns + 1
        };
        assert_eq!((symbols(true, 9, 386), symbols(true, 9, 387)), (1, 2));
        assert_eq!((symbols(false, 9, 386), symbols(false, 9, 387)), (1, 2));
        // 1404 bits: 172 bytes and 22 bits are 1398, and 28 would be 1404.
        assert_eq!((symbols(false, 4, 172), symbols(false, 4, 173)), (1, 2));
    }

    #[test]
    fn channels_that_the_standard_does_not_have_are_refused() {
        let error = |change: fn(&mut Wifi)| {
            let mut wifi = channel(1);
            change(&mut wifi);
            Phy::new(&wifi).err().unwrap_or_default()
        };
        assert!(error(|wifi| wifi.width_mhz = 80).contains("width_mhz"));
        assert!(error(|wifi| wifi.streams = 0).contains("streams"));
        assert_eq!(error(|wifi| wifi.streams = 4), "");
        assert!(error(|wifi| wifi.streams = 5).contains("streams"));
        assert_eq!(
            error(|wifi| (wifi.standard, wifi.streams) = (WifiStandard::Ac, 8)),
            ""
        );
        assert!(
            error(|wifi| (wifi.standard, wifi.streams) = (WifiStandard::Ac, 9)).contains("streams")
        );
        assert!(
            error(|wifi| (wifi.standard, wifi.band) = (WifiStandard::Ac, WifiBand::Ghz2))
                .contains("band")
        );
    }
}
