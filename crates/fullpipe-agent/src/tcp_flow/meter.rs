//! A flow's rows from TCP_INFO of its two ends. Events between two samples carry the time of the second
//! one, and two losses between samples are one event; totals are the kernel's own.
//!
//! The kernel does not report how many packets it has marked lost in total; that number is taken as
//! retransmitted packets plus those that wait for retransmission.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use fullpipe_plan::{EventRow, FlowRow, FlowSampleRow};

use super::connection::Connection;
use crate::kernel_cc::Episodes;
use crate::sample::{EcnMode, TcpInfo};

/// Linux TCP_INFINITE_SSTHRESH.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;
const CWR: u8 = 2;

/// One flow's measurement.
#[derive(Default)]
pub(crate) struct FlowMeter {
    flow_id: u64,
    /// TCP paces this flow, or its host does.
    is_paced: bool,
    sender: TcpInfo,
    received_bytes: u64,
    lost_packets: u64,
    /// Recoveries and undos that the kernel counted; `None`: it was not asked, or cannot be.
    episodes: Option<Episodes>,
    timeouts: u64,
    seen_rtos: u16,
    /// The ECN that the sending and the receiving end negotiated; `None`: was not seen connected.
    ecn_modes: [Option<EcnMode>; 2],
    /// Marked packets that the receiving end has counted.
    received_ce: u32,
}

impl FlowMeter {
    pub(crate) fn new(flow_id: u64, is_paced: bool) -> Self {
        Self {
            flow_id,
            is_paced,
            ..Self::default()
        }
    }

    /// Reads both ends; what has changed since the last look becomes events.
    pub(crate) fn look(
        &mut self,
        connection: &Connection,
        t_us: u64,
        put: impl FnMut(EventRow),
    ) -> io::Result<()> {
        if let Some(receiver) = connection.receiver() {
            let info = TcpInfo::of(receiver)?;
            self.received_bytes = info.bytes_received.min(connection.written_bytes());
            self.received_ce = self.received_ce.max(info.received_ce);
            self.ecn_modes[1] = info.ecn_mode().or(self.ecn_modes[1]);
        }
        match connection.sender() {
            Some(sender) => self.look_at(sender, t_us, put),
            None => Ok(()),
        }
    }

