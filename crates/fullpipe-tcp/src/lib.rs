//! TCP as Linux does it where congestion control can see it, without I/O.
//!
//! A [`Sender`] and a [`Receiver`] are state machines: packets, timers and the time go in, packets
//! come out. They must never know what a network looks like. Volumes are counted in packets of one
//! MSS, numbered from 0: a sequence number is `number * mss`. Packets are shorter only where an
//! application's write ends. Times are in ns; delivery rates and RTTs are in us, as in Linux.

mod ack;
mod countdown;
mod fast_retransmit;
mod handshake;
mod loss;
mod packet;
mod prr;
mod rate;
mod reader_stalls;
mod receive_buffer;
mod receiver;
mod reordering;
mod rtt;
mod rules;
mod scoreboard;
mod sender;
mod sendmsg;
mod transmit;
mod undo;
mod write_queue;

pub use handshake::{Client, Established, HandshakePacket, Server};
pub use packet::{Ack, Block, Burst, Data, EcnFeedback, MAX_BLOCKS};
pub use reader_stalls::ReaderStalls;
pub use receiver::{Receiver, ReceiverConfig};
pub use rules::Rules;
pub use sender::{Sender, SenderConfig, SenderEvent, Totals};
