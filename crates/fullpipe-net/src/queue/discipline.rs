//! The contract between a queue and its discipline.

use crate::kernel::Kernel;
use crate::packet::Packet;

/// The inputs of a discipline besides its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Limit in bytes on the wire; `None`: not limited in bytes.
    pub(crate) limit_bytes: Option<u64>,
    /// Limit in packets; `None`: not limited in packets.
    pub(crate) limit_packets: Option<u32>,
    /// The link's rate.
    pub(crate) rate_bps: u64,
    /// A full packet on the wire, Ethernet header included (psched_mtu()).
    pub(crate) frame_bytes: u32,
    /// Of random decisions.
    pub(crate) seed: u64,
}

impl Environment {
    /// The limit in packets as a number.
    pub(crate) fn most_packets(&self) -> usize {
        self.limit_packets
            .map_or(usize::MAX, |limit| limit as usize)
    }
}

/// The parameters of a discipline.
pub trait Parameters {
    /// Whether the discipline shapes to the link's rate itself. Otherwise a shaper above it does.
    fn shapes(&self) -> bool {
        false
    }

    /// The kernel whose rules it has; `None`: the newest one's, or it has the same rules in all.
    fn kernel(&self) -> Option<Kernel> {
        None
    }
}

/// A queue discipline. It keeps its limits, drops and marks itself, and reports every packet that it
/// drops or marks to the outcome.
///
/// It hands packets out by [`Self::dequeue`], or keeps them until they have left: then it defines
/// [`Self::choose`], [`Self::front`] and [`Self::leave`], which do not copy packets and keep bursts whole.
pub(crate) trait Discipline<P: Packet> {
    type Params: Parameters;

    fn new(params: &Self::Params, environment: &Environment) -> Self;
    fn enqueue(&mut self, now_ns: u64, packet: P, outcome: &mut Outcome<P>);

    /// A burst of `count` packets ([`Packet::first_of_burst`]).
    #[inline]
    fn enqueue_burst(&mut self, now_ns: u64, burst: &P, count: u32, outcome: &mut Outcome<P>) {
        let mut burst = *burst;
        for others in (0..count).rev() {
            self.enqueue(now_ns, burst.split_first(others), outcome);
        }
    }

    /// Takes the packet that leaves now.
    #[inline]
    fn dequeue(&mut self, now_ns: u64, outcome: &mut Outcome<P>) -> Option<P> {
        let taken = &mut None;
        if !self.choose(now_ns, taken, outcome) {
            return None;
        }
        let (burst, is_followed) = self.front(taken)?;
        let packet = burst.first_of_burst(is_followed);
        self.leave(taken);
        Some(packet)
    }

    /// Chooses the packet that leaves now, which a discipline that does not keep it moves to `taken`. False:
    /// none leaves.
    #[inline]
    fn choose(&mut self, now_ns: u64, taken: &mut Option<P>, outcome: &mut Outcome<P>) -> bool {
        *taken = self.dequeue(now_ns, outcome);
        taken.is_some()
    }

    /// The burst whose first packet was chosen, and whether more of its packets follow.
    #[inline]
    fn front<'a>(&'a self, taken: &'a Option<P>) -> Option<(&'a P, bool)> {
        taken.as_ref().map(|packet| (packet, false))
    }

    /// The chosen packet leaves. Returns its bytes on the wire.
    #[inline]
    fn leave(&mut self, taken: &mut Option<P>) -> u32 {
        taken.take().map_or(0, |packet| packet.wire_bytes())
    }

    /// When a packet of a queue that is not empty may leave.
    fn next_ready_ns(&self, now_ns: u64) -> Option<u64> {
        Some(now_ns)
    }
}

/// What one call dropped and marked.
#[derive(Debug)]
pub(crate) struct Outcome<'a, P> {
    dropped: &'a mut Vec<P>,
    pub(crate) drops: u64,
    /// ACKs that others made redundant, which are no drops.
    pub(crate) filtered: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) marks: u64,
}

impl<'a, P: Packet> Outcome<'a, P> {
    pub(crate) fn new(dropped: &'a mut Vec<P>) -> Self {
        Self {
            dropped,
            drops: 0,
            filtered: 0,
            dropped_bytes: 0,
            marks: 0,
        }
    }

    pub(crate) fn drop(&mut self, packet: P) {
        self.drops += 1;
        self.remove(packet);
    }

    /// An ACK filter takes an ACK out.
    pub(crate) fn filter(&mut self, ack: P) {
        self.filtered += 1;
        self.remove(ack);
    }

    fn remove(&mut self, packet: P) {
        self.dropped_bytes += u64::from(packet.wire_bytes());
        self.dropped.push(packet);
    }

    pub(crate) fn mark(&mut self, packet: &mut P) {
        self.marks += 1;
        packet.mark_ce();
    }
}
