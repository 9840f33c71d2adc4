//! Flows of transports other than TCP: their endpoints, their applications, and their datagrams in flight.
//! Must never know which transport it is, nor how packets get from one end to the other.

mod feed;
mod payloads;

pub(crate) use payloads::Payloads;

use fullpipe_net::{derive_seed, purpose, Direction, Ecn};
use fullpipe_plan::{CcRow, Flow, FlowDirection, FlowRow, FlowSampleRow, Plan};
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transport, NONE, PHASES};

use crate::agenda::{Alarm, NEVER_NS};
use crate::check::BadPlan;
use crate::packet::Body;
use feed::Feed;
use payloads::Known;

/// Most bytes that an endpoint hands down at once.
const BUFFER_BYTES: usize = 1 << 16;

/// A flow's two endpoints, by the direction of what they send: the client's forward.
struct Pair {
    ends: [Box<dyn Endpoint>; 2],
    alarms: [Alarm; 2],
    /// The end that sends the data.
    sender: usize,
    start_ns: u64,
    stop_ns: u64,
    ecn: bool,
    is_started: bool,
    is_established: bool,
    has_finished: bool,
    has_failed: bool,
    completion_us: Option<u64>,
    feed: Option<Feed>,
    packets_sent: u64,
    /// What the receiver has, and what of that the sender knows.
    received: Known,
    known: Known,
}

/// A datagram that is about to enter the network.
pub(crate) struct Leaving {
    pub(crate) body: Body,
    pub(crate) direction: Direction,
}

/// What has become of a flow since the last look.
pub(crate) struct News {
    pub(crate) event: &'static str,
    pub(crate) value: u64,
}

/// All flows of other transports.
pub(crate) struct Endpoints {
    /// By flow.
    pairs: Vec<Option<Box<Pair>>>,
    pub(crate) payloads: Payloads,
    /// What endpoints handed down last, and room for it.
    pub(crate) leaving: Vec<Leaving>,
    pub(crate) news: Vec<News>,
    buffer: Vec<u8>,
}

impl Endpoints {
    /// Without any flow.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            pairs: plan.flows.iter().map(|_| None).collect(),
            payloads: Payloads::default(),
            leaving: Vec::new(),
            news: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Adds a flow if a transport has its congestion control.
    pub(crate) fn add(
        &mut self,
        plan: &Plan,
        index: usize,
        transports: &[&dyn Transport],
    ) -> Result<bool, BadPlan> {
        let flow = &plan.flows[index];
        let sender = usize::from(flow.direction == FlowDirection::Down);
        let stops_early = plan.notsent_lowat_bytes(flow);
        let setup = Setup {
            seed: derive_seed(plan.seed, purpose::CC, index as u32),
            mtu_bytes: plan.access.mtu_bytes,
            server_sends: sender == 1,
            ecn: flow.ecn,
            unsent_bytes: stops_early.map_or(NONE, u64::from),
        };
        let mut found = transports
            .iter()
            .filter_map(|transport| transport.open(&flow.cc.name, &setup));
        let Some(opened) = found.next() else {
            return Ok(false);
        };
        let bad = |error| BadPlan(format!("flows.{index}.cc: {}: {error}", flow.cc.name));
        let ends = opened.map_err(bad)?;
        if plan.host.access_rate_bps > 0 {
            return Err(bad("needs host.access_rate_bps = 0".to_owned()));
        }
        self.buffer.resize(BUFFER_BYTES, 0);
        self.pairs[index] = Some(Box::new(Pair {
            ends,
            alarms: [Alarm::default(); 2],
            sender,
            start_ns: flow.start_ns,
            stop_ns: flow.stop_ns.unwrap_or(NEVER_NS),
            ecn: flow.ecn,
            is_started: false,
            is_established: false,
            has_finished: false,
            has_failed: false,
            completion_us: None,
            feed: None,
            packets_sent: 0,
            received: Known::default(),
            known: Known::default(),
        }));
        Ok(true)
    }

    /// Whether this flow is of another transport.
    pub(crate) fn has(&self, flow: usize) -> bool {
        self.pairs.get(flow).is_some_and(Option::is_some)
    }

    /// Whether it was started.
    pub(crate) fn is_started(&self, flow: usize) -> bool {
        self.pairs[flow]
            .as_ref()
            .is_some_and(|pair| pair.is_started)
    }

    /// The timer of an end.
    pub(crate) fn alarm(&mut self, flow: usize, end: usize) -> Option<&mut Alarm> {
        let pair = self.pairs[flow].as_mut()?;
        Some(&mut pair.alarms[end])
    }

    /// The client connects.
    pub(crate) fn start(&mut self, flow: usize, now_ns: u64) {
        if let Some(pair) = &mut self.pairs[flow] {
            pair.is_started = true;
            pair.ends[0].start(now_ns);
        }
    }

    /// A timer of an end may have expired.
    pub(crate) fn on_timer(&mut self, flow: usize, end: usize, now_ns: u64) {
        if let Some(pair) = &mut self.pairs[flow] {
            pair.ends[end].on_timer(now_ns);
        }
    }

