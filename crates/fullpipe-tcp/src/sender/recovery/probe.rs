//! The episode of a tail loss probe: RFC 8985 section 7.4, tcp_process_tlp_ack() of tcp_input.c.

use crate::packet::Ack;

/// A loss probe that is out.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its episode ends at this packet.
    end: u32,
    is_retransmission: bool,
    /// The packet that it retransmitted was application-limited (tlp_orig_data_app_limited).
    is_app_limited: bool,
}

/// What an ACK means to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing, or that its episode is over: nothing was lost.
    Nothing,
    /// The probe repaired a loss.
    RepairedLoss { is_app_limited: bool },
    /// It may acknowledge the retransmission or the original.
    Ambiguous,
}

/// The loss probe of a connection, if one is out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossProbe {
    sent: Option<Sent>,
}

impl LossProbe {
    /// A probe is sent; packets up to `end` are out. `retransmits`: of a retransmission, whether the packet
    /// was application-limited.
    pub(super) fn send(&mut self, end: u32, retransmits: Option<bool>) {
        self.sent = Some(Sent {
            end,
            is_retransmission: retransmits.is_some(),
            is_app_limited: retransmits.unwrap_or(false),
        });
    }

    /// Other means repair losses now.
    pub(super) fn cancel(&mut self) {
        self.sent = None;
    }

    #[inline]
    pub(super) fn is_out(&self) -> bool {
        self.sent.is_some()
    }

    /// Retransmissions in flight of which only the probe knows.
    pub(super) fn retransmissions(&self) -> u32 {
        u32::from(self.sent.is_some_and(|sent| sent.is_retransmission))
    }

    /// Whether a DSACK up to this packet is the probe's.
    pub(super) fn ends_at(&self, end: u32) -> bool {
        self.sent.is_some_and(|sent| sent.end == end)
    }

    /// An ACK arrived. If a later packet is acknowledged without a DSACK for the probe, it repaired a loss;
    /// if nothing else is new (`is_news`), both the original and the probe arrived.
    pub(super) fn acked(&mut self, ack: &Ack, is_news: bool) -> Outcome {
        let Some(sent) = self.sent.filter(|sent| ack.next >= sent.end) else {
            return Outcome::Nothing;
        };
        let is_duplicate = ack.dsack && ack.blocks[0].end == sent.end;
        if !sent.is_retransmission || is_duplicate {
            self.sent = None;
            return Outcome::Nothing;
        }
        if ack.next > sent.end {
            return Outcome::RepairedLoss {
                is_app_limited: sent.is_app_limited,
            };
        }
        if is_news {
            return Outcome::Ambiguous;
        }
        self.sent = None;
        Outcome::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Block;

    fn ack(next: u32) -> Ack {
        Ack {
            next,
            ..Ack::default()
        }
    }

    fn retransmitted() -> LossProbe {
        let mut probe = LossProbe::default();
        probe.send(10, Some(true));
        probe
    }

    #[test]
    fn a_later_packet_without_a_dsack_shows_that_the_probe_repaired_a_loss() {
        let mut probe = retransmitted();
        assert_eq!(probe.acked(&ack(9), true), Outcome::Nothing);
        assert_eq!(probe.acked(&ack(10), true), Outcome::Ambiguous);
        let repaired = Outcome::RepairedLoss {
            is_app_limited: true,
        };
        assert_eq!(probe.acked(&ack(11), true), repaired);
    }

    #[test]
    fn a_dsack_or_a_second_ack_shows_that_both_arrived() {
        let mut dsack = ack(11);
        dsack.dsack = true;
        dsack.blocks[0] = Block { start: 9, end: 10 };
        for (answer, is_news) in [(dsack, true), (ack(10), false)] {
            let mut probe = retransmitted();
            assert_eq!(probe.acked(&answer, is_news), Outcome::Nothing);
            assert!(!probe.is_out());
        }
    }

    #[test]
    fn a_probe_with_new_data_repairs_nothing() {
        let mut probe = LossProbe::default();
        probe.send(11, None);
        assert_eq!(probe.retransmissions(), 0);
        assert_eq!(probe.acked(&ack(12), true), Outcome::Nothing);
        assert!(!probe.is_out());
    }
}
