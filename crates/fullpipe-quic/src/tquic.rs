//! tquic.
//!
//! It has no ECN. Its pacer cuts what it earned to whole bytes, and would be called for ever with exact
//! timers: they are rounded up to 1 us at least. Of BBR and Copa it tells the window and the pacing rate only.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transmit, NONE};
use tquic::{
    Config, CongestionControlAlgorithm, Connection, PacketInfo, PacketSendHandler, TlsConfig,
    TransportHandler,
};

use fullpipe_quic_common::stacks::{Ends, Stack};
use fullpipe_quic_common::{
    addresses, pem, phase, seeded, text, virtual_time, OVERHEAD_BYTES, SERVER_NAME, WINDOW_BYTES,
    ZEROS,
};

pub(crate) const STACK: Stack = Stack {
    name: "tquic",
    version: "tquic 1.6.0",
    controls: &["cubic", "bbr", "bbr3", "copa"],
    open,
};

/// Ethernet's MTU without the headers of IPv4 and UDP.
const PAYLOAD_BYTES: u16 = 1472;
/// Timers are rounded up to this.
const STEP_NS: u64 = 1000;

fn open(control: &str, setup: &Setup) -> Result<Ends, String> {
    if setup.ecn {
        return Err("tquic has no ECN; the flow needs ecn = false".to_owned());
    }
    virtual_time::set(0);
    seeded::mix(setup.seed);
    let near = End::new(control, setup, 0).map_err(text)?;
    let far = End::new(control, setup, 1).map_err(text)?;
    Ok([Box::new(near), Box::new(far)])
}

fn config(control: &str, is_server: bool) -> Result<Config, Box<dyn std::error::Error>> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(0);
    config.set_recv_udp_payload_size(PAYLOAD_BYTES);
    config.set_send_udp_payload_size(PAYLOAD_BYTES.into());
    config.enable_dplpmtud(true);
    config.set_initial_max_data(2 * u64::from(WINDOW_BYTES));
    config.set_initial_max_stream_data_uni(WINDOW_BYTES.into());
    config.set_max_connection_window(2 * u64::from(WINDOW_BYTES));
    config.set_max_stream_window(WINDOW_BYTES.into());
    config.set_congestion_control_algorithm(match control {
        "cubic" => CongestionControlAlgorithm::Cubic,
        "bbr" => CongestionControlAlgorithm::Bbr,
        "bbr3" => CongestionControlAlgorithm::Bbr3,
        _ => CongestionControlAlgorithm::Copa,
    });
    let protocols = vec![b"fullpipe".to_vec()];
    config.set_tls_config(if is_server {
        let (certificate, key) = (pem::certificate()?, pem::key()?);
        TlsConfig::new_server_config(&certificate.path, &key.path, protocols, false)?
    } else {
        TlsConfig::new_client_config(protocols, false)?
    });
    Ok(config)
}

/// What tquic tells its program.
#[derive(Default)]
struct Told {
    connection: Option<u64>,
    stream: Option<u64>,
    received_bytes: u64,
    is_established: bool,
    is_finished: bool,
    failure: Option<String>,
    is_closed: bool,
    scratch: Vec<u8>,
}

struct Program {
    sends: bool,
    told: Rc<RefCell<Told>>,
}

impl TransportHandler for Program {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        self.told.borrow_mut().connection = connection.index();
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        let mut told = self.told.borrow_mut();
        told.is_established = true;
        if self.sends {
            told.stream = connection.stream_uni_new(0, false).ok();
        }
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let mut told = self.told.borrow_mut();
        told.is_closed = true;
        let error = connection.local_error().or(connection.peer_error());
        told.failure =
            Some(error.map_or_else(|| "closed".to_owned(), |error| format!("{error:?}")));
    }

    fn on_stream_created(&mut self, _connection: &mut Connection, _stream: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut told = self.told.borrow_mut();
        let mut scratch = std::mem::take(&mut told.scratch);
        scratch.resize(1 << 16, 0);
        while let Ok((bytes, is_last)) = connection.stream_read(stream, &mut scratch) {
            told.received_bytes += bytes as u64;
            if is_last {
                break;
            }
        }
        told.scratch = scratch;
    }

    fn on_stream_writable(&mut self, _connection: &mut Connection, _stream: u64) {}

    fn on_stream_closed(&mut self, _connection: &mut Connection, _stream: u64) {
        if self.sends {
            self.told.borrow_mut().is_finished = true;
        }
    }

    fn on_new_token(&mut self, _connection: &mut Connection, _token: Vec<u8>) {}
}

/// What tquic has to send.
#[derive(Default)]
struct Outbox(RefCell<VecDeque<Vec<u8>>>);

impl PacketSendHandler for Outbox {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        let datagrams = packets.iter().map(|(datagram, _)| datagram.clone());
        self.0.borrow_mut().extend(datagrams);
        Ok(packets.len())
    }
}

