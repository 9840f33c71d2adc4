//! The row of links with its events: the agenda's timers for what [`Row`] says is due. `sim/forward.rs` moves
//! packets from link to link. Must never know what sends or receives, or what a packet carries.

use fullpipe_net::{Batch, Carried, LinkDirection, Route, Row};
use fullpipe_plan::{ConnectionOrigin, Plan};

use crate::agenda::{Agenda, Alarm, Event};
use crate::check::BadPlan;
use crate::packet::InFlight;

/// The events of one direction of a link.
#[derive(Clone, Default)]
struct Alarms {
    /// For the link's timer with this direction's name.
    timer: Alarm,
    /// For the first packet on its way to the next link.
    arrival: Alarm,
}

/// The row of links.
pub(crate) struct Network {
    pub(crate) row: Row<InFlight>,
    /// By [`LinkDirection::index`].
    alarms: Vec<Alarms>,
}

impl Network {
    /// The network of a plan, with the routes of its flow ids.
    pub(crate) fn new(plan: &Plan, routes: Vec<Route>) -> Result<Self, BadPlan> {
        let media = plan.links.iter().map(|link| &link.medium);
        let row = Row::new(media, routes, plan.seed, plan.access.mtu_bytes);
        let row = row
            .map_err(|(link, error)| BadPlan(format!("link {}: {error}", plan.links[link].name)))?;
        Ok(Self {
            row,
            alarms: vec![Alarms::default(); plan.links.len() * 2],
        })
    }

    /// Sets the route of a flow, by its id, which is the next unused one or was used before, and its ports.
    pub(crate) fn set_route(
        &mut self,
        plan: &Plan,
        flow_id: usize,
        ports: u32,
        route: Route,
        origin: ConnectionOrigin,
    ) {
        self.row.set_route(flow_id, route);
        for (link, planned) in plan.links.iter().enumerate() {
            if let Some(station) = planned.station_of(origin) {
                self.row.set_station(link, ports, station);
            }
        }
    }

    /// Whether a timer's event is the one that is meant.
    #[inline(always)] // once an event
    pub(crate) fn timer_rings(&mut self, timer: LinkDirection, now_ns: u64) -> bool {
        self.alarms[timer.index()].timer.rings(now_ns)
    }

    #[inline(always)] // once an event
    pub(crate) fn is_timer_set(&self, timer: LinkDirection) -> bool {
        self.alarms[timer.index()].timer.is_set()
    }

    #[inline(always)] // once an event
    pub(crate) fn set_timer(&mut self, agenda: &mut Agenda, timer: LinkDirection, due_ns: u64) {
        let event = Event::Link(timer);
        self.alarms[timer.index()].timer.set(agenda, due_ns, event);
    }

    /// Sets a link's timer to what the link says.
    pub(crate) fn set_due_timer(&mut self, agenda: &mut Agenda, timer: LinkDirection) {
        if let Some(due_ns) = self.row.due_ns(timer) {
            self.set_timer(agenda, timer, due_ns);
        }
    }

    /// A packet enters a link that it has to be offered to. `None`: it waits, and nothing else happens.
    pub(crate) fn offer(
        &mut self,
        agenda: &mut Agenda,
        at: LinkDirection,
        packet: &InFlight,
    ) -> Option<Batch> {
        let batch = self.row.offer(agenda.now_ns(), at, packet);
        if self.row.is_unchanged(&batch) {
            self.set_due_timer(agenda, batch.timer);
            return None;
        }
        Some(batch)
    }

    /// All packets of a batch were moved on: removes them and sets the link's timer.
    pub(crate) fn end_batch(&mut self, agenda: &mut Agenda, batch: &Batch) {
        self.row.end_batch(batch);
        self.set_due_timer(agenda, batch.timer);
    }

    /// A packet left a link for the next one, which it reaches at `at_ns`. True if that is now and no
    /// other packet is ahead of it.
    pub(crate) fn carries_now(
        &mut self,
        agenda: &mut Agenda,
        at: LinkDirection,
        at_ns: u64,
        packet: &InFlight,
    ) -> bool {
        let carried = self.row.carry(agenda.now_ns(), at, at_ns, packet);
        if let Carried::First(due_ns) = carried {
            self.set_arrival(agenda, at, due_ns);
        }
        carried == Carried::Through
    }

    /// Whether the event of an arrival at the next link is the one that is meant.
    pub(crate) fn arrival_rings(&mut self, at: LinkDirection, now_ns: u64) -> bool {
        self.alarms[at.index()].arrival.rings(now_ns)
    }

    /// Schedules the arrival of the next packet at the next link.
    pub(crate) fn await_arrival(&mut self, agenda: &mut Agenda, at: LinkDirection) {
        if let Some(due_ns) = self.row.arrival_ns(at) {
            self.set_arrival(agenda, at, due_ns);
        }
    }

    fn set_arrival(&mut self, agenda: &mut Agenda, at: LinkDirection, due_ns: u64) {
        let event = Event::NextLink(at);
        self.alarms[at.index()].arrival.set(agenda, due_ns, event);
    }
}
