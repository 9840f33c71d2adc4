//! Algorithms that are trait objects instead of C, such as classes of Python. This module must not
//! know the language behind the trait.

use crate::abi::{Ack, Conn, Ctl, Event, Info};

/// One connection's instance: the functions of cc/cc.h. The contract's defaults (cc/defaults.h)
/// surround every call. The implementation reports its own errors.
pub trait DynAlgorithm {
    /// `NAME_init`.
    fn init(&mut self, conn: &Conn, ctl: &mut Ctl);
    /// `NAME_on_ack`.
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, ctl: &mut Ctl);
    /// `NAME_on_event`.
    fn on_event(&mut self, conn: &Conn, event: &Event, ctl: &mut Ctl);
    /// `NAME_info`.
    fn info(&self, info: &mut Info);
    /// The values of the variables that it was registered with, in their order.
    fn read(&self, _values: &mut [Option<f64>]) {}
}

/// Makes the instance of one connection from its stored parameters.
pub type Maker = dyn Fn(&[u32]) -> Box<dyn DynAlgorithm> + Send + Sync;