struct End {
    endpoint: tquic::Endpoint,
    own: SocketAddr,
    peer: SocketAddr,
    told: Rc<RefCell<Told>>,
    outbox: Rc<Outbox>,
    is_slow_start_named: &'static str,
    now_ns: u64,
}

impl End {
    fn new(control: &str, setup: &Setup, end: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let told = Rc::new(RefCell::new(Told::default()));
        let outbox = Rc::new(Outbox::default());
        let program = Program {
            sends: setup.server_sends == (end == 1),
            told: Rc::clone(&told),
        };
        let config = Box::new(config(control, end == 1)?);
        let sender: Rc<dyn PacketSendHandler> = outbox.clone();
        Ok(Self {
            endpoint: tquic::Endpoint::new(config, end == 1, Box::new(program), sender),
            own: addresses()[end],
            peer: addresses()[1 - end],
            told,
            outbox,
            is_slow_start_named: match control {
                "cubic" | "copa" => "slow_start",
                _ => "startup",
            },
            now_ns: 0,
        })
    }

    fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        virtual_time::set(now_ns);
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        let index = self.told.borrow().connection?;
        self.endpoint.conn_get_mut(index)
    }

    fn fail(&mut self, result: tquic::Result<()>) {
        if let Err(error) = result {
            let mut told = self.told.borrow_mut();
            told.failure.get_or_insert_with(|| error.to_string());
        }
    }
}

impl Endpoint for End {
    fn start(&mut self, now_ns: u64) {
        self.at(now_ns);
        let (own, peer, name) = (self.own, self.peer, Some(SERVER_NAME));
        let made = self.endpoint.connect(own, peer, name, None, None, None);
        self.fail(made.map(|_| ()));
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], _ecn: u8) {
        self.at(now_ns);
        let info = PacketInfo {
            src: self.peer,
            dst: self.own,
            time: std::time::Instant::now(),
        };
        let received = self.endpoint.recv(&mut datagram.to_vec(), &info);
        self.fail(received);
    }

    fn on_timer(&mut self, now_ns: u64) {
        self.at(now_ns);
        self.endpoint.on_timeout(std::time::Instant::now());
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.at(now_ns);
        let Some(stream) = self.told.borrow().stream else {
            return 0;
        };
        let Some(connection) = self.connection() else {
            return 0;
        };
        let length = bytes.min(ZEROS.len() as u64) as usize;
        let data = Bytes::from_static(&ZEROS[..length]);
        let written = connection.stream_write(stream, data, false).unwrap_or(0);
        let _ = connection.stream_want_write(stream, true); // fails once it is closed
        written as u64
    }

    fn finish(&mut self, now_ns: u64) {
        self.at(now_ns);
        let stream = self.told.borrow().stream;
        if let (Some(stream), Some(connection)) = (stream, self.connection()) {
            let finished = connection.stream_write(stream, Bytes::new(), true);
            self.fail(finished.map(|_| ()));
        }
    }

    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        self.at(now_ns);
        if self.outbox.0.borrow().is_empty() {
            let processed = self.endpoint.process_connections();
            self.fail(processed);
        }
        let datagram = self.outbox.0.borrow_mut().pop_front()?;
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Some(Transmit {
            bytes: datagram.len(),
            datagram_bytes: datagram.len(),
            ecn: 0,
        })
    }

    fn status(&mut self) -> Status {
        virtual_time::set(self.now_ns);
        let after = self.endpoint.timeout();
        let told = self.told.borrow();
        Status {
            timer_ns: after.map_or(NONE, |after| {
                let at_ns = self.now_ns + (after.as_nanos() as u64).max(1);
                at_ns.next_multiple_of(STEP_NS)
            }),
            received_bytes: told.received_bytes,
            is_established: told.is_established,
            is_finished: told.is_finished,
            is_closed: told.is_closed,
        }
    }

    fn sample(&mut self) -> Sample {
        virtual_time::set(self.now_ns);
        let (own, peer, slow_start) = (self.own, self.peer, self.is_slow_start_named);
        let stats = self
            .connection()
            .map(|connection| connection.get_path_stats(own, peer));
        let Some(Ok(stats)) = stats else {
            return Sample::default();
        };
        let gone = stats.acked_bytes + stats.lost_bytes;
        Sample {
            cwnd_bytes: stats.final_cwnd,
            inflight_bytes: stats.sent_bytes.saturating_sub(gone),
            datagram_bytes: PAYLOAD_BYTES.into(),
            payload_bytes: u64::from(PAYLOAD_BYTES) - OVERHEAD_BYTES,
            srtt_us: stats.srtt,
            min_rtt_us: stats.min_rtt,
            pacing_rate_bps: stats.pacing_rate * 8,
            packets_lost: stats.lost_count,
            congestion_events: stats.loss_event_count,
            receive_window_bytes: WINDOW_BYTES.into(),
            phase: match stats.in_slow_start {
                true => phase(slow_start),
                false if slow_start == "slow_start" => phase("avoidance"),
                false => NONE,
            },
            ..Sample::default()
        }
    }

    fn failure(&self) -> Option<String> {
        self.told.borrow().failure.clone()
    }
}
