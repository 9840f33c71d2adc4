//! One end of a connection over a real UDP socket: the same endpoints that the simulator drives, driven
//! by an event loop. It must never know what network is between the ends.
//!
//! ```text
//! udp server cc=quinn:cubic seed=1 address=10.128.0.2:443
//! udp client cc=quinn:cubic seed=1 address=10.128.0.2:443 seconds=20
//! ```
//!
//! The client sends for so many `seconds`, or until `bytes` are acknowledged; the server ends when nothing
//! has arrived for three seconds. Each writes its report to standard error: one line of JSON. `ecn=true`:
//! packets are ECT(0). `peer=FILE`: the client waits for the server's report in this file and writes both.
//!
//! As in the simulator each datagram is handled when it is read, 10 leave by one call of the endpoint at
//! most, and timers expire at the next full millisecond. As quinn-udp's, packets may not be fragmented, and
//! the socket's buffers have the system's sizes.

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::process::ExitCode;
use std::time::Duration;

use fullpipe_quic::Quic;
use fullpipe_quic_common::stacks::Stacks;
use fullpipe_transport::{Endpoint, Setup, Transport, NONE};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const MTU_BYTES: u32 = 1500;
/// Samples are taken at multiples of this of the system's clock, at both ends alike.
const SAMPLE_NS: u64 = 100 * MS;
/// As tokio's timers.
const TIMER_NS: u64 = MS;
const SILENCE_NS: u64 = 3 * S;
const BUFFER_BYTES: usize = 1 << 16;

/// What the command line says.
struct Arguments {
    is_client: bool,
    cc: String,
    seed: u64,
    address: String,
    seconds: u64,
    bytes: u64,
    ecn: bool,
    peer: Option<String>,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let mut words = std::env::args().skip(1);
        let is_client = match words.next().as_deref() {
            Some("client") => true,
            Some("server") => false,
            _ => return Err("the first word must be client or server".to_owned()),
        };
        let mut read = Self {
            is_client,
            cc: "quinn:cubic".to_owned(),
            seed: 1,
            address: String::new(),
            seconds: 20,
            bytes: NONE,
            ecn: false,
            peer: None,
        };
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("{word}: must be KEY=VALUE"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{word}: must be a number"))
            };
            match key {
                "cc" => read.cc = value.to_owned(),
                "seed" => read.seed = number()?,
                "address" => read.address = value.to_owned(),
                "seconds" => read.seconds = number()?,
                "bytes" => read.bytes = number()?,
                "ecn" => read.ecn = value == "true",
                "peer" => read.peer = Some(value.to_owned()),
                _ => return Err(format!("{word}: no such key")),
            }
        }
        Ok(read)
    }
}

