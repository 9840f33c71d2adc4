//! quiche.
//!
//! It has no ECN. What it makes has a time at which it is to leave (`SendInfo::at`): that of the call for CUBIC
//! and Reno, which it does not pace (recovery/congestion/recovery.rs, `get_packet_send_time`), and a later one
//! for BBRv2. Such packets wait here; at most `max_release_into_future` is made ahead, as tokio-quiche does
//! (src/quic/io/worker.rs) and BBRv2 expects (`time_sent_set_to_now`). Of BBRv2 it tells the window and the
//! bandwidth, of the others the window.

use std::collections::VecDeque;
use std::time::Instant;

use fullpipe_quic_common::stacks::{Ends, Stack};
use fullpipe_quic_common::{
    addresses, micros, pem, phase, seeded, text, virtual_time, OVERHEAD_BYTES, SERVER_NAME,
    WINDOW_BYTES, ZEROS,
};
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transmit, NONE};
use quiche::{Config, Connection, ConnectionId, RecvInfo};

pub(crate) const STACK: Stack = Stack {
    name: "quiche",
    version: "quiche 0.30.0",
    controls: &["cubic", "reno", "bbr2"],
    open,
};

/// What quiche's own clients and servers and tokio-quiche set. Discovery of the MTU is off as released, and
/// without a setting datagrams have 1,200 bytes, the fewest that QUIC allows.
const PAYLOAD_BYTES: usize = 1350;
/// Length of a STREAM frame, which quiche always writes (frame.rs, `encode_stream_header`).
const LENGTH_BYTES: u64 = 2;

fn open(control: &str, setup: &Setup) -> Result<Ends, String> {
    if setup.ecn {
        return Err("quiche has no ECN; the flow needs ecn = false".to_owned());
    }
    virtual_time::set(0);
    seeded::mix(setup.seed);
    let near = End::new(control, setup, 0).map_err(text)?;
    let far = End::new(control, setup, 1).map_err(text)?;
    Ok([Box::new(near), Box::new(far)])
}

/// All else is as released: HyStart++, pacing, an initial window of 10 packets.
fn config(control: &str, is_server: bool) -> Result<Config, Box<dyn std::error::Error>> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    if is_server {
        let (certificate, key) = (pem::certificate()?, pem::key()?);
        config.load_cert_chain_from_pem_file(&certificate.path)?;
        config.load_priv_key_from_pem_file(&key.path)?;
    }
    config.set_application_protos(&[b"fullpipe"])?;
    config.set_max_idle_timeout(0);
    config.set_max_recv_udp_payload_size(PAYLOAD_BYTES);
    config.set_max_send_udp_payload_size(PAYLOAD_BYTES);
    config.set_initial_max_streams_uni(1);
    config.set_initial_max_data(2 * u64::from(WINDOW_BYTES));
    config.set_initial_max_stream_data_uni(WINDOW_BYTES.into());
    config.set_max_connection_window(2 * u64::from(WINDOW_BYTES));
    config.set_max_stream_window(WINDOW_BYTES.into());
    config.set_cc_algorithm_name(control)?;
    Ok(config)
}

/// A datagram that waits for its time.
struct Held {
    at_ns: u64,
    datagram: Vec<u8>,
}

struct End {
    config: Config,
    /// 0 is the client.
    end: usize,
    sends: bool,
    /// The stream of the data.
    stream: u64,
    slow_start: &'static str,
    connection: Option<Connection>,
    held: VecDeque<Held>,
    scratch: Vec<u8>,
    received_bytes: u64,
    has_finished: bool,
    refused: Option<quiche::Error>,
    now_ns: u64,
}

impl End {
    fn new(control: &str, setup: &Setup, end: usize) -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self {
            config: config(control, end == 1)?,
            end,
            sends: setup.server_sends == (end == 1),
            stream: 2 + u64::from(setup.server_sends),
            slow_start: match control {
                "bbr2" => "startup",
                _ => "slow_start",
            },
            connection: None,
            held: VecDeque::new(),
            scratch: vec![0; 1 << 16],
            received_bytes: 0,
            has_finished: false,
            refused: None,
            now_ns: 0,
        })
    }

    fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        virtual_time::set(now_ns);
    }

    fn keep(&mut self, made: quiche::Result<Connection>) {
        match made {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.refused = Some(error),
        }
    }

    fn own_id(&self) -> ConnectionId<'static> {
        ConnectionId::from_vec(vec![1 + self.end as u8; 8])
    }

    /// Reads all that is in order.
    fn read(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        while let Ok((bytes, is_last)) = connection.stream_recv(self.stream, &mut self.scratch) {
            self.received_bytes += bytes as u64;
            if is_last {
                break;
            }
        }
    }

    /// Has quiche make what leaves now or soon.
    fn make(&mut self) {
        let (Some(connection), now) = (&mut self.connection, Instant::now()) else {
            return;
        };
        let after = |at: Instant| at.saturating_duration_since(now);
        loop {
            let decision = connection.get_next_release_time();
            let next = decision.and_then(|decision| decision.time(now));
            if next.is_some_and(|at| after(at) >= connection.max_release_into_future()) {
                return;
            }
            let Ok((bytes, info)) = connection.send(&mut self.scratch) else {
                return; // nothing to send, or closed
            };
            self.held.push_back(Held {
                at_ns: self.now_ns + after(info.at).as_nanos() as u64,
                datagram: self.scratch[..bytes].to_vec(),
            });
        }
    }

    fn is_due(&self) -> bool {
        let first = self.held.front();
        first.is_some_and(|held| held.at_ns <= self.now_ns)
    }
}

