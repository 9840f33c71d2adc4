//! The rows of a recording's tables, and a table as columns. Every column's name gives its unit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A name in a row: most rows have one that is known before the run, and take no memory for it.
pub type Text = Cow<'static, str>;

/// Values of one column.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Unsigned integers.
    U64(Vec<u64>),
    /// Unsigned integers of which some do not exist.
    OptU64(Vec<Option<u64>>),
    /// Integers of which some do not exist.
    OptI64(Vec<Option<i64>>),
    /// Real numbers.
    F64(Vec<f64>),
    /// Real numbers of which some do not exist.
    OptF64(Vec<Option<f64>>),
    /// Text.
    Text(Vec<Text>),
}

/// One table: named columns of equal length.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Table {
    /// File name without ending.
    pub name: &'static str,
    /// Columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

/// Declares a row type and how a list of rows becomes a [`Table`].
macro_rules! row {
    ($(#[$doc:meta])* $row:ident, $table:literal, {
        $($(#[$fdoc:meta])* $field:ident : $kind:ident,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $row {
            $($(#[$fdoc])* pub $field: row!(@type $kind),)*
        }

        impl $row {
            /// Turns rows into columns.
            pub fn table(rows: &[Self]) -> Table {
                Table {
                    name: $table,
                    columns: vec![
                        $((stringify!($field),
                           Column::$kind(rows.iter().map(|row| row.$field.clone()).collect())),)*
                    ],
                }
            }
        }
    };
    (@type U64) => { u64 };
    (@type OptU64) => { Option<u64> };
    (@type F64) => { f64 };
    (@type Text) => { Text };
}

row! {
    /// One row a flow: totals over its life.
    FlowRow, "flows", {
        /// Position in the plan.
        flow_id: U64,
        /// Name in the plan.
        flow: Text,
        /// The name the user gave the congestion control.
        cc: Text,
        /// `up` or `down`.
        direction: Text,
        /// When its application called connect.
        start_us: U64,
        /// When its last byte was acknowledged; null: it did not finish.
        completion_us: OptU64,
        /// Payload that reached the receiving application's side, in order or not.
        bytes_delivered: U64,
        /// Payload acknowledged at the sender.
        bytes_acked: U64,
        /// Data packets sent, retransmissions included.
        packets_sent: U64,
        /// Retransmissions: of those, and of handshakes and FINs without data.
        packets_retransmitted: U64,
        /// Packets that the sender marked lost.
        packets_lost: U64,
        /// Packets delivered (Linux tp->delivered).
        packets_delivered: U64,
        /// Of those, marked CE.
        packets_delivered_ce: U64,
        /// Times a loss episode (Recovery) was entered; null: a kernel that cannot be asked.
        recoveries: OptU64,
        /// Retransmission timeouts.
        timeouts: U64,
        /// Reductions undone as spurious; null: a kernel that cannot be asked.
        undos: OptU64,
        /// Base RTT of the flow's path, without queue and serialization.
        base_rtt_us: U64,
        /// Payload bytes of a full packet.
        mss_bytes: U64,
    }
}

row! {
    /// A flow as seen at a sampling time. Counters are totals since the start.
    FlowSampleRow, "flow_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// Position in the plan.
        flow_id: U64,
        /// Payload that has reached the receiver.
        bytes_delivered: U64,
        /// Payload acknowledged at the sender.
        bytes_acked: U64,
        /// Congestion window.
        cwnd_packets: U64,
        /// Slow-start threshold; null: not set yet.
        ssthresh_packets: OptU64,
        /// In the network.
        inflight_packets: U64,
        /// Smoothed RTT; null: no sample yet.
        srtt_us: OptU64,
        /// Least RTT of the connection (Linux tcp_min_rtt); null: no sample yet.
        min_rtt_us: OptU64,
        /// Pacing rate; null: not paced.
        pacing_rate_bps: OptU64,
        /// Latest delivery-rate sample (tcpi_delivery_rate).
        delivery_rate_bps: U64,
        /// Data packets sent.
        packets_sent: U64,
        /// Retransmissions: of those, and of handshakes and FINs without data.
        packets_retransmitted: U64,
        /// Marked lost so far (the algorithm's `lost` counter, not tcpi_lost).
        packets_lost: U64,
        /// Delivered so far.
        packets_delivered: U64,
        /// Of those, marked CE.
        packets_delivered_ce: U64,
        /// The receiver's advertised window.
        receive_window_bytes: U64,
        /// Linux tcp_ca_state: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
        ca_state: U64,
    }
}

row! {
    /// A queue as seen at a sampling time. Counters are totals since the start.
    QueueRow, "queue_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// `forward` or `reverse`.
        queue: Text,
        /// On the wire, link headers included; with the packet in service.
        queue_bytes: U64,
        /// Packets waiting.
        queue_packets: U64,
        /// Sent so far, on the wire.
        sent_bytes: U64,
        /// Sent so far.
        sent_packets: U64,
        /// Dropped by the queue so far.
        dropped_packets: U64,
        /// ACKs that CAKE's ACK filter took out so far, which are not dropped; null: not counted.
        filtered_packets: U64,
        /// Marked CE by the queue so far.
        marked_packets: U64,
        /// Lost by the path's random loss so far (not by the queue); all packets of a lost burst.
        random_lost_packets: U64,
        /// Marked CE by the path's random loss so far (netem ecn); all packets of a marked burst.
        random_marked_packets: U64,
    }
}

row! {
    /// One request of a probe.
    PingRow, "ping_samples", {
        /// When it was sent.
        t_us: U64,
        /// Probe name.
        probe: Text,
        /// Counts from 0.
        seq: U64,
        /// Null: no answer by the end of the run.
        rtt_us: OptU64,
    }
}

row! {
    /// The algorithm's own variables at a sampling time (cc/state.h). Others have columns
    /// behind these.
    CcRow, "cc_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// Position in the plan.
        flow_id: U64,
        /// Name of the phase (`startup`, `drain`, `up`, `down`, `cruise`, `refill`, `probe_rtt`,
        /// `slow_start`, `avoidance`).
        phase: Text,
        /// Bandwidth that the model paces from; null: it has none.
        bw_bps: OptU64,
        /// Long-term bandwidth; null: none.
        max_bw_bps: OptU64,
        /// Short-term bound; null: unset.
        bw_shortterm_bps: OptU64,
        /// The algorithm's own minimum RTT; null: none.
        min_rtt_us: OptU64,
        /// Gain on the bandwidth.
        pacing_gain: F64,
        /// Gain on the BDP.
        cwnd_gain: F64,
        /// Long-term in-flight bound; null: unset.
        inflight_longterm_packets: OptU64,
        /// Short-term in-flight bound; null: unset.
        inflight_shortterm_packets: OptU64,
        /// ACK aggregation estimate.
        extra_acked_packets: U64,
        /// Packet-timed rounds.
        round_count: U64,
    }
}

row! {
    /// Something that happened at a moment.
    EventRow, "events", {
        /// Since the start of the run.
        t_us: U64,
        /// Position in the plan; null: not of a flow.
        flow_id: OptU64,
        /// `start`, `established`, `connect_timeout`, `finish`, `recovery`, `recovery_end`, `rto`, `undo`,
        /// `cwr`.
        event: Text,
        /// Depends on the event. By default the cwnd after it, in packets.
        value: U64,
    }
}

row! {
    /// One row a flow of traffic: written when it ended, or when the run did.
    TrafficRow, "traffic", {
        /// Position of its group in the plan.
        group_id: U64,
        /// Its number within the group, in the order of arrival.
        number: U64,
        /// Position of its sender in the group.
        sender: U64,
        /// Base RTT of its path, without queue and serialization.
        base_rtt_us: U64,
        /// When its application called connect.
        start_us: U64,
        /// What it sends in all, payload.
        size_bytes: U64,
        /// When its last byte was acknowledged; null: it did not finish.
        completion_us: OptU64,
        /// Chunks in which the application wrote it.
        chunks: U64,
        /// How long the application paused between chunks, up to the end of the flow or the run.
        pause_us: U64,
        /// Payload acknowledged.
        bytes_acked: U64,
        /// Data packets sent, retransmissions included.
        packets_sent: U64,
        /// Retransmissions: of those, and of handshakes and FINs without data.
        packets_retransmitted: U64,
        /// Retransmission timeouts.
        timeouts: U64,
    }
}

row! {
    /// A flow of traffic as seen at a sampling time, and at its end.
    TrafficSampleRow, "traffic_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// Position of its group in the plan.
        group_id: U64,
        /// Its number within the group.
        number: U64,
        /// Payload acknowledged.
        bytes_acked: U64,
        /// Congestion window.
        cwnd_packets: U64,
        /// Slow-start threshold; null: not set yet.
        ssthresh_packets: OptU64,
        /// In the network.
        inflight_packets: U64,
        /// Smoothed RTT; null: no sample yet.
        srtt_us: OptU64,
        /// Pacing rate; null: not paced.
        pacing_rate_bps: OptU64,
        /// Latest delivery-rate sample.
        delivery_rate_bps: U64,
        /// Data packets sent.
        packets_sent: U64,
        /// Retransmissions: of those, and of handshakes and FINs without data.
        packets_retransmitted: U64,
        /// Marked lost so far.
        packets_lost: U64,
        /// Linux tcp_ca_state.
        ca_state: U64,
    }
}

