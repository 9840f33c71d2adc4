//! The contract as a table of C functions. Rust's own calling convention and layout hold for one build
//! only, and a module and what loads it are two.

use std::any::Any;
use std::ffi::{c_void, CStr};
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

use crate::contract::{Endpoint, Sample, Setup, Status, Transmit, Transport, NONE};

/// The name of the Python capsule that holds a [`Module`].
pub const CAPSULE: &CStr = c"fullpipe.transport";

/// Changes with the contract.
const VERSION: u32 = 2;
const TEXT_BYTES: usize = 512;

/// A message of limited length.
#[repr(C)]
struct Text {
    length: usize,
    bytes: [u8; TEXT_BYTES],
}

impl Text {
    const EMPTY: Self = Self {
        length: 0,
        bytes: [0; TEXT_BYTES],
    };

    fn set(&mut self, text: &str) {
        self.length = text.len().min(TEXT_BYTES);
        self.bytes[..self.length].copy_from_slice(&text.as_bytes()[..self.length]);
    }

    fn get(&self) -> String {
        let length = self.length.min(TEXT_BYTES);
        String::from_utf8_lossy(&self.bytes[..length]).into_owned()
    }
}

/// What became of a request to open a connection.
#[repr(C)]
#[derive(PartialEq, Eq)]
enum Opened {
    Yes,
    Unknown,
    Refused,
}

/// A transport of another library.
#[repr(C)]
pub struct Module {
    version: u32,
    sizes: [usize; 3],
    open: unsafe extern "C" fn(
        *const u8,
        usize,
        *const Setup,
        *mut [*mut End; 2],
        *mut Text,
    ) -> Opened,
    close: unsafe extern "C" fn(*mut End),
    start: unsafe extern "C" fn(*mut End, u64),
    receive: unsafe extern "C" fn(*mut End, u64, *const u8, usize, u8),
    on_timer: unsafe extern "C" fn(*mut End, u64),
    write: unsafe extern "C" fn(*mut End, u64, u64) -> u64,
    finish: unsafe extern "C" fn(*mut End, u64),
    transmit: unsafe extern "C" fn(*mut End, u64, *mut u8, usize) -> Transmit,
    status: unsafe extern "C" fn(*mut End) -> Status,
    sample: unsafe extern "C" fn(*mut End) -> Sample,
    failure: unsafe extern "C" fn(*mut End, *mut Text),
}

const SIZES: [usize; 3] = [size_of::<Module>(), size_of::<Sample>(), size_of::<Setup>()];

/// An endpoint on the module's side. A panic ends its connection instead of the program.
struct End {
    endpoint: Box<dyn Endpoint>,
    panic: Option<String>,
}

