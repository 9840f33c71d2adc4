//! A Wi-Fi link as a plan describes it: one access point, its stations, the rules of the channel. Times are
//! in ns, rates in bit/s.

use serde::{Deserialize, Serialize};

use crate::queue::Qdisc;

/// One channel of IEEE 802.11n or 802.11ac with an access point and its stations.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Wifi {
    /// Which amendment's frames are sent.
    pub standard: WifiStandard,
    /// Which band the channel lies in.
    pub band: WifiBand,
    /// Width of the channel: 20, 40, 80 (ac) or 160 (ac).
    pub width_mhz: u32,
    /// Spatial streams, 1 to 4 (n) or 8 (ac).
    pub streams: u32,
    /// Guard interval of 400 ns instead of 800 ns.
    pub short_guard_interval: bool,
    /// The stations; station `k` of this list is node `k + 1`, the access point is node 0.
    pub stations: Vec<WifiStation>,
    /// The access point's queues.
    pub queues: WifiQueues,
    /// Contention and aggregation of the access categories BK, BE, VI, VO.
    pub access: [WifiAccess; 4],
    /// Attempts of a frame under Normal Ack before it is given up.
    pub retry_limit: u32,
    /// Times that an MPDU may be missing from a BlockAck before it is given up. `None`: no limit.
    pub block_ack_retry_limit: Option<u32>,
    /// PSDUs of more bytes than this are preceded by RTS and CTS. `None`: none is.
    pub rts_threshold_bytes: Option<u32>,
    /// Interval of beacons; 0: none are sent.
    pub beacon_interval_ns: u64,
    /// Where the standard and its implementations differ.
    pub rules: WifiRules,
}

/// Amendments of IEEE 802.11.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum WifiStandard {
    /// 802.11n, "Wi-Fi 4".
    N,
    /// 802.11ac, "Wi-Fi 5".
    Ac,
}

/// Bands of the channel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub enum WifiBand {
    /// SIFS 10 us, signal extension.
    #[serde(rename = "2.4GHz")]
    Ghz2,
    /// SIFS 16 us.
    #[serde(rename = "5GHz")]
    Ghz5,
}

/// One station.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WifiStation {
    /// Name that flows refer to.
    pub name: String,
    /// Rate control of frames from and to it.
    pub rate: WifiRate,
    /// Signal-to-noise ratio in thousandths of a dB from each time on; empty: nothing is lost to noise.
    pub snr_mdb: Vec<(u64, i32)>,
    /// Probability that an MPDU is lost for other reasons, parts per million.
    pub error_ppm: u32,
    /// Its queues to the access point.
    pub queues: WifiQueues,
    /// Its traffic besides the flows of the scenario.
    pub background: Vec<WifiBackground>,
}

/// Rate control of a station.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WifiRate {
    /// A constant modulation and coding scheme.
    Fixed {
        /// 802.11n: 0 to 7, 802.11ac: 0 to 9. The number of streams is the channel's.
        mcs: u32,
    },
    /// By delivery probability, as Linux's minstrel.
    Minstrel,
}

/// Traffic that exists only on the channel.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WifiBackground {
    /// From the station to the access point; otherwise the reverse.
    pub up: bool,
    /// Access category: 0 BK, 1 BE, 2 VI, 3 VO.
    pub category: u8,
    /// Rate of IP packets; `None`: backlogged.
    pub rate_bps: Option<u64>,
    /// Size of its IP packets.
    pub packet_bytes: u32,
}

/// Queues of packets for the channel.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WifiQueues {
    /// The driver's own FIFO for each access category, of so many packets, under a queue
    /// discipline that is stopped while the FIFO is full (mq); without one the FIFO drops.
    Driver {
        /// Packets in the FIFO, those in the air included.
        limit_packets: u32,
        /// The discipline above it, one for each access category.
        qdisc: Option<Qdisc>,
    },
    /// mac80211's queues: fq_codel for each station and category, airtime fairness and airtime
    /// queue limits (net/mac80211/tx.c, 6.18).
    Mac80211 {
        /// The queues of one station and category.
        qdisc: Qdisc,
        /// Airtime that a queue may always have in the hardware (5 ms).
        aql_low_ns: u64,
        /// Airtime that it may have while all queues together have less than the threshold (12 ms).
        aql_high_ns: u64,
        /// See `aql_high_ns` (24 ms).
        aql_threshold_ns: u64,
        /// Airtime that a station gets in each round (256 us).
        airtime_quantum_ns: u64,
    },
}

/// Contention and aggregation of one access category.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct WifiAccess {
    /// Arbitration inter-frame space number.
    pub aifsn: u32,
    /// Least contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Limit of a transmission opportunity; 0: one exchange.
    pub txop_ns: u64,
    /// A-MPDUs of at most so many bytes; 0: no aggregation.
    pub max_ampdu_bytes: u32,
}

/// Where the standard and its implementations differ.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct WifiRules {
    /// After a missing BlockAck, a BlockAckReq is sent before any data (ns-3's default); otherwise the A-MPDU
    /// is sent again, as most drivers do.
    pub explicit_block_ack_request: bool,
    /// The first frame of a TXOP with a limit reserves all of it, and CF-End releases the rest (ns-3);
    /// otherwise frames reserve their own exchange.
    pub reserve_whole_txop: bool,
    /// VHT PPDUs carry VHT-SIG-B, 4 us (the standard; ns-3 leaves it out).
    pub vht_sig_b: bool,
    /// Short-guard-interval PPDUs end on a multiple of 4 us (the standard; ns-3 does not round).
    pub round_short_guard_interval: bool,
    /// Nodes that receive a collision wait for EIFS.
    pub eifs: bool,
    /// A receiver delivers each MPDU as it ends (ns-3); otherwise all of an A-MPDU at its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pass_on_each_mpdu: bool,
}
