//! Scripts without some of their events, for reducing a difference to what it needs (delta debugging: A. Zeller
//! and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).

use crate::script::{Action, Script};

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
    let size = events
        .len()
        .saturating_sub(kept)
        .div_ceil(parts.max(1))
        .max(1);
    let starts = (kept..events.len()).step_by(size);
    let without = starts.map(|start| {
        let mut left = events.to_vec();
        left.drain(start..(start + size).min(events.len()));
        left
    });
    let cut = (events.len() < script.events.len()).then(|| events.to_vec());
    let all = cut.into_iter().chain(without).enumerate();
    all.map(|(number, events)| Script {
        name: format!("{}/{number}", script.name),
        events,
        ..script.clone()
    })
    .collect()
}
