//! A sender under test and its peer. Times are in ns since the connection was established.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use fullpipe_cc::{
    algorithm, flags, register, set, Ack as CcAck, Conn, Controller, Ctl, DynAlgorithm, Event,
    EventKind, Info,
};
use fullpipe_plan::{CcFacts, Kernel, Pacing, RateRestart};
use fullpipe_tcp::{
    Ack, Block, Burst, Data, EcnFeedback, Established, Rules, Sender, SenderConfig, SenderEvent,
    Totals,
};

pub(crate) use fullpipe_cc::CaState::{Cwr, Disorder, Loss, Open, Recovery};

pub(crate) const MSS: u32 = 1448;
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
/// A tick of the timer wheel at HZ=250.
pub(crate) const TICK: u64 = 4 * MS;
/// When the connection is established: at the beginning of a tick, and of a second.
const START: u64 = 1_000 * MS;

/// How a connection begins. What a test does not set is out of its way: no pacing, no bursts, a window of
/// the peer that never limits.
pub(crate) struct Setup {
    pub(crate) cwnd: u32,
    /// RTT of the handshake.
    pub(crate) rtt_ns: u64,
    /// The congestion control: a registered name, or [`WITNESS`] or [`OWNER`].
    pub(crate) cc: &'static str,
    pub(crate) kernel: Kernel,
    pub(crate) window_bytes: u64,
    /// Bytes that the application sends before it closes; `None`: without end.
    pub(crate) amount_bytes: Option<u64>,
    /// The application writes by [`Script::writes`].
    pub(crate) is_written: bool,
    pub(crate) nodelay: bool,
    pub(crate) ecn: Option<EcnFeedback>,
    pub(crate) l4s: bool,
    pub(crate) burst_packets: u32,
    pub(crate) fq: bool,
    pub(crate) pacing_shift: u8,
    pub(crate) wmem_bytes: u64,
    pub(crate) notsent_lowat_bytes: Option<u64>,
    pub(crate) facts: CcFacts,
    /// The witness's pacing rate, in bytes/s; 0: so high that it never delays.
    pub(crate) rate: u64,
    pub(crate) restarts_without_flight: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cwnd: 10,
            rtt_ns: 40 * MS,
            cc: "reno",
            kernel: Kernel::default(),
            window_bytes: 1 << 30,
            amount_bytes: None,
            is_written: false,
            nodelay: false,
            ecn: None,
            l4s: false,
            burst_packets: 1,
            fq: false,
            pacing_shift: 10,
            wmem_bytes: 1 << 30,
            notsent_lowat_bytes: None,
            facts: CcFacts::default(),
            rate: 0,
            restarts_without_flight: false,
        }
    }
}

/// An algorithm that keeps the window, halves `ssthresh` when asked, and notes what it is told.
pub(crate) const WITNESS: &str = "witness";
/// The same, but it owns the window: it sees every ACK, and the host reduces nothing.
pub(crate) const OWNER: &str = "owner";

/// What the witness was told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    Ack(Conn, CcAck),
    Event(Conn, Event),
}

type Notes = Arc<Mutex<Vec<Told>>>;

struct Witness {
    notes: Notes,
    rate: u64,
}

impl DynAlgorithm for Witness {
    fn init(&mut self, _conn: &Conn, ctl: &mut Ctl) {
        ctl.pacing_rate_bytes_per_s = self.rate;
        ctl.tso_segs = 1;
    }

    fn on_ack(&mut self, conn: &Conn, ack: &CcAck, _ctl: &mut Ctl) {
        self.notes.lock().unwrap().push(Told::Ack(*conn, *ack));
    }

    fn on_event(&mut self, conn: &Conn, event: &Event, ctl: &mut Ctl) {
        if event.kind == EventKind::Ssthresh as u32 {
            ctl.ssthresh = ctl.cwnd / 2;
        }
        self.notes.lock().unwrap().push(Told::Event(*conn, *event));
    }

    fn info(&self, _info: &mut Info) {}
}

