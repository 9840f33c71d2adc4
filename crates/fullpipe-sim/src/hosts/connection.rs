//! One connection: TCP's sender and receiver at its ends, its handshake and its application. Must never
//! know how packets get from one end to the other.

use fullpipe_cc::{algorithm, flags, Controller};
use fullpipe_net::{derive_seed, purpose, Direction, Host, Rng};
use fullpipe_plan::{EcnKind, Flow, FlowDirection, Pattern, Plan, Stack};
use fullpipe_tcp::{EcnFeedback, ReaderStalls, Receiver, ReceiverConfig, Sender, SenderConfig};
use fullpipe_workload::Writer;

use super::departures::Departures;
use super::handshake::Handshake;
use crate::agenda::Alarm;
use crate::check::BadPlan;
use crate::workloads::{PageConnection, PooledFlow};

/// Stall durations that are drawn before they repeat.
const DRAWN_STALLS: usize = 1024;

/// One connection.
pub(crate) struct Connection {
    pub(crate) handshake: Handshake,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Processing delay of received packets.
    pub(crate) receiver_host: Host,
    pub(crate) departures: Departures,
    pub(crate) sender_alarm: Alarm,
    pub(crate) receiver_alarm: Alarm,
    pub(crate) application: Application,
    pub(crate) data_direction: Direction,
    /// The connection was started.
    pub(crate) is_started: bool,
    /// The application has stopped.
    pub(crate) is_stopped: bool,
    pub(crate) start_ns: u64,
    pub(crate) completion_us: Option<u64>,
    pub(crate) base_rtt_ns: u64,
    /// Its packets between the two hosts.
    pub(crate) packets_in_flight: u32,
}

/// What writes into a connection.
pub(crate) enum Application {
    /// TCP's own: always ready, or done with all its data at the start.
    Bulk,
    /// One packet in each interval.
    Paced { interval_ns: u64 },
    /// As a pattern says; the writer starts when the connection is established.
    Pattern {
        pattern: Pattern,
        writer: Option<Writer>,
    },
    /// A flow of a traffic group; `None` once it has left.
    Pool(Option<Box<PooledFlow>>),
    /// A page.
    Page(PageConnection),
}

impl Connection {
    /// Whether all its packets have left its hosts and the network.
    pub(crate) fn has_left(&self) -> bool {
        self.packets_in_flight == 0 && self.departures.is_empty()
    }

    /// Whether a timer of the sender may expire before the event that is on the agenda.
    #[inline]
    pub(crate) fn sender_may_expire_sooner(&self) -> bool {
        self.sender_alarm.at_ns() > self.sender.timer_lower_bound_ns()
    }

    /// The same for the receiver.
    #[inline]
    pub(crate) fn receiver_may_expire_sooner(&self) -> bool {
        self.receiver_alarm.at_ns() > self.receiver.timer_lower_bound_ns()
    }

    /// Whether an ACK may concern the application, or completes the flow.
    #[inline]
    pub(crate) fn awaits_acks(&self) -> bool {
        match self.application {
            Application::Pool(Some(_)) | Application::Page(_) => true,
            _ => self.sender.is_finished() && self.completion_us.is_none(),
        }
    }

    /// The flow of a traffic group that uses it.
    pub(crate) fn pooled(&self) -> Option<&PooledFlow> {
        match &self.application {
            Application::Pool(flow) => flow.as_deref(),
            _ => None,
        }
    }

    /// What it is to a page.
    pub(crate) fn page(&self) -> Option<PageConnection> {
        match self.application {
            Application::Page(page) => Some(page),
            _ => None,
        }
    }

    /// The window that the host at the end of this direction advertises in a handshake.
    pub(crate) fn window_bytes_at(&self, direction: Direction) -> u64 {
        match direction == self.data_direction {
            true => self.receiver.window_bytes(),
            false => SENDERS_WINDOW_BYTES,
        }
    }
}

/// The window that an end without data to receive advertises: Linux's initial window.
const SENDERS_WINDOW_BYTES: u64 = 65_536;

/// Seeds of a connection's random numbers.
#[derive(Default)]
pub(crate) struct Seeds {
    /// Of its congestion control.
    pub(crate) cc: u64,
    /// Of its receiver's processing delays.
    pub(crate) host: u64,
}

/// A flow's connection, not started yet. `is_written`: its application writes at times of its own. The error
/// says why its congestion control cannot run.
pub(crate) fn connection(
    plan: &Plan,
    flow: &Flow,
    seeds: &Seeds,
    is_written: bool,
) -> Result<Connection, BadPlan> {
    let cc = controller(flow).map_err(|error| BadPlan(format!("cc: {error}")))?;
    let sender = SenderConfig {
        seed: seeds.cc as u32,
        written_by_application: flow.app_rate_bps.is_some() || is_written,
        ..sender_config(plan, flow, &cc)
    };
    let receiver = receiver_config(plan, flow, sender.feedback);
    Ok(Connection {
        handshake: Handshake::new(sender.ecn),
        sender: Sender::new(sender, cc),
        receiver: Receiver::new(receiver),
        receiver_host: Host::new(packet_ns(plan, flow), seeds.host),
        departures: Departures::default(),
        sender_alarm: Alarm::default(),
        receiver_alarm: Alarm::default(),
        application: application(plan, flow),
        data_direction: match flow.direction {
            FlowDirection::Up => Direction::Forward,
            FlowDirection::Down => Direction::Reverse,
        },
        is_started: false,
        is_stopped: false,
        start_ns: flow.start_ns,
        completion_us: None,
        base_rtt_ns: plan.base_rtt_ns(flow),
        packets_in_flight: 0,
    })
}

