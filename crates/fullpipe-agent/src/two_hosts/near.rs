//! The near end: lets the far end prepare, starts the run, measures what it sends, and appends the far
//! end's recording to its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, ToSocketAddrs};
use std::time::Duration;

use fullpipe_plan::stream::{self, Frame};

use super::messages::{receive_frames, recv, send, Command, Reply, LEAD_NS};
use crate::check::check_for_peers;
use crate::clock::now_ns;
use crate::peer::{connect_peer, Arrivals, Dial, PeerLink, Purpose};
use crate::request::{Peer, Request};
use crate::session::Session;
use crate::sink::Sink;
use crate::socket;

/// How long the far end may take to load and prepare.
const PREPARATION_TIMEOUT: Duration = Duration::from_secs(60);
const ECHOES: usize = 5;

/// Runs the request over the network between this host and `peer`.
pub(crate) fn run(request: &Request, peer: &Peer, sink: &mut dyn Sink) -> Result<(), String> {
    check_for_peers(&request.plan)?;
    let to = resolve(peer)?;
    let place = |error: io::Error| format!("--peer {}: {error}", peer.host);
    let mut control = call(to, &peer.token).map_err(place)?;
    control
        .set_read_timeout(Some(PREPARATION_TIMEOUT))
        .map_err(place)?;
    ask(
        &mut control,
        &Command::Prepare(Box::new(request.plan.clone())),
    )
    .map_err(place)?;
    let one_way_ns = half_rtt_ns(&mut control).map_err(place)?;
    let (arrivals, sender) = Arrivals::new().map_err(place)?;
    let peer_link = PeerLink {
        arrivals,
        dial: Some(Dial {
            to,
            token: peer.token.clone(),
            arrivals: sender,
        }),
    };
    let session = Session::with_peer(request, peer_link)?;
    send(&mut control, &Command::Go).map_err(place)?;
    let done = session.run_from(now_ns() + one_way_ns + LEAD_NS, sink);
    // The far end's recording is kept even if this end failed.
    let theirs = send(&mut control, &Command::End).and_then(|()| receive_frames(&mut control));
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
    let control = connect_peer(socket, to, token, Purpose::Control)?;
    control.set_nodelay(true)?;
    Ok(control)
}

fn ask(control: &mut TcpStream, message: &Command) -> io::Result<()> {
    send(control, message)?;
    match recv(control)? {
        Reply::Done => Ok(()),
        Reply::Refused(sentence) => Err(io::Error::other(format!("the far end: {sentence}"))),
    }
}

fn half_rtt_ns(control: &mut TcpStream) -> io::Result<u64> {
    let mut shortest_ns = u64::MAX;
    for _ in 0..ECHOES {
        let before_ns = now_ns();
        ask(control, &Command::Echo)?;
        shortest_ns = shortest_ns.min(now_ns() - before_ns);
    }
    Ok(shortest_ns / 2)
}

/// Appends the far end's frames. Its facts and figures get the prefix `far_`.
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
        false => Err("the far end's recording is incomplete".to_owned()),
    }
}
