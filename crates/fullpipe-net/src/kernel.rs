//! Linux releases, as plans name them.

use serde::{Deserialize, Serialize};

/// The Linux release that a host or a router runs. Releases are listed between which a rule changed that
/// moves packets; `Rules` of fullpipe-tcp and `queue/rules.rs` say which release has which rule.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// As released.
    #[serde(rename = "5.13")]
    Linux5_13,
    /// Stable 6.1 of November 2026, as in Debian 12.
    #[serde(rename = "6.1")]
    Linux6_1,
    /// As released.
    #[serde(rename = "6.4")]
    Linux6_4,
    /// As released.
    #[serde(rename = "6.12")]
    Linux6_12,
    /// Stable 6.12 of November 2026: the kernel that the virtual machine boots.
    #[serde(rename = "6.12.117")]
    #[default]
    Linux6_12_117,
    /// As released.
    #[serde(rename = "6.18")]
    Linux6_18,
    /// As released.
    #[serde(rename = "7.3")]
    Linux7_3,
}

impl Kernel {
    /// All releases, in ascending order.
    pub const ALL: [Self; 7] = [
        Self::Linux5_13,
        Self::Linux6_1,
        Self::Linux6_4,
        Self::Linux6_12,
        Self::Linux6_12_117,
        Self::Linux6_18,
        Self::Linux7_3,
    ];

    /// The newest release.
    pub const NEWEST: Self = Self::Linux7_3;

    /// Whether this is the default, which plans leave out.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
