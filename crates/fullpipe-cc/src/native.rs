//! Instances for programs that serve connections on several threads, such as QUIC servers: C code only,
//! never traced. This module must not know what carries the packets.

use std::ops::Deref;

use crate::abi::{Ack, Conn, Ctl, Event};
use crate::controller::{BadParams, Controller};
use crate::registry::Algorithm;

/// A [`Controller`] of C code that no trace watches: it may move to another thread, and it can be copied
/// for a connection that goes on over another path.
pub struct NativeController(Controller);

// SAFETY: its parts are memory of its own and constants of native.c, whose functions touch nothing but
// their arguments. The parts of a controller that belong to one thread, traces and trait objects, are
// refused in `new`, and nothing here adds them.
unsafe impl Send for NativeController {}
// SAFETY: as for Send; what takes `&self` only reads.
unsafe impl Sync for NativeController {}

impl NativeController {
    /// A fresh instance, as [`Controller::new`]; an algorithm that is not C is refused.
    pub fn new(algorithm: &'static Algorithm, params: &[u32]) -> Result<Self, BadParams> {
        let made = Controller::new(algorithm, params)?;
        made.copy()
            .map(Self)
            .ok_or_else(|| BadParams::new(format!("{} is not C", algorithm.name)))
    }

    /// As [`Controller::without_ring`].
    pub fn without_ring(self) -> Self {
        Self(self.0.without_ring())
    }

    /// As [`Controller::init`].
    pub fn init(&mut self, conn: &Conn, ctl: &mut Ctl) {
        self.0.init(conn, ctl);
    }

    /// As [`Controller::on_ack`].
    pub fn on_ack(&mut self, conn: &Conn, ack: &mut Ack, ctl: &mut Ctl) {
        self.0.on_ack(conn, ack, ctl);
    }

    /// As [`Controller::on_event`].
    pub fn on_event(&mut self, conn: &Conn, event: Event, ctl: &mut Ctl) {
        self.0.on_event(conn, event, ctl);
    }

    /// As [`Controller::on_send`].
    pub fn on_send(&mut self, conn: &Conn, ctl: &mut Ctl) -> u32 {
        self.0.on_send(conn, ctl)
    }
}

impl Clone for NativeController {
    fn clone(&self) -> Self {
        Self(self.0.copy().expect("it is C code"))
    }
}

impl Deref for NativeController {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set;

    #[test]
    fn a_copy_begins_in_the_same_state_and_goes_its_own_way() {
        let set = set("bbr3").expect("bbr3 is built in");
        let algorithm = crate::algorithm(set.algorithm).expect("its algorithm is too");
        let conn = Conn {
            now_us: 1_000_000,
            mss_bytes: 1200,
            cwnd_clamp: u32::MAX,
            pacing_rate_cap_bytes_per_s: u64::MAX,
            seed: 7,
            ..Conn::default()
        };
        let mut ctl = Ctl {
            cwnd: 10,
            ..Ctl::default()
        };
        let mut first = NativeController::new(algorithm, &set.values).expect("built in");
        first.init(&conn, &mut ctl);
        let mut second = std::thread::spawn({
            let copy = first.clone();
            move || copy
        })
        .join()
        .expect("it only moves");
        assert_eq!(first.0.state_mut(), second.0.state_mut());
        let mut ack = Ack {
            prior_us: 1_000_000,
            delivered: 1,
            interval_us: 10_000,
            rtt_us: 10_000,
            acked_sacked: 1,
            ..Ack::default()
        };
        second.on_ack(&conn, &mut ack, &mut ctl);
        assert_ne!(first.0.state_mut(), second.0.state_mut());
    }
}
