//! ngtcp2.
//!
//! It is C that takes time, random numbers and datagrams as arguments. TLS is AWS-LC's, which draws keys
//! itself; they change no packet's size. The driver is that of ngtcp2's manual: datagrams leave in bursts of
//! its send quantum, by `ngtcp2_conn_write_aggregate_pkt`, which then sets the time of the next one. Data are
//! pointed to until they were acknowledged, and never copied.

use std::ffi::{c_int, c_void, CStr};
use std::mem::MaybeUninit;
use std::ptr;

use aws_lc_sys as tls;
use fullpipe_quic_common::seeded::SplitMix;
use fullpipe_quic_common::stacks::{Ends, Stack};
use fullpipe_quic_common::{
    addresses, pem, phase, text, windowed_phase, OVERHEAD_BYTES, SERVER_NAME, WINDOW_BYTES, ZEROS,
};
use fullpipe_transport::{Endpoint, Sample, Setup, Status, Transmit, NONE};
use ngtcp2_sys as ng;

use crate::told::Told;

pub(crate) const STACK: Stack = Stack {
    name: "ngtcp2",
    version: "ngtcp2 1.25 (ngtcp2-sys 0.2.0)",
    controls: &["cubic", "reno", "bbr"],
    open,
};

/// Timestamps count from 1 s.
const BEGIN_NS: u64 = 1_000_000_000;
/// Unsent data that an application would hold.
const SEND_BUFFER_BYTES: u64 = 1 << 24;
/// The protocol's name, with its length.
const PROTOCOL: &[u8] = b"\x08fullpipe";
const CID_BYTES: usize = 8;
/// QUIC's version (RFC 9000 section 15). ngtcp2's own name for it is a cast, of which the crate makes nothing.
const VERSION_1: u32 = 1;

fn open(control: &str, setup: &Setup) -> Result<Ends, String> {
    let algorithm = match control {
        "cubic" => ng::ngtcp2_cc_algo_NGTCP2_CC_ALGO_CUBIC,
        "reno" => ng::ngtcp2_cc_algo_NGTCP2_CC_ALGO_RENO,
        _ => ng::ngtcp2_cc_algo_NGTCP2_CC_ALGO_BBR,
    };
    let near = End::new(algorithm, setup, 0)?;
    let far = End::new(algorithm, setup, 1)?;
    Ok([Box::new(near), Box::new(far)])
}

fn cid_from(random: &mut SplitMix) -> ng::ngtcp2_cid {
    let mut cid = ng::ngtcp2_cid {
        datalen: CID_BYTES,
        data: [0; 20],
    };
    random.fill(&mut cid.data[..CID_BYTES]);
    cid
}

/// What callbacks read and change; at one address for as long as the connection lives.
struct Inside {
    conn: *mut ng::ngtcp2_conn,
    /// TLS finds the connection by it.
    back: ng::ngtcp2_crypto_conn_ref,
    random: SplitMix,
    /// -1: it was not opened.
    stream: i64,
    unsent_bytes: u64,
    is_finishing: bool,
    is_fin_sent: bool,
    received_bytes: u64,
    is_established: bool,
    is_finished: bool,
}

/// Both ends of the path, as the system's structures.
struct Path([libc::sockaddr_in; 2]);

impl Path {
    fn new(end: usize) -> Self {
        let [own, peer] = [addresses()[end], addresses()[1 - end]];
        Self([own, peer].map(|address| {
            let std::net::SocketAddr::V4(address) = address else {
                unreachable!("the addresses are IPv4's");
            };
            // SAFETY: all zeros is a value of it.
            let mut system: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            system.sin_family = libc::AF_INET as libc::sa_family_t;
            system.sin_port = address.port().to_be();
            system.sin_addr.s_addr = u32::from(*address.ip()).to_be();
            system
        }))
    }

    /// Valid while it is not moved.
    fn pointers(&mut self) -> ng::ngtcp2_path {
        let [local, remote] = self.0.each_mut().map(|system| ng::ngtcp2_addr {
            addr: ptr::from_mut(system).cast(),
            addrlen: size_of::<libc::sockaddr_in>() as _,
        });
        ng::ngtcp2_path {
            local,
            remote,
            user_data: ptr::null_mut(),
        }
    }
}

