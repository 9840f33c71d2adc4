//! The near end: asks the far end to prepare, says when to begin, measures what it sends, and puts
//! what the far end measured behind its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, ToSocketAddrs};
use std::time::Duration;

use fullpipe_plan::stream::{self, Frame};

use super::arrivals::{reach, Arrivals, Dial, Meeting};
use super::handshake::Purpose;
use super::messages::{hear, receive_frames, say, Answer, Ask};
use crate::check::check_for_peers;
use crate::clock::now_ns;
use crate::flows::socket;
use crate::request::{Peer, Request};
use crate::session;
use crate::sink::Sink;

/// Both ends begin this long after the word to go: longer than any wake-up takes.
pub(super) const LEAD_NS: u64 = 200_000_000;
/// How long the far end may take to load and prepare.
const PREPARATION: Duration = Duration::from_secs(60);
const ECHOES: usize = 5;

/// Runs the request over the network between this host and `peer`.
pub(crate) fn run(request: &Request, peer: &Peer, sink: &mut dyn Sink) -> Result<(), String> {
    check_for_peers(&request.plan)?;
    let to = resolve(peer)?;
    let place = |error: io::Error| format!("--peer {}: {error}", peer.host);
    let mut control = call(to, &peer.token).map_err(place)?;
    control.set_read_timeout(Some(PREPARATION)).map_err(place)?;
    ask(&mut control, &Ask::Prepare(Box::new(request.plan.clone()))).map_err(place)?;
    let way_ns = half_of_the_way_and_back(&mut control).map_err(place)?;
    let (arrivals, door) = Arrivals::new().map_err(place)?;
    let meeting = Meeting {
        arrivals,
        dial: Some(Dial {
            to,
            token: peer.token.clone(),
            door,
        }),
    };
    let mut session = session::Session::with_peer(request, meeting)?;
    say(&mut control, &Ask::Go).map_err(place)?;
    let done = session.run_from(now_ns() + way_ns + LEAD_NS, sink);
    let done = done.and_then(|()| session.finish(sink));
    // The far end's part is wanted whatever became of this end's.
    let theirs = say(&mut control, &Ask::End).and_then(|()| receive_frames(&mut control));
    let theirs = theirs.map_err(place)?;
    done.and_then(|()| add(&theirs, sink))
}

fn resolve(peer: &Peer) -> Result<SocketAddrV4, String> {
    let place = format!("--peer {}:{}", peer.host, peer.port);
    let found = (peer.host.as_str(), peer.port)
        .to_socket_addrs()
        .map_err(|error| format!("{place}: {error}"))?;
    found
        .filter_map(|address| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        })
        .next()
        .ok_or_else(|| format!("{place}: has no IPv4 address"))
}

fn call(to: SocketAddrV4, token: &str) -> io::Result<TcpStream> {
    let socket = socket::tcp(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
    let control = reach(socket, to, token, Purpose::Control)?;
    control.set_nodelay(true)?;
    Ok(control)
}

fn ask(control: &mut TcpStream, message: &Ask) -> io::Result<()> {
    say(control, message)?;
    match hear(control)? {
        Answer::Done => Ok(()),
        Answer::Refused(sentence) => Err(io::Error::other(format!("the far end: {sentence}"))),
    }
}

fn half_of_the_way_and_back(control: &mut TcpStream) -> io::Result<u64> {
    let mut shortest_ns = u64::MAX;
    for _ in 0..ECHOES {
        let before_ns = now_ns();
        ask(control, &Ask::Echo)?;
        shortest_ns = shortest_ns.min(now_ns() - before_ns);
    }
    Ok(shortest_ns / 2)
}

/// Puts what the far end measured; what it says of itself gets its name.
fn add(frames: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
    let mut rest = frames;
    let mut is_whole = false;
    while let Some((frame, tail)) = stream::next_frame(rest) {
        rest = tail;
        match frame {
            Frame::End => is_whole = true,
            Frame::Progress(_) => {}
            Frame::Failure(sentence) => return Err(format!("the far end: {sentence}")),
            Frame::Fact(name, value) => sink.put(&Frame::Fact(format!("far_{name}"), value)),
            Frame::Figure(name, value) => sink.put(&Frame::Figure(format!("far_{name}"), value)),
            Frame::Problem(sentence) => {
                sink.put(&Frame::Problem(format!("the far end: {sentence}")));
            }
            row => sink.put(&row),
        }
    }
    match is_whole {
        true => Ok(()),
        false => Err("the far end's recording is not whole".to_owned()),
    }
}
