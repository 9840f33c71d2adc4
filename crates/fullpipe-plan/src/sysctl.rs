//! Settings of a host's TCP by the kernel's own names (Documentation/networking/ip-sysctl.rst).

use serde::{Deserialize, Serialize};

macro_rules! sysctl {
    ($($name:ident $by:ident,)*) => {
        /// `net.ipv4.NAME` of the hosts; `None`: Linux's default.
        #[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
        #[serde(default, deny_unknown_fields)]
        #[allow(missing_docs)] // the kernel describes them
        pub struct Sysctl {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<u32>,
            )*
        }

        impl Sysctl {
            /// Names and values of those that are set.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u32)> {
                let all = [$((stringify!($name), self.$name)),*];
                all.into_iter().filter_map(|(name, value)| Some((name, value?)))
            }

            /// The first that is set and only a kernel has.
            pub fn of_kernels_only(&self) -> Option<&'static str> {
                let all = [$((stringify!($name), By::$by, self.$name)),*];
                let mut all = all.into_iter();
                all.find_map(|(name, by, value)| {
                    (by == By::Kernel && value.is_some()).then_some(name)
                })
            }
        }
    };
}

/// Which engines follow a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    All,
    Kernel,
}

sysctl! {
    tcp_slow_start_after_idle All,
    tcp_notsent_lowat All,
    tcp_min_tso_segs All,
    tcp_tso_rtt_log All,
    tcp_pacing_ss_ratio All,
    tcp_pacing_ca_ratio All,
    tcp_comp_sack_nr Kernel,
    tcp_comp_sack_delay_ns Kernel,
    tcp_timestamps Kernel,
    tcp_sack Kernel,
    tcp_dsack Kernel,
    tcp_recovery Kernel,
    tcp_early_retrans Kernel,
    tcp_reordering Kernel,
    tcp_max_reordering Kernel,
    tcp_frto Kernel,
    tcp_limit_output_bytes Kernel,
    tcp_tso_win_divisor Kernel,
    tcp_autocorking Kernel,
    tcp_moderate_rcvbuf Kernel,
    tcp_window_scaling Kernel,
}

impl Sysctl {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
