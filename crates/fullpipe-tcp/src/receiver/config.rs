//! How a receiver is set up.

use fullpipe_plan::AckPolicy;

use crate::packet::EcnFeedback;
use crate::rules::Rules;

use super::reader_stalls::ReaderStalls;

/// How a receiver is set up.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Payload of a full packet.
    pub mss_bytes: u32,
    /// When it acknowledges.
    pub ack_policy: AckPolicy,
    /// What its kernel does.
    pub rules: Rules,
    /// Fixed window; `None`: autotuned.
    pub window_bytes: Option<u64>,
    /// Ceiling of autotuning.
    pub rmem_max_bytes: u64,
    /// SO_RCVLOWAT: the application reads when this much is queued.
    pub rcvlowat_bytes: u32,
    /// Processor time of a packet and its ACK. The application reads only if no other packet arrives in
    /// this time.
    pub work_ns: u64,
    /// When the application stalls; `None`: never.
    pub reader_stalls: Option<ReaderStalls>,
    /// Packets that arrive within this time are processed together (GRO); 0: each alone.
    pub aggregation_ns: u64,
    /// How it reports ECN marks.
    pub feedback: EcnFeedback,
}
