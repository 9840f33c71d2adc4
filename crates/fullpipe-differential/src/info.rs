//! Which fields of `struct tcp_info` are compared, and how closely.

use fullpipe_tcp::SenderInfo;

/// A field: its name, without `tcpi_`, and how far a model without costs may be from a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    tolerance: Tolerance,
}

/// How far values may be apart.
#[derive(Clone, Copy, Debug)]
enum Tolerance {
    /// Not at all.
    Exact,
    /// A kernel takes time to handle a packet, which is part of what it measures.
    Microseconds,
    /// The same, in ticks of 4 ms, and doubled by back-off.
    Ticks,
    /// A quotient of such times.
    Rate,
}

/// Time that a kernel needs between two events that are one to the model: 50 packets of 6 us.
const COST_US: u64 = 300;
/// A timeout is the RTT and four deviations.
const DEVIATIONS: u64 = 5;
const TICK_US: u64 = 4_000;
/// Part of a rate, in percent.
const RATE_PERCENT: u64 = 3;

const fn exact(name: &'static str) -> Field {
    Field {
        name,
        tolerance: Tolerance::Exact,
    }
}

const fn within(name: &'static str, tolerance: Tolerance) -> Field {
    Field { name, tolerance }
}

/// The fields, in the order of [`Info`].
pub const FIELDS: [Field; 26] = [
    exact("ca_state"),
    exact("retransmits"),
    exact("backoff"),
    exact("unacked"),
    exact("sacked"),
    exact("lost"),
    exact("retrans"),
    exact("snd_cwnd"),
    exact("snd_ssthresh"),
    exact("reordering"),
    exact("total_retrans"),
    exact("data_segs_out"),
    exact("delivered"),
    exact("delivered_ce"),
    exact("dsack_dups"),
    exact("reord_seen"),
    exact("total_rto"),
    exact("bytes_acked"),
    exact("notsent_bytes"),
    exact("snd_wnd"),
    within("rto", Tolerance::Ticks),
    within("rtt", Tolerance::Microseconds),
    within("rttvar", Tolerance::Microseconds),
    within("min_rtt", Tolerance::Microseconds),
    within("pacing_rate", Tolerance::Rate),
    within("delivery_rate", Tolerance::Rate),
];

/// Position of `backoff` in [`FIELDS`].
const BACKOFF: usize = 2;

/// Values of [`FIELDS`]; [`Info::UNKNOWN`] for a field that a kernel does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info(pub [u64; FIELDS.len()]);

impl Info {
    /// Of a field that a kernel does not report.
    pub const UNKNOWN: u64 = u64::MAX;
    /// TCP_INFINITE_SSTHRESH.
    const NO_THRESHOLD: u64 = 0x7fff_ffff;

    /// Of a sender.
    pub(crate) fn of(sender: &SenderInfo) -> Self {
        Self([
            sender.ca_state as u64,
            sender.retransmits.into(),
            sender.backoff.into(),
            sender.unacked.into(),
            sender.sacked.into(),
            sender.lost.into(),
            sender.retrans.into(),
            sender.snd_cwnd.into(),
            sender.snd_ssthresh.map_or(Self::NO_THRESHOLD, u64::from),
            sender.reordering.into(),
            sender.total_retrans,
            sender.data_segs_out,
            sender.delivered.into(),
            sender.delivered_ce.into(),
            sender.dsack_dups,
            sender.reord_seen.into(),
            sender.total_rto,
            sender.bytes_acked,
            sender.notsent_bytes,
            sender.snd_wnd,
            sender.rto_us,
            sender.rtt_us.into(),
            sender.rttvar_us.into(),
            sender.min_rtt_us.into(),
            sender.pacing_rate,
            sender.delivery_rate,
        ])
    }

    /// Positions of the fields in which the model's values are not a kernel's.
    pub(crate) fn differences(&self, model: &Self) -> Vec<usize> {
        let is_off = |&place: &usize| {
            let (kernel, model) = (self.0[place], model.0[place]);
            kernel != Self::UNKNOWN && !self.is_close(place, kernel, model)
        };
        (0..FIELDS.len()).filter(is_off).collect()
    }

    fn is_close(&self, place: usize, kernel: u64, model: u64) -> bool {
        let apart = kernel.abs_diff(model);
        match FIELDS[place].tolerance {
            Tolerance::Exact => apart == 0,
            Tolerance::Microseconds => apart <= COST_US,
            Tolerance::Ticks => {
                apart <= (TICK_US + DEVIATIONS * COST_US) << self.0[BACKOFF].min(16)
            }
            Tolerance::Rate => apart * 100 <= kernel.max(model) * RATE_PERCENT,
        }
    }
}
