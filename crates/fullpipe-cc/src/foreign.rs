//! Algorithms that are not C: another language's code behind the same contract, for hosts that are
//! ordinary programs. What defaults.h says holds for them too. Never knows the language.

use std::sync::{Mutex, PoisonError};

use crate::abi::{Ack, Conn, Ctl, Event, Info};
use crate::registry::{self, Algorithm, Code, Param};

/// One connection's instance: the functions of cc/cc.h. What goes wrong in one is its maker's to tell.
pub trait Foreign {
    /// `NAME_init`.
    fn init(&mut self, conn: &Conn, ctl: &mut Ctl);
    /// `NAME_on_ack`.
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, ctl: &mut Ctl);
    /// `NAME_on_event`.
    fn on_event(&mut self, conn: &Conn, event: &Event, ctl: &mut Ctl);
    /// `NAME_info`.
    fn info(&self, info: &mut Info);
}

/// Makes the instance of a connection, of its stored parameters.
pub type Maker = dyn Fn(&[u32]) -> Box<dyn Foreign> + Send + Sync;

/// How instances come about and are driven.
pub(crate) struct Made {
    pub(crate) flags: u32,
    pub(crate) make: Box<Maker>,
}

static REGISTERED: Mutex<Vec<&'static Algorithm>> = Mutex::new(Vec::new());

/// Makes an algorithm known by a name, which no other may have; one that is known stays as it is.
pub fn register(
    name: &str,
    title: &str,
    flags: u32,
    params: Vec<Param>,
    make: Box<Maker>,
) -> &'static Algorithm {
    if let Some(known) = registry::algorithm(name) {
        return known;
    }
    let algorithm: &'static Algorithm = Box::leak(Box::new(Algorithm {
        code: Code::Foreign(Made { flags, make }),
        name: name.to_owned().leak(),
        title: title.to_owned().leak(),
        sources: "",
        params,
    }));
    lock().push(algorithm);
    algorithm
}

/// The algorithm that was registered under this name.
pub(crate) fn find(name: &str) -> Option<&'static Algorithm> {
    lock().iter().copied().find(|item| item.name == name)
}

fn lock() -> std::sync::MutexGuard<'static, Vec<&'static Algorithm>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}
