//! How a program sets the simulator up.

use std::collections::BTreeSet;

use fullpipe_plan::Sysctl;

use super::connection::Offer;
use super::program::{Action, Call, Program};

/// Linux's numbers (linux/in.h, linux/tcp.h).
pub(super) const IPPROTO_TCP: i32 = 6;
pub(super) const TCP_NODELAY: i32 = 1;
pub(super) const TCP_CONGESTION: i32 = 13;
/// Settings that a connection of one script does not come to feel: of other connections, of Fast Open, of how
/// packets are cut into bursts.
const WITHOUT_EFFECT: [&str; 8] = [
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_tso_win_divisor",
    "tcp_syncookies",
    "tcp_mem",
    "tcp_no_metrics_save",
    "tcp_max_tw_buckets",
    "tcp_tw_reuse",
];
/// Default and largest receive buffer of kernels.
const RMEM_BYTES: u32 = 131_072;
const RMEM_MAX_BYTES: u32 = 6 << 20;
/// Memory of a buffer for a byte of payload, at most (TCP_OVERHEAD).
const BYTES_PER_PAYLOAD: u64 = 2;

/// What a program sets before its connection is used.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) cc: String,
    pub(super) nodelay: bool,
    pub(super) requests_ecn: bool,
    pub(super) accepts_ecn: bool,
    pub(super) offer: Offer,
    /// What is not as Linux has it by default.
    pub(super) sysctl: Sysctl,
    /// A send buffer of so much holds all that the program writes, and never makes a writer wait.
    pub(super) ample_bytes: u64,
}

impl Settings {
    /// The error names a setting that the simulator has not.
    pub(super) fn of(program: &Program) -> Result<Self, String> {
        let mut settings = Self {
            cc: "cubic".to_owned(),
            nodelay: false,
            requests_ecn: false,
            accepts_ecn: true,
            offer: Offer {
                timestamps: true,
                buffer_bytes: RMEM_BYTES,
                buffer_max_bytes: RMEM_MAX_BYTES,
            },
            sysctl: Sysctl::default(),
            ample_bytes: BYTES_PER_PAYLOAD * written_bytes(program),
        };
        for (key, value) in &program.defaults {
            settings.set(key, value);
        }
        for (key, value) in &program.sysctls {
            if !settings.set(key, value) {
                return Err(format!("sysctl {key}={value}"));
            }
        }
        for op in &program.ops {
            match &op.action {
                Action::Call {
                    call:
                        Call::Setsockopt {
                            level: IPPROTO_TCP,
                            name,
                            value,
                            ..
                        },
                    ..
                } => match *name {
                    TCP_NODELAY => settings.nodelay = value.first() == Some(&1),
                    TCP_CONGESTION => {
                        let text = String::from_utf8_lossy(value);
                        settings.cc = text.trim_end_matches('\0').to_owned();
                    }
                    _ => {}
                },
                Action::Call {
                    call: Call::Write { .. },
                    ..
                } => break,
                _ => {}
            }
        }
        Ok(settings)
    }

    /// Whether the simulator has this.
    fn set(&mut self, key: &str, value: &str) -> bool {
        match (key, value) {
            ("tcp_congestion_control", name) => self.cc = name.to_owned(),
            ("tcp_ecn", "0" | "1" | "2") => {
                self.requests_ecn = value == "1";
                self.accepts_ecn = value != "0";
            }
            ("tcp_timestamps", "0" | "1" | "2") => self.offer.timestamps = value != "0",
            ("tcp_sack" | "tcp_dsack" | "tcp_window_scaling" | "tcp_recovery", "1")
            | ("tcp_early_retrans", "3" | "4")
            | ("tcp_reordering", "3")
            | ("tcp_frto", "1" | "2") => {}
            ("tcp_wmem", sizes) => {
                return numbers(sizes)
                    .nth(1)
                    .is_some_and(|bytes| u64::from(bytes) >= self.ample_bytes);
            }
            ("tcp_rmem", sizes) => {
                let mut sizes = numbers(sizes).skip(1);
                let (Some(bytes), Some(max_bytes)) = (sizes.next(), sizes.next()) else {
                    return false;
                };
                self.offer.buffer_bytes = bytes;
                self.offer.buffer_max_bytes = max_bytes;
            }
            (key, _) if WITHOUT_EFFECT.contains(&key) => {}
            (key, value) => return self.set_sysctl(key, value),
        }
        true
    }

    /// One of those that a scenario has too (`host.sysctl`).
    fn set_sysctl(&mut self, key: &str, value: &str) -> bool {
        let sysctl = &mut self.sysctl;
        let place = match key {
            "tcp_slow_start_after_idle" => &mut sysctl.tcp_slow_start_after_idle,
            "tcp_notsent_lowat" => &mut sysctl.tcp_notsent_lowat,
            "tcp_min_tso_segs" => &mut sysctl.tcp_min_tso_segs,
            "tcp_tso_rtt_log" => &mut sysctl.tcp_tso_rtt_log,
            "tcp_pacing_ss_ratio" => &mut sysctl.tcp_pacing_ss_ratio,
            "tcp_pacing_ca_ratio" => &mut sysctl.tcp_pacing_ca_ratio,
            _ => return false,
        };
        match value.trim().parse() {
            Ok(number) => *place = Some(number),
            Err(_) => return false,
        }
        true
    }
}

fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

fn written_bytes(program: &Program) -> u64 {
    let written = program.ops.iter().map(|op| match op.action {
        Action::Call {
            call: Call::Write { bytes, .. },
            ..
        } => bytes.into(),
        _ => 0,
    });
    written.sum()
}

/// The descriptors of a program.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    pub(super) listener: Option<i32>,
    pub(super) connection: Option<i32>,
    pub(super) nonblocking: BTreeSet<i32>,
    pub(super) has_written: bool,
    pub(super) is_closed: bool,
}