struct Tls {
    context: *mut tls::SSL_CTX,
    connection: *mut tls::SSL,
}

impl Drop for Tls {
    fn drop(&mut self) {
        // SAFETY: both were made in `new`, and null is allowed.
        unsafe {
            tls::SSL_free(self.connection);
            tls::SSL_CTX_free(self.context);
        }
    }
}

/// As C tells of errors: 1 is success.
fn done(what: &str, returned: c_int) -> Result<(), String> {
    match returned {
        1 => Ok(()),
        _ => Err(format!("AWS-LC: {what} failed")),
    }
}

impl Tls {
    fn new(is_server: bool, back: *mut ng::ngtcp2_crypto_conn_ref) -> Result<Self, String> {
        // SAFETY: what is made is freed in `drop`; strings end with NUL; `back` outlives it.
        unsafe {
            let mut made = Self {
                context: tls::SSL_CTX_new(tls::TLS_method()),
                connection: ptr::null_mut(),
            };
            let context = made.context;
            let configured = match is_server {
                true => ng::ngtcp2_crypto_boringssl_configure_server_context(context.cast()),
                false => ng::ngtcp2_crypto_boringssl_configure_client_context(context.cast()),
            };
            done("configuration", c_int::from(configured == 0))?;
            if is_server {
                let files = [pem::certificate().map_err(text)?, pem::key().map_err(text)?];
                let [certificate, key] = files.each_ref().map(|file| format!("{}\0", file.path));
                let certificate = CStr::from_bytes_until_nul(certificate.as_bytes());
                let key = CStr::from_bytes_until_nul(key.as_bytes());
                let certificate = certificate.map_err(text)?.as_ptr();
                let pem = tls::SSL_FILETYPE_PEM;
                let taken = tls::SSL_CTX_use_certificate_file(context, certificate, pem);
                done("the certificate", taken)?;
                let key = key.map_err(text)?.as_ptr();
                done(
                    "its key",
                    tls::SSL_CTX_use_PrivateKey_file(context, key, pem),
                )?;
                tls::SSL_CTX_set_alpn_select_cb(context, Some(select), ptr::null_mut());
            }
            made.connection = tls::SSL_new(context);
            let connection = made.connection;
            tls::SSL_set_ex_data(connection, 0, back.cast());
            if is_server {
                tls::SSL_set_accept_state(connection);
                return Ok(made);
            }
            tls::SSL_set_connect_state(connection);
            let name = format!("{SERVER_NAME}\0");
            let name = CStr::from_bytes_until_nul(name.as_bytes()).map_err(text)?;
            let named = tls::SSL_set_tlsext_host_name(connection, name.as_ptr());
            done("the server's name", named)?;
            let set = tls::SSL_set_alpn_protos(connection, PROTOCOL.as_ptr(), PROTOCOL.len() as _);
            done("the protocol", c_int::from(set == 0))?;
            Ok(made)
        }
    }
}

/// The server speaks one protocol.
unsafe extern "C" fn select(
    _: *mut tls::SSL,
    chosen: *mut *const u8,
    length: *mut u8,
    _: *const u8,
    _: u32,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the library passes places for both.
    unsafe {
        *chosen = PROTOCOL[1..].as_ptr();
        *length = PROTOCOL[0];
    }
    0 // SSL_TLSEXT_ERR_OK
}

/// The callbacks' view of an end.
///
/// # Safety
/// `user_data` is that of a connection of [`End`], and no other reference to it is used meanwhile.
unsafe fn inside<'a>(user_data: *mut c_void) -> &'a mut Inside {
    // SAFETY: as above.
    unsafe { &mut *user_data.cast() }
}

unsafe extern "C" fn conn_of(back: *mut ng::ngtcp2_crypto_conn_ref) -> *mut ng::ngtcp2_conn {
    // SAFETY: `Inside` holds it and outlives TLS.
    unsafe { inside((*back).user_data).conn }
}

unsafe extern "C" fn random(bytes: *mut u8, length: usize, context: *const ng::ngtcp2_rand_ctx) {
    // SAFETY: ngtcp2 passes a buffer, and the context of the settings.
    unsafe {
        let buffer = std::slice::from_raw_parts_mut(bytes, length);
        inside((*context).native_handle).random.fill(buffer);
    }
}