fn main() -> ExitCode {
    match Arguments::read().and_then(|arguments| run(&arguments)) {
        Ok(report) => {
            eprintln!("{report}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("udp: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, String> {
    wait_for_random_numbers();
    let setup = Setup {
        seed: arguments.seed,
        mtu_bytes: MTU_BYTES,
        server_sends: false,
        ecn: arguments.ecn,
        unsent_bytes: NONE,
    };
    let [client, server] = Stacks::<Quic>::default()
        .open(&arguments.cc, &setup)
        .ok_or_else(|| format!("cc={}: no such stack", arguments.cc))??;
    let failed = |error: io::Error| format!("address={}: {error}", arguments.address);
    let report = match arguments.is_client {
        true => {
            let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
            socket.connect(&arguments.address).map_err(failed)?;
            Loop::new(client, socket, arguments)?.send(arguments)
        }
        false => {
            let socket = UdpSocket::bind(&arguments.address).map_err(failed)?;
            let (_, from) = socket.peek_from(&mut [0; 1]).map_err(failed)?;
            socket.connect(from).map_err(failed)?;
            Loop::new(server, socket, arguments)?.receive()
        }
    }?;
    let Some(file) = &arguments.peer else {
        return Ok(report);
    };
    loop {
        let other = fs::read_to_string(file).map_err(|error| format!("peer={file}: {error}"))?;
        if let Some(other) = other.strip_suffix('\n') {
            let other = other.lines().last().unwrap_or_default();
            return Ok(format!("{{\"client\": {report}, \"server\": {other}}}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// An endpoint, its socket and what has been counted.
struct Loop {
    end: Box<dyn Endpoint>,
    socket: UdpSocket,
    ecn: bool,
    tos: u8,
    /// What the application still writes.
    left_bytes: u64,
    has_finished: bool,
    wakes_ns: u64,
    established_ns: Option<u64>,
    sent: u64,
    refused: u64,
    received: u64,
    received_ce: u64,
    received_bytes: u64,
    is_finished: bool,
    is_closed: bool,
    buffer: Vec<u8>,
    samples: Vec<String>,
}

impl Loop {
    fn new(
        end: Box<dyn Endpoint>,
        socket: UdpSocket,
        arguments: &Arguments,
    ) -> Result<Self, String> {
        let file = socket.as_raw_fd();
        let options = [
            (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
            (libc::IP_RECVTOS, 1),
        ];
        for (option, value) in options {
            set(file, option, value).map_err(|error| format!("socket option {option}: {error}"))?;
        }
        Ok(Self {
            end,
            socket,
            ecn: arguments.ecn,
            tos: 0,
            left_bytes: if arguments.is_client {
                arguments.bytes
            } else {
                0
            },
            has_finished: !arguments.is_client,
            wakes_ns: NONE,
            established_ns: None,
            sent: 0,
            refused: 0,
            received: 0,
            received_ce: 0,
            received_bytes: 0,
            is_finished: false,
            is_closed: false,
            buffer: vec![0; BUFFER_BYTES],
            samples: Vec::new(),
        })
    }

    /// What a client does.
    fn send(mut self, arguments: &Arguments) -> Result<String, String> {
        let start_ns = (now_ns() + 1).next_multiple_of(SAMPLE_NS);
        while now_ns() < start_ns {
            std::thread::sleep(Duration::from_nanos(start_ns - now_ns()));
        }
        self.end.start(now_ns());
        self.serve()?;
        let end_ns = start_ns + arguments.seconds * S;
        let mut sample_ns = start_ns + SAMPLE_NS;
        while now_ns() < end_ns && !self.is_finished && !self.is_closed {
            self.step(sample_ns)?;
            if now_ns() >= sample_ns {
                let now = self.end.sample();
                let numbers = [
                    self.sent,
                    now.packets_lost,
                    now.congestion_events,
                    now.cwnd_bytes,
                    now.srtt_us,
                ];
                let numbers = numbers.map(|number| number.to_string()).join(", ");
                let t_ms = (sample_ns - start_ns) / MS;
                self.samples.push(format!("[{t_ms}, {numbers}]"));
                sample_ns += SAMPLE_NS;
            }
        }
        let last = self.end.sample();
        Ok(format!(
            "{{\"start_ns\": {start_ns}, \"established_us\": {}, \"lost\": {}, \
             \"congestion_events\": {}, \"datagram_bytes\": {}, {}}}",
            self.established_ns
                .map_or(-1, |at_ns| ((at_ns - start_ns) / 1000) as i64),
            last.packets_lost,
            last.congestion_events,
            last.datagram_bytes,
            self.counted()
        ))
    }

    /// What a server does.
    fn receive(mut self) -> Result<String, String> {
        let mut last = (self.received, now_ns());
        let mut sample_ns = last.1.next_multiple_of(SAMPLE_NS);
        while now_ns() < last.1 + SILENCE_NS {
            self.step(sample_ns)?;
            if self.received > last.0 {
                last = (self.received, now_ns());
            }
            if now_ns() >= sample_ns {
                let numbers = [self.received_bytes, self.received, self.sent];
                let numbers = numbers.map(|number| number.to_string()).join(", ");
                let sample = format!("[{sample_ns}, {numbers}]");
                self.samples.push(sample);
                sample_ns += SAMPLE_NS;
            }
        }
        Ok(format!("{{{}}}", self.counted()))
    }

    /// What both ends report.
    fn counted(&self) -> String {
        format!(
            "\"sent\": {}, \"refused\": {}, \"received\": {}, \"received_ce\": {}, \
             \"received_bytes\": {}, \"failure\": \"{}\", \"samples\": [{}]",
            self.sent,
            self.refused,
            self.received,
            self.received_ce,
            self.received_bytes,
            self.end.failure().unwrap_or_default().replace('"', "'"),
            self.samples.join(", ")
        )
    }

    /// Waits for a datagram, the timer or this time, and handles what there is.
    fn step(&mut self, until_ns: u64) -> Result<(), String> {
        wait(&self.socket, self.wakes_ns.min(until_ns))
            .map_err(|error| format!("ppoll: {error}"))?;
        let mut datagram = [0; 2048];
        while let Some((bytes, ecn)) = read(&self.socket, &mut datagram) {
            self.received += 1;
            self.received_ce += u64::from(ecn == 3);
            self.end.receive(now_ns(), &datagram[..bytes], ecn);
            self.serve()?;
        }
        if now_ns() >= self.wakes_ns {
            self.end.on_timer(now_ns());
            self.serve()?;
        }
        Ok(())
    }

    /// Writes, sends and sets the timer, as the simulator does after each call of the endpoint.
    fn serve(&mut self) -> Result<(), String> {
        let now_ns = now_ns();
        if self.established_ns.is_none() && self.end.status().is_established {
            self.established_ns = Some(now_ns);
        }
        if self.established_ns.is_some() {
            self.write(now_ns);
        }
        while let Some(sent) = self.end.transmit(now_ns, &mut self.buffer) {
            let tos = if self.ecn { sent.ecn & 3 } else { 0 };
            if tos != self.tos {
                self.tos = tos;
                set(self.socket.as_raw_fd(), libc::IP_TOS, tos.into())
                    .map_err(|error| format!("IP_TOS: {error}"))?;
            }
            for datagram in self.buffer[..sent.bytes].chunks(sent.datagram_bytes.max(1)) {
                // A datagram that the socket refuses is lost: it is above the MTU, or the peer has ended.
                match self.socket.send(datagram) {
                    Ok(_) => self.sent += 1,
                    Err(_) => self.refused += 1,
                }
            }
        }
        let status = self.end.status();
        self.received_bytes = status.received_bytes;
        self.is_finished = status.is_finished;
        self.is_closed = status.is_closed;
        self.wakes_ns = match status.timer_ns {
            NONE => NONE,
            timer_ns => timer_ns.next_multiple_of(TIMER_NS),
        };
        Ok(())
    }

    fn write(&mut self, now_ns: u64) {
        while self.left_bytes > 0 {
            let taken = self.end.write(now_ns, self.left_bytes);
            if taken == 0 {
                return;
            }
            if self.left_bytes != NONE {
                self.left_bytes -= taken;
            }
        }
        if !self.has_finished {
            self.has_finished = true;
            self.end.finish(now_ns);
        }
    }
}

/// A machine that has just started takes a second to gather them, which is no part of a handshake.
fn wait_for_random_numbers() {
    let mut byte = 0_u8;
    // SAFETY: writes one byte.
    unsafe { libc::getrandom((&raw mut byte).cast(), 1, 0) };
}

/// The system's clock, in ns.
fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * S + now.tv_nsec as u64
}

/// Sets an option of the socket's IP layer.
fn set(file: RawFd, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: reads the number.
    let done = unsafe {
        libc::setsockopt(
            file,
            libc::IPPROTO_IP,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until something can be read, or until this time.
fn wait(socket: &UdpSocket, until_ns: u64) -> io::Result<()> {
    let left_ns = until_ns.saturating_sub(now_ns());
    let left = libc::timespec {
        tv_sec: (left_ns / S) as _,
        tv_nsec: (left_ns % S) as _,
    };
    let mut looked = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one struct is passed; no signal mask is.
    let done = unsafe { libc::ppoll(&mut looked, 1, &left, std::ptr::null()) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Reads one datagram, if there is one: its bytes and the ECN bits of its IP header.
fn read(socket: &UdpSocket, datagram: &mut [u8]) -> Option<(usize, u8)> {
    let mut part = libc::iovec {
        iov_base: datagram.as_mut_ptr().cast(),
        iov_len: datagram.len(),
    };
    // Room for one control message, aligned as its header.
    let mut control = [0_u64; 8];
    // SAFETY: a struct of numbers and pointers that may be null.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all buffers live until it returns, with their lengths.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) };
    // An error is that nothing is there, or ICMP's that the peer has ended.
    let bytes = usize::try_from(bytes).ok()?;
    // SAFETY: the kernel has written whole messages into `control`.
    let tos = unsafe {
        let first = libc::CMSG_FIRSTHDR(&message);
        match first.as_ref() {
            Some(head) if head.cmsg_type == libc::IP_TOS => *libc::CMSG_DATA(first),
            _ => 0,
        }
    };
    Some((bytes, tos & 3))
}
