//! How often each socket entered Recovery and undid a reduction: counted in the kernel by the programs of
//! `bpf/episodes.bpf.c`, which run as long as this process does.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder};

/// The object among those of a run or of the machine's image.
pub(crate) const OBJECT: &str = "episodes.o";
const MAP: &str = "fp_episodes";

/// Counters by socket; `Err`: why this kernel does not count.
static COUNTERS: OnceLock<Result<MapHandle, String>> = OnceLock::new();

/// Of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Episodes {
    pub(crate) recoveries: u32,
    pub(crate) undos: u32,
}

impl Episodes {
    /// Those of a socket of this process; `None` where the kernel does not count.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let counters = COUNTERS.get()?.as_ref().ok()?;
        let key = socket.as_raw_fd().to_ne_bytes();
        match counters.lookup(&key, MapFlags::ANY) {
            Ok(Some(value)) => Self::read(&value),
            // It had none.
            Ok(None) => Some(Self::default()),
            Err(_) => None,
        }
    }

    /// `struct fp_episodes`.
    fn read(value: &[u8]) -> Option<Self> {
        let word = |place: usize| {
            let bytes = value.get(place..place + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        Some(Self {
            recoveries: word(0)?,
            undos: word(4)?,
        })
    }
}

/// Makes the kernel count from now on, by the object in that folder; the first call decides. The error
/// says why it does not.
pub(crate) fn count_episodes(folder: &str) -> Result<(), &'static str> {
    match COUNTERS.get_or_init(|| attach(&format!("{folder}/{OBJECT}"))) {
        Ok(_) => Ok(()),
        Err(sentence) => Err(sentence),
    }
}

fn attach(path: &str) -> Result<MapHandle, String> {
    let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    // The caller says it; libbpf would write on standard error.
    libbpf_rs::set_print(None);
    let failed = |error: libbpf_rs::Error| format!("the kernel refuses {OBJECT}: {error}");
    let open = ObjectBuilder::default()
        .open_memory(&bytes)
        .map_err(failed)?;
    let object = open.load().map_err(failed)?;
    let mut links = Vec::new();
    for program in object.progs_mut() {
        links.push(program.attach().map_err(failed)?);
    }
    let map = object.maps().find(|map| map.name() == MAP);
    let map = map.ok_or_else(|| format!("{path}: has no {MAP}"))?;
    let counters = MapHandle::try_from(&map).map_err(failed)?;
    // A program that is attached runs until its link is closed.
    std::mem::forget(links);
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_two_words_and_nothing_shorter() {
        let mut value = 8u32.to_ne_bytes().to_vec();
        assert_eq!(Episodes::read(&value), None);
        value.extend(3u32.to_ne_bytes());
        let counted = Episodes {
            recoveries: 8,
            undos: 3,
        };
        assert_eq!(Episodes::read(&value), Some(counted));
    }
}
