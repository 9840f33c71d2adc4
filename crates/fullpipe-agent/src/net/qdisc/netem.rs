//! netem: delay, jitter, loss, duplication and reordering of a path.

use fullpipe_net::impair::crandom::{self, fraction};
use fullpipe_net::impair::{gilbert, loss, netem_jitter, reorder};

use super::spec::Spec;
use crate::net::netlink::Message;

/// netem holds a path's packets in flight and must never drop them for lack of space.
const LIMIT_PACKETS: u32 = 1_000_000;
/// Of a rate at which packets take no time.
const ENDLESS_BYTES_PER_S: u64 = 1_000_000_000_000;
// linux/pkt_sched.h
const TCA_NETEM_CORR: u16 = 1;
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_ECN: u16 = 7;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_SLOT: u16 = 12;
/// Since Linux 6.7.
const TCA_NETEM_PRNG_SEED: u16 = 14;
/// Inside of TCA_NETEM_LOSS.
const NETEM_LOSS_GE: u16 = 2;
const NETEM_SLOT_BYTES: usize = 40;

/// What netem does to every packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Netem {
    /// Least delay.
    pub(crate) delay_ns: u64,
    /// Each packet draws up to this much more, and waits for those before it.
    pub(crate) jitter_ns: u64,
    /// The delay is only the mean; packets overtake one another.
    pub(crate) spread: Option<netem_jitter::Params>,
    /// Packets wait for a slot, which begins so long (least, most) after the first of them came.
    pub(crate) slot_ns: Option<(u64, u64)>,
    /// A packet that is delayed less than the one before it waits for that.
    pub(crate) keeps_order: bool,
    pub(crate) loss: Option<loss::Params>,
    pub(crate) gemodel: Option<gilbert::Params>,
    pub(crate) duplicate: Option<crandom::Params>,
    pub(crate) reorder: Option<reorder::Params>,
    /// Most packets that it holds; `None`: as many as it takes.
    pub(crate) limit: Option<u32>,
    /// Of its random numbers, where the kernel takes one.
    pub(crate) seed: u64,
}

/// netem with these options.
pub(crate) fn netem(netem: &Netem) -> Spec {
    let limit = netem.limit.unwrap_or(LIMIT_PACKETS);
    let mut line = format!("netem limit {limit}");
    let mut options = Message::attributes();
    put_struct(netem, &mut options);
    put_delay(netem, &mut options, &mut line);
    put_chances(netem, &mut options, &mut line);
    options.attribute_u64(TCA_NETEM_PRNG_SEED, netem.seed);
    Spec::of("netem", &options, line)
}

/// struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter
fn put_struct(netem: &Netem, options: &mut Message) {
    let loss = netem.loss.as_ref();
    let twice = netem.duplicate.as_ref();
    let gap = netem
        .reorder
        .as_ref()
        .map_or(0, |reorder| reorder.gap.max(1));
    let qopt = [
        0,
        netem.limit.unwrap_or(LIMIT_PACKETS),
        loss.map_or(0, |loss| fraction(loss.probability_ppm)),
        gap,
        twice.map_or(0, |chance| fraction(chance.probability_ppm)),
        0,
    ];
    options.put(&qopt.map(u32::to_ne_bytes).concat());
}

