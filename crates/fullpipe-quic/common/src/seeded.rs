//! Random numbers of the stacks, which take them from `rand::rng()` where they offer no seed. Its generator
//! is seeded once a thread by `getrandom`, which ../.cargo/config.toml directs here: what is called in a thread
//! of its own draws from a seed of its own. Keys of TLS come from ring, which this does not reach; they
//! change no packet's size.

use std::cell::Cell;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), from its state.
pub struct SplitMix(pub u64);

impl SplitMix {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 32) as u8
    }

    /// Fills a buffer with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.byte());
    }
}

#[no_mangle]
unsafe extern "Rust" fn __getrandom_v03_custom(
    destination: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: getrandom passes a buffer with its length.
    unsafe { fill(destination, length) };
    Ok(())
}

/// Fills a buffer, which may be uninitialised, with random bytes of this thread.
///
/// # Safety
/// `destination` is a buffer of this length.
pub unsafe fn fill(destination: *mut u8, length: usize) {
    let mut random = SplitMix(STATE.get());
    for position in 0..length {
        // SAFETY: it is within the buffer.
        unsafe { destination.add(position).write(random.byte()) };
    }
    STATE.set(random.0);
}

/// Adds a seed to the sequence of this thread.
pub fn mix(seed: u64) {
    STATE.set(STATE.get() ^ seed);
}

/// What `call` returns, with all its random numbers drawn from this seed.
pub fn with_seed<T: Send>(seed: u64, call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            STATE.set(seed);
            call()
        });
        match thread.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// 32 bytes of a seed, for generators that take one.
pub fn bytes(seed: u64, end: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&end.to_le_bytes());
    bytes
}
