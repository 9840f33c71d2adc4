//! What a machine did while a program ran.

use std::collections::BTreeMap;

use serde::Serialize;

use super::machine::Returned;
use super::program::Program;
use super::segment::Segment;

/// One entry for each event that was reached.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The program's name.
    pub name: String,
    /// In the order of the events.
    pub entries: Vec<Entry>,
    /// Why it ended before the last one.
    pub stop: Option<Stop>,
}

impl Answer {
    /// Of a machine that cannot even begin.
    pub fn unsupported(program: &Program, sentence: String) -> Self {
        Self {
            name: program.name.clone(),
            entries: Vec::new(),
            stop: Some(Stop {
                event: 0,
                is_unsupported: true,
                sentence,
            }),
        }
    }
}

/// What became of an event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// When the script wants it, in us.
    pub due_us: u64,
    /// When it happened.
    pub at_us: u64,
    /// What a call returned, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<(u64, Returned)>,
    /// The packets that the machine sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Segment>,
    /// Fields of tcp_info.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<BTreeMap<String, u64>>,
}

/// Why a program ended early.
#[derive(Clone, Debug, Serialize)]
pub struct Stop {
    /// The event's position.
    pub event: usize,
    /// The machine cannot do it, which says nothing about its TCP.
    pub is_unsupported: bool,
    /// Why.
    pub sentence: String,
}
