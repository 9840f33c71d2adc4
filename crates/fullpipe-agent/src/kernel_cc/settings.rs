//! What a congestion control is given and what it counts, as the structs of bpf/host.h; and the names that
//! the kernel takes.

/// Longest name of a congestion control (Linux TCP_CA_NAME_MAX less the NUL).
const NAME_BYTES_MAX: usize = 15;

/// How many sockets, as the objects count them (`fp_counters` of bpf/host.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Use it now.
    pub(super) live: u32,
    /// Ever used it.
    pub(super) opened: u32,
    /// Calls for which the ring buffer had no room.
    pub(super) trace_lost: u32,
}

/// `fp_settings` of bpf/host.h: what a congestion control is.
#[derive(Clone)]
pub(super) struct Settings {
    /// Name in the registry.
    pub(super) algorithm: String,
    /// What sockets write.
    pub(super) kernel_name: String,
    /// Stored constants.
    pub(super) params: Vec<u32>,
    pub(super) flags: u32,
    pub(super) state_bytes: usize,
}

pub(super) const ALGORITHM: usize = 0;
pub(super) const KERNEL_NAME: usize = 32;
pub(super) const IS_TRACED: usize = 48;
pub(super) const TICK_US: usize = 52;
pub(super) const CONG_CONTROL_ARGS: usize = 56;
pub(super) const FLAGS: usize = 60;
pub(super) const STATE_BYTES: usize = 64;
pub(super) const PARAM_COUNT: usize = 68;
pub(super) const PARAMS: usize = 72;

impl Settings {
    /// Reads what a loader wrote into `.rodata`.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let count = word(bytes.get(..PARAMS)?, PARAM_COUNT) as usize;
        let params = bytes.get(PARAMS..PARAMS.checked_add(count.checked_mul(4)?)?)?;
        Some(Self {
            algorithm: text(&bytes[ALGORITHM..KERNEL_NAME]),
            kernel_name: text(&bytes[KERNEL_NAME..IS_TRACED]),
            params: params.chunks_exact(4).map(|chunk| word(chunk, 0)).collect(),
            flags: word(bytes, FLAGS),
            state_bytes: word(bytes, STATE_BYTES) as usize,
        })
    }
}

/// Refuses names that the kernel would cut, or that are no file names.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_good) {
        return Err(format!(
            "{name:?} is no name for a congestion control: 1 to {NAME_BYTES_MAX} letters, digits, \
             _ or -"
        ));
    }
    Ok(())
}

pub(super) fn collision(name: &str) -> String {
    format!(
        "this kernel already has a congestion control named {name}: unload that one, or choose \
         another name"
    )
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

pub(super) fn put_text(place: &mut [u8], value: &str) {
    place.fill(0);
    place[..value.len()].copy_from_slice(value.as_bytes());
}
