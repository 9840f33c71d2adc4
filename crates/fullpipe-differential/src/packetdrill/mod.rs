//! Scripts in packetdrill's language. The front end turns a script into a [`Program`]; [`run`] plays it to a
//! [`Machine`], which is the simulator's TCP ([`play`]) or a kernel's (in `fullpipe-agent`), and notes what the
//! machine did in an [`Answer`]. The front end compares that with what the script expects.

mod answer;
mod connection;
mod machine;
mod model;
mod model_calls;
mod peer_data;
mod program;
mod run;
mod segment;
mod settings;

pub use answer::{Answer, Entry, Stop};
pub use machine::{Halt, Machine, Returned, Until};
pub use model::play;
pub use program::{Action, Anchor, Call, Op, Program};
pub use run::run;
pub use segment::{Segment, TcpOption, ACK, CWR, ECE, FIN, PSH, RST, SYN};
