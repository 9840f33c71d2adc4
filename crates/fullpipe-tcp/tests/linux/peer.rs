//! The peer of a sender under test: ACKs made by hand, or by a receiver that acknowledges every packet.

use std::collections::BTreeSet;

use fullpipe_cc::{algorithm, set, Controller};
use fullpipe_plan::{CcFacts, Pacing, RateRestart};
use fullpipe_tcp::{
    Ack, Block, Burst, Data, EcnFeedback, Established, Rules, Sender, SenderConfig, SenderEvent,
    MAX_BLOCKS,
};

pub(crate) const MSS: u32 = 1448;
pub(crate) const MS: u64 = 1_000_000;
/// The RTT of the handshake, and of ACKs unless a test says otherwise.
pub(crate) const RTT: u64 = 40 * MS;
/// When the connection is established.
pub(crate) const START: u64 = 1_000 * MS;

pub(crate) fn config() -> SenderConfig {
    SenderConfig {
        mss_bytes: MSS,
        pacing: Pacing::Internal,
        pacing_shift: 10,
        gso_max_segments: 1,
        rules: Rules::default(),
        facts: CcFacts::default(),
        rate_restart: RateRestart::default(),
        initial_cwnd: 10,
        wmem_max_bytes: 1 << 30,
        notsent_lowat_bytes: None,
        max_pacing_bytes_per_s: u64::MAX,
        sysctl: fullpipe_plan::Sysctl::default(),
        ecn: false,
        feedback: EcnFeedback::Latched,
        l4s: false,
        seed: 1,
        amount_bytes: None,
        written_by_application: false,
        nodelay: false,
    }
}

/// An established connection whose peer offers a window that never limits.
pub(crate) fn sender(cc: &str, config: SenderConfig) -> Sender {
    sender_over(RTT, cc, config)
}

/// The same with another RTT.
pub(crate) fn sender_over(rtt_ns: u64, cc: &str, config: SenderConfig) -> Sender {
    let set = set(cc).expect("a registered set");
    let known = algorithm(set.algorithm).expect("its algorithm");
    let cc = Controller::new(known, &set.values).expect("values in range");
    establish(rtt_ns, config, cc)
}

/// The same with any controller.
pub(crate) fn establish(rtt_ns: u64, config: SenderConfig, cc: Controller) -> Sender {
    establish_offered(1 << 30, rtt_ns, config, cc)
}

/// The same with another window.
fn establish_offered(
    window_bytes: u64,
    rtt_ns: u64,
    config: SenderConfig,
    cc: Controller,
) -> Sender {
    let ecn = config.ecn;
    let mut sender = Sender::new(config, cc);
    sender.establish(
        START,
        &Established {
            rtt_ns,
            window_bytes,
            ecn,
            ..Established::default()
        },
    );
    sender
}

/// A Reno sender whose peer offers another window.
pub(crate) fn reno_offered(window_bytes: u64, config: SenderConfig) -> Sender {
    let set = set("reno").expect("a registered set");
    let known = algorithm(set.algorithm).expect("its algorithm");
    let cc = Controller::new(known, &set.values).expect("values in range");
    establish_offered(window_bytes, RTT, config, cc)
}

pub(crate) fn reno() -> Sender {
    sender("reno", config())
}

pub(crate) fn with_cwnd(initial_cwnd: u32) -> Sender {
    sender(
        "reno",
        SenderConfig {
            initial_cwnd,
            ..config()
        },
    )
}

/// What the sender sends now.
pub(crate) fn sends(sender: &mut Sender, now_ns: u64) -> Vec<Data> {
    let mut out = Vec::new();
    sender.transmit(now_ns, &mut out);
    packets(out)
}

/// When the sender's timer expires, and what it sends then.
pub(crate) fn expires(sender: &mut Sender) -> (u64, Vec<Data>) {
    let at_ns = sender.timer_ns().expect("a timer runs");
    let mut out = Vec::new();
    sender.on_timer(at_ns, &mut out);
    (at_ns, packets(out))
}

fn packets(bursts: Vec<Burst>) -> Vec<Data> {
    bursts.into_iter().flat_map(Burst::packets).collect()
}

pub(crate) fn numbers(packets: &[Data]) -> Vec<u32> {
    packets.iter().map(|packet| packet.number).collect()
}

pub(crate) fn events(sender: &mut Sender) -> Vec<SenderEvent> {
    sender.take_events().collect()
}

/// A cumulative ACK of packets that were sent an RTT ago.
pub(crate) fn ack(next: u32, echo_ns: u64) -> Ack {
    Ack {
        next,
        window_bytes: 1 << 30,
        echo_ns,
        sent_ns: echo_ns + RTT / 2,
        ..Ack::default()
    }
}

/// The same with SACK blocks, the newest first.
pub(crate) fn sack(next: u32, echo_ns: u64, ranges: &[(u32, u32)]) -> Ack {
    let mut ack = ack(next, echo_ns);
    for (slot, &(start, end)) in ack.blocks.iter_mut().zip(ranges) {
        *slot = Block { start, end };
        ack.count += 1;
    }
    ack
}

/// The same with a DSACK (RFC 2883).
pub(crate) fn dsack(next: u32, echo_ns: u64, duplicate: (u32, u32)) -> Ack {
    Ack {
        dsack: true,
        ..sack(next, echo_ns, &[duplicate])
    }
}

/// A receiver that acknowledges each packet at once, with SACK blocks as in RFC 2018.
#[derive(Default)]
pub(crate) struct Answers {
    next: u32,
    beyond: BTreeSet<u32>,
    echo_ns: u64,
}

impl Answers {
    pub(crate) fn to(&mut self, packet: &Data) -> Ack {
        if packet.number <= self.next {
            self.echo_ns = packet.departs_ns;
        }
        if packet.number >= self.next {
            self.beyond.insert(packet.number);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &number in &self.beyond {
            match ranges.last_mut() {
                Some(range) if range.1 == number => range.1 += 1,
                _ => ranges.push((number, number + 1)),
            }
        }
        ranges.sort_by_key(|range| !(range.0..range.1).contains(&packet.number));
        ranges.truncate(MAX_BLOCKS);
        sack(self.next, self.echo_ns, &ranges)
    }
}
