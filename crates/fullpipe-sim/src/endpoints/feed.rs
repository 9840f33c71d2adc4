//! The application of a flow of another transport: how much it has to send, and when. Must never know what
//! becomes of it.

use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::{Flow, Plan};
use fullpipe_workload::{Writer, Writing};

use crate::agenda::NEVER_NS;

/// When the application writes.
enum Source {
    /// It is always ready.
    Bulk,
    /// One packet's payload in each interval.
    Paced {
        bytes: u64,
        interval_ns: u64,
    },
    Pattern(Writer),
}

/// What an application has written and its transport has not taken yet.
pub(crate) struct Feed {
    source: Source,
    backlog_bytes: u64,
    /// The application writes as much as is taken.
    is_unlimited: bool,
    /// What it will still write; `None`: it does not end.
    left_bytes: Option<u64>,
    next_ns: u64,
}

impl Feed {
    /// The application of a flow whose connection has just been established.
    pub(super) fn new(plan: &Plan, flow: &Flow, index: u32, now_ns: u64) -> Self {
        let bytes = u64::from(plan.access.mss_bytes());
        let source = match (flow.pattern, flow.app_rate_bps) {
            (Some(pattern), _) => {
                let seed = derive_seed(plan.seed, purpose::PATTERN, index);
                Source::Pattern(Writer::new(pattern, now_ns, seed))
            }
            (None, Some(rate_bps)) => Source::Paced {
                bytes,
                interval_ns: (bytes * 8_000_000_000 / rate_bps.max(1)).max(1),
            },
            (None, None) => Source::Bulk,
        };
        let is_unlimited = matches!(source, Source::Bulk);
        Self {
            next_ns: if is_unlimited { NEVER_NS } else { now_ns },
            source,
            backlog_bytes: 0,
            is_unlimited,
            left_bytes: flow.amount_bytes,
        }
    }

    /// When it writes next.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// It writes what is due.
    pub(super) fn advance(&mut self, now_ns: u64) {
        while self.next_ns <= now_ns {
            match &mut self.source {
                Source::Bulk => self.next_ns = NEVER_NS,
                Source::Paced { bytes, interval_ns } => {
                    self.backlog_bytes += *bytes;
                    self.next_ns += *interval_ns;
                }
                Source::Pattern(writer) => {
                    let (writing, next_ns) = writer.step();
                    match writing {
                        Writing::Bytes(bytes) => self.backlog_bytes += bytes,
                        Writing::Unlimited => self.is_unlimited = true,
                        Writing::Nothing => self.is_unlimited = false,
                    }
                    self.next_ns = next_ns;
                }
            }
        }
    }

    /// How much its transport may take.
    pub(super) fn ready_bytes(&self) -> u64 {
        let ready = match self.is_unlimited {
            true => u64::MAX,
            false => self.backlog_bytes,
        };
        ready.min(self.left_bytes.unwrap_or(u64::MAX))
    }

    /// Its transport has taken this much.
    pub(super) fn taken(&mut self, bytes: u64) {
        self.backlog_bytes = self.backlog_bytes.saturating_sub(bytes);
        self.left_bytes = self.left_bytes.map(|left| left - bytes);
    }

    /// It stops writing.
    pub(super) fn stop(&mut self) {
        self.left_bytes = Some(0);
        self.next_ns = NEVER_NS;
    }

    /// Whether all it will ever write was taken.
    pub(super) fn is_done(&self) -> bool {
        self.left_bytes == Some(0)
    }
}
