//! Wi-Fi: one channel of 802.11n or 802.11ac with an access point and its stations. Model, sources and limits:
//! docs/background/wifi.md.

mod ampdu;
mod channel;
mod edca;
mod errors;
mod exchange;
mod frame;
mod link;
mod minstrel;
mod params;
mod phy;
mod queues;
mod radio;
mod saturation;
mod sources;
mod state;
mod station;
#[cfg(test)]
mod tests;
mod transmission;

pub use edca::category_of_dscp;
pub use link::WifiLink;
pub use params::{
    Wifi, WifiAccess, WifiBackground, WifiBand, WifiQueues, WifiRate, WifiRules, WifiStandard,
    WifiStation,
};
pub use saturation::{saturation, Share};
pub use state::{Channel, Delivered};
pub use station::Totals;
