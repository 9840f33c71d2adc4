//! Plays a script to a TCP.

use crate::answer::{Answer, Packet, Step};
use crate::info::Info;
use crate::script::{Action, Event, Script};

/// A TCP with its application, on a clock that begins with the script.
pub trait Subject {
    /// Lets time pass up to `at_us`: timers expire, a waiting application writes.
    fn advance(&mut self, at_us: u64) -> Result<(), String>;
    /// Something happens now.
    fn act(&mut self, action: &Action) -> Result<(), String>;
    /// What TCP_INFO says; `None`: the connection is not established.
    fn info(&mut self) -> Result<Option<Info>, String>;
    /// The packets sent since the last call.
    fn take_sent(&mut self) -> Vec<Packet>;
}

/// What the subject does at the events of the script, and until the last of them.
pub fn play(script: &Script, subject: &mut dyn Subject) -> Answer {
    let mut steps: Vec<Step> = Vec::with_capacity(script.events.len());
    let mut stopped = None;
    for event in &script.events {
        if let Err(sentence) = step(event, subject, &mut steps) {
            stopped = Some(sentence);
            break;
        }
    }
    Answer {
        script: script.name.clone(),
        steps,
        stopped,
    }
}

fn step(event: &Event, subject: &mut dyn Subject, steps: &mut Vec<Step>) -> Result<(), String> {
    subject.advance(event.at_us)?;
    if let Some(last) = steps.last_mut() {
        last.sent.extend(subject.take_sent());
    }
    subject.act(&event.action)?;
    let info = subject.info()?;
    steps.push(Step {
        info,
        sent: subject.take_sent(),
    });
    Ok(())
}