fn put_delay(netem: &Netem, options: &mut Message, line: &mut String) {
    // netem draws from delay - jitter ..= delay + jitter.
    let half_ns = netem.jitter_ns / 2;
    options.attribute_u64(TCA_NETEM_LATENCY64, netem.delay_ns + half_ns);
    if netem.delay_ns > 0 || netem.jitter_ns > 0 {
        *line += &format!(" delay {}ns", netem.delay_ns + half_ns);
    }
    if netem.jitter_ns > 0 {
        options.attribute_u64(TCA_NETEM_JITTER64, half_ns);
        *line += &format!(" {half_ns}ns");
    }
    if netem.jitter_ns > 0 || netem.keeps_order {
        // With a rate, a packet leaves no earlier than the one before it (netem_enqueue()).
        // struct tc_netem_rate: rate, packet_overhead, cell_size, cell_overhead
        let rate = [u32::MAX, 0, 0, 0];
        options.attribute(TCA_NETEM_RATE, &rate.map(u32::to_ne_bytes).concat());
        options.attribute_u64(TCA_NETEM_RATE64, ENDLESS_BYTES_PER_S);
        *line += " rate 8tbit";
    }
    if let Some(spread) = &netem.spread {
        options.attribute_u64(TCA_NETEM_JITTER64, spread.jitter_ns);
        *line += &format!(" {}ns", spread.jitter_ns);
        if !spread.table.is_empty() {
            let numbers: Vec<u8> = (spread.table.iter())
                .flat_map(|number| number.to_ne_bytes())
                .collect();
            options.attribute(TCA_NETEM_DELAY_DIST, &numbers);
            *line += " distribution (a table)";
        }
    }
    if let Some((least_ns, most_ns)) = netem.slot_ns {
        // struct tc_netem_slot: min_delay, max_delay, ...
        let mut slot = [0u8; NETEM_SLOT_BYTES];
        slot[..8].copy_from_slice(&least_ns.to_ne_bytes());
        slot[8..16].copy_from_slice(&most_ns.to_ne_bytes());
        options.attribute(TCA_NETEM_SLOT, &slot);
        *line += &format!(" slot {least_ns}ns {most_ns}ns");
    }
}

fn put_chances(netem: &Netem, options: &mut Message, line: &mut String) {
    let percent = |ppm: u32| f64::from(ppm) / 1e4;
    let loss = netem.loss.as_ref();
    let twice = netem.duplicate.as_ref();
    if loss.is_some() || twice.is_some() {
        // struct tc_netem_corr: delay, loss, duplicate
        let of_loss = loss.map_or(0, |loss| fraction(loss.correlation_ppm));
        let of_copies = twice.map_or(0, |chance| fraction(chance.correlation_ppm));
        let correlation = [0, of_loss, of_copies];
        options.attribute(TCA_NETEM_CORR, &correlation.map(u32::to_ne_bytes).concat());
    }
    if let Some(chance) = twice {
        *line += &format!(" duplicate {}%", percent(chance.probability_ppm));
    }
    if let Some(reorder::Params { chance, gap }) = &netem.reorder {
        // struct tc_netem_reorder: probability, correlation
        let parts = [chance.probability_ppm, chance.correlation_ppm].map(fraction);
        options.attribute(TCA_NETEM_REORDER, &parts.map(u32::to_ne_bytes).concat());
        *line += &format!(" reorder {}% gap {gap}", percent(chance.probability_ppm));
    }
    if let Some(chain) = &netem.gemodel {
        // struct tc_netem_gemodel: p, r, h, k1; h is what passes while bad.
        let passes_ppm = 1_000_000u32.saturating_sub(chain.loss_bad_ppm);
        let parts = [
            chain.to_bad_ppm,
            chain.to_good_ppm,
            passes_ppm,
            chain.loss_good_ppm,
        ]
        .map(fraction);
        options.nested(TCA_NETEM_LOSS, |inner| {
            inner.attribute(NETEM_LOSS_GE, &parts.map(u32::to_ne_bytes).concat());
        });
        *line += &format!(
            " loss gemodel {}% {}% {}% {}%",
            percent(chain.to_bad_ppm),
            percent(chain.to_good_ppm),
            percent(chain.loss_bad_ppm),
            percent(chain.loss_good_ppm)
        );
    }
    if let Some(loss) = loss {
        options.attribute_u32(TCA_NETEM_ECN, u32::from(loss.ecn));
        *line += &format!(
            " loss {}% {}%{}",
            percent(loss.probability_ppm),
            percent(loss.correlation_ppm),
            if loss.ecn { " ecn" } else { "" }
        );
    }
}
