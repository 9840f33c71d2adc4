//! Both ends of a connection's handshake. The near host connects, whichever direction the data have: the
//! sender of an "up" flow is the client, the sender of a "down" flow the server.
//!
//! What packets say and when they are repeated is in fullpipe-tcp. Must never know how packets get from
//! one end to the other.

use fullpipe_net::Direction;
use fullpipe_tcp::{Client, Established, HandshakePacket, Server};

/// Client and server.
pub(crate) struct Handshake {
    client: Client,
    server: Server,
    /// The first SYN while its destination is being resolved.
    unresolved: Option<HandshakePacket>,
}

/// What a packet of the handshake causes.
#[derive(Default)]
pub(crate) struct Reaction {
    /// The reply, and its direction.
    pub(crate) reply: Option<(Direction, HandshakePacket)>,
    /// The end that the packet reached is established.
    pub(crate) established: Option<Established>,
}

/// What an expired timer causes.
pub(crate) struct Retries {
    /// The client has given up.
    pub(crate) has_failed: bool,
    pub(crate) syn: Option<HandshakePacket>,
    pub(crate) syn_ack: Option<HandshakePacket>,
}

impl Handshake {
    pub(super) fn new(ecn: bool) -> Self {
        Self {
            client: Client::new(ecn),
            server: Server::default(),
            unresolved: None,
        }
    }

    /// The first SYN.
    pub(crate) fn connect(&mut self, now_ns: u64) -> HandshakePacket {
        self.client.connect(now_ns)
    }

    /// Keeps the first SYN until its destination is resolved.
    pub(crate) fn hold(&mut self, syn: HandshakePacket) {
        self.unresolved = Some(syn);
    }

    /// The SYN that was held.
    pub(crate) fn release(&mut self) -> Option<HandshakePacket> {
        self.unresolved.take()
    }

    /// Data arrived at their receiver.
    pub(crate) fn on_data(&mut self) {
        self.server.on_data();
    }

    /// When the first timer of both ends expires.
    pub(crate) fn timer_ns(&self) -> Option<u64> {
        let timers = [self.client.timer_ns(), self.server.timer_ns()];
        timers.into_iter().flatten().min()
    }

    /// A timer may have expired.
    pub(crate) fn on_timer(&mut self, now_ns: u64) -> Retries {
        let had_failed = self.client.has_failed();
        let syn = self.client.on_timer(now_ns);
        let syn_ack = self.server.on_timer(now_ns);
        Retries {
            has_failed: self.client.has_failed() && !had_failed,
            syn,
            syn_ack,
        }
    }

    /// A packet arrived at an end that advertises `window_bytes`.
    pub(crate) fn on_packet(
        &mut self,
        now_ns: u64,
        packet: &HandshakePacket,
        window_bytes: u64,
    ) -> Reaction {
        match packet {
            HandshakePacket::Syn { .. } => {
                let syn_ack = self.server.on_syn(now_ns, packet, window_bytes);
                Reaction {
                    reply: syn_ack.map(|syn_ack| (Direction::Reverse, syn_ack)),
                    established: None,
                }
            }
            HandshakePacket::SynAck { .. } => {
                let established = self.client.on_syn_ack(now_ns, packet);
                let ack = Client::answer(now_ns, packet, window_bytes);
                Reaction {
                    reply: Some((Direction::Forward, ack)),
                    established,
                }
            }
            HandshakePacket::Ack { .. } => Reaction {
                reply: None,
                established: self.server.on_ack(now_ns, packet),
            },
        }
    }
}
