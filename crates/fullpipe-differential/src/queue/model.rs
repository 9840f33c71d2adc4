//! Plays a script to the link of `fullpipe-net`.

use fullpipe_net::{
    derive_seed, Aqm, Direction, Ecn, HostPair, Kernel, Link, Packet, Passed, Qdisc, Wire,
    WireDirection, LINK_HEADER_BYTES,
};

use super::answer::{Answer, Departure};
use super::script::{Arrival, Script};

/// Of the ports of both sides, without the link header.
const MTU_BYTES: u32 = 1_500;
/// The first seed of its random numbers.
pub(super) const MODEL_SEED: u64 = 0;
/// What follows the last arrival: longer than any queue of a drawn script needs to become empty.
const DRAIN_US: u64 = 120_000_000;

/// The purpose of random hashes.
const PURPOSE: u32 = 52;
/// Numbers of hosts, which differ between the two sides of the network in a bit.
const SOURCES: u32 = 1_000;
const DESTINATIONS: u32 = 2_000;
const SIDE: u32 = 1 << 31;

/// A packet of a script.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u32,
    arrival: Arrival,
    memory_bytes: u32,
    /// Of the hashes of flows and hosts.
    seed: u64,
}

impl Sent {
    fn hash(&self, of: u32) -> u32 {
        match self.seed {
            MODEL_SEED => of,
            seed => derive_seed(seed, PURPOSE, of) as u32,
        }
    }
}

impl Packet for Sent {
    fn wire_bytes(&self) -> u32 {
        self.arrival.bytes
    }

    fn flow_key(&self) -> u32 {
        self.hash(self.arrival.flow.into())
    }

    fn ecn(&self) -> Ecn {
        self.arrival.ecn()
    }

    fn mark_ce(&mut self) {
        self.arrival.tos |= 3;
    }

    fn hosts(&self) -> HostPair {
        let flow = u32::from(self.arrival.flow);
        HostPair {
            source: self.hash(SOURCES + flow / 2) | SIDE,
            destination: self.hash(DESTINATIONS + flow) & !SIDE,
        }
    }

    fn dscp(&self) -> u8 {
        self.arrival.tos >> 2
    }

    fn clear_dscp(&mut self) {
        self.arrival.tos &= 3;
    }

    fn memory_bytes(&self) -> u32 {
        self.memory_bytes
    }
}

/// What the model does at a script, with the rules of a kernel. The error names a key.
pub fn play(script: &Script, kernel: Kernel) -> Result<Answer, String> {
    play_seeded(script, kernel, MODEL_SEED)
}

/// The same with another seed of its random numbers.
pub(super) fn play_seeded(script: &Script, kernel: Kernel, seed: u64) -> Result<Answer, String> {
    play_delayed(script, kernel, seed, |_| 0)
}

/// The same if each packet reaches the queue some us later.
pub(super) fn play_delayed(
    script: &Script,
    kernel: Kernel,
    seed: u64,
    delay_us: impl FnMut(usize) -> u64,
) -> Result<Answer, String> {
    let forward = WireDirection {
        rate_bps: Some(script.rate_bps),
        delay_ns: 0,
        qdisc: with_rules(&script.qdisc, kernel),
        loss: None,
        rate_steps: Vec::new(),
        delay_steps: Vec::new(),
        rate_trace: None,
        delay_trace: None,
        overhead: None,
        impairments: None,
    };
    let mut delay_us = delay_us;
    let mut playing = Playing {
        wire: Wire::new([&forward, &forward], 0, seed, MTU_BYTES)?,
        passed: Passed::default(),
        left: Vec::new(),
    };
    for (number, arrival) in script.events.iter().enumerate() {
        let now_ns = (arrival.at_us + delay_us(number)) * 1000;
        playing.advance(now_ns);
        playing.offer(
            now_ns,
            Sent {
                number: number as u32,
                arrival: *arrival,
                memory_bytes: memory_bytes(arrival.bytes, kernel),
                seed,
            },
        );
    }
    let last_us = script.events.last().map_or(0, |arrival| arrival.at_us);
    playing.advance((last_us + DRAIN_US) * 1000);
    Ok(Answer {
        script: script.name.clone(),
        left: playing.left,
    })
}

struct Playing {
    wire: Wire<Sent>,
    passed: Passed<Sent>,
    left: Vec<Departure>,
}

impl Playing {
    /// Lets packets leave that may leave by then.
    fn advance(&mut self, until_ns: u64) {
        let timer = self.wire.timer(Direction::Forward);
        while let Some(due_ns) = self.wire.due_ns(timer).filter(|&at_ns| at_ns <= until_ns) {
            self.wire.advance(due_ns, timer, &mut self.passed);
            self.note();
        }
    }

    fn offer(&mut self, now_ns: u64, packet: Sent) {
        self.wire
            .offer(now_ns, Direction::Forward, packet, &mut self.passed);
        self.note();
    }

    fn note(&mut self) {
        self.passed.dropped.clear();
        let out = self.passed.out.drain(..).map(|exit| Departure {
            packet: exit.packet.number,
            at_us: exit.at_ns / 1000,
            tos: exit.packet.arrival.tos,
        });
        self.left.extend(out);
    }
}

/// The queue with a kernel's rules.
fn with_rules(qdisc: &Qdisc, kernel: Kernel) -> Qdisc {
    let mut qdisc = qdisc.clone();
    match &mut qdisc.aqm {
        Aqm::Codel(params) => params.kernel = Some(kernel),
        Aqm::FqCodel(params) => params.kernel = Some(kernel),
        Aqm::Fq(params) => params.kernel = Some(kernel),
        _ => {}
    }
    qdisc
}

/// Memory of a packet that a packet socket sends (truesize): a buffer of a size that kmalloc() has, with room
/// for link headers and struct skb_shared_info, and a struct sk_buff. Since 6.3 small buffers have a size of
/// their own (SKB_SMALL_HEAD_CACHE_SIZE).
fn memory_bytes(wire_bytes: u32, kernel: Kernel) -> u32 {
    const LINK_ROOM_BYTES: u32 = 16;
    const SHARED_INFO_BYTES: u32 = 320;
    const SK_BUFF_BYTES: u32 = 256;
    const SMALL_HEAD_BYTES: u32 = 704;
    const LINE_BYTES: u32 = 64;
    let data_bytes =
        (LINK_ROOM_BYTES + wire_bytes - LINK_HEADER_BYTES).next_multiple_of(LINE_BYTES);
    let needed_bytes = data_bytes + SHARED_INFO_BYTES;
    let has_small_heads = kernel >= Kernel::Linux6_4;
    SK_BUFF_BYTES
        + match needed_bytes {
            0..=SMALL_HEAD_BYTES if has_small_heads => SMALL_HEAD_BYTES,
            more => more.next_power_of_two(),
        }
}
