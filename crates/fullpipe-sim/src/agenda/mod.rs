//! The agenda: the simulated time, and what happens next. Events at one time happen in the order in which
//! they were scheduled.

mod alarm;
mod event;
mod front;
mod wheel;

pub(crate) use alarm::{Alarm, NEVER_NS};
pub(crate) use event::Event;
pub(crate) use front::Agenda;
