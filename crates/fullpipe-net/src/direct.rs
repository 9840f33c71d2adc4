//! The contract of a way of a wire that hands its packets over one by one: what [`crate::Link`] does
//! by lists, for ways that are a queue, a rate and a delay and not much else. Such a way takes bursts as
//! they are, and whoever drives it has a packet before it has asked for the next. It must never know
//! where its packets go.

use crate::link::{AnyLink, Passed};
use crate::Packet;

/// One way, by steps that give together what [`crate::Link::offer`] and [`crate::Link::advance`] give.
pub trait DirectWay<P: Packet>: Sized {
    /// Whether [`Self::ready`] may drop where it has a packet.
    const DROPS_LATE: bool;
    /// The way with this index of a link, if it is one of this kind.
    fn of(link: &mut AnyLink<P>, way: usize) -> Option<&mut Self>;
    /// When [`Self::ready`] is to be asked next; `u64::MAX`: not before a packet has come.
    fn due_ns(&self) -> u64;
    /// A run of so many packets comes to the queue, by what stands for them ([`Packet::end_follows`]).
    /// What is dropped for it is put into the list; false: nothing came to the queue. Where nothing
    /// waited, a run of one, after which the way is asked at once if something came.
    fn take(&mut self, now_ns: u64, run: &P, count: u32, dropped: &mut Vec<P>) -> bool;
    /// What stands for the run whose first packet leaves the queue now, and whether others of it follow
    /// that one: a caller copies it ([`Packet::end_follows`]), for a copy that is returned is copied
    /// again. It leaves by [`Self::pass`], which comes next. `None`: nothing may leave, and when to ask
    /// again is known.
    fn ready(&mut self, now_ns: u64, dropped: &mut Vec<P>) -> Option<(&P, bool)>;
    /// The packet that was [`Self::ready`] leaves, and is at the far end at the time returned. Where
    /// another may leave now, [`Self::due_ns`] is not later.
    fn pass(&mut self, now_ns: u64) -> u64;
    /// All that may leave now is put into the list.
    fn pass_all(&mut self, now_ns: u64, passed: &mut Passed<P>);
}
