//! One connection's congestion control: state, parameters and, where asked for, the ring.

use std::ffi::c_void;
use std::fmt;

use crate::abi::{self, Ack, Conn, Ctl, Event, EventKind, Info};
use crate::foreign::Foreign;
use crate::registry::{Algorithm, Code};
use crate::trace::{Call, CallLog, Introduction, Logged, CALL_ACK, CALL_EVENT, CALL_INIT};
use crate::{flags, INFINITE};

/// One connection's instance of an algorithm.
pub struct Controller {
    algorithm: &'static Algorithm,
    /// The algorithm's, at hand: they are asked for at every packet.
    flags: u32,
    params: Box<[u32]>,
    instance: Instance,
    kept: abi::Kept,
    ring: Option<Box<[u64]>>,
    /// Neither the algorithm nor a ring nor a trace wants to know of a sending.
    ignores_sending: bool,
    log: Option<Box<Logged>>,
    /// What [`Self::least_burst`] left.
    asked: Asked,
}

/// What the least burst of an algorithm that does not own its window depends on.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Asked {
    cwnd: u32,
    ssthresh: u32,
    tso_segs: u32,
    sndbuf_factor: u32,
}

impl Asked {
    fn of(ctl: &Ctl) -> Self {
        Self {
            cwnd: ctl.cwnd,
            ssthresh: ctl.ssthresh,
            tso_segs: ctl.tso_segs,
            sndbuf_factor: ctl.sndbuf_factor,
        }
    }
}

/// What a connection keeps between calls.
enum Instance {
    C {
        raw: &'static abi::Algorithm,
        /// u64 words, so that every field of a C struct is aligned.
        state: Box<[u64]>,
    },
    Foreign(Box<dyn Foreign>),
}

/// Parameters that do not fit the algorithm.
#[derive(Debug, PartialEq, Eq)]
pub struct BadParams(String);

impl fmt::Display for BadParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadParams {}

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
            flags: algorithm.flags(),
            params: params.into(),
            instance: match &algorithm.code {
                Code::C(raw) => Instance::C {
                    raw,
                    state: zeroed(algorithm.state_bytes()),
                },
                Code::Foreign(made) => Instance::Foreign((made.make)(params)),
            },
            kept: abi::Kept::default(),
            ring: wants_ring.then(|| zeroed(ring_bytes)),
            ignores_sending: algorithm.flags() & flags::SEND_IS_PURE != 0 && !wants_ring,
            log: None,
            asked: Asked::default(),
        })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Whether a flag of `enum cc_flags` is set.
    pub fn wants(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// The host fills `tx_inflight` and `lost` of each ACK itself, and tells of each lost packet
    /// ([`EventKind::Lost`]): no ring is kept.
    pub fn without_ring(mut self) -> Self {
        self.ring = None;
        self.ignores_sending = self.wants(flags::SEND_IS_PURE) && self.log.is_none();
        self
    }

    /// Every call is written to a trace from now on, as of `kernel_name`, carried by `release`.
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

    /// The connection was established.
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
            Instance::Foreign(code) => {
                let call = |ctl: &mut Ctl| code.init(conn, ctl);
                decide(&mut self.kept, self.flags, conn, ctl, call);
            }
        }
    }

    /// An ACK arrived. Fills the ring's part of `ack` first.
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
            Instance::Foreign(code) => {
                let call = |ctl: &mut Ctl| code.on_ack(conn, ack, ctl);
                decide(&mut self.kept, self.flags, conn, ctl, call);
            }
        }
    }

    /// Anything else happened. What announces a sending is put into the ring first.
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
            Instance::Foreign(code) => {
                let call = |ctl: &mut Ctl| code.on_event(conn, &event, ctl);
                decide(&mut self.kept, self.flags, conn, ctl, call);
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
        let mut before = *ctl;
        // SAFETY: plain structures, of which it keeps no pointer.
        unsafe { abi::cc_open_ctl_native(&self.kept, self.flags, &mut before) }
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

    /// A decision that comes from outside the algorithm, between two of its calls.
    pub fn amend(&mut self, conn: &Conn, ctl: &mut Ctl, change: impl FnOnce(&mut Ctl)) {
        decide(&mut self.kept, self.flags, conn, ctl, change);
    }

    /// Data is about to be sent by an algorithm that owns its window: the least packets per burst.
    pub fn on_send(&mut self, conn: &Conn, ctl: &mut Ctl) -> u32 {
        let event = Event {
            kind: EventKind::Send as u32,
            ..Event::default()
        };
        self.on_event(conn, event, ctl);
        ctl.tso_segs
    }

    /// Whether [`Self::on_send`] would change nothing, so that it need not be asked where nothing is sent:
    /// neither the algorithm, nor a ring, nor a rate that follows the window; and nobody notes it.
    #[inline]
    pub fn is_asked_in_vain(&self) -> bool {
        self.ignores_sending && self.kept.sets_pacing != 0
    }

    /// The same of one that does not: it is not asked, so nothing need be gathered for it; and nothing
    /// is decided anew where all is as it was left.
    #[inline]
    pub fn least_burst(&mut self, ctl: &mut Ctl) -> u32 {
        if Asked::of(ctl) != self.asked || ctl.sndbuf_factor != self.kept.sndbuf_factor {
            // SAFETY: plain structures, of which it keeps no pointer.
            unsafe { abi::cc_least_burst(&mut self.kept, ctl) };
            self.asked = Asked::of(ctl);
        }
        ctl.tso_segs
    }

    /// What the algorithm lets others see.
    pub fn info(&self) -> Info {
        let mut info = Info {
            inflight_longterm: INFINITE,
            inflight_shortterm: INFINITE,
            ..Info::default()
        };
        match &self.instance {
            Instance::C { raw, state } => {
                // SAFETY: as in init.
                unsafe { (raw.info)(state.as_ptr().cast(), self.params(), &mut info) }
            }
            Instance::Foreign(code) => code.info(&mut info),
        }
        info
    }

    /// The raw state, for comparison with another host's (replay, the kernel's map); empty where the
    /// code is not C.
    pub fn state_mut(&mut self) -> &mut [u8] {
        let Instance::C { raw, state } = &mut self.instance else {
            return &mut [];
        };
        let bytes = raw.state_bytes as usize;
        // SAFETY: the words hold at least that many initialised bytes.
        unsafe { std::slice::from_raw_parts_mut(state.as_mut_ptr().cast(), bytes) }
    }

    fn params(&self) -> *const c_void {
        self.params.as_ptr().cast()
    }
}

/// One call of what is not C, as table.h makes those of C: the contract's defaults around it.
fn decide(
    kept: &mut abi::Kept,
    flags: u32,
    conn: &Conn,
    ctl: &mut Ctl,
    call: impl FnOnce(&mut Ctl),
) {
    let host_rate = ctl.pacing_rate_bytes_per_s;
    // SAFETY: plain structures, of which it keeps no pointer.
    unsafe { abi::cc_open_ctl_native(kept, flags, ctl) }
    call(ctl);
    // SAFETY: as above.
    unsafe { abi::cc_close_ctl_native(kept, flags, conn, host_rate, ctl) }
}

fn zeroed(bytes: usize) -> Box<[u64]> {
    vec![0; bytes.div_ceil(8)].into_boxed_slice()
}