unsafe extern "C" fn new_cid(
    _: *mut ng::ngtcp2_conn,
    cid: *mut ng::ngtcp2_cid,
    token: *mut u8,
    length: usize,
    user_data: *mut c_void,
) -> c_int {
    // SAFETY: ngtcp2 passes places for a connection id and for a token of 16 bytes.
    unsafe {
        let random = &mut inside(user_data).random;
        *cid = cid_from(random);
        (*cid).datalen = length.min(CID_BYTES);
        random.fill(std::slice::from_raw_parts_mut(token, 16));
    }
    0
}

unsafe extern "C" fn completed(_: *mut ng::ngtcp2_conn, user_data: *mut c_void) -> c_int {
    // SAFETY: see `inside`.
    unsafe { inside(user_data) }.is_established = true;
    0
}

/// The application reads at once.
unsafe extern "C" fn received(
    conn: *mut ng::ngtcp2_conn,
    _: u32,
    stream: i64,
    _: u64,
    _: *const u8,
    length: usize,
    user_data: *mut c_void,
    _: *mut c_void,
) -> c_int {
    let bytes = length as u64;
    // SAFETY: see `inside`; the connection is ngtcp2's.
    unsafe {
        inside(user_data).received_bytes += bytes;
        ng::ngtcp2_conn_extend_max_stream_offset(conn, stream, bytes);
        ng::ngtcp2_conn_extend_max_offset(conn, bytes);
    }
    0
}

/// All of a stream, with its end, was acknowledged, or read.
unsafe extern "C" fn closed(
    _: *mut ng::ngtcp2_conn,
    _: u32,
    _: i64,
    _: u64,
    user_data: *mut c_void,
    _: *mut c_void,
) -> c_int {
    // SAFETY: see `inside`.
    unsafe { inside(user_data) }.is_finished = true;
    0
}

/// Writes a packet, with what there is of the stream.
unsafe extern "C" fn write_packet(
    conn: *mut ng::ngtcp2_conn,
    path: *mut ng::ngtcp2_path,
    info: *mut ng::ngtcp2_pkt_info,
    destination: *mut u8,
    room: usize,
    now: u64,
    user_data: *mut c_void,
) -> ng::ngtcp2_ssize {
    // SAFETY: see `inside`; the rest is passed on as it came; `ZEROS` lives for ever.
    unsafe {
        let inside = inside(user_data);
        let length = inside.unsent_bytes.min(ZEROS.len() as u64) as usize;
        let is_last = inside.is_finishing && length as u64 == inside.unsent_bytes;
        let has_more = inside.stream >= 0 && (length > 0 || (is_last && !inside.is_fin_sent));
        let (mut stream, mut flags) = (-1, ng::NGTCP2_WRITE_STREAM_FLAG_PADDING);
        if has_more {
            stream = inside.stream;
            if is_last {
                flags |= ng::NGTCP2_WRITE_STREAM_FLAG_FIN;
            }
        }
        let mut taken = -1;
        let mut write = |flags, stream, length| {
            ng::ngtcp2_conn_write_stream_versioned(
                conn,
                path,
                ng::NGTCP2_PKT_INFO_VERSION as c_int,
                info,
                destination,
                room,
                &raw mut taken,
                flags,
                stream,
                ZEROS.as_ptr(),
                length,
                now,
            )
        };
        let mut written = write(flags, stream, if has_more { length } else { 0 });
        if written == ng::NGTCP2_ERR_STREAM_DATA_BLOCKED as ng::ngtcp2_ssize {
            written = write(flags & !ng::NGTCP2_WRITE_STREAM_FLAG_FIN, -1, 0);
        }
        if taken >= 0 && has_more {
            inside.unsent_bytes -= taken as u64;
            inside.is_fin_sent = is_last && inside.unsent_bytes == 0;
        }
        written
    }
}

/// What a connection that lives shows of itself.
fn info(conn: *mut ng::ngtcp2_conn) -> ng::ngtcp2_conn_info {
    let mut known = MaybeUninit::uninit();
    let version = ng::NGTCP2_CONN_INFO_VERSION as c_int;
    // SAFETY: `End` keeps the connection, and the library writes all of it.
    unsafe {
        ng::ngtcp2_conn_get_conn_info2_versioned(conn, version, known.as_mut_ptr());
        known.assume_init()
    }
}