/// The witness as an algorithm of its own for each connection, so that each has its own notes.
fn witness(owns_cwnd: bool, rate: u64, notes: &Notes) -> Controller {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("witness-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let notes = Arc::clone(notes);
    let rate = if rate == 0 { 1 << 50 } else { rate };
    let make = move |_: &[u32]| {
        let notes = Arc::clone(&notes);
        Box::new(Witness { notes, rate }) as Box<dyn DynAlgorithm>
    };
    let wishes = flags::WANTS_RTT | flags::WANTS_ACKS | flags::WANTS_DETAILS;
    let wishes = match owns_cwnd {
        true => wishes | flags::OWNS_CWND | flags::WANTS_RING,
        false => wishes,
    };
    let known = register(&name, "notes", wishes, vec![], vec![], Box::new(make));
    Controller::new(known, &[]).unwrap()
}

fn controller(setup: &Setup, notes: &Notes) -> Controller {
    match setup.cc {
        WITNESS => witness(false, setup.rate, notes),
        OWNER => witness(true, setup.rate, notes),
        name => {
            let set = set(name).expect("a registered set");
            let known = algorithm(set.algorithm).expect("its algorithm");
            Controller::new(known, &set.values).expect("values in range")
        }
    }
}

/// An ACK of the peer.
#[derive(Clone, Copy)]
pub(crate) struct Reply {
    next: u32,
    blocks: [(u32, u32); 3],
    count: usize,
    is_dsack: bool,
    echo_ns: Option<u64>,
    sent_ns: Option<u64>,
    window_bytes: Option<u64>,
    marks: u8,
    fin: bool,
}

/// A cumulative ACK: packet `next` is expected. It was sent half an RTT ago and echoes the timestamp of a
/// packet that was sent an RTT ago.
pub(crate) fn ack(next: u32) -> Reply {
    Reply {
        next,
        blocks: [(0, 0); 3],
        count: 0,
        is_dsack: false,
        echo_ns: None,
        sent_ns: None,
        window_bytes: None,
        marks: 0,
        fin: false,
    }
}

/// The same with SACK blocks `start..end`.
pub(crate) fn sack<const COUNT: usize>(next: u32, blocks: [(u32, u32); COUNT]) -> Reply {
    let mut reply = ack(next);
    reply.blocks[..COUNT].copy_from_slice(&blocks);
    reply.count = COUNT;
    reply
}

/// The same; the first block is a DSACK.
pub(crate) fn dsack<const COUNT: usize>(next: u32, blocks: [(u32, u32); COUNT]) -> Reply {
    Reply {
        is_dsack: true,
        ..sack(next, blocks)
    }
}

impl Reply {
    /// It echoes the timestamp of what was sent at this time.
    pub(crate) fn echo(self, at_ns: u64) -> Self {
        Self {
            echo_ns: Some(START + at_ns),
            ..self
        }
    }

    /// It carries no timestamp echo.
    pub(crate) fn without_echo(self) -> Self {
        Self {
            echo_ns: Some(0),
            ..self
        }
    }

    /// The peer sent it at this time.
    pub(crate) fn sent(self, at_ns: u64) -> Self {
        Self {
            sent_ns: Some(START + at_ns),
            ..self
        }
    }

    pub(crate) fn window(self, bytes: u64) -> Self {
        Self {
            window_bytes: Some(bytes),
            ..self
        }
    }

    pub(crate) fn marks(self, marks: u8) -> Self {
        Self { marks, ..self }
    }

    pub(crate) fn fin(self) -> Self {
        Self { fin: true, ..self }
    }
}

/// A connection whose sender is under test.
pub(crate) struct Script {
    sender: Sender,
    now_ns: u64,
    rtt_ns: u64,
    window_bytes: u64,
    /// What was sent since the last look, in order.
    out: Vec<Burst>,
    notes: Notes,
}

impl Script {
    pub(crate) fn new(setup: Setup) -> Self {
        let established = Established {
            rtt_ns: setup.rtt_ns,
            window_bytes: setup.window_bytes,
            ecn: setup.ecn.is_some(),
            ..Established::default()
        };
        Self::established(setup, established)
    }

    pub(crate) fn established(setup: Setup, established: Established) -> Self {
        let mut script = Self::unestablished(setup);
        script.sender.establish(START, &established);
        script
    }

    /// A connection whose handshake is not done.
    pub(crate) fn unestablished(setup: Setup) -> Self {
        let notes = Notes::default();
        let cc = controller(&setup, &notes);
        let config = SenderConfig {
            mss_bytes: MSS,
            pacing: if setup.fq {
                Pacing::Fq
            } else {
                Pacing::Internal
            },
            pacing_shift: setup.pacing_shift,
            gso_max_segments: setup.burst_packets,
            rules: Rules::from(setup.kernel),
            facts: setup.facts,
            rate_restart: match setup.restarts_without_flight {
                true => RateRestart::Inflight,
                false => RateRestart::Unacknowledged,
            },
            initial_cwnd: setup.cwnd,
            wmem_max_bytes: setup.wmem_bytes,
            notsent_lowat_bytes: setup.notsent_lowat_bytes,
            max_pacing_bytes_per_s: u64::MAX,
            sysctl: fullpipe_plan::Sysctl::default(),
            ecn: setup.ecn.is_some(),
            feedback: setup.ecn.unwrap_or_default(),
            l4s: setup.l4s,
            seed: 1,
            amount_bytes: setup.amount_bytes,
            written_by_application: setup.is_written,
            nodelay: setup.nodelay,
        };
        Self {
            sender: Sender::new(config, cc),
            now_ns: START,
            rtt_ns: setup.rtt_ns,
            window_bytes: setup.window_bytes,
            out: Vec::new(),
            notes,
        }
    }

    /// The SYN is sent again.
    pub(crate) fn syn_times_out(&mut self) {
        self.sender.syn_timed_out();
    }

    /// A connection that has sent what its first window allows.
    pub(crate) fn started(setup: Setup) -> Self {
        let mut script = Self::new(setup);
        script.sends();
        script
    }

    /// Moves the clock. A timer that is due before is a fault of the script or of the sender.
    pub(crate) fn at(&mut self, at_ns: u64) -> &mut Self {
        let now_ns = START + at_ns;
        assert!(now_ns >= self.now_ns, "the script goes back");
        if let Some(due_ns) = self.sender.timer_ns() {
            let due_us = due_ns.saturating_sub(START) / US;
            assert!(due_ns >= now_ns, "a timer is due before, at {due_us} us");
        }
        self.now_ns = now_ns;
        self
    }

    /// An ACK comes; returns what is sent then.
    pub(crate) fn gets(&mut self, reply: Reply) -> String {
        self.takes(reply);
        self.sends()
    }

    /// An ACK comes, and the host does not send before it has read the next one.
    pub(crate) fn takes(&mut self, reply: Reply) {
        let mut wire = Ack {
            next: reply.next,
            count: reply.count as u8,
            dsack: reply.is_dsack,
            marks: reply.marks,
            fin: reply.fin,
            window_bytes: reply.window_bytes.unwrap_or(self.window_bytes),
            echo_ns: reply.echo_ns.unwrap_or(self.now_ns - self.rtt_ns),
            sent_ns: reply.sent_ns.unwrap_or(self.now_ns - self.rtt_ns / 2),
            ..Ack::default()
        };
        for (slot, (start, end)) in wire.blocks.iter_mut().zip(reply.blocks) {
            *slot = Block { start, end };
        }
        self.sender.on_ack(self.now_ns, &wire);
    }

    /// Sends what may be sent now. `0 1` are new packets, `3r` is a retransmission.
    pub(crate) fn sends(&mut self) -> String {
        self.sender.transmit(self.now_ns, &mut self.out);
        self.sent()
    }

    /// The packets that may be sent now.
    pub(crate) fn packets(&mut self) -> Vec<Data> {
        self.sender.transmit(self.now_ns, &mut self.out);
        self.out.drain(..).flat_map(Burst::packets).collect()
    }

    /// Sizes of the bursts that may be sent now.
    pub(crate) fn bursts(&mut self) -> Vec<usize> {
        let mut sizes = Vec::new();
        for packet in self.packets() {
            match sizes.last_mut() {
                Some(size) if !packet.leads_burst => *size += 1,
                _ => sizes.push(1),
            }
        }
        sizes
    }

    fn sent(&mut self) -> String {
        let packets = self.out.drain(..).flat_map(Burst::packets);
        let name = |packet: Data| match packet.is_retransmission {
            true => format!("{}r", packet.number),
            false => packet.number.to_string(),
        };
        packets.map(name).collect::<Vec<_>>().join(" ")
    }

    /// When the next timer expires.
    pub(crate) fn timer(&self) -> Option<u64> {
        self.sender.timer_ns().map(|at_ns| at_ns - START)
    }

    /// When the next timer would expire if the timer wheel had no ticks.
    pub(crate) fn exact_timer(&self) -> u64 {
        self.sender.timer_lower_bound_ns() - START
    }

    /// The next timer expires: what is sent then.
    pub(crate) fn fires(&mut self) -> String {
        self.fire();
        self.sent()
    }

    /// The same, as packets.
    pub(crate) fn fires_packets(&mut self) -> Vec<Data> {
        self.fire();
        self.out.drain(..).flat_map(Burst::packets).collect()
    }

    fn fire(&mut self) {
        self.now_ns = self.sender.timer_ns().expect("a timer runs");
        self.sender.on_timer(self.now_ns, &mut self.out);
    }

    /// Lets timers expire until the first retransmission timeout; returns when that was, and what it sent.
    pub(crate) fn times_out(&mut self) -> (u64, String) {
        let before = self.sender.totals().timeouts;
        loop {
            let sent = self.fires();
            if self.sender.totals().timeouts > before {
                return (self.now(), sent);
            }
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now_ns - START
    }

    /// The application writes full packets; returns what is sent then.
    pub(crate) fn writes(&mut self, packets: u32) -> String {
        self.sender.write(packets);
        self.sends()
    }

    pub(crate) fn writes_bytes(&mut self, bytes: u64) {
        self.sender.write_bytes(bytes);
    }

    pub(crate) fn writes_last(&mut self, bytes: u64) {
        self.sender.write_last(bytes);
    }

    /// The application writes without end, or stops.
    pub(crate) fn set_unlimited(&mut self, is_unlimited: bool) {
        self.sender.set_unlimited(is_unlimited);
    }

    pub(crate) fn stop(&mut self) {
        self.sender.stop();
    }

    /// The window and its threshold are set from outside.
    pub(crate) fn sets_window(&mut self, cwnd: u32, ssthresh: u32) {
        self.sender.amend(|ctl| {
            ctl.cwnd = cwnd;
            ctl.ssthresh = ssthresh;
        });
    }

    /// A packet has left the queue below TCP.
    pub(crate) fn departs(&mut self, packet: &Data) {
        self.sender.departed(packet);
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.sender.cwnd()
    }

    pub(crate) fn ssthresh(&self) -> Option<u32> {
        self.sender.ssthresh()
    }

    pub(crate) fn state(&self) -> fullpipe_cc::CaState {
        self.sender.ca_state()
    }

    pub(crate) fn flight(&self) -> u32 {
        self.sender.inflight()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.sender.totals()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.sender.totals().packets_lost
    }

    pub(crate) fn undos(&self) -> u64 {
        self.sender.totals().undos
    }

    /// Names of the events since the last look.
    pub(crate) fn events(&mut self) -> Vec<&'static str> {
        let has_events = self.sender.has_events();
        let names: Vec<&str> = self.sender.take_events().map(SenderEvent::name).collect();
        assert_eq!(has_events, !names.is_empty());
        names
    }

    pub(crate) fn srtt_us(&self) -> u32 {
        self.sender.srtt_us()
    }

    pub(crate) fn min_rtt_us(&self) -> Option<u32> {
        self.sender.min_rtt_us()
    }

    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.sender.pacing_rate()
    }

    pub(crate) fn delivered(&self) -> (u32, u32) {
        self.sender.delivered()
    }

    /// The sender itself, for what only some tests ask.
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// What the witness was told last: the state, and the ACK.
    pub(crate) fn told(&self) -> (Conn, CcAck) {
        let notes = self.notes.lock().unwrap();
        let last = notes.iter().rev().find_map(|told| match *told {
            Told::Ack(conn, ack) => Some((conn, ack)),
            Told::Event(..) => None,
        });
        last.expect("an ACK was reported")
    }

    /// The events of this kind that the witness was told since the last look, all others included.
    pub(crate) fn told_events(&mut self, kind: EventKind) -> Vec<(Conn, Event)> {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap());
        let of_kind = |told: Told| match told {
            Told::Event(conn, event) if event.kind == kind as u32 => Some((conn, event)),
            _ => None,
        };
        notes.into_iter().filter_map(of_kind).collect()
    }

    /// Forgets what was told so far.
    pub(crate) fn forgets(&mut self) {
        self.notes.lock().unwrap().clear();
    }
}
