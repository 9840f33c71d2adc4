//! What a TCP does while a script is played to it. As text, an answer has of each step only the fields that
//! have changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::info::{Info, FIELDS};

/// A packet that the socket sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u32, String)", into = "(u64, u64, u32, String)")]
pub struct Packet {
    /// When, in us from the start of the script.
    pub at_us: u64,
    /// Its first byte.
    pub start: u64,
    /// Its payload.
    pub bytes: u32,
    /// SYN, FIN, PSH, ECE, CWR.
    pub flags: Flags,
    /// ECN codepoint: 0 Not-ECT, 1 ECT(1), 2 ECT(0).
    pub ecn: u8,
}

/// Flags of a packet, without ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// SYN
    pub const SYN: u8 = 1;
    /// FIN
    pub const FIN: u8 = 2;
    /// PSH
    pub const PSH: u8 = 4;
    /// ECE
    pub const ECE: u8 = 8;
    /// CWR
    pub const CWR: u8 = 16;
    const LETTERS: [(u8, char); 5] = [
        (Self::SYN, 'S'),
        (Self::FIN, 'F'),
        (Self::PSH, 'P'),
        (Self::ECE, 'E'),
        (Self::CWR, 'W'),
    ];

    /// The bits of which the condition is true.
    pub fn of(bits: &[(u8, bool)]) -> Self {
        let set = bits.iter().filter(|(_, is_set)| *is_set);
        Self(set.fold(0, |all, (bit, _)| all | bit))
    }

    /// Whether a bit is set.
    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl From<(u64, u64, u32, String)> for Packet {
    fn from((at_us, start, bytes, letters): (u64, u64, u32, String)) -> Self {
        let bits = Flags::LETTERS.map(|(bit, letter)| (bit, letters.contains(letter)));
        let digit = letters.chars().find_map(|letter| letter.to_digit(10));
        Self {
            at_us,
            start,
            bytes,
            flags: Flags::of(&bits),
            ecn: digit.unwrap_or(0) as u8,
        }
    }
}

impl From<Packet> for (u64, u64, u32, String) {
    fn from(packet: Packet) -> Self {
        (packet.at_us, packet.start, packet.bytes, packet.marks())
    }
}

impl Packet {
    /// Its flags as letters, and its codepoint as a digit behind them if it is not 0.
    fn marks(&self) -> String {
        let set = Flags::LETTERS
            .iter()
            .filter(|(bit, _)| self.flags.has(*bit));
        let mut marks: String = set.map(|(_, letter)| letter).collect();
        if self.ecn > 0 {
            marks.push_str(&self.ecn.to_string());
        }
        marks
    }

    /// In words, for a message.
    pub fn words(&self) -> String {
        let (end, marks) = (self.start + u64::from(self.bytes), self.marks());
        format!("{}:{end} {marks} at {} us", self.start, self.at_us)
    }
}

/// What happened at an event and until the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What TCP_INFO said after the event; `None`: the connection was not established.
    pub info: Option<Info>,
    /// What was sent from the event on.
    pub sent: Vec<Packet>,
}

/// What a TCP did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Text", into = "Text")]
pub struct Answer {
    /// The script's name.
    pub script: String,
    /// One step for each event.
    pub steps: Vec<Step>,
    /// Why it ended before the script.
    pub stopped: Option<String>,
}

/// An answer as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    script: String,
    steps: Vec<TextStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextStep {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<BTreeMap<String, u64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sent: Vec<Packet>,
}

impl From<Text> for Answer {
    fn from(text: Text) -> Self {
        let mut last = Info([Info::UNKNOWN; FIELDS.len()]);
        let steps = text.steps.into_iter().map(|step| {
            let info = step.info.map(|changed| {
                for (field, value) in FIELDS.iter().zip(&mut last.0) {
                    *value = changed.get(field.name).copied().unwrap_or(*value);
                }
                last
            });
            Step {
                info,
                sent: step.sent,
            }
        });
        Self {
            steps: steps.collect(),
            script: text.script,
            stopped: text.stopped,
        }
    }
}

impl From<Answer> for Text {
    fn from(answer: Answer) -> Self {
        let mut last = Info([Info::UNKNOWN; FIELDS.len()]);
        let steps = answer.steps.into_iter().map(|step| {
            let info = step.info.map(|info| {
                let both = info.0.iter().zip(last.0).zip(&FIELDS);
                let changed = both.filter(|((now, before), _)| **now != *before);
                let named = changed.map(|((now, _), field)| (field.name.to_owned(), *now));
                let changed = named.collect();
                last = info;
                changed
            });
            TextStep {
                info,
                sent: step.sent,
            }
        });
        Self {
            steps: steps.collect(),
            script: answer.script,
            stopped: answer.stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_same_after_it_was_written_and_read() {
        let packet = Packet {
            at_us: 7,
            start: 1000,
            bytes: 500,
            flags: Flags::of(&[(Flags::PSH, true), (Flags::CWR, true)]),
            ecn: 2,
        };
        let mut info = Info([3; FIELDS.len()]);
        let first = Step::default();
        let second = Step {
            info: Some(info),
            sent: vec![packet],
        };
        info.0[4] = 9;
        let third = Step {
            info: Some(info),
            sent: Vec::new(),
        };
        let answer = Answer {
            script: "a".to_owned(),
            steps: vec![first, second, third],
            stopped: None,
        };
        let text = serde_json::to_string(&answer).expect("written");
        assert!(text.contains(r#"[7,1000,500,"PW2"]"#), "{text}");
        assert!(text.contains(r#"{"info":{"sacked":9}}"#), "{text}");
        assert_eq!(serde_json::from_str::<Answer>(&text).expect("read"), answer);
    }
}
