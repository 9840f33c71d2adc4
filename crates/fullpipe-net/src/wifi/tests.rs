//! The channel as a whole against closed formulas, and what must hold of any channel.

use super::params::{
    Wifi, WifiAccess, WifiBackground, WifiBand, WifiQueues, WifiRate, WifiRules, WifiStandard,
    WifiStation,
};

use super::*;
use crate::link::{Direction, Link, Passed};
use crate::packet::{Ecn, Packet};
use crate::queue::fq_codel;
use crate::testing::TestPacket;

const US: u64 = 1000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A packet of so many bytes with Ethernet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Small(pub(crate) u32);

impl Packet for Small {
    fn wire_bytes(&self) -> u32 {
        self.0
    }

    fn flow_key(&self) -> u32 {
        0
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn mark_ce(&mut self) {}
}

/// The rules of ns-3 3.44.
pub(crate) fn ns3() -> WifiRules {
    WifiRules {
        explicit_block_ack_request: true,
        reserve_whole_txop: true,
        vht_sig_b: false,
        round_short_guard_interval: false,
        eifs: false,
        pass_on_each_mpdu: true,
    }
}

/// The EDCA parameters of OFDM with ns-3's TXOP limits (802.11-2020).
pub(crate) fn access(max_ampdu_bytes: u32) -> [WifiAccess; 4] {
    let access = |aifsn, cw_min, cw_max, txop_us: u64| WifiAccess {
        aifsn,
        cw_min,
        cw_max,
        txop_ns: txop_us * US,
        max_ampdu_bytes,
    };
    [
        access(7, 15, 1023, 0),
        access(3, 15, 1023, 0),
        access(2, 7, 15, 4096),
        access(2, 3, 7, 2080),
    ]
}

fn driver(limit_packets: u32) -> WifiQueues {
    WifiQueues::Driver {
        limit_packets,
        qdisc: None,
    }
}

/// 802.11n, 20 MHz, one stream, MCS 7, `count` stations without traffic.
pub(crate) fn channel(count: usize) -> Wifi {
    let station = |index| WifiStation {
        name: format!("sta{index}"),
        rate: WifiRate::Fixed { mcs: 7 },
        snr_mdb: Vec::new(),
        error_ppm: 0,
        queues: driver(1000),
        background: Vec::new(),
    };
    Wifi {
        standard: WifiStandard::N,
        band: WifiBand::Ghz5,
        width_mhz: 20,
        streams: 1,
        short_guard_interval: false,
        stations: (1..=count).map(station).collect(),
        queues: driver(1000),
        access: access(65_535),
        retry_limit: 7,
        block_ack_retry_limit: None,
        rts_threshold_bytes: None,
        beacon_interval_ns: 102_400 * US,
        rules: ns3(),
    }
}

fn saturated(count: usize, category: u8, max_ampdu_bytes: u32) -> Wifi {
    let mut wifi = channel(count);
    wifi.access = access(max_ampdu_bytes);
    for station in &mut wifi.stations {
        station.background = vec![WifiBackground {
            up: true,
            category,
            rate_bps: None,
            packet_bytes: 1500,
        }];
    }
    wifi
}

/// Bits of UDP payload (1472 of 1500 bytes) a second, of all.
fn goodput(wifi: &Wifi, seconds: u64) -> f64 {
    let shares = saturation(wifi, 1, S, (1 + seconds) * S).unwrap();
    let packets: u64 = shares
        .iter()
        .map(|share| share.totals.delivered_packets)
        .sum();
    (packets * 1472 * 8) as f64 / seconds as f64
}

fn close(value: f64, expected: f64, tolerance: f64) {
    let error = value / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{value:.0} is {:+.2} % from {expected:.0}",
        100.0 * error
    );
}

/// Airtime of one exchange of one saturated station, averaged over its backoff, less beacons.
fn alone(packets: f64, cycle_us: f64) -> f64 {
    packets * 1472.0 * 8.0 / cycle_us * 1e6 * (1.0 - (208.0 + 25.0) / 102_400.0)
}

