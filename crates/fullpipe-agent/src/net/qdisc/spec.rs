//! A queue discipline as netlink options, with a line for people in tc's words; and the numbers in which
//! tc gives a kernel its times and rates. Knows no discipline.

use crate::net::netlink::Message;

/// The limit of a queue that nothing limits.
pub(super) const UNLIMITED_PACKETS: u32 = 1_000_000;
/// enum tc_link_layer of linux/pkt_sched.h
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TC_LINKLAYER_ATM: u8 = 2;
/// Psched ticks are 64 ns (PSCHED_SHIFT 6).
const NS_PER_TICK: u64 = 64;

/// A queue discipline, ready to be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) kind: &'static str,
    pub(super) options: Vec<u8>,
    /// The kernel insists on NLA_F_NESTED, as younger disciplines do (nla_parse_nested()).
    pub(super) is_nested: bool,
    /// As tc takes it.
    pub(crate) line: String,
    /// The disciplines in its bands (prio), and which packets go to which.
    pub(super) bands: Vec<Self>,
    pub(super) filters: Vec<Filter>,
}

/// Packets of a DSCP go to a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) dscp: u8,
    pub(super) band: u8,
}

impl Spec {
    /// A discipline whose options are a struct.
    pub(super) fn new(kind: &'static str, options: Vec<u8>, line: String) -> Self {
        Self {
            kind,
            options,
            is_nested: false,
            line,
            bands: Vec::new(),
            filters: Vec::new(),
        }
    }

    /// A discipline whose options are attributes.
    pub(super) fn of(kind: &'static str, attributes: &Message, line: String) -> Self {
        Self::new(kind, attributes.bytes().to_vec(), line)
    }
}

/// The options of a discipline, written as netlink attributes and in tc's words at once.
pub(super) struct Options {
    kind: &'static str,
    attributes: Message,
    line: String,
}

impl Options {
    pub(super) fn of(kind: &'static str) -> Self {
        let attributes = Message::attributes();
        let line = kind.to_owned();
        Self {
            kind,
            attributes,
            line,
        }
    }

    pub(super) fn word(self, attribute: u16, name: &str, value: u32) -> Self {
        self.word_in(attribute, name, value, "")
    }

    /// In microseconds.
    pub(super) fn time(self, attribute: u16, name: &str, ns: u64) -> Self {
        self.word_in(attribute, name, us(ns), "us")
    }

    /// In microseconds; `None`: the kernel's default.
    pub(super) fn time_if(self, attribute: u16, name: &str, ns: Option<u64>) -> Self {
        match ns {
            Some(ns) => self.time(attribute, name, ns),
            None => self,
        }
    }

    pub(super) fn word_in(self, attribute: u16, name: &str, value: u32, unit: &str) -> Self {
        self.choice(attribute, (value, &format!("{name} {value}{unit}")))
    }

    /// An option of any size, with all that tc calls it.
    pub(super) fn attribute(mut self, attribute: u16, value: &[u8], words: &str) -> Self {
        self.attributes.attribute(attribute, value);
        if !words.is_empty() {
            self.line += " ";
            self.line += words;
        }
        self
    }

    /// An option whose values have names.
    pub(super) fn choice(self, attribute: u16, (value, name): (u32, &str)) -> Self {
        self.attribute(attribute, &value.to_ne_bytes(), name)
    }

    /// An option that tc sets by naming it.
    pub(super) fn flag(self, attribute: u16, name: &str, is_set: bool) -> Self {
        self.choice(
            attribute,
            (u32::from(is_set), if is_set { name } else { "" }),
        )
    }

    pub(super) fn spec(self) -> Spec {
        Spec::of(self.kind, &self.attributes, self.line)
    }

    /// For disciplines that insist on NLA_F_NESTED.
    pub(super) fn nested(self) -> Spec {
        Spec {
            is_nested: true,
            ..self.spec()
        }
    }
}

/// What a packet costs beside its bytes (psched_l2t_ns()).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketCost {
    /// Added to each packet.
    pub(super) overhead_bytes: u16,
    /// The least, with that.
    pub(super) mpu_bytes: u16,
    /// In whole cells.
    pub(super) is_atm: bool,
}

/// struct tc_ratespec. If it names a link layer, the kernel needs no rate table.
pub(super) fn rate_spec(bytes_per_s: u64, cost: PacketCost) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[1] = match cost.is_atm {
        true => TC_LINKLAYER_ATM,
        false => TC_LINKLAYER_ETHERNET,
    };
    spec[2..4].copy_from_slice(&cost.overhead_bytes.to_ne_bytes());
    spec[6..8].copy_from_slice(&cost.mpu_bytes.to_ne_bytes());
    spec[8..].copy_from_slice(&u32::try_from(bytes_per_s).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// Time that `bytes` take, in ticks (iproute2 tc_core.c, tc_calc_xmittime()).
pub(super) fn ticks(bytes: u64, bytes_per_s: u64) -> u32 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    u32::try_from(ns.div_ceil(NS_PER_TICK.into())).unwrap_or(u32::MAX)
}

pub(super) fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

/// `option` if it is set, after a space.
pub(super) fn flag(is_set: bool, option: &str) -> String {
    match is_set {
        true => format!(" {option}"),
        false => String::new(),
    }
}

pub(super) fn bytes_u32(key: &str, bytes: u64) -> Result<u32, String> {
    u32::try_from(bytes)
        .map_err(|_| format!("{key}: {bytes} is above 4294967295, the kernel's most"))
}
