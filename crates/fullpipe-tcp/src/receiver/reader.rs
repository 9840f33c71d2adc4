//! When the receiving application reads: at once, when its host is idle, or after a stall. Must never know
//! what is read.

use super::config::ReceiverConfig;
use super::reader_stalls::ReaderStalls;

/// It does not happen.
const NEVER_NS: u64 = u64::MAX;

/// The application that reads.
#[derive(Debug)]
pub(super) struct Reader {
    /// SO_RCVLOWAT in packets.
    low_water_packets: u32,
    work_ns: u64,
    stalls: Option<ReaderStalls>,
    /// When it was woken, if it has not read yet.
    woken_ns: u64,
    /// When it will read, as it stalls.
    resumes_ns: u64,
}

impl Reader {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        Self {
            low_water_packets: config.rcvlowat_bytes.div_ceil(config.mss_bytes),
            work_ns: config.work_ns,
            stalls: config.reader_stalls.clone(),
            woken_ns: NEVER_NS,
            resumes_ns: NEVER_NS,
        }
    }

    /// Whether this much unread makes it read.
    #[inline(always)] // for every packet, as below
    pub(super) fn reads(&self, unread_packets: u32) -> bool {
        unread_packets >= self.low_water_packets
    }

    /// Whether it is not stalled.
    #[inline(always)]
    pub(super) fn is_reading(&self) -> bool {
        self.resumes_ns == NEVER_NS
    }

    /// When a stall ends; `u64::MAX`: it is not stalled.
    #[inline(always)]
    pub(super) fn resumes_ns(&self) -> u64 {
        self.resumes_ns
    }

    /// The stall has ended.
    pub(super) fn resume(&mut self) {
        self.resumes_ns = NEVER_NS;
    }

    /// Data arrived: a stall may have begun.
    #[inline(always)]
    pub(super) fn data_arrived(&mut self, now_ns: u64) {
        if let Some(stalls) = &self.stalls {
            self.resumes_ns = stalls.end_ns(now_ns).unwrap_or(self.resumes_ns);
        }
    }

    /// Wakes it; true if it reads at once. With packet costs, whether it reads is only known when the next
    /// packet arrives.
    #[inline(always)]
    pub(super) fn wake(&mut self, now_ns: u64) -> bool {
        if self.work_ns > 0 {
            self.woken_ns = now_ns;
        }
        self.work_ns == 0
    }

    /// Since when it has read, if it was woken and its host was not busy.
    #[inline(always)]
    pub(super) fn take_woken(&mut self, now_ns: u64) -> Option<u64> {
        let woken_ns = std::mem::replace(&mut self.woken_ns, NEVER_NS);
        let had_time = woken_ns != NEVER_NS && now_ns - woken_ns > self.work_ns;
        had_time.then_some(woken_ns)
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_plan::AckPolicy;

    use super::*;
    use crate::packet::EcnFeedback;
    use crate::rules::Rules;

    fn reader(work_ns: u64, reader_stalls: Option<ReaderStalls>) -> Reader {
        Reader::new(&ReceiverConfig {
            mss_bytes: 1448,
            ack_policy: AckPolicy::Linux,
            rules: Rules::default(),
            window_bytes: None,
            rmem_max_bytes: 1 << 20,
            rcvlowat_bytes: 1449,
            work_ns,
            reader_stalls,
            aggregation_ns: 0,
            feedback: EcnFeedback::Latched,
        })
    }

    #[test]
    fn the_low_water_mark_is_rounded_up_to_packets() {
        let reader = reader(0, None);
        assert!(!reader.reads(1) && reader.reads(2));
    }

    #[test]
    fn an_application_on_a_busy_host_has_read_only_if_no_packet_came_in_the_meantime() {
        let mut reader = reader(100, None);
        assert!(!reader.wake(1000));
        assert_eq!(reader.take_woken(1100), None);
        assert_eq!(reader.take_woken(5000), None, "it was woken once");
        reader.wake(6000);
        assert_eq!(reader.take_woken(6101), Some(6000));
    }

    #[test]
    fn a_stall_lasts_until_its_end_however_many_packets_come() {
        let stalls = ReaderStalls {
            every_ns: 1000,
            phase_ns: 0,
            durations_ns: [300].into(),
        };
        let mut reader = reader(0, Some(stalls));
        reader.data_arrived(5200);
        assert!(!reader.is_reading());
        reader.data_arrived(5400);
        assert_eq!(reader.resumes_ns(), 5300);
        reader.resume();
        assert!(reader.is_reading() && reader.wake(5300));
    }
}
