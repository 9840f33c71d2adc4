//! Tells another process where this one broke, and ends with that process.

use std::fmt::Write;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::OnceLock;

use libc::{c_int, c_void, sigaction, siginfo_t, ucontext_t};

/// Ends of the process, and the question where it is (SIGUSR1).
const SIGNALS: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGUSR1,
];
const STACK_BYTES: usize = 64 * 1024;

static REPORTS: AtomicI32 = AtomicI32::new(-1);
/// What was there before, in the order of `SIGNALS`.
static BEFORE: OnceLock<[sigaction; 7]> = OnceLock::new();

/// From now on a fault of this thread writes a line to `reports` before it ends the process: `fault`,
/// the signal's number, and in hexadecimal digits the addresses of the code, of the stack, and of what
/// was touched. So does SIGUSR1. Handlers that are there already are called afterwards.
pub fn report_faults(reports: RawFd) -> io::Result<()> {
    REPORTS.store(reports, Ordering::Release);
    let stack = Box::leak(vec![0u8; STACK_BYTES].into_boxed_slice());
    let stack = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: STACK_BYTES,
    };
    // SAFETY: the stack and the handler live as long as the process.
    unsafe {
        if libc::sigaltstack(&stack, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut before: [sigaction; 7] = std::mem::zeroed();
        for (signal, before) in SIGNALS.iter().zip(&mut before) {
            libc::sigaction(*signal, std::ptr::null(), before);
        }
        if BEFORE.set(before).is_err() {
            return Ok(());
        }
        for signal in SIGNALS {
            let mut action: sigaction = std::mem::zeroed();
            action.sa_sigaction =
                on_fault as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            if libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Ends this process, from a thread of its own, when the other end of a socket is closed.
pub fn end_with(socket: RawFd) {
    std::thread::spawn(move || {
        let mut closed = libc::pollfd {
            fd: socket,
            events: libc::POLLRDHUP,
            revents: 0,
        };
        // SAFETY: it fills the structure; an interrupted wait begins again.
        while unsafe { libc::poll(&mut closed, 1, -1) } < 1 {}
        // SAFETY: ends all threads.
        unsafe { libc::_exit(1) };
    });
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives both, because of SA_SIGINFO.
    let (code, stack) = unsafe { place(&*context.cast::<ucontext_t>()) };
    // SAFETY: as above; meaningless where the signal has no address.
    let touched = unsafe { (*info).si_addr() } as usize;
    let mut line = Line::default();
    let _ = writeln!(line, "fault {signal} {code:x} {stack:x} {touched:x}");
    let reports = REPORTS.load(Ordering::Acquire);
    // SAFETY: these bytes are written.
    unsafe { libc::write(reports, line.bytes.as_ptr().cast(), line.length) };
    let place = SIGNALS.iter().position(|one| *one == signal);
    let Some(before) = place.and_then(|place| Some(&BEFORE.get()?[place])) else {
        return;
    };
    let handler = before.sa_sigaction;
    if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
        // SAFETY: it was installed as such; those with SA_SIGINFO take the others' arguments as well.
        unsafe {
            let call: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                std::mem::transmute(handler);
            call(signal, info, context);
        }
    }
    if signal != libc::SIGUSR1 {
        // SAFETY: the instruction is repeated, and ends the process as it would have.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Where the code and the stack were.
#[cfg(target_arch = "x86_64")]
fn place(context: &ucontext_t) -> (u64, u64) {
    let registers = &context.uc_mcontext.gregs;
    (
        registers[libc::REG_RIP as usize] as u64,
        registers[libc::REG_RSP as usize] as u64,
    )
}

/// Where the code and the stack were.
#[cfg(target_arch = "aarch64")]
fn place(context: &ucontext_t) -> (u64, u64) {
    (context.uc_mcontext.pc, context.uc_mcontext.sp)
}

/// Where the code and the stack were: not known of this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn place(_context: &ucontext_t) -> (u64, u64) {
    (0, 0)
}

/// Text without an allocation: the heap may be what broke.
struct Line {
    bytes: [u8; 96],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            bytes: [0; 96],
            length: 0,
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let rest = &mut self.bytes[self.length..];
        let count = rest.len().min(text.len());
        rest[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}