    /// A datagram reaches the end of its direction.
    pub(crate) fn receive(
        &mut self,
        flow: usize,
        direction: Direction,
        number: u32,
        ecn: Ecn,
        now_ns: u64,
    ) {
        let Some(pair) = &mut self.pairs[flow] else {
            return;
        };
        let payload = self.payloads.get(number);
        let end = direction.back().index();
        if end == pair.sender {
            pair.known.bytes = pair.known.bytes.max(payload.known.bytes);
            pair.known.packets = pair.known.packets.max(payload.known.packets);
            pair.known.packets_ce = pair.known.packets_ce.max(payload.known.packets_ce);
        } else {
            pair.received.packets += 1;
            pair.received.packets_ce += u64::from(ecn == Ecn::Ce);
        }
        pair.ends[end].receive(now_ns, &payload.bytes, bits(ecn));
        self.payloads.release(number);
    }

    /// What an end sends now, which is then in [`Self::leaving`], and what has become of the flow, which is
    /// in [`Self::news`]. Returns when [`Self::on_timer`] is to be called.
    pub(crate) fn serve(&mut self, plan: &Plan, flow: usize, end: usize, now_ns: u64) -> u64 {
        let Some(pair) = &mut self.pairs[flow] else {
            return NEVER_NS;
        };
        if end == pair.sender {
            pair.feed(plan, flow, now_ns, &mut self.news);
        }
        while let Some(sent) = pair.ends[end].transmit(now_ns, &mut self.buffer) {
            let bytes = sent.bytes.min(BUFFER_BYTES);
            for datagram in self.buffer[..bytes].chunks(sent.datagram_bytes.max(1)) {
                // Larger than the MTU: the socket refuses it, as fragments are forbidden.
                if datagram.len() as u64 + 28 > u64::from(plan.access.mtu_bytes) {
                    continue;
                }
                let ecn = if pair.ecn {
                    of_bits(sent.ecn)
                } else {
                    Ecn::NotEct
                };
                let is_data = end == pair.sender;
                pair.packets_sent += u64::from(is_data);
                self.leaving.push(Leaving {
                    body: Body::Opaque {
                        payload: self.payloads.put(datagram, pair.received),
                        bytes: datagram.len() as u32,
                        ecn,
                        is_data,
                    },
                    direction: Direction::of_index(end),
                });
            }
        }
        let status = pair.ends[end].status();
        pair.settle(end, &status, now_ns, &mut self.news);
        let timer_ns = wakes_ns(status.timer_ns, plan.host.program_timer_ns);
        let feed_ns = pair.feed.as_ref().map_or(NEVER_NS, Feed::next_ns);
        match end == pair.sender {
            true => timer_ns.min(feed_ns),
            false => timer_ns,
        }
    }

    /// Why connections failed, each with its flow.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let pairs = self.pairs.iter().enumerate();
        pairs.filter_map(|(flow, pair)| {
            let mut ends = pair.as_ref()?.ends.iter();
            Some((flow, ends.find_map(|end| end.failure())?))
        })
    }

    /// A sample of a flow that was started, and one of its congestion control.
    pub(crate) fn sample_started(
        &mut self,
        flow: usize,
        now_ns: u64,
    ) -> Option<(FlowSampleRow, CcRow)> {
        let pair = self.pairs[flow].as_mut().filter(|pair| pair.is_started)?;
        let sample = pair.ends[pair.sender].sample();
        let row = pair.sample_row(flow as u64, now_ns, &sample);
        let cc = CcRow {
            t_us: now_ns / 1000,
            flow_id: flow as u64,
            phase: phase(&sample).into(),
            bw_bps: known(sample.bw_bps),
            max_bw_bps: known(sample.bw_bps),
            bw_shortterm_bps: known(sample.bw_shortterm_bps),
            min_rtt_us: known(sample.min_rtt_us),
            pacing_gain: gain(sample.pacing_gain),
            cwnd_gain: gain(sample.cwnd_gain),
            inflight_longterm_packets: bound(sample.inflight_longterm_bytes, &sample),
            inflight_shortterm_packets: bound(sample.inflight_shortterm_bytes, &sample),
            extra_acked_packets: packets(sample.extra_acked_bytes, &sample),
            round_count: known(sample.round_count).unwrap_or(0),
        };
        Some((row, cc))
    }

    /// A flow's totals.
    pub(crate) fn flow_row(&mut self, plan: &Plan, index: usize) -> Option<FlowRow> {
        let pair = self.pairs[index].as_mut()?;
        let sample = pair.ends[pair.sender].sample();
        let last = pair.sample_row(index as u64, 0, &sample);
        Some(pair.flow_row(plan, &plan.flows[index], &sample, last))
    }
}

