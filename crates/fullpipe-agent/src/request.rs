//! What the front end asks for. It knows nothing of how it is done.

use fullpipe_plan::Plan;
use serde::Deserialize;

/// One run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// What to run.
    pub(crate) plan: Plan,
    /// Whose time the run is measured in.
    pub(crate) clock: Clock,
    /// Folder of the eBPF objects, one `ALGORITHM.bpf.o` each.
    pub(crate) objects: String,
    /// Where every call of every algorithm is logged for replay; `None`: nowhere.
    pub(crate) cc_trace: Option<String>,
    /// Count what each program of the congestion controls takes; the kernel's own CUBIC is then called
    /// from programs too (bpf/kernel_cubic.c).
    #[serde(default)]
    pub(crate) cc_cost: bool,
    /// Short processes that something else on the measured host starts every 110 ms, as a script does
    /// that reads its queues with tc.
    pub(crate) background_processes: u32,
    /// Programs that load the pages; `None`: the agent does.
    pub(crate) web: Option<Web>,
    /// The far end of a real network; `None`: the path is built of namespaces.
    pub(crate) peer: Option<Peer>,
}

/// A web server and its client as command lines, in which `{address}`, `{page}`, `{last}` (object) and
/// `{connections}` stand for themselves.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Web {
    /// Serves the folder `/run/web`.
    pub(crate) server: Vec<String>,
    /// Loads a page's objects, and tells of it as curl does.
    pub(crate) client: Vec<String>,
    /// What the server puts before an object.
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
    /// What both sides know; never sent.
    pub(crate) token: String,
}

/// Whose time a run is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Clock {
    /// Instructions: nothing outside the guest takes time.
    Virtual,
    /// The wall's.
    Wall,
}