#[test]
fn one_station_gets_what_the_airtime_formula_says() {
    // AIFS 43, half of CWmin's slots 67.5, PPDU, SIFS 16, answer 28 or 32.
    close(
        goodput(&saturated(1, 1, 0), 4),
        alone(1.0, 110.5 + 228.0 + 44.0),
        0.005,
    );
    close(
        goodput(&saturated(1, 1, 65_535), 8),
        alone(28.0, 110.5 + 5360.0 + 48.0),
        0.005,
    );
}

#[test]
fn a_transmission_opportunity_holds_what_fits_and_ends_with_cf_end() {
    // VI: one A-MPDU of 21 fills 4096 us so far that no CF-End fits.
    close(
        goodput(&saturated(1, 2, 65_535), 8),
        alone(21.0, 34.0 + 31.5 + 4028.0 + 48.0),
        0.005,
    );
    // VI without aggregation: 14 exchanges SIFS apart, then SIFS and CF-End.
    let cycle_us = 34.0 + 31.5 + 14.0 * 272.0 + 13.0 * 16.0 + 68.0;
    close(
        goodput(&saturated(1, 2, 0), 8),
        alone(14.0, cycle_us),
        0.005,
    );
}

/// Bianchi's saturation throughput with finite retries: 7 attempts, doubling at most 6 times.
fn bianchi(stations: i32) -> f64 {
    let window = |i: i32| f64::from(16 << i.min(6));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let tau: f64 = (low + high) / 2.0;
        let p = 1.0 - (1.0 - tau).powi(stations - 1);
        let attempts: f64 = (0..7).map(|i| p.powi(i)).sum();
        let slots: f64 = (0..7)
            .map(|i| p.powi(i) * ((window(i) - 1.0) / 2.0 + 1.0))
            .sum();
        if attempts / slots > tau {
            low = tau;
        } else {
            high = tau;
        }
    }
    let tau = low;
    let idle = (1.0 - tau).powi(stations);
    let one = f64::from(stations) * tau * (1.0 - tau).powi(stations - 1);
    let (success_us, collision_us) = (228.0 + 44.0 + 43.0, 228.0 + 43.0);
    let slot_us = idle * 9.0 + one * success_us + (1.0 - idle - one) * collision_us;
    alone(one, slot_us)
}

#[test]
fn contending_stations_get_what_bianchi_says() {
    for stations in [2, 5, 10, 20] {
        let wifi = saturated(stations, 1, 0);
        close(goodput(&wifi, 4), bianchi(stations as i32), 0.02);
    }
}

#[test]
fn errors_cost_their_share_of_an_ampdu() {
    let mut wifi = saturated(1, 1, 16_383);
    wifi.stations[0].error_ppm = 100_000;
    // Ten MPDUs of 15438 bytes: 476 symbols; nine of ten arrive.
    close(
        goodput(&wifi, 8),
        0.9 * alone(10.0, 110.5 + 1940.0 + 48.0),
        0.01,
    );
}

#[test]
fn minstrel_over_a_good_signal_is_as_fast_as_the_fastest_rate() {
    let mut wifi = saturated(1, 1, 65_535);
    let fastest = goodput(&wifi, 4);
    wifi.stations[0].rate = WifiRate::Minstrel;
    wifi.stations[0].snr_mdb = vec![(0, 40_000)];
    close(goodput(&wifi, 4), fastest, 0.05);
    wifi.stations[0].snr_mdb = vec![(0, 8_000)];
    let slow = goodput(&wifi, 4);
    assert!(
        slow > 0.05 * fastest && slow < 0.5 * fastest,
        "{slow} of {fastest}"
    );
}

#[test]
fn mac80211_shares_airtime_and_a_drivers_fifo_does_not() {
    let mut wifi = channel(2);
    wifi.beacon_interval_ns = 0;
    wifi.stations[1].rate = WifiRate::Fixed { mcs: 0 };
    for station in &mut wifi.stations {
        station.background = vec![WifiBackground {
            up: false,
            category: 1,
            rate_bps: None,
            packet_bytes: 1500,
        }];
    }
    let airtimes = |wifi: &Wifi| {
        let shares = saturation(wifi, 1, S, 6 * S).unwrap();
        [0, 1].map(|station| shares[station].totals.airtime_ns as f64)
    };
    let [fast, slow] = airtimes(&wifi);
    assert!(slow > 3.0 * fast, "{slow} {fast}");
    wifi.queues = mac80211();
    let [fast, slow] = airtimes(&wifi);
    assert!((slow / fast - 1.0).abs() < 0.1, "{slow} {fast}");
}

