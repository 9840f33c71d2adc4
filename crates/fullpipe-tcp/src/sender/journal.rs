//! What a sender tells the recording: totals and events.

use crate::handshake::Established;

/// Totals of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets with data sent, retransmissions included (tcpi_data_segs_out).
    pub packets_sent: u64,
    /// Retransmissions, those of SYN and FIN included (tcpi_total_retrans).
    pub packets_retransmitted: u64,
    /// Packets marked lost.
    pub packets_lost: u64,
    /// Times Recovery was entered.
    pub recoveries: u64,
    /// Retransmission timeouts, those of SYNs and SYN-ACKs included (tcpi_total_rto).
    pub timeouts: u64,
    /// Reductions undone.
    pub undos: u64,
}

/// An event for the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// Recovery begins.
    Recovery,
    /// Recovery or CWR ended.
    RecoveryEnd,
    /// A retransmission timeout.
    Timeout,
    /// A reduction was undone.
    Undo,
    /// An ECN reduction begins.
    Cwr,
}

impl SenderEvent {
    /// Name in recordings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recovery => "recovery",
            Self::RecoveryEnd => "recovery_end",
            Self::Timeout => "rto",
            Self::Undo => "undo",
            Self::Cwr => "cwr",
        }
    }
}

/// The totals so far, and the events that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Journal {
    totals: Totals,
    events: Vec<SenderEvent>,
}

impl Journal {
    /// An event happens: counts it too.
    pub(super) fn record(&mut self, event: SenderEvent) {
        match event {
            SenderEvent::Recovery => self.totals.recoveries += 1,
            SenderEvent::Timeout => self.totals.timeouts += 1,
            SenderEvent::Undo => self.totals.undos += 1,
            SenderEvent::RecoveryEnd | SenderEvent::Cwr => {}
        }
        self.events.push(event);
    }

    /// A SYN timed out; who sends SYNs records the event.
    pub(super) fn syn_timed_out(&mut self) {
        self.totals.packets_retransmitted += 1;
        self.totals.timeouts += 1;
    }

    /// The handshake is done. A client's timeouts are counted already ([`Self::syn_timed_out`]).
    pub(super) fn established(&mut self, opened: &Established) {
        self.totals.packets_retransmitted = u64::from(opened.retransmissions);
        for _ in self.totals.timeouts..u64::from(opened.timeouts) {
            self.record(SenderEvent::Timeout);
        }
    }

    /// Packets with data are sent.
    pub(super) fn sent(&mut self, packets: u32) {
        self.totals.packets_sent += u64::from(packets);
    }

    /// Packets are sent again.
    pub(super) fn sent_again(&mut self, packets: u32) {
        self.totals.packets_retransmitted += u64::from(packets);
    }

    /// Totals so far; the scoreboard knows what is lost.
    pub(super) fn totals(&self, packets_lost: u32) -> Totals {
        Totals {
            packets_lost: packets_lost.into(),
            ..self.totals
        }
    }

    /// Packets that were sent again.
    pub(super) fn retransmissions(&self) -> u64 {
        self.totals.packets_retransmitted
    }

    /// Whether there are events that nobody has taken.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The events since the last call.
    pub(super) fn take_events(&mut self) -> std::vec::Drain<'_, SenderEvent> {
        self.events.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_timeouts_are_recorded_when_it_is_established_and_a_clients_only_once() {
        let opened = Established {
            retransmissions: 3,
            timeouts: 2,
            ..Established::default()
        };
        let mut server = Journal::default();
        server.established(&opened);
        assert_eq!(server.totals(0).timeouts, 2);
        assert_eq!(server.take_events().count(), 2);
        let mut client = Journal::default();
        client.syn_timed_out();
        client.syn_timed_out();
        client.established(&opened);
        assert_eq!(client.totals(0).timeouts, 2);
        assert!(!client.has_events());
        assert_eq!(client.totals(0).packets_retransmitted, 3);
    }
}
