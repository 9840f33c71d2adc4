//! Which congestion control of the kernel each flow gets, and the state that it reports. Those of
//! `cc/` are loaded for the run, once for each set of constants, whose meaning it must not know.

use std::fs::{self, File};
use std::io::BufWriter;
use std::os::fd::{AsFd, OwnedFd};

use fullpipe_cc::flags;
use fullpipe_net::{derive_seed, purpose};
use fullpipe_plan::stream::Frame;
use fullpipe_plan::{CcChoice, CcFacts, Flow};

use crate::kernel_cc::{
    ca_priv, costs, count, insert, insert_other, load, register_object, Code, Loaded, Tracer,
    Wanted,
};
use crate::request::Request;
use crate::sample::{kernel_row, TcpInfo};
use crate::socket;

/// The congestion controls of a run.
pub(crate) struct Congestion {
    /// What was loaded, in the order in which the flows name it.
    loaded: Vec<Loaded>,
    /// Of each flow, then each page, then each group of traffic.
    flows: Vec<Chosen>,
    tracer: Option<Tracer>,
    /// The kernel's own algorithms, called from eBPF programs whose instructions are counted.
    counted: Option<Loaded>,
    is_counting: bool,
    /// Of the kernel's own algorithms.
    wants_states: bool,
}

/// What a flow runs.
struct Chosen {
    /// The kernel's name for it.
    name: String,
    /// Its place among what was loaded; `None`: the kernel has it.
    place: Option<usize>,
    /// Whether its receiver runs it too, to echo the mark of each packet.
    is_at_both_ends: bool,
}

/// The kernel's own that can be counted, and the object that calls it.
const COUNTED: (&str, &str) = ("cubic", "kernel-cubic.o");

impl Congestion {
    /// Loads what the flows sent from here need and `ready` lacks, under names that no other run on
    /// this kernel uses. Algorithms that are traced or counted are loaded for this run only.
    pub(crate) fn load(
        request: &Request,
        ready: &mut Vec<Loaded>,
        is_sent_here: impl Fn(&Flow) -> bool,
    ) -> Result<Self, String> {
        let mut congestion = Self {
            loaded: Vec::new(),
            flows: Vec::new(),
            tracer: None,
            counted: None,
            is_counting: request.cc_cost,
            wants_states: request.cc_states,
        };
        if request.cc_cost {
            count()?;
        }
        if let Some(file) = &request.module {
            let uses_ring = request.plan.host.cc_facts == CcFacts::Stock;
            insert(&format!("{}/{file}", request.objects), uses_ring)?;
        }
        for file in &request.inserted {
            let path = format!("{}/{file}", request.objects);
            match file.ends_with(".bpf.o") {
                true => register_object(&path)?,
                false => insert_other(&path)?,
            }
        }
        let flows = request.plan.flows.iter();
        let pages = request.plan.pages.iter().map(|page| (&page.cc, true));
        let traffic = request.plan.traffic.iter().map(|group| (&group.cc, true));
        let here = flows.map(|flow| (&flow.cc, is_sent_here(flow)));
        let mut sets = Vec::new();
        for (cc, is_here) in here.chain(pages).chain(traffic) {
            let chosen = match &cc.algorithm {
                Some(algorithm) if is_here => {
                    let place = congestion.place_of(cc, algorithm, &mut sets, request, ready)?;
                    congestion.loaded_as(place)
                }
                _ => congestion.kernels_own(cc, request)?,
            };
            congestion.flows.push(chosen);
        }
        if let Some(path) = &request.cc_trace {
            congestion.tracer = Some(congestion.trace(path)?);
        }
        Ok(congestion)
    }

