//! TCP as Linux does it where congestion control can see it, without I/O.
//!
//! A [`Sender`] and a [`Receiver`] are state machines: packets, timers and the time go in, packets
//! come out. They must never know what a network looks like. Volumes are counted in packets of one
//! MSS, numbered from 0: a sequence number is `number * mss`. Packets are shorter only where an
//! application's write ends. Times are in ns; delivery rates and RTTs are in us, as in Linux.

mod countdown;
mod handshake;
mod packet;
mod receiver;
mod rules;
mod sender;
mod skb;

pub use handshake::{Client, Established, HandshakePacket, Server};
pub use packet::{Ack, Block, Burst, Data, EcnFeedback, MAX_BLOCKS};
pub use receiver::{ReaderStalls, Receiver, ReceiverConfig};
pub use rules::Rules;
pub use sender::{Sender, SenderConfig, SenderEvent, SenderInfo, Totals};
