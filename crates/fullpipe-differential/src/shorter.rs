//! Scripts without some of their events, for reducing a difference to what it needs (delta debugging: A. Zeller
//! and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).

use crate::script::{Action, Script};

/// The events without each of `parts` parts of those from number `kept` on; and, if it is shorter, cut behind
/// event `last`, first.
pub(crate) fn without_parts<E: Clone>(
    events: &[E],
    kept: usize,
    last: usize,
    parts: usize,
) -> impl Iterator<Item = Vec<E>> + '_ {
    let cut = &events[..(last + 1).min(events.len())];
    let size = cut.len().saturating_sub(kept).div_ceil(parts.max(1)).max(1);
    let without = (kept..cut.len()).step_by(size).map(move |start| {
        let mut left = cut.to_vec();
        left.drain(start..(start + size).min(cut.len()));
        left
    });
    let shorter = (cut.len() < events.len()).then(|| cut.to_vec());
    shorter.into_iter().chain(without)
}

/// The script without each of its `parts` parts, and cut behind event `last`, which may be the first that
/// differs. What opens the connection stays.
pub fn shorter(script: &Script, last: usize, parts: usize) -> Vec<Script> {
    let events = &script.events[..(last + 1).min(script.events.len())];
    let is_opening = |action: &Action| {
        matches!(
            action,
            Action::Connect {} | Action::Syn {} | Action::SynAck { .. }
        )
    };
    let opened = events.iter().position(|event| !is_opening(&event.action));
    // A passive opening ends with the first ACK.
    let kept = opened.unwrap_or(events.len()) + usize::from(!script.is_active());
    let all = without_parts(&script.events, kept, last, parts).enumerate();
    all.map(|(number, events)| Script {
        name: format!("{}/{number}", script.name),
        events,
        ..script.clone()
    })
    .collect()
}
