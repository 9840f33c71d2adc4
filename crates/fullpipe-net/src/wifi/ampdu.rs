//! Block-ack windows and the A-MPDUs that are cut from them (IEEE 802.11-2020, 9.7 and 10.25). It
//! knows nothing of time: limits are given in bytes.

use std::collections::VecDeque;

use crate::Packet;

/// What a frame adds to an IP packet: LLC and SNAP, QoS header, FCS.
const MPDU_OVERHEAD_BYTES: u32 = 8 + 26 + 4;
/// What [`Packet::wire_bytes`] counts besides the IP packet: Ethernet's header.
const ETHERNET_BYTES: u32 = 14;
const DELIMITER_BYTES: u64 = 4;
/// MPDUs that a BlockAck of HT and VHT covers, counted from the oldest missing.
pub(crate) const WINDOW: usize = 64;

/// Bytes of the MPDU that carries a packet.
pub(crate) fn mpdu_bytes(packet: &impl Packet) -> u32 {
    packet.wire_bytes() - ETHERNET_BYTES + MPDU_OVERHEAD_BYTES
}

/// A packet that hardware has: with the order in which it came and the airtime reserved for it.
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
}

/// What may be put into one PSDU.
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

/// Where new packets come from.
pub(crate) trait Supply<P> {
    fn front(&self) -> Option<&P>;
    fn take(&mut self) -> Option<Handed<P>>;
}

/// The packets between two nodes that were sent at least once, up to the oldest not received.
#[derive(Debug)]
pub(crate) struct Window<P> {
    mpdus: VecDeque<Mpdu<P>>,
    /// The first so many that were not received are in the PSDU in the air.
    in_air: u32,
}

impl<P: Packet> Window<P> {
    pub(crate) fn new() -> Self {
        Self {
            mpdus: VecDeque::with_capacity(WINDOW),
            in_air: 0,
        }
    }

    /// The order of the oldest packet.
    pub(crate) fn order(&self) -> Option<u64> {
        self.mpdus.front().map(|mpdu| mpdu.handed.order)
    }

    /// Cuts the next PSDU: what is missing first, then new packets while the window has room. The
    /// first MPDU goes whatever its size.
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
        for mpdu in self.mpdus.iter().filter(|mpdu| !mpdu.received) {
            if !add(&mut psdu, mpdu.bytes, true) {
                full = true;
                break;
            }
        }
        while !full && self.mpdus.len() < WINDOW {
            let Some(bytes) = supply.front().map(mpdu_bytes) else {
                break;
            };
            if !add(&mut psdu, bytes, false) {
                break;
            }
            let Some(handed) = supply.take() else { break };
            self.mpdus.push_back(Mpdu {
                handed,
                bytes,
                misses: 0,
                received: false,
            });
        }
        self.in_air = psdu.mpdus;
        psdu
    }

    /// Decides for each MPDU in the air whether it was lost; how many were received.
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

    /// Nothing of what was in the air is known to have arrived.
    pub(crate) fn missed(&mut self) {
        self.receive(|_| true);
    }

    /// What would have been in the air was not sent.
    pub(crate) fn unload(&mut self) {
        self.in_air = 0;
    }

    /// Bytes of the MPDU that goes next, where one was sent before.
    pub(crate) fn oldest_bytes(&self) -> Option<u32> {
        let oldest = self.mpdus.iter().find(|mpdu| !mpdu.received)?;
        Some(oldest.bytes)
    }

    /// Hands on, in order, what the receiver may pass to its stack: everything before the oldest
    /// missing packet. Those that missed more than `limit` times are given up: `true` means received.
    pub(crate) fn release(&mut self, limit: Option<u32>, mut done: impl FnMut(Handed<P>, bool)) {
        while let Some(mpdu) = self.mpdus.front() {
            let given_up = limit.is_some_and(|limit| mpdu.misses > limit);
            if !mpdu.received && !given_up {
                break;
            }
            done(mpdu.handed, mpdu.received);
            self.mpdus.pop_front();
        }
    }

    /// Gives up the oldest packet that was not received.
    pub(crate) fn give_up(&mut self, limit: Option<u32>, done: impl FnMut(Handed<P>, bool)) {
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

    struct Endless(u64);

    impl Supply<Small> for Endless {
        fn front(&self) -> Option<&Small> {
            Some(&Small(1514))
        }

        fn take(&mut self) -> Option<Handed<Small>> {
            self.0 += 1;
            Some(Handed {
                packet: Small(1514),
                order: self.0,
                airtime_ns: 0,
            })
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
        let psdu = Window::new().load(limits(65_535), &mut Endless(0));
        assert_eq!((psdu.mpdus, psdu.bytes), (42, 64_846));
    }

    #[test]
    fn a_single_mpdu_is_wrapped_in_vht_only() {
        let mut wrapped = limits(0);
        assert_eq!(Window::new().load(wrapped, &mut Endless(0)).bytes, 1538);
        wrapped.always_ampdu = true;
        assert_eq!(Window::new().load(wrapped, &mut Endless(0)).bytes, 1542);
    }

    #[test]
    fn no_more_than_64_are_sent_from_the_oldest_missing_on_and_order_is_kept() {
        let mut window = Window::new();
        let mut supply = Endless(0);
        assert_eq!(window.load(limits(1 << 20), &mut supply).mpdus, 64);
        let mut first = true;
        window.receive(|_| std::mem::take(&mut first));
        window.release(None, |_, _| panic!("the oldest is missing"));
        let again = window.load(limits(1 << 20), &mut supply);
        assert_eq!((again.mpdus, again.retried), (1, 1));
        window.receive(|_| false);
        let mut orders = Vec::new();
        window.release(None, |handed, received| {
            assert!(received);
            orders.push(handed.order);
        });
        assert_eq!(orders, (1..=64).collect::<Vec<_>>());
    }

    #[test]
    fn a_packet_that_missed_too_often_is_given_up_and_those_behind_it_go_on() {
        let mut window = Window::new();
        window.load(limits(65_535), &mut Endless(0));
        let mut first = true;
        window.receive(|_| std::mem::take(&mut first));
        let mut fates = Vec::new();
        window.release(Some(0), |_, received| fates.push(received));
        assert_eq!(fates.len(), 42);
        assert_eq!(fates.iter().filter(|&&received| !received).count(), 1);
    }
}
