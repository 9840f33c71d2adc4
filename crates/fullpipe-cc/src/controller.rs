//! One connection's congestion control: its state, its parameters and, if its flags ask for one, the
//! snapshot ring.

use std::ffi::c_void;

use thiserror::Error;

use crate::abi::{self, Ack, Conn, Ctl, Event, EventKind, Info, INFINITE};
use crate::dynamic::DynAlgorithm;
use crate::flags;
use crate::registry::{info_variables, Algorithm, Code};
use crate::trace::{Call, CallLog, Introduction, Logged, CALL_ACK, CALL_EVENT, CALL_INIT};

/// Up to so many variables are read without an allocation.
const FEW_VARIABLES: usize = 48;

/// One connection's instance of an algorithm.
pub struct Controller {
    algorithm: &'static Algorithm,
    /// The algorithm's flags with these constants.
    flags: u32,
    params: Box<[u32]>,
    instance: Instance,
    kept: abi::Kept,
    ring: Option<Box<[u64]>>,
    /// Neither the algorithm, nor a ring, nor a trace needs [`EventKind::Send`].
    ignores_sending: bool,
    log: Option<Box<Logged>>,
    /// Inputs of the last [`Self::least_burst`].
    burst_inputs: BurstInputs,
}

/// The inputs that determine the least burst of an algorithm that does not own its window.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct BurstInputs {
    cwnd: u32,
    ssthresh: u32,
    tso_segs: u32,
    sndbuf_factor: u32,
}

impl BurstInputs {
    fn of(ctl: &Ctl) -> Self {
        Self {
            cwnd: ctl.cwnd,
            ssthresh: ctl.ssthresh,
            tso_segs: ctl.tso_segs,
            sndbuf_factor: ctl.sndbuf_factor,
        }
    }
}

/// The state of a connection.
enum Instance {
    C {
        raw: &'static abi::Algorithm,
        /// u64 words, so that every field of a C struct is aligned.
        state: Box<[u64]>,
    },
    Dynamic(Box<dyn DynAlgorithm>),
}

/// Parameters that do not fit the algorithm.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadParams(String);

