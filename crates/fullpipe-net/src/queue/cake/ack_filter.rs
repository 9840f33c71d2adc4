//! CAKE's ACK filter: which waiting ACK a newer one of the same connection makes superfluous
//! (sch_cake.c, cake_ack_filter()). Timestamps, which the kernel compares too, never decrease along
//! a connection's ACKs, so nothing is left to compare.

use std::cmp::Ordering;

use crate::packet::{Packet, PureAck};

/// Which of the ACKs of a queue to drop for the newest one: the index of the packet before it (`None`: it is
/// the first).
///
/// Of two that may go, the first goes. A single one goes only if `aggressive`, if the newest follows
/// it directly and if both echo the same marks.
pub(super) fn superfluous<'a, P: Packet + 'a>(
    queue: impl Iterator<Item = (u32, &'a P)>,
    newest: (u32, &P),
    aggressive: bool,
) -> Option<Option<u32>> {
    let (newest_place, newest) = newest;
    let header = newest.pure_ack()?;
    let mut candidate: Option<Candidate> = None;
    let mut found = 0;
    let mut before = None;
    let mut last_seen = None;
    for (place, packet) in queue {
        if place == newest_place {
            break;
        }
        let behind = before.replace(place);
        last_seen = Some(place);
        if packet.flow_key() != newest.flow_key() {
            continue;
        }
        let Some(waiting) = packet.pure_ack() else {
            continue;
        };
        // Dropping an ACK before the echo of marks changes would lose its marks.
        if candidate.is_some_and(|candidate| candidate.ecn_flags != waiting.ecn_flags) {
            candidate = None;
            found -= 1;
        }
        if !is_covered(&waiting, &header) {
            continue;
        }
        candidate.get_or_insert(Candidate {
            place,
            behind,
            ecn_flags: waiting.ecn_flags,
        });
        found += 1;
        if found > 1 {
            return candidate.map(|candidate| candidate.behind);
        }
    }
    let candidate = candidate?;
    let follows = last_seen == Some(candidate.place);
    (aggressive && follows && candidate.ecn_flags == header.ecn_flags).then_some(candidate.behind)
}

#[derive(Clone, Copy)]
struct Candidate {
    place: u32,
    behind: Option<u32>,
    ecn_flags: u8,
}

/// Whether the newer one says everything that a pure ACK says.
fn is_covered(waiting: &PureAck, newer: &PureAck) -> bool {
    if is_after(waiting.next, newer.next) {
        return false;
    }
    match compare_sacks(waiting, newer) {
        // An ACK of the same number without news is a duplicate, which counts.
        Ordering::Equal => waiting.next != newer.next,
        Ordering::Less => false,
        Ordering::Greater => true,
    }
}

/// `Less`: the newer one misses something that the waiting one reports, or that is a DSACK;
/// `Greater`: the newer one reports more; else `Equal` (cake_tcph_sack_compare()).
fn compare_sacks(waiting: &PureAck, newer: &PureAck) -> Ordering {
    let ours = &waiting.blocks[..usize::from(waiting.count)];
    let theirs = &newer.blocks[..usize::from(newer.count)];
    if ours.is_empty() || theirs.is_empty() {
        return ours.is_empty().cmp(&theirs.is_empty());
    }
    for &(start, end) in ours {
        let is_dsack = is_after(waiting.next, start);
        let is_held = theirs
            .iter()
            .any(|&(from, to)| !is_after(from, start) && !is_after(end, to));
        if is_dsack || !is_held {
            return Ordering::Less;
        }
    }
    if volume(theirs) > volume(ours) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

fn volume(sacks: &[(u32, u32)]) -> u32 {
    let lengths = sacks.iter().map(|(start, end)| end.wrapping_sub(*start));
    lengths.fold(0, u32::wrapping_add)
}

fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}
