//! Does a request: on this kernel, or over the network between this host and another.

use fullpipe_plan::stream::Frame;

use crate::kernel_cc::{watch_sockets, Loaded};
use crate::request::Request;
use crate::sample::Processors;
use crate::session::{kernel_fact, run_here};
use crate::sink::Sink;
use crate::two_hosts;

/// Carries out the request and puts all results into `sink`; an error is a frame too. `ready` has the
/// congestion controls that are loaded already.
pub(crate) fn carry_out(
    request: &Request,
    processors: Processors,
    ready: &mut Vec<Loaded>,
    sink: &mut dyn Sink,
) {
    sink.put(&kernel_fact());
    if request.background_processes > 0 {
        let count = request.background_processes.to_string();
        sink.put(&Frame::Fact("background_processes".into(), count));
    }
    let done = match &request.peer {
        None => run_here(request, processors, ready, sink),
        Some(peer) => two_hosts::run(request, peer, sink),
    };
    if let Err(reason) = watch_sockets(&request.objects, request.cc_states) {
        sink.put(&Frame::Fact(
            "no recoveries and undos".into(),
            reason.into(),
        ));
    }
    sink.put(&done.map_or_else(Frame::Failure, |()| Frame::End));
}
