//! Block-ack windows and the A-MPDUs that are made from them (IEEE 802.11-2020, 9.7 and 10.25). Knows no
//! times: limits are in bytes.

use std::collections::VecDeque;

use crate::packet::Packet;

/// Overhead of a frame over an IP packet: LLC and SNAP, QoS header, FCS.
const MPDU_OVERHEAD_BYTES: u32 = 8 + 26 + 4;
/// Overhead in [`Packet::wire_bytes`]: Ethernet's header.
const ETHERNET_BYTES: u32 = 14;
const DELIMITER_BYTES: u64 = 4;
/// MPDUs that a BlockAck of HT and VHT covers, counted from the oldest missing.
pub(crate) const WINDOW: usize = 64;

/// Bytes of the MPDU that carries a packet.
pub(crate) fn mpdu_bytes(packet: &impl Packet) -> u32 {
    packet.wire_bytes() - ETHERNET_BYTES + MPDU_OVERHEAD_BYTES
}

/// A packet in the hardware, with its order of arrival and the airtime reserved for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handed<P> {
    pub(crate) packet: P,
    pub(crate) order: u64,
    pub(crate) airtime_ns: u32,
}

#[derive(Clone, Copy, Debug)]
struct Mpdu<P> {
    handed: Handed<P>,
    bytes: u32,
    misses: u32,
    received: bool,
    /// Bytes of the last PSDU that carried it, up to its end; 0: it was received before.
    end_bytes: u64,
}

/// The fate of a packet that leaves the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was given up.
    Lost,
    /// It is delivered now.
    Received,
    /// It was delivered when its MPDU ended.
    PassedOn,
}

/// Limits of one PSDU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of an A-MPDU; 0: a single MPDU only.
    pub(crate) ampdu_bytes: u64,
    /// A single MPDU is wrapped too (VHT).
    pub(crate) always_ampdu: bool,
}

/// One PSDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Psdu {
    pub(crate) mpdus: u32,
    pub(crate) bytes: u64,
    /// MPDUs that were sent before.
    pub(crate) retried: u32,
}

/// A source of new packets.
pub(crate) trait Supply<P> {
    fn front(&self) -> Option<&Handed<P>>;
    fn drop_front(&mut self);
}

/// The packets between two nodes that were sent at least once, up to the oldest not received.
#[derive(Debug)]
pub(crate) struct Window<P> {
    mpdus: VecDeque<Mpdu<P>>,
    /// The first so many that were not received are in the PSDU in the air.
    in_air: u32,
    /// The first so many are already delivered.
    passed_on: usize,
}

impl<P: Packet> Window<P> {
    pub(crate) fn new() -> Self {
        Self {
            mpdus: VecDeque::with_capacity(WINDOW),
            in_air: 0,
            passed_on: 0,
        }
    }

    /// The order of the oldest packet.
    pub(crate) fn order(&self) -> Option<u64> {
        self.mpdus.front().map(|mpdu| mpdu.handed.order)
    }

    /// Makes the next PSDU: missing packets first, then new ones while the window has room. The first MPDU
    /// may have any size.
    pub(crate) fn load(&mut self, limits: Limits, supply: &mut impl Supply<P>) -> Psdu {
        let mut psdu = Psdu::default();
        // Bytes of the subframes so far, the last one padded.
        let mut padded = 0;
        let mut add = |psdu: &mut Psdu, bytes: u32, sent_before: bool| {
            let with_delimiter = DELIMITER_BYTES + u64::from(bytes);
            let size = padded + with_delimiter;
            if psdu.mpdus > 0 && size > limits.ampdu_bytes {
                return false;
            }
            psdu.bytes = if psdu.mpdus == 0 && !limits.always_ampdu {
                u64::from(bytes)
            } else {
                size
            };
            padded += with_delimiter.next_multiple_of(4);
            psdu.mpdus += 1;
            psdu.retried += u32::from(sent_before);
            true
        };
        let mut full = false;
        for mpdu in &mut self.mpdus {
            if mpdu.received {
                mpdu.end_bytes = 0;
                continue;
            }
            if !add(&mut psdu, mpdu.bytes, true) {
                full = true;
                break;
            }
            mpdu.end_bytes = psdu.bytes;
        }
        while !full && self.mpdus.len() < WINDOW {
            let Some(handed) = supply.front() else {
                break;
            };
            let bytes = mpdu_bytes(&handed.packet);
            if !add(&mut psdu, bytes, false) {
                break;
            }
            self.mpdus.push_back(Mpdu {
                handed: *handed,
                bytes,
                misses: 0,
                received: false,
                end_bytes: psdu.bytes,
            });
            supply.drop_front();
        }
        self.in_air = psdu.mpdus;
        psdu
    }

    /// Decides for each MPDU in the air whether it is lost. Returns how many are received.
    pub(crate) fn receive(&mut self, mut lost: impl FnMut(u32) -> bool) -> u32 {
        let mut received = 0;
        let in_air = self.in_air as usize;
        for mpdu in self
            .mpdus
            .iter_mut()
            .filter(|mpdu| !mpdu.received)
            .take(in_air)
        {
            if lost(mpdu.bytes) {
                mpdu.misses += 1;
            } else {
                mpdu.received = true;
                received += 1;
            }
        }
        self.in_air = 0;
        received
    }

    /// The offset in the PSDU in the air at which the next packet is delivered. It must be decided which MPDUs
    /// are received.
    pub(crate) fn next_end_bytes(&self) -> Option<u64> {
        let mpdu = self.mpdus.get(self.passed_on)?;
        mpdu.received.then_some(mpdu.end_bytes)
    }

