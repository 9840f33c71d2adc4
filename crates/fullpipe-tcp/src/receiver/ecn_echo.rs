//! How a receiver echoes ECN marks: tcp_data_ecn_check(), tcp_ecn_accept_cwr(), dctcp_ece_ack_update(),
//! RFC 9768. Must never know what else an ACK says.

use crate::packet::{Data, EcnFeedback};

/// Marks that arrived.
#[derive(Debug)]
pub(super) struct EcnEcho {
    feedback: EcnFeedback,
    /// ECE of the next ACK; with accurate ECN whether the last packet was marked.
    ece: bool,
    /// Marked packets, modulo 256, and those not reported yet.
    marks: u8,
    unreported: u32,
    /// An ECN-capable packet arrived (TCP_ECN_SEEN).
    has_seen_ect: bool,
}

/// What a packet's mark, or its lack, asks of ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Haste {
    /// An ACK that waits is sent before the mark is taken into account.
    pub(super) flushes: bool,
    /// The packet is acknowledged without delay.
    pub(super) is_urgent: bool,
    /// It and the next one are acknowledged at once (tcp_enter_quickack_mode()).
    pub(super) is_quick: bool,
}

impl EcnEcho {
    pub(super) fn new(feedback: EcnFeedback) -> Self {
        Self {
            feedback,
            ece: false,
            marks: 0,
            unreported: 0,
            has_seen_ect: false,
        }
    }

    /// Whether ACKs carry ECE, or the last packet was marked.
    #[inline(always)] // for every packet, as below
    pub(super) fn is_echoing(&self) -> bool {
        self.ece
    }

    /// Whether a mark is reported for all packets until the sender answers.
    #[inline(always)]
    pub(super) fn is_latched(&self) -> bool {
        self.feedback == EcnFeedback::Latched
    }

    /// Whether a packet is like most: it asks nothing of ACKs while none echoes a mark.
    #[inline(always)]
    pub(super) fn is_ordinary(&self, data: &Data) -> bool {
        !data.ce && !data.cwr && data.ect == self.has_seen_ect
    }

    /// What a packet asks of ACKs.
    #[inline(always)]
    pub(super) fn haste(&self, data: &Data) -> Haste {
        let carries_data = data.payload_bytes > 0;
        // tcp_data_ecn_check(): where packets before it were ECN-capable, it is probably a retransmission.
        let is_retransmission = carries_data && self.has_seen_ect && !(data.ect || data.ce);
        match self.feedback {
            EcnFeedback::Latched => Haste {
                flushes: false,
                // tcp_ecn_accept_cwr(): a sender that has just reduced its window may have only one packet
                // in flight. A FIN counts as data.
                is_urgent: data.cwr,
                // tcp_data_ecn_check(): so may one that is about to.
                is_quick: is_retransmission || carries_data && data.ce && (!self.ece || data.cwr),
            },
            EcnFeedback::EachPacket => {
                let changes = data.ce != self.ece;
                Haste {
                    flushes: changes,
                    is_urgent: changes || data.cwr,
                    is_quick: is_retransmission,
                }
            }
            // RFC 9768 section 3.2.2.5.1: the first mark after unmarked packets is reported at once, and so
            // is the second mark since an ACK.
            EcnFeedback::Accurate => Haste {
                flushes: false,
                is_urgent: data.ce && (!self.ece || self.unreported > 0),
                is_quick: is_retransmission,
            },
        }
    }

    /// Takes a packet's mark into account, after [`Self::haste`].
    #[inline(always)]
    pub(super) fn take(&mut self, data: &Data) {
        self.has_seen_ect |= data.ect || data.ce;
        match self.feedback {
            EcnFeedback::Latched => self.ece = data.ce || self.ece && !data.cwr,
            EcnFeedback::EachPacket => self.ece = data.ce,
            EcnFeedback::Accurate => {
                self.marks = self.marks.wrapping_add(u8::from(data.ce));
                self.unreported += u32::from(data.ce);
                self.ece = data.ce;
            }
        }
    }

    /// Takes the header of a packet that was acknowledged before into account: its mark counts with accurate
    /// feedback only (tcp_data_queue() drops it before it looks at marks).
    pub(super) fn take_duplicate(&mut self, data: &Data) {
        match self.feedback {
            EcnFeedback::Latched => self.ece &= !data.cwr,
            EcnFeedback::EachPacket => {}
            EcnFeedback::Accurate => self.take(data),
        }
    }

