//! What programs are played to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::program::Call;
use super::segment::Segment;

/// A TCP with its sockets, on a clock that begins with the script.
pub trait Machine {
    /// Time since the start.
    fn now_us(&self) -> u64;
    /// Lets time pass to `until_us`, or until what is waited for has happened.
    fn advance(&mut self, until_us: u64, until: Until) -> Result<(), Halt>;
    /// A system call; if it `blocks`, it may return later.
    fn call(&mut self, call: &Call, blocks: bool) -> Result<(), Halt>;
    /// When the last call returned, and what; `None`: it has not yet.
    fn take_returned(&mut self) -> Option<(u64, Returned)>;
    /// A packet of the peer arrives.
    fn inject(&mut self, segment: &Segment) -> Result<(), Halt>;
    /// The packets sent since the last call.
    fn take_sent(&mut self) -> Vec<Segment>;
    /// Fields of tcp_info of the connection.
    fn info(&mut self) -> Result<BTreeMap<String, u64>, Halt>;
}

/// What ends a wait early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing.
    Time,
    /// A packet is sent.
    Packet,
    /// The call returns.
    Return,
}

/// What a system call gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Returned {
    /// Its result.
    pub value: i64,
    /// errno, if that is -1.
    pub errno: i32,
    /// What getsockopt() gave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub option: Vec<u8>,
}

impl Returned {
    /// A result.
    pub fn of(value: i64) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    /// -1
    pub fn error(errno: i32) -> Self {
        Self {
            value: -1,
            errno,
            ..Self::default()
        }
    }
}

/// Why a machine cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// It does not have this.
    Unsupported(String),
    /// Its TCP did not do what the script needs to go on.
    Failed(String),
}
