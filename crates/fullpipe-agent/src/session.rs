//! One run, from the plan to the last frame: load, build, start, sample, stop, sum up. It knows
//! the order of things; how each is done is known in the modules that it calls.

use fullpipe_scenario::stream::Frame;

use crate::request::Request;
use crate::sink::Sink;

/// Runs the request and puts everything worth knowing into `sink`; an error is a frame too.
pub(crate) fn run(request: &Request, sink: &mut dyn Sink) {
    sink.put(&Frame::Fact("kernel".into(), kernel_release()));
    sink.put(&Frame::Progress(request.plan.duration_ns));
    sink.put(&Frame::End);
}

fn kernel_release() -> String {
    nix::sys::utsname::uname().map_or_else(
        |error| format!("unknown: {error}"),
        |name| name.release().to_string_lossy().into_owned(),
    )
}
