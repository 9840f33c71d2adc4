//! When an application with a rate writes: a full packet in each interval. It must never know whether its
//! socket takes what it writes.

use fullpipe_plan::Flow;

/// An application with a rate.
pub(crate) struct Pace {
    packet_bytes: u64,
    interval_ns: u64,
    /// When it writes next.
    pub(crate) next_ns: u64,
}

impl Pace {
    /// The application of a flow whose connection has just been established; `None`: it has no rate.
    pub(crate) fn new(flow: &Flow, packet_bytes: u64, now_ns: u64) -> Option<Self> {
        let interval_ns = packet_bytes * 8_000_000_000 / flow.app_rate_bps?.max(1);
        Some(Self {
            packet_bytes,
            interval_ns: interval_ns.max(1),
            next_ns: now_ns,
        })
    }

    /// Payload that it writes until this time and has not written yet.
    pub(crate) fn write(&mut self, now_ns: u64) -> u64 {
        let Some(late_ns) = now_ns.checked_sub(self.next_ns) else {
            return 0;
        };
        let packets = late_ns / self.interval_ns + 1;
        self.next_ns += packets * self.interval_ns;
        packets * self.packet_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waited_owes_what_others_wrote_packet_by_packet() {
        // 11.58 us at 1 Gbit/s.
        let of = || Pace {
            packet_bytes: 1448,
            interval_ns: 11_584,
            next_ns: 7,
        };
        let mut patient = of();
        for until_ns in [6, 7, 11_590, 11_591, 50_000, 50_001, 1_000_000_006] {
            let mut prompt = of();
            let mut all_bytes = 0;
            while prompt.next_ns <= until_ns {
                let due_ns = prompt.next_ns;
                all_bytes += prompt.write(due_ns);
            }
            let before_bytes = (patient.next_ns - 7) / 11_584 * 1448;
            assert_eq!(before_bytes + patient.write(until_ns), all_bytes);
            assert_eq!(patient.next_ns, prompt.next_ns);
        }
        // A rate of 1 Gbit/s for a second, and the packet that it begins with.
        assert_eq!((patient.next_ns - 7) / 11_584, 1_000_000_000 / 11_584 + 1);
    }
}