pub(super) fn mac80211() -> WifiQueues {
    WifiQueues::Mac80211 {
        qdisc: crate::queue::Qdisc {
            limit_bytes: None,
            limit_packets: Some(8192),
            aqm: crate::queue::Aqm::FqCodel(fq_codel::Params {
                target_ns: 20 * MS,
                interval_ns: 100 * MS,
                quantum_bytes: 300,
                flows: 1024,
                memory_limit_bytes: 16 << 20,
                ecn: true,
                ce_threshold_ns: None,
                kernel: None,
            }),
        },
        aql_low_ns: 5 * MS,
        aql_high_ns: 12 * MS,
        aql_threshold_ns: 24 * MS,
        airtime_quantum_ns: 256 * US,
    }
}

/// Sends a packet every `gap_ns` both ways over one station; sums of sent, delivered and dropped.
fn exchange(wifi: &Wifi, seed: u64, gap_ns: u64, count: u64) -> (u64, Vec<(u64, bool, u32)>, u64) {
    let mut channel = Channel::<Small>::new(wifi, seed).unwrap();
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    let mut log = Vec::new();
    for index in 0..count {
        let now_ns = index * gap_ns;
        while channel.next_ns() <= now_ns {
            let at_ns = channel.next_ns();
            channel.advance(at_ns, &mut delivered, &mut dropped);
            log.extend(delivered.drain(..).map(|d| (at_ns, d.up, d.packet.0)));
        }
        let packet = Small(100 + (index % 1400) as u32);
        channel.send(now_ns, 0, index % 2 == 0, 1, packet, &mut dropped);
    }
    while channel.next_ns() < u64::MAX {
        let at_ns = channel.next_ns();
        channel.advance(at_ns, &mut delivered, &mut dropped);
        log.extend(delivered.drain(..).map(|d| (at_ns, d.up, d.packet.0)));
    }
    (count, log, dropped.len() as u64)
}

#[test]
fn every_packet_arrives_in_order_or_is_dropped_and_a_seed_fixes_all() {
    for (queues, each) in [
        (driver(300), true),
        (driver(300), false),
        (mac80211(), false),
    ] {
        let mut wifi = channel(1);
        wifi.rules.pass_on_each_mpdu = each;
        wifi.beacon_interval_ns = 0;
        wifi.stations[0].error_ppm = 200_000;
        wifi.block_ack_retry_limit = Some(3);
        wifi.stations[0].queues = queues.clone();
        wifi.queues = queues;
        let (sent, log, dropped) = exchange(&wifi, 7, 100 * US, 4000);
        assert_eq!(sent, log.len() as u64 + dropped);
        assert!(log.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert_eq!(exchange(&wifi, 7, 100 * US, 4000).1, log);
        assert_ne!(exchange(&wifi, 8, 100 * US, 4000).1, log);
    }
    let mut wifi = channel(1);
    wifi.beacon_interval_ns = 0;
    wifi.stations[0].error_ppm = 200_000;
    let (_, log, _) = exchange(&wifi, 7, 500 * US, 1400);
    let sizes: Vec<u32> = log.iter().filter(|row| row.1).map(|row| row.2).collect();
    assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "in order");
}

#[test]
fn rts_makes_collisions_cheap() {
    let mut wifi = saturated(8, 1, 65_535);
    wifi.rules.explicit_block_ack_request = false;
    let without = goodput(&wifi, 4);
    wifi.rts_threshold_bytes = Some(2000);
    assert!(goodput(&wifi, 4) > 1.1 * without);
}