impl Endpoint for End {
    fn start(&mut self, now_ns: u64) {
        self.at(now_ns);
        let ([own, peer], id) = (addresses(), self.own_id());
        let made = quiche::connect(Some(SERVER_NAME), &id, own, peer, &mut self.config);
        self.keep(made);
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], _ecn: u8) {
        self.at(now_ns);
        let (own, peer) = (addresses()[self.end], addresses()[1 - self.end]);
        if self.connection.is_none() {
            let id = self.own_id();
            let made = quiche::accept(&id, None, own, peer, &mut self.config);
            self.keep(made);
        }
        if let Some(connection) = &mut self.connection {
            let info = RecvInfo {
                from: peer,
                to: own,
            };
            // What fails closes the connection, which then tells why, or was not for it.
            let _ = connection.recv(&mut datagram.to_vec(), info);
        }
        if !self.sends {
            self.read();
        }
    }

    fn on_timer(&mut self, now_ns: u64) {
        self.at(now_ns);
        if let Some(connection) = &mut self.connection {
            connection.on_timeout();
        }
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.at(now_ns);
        let Some(connection) = &mut self.connection else {
            return 0;
        };
        let length = bytes.min(ZEROS.len() as u64) as usize;
        let written = connection.stream_send(self.stream, &ZEROS[..length], false);
        written.unwrap_or(0) as u64 // fails where the window is full
    }

    fn finish(&mut self, now_ns: u64) {
        self.at(now_ns);
        if let Some(connection) = &mut self.connection {
            self.has_finished = connection.stream_send(self.stream, b"", true).is_ok();
        }
    }

    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        self.at(now_ns);
        if !self.is_due() {
            self.make();
        }
        if !self.is_due() {
            return None;
        }
        let datagram = self.held.pop_front()?.datagram;
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Some(Transmit {
            bytes: datagram.len(),
            datagram_bytes: datagram.len(),
            ecn: 0,
        })
    }

    fn status(&mut self) -> Status {
        virtual_time::set(self.now_ns);
        let held_ns = self.held.front().map_or(NONE, |held| held.at_ns);
        let mut status = Status {
            timer_ns: held_ns,
            received_bytes: self.received_bytes,
            is_established: false,
            is_finished: false,
            is_closed: self.refused.is_some(),
        };
        if let Some(connection) = &mut self.connection {
            let after = connection.timeout();
            let timeout_ns = after.map_or(NONE, |after| self.now_ns + after.as_nanos() as u64);
            status.timer_ns = held_ns.min(timeout_ns);
            status.is_established = connection.is_established();
            // quiche forgets a stream once all of it was acknowledged.
            let is_forgotten =
                self.has_finished && connection.stream_capacity(self.stream).is_err();
            status.is_finished = is_forgotten;
            status.is_closed = connection.is_closed();
        }
        status
    }

    fn sample(&mut self) -> Sample {
        virtual_time::set(self.now_ns);
        let Some(connection) = &self.connection else {
            return Sample::default();
        };
        let Some(path) = connection.path_stats().next() else {
            return Sample::default();
        };
        let stats = connection.stats();
        let datagram_bytes = path.pmtu as u64;
        Sample {
            cwnd_bytes: path.cwnd as u64,
            inflight_bytes: stats
                .sent_bytes
                .saturating_sub(stats.acked_bytes + stats.lost_bytes),
            datagram_bytes,
            payload_bytes: datagram_bytes.saturating_sub(OVERHEAD_BYTES + LENGTH_BYTES),
            srtt_us: micros(path.rtt),
            min_rtt_us: path.min_rtt.map_or(NONE, micros),
            bw_bps: path.max_bandwidth.map_or(NONE, |bytes| bytes * 8),
            packets_lost: stats.lost as u64,
            receive_window_bytes: WINDOW_BYTES.into(),
            phase: match path.startup_exit {
                None => phase(self.slow_start),
                Some(_) if self.slow_start == "slow_start" => phase("avoidance"),
                Some(_) => NONE,
            },
            ..Sample::default()
        }
    }

    fn failure(&self) -> Option<String> {
        if let Some(error) = &self.refused {
            return Some(error.to_string());
        }
        let connection = self.connection.as_ref()?;
        let error = connection.local_error().or(connection.peer_error());
        match error {
            Some(error) => Some(format!(
                "error {:#x} {}",
                error.error_code,
                String::from_utf8_lossy(&error.reason)
            )),
            None if connection.is_closed() => Some("closed".to_owned()),
            None => None,
        }
    }
}