impl TrafficSampleRow {
    /// A sample of the flow with this number in its group.
    pub fn of(group_id: u64, number: u64, sample: &FlowSampleRow) -> Self {
        Self {
            t_us: sample.t_us,
            group_id,
            number,
            bytes_acked: sample.bytes_acked,
            cwnd_packets: sample.cwnd_packets,
            ssthresh_packets: sample.ssthresh_packets,
            inflight_packets: sample.inflight_packets,
            srtt_us: sample.srtt_us,
            pacing_rate_bps: sample.pacing_rate_bps,
            delivery_rate_bps: sample.delivery_rate_bps,
            packets_sent: sample.packets_sent,
            packets_retransmitted: sample.packets_retransmitted,
            packets_lost: sample.packets_lost,
            ca_state: sample.ca_state,
        }
    }
}

row! {
    /// One load of a page.
    PageRow, "page_loads", {
        /// Position in the plan.
        page_id: U64,
        /// Name in the plan.
        page: Text,
        /// Counts from 0.
        load: U64,
        /// When it began.
        start_us: U64,
        /// When its last object had arrived; null: not by the end of the run.
        done_us: OptU64,
        /// Objects of the page.
        objects: U64,
        /// All of them, headers included.
        bytes: U64,
    }
}

row! {
    /// One object of a load of a page.
    ObjectRow, "page_objects", {
        /// Position of its page in the plan.
        page_id: U64,
        /// Of which load.
        load: U64,
        /// Position in the page.
        object: U64,
        /// Number of its connection within the page.
        connection: U64,
        /// When its connection began with it, name lookup and connect included.
        asked_us: U64,
        /// When its first byte arrived; null: not yet.
        first_byte_us: OptU64,
        /// When its last byte arrived; null: not yet.
        done_us: OptU64,
        /// Header included.
        bytes: U64,
    }
}