impl End {
    fn call<T>(&mut self, otherwise: T, call: impl FnOnce(&mut dyn Endpoint) -> T) -> T {
        if self.panic.is_some() {
            return otherwise;
        }
        match catch_unwind(AssertUnwindSafe(|| call(self.endpoint.as_mut()))) {
            Ok(value) => value,
            Err(payload) => {
                self.panic = Some(format!("the stack panicked: {}", message(payload.as_ref())));
                otherwise
            }
        }
    }
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

impl Module {
    /// The table of a transport.
    #[must_use]
    pub const fn of<T: Transport + Default>() -> Self {
        Self {
            version: VERSION,
            sizes: SIZES,
            open: open::<T>,
            close,
            start,
            receive,
            on_timer,
            write,
            finish,
            transmit,
            status,
            sample,
            failure,
        }
    }
}

unsafe extern "C" fn open<T: Transport + Default>(
    name: *const u8,
    length: usize,
    setup: *const Setup,
    ends: *mut [*mut End; 2],
    error: *mut Text,
) -> Opened {
    // SAFETY: `Loaded::open` passes a name with its length, and references.
    let (name, setup, ends, error) = unsafe {
        (
            slice::from_raw_parts(name, length),
            &*setup,
            &mut *ends,
            &mut *error,
        )
    };
    let made = catch_unwind(|| T::default().open(std::str::from_utf8(name).ok()?, setup));
    match made {
        Ok(Some(Ok(made))) => {
            *ends = made.map(|endpoint| {
                Box::into_raw(Box::new(End {
                    endpoint,
                    panic: None,
                }))
            });
            Opened::Yes
        }
        Ok(None) => Opened::Unknown,
        Ok(Some(Err(text))) => {
            error.set(&text);
            Opened::Refused
        }
        Err(payload) => {
            error.set(message(payload.as_ref()));
            Opened::Refused
        }
    }
}

unsafe extern "C" fn close(end: *mut End) {
    // SAFETY: `open` made it, and `LoadedEnd`, its only owner, is dropped.
    drop(unsafe { Box::from_raw(end) });
}

unsafe extern "C" fn start(end: *mut End, now_ns: u64) {
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call((), |endpoint| endpoint.start(now_ns));
}

unsafe extern "C" fn receive(end: *mut End, now_ns: u64, data: *const u8, bytes: usize, ecn: u8) {
    // SAFETY: `LoadedEnd` passes a slice as a pointer with its length.
    let datagram = unsafe { slice::from_raw_parts(data, bytes) };
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call((), |endpoint| endpoint.receive(now_ns, datagram, ecn));
}

unsafe extern "C" fn on_timer(end: *mut End, now_ns: u64) {
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call((), |endpoint| endpoint.on_timer(now_ns));
}

unsafe extern "C" fn write(end: *mut End, now_ns: u64, bytes: u64) -> u64 {
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call(0, |endpoint| endpoint.write(now_ns, bytes))
}

unsafe extern "C" fn finish(end: *mut End, now_ns: u64) {
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call((), |endpoint| endpoint.finish(now_ns));
}

unsafe extern "C" fn transmit(end: *mut End, now_ns: u64, data: *mut u8, bytes: usize) -> Transmit {
    // SAFETY: `LoadedEnd` passes a slice as a pointer with its length.
    let buffer = unsafe { slice::from_raw_parts_mut(data, bytes) };
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    let sent = unsafe { &mut *end }.call(None, |endpoint| endpoint.transmit(now_ns, buffer));
    sent.unwrap_or_default()
}

unsafe extern "C" fn status(end: *mut End) -> Status {
    let closed = Status {
        timer_ns: NONE,
        received_bytes: 0,
        is_established: false,
        is_finished: false,
        is_closed: true,
    };
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call(closed, |endpoint| endpoint.status())
}

unsafe extern "C" fn sample(end: *mut End) -> Sample {
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    unsafe { &mut *end }.call(Sample::default(), |endpoint| endpoint.sample())
}

unsafe extern "C" fn failure(end: *mut End, text: *mut Text) {
    // SAFETY: `LoadedEnd` owns what `open` made, and uses it from one place at a time.
    let end = unsafe { &mut *end };
    let failure = end.panic.clone().or_else(|| end.endpoint.failure());
    // SAFETY: `LoadedEnd` passes a reference.
    unsafe { &mut *text }.set(&failure.unwrap_or_default());
}

/// A module that was loaded.
#[derive(Clone, Copy)]
pub struct Loaded(&'static Module);

impl Loaded {
    /// Uses the module at this address.
    ///
    /// # Errors
    /// If it was built for another version of the contract.
    ///
    /// # Safety
    /// There is a [`Module`] at this address, of this version or another, for as long as the program runs.
    pub unsafe fn new(module: *const c_void) -> Result<Self, String> {
        let module = module.cast::<Module>();
        // SAFETY: the version is the first field of every version.
        let version = unsafe { *module.cast::<u32>() };
        // SAFETY: the version says what is there.
        if version != VERSION || unsafe { (*module).sizes } != SIZES {
            return Err("it was built for another version of fullpipe".to_owned());
        }
        // SAFETY: as promised.
        Ok(Self(unsafe { &*module }))
    }
}

impl Transport for Loaded {
    fn open(&self, cc: &str, setup: &Setup) -> Option<Result<[Box<dyn Endpoint>; 2], String>> {
        let mut ends = [std::ptr::null_mut(); 2];
        let mut error = Text::EMPTY;
        // SAFETY: the module's function is given what it expects.
        let opened = unsafe { (self.0.open)(cc.as_ptr(), cc.len(), setup, &mut ends, &mut error) };
        match opened {
            Opened::Yes => {
                let module = self.0;
                Some(Ok(ends.map(|end| {
                    Box::new(LoadedEnd { module, end }) as Box<dyn Endpoint>
                })))
            }
            Opened::Unknown => None,
            Opened::Refused => Some(Err(error.get())),
        }
    }
}

/// An endpoint of a module.
struct LoadedEnd {
    module: &'static Module,
    end: *mut End,
}

impl Drop for LoadedEnd {
    fn drop(&mut self) {
        // SAFETY: `open` made it, and this is its only owner.
        unsafe { (self.module.close)(self.end) }
    }
}

impl Endpoint for LoadedEnd {
    fn start(&mut self, now_ns: u64) {
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.start)(self.end, now_ns) }
    }

    fn receive(&mut self, now_ns: u64, datagram: &[u8], ecn: u8) {
        let (data, bytes) = (datagram.as_ptr(), datagram.len());
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.receive)(self.end, now_ns, data, bytes, ecn) }
    }

    fn on_timer(&mut self, now_ns: u64) {
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.on_timer)(self.end, now_ns) }
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.write)(self.end, now_ns, bytes) }
    }

    fn finish(&mut self, now_ns: u64) {
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.finish)(self.end, now_ns) }
    }

    fn transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let (data, bytes) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the endpoint lives until `self` is dropped.
        let sent = unsafe { (self.module.transmit)(self.end, now_ns, data, bytes) };
        (sent.bytes > 0).then_some(sent)
    }

    fn status(&mut self) -> Status {
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.status)(self.end) }
    }

    fn sample(&mut self) -> Sample {
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.sample)(self.end) }
    }

    fn failure(&self) -> Option<String> {
        let mut text = Text::EMPTY;
        // SAFETY: the endpoint lives until `self` is dropped.
        unsafe { (self.module.failure)(self.end, &mut text) };
        Some(text.get()).filter(|text| !text.is_empty())
    }
}
