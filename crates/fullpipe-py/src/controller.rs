//! `fullpipe._native.controller`: congestion controls written in Python. The structures of cc/cc.h
//! as objects (classes of `fullpipe._native`), made once a connection and filled before every call;
//! the calls; and what a class raised.

use std::cell::RefCell;

use fullpipe_cc::DynAlgorithm;
use fullpipe_cc::{Ack, Conn, Ctl, Event, EventKind, Info, Param, Variable};
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pythonize::pythonize;

use crate::cc::About;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyConn>()?;
    module.add_class::<PyAck>()?;
    module.add_class::<PyEvent>()?;
    module.add_class::<PyCtl>()?;
    module.add_class::<PyInfo>()?;
    let controller = PyModule::new(module.py(), "controller")?;
    controller.add_function(wrap_pyfunction!(register_class, &controller)?)?;
    module.add_submodule(&controller)
}

/// Read-only attributes of a structure. Each is `name: type = expression of the structure`.
macro_rules! facts {
    ($class:ident, $value:ident, $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $get:expr;)*) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            $(
                $(#[doc = $doc])+
                #[getter]
                fn $name(&self) -> $type {
                    let $value = &self.0;
                    $get
                }
            )*
        }
    };
}

/// The state of the connection at a call (`struct cc_conn`). Volumes are packets of `mss_bytes`.
#[pyclass(name = "Conn", module = "fullpipe")]
#[derive(Default)]
pub(crate) struct PyConn(Conn);

facts! { PyConn, conn,
    /// Time of this call in us.
    now_us: u64 = conn.now_us;
    /// The same clock in ns.
    now_ns: u64 = conn.now_ns;
    /// Earliest departure time of the next packet in ns.
    edt_ns: u64 = conn.edt_ns;
    /// When `delivered` last grew, in us.
    delivered_us: u64 = conn.delivered_us;
    /// When data was last sent, in us.
    last_send_us: u64 = conn.last_send_us;
    /// Ceiling of application or host on the pacing rate, in bytes/s.
    pacing_rate_cap_Bps: u64 = conn.pacing_rate_cap_bytes_per_s;
    /// Payload of a full packet in bytes.
    mss_bytes: u32 = conn.mss_bytes;
    /// Packets delivered so far; wraps at 2**32.
    delivered: u32 = conn.delivered;
    /// Of those, marked CE.
    delivered_ce: u32 = conn.delivered_ce;
    /// Packets marked lost so far; wraps at 2**32.
    lost: u32 = conn.lost;
    /// Packets sent and not cumulatively acknowledged.
    packets_out: u32 = conn.packets_out;
    /// Packets in the network.
    inflight: u32 = conn.inflight;
    /// First byte that is not acknowledged; wraps at 2**32.
    snd_una: u32 = conn.snd_una;
    /// Next byte to be sent; wraps at 2**32.
    snd_nxt: u32 = conn.snd_nxt;
    /// Smoothed RTT in us; 0 before the first sample.
    srtt_us: u32 = conn.srtt_us;
    /// Not 0: the application does not keep the pipe full.
    app_limited: u32 = conn.app_limited;
    /// Ceiling on the window in packets.
    cwnd_clamp: u32 = conn.cwnd_clamp;
    /// Largest burst in packets that the host can send at once.
    gso_max_segs: u32 = conn.gso_max_segs;
    /// Seed of the algorithm's own random numbers.
    seed: u32 = conn.seed;
    /// State of loss recovery: a `fullpipe.CaState`.
    ca_state: u8 = conn.ca_state;
    /// The one before the last change.
    prior_ca_state: u8 = conn.prior_ca_state;
    /// May the window grow?
    is_cwnd_limited: bool = conn.is_cwnd_limited != 0;
    /// ECN was negotiated.
    ecn_ok: bool = conn.ecn_ok != 0;
    /// The path is known to mark early.
    ecn_low: bool = conn.ecn_low != 0;
    /// The host spaces departures at `ctl.pacing_rate_Bps`.
    is_paced: bool = conn.is_paced != 0;
    /// The window stopped the sender.
    is_cwnd_full: bool = conn.is_cwnd_full != 0;
    /// The host's least RTT in us (with WANTS_DETAILS, as all below); 0: none.
    min_rtt_us: u32 = conn.min_rtt_us;
    /// Mean deviation of the RTT in us.
    rttvar_us: u32 = conn.rttvar_us;
    /// Bytes written by the application and not yet sent.
    unsent_bytes: u32 = conn.unsent_bytes;
    /// The same in packets, rounded up.
    unsent_packets: u32 = conn.unsent_packets;
    /// ACKs that came so far; wraps at 2**32.
    acks: u32 = conn.acks;
    /// The newest segment's timestamp, in the receiver's ticks.
    rcv_tsval: u32 = conn.rcv_tsval;
    /// What it echoes, in `ts_tick_us`.
    rcv_tsecr: u32 = conn.rcv_tsecr;
    /// Tick of our timestamps in us; 0: the connection has none.
    ts_tick_us: u32 = conn.ts_tick_us;
    /// Packets SACKed and not acknowledged.
    sacked_out: u32 = conn.sacked_out;
    /// Packets marked lost and not acknowledged.
    lost_out: u32 = conn.lost_out;
    /// Retransmissions in the network.
    retrans_out: u32 = conn.retrans_out;
    /// Most `packets_out` of the last window.
    max_packets_out: u32 = conn.max_packets_out;
    /// `snd_nxt` when the episode of `ca_state` began.
    high_seq: u32 = conn.high_seq;
    /// Packets by which the path reorders.
    reordering: u32 = conn.reordering;
    /// Window before the last reduction.
    prior_cwnd: u32 = conn.prior_cwnd;
    /// Us since the packet that a LOST event is about was last sent.
    lost_age_us: u32 = conn.lost_age_us;
}