    /// Delivers that packet.
    pub(crate) fn pass_on(&mut self) -> Option<P> {
        let mpdu = self.mpdus.get(self.passed_on)?;
        self.passed_on += 1;
        Some(mpdu.handed.packet)
    }

    /// No answer arrived for the MPDUs in the air.
    pub(crate) fn missed(&mut self) {
        self.receive(|_| true);
    }

    /// The MPDUs were not sent after all.
    pub(crate) fn unload(&mut self) {
        self.in_air = 0;
    }

    /// Bytes of the next MPDU, if it was sent before.
    pub(crate) fn oldest_bytes(&self) -> Option<u32> {
        let oldest = self.mpdus.iter().find(|mpdu| !mpdu.received)?;
        Some(oldest.bytes)
    }

    /// Removes, in order, the packets that the receiver may deliver: all before the oldest missing one. Those
    /// that were missing more than `limit` times are given up.
    pub(crate) fn release(&mut self, limit: Option<u32>, mut done: impl FnMut(&Handed<P>, Fate)) {
        while let Some(mpdu) = self.mpdus.front() {
            let given_up = limit.is_some_and(|limit| mpdu.misses > limit);
            if !mpdu.received && !given_up {
                break;
            }
            let fate = match (mpdu.received, self.passed_on > 0) {
                (false, _) => Fate::Lost,
                (true, false) => Fate::Received,
                (true, true) => Fate::PassedOn,
            };
            self.passed_on = self.passed_on.saturating_sub(1);
            done(&mpdu.handed, fate);
            self.mpdus.pop_front();
        }
    }

    /// Gives up the oldest packet that was not received.
    pub(crate) fn give_up(&mut self, limit: Option<u32>, done: impl FnMut(&Handed<P>, Fate)) {
        if let Some(oldest) = self.mpdus.iter_mut().find(|mpdu| !mpdu.received) {
            oldest.misses = u32::MAX;
        }
        self.release(Some(limit.unwrap_or(u32::MAX - 1)), done);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Small;
    use super::*;

    struct Endless(Handed<Small>);

    impl Endless {
        fn new() -> Self {
            Self(Handed {
                packet: Small(1514),
                order: 1,
                airtime_ns: 0,
            })
        }
    }

    impl Supply<Small> for Endless {
        fn front(&self) -> Option<&Handed<Small>> {
            Some(&self.0)
        }

        fn drop_front(&mut self) {
            self.0.order += 1;
        }
    }

    fn limits(ampdu_bytes: u64) -> Limits {
        Limits {
            ampdu_bytes,
            always_ampdu: false,
        }
    }

    #[test]
    fn an_ampdu_has_padded_subframes_and_stops_at_its_limit() {
        // 1500 bytes of IP make MPDUs of 1538: 41 * 1544 + 1542 = 64846, one more is above 65535.
        let psdu = Window::new().load(limits(65_535), &mut Endless::new());
        assert_eq!((psdu.mpdus, psdu.bytes), (42, 64_846));
    }

    #[test]
    fn a_single_mpdu_is_wrapped_in_vht_only() {
        let mut wrapped = limits(0);
        assert_eq!(Window::new().load(wrapped, &mut Endless::new()).bytes, 1538);
        wrapped.always_ampdu = true;
        assert_eq!(Window::new().load(wrapped, &mut Endless::new()).bytes, 1542);
    }

    #[test]
    fn no_more_than_64_are_sent_from_the_oldest_missing_on_and_order_is_kept() {
        let mut window = Window::new();
        let mut supply = Endless::new();
        assert_eq!(window.load(limits(1 << 20), &mut supply).mpdus, 64);
        let mut first = true;
        window.receive(|_| std::mem::take(&mut first));
        window.release(None, |_, _| panic!("the oldest is missing"));
        let again = window.load(limits(1 << 20), &mut supply);
        assert_eq!((again.mpdus, again.retried), (1, 1));
        window.receive(|_| false);
        let mut orders = Vec::new();
        window.release(None, |handed, fate| {
            assert_eq!(fate, Fate::Received);
            orders.push(handed.order);
        });
        assert_eq!(orders, (1..=64).collect::<Vec<_>>());
    }

    #[test]
    fn a_packet_that_missed_too_often_is_given_up_and_those_behind_it_go_on() {
        let mut window = Window::new();
        window.load(limits(65_535), &mut Endless::new());
        let mut first = true;
        window.receive(|_| std::mem::take(&mut first));
        let mut fates = Vec::new();
        window.release(Some(0), |_, fate| fates.push(fate));
        assert_eq!(fates.len(), 42);
        let lost = fates.iter().filter(|&&fate| fate == Fate::Lost).count();
        assert_eq!(lost, 1);
    }

    #[test]
    fn packets_are_passed_on_where_their_mpdus_end_up_to_a_hole_and_behind_it_once_it_is_filled() {
        let mut window = Window::new();
        let mut supply = Endless::new();
        window.load(limits(5 * 1544), &mut supply);
        let mut index = 0;
        window.receive(|_| {
            index += 1;
            index == 3
        });
        let pass_on = |window: &mut Window<Small>| {
            let mut ends = Vec::new();
            while let Some(end) = window.next_end_bytes() {
                window.pass_on();
                ends.push(end);
            }
            ends
        };
        // The first, still without a delimiter, and the second behind a padded subframe of 1544.
        assert_eq!(pass_on(&mut window), [1538, 1544 + 1542]);
        let mut fates = Vec::new();
        window.release(None, |_, fate| fates.push(fate));
        assert_eq!(fates, [Fate::PassedOn; 2]);
        assert_eq!(window.load(limits(1538), &mut supply).retried, 1);
        window.receive(|_| false);
        assert_eq!(pass_on(&mut window), [1538, 0, 0]);
    }
}
