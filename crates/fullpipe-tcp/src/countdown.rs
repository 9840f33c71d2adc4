//! A timer of TCP in Linux's timer wheel.

use fullpipe_ticks::{ends_in_tick, expires_from_handler_ns, expires_ns, FINE_NS};

/// A timer. Most are set again before they expire, so the tick of expiry is computed only on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    /// When it was set; `u64::MAX`: it does not run.
    pub(crate) set_ns: u64,
    pub(crate) wait_ns: u64,
    /// It was set while another timer expired.
    pub(crate) is_from_handler: bool,
}

impl Countdown {
    /// A timer that does not run.
    pub(crate) const NEVER: Self = Self {
        set_ns: u64::MAX,
        wait_ns: 0,
        is_from_handler: false,
    };

    /// Whether it runs.
    #[inline]
    pub(crate) fn runs(self) -> bool {
        self.set_ns != u64::MAX
    }

    /// When it expires.
    #[inline]
    pub(crate) fn expires_ns(self) -> u64 {
        match self.is_from_handler {
            true => expires_from_handler_ns(self.set_ns, self.wait_ns),
            false => expires_ns(self.set_ns, self.wait_ns),
        }
    }

    /// Whether a timer that is set while this one still waits keeps this one's place in the wheel: both end in
    /// the same tick (mod_timer()). Only coarse places may differ from the one that it would get.
    #[inline]
    pub(crate) fn gives_its_place_to(self, later: Self) -> bool {
        self.wait_ns >= FINE_NS && self.runs() && self.is_where(later)
    }

    #[inline(never)] // long timeouts
    fn is_where(self, later: Self) -> bool {
        ends_in_tick(self.set_ns, self.wait_ns) == ends_in_tick(later.set_ns, later.wait_ns)
            && self.expires_ns() > later.set_ns
    }

    /// A lower bound of the expiry, cheaper than [`Self::expires_ns`].
    #[inline]
    pub(crate) fn lower_bound_ns(self) -> u64 {
        self.set_ns + self.wait_ns
    }
}
