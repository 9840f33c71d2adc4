//! What the front end asks for. It knows nothing of how it is done.

use fullpipe_scenario::Plan;
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
    /// Short processes that something else on the measured host starts every 100 ms, as a script does
    /// that reads its queues with tc.
    pub(crate) background_processes: u32,
    /// The far end of a real network; `None`: the path is built of namespaces.
    pub(crate) peer: Option<Peer>,
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