/// One ACK's rate sample (`struct cc_ack`). Volumes are packets.
#[pyclass(name = "Ack", module = "fullpipe")]
#[derive(Default)]
pub(crate) struct PyAck(Ack);

facts! { PyAck, ack,
    /// `conn.delivered_us` when the newest packet acknowledged was sent; 0: no sample.
    prior_us: u64 = ack.prior_us;
    /// `conn.delivered` when that packet was sent.
    prior_delivered: u32 = ack.prior_delivered;
    /// `conn.delivered_ce` when that packet was sent.
    prior_delivered_ce: u32 = ack.prior_delivered_ce;
    /// Packets delivered over the sample; below 0: invalid.
    delivered: i32 = ack.delivered;
    /// Of those, marked CE.
    delivered_ce: i32 = ack.delivered_ce;
    /// Over how many us they were delivered; below 0: invalid.
    interval_us: i32 = ack.interval_us;
    /// RTT of that packet in us; below 0: none.
    rtt_us: i32 = ack.rtt_us;
    /// Packets newly marked lost by this ACK.
    losses: u32 = ack.losses;
    /// Packets newly delivered by this ACK.
    acked_sacked: u32 = ack.acked_sacked;
    /// Packets in flight just before this ACK.
    prior_inflight: u32 = ack.prior_inflight;
    /// End of the newest packet acknowledged, in bytes; wraps at 2**32.
    last_end_seq: u32 = ack.last_end_seq;
    /// Packets in flight just after that packet was sent (with WANTS_RING).
    tx_inflight: u32 = ack.tx_inflight;
    /// Packets lost between its sending and now (with WANTS_RING).
    lost: u32 = ack.lost;
    /// That packet was sent while application-limited.
    is_app_limited: bool = ack.is_app_limited != 0;
    /// It was a retransmission.
    is_retrans: bool = ack.is_retrans != 0;
    /// The RTT sample probably contains a delayed ACK.
    is_ack_delayed: bool = ack.is_ack_delayed != 0;
    /// Of a tail loss probe that sent data again.
    is_probe_answer: bool = ack.is_probe_answer != 0;
    /// Us since that packet was sent last.
    age_us: u32 = ack.age_us;
}