fn controller(flow: &Flow) -> Result<Controller, String> {
    let name = flow.cc.algorithm.as_deref().unwrap_or(&flow.cc.name);
    let known = algorithm(name).ok_or_else(|| format!("{name} is not in the simulator"))?;
    Controller::new(known, &flow.cc.params).map_err(|error| error.to_string())
}

/// How the receiver reports marks.
fn feedback(flow: &Flow, cc: &Controller) -> EcnFeedback {
    match flow.ecn_kind {
        EcnKind::Accecn | EcnKind::L4s => EcnFeedback::Accurate,
        EcnKind::Classic if cc.wants(flags::ECHOES_CE) => EcnFeedback::EachPacket,
        EcnKind::Classic => EcnFeedback::Latched,
    }
}

fn application(plan: &Plan, flow: &Flow) -> Application {
    let packet_bits = u64::from(plan.access.mss_bytes()) * 8;
    match (flow.pattern, flow.app_rate_bps) {
        (Some(pattern), _) => Application::Pattern {
            pattern,
            writer: None,
        },
        (None, Some(rate_bps)) => Application::Paced {
            interval_ns: (packet_bits * 1_000_000_000 / rate_bps.max(1)).max(1),
        },
        (None, None) => Application::Bulk,
    }
}

/// The flow's own, or the hosts'.
fn stack(plan: &Plan, flow: &Flow) -> Stack {
    flow.stack.unwrap_or(Stack {
        tcp: plan.host.tcp,
        gso_max_segments: plan.host.gso_max_segments,
    })
}

/// What plan and flow say of a sender whose application writes all that it will at the start.
fn sender_config(plan: &Plan, flow: &Flow, cc: &Controller) -> SenderConfig {
    let (host, stack) = (&plan.host, stack(plan, flow));
    SenderConfig {
        mss_bytes: plan.access.mss_bytes(),
        pacing: host.pacing,
        pacing_shift: host.pacing_shift,
        gso_max_segments: stack.gso_max_segments,
        rules: stack.tcp.into(),
        facts: host.cc_facts,
        rate_restart: host.rate_restart,
        initial_cwnd: host.initial_cwnd_packets,
        wmem_max_bytes: host.wmem_max_bytes,
        notsent_lowat_bytes: (plan.notsent_lowat_bytes(flow))
            .or(host.sysctl.tcp_notsent_lowat)
            .map(u64::from),
        max_pacing_bytes_per_s: flow.max_pacing_rate_bps.map_or(u64::MAX, |rate| rate / 8),
        sysctl: host.sysctl,
        ecn: flow.ecn || cc.wants(flags::WANTS_ECN),
        feedback: feedback(flow, cc),
        l4s: flow.ecn_kind == EcnKind::L4s,
        seed: 0,
        amount_bytes: flow.amount_bytes,
        nodelay: flow.nodelay,
        written_by_application: false,
    }
}

fn receiver_config(plan: &Plan, flow: &Flow, feedback: EcnFeedback) -> ReceiverConfig {
    let host = &plan.host;
    let work_ns = |work: &fullpipe_plan::HostWork| work.packet_ns + work.ack_ns;
    ReceiverConfig {
        mss_bytes: plan.access.mss_bytes(),
        ack_policy: host.ack_policy,
        rules: stack(plan, flow).tcp.into(),
        window_bytes: flow.receive_window_bytes,
        rmem_max_bytes: host.rmem_max_bytes,
        rcvlowat_bytes: plan.receive_low_water_bytes(flow),
        work_ns: host.work.as_ref().map_or(0, work_ns),
        reader_stalls: reader_stalls(plan),
        aggregation_ns: host.receive_aggregation_ns,
        feedback,
    }
}

/// How long a full packet takes at the slowest rate of its route.
fn packet_ns(plan: &Plan, flow: &Flow) -> u64 {
    let links = plan.links[flow.route.range()].iter();
    let rates_bps = links.filter_map(|link| link.rates_bps()[0]);
    let packet_bits = u64::from(plan.access.mtu_bytes) * 8;
    packet_bits * 1_000_000_000 / rates_bps.min().unwrap_or(u64::MAX).max(1)
}

/// Stalls of receiving applications. All applications of a run stall at once, as one machine is busy.
fn reader_stalls(plan: &Plan) -> Option<ReaderStalls> {
    let pauses = plan.host.reader_pauses?;
    let mut rng = Rng::new(derive_seed(plan.seed, purpose::READER, 1));
    let count = match pauses.spread_ns {
        0 => 1,
        _ => DRAWN_STALLS,
    };
    let least_ns = pauses.for_ns - pauses.spread_ns;
    Some(ReaderStalls {
        every_ns: pauses.every_ns,
        phase_ns: derive_seed(plan.seed, purpose::READER, 0) % pauses.every_ns,
        durations_ns: (0..count)
            .map(|_| least_ns + rng.up_to(2 * pauses.spread_ns))
            .collect(),
    })
}