impl BadParams {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl Controller {
    /// A fresh instance; `params` are stored values in the algorithm's order, each in its range.
    pub fn new(algorithm: &'static Algorithm, params: &[u32]) -> Result<Self, BadParams> {
        let name = algorithm.name;
        if params.len() != algorithm.params.len() {
            return Err(BadParams(format!(
                "{name}: {} parameters given, {} needed",
                params.len(),
                algorithm.params.len()
            )));
        }
        for (value, known) in params.iter().zip(&algorithm.params) {
            if !(known.min..=known.max).contains(value) {
                return Err(BadParams(format!(
                    "{name}.{}: stored value {value} is outside {}..={}",
                    known.name, known.min, known.max
                )));
            }
        }
        let wants_ring = algorithm.flags() & flags::WANTS_RING != 0;
        // SAFETY: an immutable constant of native.c.
        let ring_bytes = unsafe { abi::cc_ring_bytes } as usize;
        Ok(Self {
            algorithm,
            flags: algorithm.flags_of(params),
            params: params.into(),
            instance: match &algorithm.code {
                Code::C(raw) => Instance::C {
                    raw,
                    state: zeroed(algorithm.state_bytes()),
                },
                Code::Dynamic { make, .. } => Instance::Dynamic(make(params)),
            },
            kept: abi::Kept::default(),
            ring: wants_ring.then(|| zeroed(ring_bytes)),
            ignores_sending: algorithm.flags() & flags::SEND_IS_PURE != 0 && !wants_ring,
            log: None,
            burst_inputs: BurstInputs::default(),
        })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Whether a flag of [`flags`] is set.
    pub fn wants(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Drops the ring: the host fills `tx_inflight` and `lost` of each ACK itself and reports each
    /// lost packet ([`EventKind::Lost`]).
    pub fn without_ring(mut self) -> Self {
        self.ring = None;
        self.ignores_sending = self.wants(flags::SEND_IS_PURE) && self.log.is_none();
        self
    }

    /// Writes every later call to a trace, which names the congestion control `kernel_name` and the
    /// kernel `release`.
    pub fn trace(&mut self, log: &CallLog, kernel_name: &str, release: &str) {
        let logged = log.connection(&Introduction {
            algorithm: self.algorithm.name,
            params: &self.params,
            kernel_name,
            release,
            keeps_facts: self.wants(flags::WANTS_RING) && self.ring.is_none(),
        });
        self.log = Some(Box::new(logged));
        self.ignores_sending = false;
    }

    /// Starts the algorithm: the connection was established.
    pub fn init(&mut self, conn: &Conn, ctl: &mut Ctl) {
        let call = Call::default();
        if self.log.is_some() {
            return self.log_call(CALL_INIT, call, conn, ctl, |cc, ctl| {
                cc.call_init(conn, ctl)
            });
        }
        self.call_init(conn, ctl);
    }

    fn call_init(&mut self, conn: &Conn, ctl: &mut Ctl) {
        let params = self.params();
        match &mut self.instance {
            Instance::C { raw, state } => {
                let state = state.as_mut_ptr().cast();
                // SAFETY: state and params have the sizes that the algorithm's table row demands.
                unsafe { (raw.init)(state, params, &mut self.kept, conn, ctl) }
            }
            Instance::Dynamic(code) => {
                decide(&mut self.kept, self.flags, 0, conn, ctl, |_, ctl| {
                    code.init(conn, ctl)
                });
            }
        }
    }

    /// Handles an ACK. Fills the ring's part of `ack` first.
    #[inline]
    pub fn on_ack(&mut self, conn: &Conn, ack: &mut Ack, ctl: &mut Ctl) {
        if let Some(ring) = &self.ring {
            // SAFETY: the ring has cc_ring_bytes bytes.
            unsafe { abi::cc_ring_sample_native(ring.as_ptr().cast(), conn, ack) }
        }
        match self.log {
            None => self.call_ack(conn, ack, ctl),
            Some(_) => self.log_ack(conn, ack, ctl),
        }
    }

    #[inline(always)] // most runs have no trace
    fn call_ack(&mut self, conn: &Conn, ack: &Ack, ctl: &mut Ctl) {
        let params = self.params();
        match &mut self.instance {
            Instance::C { raw, state } => {
                let state = state.as_mut_ptr().cast();
                // SAFETY: as in init.
                unsafe { (raw.on_ack)(state, params, &mut self.kept, conn, ack, ctl) }
            }
            Instance::Dynamic(code) => {
                let cwnd = ctl.cwnd;
                decide(&mut self.kept, self.flags, 0, conn, ctl, |kept, ctl| {
                    code.on_ack(conn, ack, ctl);
                    // SAFETY: plain structures, of which it keeps no pointer.
                    unsafe { abi::cc_settle_ack_native(kept, self.flags, conn, ack, cwnd, ctl) }
                });
            }
        }
    }

    /// Handles an event. The ring takes a snapshot first if the event announces a transmission.
    #[inline]
    pub fn on_event(&mut self, conn: &Conn, event: Event, ctl: &mut Ctl) {
        if let Some(ring) = &mut self.ring {
            // SAFETY: the ring has cc_ring_bytes bytes.
            unsafe { abi::cc_ring_take_native(ring.as_mut_ptr().cast(), conn, &event) }
        }
        match self.log {
            None => self.call_event(conn, event, ctl),
            Some(_) => self.log_event(conn, event, ctl),
        }
    }

    #[inline(always)] // as `call_ack`
    fn call_event(&mut self, conn: &Conn, event: Event, ctl: &mut Ctl) {
        let params = self.params();
        match &mut self.instance {
            Instance::C { raw, state } => {
                let state = state.as_mut_ptr().cast();
                // SAFETY: as in init.
                unsafe { (raw.on_event)(state, params, &mut self.kept, conn, &event, ctl) }
            }
            Instance::Dynamic(code) => {
                decide(
                    &mut self.kept,
                    self.flags,
                    event.kind,
                    conn,
                    ctl,
                    |kept, ctl| {
                        code.on_event(conn, &event, ctl);
                        // SAFETY: plain structures, of which it keeps no pointer.
                        unsafe { abi::cc_settle_event_native(kept, self.flags, conn, &event, ctl) }
                    },
                );
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn log_ack(&mut self, conn: &Conn, ack: &Ack, ctl: &mut Ctl) {
        let call = Call {
            ack: *ack,
            ..Call::default()
        };
        let make = |cc: &mut Self, ctl: &mut Ctl| cc.call_ack(conn, ack, ctl);
        self.log_call(CALL_ACK, call, conn, ctl, make);
    }

    #[cold]
    #[inline(never)]
    fn log_event(&mut self, conn: &Conn, event: Event, ctl: &mut Ctl) {
        let call = Call {
            event,
            ..Call::default()
        };
        let make = |cc: &mut Self, ctl: &mut Ctl| cc.call_event(conn, event, ctl);
        self.log_call(CALL_EVENT, call, conn, ctl, make);
    }

    /// Makes a call, and writes it to the trace.
    fn log_call(
        &mut self,
        kind: u32,
        call: Call,
        conn: &Conn,
        ctl: &mut Ctl,
        make: impl FnOnce(&mut Self, &mut Ctl),
    ) {
        let (mut before, mut kept) = (*ctl, self.kept);
        // SAFETY: plain structures, of which it keeps no pointer.
        unsafe { abi::cc_open_ctl_native(&mut kept, self.flags, call.event.kind, &mut before) }
        make(self, ctl);
        if let Some(log) = &mut self.log {
            log.write(Call {
                kind,
                conn: *conn,
                before,
                after: *ctl,
                ..call
            });
        }
    }

    /// Applies a decision that is not the algorithm's own, between two of its calls.
    pub fn amend(&mut self, conn: &Conn, ctl: &mut Ctl, change: impl FnOnce(&mut Ctl)) {
        decide(&mut self.kept, self.flags, 0, conn, ctl, |_, ctl| {
            change(ctl)
        });
    }

    /// The least packets per burst of an algorithm that owns its window, which is about to send.
    pub fn on_send(&mut self, conn: &Conn, ctl: &mut Ctl) -> u32 {
        let event = Event {
            kind: EventKind::Send as u32,
            ..Event::default()
        };
        self.on_event(conn, event, ctl);
        ctl.tso_segs
    }

    /// Whether [`Self::on_send`] has no side effect: the host may then skip it where nothing is sent.
    #[inline]
    pub fn on_send_is_pure(&self) -> bool {
        self.ignores_sending && self.kept.sets_pacing != 0
    }

    /// The least packets per burst of an algorithm that does not own its window. The contract's
    /// defaults alone decide it, and only when its inputs have changed.
    #[inline]
    pub fn least_burst(&mut self, ctl: &mut Ctl) -> u32 {
        if BurstInputs::of(ctl) != self.burst_inputs || ctl.sndbuf_factor != self.kept.sndbuf_factor
        {
            // SAFETY: plain structures, of which it keeps no pointer.
            unsafe { abi::cc_least_burst(&mut self.kept, ctl) };
            self.burst_inputs = BurstInputs::of(ctl);
        }
        ctl.tso_segs
    }

    /// The algorithm's own variables, in the order and the units of [`Algorithm::variables`]; `None`:
    /// it has no value now.
    pub fn variables(&self) -> Vec<Option<f64>> {
        let mut values = Vec::with_capacity(self.algorithm.variables.len());
        self.read_variables(|value| values.push(value));
        values
    }

    /// The same, one after the other, without a list.
    pub fn read_variables(&self, mut see: impl FnMut(Option<f64>)) {
        let variables = &self.algorithm.variables;
        let (mut few, mut many) = ([0; FEW_VARIABLES], Vec::new());
        let raw = match few.get_mut(..variables.len()) {
            Some(raw) => raw,
            None => {
                many.resize(variables.len(), 0);
                &mut many[..]
            }
        };
        let mut own = Vec::new();
        let shown = match &self.instance {
            Instance::C { raw: code, state } => {
                // SAFETY: as in init; `raw` has variable_count places.
                unsafe { (code.read)(state.as_ptr().cast(), self.params(), raw.as_mut_ptr()) }
                variables.len()
            }
            Instance::Dynamic(code) => {
                let mut info = Info {
                    inflight_longterm: INFINITE,
                    inflight_shortterm: INFINITE,
                    ..Info::default()
                };
                code.info(&mut info);
                // SAFETY: the registry puts the variables of cc_info before a trait object's own.
                unsafe { abi::cc_info_read(&info, raw.as_mut_ptr()) }
                let shown = info_variables().len();
                own.resize(variables.len() - shown, None);
                code.read(&mut own);
                shown
            }
        };
        for (&raw, variable) in raw.iter().zip(&variables[..shown]) {
            see(variable.shown(raw));
        }
        own.into_iter().for_each(see);
    }

    /// When [`EventKind::Timer`] is due, on the clock of `now_us`; 0: the timer is off.
    pub fn timer_us(&self) -> u64 {
        self.kept.timer_us
    }

    /// The raw state, to compare with another host's (a replay, the kernel's map). Empty if the code is
    /// not C.
    pub fn state_mut(&mut self) -> &mut [u8] {
        let Instance::C { raw, state } = &mut self.instance else {
            return &mut [];
        };
        let bytes = raw.state_bytes as usize;
        // SAFETY: the words hold at least that many initialised bytes.
        unsafe { std::slice::from_raw_parts_mut(state.as_mut_ptr().cast(), bytes) }
    }

    /// A second instance in the same state, which is not traced; `None`: the code is not C.
    pub(crate) fn copy(&self) -> Option<Self> {
        let Instance::C { raw, state } = &self.instance else {
            return None;
        };
        let is_pure = self.wants(flags::SEND_IS_PURE) && self.ring.is_none();
        Some(Self {
            algorithm: self.algorithm,
            flags: self.flags,
            params: self.params.clone(),
            instance: Instance::C {
                raw,
                state: state.clone(),
            },
            kept: self.kept,
            ring: self.ring.clone(),
            ignores_sending: is_pure,
            log: None,
            burst_inputs: self.burst_inputs,
        })
    }

    fn params(&self) -> *const c_void {
        self.params.as_ptr().cast()
    }
}

/// One call of a trait object in the steps of cc/defaults.h, of which `call` makes two: call, settle.
/// `event_kind` is 0 where it is no event.
fn decide(
    kept: &mut abi::Kept,
    flags: u32,
    event_kind: u32,
    conn: &Conn,
    ctl: &mut Ctl,
    call: impl FnOnce(&mut abi::Kept, &mut Ctl),
) {
    let host_rate = ctl.pacing_rate_bytes_per_s;
    // SAFETY: plain structures, of which it keeps no pointer.
    unsafe { abi::cc_open_ctl_native(kept, flags, event_kind, ctl) }
    call(kept, ctl);
    // SAFETY: as above.
    unsafe { abi::cc_close_ctl_native(kept, flags, conn, host_rate, ctl) }
}

fn zeroed(bytes: usize) -> Box<[u64]> {
    vec![0; bytes.div_ceil(8)].into_boxed_slice()
}
