//! Network namespaces without names: the kernel removes them when this process ends, however it ends.
//! One thread enters one after the other; a socket stays in the namespace in which it was opened.

use std::fs::{self, File};
use std::io;

use nix::sched::{setns, unshare, CloneFlags};

use super::netlink::Netlink;

/// A namespace.
pub(crate) struct Namespace {
    handle: File,
}

impl Namespace {
    /// The one that the calling thread is in.
    pub(crate) fn current() -> io::Result<Self> {
        Ok(Self {
            handle: File::open("/proc/thread-self/ns/net")?,
        })
    }

    /// Creates one and puts the calling thread into it.
    pub(crate) fn create() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        Self::current()
    }

    /// Puts the calling thread into it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.handle, CloneFlags::CLONE_NEWNET)?)
    }

    pub(crate) fn handle(&self) -> &File {
        &self.handle
    }
}

/// Returns the calling thread to the namespace that it came from.
pub(crate) struct Home(Namespace);

impl Home {
    pub(crate) fn remember() -> io::Result<Self> {
        Namespace::current().map(Self)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A thread that cannot return ends soon; the error cannot be reported.
        let _ = self.0.enter();
    }
}

/// A host or router: a namespace with its netlink socket and a name for messages.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) namespace: Namespace,
    pub(crate) netlink: Netlink,
}

impl Node {
    /// Creates one and stays in it.
    pub(crate) fn create(name: String) -> Result<Self, String> {
        let told = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM) => {
                "network namespaces need root (CAP_SYS_ADMIN); run this as root".to_owned()
            }
            _ => format!("{name}: making a network namespace: {error}"),
        };
        let namespace = Namespace::create().map_err(told)?;
        let netlink = Netlink::open().map_err(told)?;
        // Router advertisements and neighbour discovery would be seen in the queues.
        for scope in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            // A kernel without IPv6 has nothing to switch off.
            let _ = fs::write(path, "1");
        }
        // A socket draws another hash for its packets at each timeout (sk_rethink_txhash()). The hash survives
        // veth, so that a router's fair queue would take them for another flow; a router on a wire hashes
        // headers. Kernels before 5.18 have no such switch.
        let _ = fs::write("/proc/sys/net/core/txrehash", "0");
        Ok(Self {
            name,
            namespace,
            netlink,
        })
    }

    /// Puts the calling thread into it.
    pub(crate) fn enter(&self) -> Result<(), String> {
        self.namespace
            .enter()
            .map_err(|error| format!("{}: entering its namespace: {error}", self.name))
    }

    /// Sets `/proc/sys/net/ipv4/KEY` of the namespace that the thread is in.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), String> {
        fs::write(format!("/proc/sys/net/ipv4/{key}"), value)
            .map_err(|error| format!("{}: net.ipv4.{key} = {value}: {error}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_a_node_keeps_its_hash_when_a_timer_expires() {
        let other_thread = std::thread::spawn(|| {
            // Without the rights of root there is nothing to look at.
            let node = Node::create("a node".to_owned()).ok()?;
            node.enter().ok()?;
            fs::read_to_string("/proc/sys/net/core/txrehash").ok()
        });
        let set = other_thread.join().expect("no panic");
        assert_eq!(set.as_deref().unwrap_or("0").trim(), "0");
    }
}