    /// The feedback of an ACK that is sent.
    #[inline(always)]
    pub(super) fn report(&mut self) -> u8 {
        self.unreported = 0;
        match self.feedback {
            EcnFeedback::Accurate => self.marks,
            _ => u8::from(self.ece),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(ce: bool, cwr: bool) -> Data {
        Data {
            payload_bytes: 1448,
            ect: true,
            ce,
            cwr,
            ..Data::default()
        }
    }

    fn arrive(echo: &mut EcnEcho, data: &Data) -> Haste {
        let haste = echo.haste(data);
        echo.take(data);
        haste
    }

    #[test]
    fn a_latched_mark_is_echoed_until_the_sender_answers_with_cwr() {
        // RFC 3168 section 6.1.3.
        let mut echo = EcnEcho::new(EcnFeedback::Latched);
        let reports =
            [(true, false), (false, false), (false, true), (false, false)].map(|(ce, cwr)| {
                assert!(!arrive(&mut echo, &data(ce, cwr)).flushes);
                echo.report()
            });
        assert_eq!(reports, [1, 1, 0, 0]);
        arrive(&mut echo, &data(true, true));
        assert_eq!(echo.report(), 1, "a packet that answers and is marked");
    }

    #[test]
    fn the_first_mark_and_packets_that_are_not_ecn_capable_get_quick_acks_and_cwr_an_urgent_one() {
        // tcp_data_ecn_check(), tcp_ecn_accept_cwr().
        let not_ect = Data {
            ect: false,
            ..data(false, false)
        };
        let fin = Data {
            payload_bytes: 0,
            fin: true,
            ..not_ect
        };
        let mut echo = EcnEcho::new(EcnFeedback::Latched);
        for (packet, is_urgent, is_quick) in [
            (not_ect, false, false), // nothing was ECN-capable before
            (data(false, false), false, false),
            (data(true, false), false, true),
            (data(true, false), false, false),
            (not_ect, false, true),
            (fin, false, false),
            (data(false, true), true, false),
            (data(true, false), false, true),
            (data(true, true), true, true),
        ] {
            let haste = arrive(&mut echo, &packet);
            assert_eq!(
                (haste.is_urgent, haste.is_quick),
                (is_urgent, is_quick),
                "{packet:?}"
            );
        }
    }

    #[test]
    fn a_mark_on_a_duplicate_counts_with_accurate_feedback_only() {
        for (feedback, report) in [
            (EcnFeedback::Latched, 0),
            (EcnFeedback::EachPacket, 0),
            (EcnFeedback::Accurate, 1),
        ] {
            let mut echo = EcnEcho::new(feedback);
            echo.take_duplicate(&data(true, false));
            assert_eq!(echo.report(), report, "{feedback:?}");
        }
        let mut echo = EcnEcho::new(EcnFeedback::Latched);
        arrive(&mut echo, &data(true, false));
        echo.take_duplicate(&data(false, true));
        assert_eq!(echo.report(), 0, "CWR on a duplicate");
    }

    #[test]
    fn a_change_of_marking_flushes_the_ack_that_waits() {
        // RFC 8257 section 3.2.
        let mut echo = EcnEcho::new(EcnFeedback::EachPacket);
        let flushes =
            [false, true, true, false].map(|ce| arrive(&mut echo, &data(ce, false)).flushes);
        assert_eq!(flushes, [false, true, false, true]);
    }

    #[test]
    fn accurate_feedback_counts_marks_and_hurries_the_first_and_each_second() {
        let mut echo = EcnEcho::new(EcnFeedback::Accurate);
        let urgent = [true, true, true, false, true].map(|ce| {
            let haste = arrive(&mut echo, &data(ce, false));
            haste.is_urgent
        });
        assert_eq!(urgent, [true, true, true, false, true]);
        assert_eq!(echo.report(), 4);
        assert!(
            !arrive(&mut echo, &data(true, false)).is_urgent,
            "the first since an ACK"
        );
        assert!(arrive(&mut echo, &data(true, false)).is_urgent);
    }
}