#[test]
fn packets_of_an_ampdu_go_up_one_by_one_or_all_at_its_end() {
    let mut wifi = channel(1);
    wifi.beacon_interval_ns = 0;
    // The first goes alone, the other 20 together behind it.
    let arrivals = |wifi: &Wifi| {
        let (_, log, _) = exchange(wifi, 1, 0, 42);
        let up = log.into_iter().filter(|row| row.1).map(|row| row.0);
        up.skip(1).collect::<Vec<u64>>()
    };
    let one_by_one = arrivals(&wifi);
    wifi.rules.pass_on_each_mpdu = false;
    let together = arrivals(&wifi);
    assert!(together.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(one_by_one.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(one_by_one.len(), 20);
    // 65 Mbit/s: the last but one ends a subframe of at most 184 bytes before the end.
    assert_eq!(one_by_one[19], together[19]);
    assert!(one_by_one[18] >= together[18] - 184 * 8 * 4_000 / 260 - 1);
}

/// A channel without beacons whose contention windows are 0, so that no time is drawn.
fn certain(count: usize, max_ampdu_bytes: u32) -> Wifi {
    let mut wifi = channel(count);
    wifi.beacon_interval_ns = 0;
    wifi.access = access(max_ampdu_bytes);
    for access in &mut wifi.access {
        (access.cw_min, access.cw_max) = (0, 0);
    }
    wifi.rules.pass_on_each_mpdu = false;
    wifi.rules.explicit_block_ack_request = false;
    wifi
}

/// When a full packet is sent to or from a station in a category: us, station, up, category.
type Send = (u64, usize, bool, usize);

/// Times in ns at which packets arrive, and those at which packets are given up.
fn timeline(wifi: &Wifi, sends: &[Send]) -> (Vec<u64>, Vec<u64>) {
    let mut channel = Channel::<Small>::new(wifi, 1).expect("a sound channel");
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    let (mut arrivals, mut losses) = (Vec::new(), Vec::new());
    let mut sends = sends.iter().peekable();
    loop {
        let due_ns = channel.next_ns();
        match sends.peek() {
            Some(&&(us, station, up, category)) if us * US <= due_ns => {
                sends.next();
                channel.send(us * US, station, up, category, Small(1514), &mut dropped);
            }
            _ if due_ns == u64::MAX => return (arrivals, losses),
            _ => channel.advance(due_ns, &mut delivered, &mut dropped),
        }
        arrivals.extend(delivered.drain(..).map(|_| due_ns));
        losses.extend(dropped.drain(..).map(|_| due_ns));
    }
}

fn us(times: &[u64]) -> Vec<u64> {
    times.iter().map(|us| us * US).collect()
}

const BE: usize = 1;
const VI: usize = 2;
const VO: usize = 3;

#[test]
fn a_frame_goes_after_aifs_and_the_next_one_after_its_ack_and_aifs() {
    // AIFS 43 us, 1538 bytes 228, SIFS 16, Ack 28. After 630 us the boundaries of slots are at 673 + 9 k, after
    // 1278 us at 1321 + 9 k.
    for up in [true, false] {
        let sends = [
            (0, 0, up, BE),
            (0, 0, up, BE),
            (1000, 0, up, BE),
            (2000, 0, up, BE),
        ];
        let (arrivals, losses) = timeline(&certain(1, 0), &sends);
        assert_eq!(arrivals, us(&[271, 315 + 43 + 228, 1006 + 228, 2005 + 228]));
        assert!(losses.is_empty());
    }
}

#[test]
fn an_ampdu_is_received_at_its_end_or_mpdu_by_mpdu() {
    // 2 * 1544 + 1542 bytes in 143 symbols: 608 us. Behind the first of 1538 bytes 3092 follow, behind the
    // second 1544, at 260 bits in 4 us.
    let mut wifi = certain(1, 65_535);
    let sends = [(0, 0, true, BE); 3];
    assert_eq!(timeline(&wifi, &sends).0, us(&[651; 3]));
    wifi.rules.pass_on_each_mpdu = true;
    let expected = [651_000 - 380_553, 651_000 - 190_030, 651_000];
    assert_eq!(timeline(&wifi, &sends).0, expected);
    // BlockAck 32 us: the next frame at 651 + 16 + 32 + 43.
    let later = [
        (0, 0, true, BE),
        (0, 0, true, BE),
        (0, 0, true, BE),
        (600, 0, true, BE),
    ];
    assert_eq!(timeline(&wifi, &later).0[3], (742 + 228) * US);
}

#[test]
fn a_frame_that_nothing_answers_is_sent_again_and_given_up_at_the_retry_limit() {
    // Behind each attempt a timeout of SIFS 16, a slot 9 and a preamble 20, and AIFS: 43, 359, 675 us.
    let mut wifi = certain(1, 0);
    wifi.stations[0].error_ppm = 1_000_000;
    for (limit, given_up_us) in [(1, 271), (2, 587), (3, 903)] {
        wifi.retry_limit = limit;
        let (arrivals, losses) = timeline(&wifi, &[(0, 0, true, BE)]);
        assert_eq!((arrivals, losses), (vec![], us(&[given_up_us])));
    }
}

#[test]
fn mpdus_that_were_missing_too_often_are_given_up_and_a_request_goes_before_the_data() {
    // Two MPDUs: 3086 bytes in 96 symbols, 420 us: from 43 to 463, and after 45 and 43 from 551 to 971. With a
    // BlockAckReq of 32 from 551, BlockAck to 631, and data from 674 to 1094.
    let mut wifi = certain(1, 65_535);
    wifi.stations[0].error_ppm = 1_000_000;
    for (limit, request, given_up_us) in [
        (0, false, 463),
        (1, false, 971),
        (0, true, 463),
        (1, true, 1094),
    ] {
        wifi.block_ack_retry_limit = Some(limit);
        wifi.rules.explicit_block_ack_request = request;
        let losses = timeline(&wifi, &[(0, 0, true, BE); 2]).1;
        assert_eq!(losses, us(&[given_up_us; 2]), "{limit} {request}");
    }
}

#[test]
fn frames_that_begin_within_the_detection_time_collide() {
    // Both at 43 us, to 271; again after 45 and 43: 43 + 316 k. The seventh is the last.
    let sends = [(0, 0, true, BE), (0, 1, true, BE)];
    let (arrivals, losses) = timeline(&certain(2, 0), &sends);
    assert_eq!((arrivals, losses), (vec![], us(&[43 + 6 * 316; 2])));
    // RTS collide for 28 us: again after 28 + 45 + 43.
    let mut wifi = certain(2, 0);
    wifi.rts_threshold_bytes = Some(1000);
    let (arrivals, losses) = timeline(&wifi, &sends);
    assert_eq!((arrivals, losses), (vec![], us(&[43 + 6 * 116; 2])));
}

#[test]
fn a_long_frame_is_announced_by_rts_and_cts() {
    // RTS 28, SIFS, CTS 28, SIFS: 88 us before the frame. The threshold itself is not announced.
    for (threshold, arrival_us) in [(1537, 359), (1538, 271)] {
        let mut wifi = certain(1, 0);
        wifi.rts_threshold_bytes = Some(threshold);
        assert_eq!(timeline(&wifi, &[(0, 0, true, BE)]).0, us(&[arrival_us]));
    }
}

#[test]
fn a_transmission_opportunity_goes_on_sifs_after_the_ack_while_the_next_exchange_fits() {
    // VI: AIFS 34; 34 to 262, Ack to 306, SIFS, 322 to 550, 610 to 838.
    let mut wifi = certain(1, 0);
    let sends = [(0, 0, true, VI); 3];
    assert_eq!(timeline(&wifi, &sends).0, us(&[262, 550, 838]));
    // Two exchanges take 272 + 16 + 272 us.
    wifi.access[VI].txop_ns = 560 * US;
    assert_eq!(timeline(&wifi, &sends).0[..2], us(&[262, 550]));
    wifi.rules.reserve_whole_txop = false;
    assert_eq!(timeline(&wifi, &sends).0, us(&[262, 550, 594 + 34 + 228]));
    wifi.access[VI].txop_ns = 559 * US;
    assert_eq!(timeline(&wifi, &sends).0[..2], us(&[262, 306 + 34 + 228]));
    wifi.access[VI].txop_ns = 0;
    assert_eq!(timeline(&wifi, &sends).0[..2], us(&[262, 306 + 34 + 228]));
}

#[test]
fn the_higher_category_goes_first_and_releases_its_reservation() {
    // VO from 34 to 262, Ack to 306; CF-End of 52 after SIFS to 374; BE 43 later. Without a reservation from
    // 306 on.
    let mut wifi = certain(1, 0);
    let sends = [(0, 0, true, BE), (0, 0, true, VO)];
    assert_eq!(timeline(&wifi, &sends).0, us(&[262, 374 + 43 + 228]));
    wifi.rules.reserve_whole_txop = false;
    assert_eq!(timeline(&wifi, &sends).0, us(&[262, 306 + 43 + 228]));
    // Where no CF-End fits, others wait for the end of the reservation, the two ends do not.
    wifi.rules.reserve_whole_txop = true;
    wifi.access[VO].txop_ns = 300 * US;
    assert_eq!(timeline(&wifi, &sends).0, us(&[262, 306 + 43 + 228]));
    let mut two = certain(2, 0);
    two.access[VO].txop_ns = 300 * US;
    let sends = [(0, 1, true, BE), (0, 0, true, VO)];
    assert_eq!(timeline(&two, &sends).0, us(&[262, 334 + 43 + 228]));
}

#[test]
fn a_beacon_takes_its_turn_pifs_after_its_time() {
    // 208 us from 1000 on, as the medium is idle. A frame of 999 us would begin at the slot boundary of 1006 and
    // waits until 1208 + 43; one of 995 us begins at 997, within the detection time: it is lost, and goes again
    // from 997 + 228 + 45 + 43 on.
    for (sent_us, begins_us) in [(999, 1251), (995, 1313)] {
        let arrived = around_a_beacon(sent_us);
        assert_eq!(arrived, [271, begins_us + 228].map(|us| us * US));
    }
}

/// When two full packets arrive, of 0 and of this time, on a channel with a beacon each ms.
fn around_a_beacon(sent_us: u64) -> Vec<u64> {
    let mut wifi = certain(1, 0);
    wifi.beacon_interval_ns = 1000 * US;
    let mut channel = Channel::<Small>::new(&wifi, 1).expect("a sound channel");
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    let mut arrived = Vec::new();
    for (at_us, until_us) in [(0, 900), (sent_us, 1900)] {
        channel.send(at_us * US, 0, true, BE, Small(1514), &mut dropped);
        while channel.next_ns() <= until_us * US {
            let at_ns = channel.next_ns();
            channel.advance(at_ns, &mut delivered, &mut dropped);
            arrived.extend(delivered.drain(..).map(|_| at_ns));
        }
    }
    arrived
}

#[test]
fn totals_and_counters_count_what_was_sent_answered_and_handed_on() {
    let mut wifi = certain(1, 0);
    wifi.retry_limit = 2;
    let mut channel = Channel::<Small>::new(&wifi, 1).expect("a sound channel");
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        channel.send(0, 0, true, BE, Small(1514), &mut dropped);
    }
    channel.send(0, 0, false, VI, Small(100), &mut dropped);
    assert_eq!(channel.backlog(true), (3, 3 * 1514));
    assert_eq!(channel.backlog(false), (1, 100));
    channel.advance(S, &mut delivered, &mut dropped);
    let totals = channel.totals(0, true, BE);
    assert_eq!(
        (totals.delivered_packets, totals.delivered_bytes),
        (3, 3 * 1514)
    );
    assert_eq!(
        (totals.ppdus, totals.mpdus, totals.retried_mpdus),
        (3, 3, 0)
    );
    assert_eq!((totals.unanswered_ppdus, totals.lost_packets), (0, 0));
    // Each 228, SIFS 16 and Ack 28.
    assert_eq!(totals.airtime_ns, 3 * 272 * US);
    let counters = channel.counters(true);
    assert_eq!(
        (
            counters.offered_packets,
            counters.sent_packets,
            counters.sent_bytes
        ),
        (3, 3, 4542)
    );
    assert_eq!(channel.counters(false).sent_bytes, 100);
    assert_eq!(
        (channel.backlog(true), channel.backlog(false)),
        ((0, 0), (0, 0))
    );
    wifi.stations[0].error_ppm = 1_000_000;
    let mut channel = Channel::<Small>::new(&wifi, 1).expect("a sound channel");
    channel.send(0, 0, true, BE, Small(1514), &mut dropped);
    channel.advance(S, &mut delivered, &mut dropped);
    let totals = channel.totals(0, true, BE);
    assert_eq!(
        (totals.ppdus, totals.mpdus, totals.retried_mpdus),
        (2, 2, 1)
    );
    assert_eq!(
        (
            totals.unanswered_ppdus,
            totals.lost_packets,
            totals.airtime_ns
        ),
        (2, 1, 0)
    );
    assert_eq!(channel.counters(true).dropped_packets, 1);
}

#[test]
fn a_drivers_fifo_holds_its_limit_with_what_is_in_the_air() {
    let mut wifi = certain(1, 0);
    wifi.stations[0].queues = driver(2);
    let mut channel = Channel::<Small>::new(&wifi, 1).expect("a sound channel");
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        channel.send(0, 0, true, BE, Small(1514), &mut dropped);
    }
    assert_eq!(dropped.len(), 1);
    channel.advance(300 * US, &mut delivered, &mut dropped);
    channel.send(300 * US, 0, true, BE, Small(1514), &mut dropped);
    channel.send(300 * US, 0, true, BE, Small(1514), &mut dropped);
    assert_eq!((delivered.len(), dropped.len()), (1, 2));
}

