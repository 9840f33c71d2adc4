//! What a script does, in the order of its lines.

use serde::{Deserialize, Serialize};

use super::segment::Segment;

/// A script.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name, for messages.
    pub name: String,
    /// Keys below net.ipv4 and their values, of the script's file of defaults; a machine sets those that it has.
    #[serde(default)]
    pub defaults: Vec<(String, String)>,
    /// Those that the script sets itself; a machine must have them.
    pub sysctls: Vec<(String, String)>,
    /// Its events.
    pub ops: Vec<Op>,
}

/// An event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// What `at_us` counts from.
    pub anchor: Anchor,
    /// When.
    #[serde(default)]
    pub at_us: u64,
    /// When a range of times or a blocking call ends, counted as `at_us`.
    #[serde(default)]
    pub end_us: Option<u64>,
    /// What.
    pub action: Action,
}

/// What a time counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// The start of the script.
    Start,
    /// The event before: from its time in the script between two packets of the peer, else from when it was done
    /// (is_event_start_time_anchored() of packetdrill's run.c).
    Before,
    /// Nothing: any time will do.
    Any,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A system call; if it `blocks`, the script goes on meanwhile.
    Call {
        /// Which.
        call: Call,
        /// Whether the script says how long it takes.
        #[serde(default)]
        blocks: bool,
    },
    /// A packet of the peer arrives.
    Inject(Segment),
    /// The socket sends so many bytes, in one packet or several.
    Expect {
        /// Payload.
        bytes: u32,
        /// Timestamp in the script.
        #[serde(default)]
        stamp: Option<u32>,
    },
    /// TCP_INFO is read.
    Info {},
}

/// A system call. Descriptors are numbers of the script.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// socket() of TCP over IPv4.
    Socket {
        /// Its descriptor.
        fd: i32,
        /// SOCK_NONBLOCK.
        nonblocking: bool,
    },
    /// setsockopt()
    Setsockopt {
        /// Descriptor.
        fd: i32,
        /// As in the call.
        level: i32,
        /// As in the call.
        name: i32,
        /// The option's bytes.
        value: Vec<u8>,
    },
    /// getsockopt()
    Getsockopt {
        /// Descriptor.
        fd: i32,
        /// As in the call.
        level: i32,
        /// As in the call.
        name: i32,
        /// Room for the value.
        length: u32,
    },
    /// bind() to the script's own address.
    Bind {
        /// Descriptor.
        fd: i32,
    },
    /// listen()
    Listen {
        /// Descriptor.
        fd: i32,
        /// Backlog.
        backlog: i32,
    },
    /// connect() to the peer.
    Connect {
        /// Descriptor.
        fd: i32,
    },
    /// accept()
    Accept {
        /// Of the listener.
        fd: i32,
        /// Of the connection.
        new_fd: i32,
    },
    /// fcntl()
    Fcntl {
        /// Descriptor.
        fd: i32,
        /// As in the call.
        command: i32,
        /// As in the call.
        argument: i32,
    },
    /// write(), send(), sendto()
    Write {
        /// Descriptor.
        fd: i32,
        /// Length.
        bytes: u32,
        /// As in the call.
        flags: i32,
    },
    /// read(), recv()
    Read {
        /// Descriptor.
        fd: i32,
        /// Length.
        bytes: u32,
        /// As in the call.
        flags: i32,
    },
    /// shutdown()
    Shutdown {
        /// Descriptor.
        fd: i32,
        /// As in the call.
        how: i32,
    },
    /// close()
    Close {
        /// Descriptor.
        fd: i32,
    },
}
