//! What is asked before a sending: an algorithm that says that the question changes nothing
//! (`CC_SEND_IS_PURE`) need not be asked, whatever it was told before.

use fullpipe_cc::{algorithm, flags, sets, Ack, Conn, Controller, Ctl, Event};

struct Random(u64);

impl Random {
    /// xorshift64 (Marsaglia 2003).
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(limit)) as u32
    }
}

/// Any event or any ACK.
fn tell(cc: &mut Controller, conn: &mut Conn, ctl: &mut Ctl, random: &mut Random) {
    conn.now_us += u64::from(random.below(5000));
    conn.now_ns = conn.now_us * 1000;
    conn.edt_ns = conn.now_ns + u64::from(random.below(1_000_000));
    conn.inflight = random.below(200);
    conn.packets_out = conn.inflight;
    if random.below(4) == 0 {
        let event = Event {
            kind: 1 + random.below(13),
            value: random.below(5),
            packets: random.below(20),
            is_app_limited: random.below(2),
        };
        return cc.on_event(conn, event, ctl);
    }
    let acked = random.below(40);
    let mut ack = Ack {
        prior_us: conn.now_us.saturating_sub(20_000),
        prior_delivered: conn.delivered.wrapping_sub(random.below(100)),
        delivered: random.below(100) as i32,
        interval_us: random.below(40_000) as i32 - 1,
        rtt_us: random.below(60_000) as i32 - 1,
        losses: random.below(3),
        acked_sacked: acked,
        prior_inflight: conn.inflight + acked,
        tx_inflight: random.below(300),
        lost: random.below(10),
        is_app_limited: random.below(2) as u8,
        ..Ack::default()
    };
    conn.delivered = conn.delivered.wrapping_add(acked);
    conn.lost += ack.losses;
    conn.srtt_us = 1 + random.below(60_000);
    cc.on_ack(conn, &mut ack, ctl);
}

#[test]
fn who_says_that_being_asked_before_a_sending_changes_nothing_keeps_to_it() {
    let mut asked = 0;
    for set in sets() {
        let known = algorithm(set.algorithm).expect("its algorithm");
        if known.flags() & flags::SEND_IS_PURE == 0 {
            continue;
        }
        let made = Controller::new(known, &set.values).expect("values in range");
        let mut cc = made.without_ring();
        let mut conn = Conn {
            mss_bytes: 1448,
            cwnd_clamp: u32::MAX,
            pacing_rate_cap_bytes_per_s: u64::MAX,
            gso_max_segs: 44,
            seed: 7,
            ecn_ok: 1,
            ..Conn::default()
        };
        let mut ctl = Ctl {
            cwnd: 10,
            ..Ctl::default()
        };
        cc.init(&conn, &mut ctl);
        let mut random = Random(88_172_645_463_325_252);
        for step in 0..20_000 {
            tell(&mut cc, &mut conn, &mut ctl, &mut random);
            if !cc.on_send_is_pure() {
                continue; // its rate follows the window
            }
            asked += 1;
            let state = cc.state_mut().to_vec();
            let before = ctl;
            let tso_segs = cc.on_send(&conn, &mut ctl);
            assert_eq!(Ctl { tso_segs, ..before }, ctl, "{}, call {step}", set.name);
            assert!(cc.state_mut() == state, "{}, call {step}", set.name);
        }
    }
    assert!(asked > 100_000, "hardly anybody was asked");
}
