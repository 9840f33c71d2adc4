//! `fullpipe-agent kernel watch`: samples every socket that runs one of our congestion controls, as
//! frames in a file, until standard input ends. Each sample is complete in itself, so that a reader
//! can begin anywhere. It must never know how a congestion control is loaded.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use fullpipe_plan::stream::Frame;
use fullpipe_plan::FlowRow;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use serde::Deserialize;
use serde_json::json;

use crate::kernel_cc::{users, User};
use crate::sink::{FileSink, Sink};
use crate::tcp_flow::FlowMeter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// File of the frames.
    out: String,
    interval_ms: u64,
}

/// A socket that was seen.
struct Watched {
    flow_id: u64,
    name: String,
    meter: FlowMeter,
    first_us: u64,
    /// Acknowledged before the first sample.
    acked_before: u64,
}

/// Watches from the answer `ready` until standard input ends.
pub(crate) fn run() -> Result<(), String> {
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|error| format!("standard input: {error}"))?;
    let request: Request =
        serde_json::from_slice(line.as_bytes()).map_err(|error| format!("request: {error}"))?;
    let failed = |error: io::Error| format!("{}: {error}", request.out);
    let mut sink = FileSink::create(&request.out).map_err(failed)?;
    let mut watched = HashMap::new();
    users()?; // says what is missing before it says that it is ready
    println!("{}", json!("ready"));
    let begin = Instant::now();
    let interval = Duration::from_millis(request.interval_ms.max(1));
    let mut due = begin;
    loop {
        let t_us = begin.elapsed().as_micros() as u64;
        for user in users()? {
            look(&user, t_us, &mut watched, &mut sink);
        }
        sink.put(&Frame::Progress(t_us * 1000));
        due += interval;
        if sink.is_full() || is_over(due.saturating_duration_since(Instant::now()))? {
            return sink.finish().map_err(failed);
        }
    }
}

fn look(user: &User, t_us: u64, watched: &mut HashMap<u64, Watched>, sink: &mut FileSink) {
    let next = watched.len() as u64;
    let one = watched
        .entry(user.inode)
        .or_insert_with(|| Watched::new(user, next, t_us));
    let mut events = Vec::new();
    if one
        .meter
        .look_at(&user.socket, t_us, |row| events.push(row))
        .is_err()
    {
        return; // it closed meanwhile
    }
    let acked = one.meter.sender().bytes_acked;
    if one.first_us == t_us {
        one.acked_before = acked;
        events.clear(); // they happened before anyone looked
    }
    let volume = acked.saturating_sub(one.acked_before);
    let info = *one.meter.sender();
    sink.put(&Frame::Flow(one.meter.total_of(FlowRow {
        flow_id: one.flow_id,
        flow: one.name.clone().into(),
        cc: user.kernel_name.clone().into(),
        direction: "up".into(),
        start_us: one.first_us,
        bytes_delivered: volume,
        bytes_acked: volume,
        base_rtt_us: if info.min_rtt == u32::MAX {
            0
        } else {
            u64::from(info.min_rtt)
        },
        ..FlowRow::default()
    })));
    for event in events {
        sink.put(&Frame::Event(event));
    }
    sink.put(&Frame::FlowSample(
        one.meter.sample_of(volume, volume, t_us),
    ));
    sink.put(&Frame::CcAlgorithm {
        flow_id: one.flow_id,
        algorithm: user.algorithm.clone(),
        params: user.params.clone(),
    });
    sink.put(&Frame::CcState {
        t_us,
        flow_id: one.flow_id,
        state: user.state.clone(),
    });
}

impl Watched {
    fn new(user: &User, flow_id: u64, t_us: u64) -> Self {
        let local = address(&user.socket, libc::getsockname).map_or(0, |local| local.port());
        let remote = address(&user.socket, libc::getpeername)
            .map_or_else(|| "?".to_owned(), |remote| remote.to_string());
        Self {
            flow_id,
            name: format!("{} {local}>{remote}", user.program),
            meter: FlowMeter::new(flow_id, user.owns_cwnd),
            first_us: t_us,
            acked_before: 0,
        }
    }
}

type Named = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

fn address(socket: &OwnedFd, ask: Named) -> Option<SocketAddr> {
    // SAFETY: the storage is large enough for every address and all zeroes are one; the kernel
    // writes at most `length` bytes.
    let (storage, done) = unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let done = ask(
            socket.as_raw_fd(),
            (&raw mut storage).cast(),
            &raw mut length,
        );
        (storage, done)
    };
    if done != 0 {
        return None;
    }
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address it is.
            let v4 = unsafe { *(&raw const storage).cast::<libc::sockaddr_in>() };
            let ip = std::net::Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says which address it is.
            let v6 = unsafe { *(&raw const storage).cast::<libc::sockaddr_in6>() };
            let ip = std::net::Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Some(SocketAddr::from((ip, u16::from_be(v6.sin6_port))))
        }
        _ => None,
    }
}

/// Waits; true once standard input has ended.
fn is_over(wait: Duration) -> Result<bool, String> {
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let most = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
    let ready = poll(&mut waiting, most).map_err(|error| format!("poll: {error}"))?;
    Ok(ready > 0)
}
