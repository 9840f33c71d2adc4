//! A sender and a receiver over a path that loses, reorders and stops.

use fullpipe_cc::{algorithm, set, Controller};
use fullpipe_plan::{AckPolicy, CcFacts, Pacing, RateRestart};

use crate::{
    Ack, Burst, Data, EcnFeedback, Established, Receiver, ReceiverConfig, Rules, Sender,
    SenderConfig,
};

const MSS: u32 = 1448;
const MS: u64 = 1_000_000;

fn ends(name: &str, facts: CcFacts) -> (Sender, Receiver) {
    let set = set(name).expect("a registered set");
    let known = algorithm(set.algorithm).expect("its algorithm");
    let cc = Controller::new(known, &set.values).expect("values in range");
    let mut sender = Sender::new(
        SenderConfig {
            mss_bytes: MSS,
            pacing: Pacing::Internal,
            pacing_shift: 10,
            gso_max_segments: 44,
            rules: Rules::default(),
            facts,
            rate_restart: RateRestart::default(),
            initial_cwnd: 10,
            wmem_max_bytes: 1 << 30,
            notsent_lowat_bytes: None,
            max_pacing_bytes_per_s: u64::MAX,
            sysctl: fullpipe_plan::Sysctl::default(),
            nodelay: false,
            ecn: false,
            feedback: EcnFeedback::Latched,
            l4s: false,
            seed: 1,
            amount_bytes: None,
            written_by_application: false,
        },
        cc,
    );
    let opened = Established {
        rtt_ns: 20 * MS,
        window_bytes: 1 << 20,
        ..Established::default()
    };
    sender.establish(MS, &opened);
    let receiver = Receiver::new(ReceiverConfig {
        mss_bytes: MSS,
        ack_policy: AckPolicy::Linux,
        rules: Rules::default(),
        window_bytes: Some(1 << 20),
        rmem_max_bytes: 1 << 30,
        rcvlowat_bytes: 1,
        work_ns: 0,
        reader_stalls: None,
        aggregation_ns: 0,
        feedback: EcnFeedback::Latched,
    });
    (sender, receiver)
}

/// What a sender transmits in three seconds over a path that loses one packet in `one_in` and
/// reorders others, and its state then. With `splits` each packet has its own record at once.
fn transmissions(name: &str, facts: CcFacts, one_in: u64, splits: bool) -> (Vec<Burst>, String) {
    let (mut sender, mut receiver) = ends(name, facts);
    let mut random = 88_172_645_463_325_252_u64;
    let (mut data, mut acks) = (Vec::<(u64, Data)>::new(), Vec::<(u64, Ack)>::new());
    let (mut out, mut all) = (Vec::new(), Vec::new());
    for now_ns in (1..15_000).map(|step| step * MS / 5) {
        let arrived = acks.partition_point(|&(at_ns, _)| at_ns <= now_ns);
        for (_, ack) in acks.drain(..arrived) {
            sender.on_ack(now_ns, &ack);
        }
        if sender.timer_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            sender.on_timer(now_ns, &mut out);
        }
        sender.transmit(now_ns, &mut out);
        if splits {
            sender.flight.split_bursts();
        }
        for packet in out.iter().copied().flat_map(Burst::packets) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Nothing arrives for 400 ms of each second, which causes timeouts.
            let is_lost = random % one_in == 0 || now_ns % (1000 * MS) > 600 * MS;
            let late_ns = if random % 401 == 1 { 8 * MS } else { 0 };
            if !is_lost {
                let at_ns = now_ns + 10 * MS + late_ns;
                let place = data.partition_point(|&(other_ns, _)| other_ns <= at_ns);
                data.insert(place, (at_ns, packet));
            }
        }
        all.append(&mut out);
        let arrived = data.partition_point(|&(at_ns, _)| at_ns <= now_ns);
        let bound_ns = sender.timer_lower_bound_ns();
        assert!(sender.timer_ns().unwrap_or(u64::MAX) >= bound_ns);
        assert_eq!(sender.timer_ns().is_none(), bound_ns == u64::MAX);
        let bound_ns = receiver.timer_lower_bound_ns();
        assert!(receiver.timer_ns().unwrap_or(u64::MAX) >= bound_ns);
        assert_eq!(receiver.timer_ns().is_none(), bound_ns == u64::MAX);
        let late = receiver.timer_ns().filter(|&at_ns| at_ns <= now_ns);
        let mut answers: Vec<_> = late
            .and_then(|_| receiver.on_timer(now_ns))
            .into_iter()
            .collect();
        answers.extend(
            data.drain(..arrived)
                .filter_map(|(_, data)| receiver.on_data(now_ns, &data)),
        );
        acks.extend(answers.into_iter().map(|ack| (now_ns + 10 * MS, ack)));
    }
    let state = format!(
        "{:?} {:?}",
        sender.totals(),
        sender.controller().variables()
    );
    (all, state)
}

#[test]
fn a_burst_with_one_record_behaves_as_packets_with_their_own() {
    for (name, facts) in [
        ("cubic", CcFacts::Google),
        ("bbr3", CcFacts::Google),
        ("bbr1", CcFacts::Stock),
    ] {
        for one_in in [50, 1000, u64::MAX] {
            let together = transmissions(name, facts, one_in, false);
            assert!(together.0.len() > 100, "{name} hardly sends");
            assert!(together.0.iter().any(|run| run.data.is_retransmission));
            assert_eq!(
                together,
                transmissions(name, facts, one_in, true),
                "{name}, 1 in {one_in}"
            );
        }
    }
}
