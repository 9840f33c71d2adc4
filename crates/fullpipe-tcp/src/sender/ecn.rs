//! The sender's part of ECN: which packets are ECN-capable, and what ACKs report of marks. RFC 3168,
//! RFC 8257, RFC 9768.

use crate::packet::{Ack, EcnFeedback};

/// The sender's ECN.
#[derive(Debug)]
pub(super) struct Ecn {
    is_used: bool,
    feedback: EcnFeedback,
    is_l4s: bool,
    /// Marks that the newest ACK counted, modulo 256.
    counted: u8,
}

/// What an ACK reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// It carries an echo (FLAG_ECE).
    pub(super) echo: bool,
    pub(super) packets: u32,
}

impl Ecn {
    /// ECN that is requested or not.
    pub(super) fn new(is_requested: bool, feedback: EcnFeedback, is_l4s: bool) -> Self {
        Self {
            is_used: is_requested,
            feedback,
            is_l4s,
            counted: 0,
        }
    }

    /// The handshake is done, which agreed on ECN or did not.
    pub(super) fn established(&mut self, is_used: bool) {
        self.is_used = is_used;
    }

    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    pub(super) fn is_l4s(&self) -> bool {
        self.is_l4s
    }

    pub(super) fn is_accurate(&self) -> bool {
        self.is_used && self.feedback == EcnFeedback::Accurate
    }

    /// Whether reductions are announced with CWR: accurate ECN has none.
    pub(super) fn announces_reductions(&self) -> bool {
        self.is_used && self.feedback != EcnFeedback::Accurate
    }

    /// Whether packets are ECN-capable. Retransmissions and control packets are not (RFC 3168 sections
    /// 6.1.5 and 6.1.1), unless the algorithm needs ECN on every packet (tcp_ecn_send()).
    pub(super) fn is_capable(&self, is_special: bool, needs_ecn: bool) -> bool {
        self.is_used && (!is_special || needs_ecn)
    }

    /// The marks of an ACK. RFC 3168 and DCTCP mark all packets that the ACK covers, which are
    /// `newly_delivered`. Accurate ECN counts packets (tcp_accecn_process()); reordered ACKs are ignored.
    pub(super) fn marks(&mut self, ack: &Ack, is_newest: bool, newly_delivered: u32) -> Marks {
        if !self.is_used {
            return Marks::default();
        }
        if self.feedback == EcnFeedback::Accurate {
            let packets = match is_newest {
                true => ack.marks.wrapping_sub(self.counted),
                false => 0,
            };
            self.counted = self.counted.wrapping_add(packets);
            return Marks {
                echo: packets > 0,
                packets: packets.into(),
            };
        }
        let echo = ack.marks > 0;
        Marks {
            echo,
            packets: if echo { newly_delivered } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(marks: u8) -> Ack {
        Ack {
            marks,
            ..Ack::default()
        }
    }

    fn used(feedback: EcnFeedback) -> Ecn {
        Ecn::new(true, feedback, false)
    }

    #[test]
    fn an_echo_marks_all_packets_that_its_ack_covers() {
        for feedback in [EcnFeedback::Latched, EcnFeedback::EachPacket] {
            let mut ecn = used(feedback);
            let expected = Marks {
                echo: true,
                packets: 7,
            };
            assert_eq!(ecn.marks(&marked(1), false, 7), expected);
            assert_eq!(ecn.marks(&marked(0), true, 7), Marks::default());
        }
    }

    #[test]
    fn accurate_feedback_counts_packets_modulo_256_and_ignores_reordered_acks() {
        let mut ecn = used(EcnFeedback::Accurate);
        assert_eq!(ecn.marks(&marked(250), true, 300).packets, 250);
        assert_eq!(ecn.marks(&marked(240), false, 1), Marks::default());
        assert_eq!(ecn.marks(&marked(4), true, 20).packets, 10);
        assert!(!ecn.marks(&marked(4), true, 1).echo);
    }

    #[test]
    fn without_an_agreement_nothing_is_capable_and_no_echo_counts() {
        let mut ecn = used(EcnFeedback::Latched);
        ecn.established(false);
        assert!(!ecn.is_capable(false, true) && !ecn.announces_reductions());
        assert_eq!(ecn.marks(&marked(1), true, 3), Marks::default());
    }

    #[test]
    fn retransmissions_are_capable_only_if_the_algorithm_needs_ecn() {
        let ecn = used(EcnFeedback::Latched);
        assert!(ecn.is_capable(false, false));
        assert!(!ecn.is_capable(true, false));
        assert!(ecn.is_capable(true, true));
    }
}
