//! What the kernel's TCP_INFO does not tell of a socket: how often it entered Recovery and undid a
//! reduction, and the private state of its congestion control. The programs of `bpf/sockets.bpf.c`, which
//! run as long as this process does, keep it. It must not know what any state means.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder};

/// The object among those of a run or of the machine's image.
pub(crate) const OBJECT: &str = "sockets.o";

/// The program that keeps private states.
const OF_STATES: &str = "fp_info";

/// Facts by socket; `Err`: why this kernel does not tell them.
static MAPS: OnceLock<Result<Maps, String>> = OnceLock::new();

struct Maps {
    episodes: MapHandle,
    ca_priv: MapHandle,
}

/// Of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Episodes {
    pub(crate) recoveries: u32,
    pub(crate) undos: u32,
}

impl Episodes {
    /// Those of a socket of this process; `None` where the kernel does not count.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let maps = MAPS.get()?.as_ref().ok()?;
        match value_of(&maps.episodes, socket) {
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

/// What inet_csk_ca() had when TCP_INFO was last asked for of a socket of this process, and zeros behind
/// it; `None` where the kernel does not tell.
pub(crate) fn ca_priv(socket: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let maps = MAPS.get()?.as_ref().ok()?;
    value_of(&maps.ca_priv, socket).ok()?
}

fn value_of(map: &MapHandle, socket: BorrowedFd<'_>) -> libbpf_rs::Result<Option<Vec<u8>>> {
    map.lookup(&socket.as_raw_fd().to_ne_bytes(), MapFlags::ANY)
}

/// Makes the kernel tell from now on, by the object in that folder; the first call decides. Without
/// `with_states` nothing is kept for the sockets of others, of which any program may ask TCP_INFO. The
/// error says why the kernel does not tell.
pub(crate) fn watch_sockets(folder: &str, with_states: bool) -> Result<(), &'static str> {
    match MAPS.get_or_init(|| attach(&format!("{folder}/{OBJECT}"), with_states)) {
        Ok(_) => Ok(()),
        Err(sentence) => Err(sentence),
    }
}

fn attach(path: &str, with_states: bool) -> Result<Maps, String> {
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
        if with_states || program.name() != OF_STATES {
            links.push(program.attach().map_err(failed)?);
        }
    }
    let handle = |name: &str| {
        let map = object.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| format!("{path}: has no {name}"))?;
        MapHandle::try_from(&map).map_err(failed)
    };
    let maps = Maps {
        episodes: handle("fp_episodes")?,
        ca_priv: handle("fp_ca_priv")?,
    };
    // A program that is attached runs until its link is closed.
    std::mem::forget(links);
    Ok(maps)
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
