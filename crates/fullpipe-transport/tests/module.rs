//! The table of C functions is the trait on its other side, and keeps a stack's panic from the program.

use std::ffi::c_void;

use fullpipe_transport::{
    Endpoint, Loaded, Module, Sample, Setup, Status, Transmit, Transport, NONE,
};

/// Remembers all calls; panics at a datagram that begins with 255.
#[derive(Default)]
struct Echo {
    datagram: Vec<u8>,
    ecn: u8,
    written_bytes: u64,
}

impl Endpoint for Echo {
    fn start(&mut self, _now_ns: u64) {}

    fn receive(&mut self, _now_ns: u64, datagram: &[u8], ecn: u8) {
        assert!(datagram[0] != 255, "a datagram of 255");
        self.datagram = datagram.to_vec();
        self.ecn = ecn;
    }

    fn on_timer(&mut self, _now_ns: u64) {}

    fn write(&mut self, _now_ns: u64, bytes: u64) -> u64 {
        self.written_bytes += bytes / 2;
        bytes / 2
    }

    fn finish(&mut self, _now_ns: u64) {}

    fn transmit(&mut self, _now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let bytes = self.datagram.len();
        buffer[..bytes].copy_from_slice(&self.datagram);
        self.datagram.clear();
        (bytes > 0).then_some(Transmit {
            bytes,
            datagram_bytes: bytes,
            ecn: self.ecn,
        })
    }

    fn status(&mut self) -> Status {
        Status {
            timer_ns: NONE,
            received_bytes: self.written_bytes,
            is_established: true,
            is_finished: false,
            is_closed: false,
        }
    }

    fn sample(&mut self) -> Sample {
        Sample {
            cwnd_bytes: 7,
            ..Sample::default()
        }
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

#[derive(Default)]
struct Echoes;

impl Transport for Echoes {
    fn open(&self, cc: &str, setup: &Setup) -> Option<Result<[Box<dyn Endpoint>; 2], String>> {
        if cc != "echo" {
            return None;
        }
        if setup.ecn {
            return Some(Err("has no ECN".to_owned()));
        }
        Some(Ok([Box::new(Echo::default()), Box::new(Echo::default())]))
    }
}

static MODULE: Module = Module::of::<Echoes>();

fn loaded() -> Loaded {
    let module = std::ptr::from_ref(&MODULE).cast::<c_void>();
    // SAFETY: it is a static.
    unsafe { Loaded::new(module) }.unwrap()
}

fn setup(ecn: bool) -> Setup {
    Setup {
        seed: 1,
        mtu_bytes: 1500,
        server_sends: false,
        ecn,
        unsent_bytes: NONE,
    }
}

fn opened() -> Box<dyn Endpoint> {
    let ends = loaded().open("echo", &setup(false)).unwrap().unwrap();
    ends.into_iter().next().unwrap()
}

#[test]
fn calls_reach_the_endpoint_and_their_results_come_back() {
    let mut end = opened();
    let mut buffer = [0; 100];
    assert_eq!(end.transmit(0, &mut buffer), None);
    end.receive(0, &[1, 2, 3], 2);
    let sent = end.transmit(0, &mut buffer).unwrap();
    assert_eq!((sent.bytes, sent.ecn, &buffer[..3]), (3, 2, &[1, 2, 3][..]));
    assert_eq!(end.write(0, 10), 5);
    assert_eq!(end.status().received_bytes, 5);
    assert_eq!(end.sample().cwnd_bytes, 7);
    assert_eq!(end.failure(), None);
}

#[test]
fn a_name_is_unknown_and_a_setup_is_refused_with_its_reason() {
    assert!(loaded().open("other", &setup(false)).is_none());
    let refused = loaded().open("echo", &setup(true)).unwrap();
    assert_eq!(refused.err().unwrap(), "has no ECN");
}

#[test]
fn a_panic_ends_the_connection_and_says_why() {
    let mut end = opened();
    end.receive(0, &[255], 0);
    assert!(end.status().is_closed);
    assert_eq!(end.transmit(0, &mut [0; 100]), None);
    assert_eq!(
        end.failure().unwrap(),
        "the stack panicked: a datagram of 255"
    );
}

#[test]
fn another_version_is_refused() {
    let other = [99_u32; 64];
    // SAFETY: there is a version, and nothing else is read.
    assert!(unsafe { Loaded::new(other.as_ptr().cast()) }.is_err());
}
