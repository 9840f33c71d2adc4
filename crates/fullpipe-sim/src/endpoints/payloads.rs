//! What the packets of other transports carry: bytes that only their endpoints read, kept aside so that
//! packets stay small values. Must never know what they mean.

/// What the receiver of the data had when it sent a datagram. Once that has arrived, the sender knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) packets_ce: u64,
}

/// A datagram in flight.
#[derive(Default)]
pub(crate) struct Payload {
    pub(crate) bytes: Vec<u8>,
    pub(crate) known: Known,
    /// Packets that carry it.
    copies: u32,
}

/// All datagrams in flight, by number. Numbers are used again.
#[derive(Default)]
pub(crate) struct Payloads {
    payloads: Vec<Payload>,
    free: Vec<u32>,
}

impl Payloads {
    /// Keeps a datagram for one packet.
    pub(super) fn put(&mut self, bytes: &[u8], known: Known) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.payloads.push(Payload::default());
            self.payloads.len() as u32 - 1
        });
        let payload = &mut self.payloads[number as usize];
        payload.bytes.clear();
        payload.bytes.extend_from_slice(bytes);
        payload.known = known;
        payload.copies = 1;
        number
    }

    pub(super) fn get(&self, number: u32) -> &Payload {
        &self.payloads[number as usize]
    }

    /// The network has made a copy of a packet.
    pub(crate) fn copied(&mut self, number: u32) {
        self.payloads[number as usize].copies += 1;
    }

    /// A packet has left the network.
    pub(crate) fn release(&mut self, number: u32) {
        let payload = &mut self.payloads[number as usize];
        payload.copies -= 1;
        if payload.copies == 0 {
            self.free.push(number);
        }
    }
}