/// Anything but an ACK (`struct cc_event`).
#[pyclass(name = "Event", module = "fullpipe")]
#[derive(Default)]
pub(crate) struct PyEvent(Event);

facts! { PyEvent, event,
    /// A `fullpipe.EventKind`.
    kind: u32 = event.kind;
    /// Depends on the kind: the new `CaState`, the RTT in us, packets in flight.
    value: u32 = event.value;
    /// Depends on the kind: packets acknowledged or lost.
    packets: u32 = event.packets;
    /// The packet that it is about was sent while application-limited.
    is_app_limited: bool = event.is_app_limited != 0;
}

/// What an algorithm sets (`struct cc_ctl`); before a call, the values in force.
#[pyclass(name = "Ctl", module = "fullpipe")]
#[derive(Default)]
pub(crate) struct PyCtl(Ctl);

/// Attributes that can be written.
macro_rules! decisions {
    ($class:ident, $($(#[doc = $doc:literal])+ $name:ident, $set:ident: $type:ty = $field:ident;)*) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            $(
                $(#[doc = $doc])+
                #[getter]
                fn $name(&self) -> $type {
                    self.0.$field
                }

                #[setter($name)]
                fn $set(&mut self, value: $type) {
                    self.0.$field = value;
                }
            )*
        }
    };
}

decisions! { PyCtl,
    /// Pacing rate in bytes/s (with OWNS_CWND); 0: it follows the window.
    pacing_rate_Bps, set_pacing_rate: u64 = pacing_rate_bytes_per_s;
    /// Congestion window in packets.
    cwnd, set_cwnd: u32 = cwnd;
    /// Slow-start threshold in packets; 0x7fffffff: none.
    ssthresh, set_ssthresh: u32 = ssthresh;
    /// Least packets a burst when pacing allows (in on_send() only).
    tso_segs, set_tso_segs: u32 = tso_segs;
    /// Send buffer in windows.
    sndbuf_factor, set_sndbuf_factor: u32 = sndbuf_factor;
    /// Fraction of a packet that the window has grown.
    cwnd_cnt, set_cwnd_cnt: u32 = cwnd_cnt;
    /// When a TIMER event is wanted, in us on the clock of `conn.now_us` (with WANTS_TIMER); 0: not.
    timer_us, set_timer: u64 = timer_us;
}

/// What recordings show of an algorithm (`struct cc_info`, table `cc_samples`).
#[pyclass(name = "Info", module = "fullpipe")]
#[derive(Default)]
pub(crate) struct PyInfo(Info);

decisions! { PyInfo,
    /// Bandwidth that the model paces from, in bytes/s.
    bw_Bps, set_bw: u64 = bw_bytes_per_s;
    /// Its maximum in bytes/s.
    max_bw_Bps, set_max_bw: u64 = max_bw_bytes_per_s;
    /// Its short-term bound in bytes/s; 0: unset.
    bw_shortterm_Bps, set_bw_shortterm: u64 = bw_shortterm_bytes_per_s;
    /// The algorithm's own least RTT in us; 0: none.
    min_rtt_us, set_min_rtt: u32 = min_rtt_us;
    /// A `fullpipe.Phase`.
    phase, set_phase: u32 = phase;
    /// Pacing gain in 1/1024.
    pacing_gain, set_pacing_gain: u32 = pacing_gain;
    /// Window gain in 1/1024.
    cwnd_gain, set_cwnd_gain: u32 = cwnd_gain;
    /// Long-term bound in packets; 0x7fffffff: unset.
    inflight_longterm, set_inflight_longterm: u32 = inflight_longterm;
    /// Short-term bound in packets; 0x7fffffff: unset.
    inflight_shortterm, set_inflight_shortterm: u32 = inflight_shortterm;
    /// Aggregated ACKs in packets.
    extra_acked, set_extra_acked: u32 = extra_acked;
    /// Round trips so far.
    round_count, set_round_count: u32 = round_count;
}

thread_local! {
    /// What a class of this thread's run raised first, and which algorithm it is.
    static RAISED: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// What a class raised since the last question.
pub(crate) fn take_raised() -> Option<(String, PyErr)> {
    RAISED.with_borrow_mut(Option::take)
}

/// The error of what a class raised: it names the algorithm, and has the exception as its cause.
pub(crate) fn raised(py: Python<'_>, (algorithm, cause): (String, PyErr)) -> PyErr {
    let error = PyRuntimeError::new_err("a class raised an exception");
    if let Err(unset) = error.value(py).setattr("algorithm", algorithm) {
        return unset;
    }
    error.set_cause(py, Some(cause));
    error
}

/// Makes a class known to this process under a name that plans then use. `make(values, conn, ctl)`
/// gives the methods of a connection's instance, of its stored constants: init, on_ack, on_event,
/// on_send and info, and what gives the values of its variables, None for what need not be called;
/// `params` and `variables` are dicts as those of `cc.algorithms`. Returns what `cc.algorithms` says of
/// it.
#[pyfunction(name = "register")]
fn register_class<'py>(
    py: Python<'py>,
    name: &str,
    title: &str,
    flags: u32,
    params: Vec<Bound<'_, PyDict>>,
    variables: Vec<Bound<'_, PyDict>>,
    make: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let params = params.iter().map(param).collect::<PyResult<Vec<_>>>()?;
    let variables = variables
        .iter()
        .map(variable)
        .collect::<PyResult<Vec<_>>>()?;
    let owner = name.to_owned();
    let make_one = move |values: &[u32]| -> Box<dyn DynAlgorithm> {
        Python::attach(|py| match Instance::new(py, &make, values) {
            Ok(instance) => Box::new(Class {
                name: owner.clone(),
                instance: Some(instance),
            }),
            Err(error) => {
                note(&owner, error);
                Box::new(Class {
                    name: owner.clone(),
                    instance: None,
                })
            }
        })
    };
    let made = fullpipe_cc::register(name, title, flags, params, variables, Box::new(make_one));
    Ok(pythonize(py, &About::of(made))?)
}

fn variable(row: &Bound<'_, PyDict>) -> PyResult<Variable> {
    let text = |key: &str| item(row, key)?.extract::<String>();
    let (name, unit, meaning) = (text("name")?, text("unit")?, text("meaning")?);
    Ok(Variable::new(&name, &unit, &meaning, 1))
}

fn item<'py>(row: &Bound<'py, PyDict>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    row.get_item(key)?
        .ok_or_else(|| PyAttributeError::new_err(key.to_owned()))
}

