//! What an event of epoll concerns. It must never know what is done about it.

/// A descriptor that the run's thread waits for. epoll carries it as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The poller's own: the time has come.
    Alarm,
    /// A request to end the run.
    End,
    /// Of the plan's flows.
    Flow(FlowSocket),
    /// A connection of the pool of short flows, by its index.
    Pool(usize, Role),
    /// Of a probe.
    Probe(usize, ProbeSocket),
    /// Of a page.
    Page(usize, PageSocket),
    /// The receiving socket of a stream of datagrams.
    Stream(usize),
}

/// A descriptor of the plan's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowSocket {
    /// Announces connections that other threads have opened.
    Arrivals,
    /// Of this flow's connection.
    Connection(usize, Role),
}

/// A descriptor of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Listener,
    Client,
    Server,
}

/// A socket of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeSocket {
    /// Sends requests and gets the answers.
    Prober,
    /// Gets requests and answers them.
    Answerer,
}

/// A descriptor of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageSocket {
    Listener,
    NameClient,
    NameServer,
    /// The client's end of a connection, by the connection's number.
    Client(usize),
    /// The server's end.
    Server(usize),
    /// The program that loads the page.
    Program,
}

impl Token {
    /// The number for epoll: kind, index and socket.
    pub(crate) fn to_bits(self) -> u64 {
        let (kind, index, socket) = match self {
            Self::Alarm => (0, 0, 0),
            Self::End => (1, 0, 0),
            Self::Flow(FlowSocket::Arrivals) => (2, 0, 0),
            Self::Flow(FlowSocket::Connection(index, role)) => (3, index, role.to_bits()),
            Self::Pool(index, role) => (4, index, role.to_bits()),
            Self::Probe(index, ProbeSocket::Prober) => (5, index, 0),
            Self::Probe(index, ProbeSocket::Answerer) => (5, index, 1),
            Self::Page(index, socket) => (6, index, socket.to_bits()),
            Self::Stream(index) => (7, index, 0),
        };
        kind << KIND_SHIFT | (index as u64) << INDEX_SHIFT | socket
    }

    /// The token of such a number; `None`: of no token.
    pub(crate) fn of_bits(bits: u64) -> Option<Self> {
        let index = (bits >> INDEX_SHIFT & MAX_INDEX) as usize;
        let socket = bits & MAX_SOCKET;
        Some(match bits >> KIND_SHIFT {
            0 => Self::Alarm,
            1 => Self::End,
            2 => Self::Flow(FlowSocket::Arrivals),
            3 => Self::Flow(FlowSocket::Connection(index, Role::of_bits(socket)?)),
            4 => Self::Pool(index, Role::of_bits(socket)?),
            5 if socket == 0 => Self::Probe(index, ProbeSocket::Prober),
            5 => Self::Probe(index, ProbeSocket::Answerer),
            6 => Self::Page(index, PageSocket::of_bits(socket)?),
            7 => Self::Stream(index),
            _ => return None,
        })
    }
}

const KIND_SHIFT: u32 = 56;
const INDEX_SHIFT: u32 = 32;
const MAX_INDEX: u64 = (1 << (KIND_SHIFT - INDEX_SHIFT)) - 1;
const MAX_SOCKET: u64 = (1 << INDEX_SHIFT) - 1;

impl Role {
    fn to_bits(self) -> u64 {
        match self {
            Self::Listener => 0,
            Self::Client => 1,
            Self::Server => 2,
        }
    }

    fn of_bits(bits: u64) -> Option<Self> {
        [Self::Listener, Self::Client, Self::Server]
            .get(bits as usize)
            .copied()
    }
}

impl PageSocket {
    fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Self::Listener => (0, 0),
            Self::NameClient => (1, 0),
            Self::NameServer => (2, 0),
            Self::Client(number) => (3, number),
            Self::Server(number) => (4, number),
            Self::Program => (5, 0),
        };
        (number as u64) << 3 | kind
    }

    fn of_bits(bits: u64) -> Option<Self> {
        let number = (bits >> 3) as usize;
        Some(match bits & 7 {
            0 => Self::Listener,
            1 => Self::NameClient,
            2 => Self::NameServer,
            3 => Self::Client(number),
            4 => Self::Server(number),
            5 => Self::Program,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Flows, pages and the rest are numbered within a port's 16 bits.
    fn any_token() -> impl Strategy<Value = Token> {
        let role = prop_oneof![Just(Role::Listener), Just(Role::Client), Just(Role::Server)];
        let index = 0..1usize << 16;
        let page_socket = prop_oneof![
            Just(PageSocket::Listener),
            Just(PageSocket::NameClient),
            Just(PageSocket::NameServer),
            (0..1usize << 16).prop_map(PageSocket::Client),
            (0..1usize << 16).prop_map(PageSocket::Server),
            Just(PageSocket::Program),
        ];
        let probe_socket = prop_oneof![Just(ProbeSocket::Prober), Just(ProbeSocket::Answerer)];
        let flow = |(index, role)| Token::Flow(FlowSocket::Connection(index, role));
        prop_oneof![
            Just(Token::Alarm),
            Just(Token::End),
            Just(Token::Flow(FlowSocket::Arrivals)),
            (index.clone(), role.clone()).prop_map(flow),
            (index.clone(), role).prop_map(|(index, role)| Token::Pool(index, role)),
            (index.clone(), probe_socket).prop_map(|(index, socket)| Token::Probe(index, socket)),
            (index.clone(), page_socket).prop_map(|(index, socket)| Token::Page(index, socket)),
            index.prop_map(Token::Stream),
        ]
    }

    proptest! {
        #[test]
        fn epoll_returns_the_token_that_it_was_given(token in any_token()) {
            prop_assert_eq!(Token::of_bits(token.to_bits()), Some(token));
        }

        #[test]
        fn numbers_of_no_token_are_none(kind in 8u64..256, rest in 0u64..1 << KIND_SHIFT) {
            prop_assert_eq!(Token::of_bits(kind << KIND_SHIFT | rest), None);
        }
    }
}
