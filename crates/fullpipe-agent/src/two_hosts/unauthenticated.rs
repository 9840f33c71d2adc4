//! Connections that have not proved yet that they know the token, and their places. A new one always
//! gets a place: where an address holds too many, or all places are taken, the oldest connection of
//! the address that holds the most is closed. So connections that only wait cannot keep out a near end, whose
//! handshake takes two round trips. This module
//! must not know what a connection is for.

use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places of all addresses, beside those of [`Expected`].
const PLACES: usize = 64;
/// Places of one address.
const PLACES_OF_ADDRESS: usize = 16;

/// The near end of the run in progress, which opens a connection for each of its flows.
#[derive(Clone, Copy)]
struct Expected {
    from: IpAddr,
    flows: usize,
}

struct Peer {
    id: u64,
    from: IpAddr,
    stream: TcpStream,
}

#[derive(Default)]
struct Places {
    next: u64,
    /// The oldest first.
    taken: Vec<Peer>,
    expected: Option<Expected>,
}

/// The places of a server.
#[derive(Default)]
pub(super) struct Unauthenticated(Mutex<Places>);

/// A connection's place, which it leaves when this is dropped.
pub(super) struct Place {
    unauthenticated: Arc<Unauthenticated>,
    id: u64,
}

impl Unauthenticated {
    /// Gives a connection a place, and closes another one if there is none.
    pub(super) fn admit(self: &Arc<Self>, stream: &TcpStream) -> io::Result<Place> {
        let from = stream.peer_addr()?.ip();
        let stream = stream.try_clone()?;
        let mut places = self.places();
        let addresses: Vec<IpAddr> = places.taken.iter().map(|one| one.from).collect();
        if let Some(place) = displaced(&addresses, from, places.expected) {
            // It may have closed already.
            let _ = places.taken.remove(place).stream.shutdown(Shutdown::Both);
        }
        let id = places.next;
        places.next += 1;
        places.taken.push(Peer { id, from, stream });
        Ok(Place {
            unauthenticated: Arc::clone(self),
            id,
        })
    }

    /// A run begins, whose near end opens so many connections.
    pub(super) fn expect(&self, from: IpAddr, flows: usize) {
        self.places().expected = Some(Expected { from, flows });
    }

    /// The run has ended.
    pub(super) fn expect_nobody(&self) {
        self.places().expected = None;
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.unauthenticated
            .places()
            .taken
            .retain(|one| one.id != self.id);
    }
}

/// Which of the connections from these addresses, the oldest first, gives its place to a new one.
fn displaced(taken: &[IpAddr], from: IpAddr, expected: Option<Expected>) -> Option<usize> {
    let count = |address: IpAddr| taken.iter().filter(|one| **one == address).count();
    let oldest_of = |address: IpAddr| taken.iter().position(|one| *one == address);
    let further = expected.map_or(0, |near| near.flows);
    let is_expected = expected.is_some_and(|near| near.from == from);
    if count(from) >= PLACES_OF_ADDRESS + if is_expected { further } else { 0 } {
        return oldest_of(from);
    }
    if taken.len() < PLACES + further {
        return None;
    }
    let allowed = |address: IpAddr| match expected {
        Some(near) if near.from == address => further,
        _ => 0,
    };
    // Of addresses that hold as many the one with the oldest connection.
    let crowded = taken
        .iter()
        .rev()
        .max_by_key(|one| count(**one).saturating_sub(allowed(**one)));
    crowded.and_then(|one| oldest_of(*one))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn an_address_that_holds_too_many_places_gives_its_own_oldest() {
        let mut taken = vec![address(1)];
        taken.extend([address(2); PLACES_OF_ADDRESS]);
        assert_eq!(displaced(&taken, address(2), None), Some(1));
        assert_eq!(displaced(&taken, address(1), None), None);
        assert_eq!(displaced(&taken, address(3), None), None);
    }

    #[test]
    fn where_all_places_are_taken_the_address_with_the_most_gives_one() {
        let mut taken = vec![address(9)];
        for last in 1..=8 {
            taken.extend([address(last); 7]);
        }
        taken.extend([address(8); 7]);
        assert_eq!(taken.len(), PLACES);
        assert_eq!(displaced(&taken, address(10), None), Some(1 + 7 * 7));
        let alone: Vec<IpAddr> = (0..PLACES as u8).map(address).collect();
        assert_eq!(displaced(&alone, address(200), None), Some(0));
    }

    #[test]
    fn the_near_end_of_a_run_has_a_place_for_each_of_its_flows() {
        let expected = Some(Expected {
            from: address(1),
            flows: 300,
        });
        let taken = vec![address(1); 300];
        assert_eq!(displaced(&taken, address(1), expected), None);
        assert_eq!(displaced(&taken, address(1), None), Some(0));
    }

    #[test]
    fn a_connection_that_is_pushed_out_is_closed_and_one_that_leaves_frees_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let unauthenticated = Arc::new(Unauthenticated::default());
        let meet = || {
            let near = TcpStream::connect(to).expect("connected");
            let (far, _) = listener.accept().expect("accepted");
            (near, far)
        };
        let connections: Vec<_> = (0..=PLACES_OF_ADDRESS).map(|_| meet()).collect();
        let places: Vec<_> = connections
            .iter()
            .map(|(_, far)| unauthenticated.admit(far).expect("a place"))
            .collect();
        assert_eq!(unauthenticated.places().taken.len(), PLACES_OF_ADDRESS);
        let mut first = &connections[0].0;
        let read = io::Read::read(&mut first, &mut [0]).expect("closed");
        assert_eq!(read, 0);
        drop(places);
        assert!(unauthenticated.places().taken.is_empty());
    }
}