    /// The place of a set among what was loaded, of which `sets` are the first; loads it if it is not there.
    fn place_of<'a>(
        &mut self,
        cc: &'a CcChoice,
        algorithm: &str,
        sets: &mut Vec<&'a CcChoice>,
        request: &Request,
        ready: &mut Vec<Loaded>,
    ) -> Result<usize, String> {
        let is_same = |set: &&CcChoice| set.algorithm == cc.algorithm && set.params == cc.params;
        if let Some(place) = sets.iter().position(is_same) {
            return Ok(place);
        }
        sets.push(cc);
        self.add(algorithm, &cc.params, request, ready)
    }

    fn loaded_as(&self, place: usize) -> Chosen {
        let loaded = &self.loaded[place];
        Chosen {
            name: loaded.kernel_name().to_owned(),
            place: Some(place),
            is_at_both_ends: loaded.wants(flags::ECHOES_CE),
        }
    }

    /// Loads a set, or takes it from those that are ready; returns its place.
    fn add(
        &mut self,
        algorithm: &str,
        params: &[u32],
        request: &Request,
        ready: &mut Vec<Loaded>,
    ) -> Result<usize, String> {
        let place = self.loaded.len();
        // What is ready is eBPF, neither traced nor counted.
        let is_own = request.cc_cost || request.cc_trace.is_some() || request.module.is_some();
        let is_it = |loaded: &Loaded| loaded.is(algorithm, params);
        let found = ready.iter().position(is_it).filter(|_| !is_own);
        let loaded = match found {
            Some(place) => ready.swap_remove(place),
            None => {
                let name = format!("fp{place}_{}", std::process::id());
                load_set(request, algorithm, params, &name)?
            }
        };
        // 0 would mean the kernel's own random numbers.
        let seed = derive_seed(request.plan.seed, purpose::CC, place as u32) as u32;
        loaded.set_seed(seed.max(1))?;
        self.loaded.push(loaded);
        Ok(place)
    }

    /// An algorithm that the kernel has.
    fn kernels_own(&mut self, cc: &CcChoice, request: &Request) -> Result<Chosen, String> {
        let name = cc.name.strip_prefix("kernel:").unwrap_or(&cc.name);
        let name = match request.cc_cost && name == COUNTED.0 {
            true => self.counted(request)?,
            false => name.to_owned(),
        };
        Ok(Chosen {
            is_at_both_ends: socket::needs_ecn(&name),
            name,
            place: None,
        })
    }

    /// The name under which the kernel's own is called from programs.
    fn counted(&mut self, request: &Request) -> Result<String, String> {
        if self.counted.is_none() {
            let path = format!("{}/{}", request.objects, COUNTED.1);
            let object = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
            self.counted = Some(load(&Wanted {
                code: Code::Object(&object),
                algorithm: COUNTED.0,
                kernel_name: &format!("counted_{}", std::process::id()),
                params: &[],
                is_traced: false,
            })?);
        }
        let name = self.counted.as_ref().map(Loaded::kernel_name);
        Ok(name.unwrap_or_default().to_owned())
    }

    fn trace(&self, path: &str) -> Result<Tracer, String> {
        let file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
        let all: Vec<&Loaded> = self.loaded.iter().collect();
        Tracer::start(&all, Box::new(BufWriter::new(file)))
    }

    /// The kernel's name for a flow's algorithm.
    pub(crate) fn name(&self, flow: usize) -> &str {
        &self.flows[flow].name
    }

    /// Whether TCP paces the flow without fq: algorithms that own the window request it.
    pub(crate) fn paces(&self, flow: usize) -> bool {
        let chosen = &self.flows[flow];
        match chosen.place {
            Some(place) => self.loaded[place].wants(flags::OWNS_CWND),
            None => chosen.name.starts_with("bbr"),
        }
    }

    /// Whether its receiver runs it too, to echo the mark of each packet.
    pub(crate) fn is_at_both_ends(&self, flow: usize) -> bool {
        self.flows[flow].is_at_both_ends
    }

    /// Names the algorithm of `cc/` that a flow runs, for the reader of its state.
    pub(crate) fn introduction(&self, flow: usize) -> Option<Frame> {
        let loaded = &self.loaded[self.flows[flow].place?];
        Some(Frame::CcAlgorithm {
            flow_id: flow as u64,
            algorithm: loaded.algorithm().to_owned(),
            params: loaded.params().to_vec(),
        })
    }

    /// The state of a connected flow's algorithm, or for the kernel's own algorithms TCP_CC_INFO and, if
    /// the request wants them, their private bytes.
    pub(crate) fn ask(
        &mut self,
        flow: usize,
        socket: &OwnedFd,
        info: &TcpInfo,
        t_us: u64,
    ) -> Result<Frame, String> {
        let flow_id = flow as u64;
        if let Some(place) = self.flows[flow].place {
            if let Some(state) = self.loaded[place].state(socket.as_fd())? {
                return Ok(Frame::CcState {
                    t_us,
                    flow_id,
                    state: state.to_vec(),
                });
            }
        }
        let row = kernel_row(socket, info, t_us, flow_id);
        let state = self.wants_states.then(|| ca_priv(socket.as_fd())).flatten();
        Ok(match state {
            Some(state) => Frame::CcPrivate { row, state },
            None => Frame::Cc(row),
        })
    }

    /// The instructions of each program as JSON, if they were counted.
    pub(crate) fn cost(&self) -> Option<Frame> {
        let text = serde_json::to_string(&costs()).unwrap_or_default();
        self.is_counting
            .then(|| Frame::Fact("cc_cost".into(), text))
    }

    /// Ends the trace; its sockets must have been closed before.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.tracer.take().map_or(Ok(()), |tracer| {
            tracer.finish().map_err(|error| format!("trace: {error}"))
        })
    }
}

/// A plan from another host names algorithms (`bbr3`, `mine@0123456789ab`), never files.
fn check_name(algorithm: &str) -> Result<(), String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_@".contains(&byte);
    match !algorithm.is_empty() && algorithm.bytes().all(is_word) {
        true => Ok(()),
        false => Err(format!(
            "cc.algorithm: {algorithm:?}: must be a name of letters, digits and _, such as bbr3"
        )),
    }
}

fn load_set(
    request: &Request,
    algorithm: &str,
    params: &[u32],
    name: &str,
) -> Result<Loaded, String> {
    check_name(algorithm)?;
    let path = format!("{}/{algorithm}.bpf.o", request.objects);
    let object = match request.module {
        Some(_) => Vec::new(),
        None => fs::read(&path).map_err(|error| format!("{path}: {error}"))?,
    };
    load(&Wanted {
        code: match request.module {
            Some(_) => Code::Module,
            None => Code::Object(&object),
        },
        algorithm,
        kernel_name: name,
        params,
        is_traced: request.cc_trace.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_a_name_and_never_a_path() {
        for name in ["bbr3", "cubic", "mine@0123456789ab"] {
            check_name(name).expect("a name");
        }
        for path in ["../../tmp/evil", "/tmp/evil", "..", "", "a\0b", "a b"] {
            assert!(check_name(path).is_err());
        }
    }
}
