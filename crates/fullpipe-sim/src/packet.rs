//! A packet on its way: who it belongs to and what it carries.

use fullpipe_net::{Ecn, Packet};
use fullpipe_tcp::{Ack, Data};

/// Ethernet, IPv4 and TCP headers with timestamps: 14 + 20 + 20 + 12.
pub(crate) const HEADER_BYTES: u32 = 66;
/// ICMP echo with 56 bytes of payload, as ping sends it; the UDP probe is as large.
pub(crate) const PROBE_BYTES: u32 = 98;

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Data(Data),
    Ack(Ack),
    /// A probe's request or answer, by its row in the recording.
    Probe {
        row: u32,
    },
}

/// A packet of flow `owner` (or probe `owner - flows`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Travelling {
    pub(crate) owner: u32,
    pub(crate) body: Body,
}

impl Packet for Travelling {
    fn wire_bytes(&self) -> u32 {
        match &self.body {
            Body::Data(data) => HEADER_BYTES + data.payload_bytes,
            Body::Ack(ack) => HEADER_BYTES + ack_option_bytes(ack),
            Body::Probe { .. } => PROBE_BYTES,
        }
    }

    fn flow_key(&self) -> u32 {
        self.owner
    }

    fn ecn(&self) -> Ecn {
        match &self.body {
            Body::Data(data) if data.ect && data.ce => Ecn::Ce,
            Body::Data(data) if data.ect => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    fn mark_ce(&mut self) {
        if let Body::Data(data) = &mut self.body {
            data.ce = true;
        }
    }
}

/// SACK option: two bytes of padding, two of header, eight a block (RFC 2018 section 3).
pub(crate) fn ack_option_bytes(ack: &Ack) -> u32 {
    if ack.count == 0 {
        0
    } else {
        4 + 8 * u32::from(ack.count)
    }
}
