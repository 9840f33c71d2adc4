//! The application of a flow that is not always ready: when it writes, and how much.

use std::io;

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::Plan;
use fullpipe_workload::{Writer, Writing};

use super::pace::Pace;
use crate::socket::Payload;
use crate::tcp_flow::Connection;

/// An application with a rate, or with a pattern and the time at which it writes next.
pub(super) enum Application {
    Rate(Pace),
    Pattern(Writer, u64),
}

impl Application {
    /// That of a flow whose connection has just been established; `None`: it is always ready.
    pub(super) fn new(plan: &Plan, flow: usize, t_ns: u64) -> Option<Self> {
        let planned = &plan.flows[flow];
        match planned.pattern {
            Some(pattern) => {
                let seed = derive_seed(plan.seed, purpose::PATTERN, flow as u32);
                Some(Self::Pattern(Writer::new(pattern, t_ns, seed), t_ns))
            }
            None => {
                let packet_bytes = u64::from(plan.access.mss_bytes());
                Pace::new(planned, packet_bytes, t_ns).map(Self::Rate)
            }
        }
    }

    /// Writes by its pattern, or one full packet by its rate; false once the connection is closing.
    pub(super) fn write(
        &mut self,
        due_ns: u64,
        connection: &mut Connection,
        payload: &Payload,
    ) -> io::Result<bool> {
        match self {
            Self::Rate(pace) => connection.add_credit(pace.write(due_ns), payload),
            Self::Pattern(writer, next_ns) => {
                let writing;
                (writing, *next_ns) = writer.step();
                match writing {
                    Writing::Bytes(bytes) => connection.add_credit(bytes, payload),
                    Writing::Unlimited => connection.set_endless(true, payload),
                    Writing::Nothing => connection.set_endless(false, payload),
                }
            }
        }
    }

    /// When it writes next. A blocked one with a rate waits: to be woken for each packet that its socket
    /// does not take costs the run minutes at 1 Gbit/s.
    pub(super) fn next_ns(&self, connection: &Connection) -> Option<u64> {
        match self {
            Self::Rate(pace) => (!connection.is_blocked).then_some(pace.next_ns),
            Self::Pattern(_, next_ns) => Some(*next_ns),
        }
    }

    /// What a blocked one with a rate would have written by now is added to what it writes next; false
    /// for all others.
    pub(super) fn owe(&mut self, connection: &mut Connection, t_ns: impl Fn() -> u64) -> bool {
        let Self::Rate(pace) = self else {
            return false;
        };
        if connection.is_blocked {
            connection.owe(pace.write(t_ns()));
        }
        connection.is_blocked
    }
}