    /// Reads the sending end; what has changed since the last look becomes events.
    pub(crate) fn look_at(
        &mut self,
        sender: &OwnedFd,
        t_us: u64,
        mut put: impl FnMut(EventRow),
    ) -> io::Result<()> {
        let before = self.sender;
        self.sender = TcpInfo::of(sender)?;
        self.episodes = Episodes::of(sender.as_fd()).or(self.episodes);
        let now = &self.sender;
        self.ecn_modes[0] = now.ecn_mode().or(self.ecn_modes[0]);
        let repeated =
            u64::from(now.total_retrans) + u64::from(now.lost.saturating_sub(now.retrans));
        self.lost_packets = self.lost_packets.max(repeated);
        let cwnd = u64::from(now.snd_cwnd);
        let mut event = |name: &'static str| {
            put(EventRow {
                t_us,
                flow_id: Some(self.flow_id),
                event: name.into(),
                value: cwnd,
            });
        };
        let entered = |state| now.ca_state == state && before.ca_state != state;
        if before.ca_state >= RECOVERY && now.ca_state < RECOVERY {
            event("recovery_end");
        }
        if entered(RECOVERY) {
            event("recovery");
        }
        if entered(CWR) {
            event("cwr");
        }
        // Linux counts them since 6.7; before, the state shows them.
        let counted = u64::from(now.total_rto.wrapping_sub(self.seen_rtos));
        let rtos = counted.max(u64::from(entered(LOSS)));
        self.seen_rtos = now.total_rto;
        for _ in 0..rtos {
            self.timeouts += 1;
            event("rto");
        }
        Ok(())
    }

    /// What a cc row needs besides the algorithm's own variables.
    pub(crate) fn sender(&self) -> &TcpInfo {
        &self.sender
    }

    /// What the sending and the receiving end negotiated; `None`: was not seen connected.
    pub(crate) fn ecn_modes(&self) -> [Option<EcnMode>; 2] {
        self.ecn_modes
    }

    /// Packets that reached the receiving end marked; where that is another host, 0.
    pub(crate) fn received_ce(&self) -> u32 {
        self.received_ce
    }

    /// Retransmission timeouts up to the last look.
    pub(crate) fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// The row of the last look.
    pub(crate) fn sample(&self, connection: &Connection, t_us: u64) -> FlowSampleRow {
        let (delivered, acked) = (
            self.delivered_bytes(connection),
            self.acked_bytes(connection),
        );
        self.sample_of(delivered, acked, t_us)
    }

    /// The same with the payload that was delivered and acknowledged from elsewhere.
    pub(crate) fn sample_of(&self, delivered: u64, acked: u64, t_us: u64) -> FlowSampleRow {
        let info = &self.sender;
        let some = |value: u32| (value > 0 && value != u32::MAX).then_some(u64::from(value));
        FlowSampleRow {
            t_us,
            flow_id: self.flow_id,
            bytes_delivered: delivered,
            bytes_acked: acked,
            cwnd_packets: u64::from(info.snd_cwnd),
            ssthresh_packets: (info.snd_ssthresh < INFINITE_SSTHRESH)
                .then_some(u64::from(info.snd_ssthresh)),
            inflight_packets: u64::from(info.inflight()),
            // Before the first sample the kernel gives 0.
            srtt_us: some(info.rtt),
            min_rtt_us: some(info.min_rtt),
            pacing_rate_bps: (self.is_paced && info.pacing_rate != u64::MAX)
                .then_some(info.pacing_rate.saturating_mul(8)),
            delivery_rate_bps: info.delivery_rate * 8,
            packets_sent: u64::from(info.data_segs_out),
            packets_retransmitted: u64::from(info.total_retrans),
            packets_lost: self.lost_packets,
            packets_delivered: u64::from(info.delivered),
            packets_delivered_ce: u64::from(info.delivered_ce),
            receive_window_bytes: u64::from(info.snd_wnd),
            ca_state: u64::from(info.ca_state),
        }
    }

    /// Payload that arrived, in order or not. The receiver's kernel counts it when it is in order, so
    /// that data behind a hole count when the hole is filled; the sender's kernel counts it when SACKs
    /// arrive. The larger of the two.
    fn delivered_bytes(&self, connection: &Connection) -> u64 {
        let sender = &self.sender;
        let behind_holes = u64::from(sender.sacked) * u64::from(sender.snd_mss);
        let sent_once = sender.bytes_sent.saturating_sub(sender.bytes_retrans);
        let told = (self.acked_bytes(connection) + behind_holes).min(sent_once);
        match connection.receiver() {
            Some(_) => self.received_bytes.max(told),
            None => told,
        }
    }

    /// Payload acknowledged: without SYN and FIN.
    pub(crate) fn acked_bytes(&self, connection: &Connection) -> u64 {
        let offset = connection.acked_offset();
        let acked = self.sender.bytes_acked.saturating_sub(offset);
        acked.min(connection.written_bytes())
    }

    /// Fills the totals of the last look into a row that knows the rest.
    pub(crate) fn total(&self, connection: &Connection, row: FlowRow) -> FlowRow {
        let row = FlowRow {
            bytes_delivered: self.delivered_bytes(connection),
            bytes_acked: self.acked_bytes(connection),
            ..row
        };
        self.total_of(row)
    }

    /// The same, where the row has the payload already.
    pub(crate) fn total_of(&self, row: FlowRow) -> FlowRow {
        let info = &self.sender;
        FlowRow {
            packets_sent: u64::from(info.data_segs_out),
            packets_retransmitted: u64::from(info.total_retrans),
            packets_lost: self.lost_packets,
            packets_delivered: u64::from(info.delivered),
            packets_delivered_ce: u64::from(info.delivered_ce),
            recoveries: self.episodes.map(|counted| counted.recoveries.into()),
            timeouts: self.timeouts,
            undos: self.episodes.map(|counted| counted.undos.into()),
            mss_bytes: u64::from(info.snd_mss),
            ..row
        }
    }
}
