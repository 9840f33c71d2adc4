//! One connection: the sender and the receiver of TCP at its ends, what waits at its hosts, and how it
//! is made of a plan. Never how a packet goes from one end to the other.

use std::collections::VecDeque;

use fullpipe_cc::{algorithm, flags, Controller};
use fullpipe_net::{derive_seed, purpose, Direction, Host, Rng};
use fullpipe_plan::{EcnKind, Flow, FlowDirection, Plan};
use fullpipe_tcp::{
    Data, EcnFeedback, ReaderStalls, Receiver, ReceiverConfig, Sender, SenderConfig,
};
use fullpipe_workload::Writer;

use crate::applications::PageEnd;
use crate::ends::NEVER_NS;
use crate::opening::Handshake;
use crate::run::BadPlan;
use crate::traffic::Visit;

/// So many reader_stalls are drawn; after them they come again.
const DRAWN_ABSENCES: usize = 1024;

/// One connection.
pub(crate) struct Connection {
    pub(crate) handshake: Handshake,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) receiver_host: Host,
    /// Packets handed down by TCP that have not entered the network.
    pub(crate) leaving: VecDeque<Leaving>,
    pub(crate) access_free_ns: u64,
    /// When the events for the timers of its ends are on the agenda; [`NEVER_NS`]: none is.
    pub(crate) sender_timer_ns: u64,
    pub(crate) receiver_timer_ns: u64,
    pub(crate) started: bool,
    pub(crate) stopped: bool,
    pub(crate) completion_us: Option<u64>,
    pub(crate) write_interval_ns: u64,
    pub(crate) data_direction: Direction,
    pub(crate) base_rtt_ns: u64,
    /// When its application writes, where that follows a pattern.
    pub(crate) writer: Option<Writer>,
    /// What it is to a page, if it is not one of the plan's own flows.
    pub(crate) page: Option<PageEnd>,
    pub(crate) start_ns: u64,
    /// Its packets between the two ends.
    pub(crate) under_way: u32,
    /// The flow of traffic that uses it now, if it is not one of the plan's own flows.
    pub(crate) visit: Option<Box<Visit>>,
}

/// A packet that its host holds back.
#[derive(Clone, Copy)]
pub(crate) struct Leaving {
    /// When it enters the network.
    pub(crate) enters_ns: u64,
    /// Packets of the burst which it begins, while that has yet to be made; else 0.
    pub(crate) unmade: u32,
    pub(crate) data: Data,
}

impl Connection {
    /// Nothing of it is left below TCP.
    pub(crate) fn has_left(&self) -> bool {
        self.under_way == 0 && self.leaving.is_empty()
    }

    /// A timer of its sender may expire before the event that is on the agenda.
    #[inline]
    pub(crate) fn sender_may_expire_sooner(&self) -> bool {
        self.sender_timer_ns > self.sender.timer_lower_bound_ns()
    }

    /// The same of its receiver.
    #[inline]
    pub(crate) fn receiver_may_expire_sooner(&self) -> bool {
        self.receiver_timer_ns > self.receiver.timer_lower_bound_ns()
    }

    /// Whoever uses it waits for what ACKs bring.
    #[inline]
    pub(crate) fn is_waited_for(&self) -> bool {
        let is_used = self.visit.is_some() || self.page.is_some();
        is_used || self.sender.is_finished() && self.completion_us.is_none()
    }

    /// Its timers are forgotten: events that are still on the agenda for them mean nothing.
    pub(crate) fn forget_timers(&mut self) {
        self.sender_timer_ns = NEVER_NS;
        self.receiver_timer_ns = NEVER_NS;
    }
}

/// Seeds of a connection's own random numbers: its congestion control's, and what its packets cost.
#[derive(Default)]
pub(crate) struct Seeds {
    pub(crate) cc: u64,
    pub(crate) host: u64,
}