struct End {
    algorithm: ng::ngtcp2_cc_algo,
    end: usize,
    sends: bool,
    path: Box<Path>,
    /// See [`Setup::unsent_bytes`].
    unsent_bytes: u64,
    /// A pointer, as ngtcp2 has others to it.
    inside: *mut Inside,
    tls: Tls,
    error: c_int,
    congestion_start_ns: u64,
    congestion_events: u64,
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: both were made by this; null is allowed for the connection.
        unsafe {
            ng::ngtcp2_conn_del((*self.inside).conn);
            drop(Box::from_raw(self.inside));
        }
    }
}

impl End {
    fn new(algorithm: ng::ngtcp2_cc_algo, setup: &Setup, end: usize) -> Result<Self, String> {
        let inside = Box::into_raw(Box::new(Inside {
            conn: ptr::null_mut(),
            back: ng::ngtcp2_crypto_conn_ref {
                get_conn: Some(conn_of),
                user_data: ptr::null_mut(),
            },
            random: SplitMix(setup.seed.wrapping_add(end as u64)),
            stream: -1,
            unsent_bytes: 0,
            is_finishing: false,
            is_fin_sent: false,
            received_bytes: 0,
            is_established: false,
            is_finished: false,
        }));
        // SAFETY: it was just made.
        let back = unsafe {
            (*inside).back.user_data = inside.cast();
            &raw mut (*inside).back
        };
        let made = Tls::new(end == 1, back).map(|tls| Self {
            algorithm,
            end,
            sends: setup.server_sends == (end == 1),
            path: Box::new(Path::new(end)),
            unsent_bytes: setup.unsent_bytes,
            inside,
            tls,
            error: 0,
            congestion_start_ns: NONE,
            congestion_events: 0,
        });
        if made.is_err() {
            // SAFETY: nothing else has it.
            drop(unsafe { Box::from_raw(inside) });
        }
        made
    }

    fn inside(&mut self) -> &mut Inside {
        // SAFETY: it lives until `drop`, and callbacks are not under way.
        unsafe { &mut *self.inside }
    }

    fn conn(&self) -> Option<*mut ng::ngtcp2_conn> {
        // SAFETY: as above.
        let conn = unsafe { (*self.inside).conn };
        (!conn.is_null() && self.error == 0).then_some(conn)
    }

    /// Makes the connection. All else is as released: discovery of the MTU up to 1,452 bytes, ACKs of every
    /// second packet.
    fn connect(&mut self, now_ns: u64, header: Option<&ng::ngtcp2_pkt_hd>) {
        let callbacks = ng::ngtcp2_callbacks {
            client_initial: Some(ng::ngtcp2_crypto_client_initial_cb),
            recv_client_initial: Some(ng::ngtcp2_crypto_recv_client_initial_cb),
            recv_crypto_data: Some(ng::ngtcp2_crypto_recv_crypto_data_cb),
            handshake_completed: Some(completed),
            encrypt: Some(ng::ngtcp2_crypto_encrypt_cb),
            decrypt: Some(ng::ngtcp2_crypto_decrypt_cb),
            hp_mask: Some(ng::ngtcp2_crypto_hp_mask_cb),
            recv_stream_data: Some(received),
            stream_close: Some(closed),
            recv_retry: Some(ng::ngtcp2_crypto_recv_retry_cb),
            rand: Some(random),
            get_new_connection_id: Some(new_cid),
            update_key: Some(ng::ngtcp2_crypto_update_key_cb),
            delete_crypto_aead_ctx: Some(ng::ngtcp2_crypto_delete_crypto_aead_ctx_cb),
            delete_crypto_cipher_ctx: Some(ng::ngtcp2_crypto_delete_crypto_cipher_ctx_cb),
            get_path_challenge_data: Some(ng::ngtcp2_crypto_get_path_challenge_data_cb),
            version_negotiation: Some(ng::ngtcp2_crypto_version_negotiation_cb),
            // SAFETY: no callback is a value of each.
            ..unsafe { std::mem::zeroed() }
        };
        let inside = self.inside;
        // SAFETY: the library copies what it is given, but for `inside`, which outlives the connection.
        unsafe {
            let mut settings = MaybeUninit::uninit();
            let version = ng::NGTCP2_SETTINGS_VERSION as c_int;
            ng::ngtcp2_settings_default_versioned(version, settings.as_mut_ptr());
            let mut settings = settings.assume_init();
            settings.cc_algo = self.algorithm;
            settings.initial_ts = now_ns + BEGIN_NS;
            settings.rand_ctx.native_handle = inside.cast();
            let mut params = MaybeUninit::uninit();
            let params_version = ng::NGTCP2_TRANSPORT_PARAMS_VERSION as c_int;
            ng::ngtcp2_transport_params_default_versioned(params_version, params.as_mut_ptr());
            let mut params = params.assume_init();
            params.initial_max_data = 2 * u64::from(WINDOW_BYTES);
            params.initial_max_stream_data_uni = WINDOW_BYTES.into();
            params.initial_max_streams_uni = 1;
            params.max_idle_timeout = 0;
            let own = cid_from(&mut (*inside).random);
            let path = self.path.pointers();
            let make = match header {
                None => ng::ngtcp2_conn_client_new_versioned,
                Some(header) => {
                    params.original_dcid = header.dcid;
                    params.original_dcid_present = 1;
                    ng::ngtcp2_conn_server_new_versioned
                }
            };
            let peer = header.map_or_else(|| cid_from(&mut (*inside).random), |header| header.scid);
            self.error = make(
                &raw mut (*inside).conn,
                &raw const peer,
                &raw const own,
                &raw const path,
                VERSION_1,
                ng::NGTCP2_CALLBACKS_VERSION as c_int,
                &raw const callbacks,
                version,
                &raw const settings,
                params_version,
                &raw const params,
                ptr::null(),
                inside.cast(),
            );
            if self.error == 0 {
                let connection = self.tls.connection.cast();
                ng::ngtcp2_conn_set_tls_native_handle((*inside).conn, connection);
            }
        }
    }