#[test]
fn as_a_link_forward_is_up_and_flows_are_at_their_stations() {
    // Flow 1 is at the second station, whose frames are all lost; others are at the first one. EF has the VO
    // category: 34 us of AIFS instead of 43.
    let mut wifi = certain(2, 0);
    wifi.rules.reserve_whole_txop = false;
    wifi.retry_limit = 1;
    wifi.stations[1].error_ppm = 1_000_000;
    let mut link = WifiLink::<TestPacket>::new(&wifi, &[0, 1], &[1], 1).expect("sound");
    let mut passed = Passed::default();
    for direction in Direction::BOTH {
        assert_eq!(link.timer(direction), 0, "both share one");
    }
    link.advance(0, 0, &mut passed); // background traffic begins
    assert_eq!((link.due_ns(0), link.due_ns(1)), (None, None));
    let mut send = |link: &mut WifiLink<TestPacket>, now_us: u64, id, flow, dscp, direction| {
        let packet = TestPacket {
            dscp,
            ..TestPacket::new(id, flow, 1514)
        };
        link.offer(now_us * US, direction, packet, &mut passed);
        while let Some(due_ns) = link.due_ns(0) {
            assert_eq!(link.due_ns(1), None);
            link.advance(due_ns, 0, &mut passed);
        }
        let out: Vec<_> = (passed.out.drain(..))
            .map(|exit| (exit.at_ns, exit.direction, exit.packet.id))
            .collect();
        let dropped: Vec<u64> = passed.dropped.drain(..).map(|packet| packet.id).collect();
        (out, dropped)
    };
    use Direction::{Forward, Reverse};
    assert_eq!(
        send(&mut link, 0, 1, 0, 0, Forward),
        (vec![(271_000, Forward, 1)], vec![])
    );
    let state =
        |link: &WifiLink<TestPacket>, direction| link.state(direction).expect("a queue").counters;
    assert_eq!(state(&link, Forward).sent_packets, 1);
    assert_eq!(state(&link, Reverse).sent_packets, 0);
    // After 315 us: boundaries at 349 + 9 k and, for best effort, at 358 + 9 k.
    assert_eq!(
        send(&mut link, 349, 2, 0, 46, Reverse),
        (vec![(577_000, Reverse, 2)], vec![])
    );
    assert_eq!(send(&mut link, 2000, 3, 1, 0, Forward), (vec![], vec![3]));
    assert_eq!(state(&link, Forward).dropped_packets, 1);
    let (out, _) = send(&mut link, 3000, 4, 9, 0, Forward);
    assert_eq!(out.len(), 1, "an unknown flow is at the first station");
    link.set_station(9, 1);
    assert_eq!(send(&mut link, 4000, 5, 9, 0, Reverse).1, [5]);
    assert_eq!(send(&mut link, 5000, 6, 8, 0, Forward).0.len(), 1);
    let error = |own: &[u16], later: &[u16]| WifiLink::<Small>::new(&wifi, own, later, 1).err();
    assert_eq!(error(&[0, 1], &[1]), None);
    assert!(error(&[2], &[]).is_some() && error(&[], &[2]).is_some());
}