fn param(row: &Bound<'_, PyDict>) -> PyResult<Param> {
    let text = |key: &str| Ok::<_, PyErr>(&*item(row, key)?.extract::<String>()?.leak());
    let number = |key: &str| item(row, key)?.extract::<u32>();
    Ok(Param {
        name: text("name")?,
        unit: text("unit")?,
        zero: text("zero")?,
        source: text("source")?,
        meaning: text("meaning")?,
        default: number("default")?,
        min: number("min")?,
        max: number("max")?,
        scale: number("scale")?,
        origin: number("origin")?,
    })
}

/// A connection's instance of a class; none once it raised something.
struct Class {
    name: String,
    instance: Option<Instance>,
}

/// A method of the instance, and what it is called with.
struct Method {
    bound: Py<PyAny>,
    arguments: Py<PyTuple>,
}

/// The methods that the class has, and the objects that they get: nothing is made for a call.
struct Instance {
    conn: Py<PyConn>,
    ctl: Py<PyCtl>,
    ack: Py<PyAck>,
    event: Py<PyEvent>,
    info: Py<PyInfo>,
    init: Option<Method>,
    on_ack: Option<Method>,
    on_event: Option<Method>,
    on_send: Option<Method>,
    show: Option<Method>,
    values: Option<Py<PyAny>>,
}

