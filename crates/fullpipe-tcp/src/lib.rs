//! TCP as Linux does it where congestion control can see it, without I/O.
//!
//! A [`Sender`] and a [`Receiver`] are state machines: packets, timers and the time go in, packets
//! come out. They must never know what a network looks like. Volumes are counted in packets of one
//! MSS, numbered from 0 (a sequence number is `number * mss`); only a flow's last packet may be
//! shorter. Times are ns; where Linux counts in us (delivery rate, RTT), so does this.

mod ack;
mod loss;
mod opening;
mod packet;
mod rate;
mod reader;
mod receive_buffer;
mod receiver;
mod recovery;
mod reduction;
mod reordering;
mod rtt;
mod rules;
mod scoreboard;
mod sender;
mod ticks;
mod transmit;
mod undo;
mod write_queue;
mod writing;

pub use opening::{Client, Opened, Opening, Server};
pub use packet::{Ack, Block, Burst, Data, MAX_BLOCKS};
pub use reader::Absences;
pub use receiver::{Feedback, Receiver, ReceiverConfig};
pub use rules::Rules;
pub use sender::{Sender, SenderConfig, SenderEvent, Totals};