row! {
    /// One datagram of a stream.
    DatagramRow, "datagrams", {
        /// When it was sent.
        t_us: U64,
        /// Position of its stream in the plan.
        stream_id: U64,
        /// Counts from 0.
        seq: U64,
        /// The frame that it is a part of; its own number where there are no frames.
        frame: U64,
        /// Payload.
        bytes: U64,
        /// One-way delay; null: it did not arrive.
        delay_us: OptU64,
    }
}

row! {
    /// Times of a processor of a measured machine: totals since the start of the run, in the kernel's
    /// resolution of 10 ms.
    CpuRow, "cpu_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// `local`; of two hosts, `near` or `far`.
        machine: Text,
        /// The processor's number.
        cpu: U64,
        /// Programs.
        user_us: U64,
        /// The kernel for programs.
        system_us: U64,
        /// Interrupts.
        irq_us: U64,
        /// Deferred work of interrupts, such as receiving packets.
        softirq_us: U64,
        /// Taken by the host of a virtual machine.
        steal_us: U64,
        /// Idle.
        idle_us: U64,
    }
}

row! {
    /// Traffic of a host's port. Counters are totals since the start of the run.
    NicRow, "nic_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// `sender 0`, `receiver 0`, ...; of two real hosts, `near` or `far`.
        host: Text,
        /// The port's name there.
        nic: Text,
        /// Link headers included.
        received_bytes: U64,
        /// As the kernel counts them.
        received_packets: U64,
        /// Link headers included.
        sent_bytes: U64,
        /// As the kernel counts them: before it cuts large ones.
        sent_packets: U64,
    }
}

row! {
    /// TCP's use of a machine's memory.
    TcpMemoryRow, "tcp_memory_samples", {
        /// Since the start of the run.
        t_us: U64,
        /// `local`; of two hosts, `near` or `far`.
        machine: Text,
        /// Buffers of all TCP sockets; up to 1 MiB a processor is not counted (SK_MEMORY_PCPU_RESERVE).
        memory_bytes: U64,
        /// TCP sockets.
        sockets: U64,
        /// Of those, closed by their program and not yet gone.
        orphans: U64,
    }
}