/// A flow, not connected yet; `is_written`: its application writes when it likes. `Err` says why its
/// congestion control cannot run.
pub(crate) fn connection(
    plan: &Plan,
    flow: &Flow,
    seeds: &Seeds,
    is_written: bool,
) -> Result<Connection, BadPlan> {
    let name = flow.cc.algorithm.as_deref().unwrap_or(&flow.cc.name);
    let known =
        algorithm(name).ok_or_else(|| BadPlan(format!("cc: {name} is not in the simulator")))?;
    let cc =
        Controller::new(known, &flow.cc.params).map_err(|error| BadPlan(format!("cc: {error}")))?;
    let mss_bytes = plan.ends.mtu_bytes - 52;
    let host = &plan.host;
    let write_interval_ns = flow.app_rate_bps.map_or(0, |rate_bps| {
        (u64::from(mss_bytes) * 8_000_000_000 / rate_bps.max(1)).max(1)
    });
    let ecn = flow.ecn || cc.wants(flags::WANTS_ECN);
    let feedback = match flow.ecn_kind {
        EcnKind::Accecn | EcnKind::L4s => EcnFeedback::Accurate,
        EcnKind::Classic if cc.wants(flags::ECHOES_CE) => EcnFeedback::EachPacket,
        EcnKind::Classic => EcnFeedback::Latched,
    };
    let sender = SenderConfig {
        mss_bytes,
        pacing: host.pacing,
        pacing_shift: host.pacing_shift,
        gso_max_segments: host.gso_max_segments,
        rules: host.tcp.into(),
        facts: host.cc_facts,
        initial_cwnd: host.initial_cwnd_packets,
        wmem_max_bytes: host.wmem_max_bytes,
        notsent_lowat_bytes: plan.notsent_lowat_bytes(flow).map(u64::from),
        ecn,
        feedback,
        l4s: flow.ecn_kind == EcnKind::L4s,
        seed: seeds.cc as u32,
        amount_bytes: flow.amount_bytes,
        written_by_application: flow.app_rate_bps.is_some() || is_written,
    };
    let receiver = ReceiverConfig {
        mss_bytes,
        ack_policy: host.ack_policy,
        rules: host.tcp.into(),
        window_bytes: flow.receive_window_bytes,
        rmem_max_bytes: host.rmem_max_bytes,
        rcvlowat_bytes: plan.receive_low_water_bytes(flow),
        work_ns: host
            .work
            .as_ref()
            .map_or(0, |work| work.packet_ns + work.ack_ns),
        reader_stalls: reader_stalls(plan),
        aggregation_ns: host.receive_aggregation_ns,
        feedback,
    };
    let rates_bps = plan.links[flow.route.range()]
        .iter()
        .filter_map(|link| link.rates_bps()[0]);
    let packet_bits = u64::from(plan.ends.mtu_bytes) * 8;
    let packet_ns = packet_bits * 1_000_000_000 / rates_bps.min().unwrap_or(u64::MAX).max(1);
    Ok(Connection {
        handshake: Handshake::new(ecn),
        sender: Sender::new(sender, cc),
        receiver: Receiver::new(receiver),
        receiver_host: Host::new(packet_ns, seeds.host),
        leaving: VecDeque::new(),
        access_free_ns: 0,
        sender_timer_ns: NEVER_NS,
        receiver_timer_ns: NEVER_NS,
        started: false,
        stopped: false,
        completion_us: None,
        write_interval_ns,
        data_direction: if flow.direction == FlowDirection::Up {
            Direction::Forward
        } else {
            Direction::Reverse
        },
        base_rtt_ns: plan.base_rtt_ns(flow),
        writer: None,
        page: None,
        start_ns: flow.start_ns,
        under_way: 0,
        visit: None,
    })
}

/// When those who read are away, of a run all at once: it is one machine that is busy.
fn reader_stalls(plan: &Plan) -> Option<ReaderStalls> {
    let pauses = plan.host.reader_pauses?;
    let mut drawn = Rng::new(derive_seed(plan.seed, purpose::READER, 1));
    let count = match pauses.spread_ns {
        0 => 1,
        _ => DRAWN_ABSENCES,
    };
    let least_ns = pauses.for_ns - pauses.spread_ns;
    Some(ReaderStalls {
        every_ns: pauses.every_ns,
        phase_ns: derive_seed(plan.seed, purpose::READER, 0) % pauses.every_ns,
        durations_ns: (0..count)
            .map(|_| least_ns + drawn.up_to(2 * pauses.spread_ns))
            .collect(),
    })
}
