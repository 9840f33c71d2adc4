//! A simulation in steps: flows whose congestion control is [`AGENT`] only take notes, and the caller decides
//! their windows between steps. Must never know how it decides.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use fullpipe_cc::DynAlgorithm;
use fullpipe_cc::{flags, Ack, Conn, Ctl, Event, EventKind, Info};
use fullpipe_net::{Direction, Link};
use fullpipe_plan::{FlowDirection, Plan};

use crate::check::BadPlan;
use crate::sim::{Inputs, Outcome, Simulation};

/// The algorithm of flows whose windows the caller decides.
pub const AGENT: &str = "agent";

/// What a flow saw since the last [`Stepper::look`], and its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// ACKs.
    pub acks: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Those of them that were marked CE.
    pub marked: u64,
    /// Packets marked lost.
    pub lost: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// RTT samples.
    pub rtt_samples: u64,
    /// Sum of RTT samples in us.
    pub rtt_sum_us: u64,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Packets in flight.
    pub inflight: u32,
    /// Smoothed RTT in us; 0 before the first sample.
    pub srtt_us: u32,
    /// The connection's minimum RTT in us; 0 before the first sample.
    pub min_rtt_us: u32,
    /// The handshake is done.
    pub is_established: bool,
    /// The application is done and everything was acknowledged.
    pub is_finished: bool,
}

/// Notes of a flow, shared with the stepper.
#[derive(Default)]
struct Notes {
    seen: Cell<Seen>,
    /// `delivered`, `delivered_ce` and `lost` of the connection at the last call.
    before: Cell<[u32; 3]>,
    has_ack: Cell<bool>,
}

thread_local! {
    /// Notes of agents made since the list was taken.
    static MADE: RefCell<Vec<Rc<Notes>>> = const { RefCell::new(Vec::new()) };
}

struct Agent(Rc<Notes>);

impl Agent {
    fn count(&self, conn: &Conn) -> Seen {
        let now = [conn.delivered, conn.delivered_ce, conn.lost];
        let before = self.0.before.replace(now);
        let mut seen = self.0.seen.get();
        seen.delivered += u64::from(now[0].wrapping_sub(before[0]));
        seen.marked += u64::from(now[1].wrapping_sub(before[1]));
        seen.lost += u64::from(now[2].wrapping_sub(before[2]));
        seen
    }
}

impl DynAlgorithm for Agent {
    fn init(&mut self, conn: &Conn, _ctl: &mut Ctl) {
        let now = [conn.delivered, conn.delivered_ce, conn.lost];
        self.0.before.set(now);
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, _ctl: &mut Ctl) {
        let mut seen = self.count(conn);
        seen.acks += 1;
        if ack.rtt_us > 0 {
            seen.rtt_samples += 1;
            seen.rtt_sum_us += ack.rtt_us as u64;
        }
        self.0.seen.set(seen);
        self.0.has_ack.set(true);
    }

    fn on_event(&mut self, conn: &Conn, event: &Event, _ctl: &mut Ctl) {
        if event.kind == EventKind::Rto as u32 {
            let mut seen = self.count(conn);
            seen.timeouts += 1;
            self.0.seen.set(seen);
        }
    }

    fn info(&self, _info: &mut Info) {}
}

/// A simulation in steps.
pub struct Stepper {
    /// Borrows `plan`, and is dropped before it.
    simulation: Simulation<'static>,
    /// Flow and notes of every agent, in the plan's order.
    agents: Vec<(usize, Rc<Notes>)>,
    plan: Arc<Plan>,
}