impl Instance {
    fn new(py: Python<'_>, make: &Py<PyAny>, values: &[u32]) -> PyResult<Self> {
        let conn = Py::new(py, PyConn::default())?;
        let ctl = Py::new(py, PyCtl::default())?;
        let ack = Py::new(py, PyAck::default())?;
        let event = Py::new(py, PyEvent::default())?;
        let info = Py::new(py, PyInfo::default())?;
        let methods = make.call1(py, (values.to_vec(), &conn, &ctl))?;
        let [init, on_ack, on_event, on_send, show, values]: [Option<Py<PyAny>>; 6] =
            methods.extract(py)?;
        let nothing = PyTuple::empty(py);
        let method = |bound: Option<Py<PyAny>>, arguments: &Bound<'_, PyTuple>| {
            let arguments = arguments.clone().unbind();
            bound.map(|bound| Method { bound, arguments })
        };
        Ok(Self {
            init: method(init, &nothing),
            on_ack: method(on_ack, &PyTuple::new(py, [&ack])?),
            on_event: method(on_event, &PyTuple::new(py, [&event])?),
            on_send: method(on_send, &nothing),
            show: method(show, &PyTuple::new(py, [&info])?),
            values,
            conn,
            ctl,
            ack,
            event,
            info,
        })
    }

    /// Calls `method` with the connection's state; its decisions are left in `ctl`.
    fn call(&self, py: Python<'_>, method: &Method, conn: &Conn, ctl: &mut Ctl) -> PyResult<()> {
        self.conn.borrow_mut(py).0 = *conn;
        self.ctl.borrow_mut(py).0 = *ctl;
        method.bound.call1(py, method.arguments.bind(py))?;
        *ctl = self.ctl.borrow(py).0;
        Ok(())
    }
}

impl Class {
    /// What an instance does, until it raises something.
    fn ask(&mut self, call: impl FnOnce(&Instance, Python<'_>) -> PyResult<()>) {
        let Some(instance) = &self.instance else {
            return;
        };
        if let Err(error) = Python::attach(|py| call(instance, py)) {
            note(&self.name, error);
            self.instance = None;
        }
    }
}

impl DynAlgorithm for Class {
    fn init(&mut self, conn: &Conn, ctl: &mut Ctl) {
        self.ask(|one, py| match &one.init {
            Some(method) => one.call(py, method, conn, ctl),
            None => Ok(()),
        });
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, ctl: &mut Ctl) {
        self.ask(|one, py| {
            let Some(method) = &one.on_ack else {
                return Ok(());
            };
            one.ack.borrow_mut(py).0 = *ack;
            one.call(py, method, conn, ctl)
        });
    }

    fn on_event(&mut self, conn: &Conn, event: &Event, ctl: &mut Ctl) {
        let is_send = event.kind == EventKind::Send as u32;
        if is_send
            && self
                .instance
                .as_ref()
                .is_none_or(|one| one.on_send.is_none())
        {
            return;
        }
        self.ask(|one, py| {
            let method = if is_send { &one.on_send } else { &one.on_event };
            let Some(method) = method else {
                return Ok(());
            };
            one.event.borrow_mut(py).0 = *event;
            one.call(py, method, conn, ctl)
        });
    }

    fn info(&self, info: &mut Info) {
        let Some((one, method)) = self
            .instance
            .as_ref()
            .and_then(|one| Some((one, one.show.as_ref()?)))
        else {
            return;
        };
        let answer = Python::attach(|py| {
            one.info.borrow_mut(py).0 = *info;
            method.bound.call1(py, method.arguments.bind(py))?;
            *info = one.info.borrow(py).0;
            Ok(())
        });
        if let Err(error) = answer {
            note(&self.name, error);
        }
    }

    fn read(&self, values: &mut [Option<f64>]) {
        let Some(method) = self.instance.as_ref().and_then(|one| one.values.as_ref()) else {
            return;
        };
        let answer = Python::attach(|py| method.call0(py)?.extract::<Vec<Option<f64>>>(py));
        match answer {
            Ok(own) => values
                .iter_mut()
                .zip(own)
                .for_each(|(place, value)| *place = value),
            Err(error) => note(&self.name, error),
        }
    }
}

/// The first exception counts; those after it may follow from it.
fn note(name: &str, error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert((name.to_owned(), error));
    });
}