    /// Counts the times at which recovery began.
    fn watch(&mut self) {
        let Some(conn) = self.conn() else {
            return;
        };
        // SAFETY: it lives.
        let start_ns = unsafe { Told::of(conn) }.congestion_recovery_start_ns;
        if start_ns != self.congestion_start_ns {
            self.congestion_start_ns = start_ns;
            self.congestion_events += u64::from(start_ns != NONE);
        }
    }

    /// The stream of the data.
    fn open_stream(&mut self) -> bool {
        let Some(conn) = self.conn() else {
            return false;
        };
        let inside = self.inside();
        if inside.stream < 0 && inside.is_established {
            let mut stream = -1;
            // SAFETY: the connection lives.
            unsafe { ng::ngtcp2_conn_open_uni_stream(conn, &raw mut stream, ptr::null_mut()) };
            inside.stream = stream;
        }
        inside.stream >= 0
    }
}

impl Endpoint for End {
    fn start(&mut self, now_ns: u64) {
        self.connect(now_ns, None);
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], ecn: u8) {
        let (bytes, length) = (datagram.as_ptr(), datagram.len());
        if self.end == 1 && self.inside().conn.is_null() {
            let mut header = MaybeUninit::uninit();
            // SAFETY: the header is read only if it was written.
            unsafe {
                if ng::ngtcp2_accept(header.as_mut_ptr(), bytes, length) == 0 {
                    self.connect(now_ns, Some(&header.assume_init()));
                }
            }
        }
        let Some(conn) = self.conn() else {
            return;
        };
        let path = self.path.pointers();
        let info = ng::ngtcp2_pkt_info { ecn };
        // SAFETY: all of it lives until the call returns.
        self.error = unsafe {
            ng::ngtcp2_conn_read_pkt_versioned(
                conn,
                &raw const path,
                ng::NGTCP2_PKT_INFO_VERSION as c_int,
                &raw const info,
                bytes,
                length,
                now_ns + BEGIN_NS,
            )
        };
        self.watch();
    }

    fn on_timer(&mut self, now_ns: u64) {
        if let Some(conn) = self.conn() {
            // SAFETY: it lives.
            self.error = unsafe { ng::ngtcp2_conn_handle_expiry(conn, now_ns + BEGIN_NS) };
            self.watch();
        }
    }

    fn write(&mut self, _now_ns: u64, bytes: u64) -> u64 {
        let (true, Some(conn)) = (self.open_stream(), self.conn()) else {
            return 0;
        };
        let mut room = SEND_BUFFER_BYTES;
        if self.unsent_bytes != NONE {
            // Twice the window, of which one is in flight.
            room = room.min(info(conn).cwnd.saturating_add(self.unsent_bytes));
        }
        let inside = self.inside();
        let taken = bytes.min(room.saturating_sub(inside.unsent_bytes));
        inside.unsent_bytes += taken;
        taken
    }

    fn finish(&mut self, _now_ns: u64) {
        if self.open_stream() {
            self.inside().is_finishing = true;
        }
    }

    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let conn = self.conn()?;
        let mut info = ng::ngtcp2_pkt_info { ecn: 0 };
        let mut datagram_bytes = 0;
        // SAFETY: as in `receive`; the library writes at most `room` bytes.
        let written = unsafe {
            let least = ng::ngtcp2_conn_get_path_max_tx_udp_payload_size2(conn);
            let room = ng::ngtcp2_conn_get_send_quantum2(conn);
            let room = room.max(least).min(buffer.len());
            ng::ngtcp2_conn_write_aggregate_pkt_versioned(
                conn,
                ptr::null_mut(),
                ng::NGTCP2_PKT_INFO_VERSION as c_int,
                &raw mut info,
                buffer.as_mut_ptr(),
                room,
                &raw mut datagram_bytes,
                Some(write_packet),
                now_ns + BEGIN_NS,
            )
        };
        if written < 0 {
            self.error = written as c_int;
        }
        (written > 0).then_some(Transmit {
            bytes: written as usize,
            datagram_bytes,
            ecn: info.ecn,
        })
    }

    fn status(&mut self) -> Status {
        let timer_ns = self.conn().map_or(NONE, |conn| {
            // SAFETY: it lives.
            let expiry_ns = unsafe { ng::ngtcp2_conn_get_expiry2(conn) };
            match expiry_ns {
                NONE => NONE,
                known => known.saturating_sub(BEGIN_NS),
            }
        });
        let (sends, error) = (self.sends, self.error);
        let inside = self.inside();
        Status {
            timer_ns,
            received_bytes: inside.received_bytes,
            is_established: inside.is_established,
            is_finished: sends && inside.is_finished,
            is_closed: error != 0,
        }
    }

    fn sample(&mut self) -> Sample {
        let Some(conn) = self.conn() else {
            return Sample::default();
        };
        let known = info(conn);
        // SAFETY: the connection lives.
        let (told, datagram_bytes) = unsafe {
            let bytes = ng::ngtcp2_conn_get_path_max_tx_udp_payload_size2(conn);
            (Told::of(conn), bytes as u64)
        };
        let is_bbr = told.phase().is_some();
        let min_rtt_ns = if is_bbr {
            told.min_rtt_ns
        } else {
            known.min_rtt
        };
        Sample {
            cwnd_bytes: known.cwnd,
            ssthresh_bytes: if is_bbr { NONE } else { known.ssthresh },
            inflight_bytes: known.bytes_in_flight,
            datagram_bytes,
            payload_bytes: datagram_bytes.saturating_sub(OVERHEAD_BYTES),
            srtt_us: known.smoothed_rtt / 1000,
            min_rtt_us: if min_rtt_ns == NONE {
                NONE
            } else {
                min_rtt_ns / 1000
            },
            pacing_rate_bps: told.pacing_rate_bps,
            bw_bps: told.max_bw_bps,
            bw_shortterm_bps: told.bw_shortterm_bps,
            inflight_longterm_bytes: told.inflight_longterm_bytes,
            inflight_shortterm_bytes: told.inflight_shortterm_bytes,
            extra_acked_bytes: told.extra_acked_bytes,
            round_count: told.round_count,
            packets_lost: known.pkt_lost,
            congestion_events: self.congestion_events,
            receive_window_bytes: WINDOW_BYTES.into(),
            phase: told
                .phase()
                .map_or_else(|| windowed_phase(known.cwnd, known.ssthresh), phase),
            pacing_gain: told.pacing_gain(),
            cwnd_gain: told.cwnd_gain(),
        }
    }

    fn failure(&self) -> Option<String> {
        // SAFETY: it returns text that lives for ever.
        (self.error != 0).then(|| unsafe {
            CStr::from_ptr(ng::ngtcp2_strerror(self.error))
                .to_string_lossy()
                .into_owned()
        })
    }
}