impl Stepper {
    /// The beginning of a run, in which the caller decides for flows with the algorithm [`AGENT`].
    pub fn new(plan: Plan) -> Result<Self, BadPlan> {
        let title = "decided by the caller";
        let make = |_: &[u32]| {
            let notes = Rc::new(Notes::default());
            MADE.with_borrow_mut(|made| made.push(Rc::clone(&notes)));
            Box::new(Agent(notes)) as Box<dyn DynAlgorithm>
        };
        fullpipe_cc::register(
            AGENT,
            title,
            flags::OWNS_CWND,
            Vec::new(),
            Vec::new(),
            Box::new(make),
        );
        let plan = Arc::new(plan);
        // SAFETY: the plan is on the heap and never changes, and `simulation`, its only borrower, is
        // dropped or consumed before `plan`.
        let borrowed: &'static Plan = unsafe { &*Arc::as_ptr(&plan) };
        MADE.with_borrow_mut(Vec::clear);
        let simulation = Simulation::new(borrowed, Inputs::default())?;
        let flows = plan.flows.iter().enumerate();
        let decided = flows.filter(|(_, flow)| flow.cc.algorithm.as_deref() == Some(AGENT));
        let agents: Vec<_> = decided.map(|(index, _)| index).zip(MADE.take()).collect();
        if agents.is_empty() {
            return Err(BadPlan(format!("flows: none has the algorithm {AGENT}")));
        }
        Ok(Self {
            simulation,
            agents,
            plan,
        })
    }

    /// Number of flows that the caller decides for.
    pub fn agents(&self) -> usize {
        self.agents.len()
    }

    /// Simulated time in ns.
    pub fn now_ns(&self) -> u64 {
        self.simulation.now_ns()
    }

    /// Runs until this time or, if `stops_at_acks`, until an agent's flow has processed an ACK. Returns that
    /// agent; `None` if the time or the run's end came first.
    pub fn advance(&mut self, until_ns: u64, stops_at_acks: bool) -> Option<usize> {
        let limit_ns = until_ns.min(self.plan.duration_ns);
        while let Some((_, event)) = self.simulation.agenda.next_until(limit_ns) {
            self.simulation.step(event);
            if stops_at_acks {
                let with_ack = |(_, notes): &(usize, Rc<Notes>)| notes.has_ack.replace(false);
                if let Some(agent) = self.agents.iter().position(with_ack) {
                    return Some(agent);
                }
            }
        }
        None
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.now_ns() >= self.plan.duration_ns
    }

    /// What an agent's flow saw since the last call.
    pub fn look(&self, agent: usize) -> Seen {
        let (flow, notes) = &self.agents[agent];
        let sender = &self.simulation.hosts.connections[*flow].sender;
        let seen = notes.seen.take();
        Seen {
            cwnd: sender.cwnd(),
            inflight: if sender.is_established() {
                sender.inflight()
            } else {
                0
            },
            srtt_us: sender.srtt_us(),
            min_rtt_us: sender.min_rtt_us().unwrap_or(0),
            is_established: sender.is_established(),
            is_finished: sender.is_finished(),
            ..seen
        }
    }

    /// Bytes and packets that wait at the links of an agent's route, in the direction of its data.
    pub fn queued(&self, agent: usize) -> (u64, u64) {
        let flow = &self.plan.flows[self.agents[agent].0];
        let direction = match flow.direction {
            FlowDirection::Up => Direction::Forward,
            FlowDirection::Down => Direction::Reverse,
        };
        let links = &self.simulation.network.row.links()[flow.route.range()];
        let states = links.iter().filter_map(|link| link.state(direction));
        states.fold((0, 0), |(bytes, packets), state| {
            (bytes + state.queue_bytes, packets + state.queue_packets)
        })
    }

    /// Sets an agent's window in packets and pacing rate in bytes/s (0: from the window), and sends what
    /// they allow.
    pub fn decide(&mut self, agent: usize, cwnd: u32, pacing_rate_bytes_per_s: u64) {
        let flow = self.agents[agent].0;
        let sender = &mut self.simulation.hosts.connections[flow].sender;
        if !sender.is_established() {
            return;
        }
        sender.amend(|ctl| {
            ctl.cwnd = cwnd;
            ctl.pacing_rate_bytes_per_s = pacing_rate_bytes_per_s;
        });
        self.simulation.transmit(flow);
    }

    /// The recording so far.
    pub fn finish(self) -> Outcome {
        let interrupted = !self.is_over();
        self.simulation.finish(interrupted)
    }
}
