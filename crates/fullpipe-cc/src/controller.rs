//! One connection's congestion control: state, parameters and, where asked for, the ring.

use std::ffi::c_void;
use std::fmt;

use crate::abi::{self, Ack, Conn, Ctl, Event, EventKind, Info};
use crate::registry::Algorithm;
use crate::{flags, INFINITE};

/// One connection's instance of an algorithm.
pub struct Controller {
    algorithm: &'static Algorithm,
    params: Box<[u32]>,
    /// u64 words, so that every field of a C struct is aligned.
    state: Box<[u64]>,
    kept: abi::Kept,
    ring: Option<Box<[u64]>>,
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
            params: params.into(),
            state: zeroed(algorithm.state_bytes()),
            kept: abi::Kept::default(),
            ring: wants_ring.then(|| zeroed(ring_bytes)),
        })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Whether a flag of `enum cc_flags` is set.
    pub fn wants(&self, flag: u32) -> bool {
        self.algorithm.flags() & flag != 0
    }

    /// The host fills `tx_inflight` and `lost` of each ACK itself, and tells of each lost packet
    /// ([`EventKind::Lost`]): no ring is kept.
    pub fn without_ring(mut self) -> Self {
        self.ring = None;
        self
    }

    /// The connection was established.
    pub fn init(&mut self, conn: &Conn, ctl: &mut Ctl) {
        let (state, params) = (self.state.as_mut_ptr().cast(), self.params());
        // SAFETY: state and params have the sizes that the algorithm's table row demands.
        unsafe { (self.algorithm.raw.init)(state, params, &mut self.kept, conn, ctl) }
    }

    /// An ACK arrived. Fills the ring's part of `ack` first.
    pub fn on_ack(&mut self, conn: &Conn, ack: &mut Ack, ctl: &mut Ctl) {
        if let Some(ring) = &self.ring {
            // SAFETY: the ring has cc_ring_bytes bytes.
            unsafe { abi::cc_ring_sample_native(ring.as_ptr().cast(), conn, ack) }
        }
        let (state, params) = (self.state.as_mut_ptr().cast(), self.params());
        // SAFETY: as in init.
        unsafe { (self.algorithm.raw.on_ack)(state, params, &mut self.kept, conn, ack, ctl) }
    }

    /// Anything else happened. A send is put into the ring first.
    pub fn on_event(&mut self, conn: &Conn, event: Event, ctl: &mut Ctl) {
        if event.kind == EventKind::Send as u32 {
            if let Some(ring) = &mut self.ring {
                // SAFETY: the ring has cc_ring_bytes bytes.
                unsafe { abi::cc_ring_push_native(ring.as_mut_ptr().cast(), conn) }
            }
        }
        let (state, params) = (self.state.as_mut_ptr().cast(), self.params());
        // SAFETY: as in init.
        unsafe { (self.algorithm.raw.on_event)(state, params, &mut self.kept, conn, &event, ctl) }
    }

    /// Data is about to be sent: the least packets per burst. An algorithm that does not own its
    /// window is not asked.
    pub fn on_send(&mut self, conn: &Conn, ctl: &mut Ctl) -> u32 {
        if self.wants(flags::OWNS_CWND) {
            let event = Event {
                kind: EventKind::Send as u32,
                ..Event::default()
            };
            self.on_event(conn, event, ctl);
            return ctl.tso_segs;
        }
        // SAFETY: plain structures, of which it keeps no pointer.
        unsafe { abi::cc_least_burst(&mut self.kept, conn, ctl) }
    }

    /// What the algorithm lets others see.
    pub fn info(&self) -> Info {
        let mut info = Info {
            inflight_longterm: INFINITE,
            inflight_shortterm: INFINITE,
            ..Info::default()
        };
        let (state, params) = (self.state.as_ptr().cast(), self.params());
        // SAFETY: as in init.
        unsafe { (self.algorithm.raw.info)(state, params, &mut info) }
        info
    }

    /// The raw state, for comparison with another host's (replay, the kernel's map).
    pub fn state_mut(&mut self) -> &mut [u8] {
        let bytes = self.algorithm.state_bytes();
        // SAFETY: the words hold at least that many initialised bytes.
        unsafe { std::slice::from_raw_parts_mut(self.state.as_mut_ptr().cast(), bytes) }
    }

    fn params(&self) -> *const c_void {
        self.params.as_ptr().cast()
    }
}

fn zeroed(bytes: usize) -> Box<[u64]> {
    vec![0; bytes.div_ceil(8)].into_boxed_slice()
}