impl Pair {
    /// The application writes what is due, as far as the transport takes it.
    fn feed(&mut self, plan: &Plan, flow: usize, now_ns: u64, news: &mut Vec<News>) {
        let end = &mut self.ends[self.sender];
        if !self.is_established {
            if !end.status().is_established {
                return;
            }
            self.is_established = true;
            let sample = end.sample();
            news.push(News {
                event: "established",
                value: packets(sample.cwnd_bytes, &sample),
            });
            self.feed = Some(Feed::new(plan, &plan.flows[flow], flow as u32, now_ns));
        }
        let Some(feed) = &mut self.feed else {
            return;
        };
        if now_ns >= self.stop_ns {
            feed.stop();
        }
        feed.advance(now_ns);
        loop {
            let ready = feed.ready_bytes();
            let taken = if ready > 0 {
                end.write(now_ns, ready)
            } else {
                0
            };
            if taken == 0 {
                break;
            }
            feed.taken(taken.min(ready));
        }
        if feed.is_done() && !self.has_finished {
            self.has_finished = true;
            end.finish(now_ns);
        }
    }

    /// Takes note of an end's status.
    fn settle(&mut self, end: usize, status: &Status, now_ns: u64, news: &mut Vec<News>) {
        if end != self.sender {
            self.received.bytes = status.received_bytes;
        } else if status.is_finished && self.completion_us.is_none() {
            self.completion_us = Some(now_ns / 1000);
            let value = self.known.bytes;
            news.push(News {
                event: "finish",
                value,
            });
        }
        if status.is_closed && self.completion_us.is_none() && !self.has_failed {
            self.has_failed = true;
            let event = match self.is_established {
                true => "closed",
                false => "connect_timeout",
            };
            news.push(News { event, value: 0 });
        }
    }

    fn sample_row(&self, flow_id: u64, now_ns: u64, sample: &Sample) -> FlowSampleRow {
        let lost = known(sample.packets_lost).unwrap_or(0);
        FlowSampleRow {
            t_us: now_ns / 1000,
            flow_id,
            bytes_delivered: self.received.bytes,
            bytes_acked: self.known.bytes,
            cwnd_packets: packets(sample.cwnd_bytes, sample),
            ssthresh_packets: bound(sample.ssthresh_bytes, sample),
            inflight_packets: packets(sample.inflight_bytes, sample),
            srtt_us: known(sample.srtt_us),
            min_rtt_us: known(sample.min_rtt_us),
            pacing_rate_bps: known(sample.pacing_rate_bps),
            delivery_rate_bps: known(sample.bw_bps).unwrap_or(0),
            packets_sent: self.packets_sent,
            packets_retransmitted: lost,
            packets_lost: lost,
            packets_delivered: self.known.packets,
            packets_delivered_ce: self.known.packets_ce,
            receive_window_bytes: known(sample.receive_window_bytes).unwrap_or(0),
            ca_state: 0,
        }
    }

    fn flow_row(&self, plan: &Plan, flow: &Flow, sample: &Sample, last: FlowSampleRow) -> FlowRow {
        let direction = match flow.direction {
            FlowDirection::Up => "up",
            FlowDirection::Down => "down",
        };
        FlowRow {
            flow_id: last.flow_id,
            flow: flow.name.clone().into(),
            cc: flow.cc.name.clone().into(),
            direction: direction.into(),
            start_us: self.start_ns / 1000,
            completion_us: self.completion_us,
            bytes_delivered: last.bytes_delivered,
            bytes_acked: last.bytes_acked,
            packets_sent: last.packets_sent,
            packets_retransmitted: last.packets_retransmitted,
            packets_lost: last.packets_lost,
            packets_delivered: last.packets_delivered,
            packets_delivered_ce: last.packets_delivered_ce,
            recoveries: known(sample.congestion_events).or(Some(0)),
            timeouts: 0,
            undos: Some(0),
            base_rtt_us: plan.base_rtt_ns(flow) / 1000,
            mss_bytes: known(sample.payload_bytes).unwrap_or(0),
        }
    }
}

/// When a program wakes for a timer.
fn wakes_ns(timer_ns: u64, step_ns: u64) -> u64 {
    match timer_ns.checked_div(step_ns) {
        Some(_) if timer_ns != NONE => timer_ns.next_multiple_of(step_ns),
        _ => timer_ns,
    }
}

fn known(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}

fn gain(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value
    }
}

fn phase(sample: &Sample) -> &'static str {
    PHASES.get(sample.phase as usize).copied().unwrap_or("")
}

/// Bytes in full datagrams, rounded; 0 if either is not known.
fn packets(bytes: u64, sample: &Sample) -> u64 {
    match (known(bytes), known(sample.datagram_bytes)) {
        (Some(bytes), Some(datagram)) if datagram > 0 => (bytes + datagram / 2) / datagram,
        _ => 0,
    }
}

/// A bound in packets, where there is one.
fn bound(bytes: u64, sample: &Sample) -> Option<u64> {
    known(bytes).map(|bytes| packets(bytes, sample))
}

/// The ECN bits of the IP header (RFC 3168 section 5).
fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

fn of_bits(bits: u8) -> Ecn {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits & 3)]
}
