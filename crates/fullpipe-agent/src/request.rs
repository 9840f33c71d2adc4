//! The request of the front end. This module must not know how it is carried out.

use fullpipe_plan::Plan;
use serde::Deserialize;

/// One run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// What to run.
    pub(crate) plan: Plan,
    /// The clock that the run is measured in.
    pub(crate) clock: Clock,
    /// Folder of the eBPF objects, one `ALGORITHM.bpf.o` each.
    pub(crate) objects: String,
    /// The file among them that is the kernel module with all algorithms of the plan; `None`: each is
    /// an eBPF object.
    #[serde(default)]
    pub(crate) module: Option<String>,
    /// Files among them that are other kernel modules (`*.ko`) or eBPF objects (`*.bpf.o`), for
    /// congestion controls that flows name as the kernel's own.
    #[serde(default)]
    pub(crate) inserted: Vec<String>,
    /// Send the private state of the kernel's own congestion controls with each sample.
    #[serde(default)]
    pub(crate) cc_states: bool,
    /// Capture the packets of both ends.
    #[serde(default)]
    pub(crate) capture: bool,
    /// File for the log of every call of every algorithm; `None`: no log.
    pub(crate) cc_trace: Option<String>,
    /// Count the instructions of the congestion controls' programs. The kernel's own CUBIC is then
    /// called from a program too (bpf/kernel_cubic.c).
    #[serde(default)]
    pub(crate) cc_cost: bool,
    /// Short processes started every 110 ms, like those of a script that reads queues with tc.
    pub(crate) background_processes: u32,
    /// Programs that load the pages; `None`: the agent loads them.
    pub(crate) web: Option<Web>,
    /// The far end of a real network; `None`: the path is built of namespaces.
    pub(crate) peer: Option<Peer>,
}

/// Command lines of a web server and its client. `{address}`, `{page}`, `{last}` (object) and
/// `{connections}` are replaced.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Web {
    /// Serves the folder `/run/web`.
    pub(crate) server: Vec<String>,
    /// Loads a page's objects and reports as curl does.
    pub(crate) client: Vec<String>,
    /// Bytes of the server's header before each object.
    pub(crate) header_bytes: u64,
}

/// An agent on another host.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    /// Name or address.
    pub(crate) host: String,
    /// Where it listens.
    pub(crate) port: u16,
    /// The shared secret, which is never sent.
    pub(crate) token: String,
}

/// The clock that a run is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Clock {
    /// The guest's, which counts instructions: work outside the guest takes no time.
    Virtual,
    /// The host's wall clock.
    Wall,
}
