//! What the plan sets on the sockets of a flow. It must never know when they are opened.

use std::io;
use std::os::fd::OwnedFd;

use fullpipe_plan::{Flow, FlowDirection, Plan};
use nix::sys::socket::{setsockopt, sockopt};

use crate::socket;

/// Options of a flow's two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(super) direction: FlowDirection,
    /// Fixed receive window.
    window_bytes: Option<u32>,
    /// SO_RCVLOWAT.
    low_water_bytes: u32,
    /// TCP_NOTSENT_LOWAT.
    unsent_most_bytes: Option<u32>,
    /// SO_MAX_PACING_RATE.
    pacing_most_bytes_per_s: Option<u64>,
    /// TCP_NODELAY.
    nodelay: bool,
    dscp: u8,
}

impl Options {
    pub(crate) fn of(plan: &Plan, flow: &Flow) -> Self {
        let window_bytes = flow.receive_window_bytes;
        Self {
            direction: flow.direction,
            window_bytes: window_bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX)),
            low_water_bytes: plan.receive_low_water_bytes(flow),
            unsent_most_bytes: plan.notsent_lowat_bytes(flow),
            pacing_most_bytes_per_s: flow.max_pacing_rate_bps.map(|rate_bps| rate_bps / 8),
            nodelay: flow.nodelay,
            dscp: flow.dscp,
        }
    }

    /// Limits what the sending end buffers.
    pub(super) fn limit_unsent(&self, sends: &OwnedFd) -> io::Result<()> {
        self.unsent_most_bytes
            .map_or(Ok(()), |bytes| socket::set_unsent_limit(sends, bytes))
    }

    /// Limits the rate of the sending end. What a listening socket accepts inherits it.
    pub(super) fn limit_pacing(&self, sends: &OwnedFd) -> io::Result<()> {
        self.pacing_most_bytes_per_s
            .map_or(Ok(()), |bytes| socket::limit_pacing(sends, bytes))
    }

    /// Lets short packets of the sending end leave at once. What a listening socket accepts inherits it.
    pub(super) fn set_nodelay(&self, sends: &OwnedFd) -> io::Result<()> {
        match self.nodelay {
            true => Ok(setsockopt(sends, sockopt::TcpNoDelay, &true)?),
            false => Ok(()),
        }
    }

    /// Gives the receiving end its window; only before it is connected.
    pub(super) fn fix_window(&self, receives: &OwnedFd) -> io::Result<()> {
        let Some(bytes) = self.window_bytes else {
            return Ok(());
        };
        socket::fix_receive_window(receives, bytes).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("receive window of {bytes} bytes: {error}"),
            )
        })
    }

    /// The same window again, as the kernel may have forgotten it.
    pub(super) fn limit_window(&self, receives: &OwnedFd) -> io::Result<()> {
        self.window_bytes.map_or(Ok(()), |bytes| {
            socket::limit_receive_window(receives, bytes)
        })
    }

    /// Sets how much must have arrived before the receiving end is woken.
    pub(super) fn set_low_water(&self, receives: &OwnedFd) -> io::Result<()> {
        socket::set_low_water(receives, self.low_water_bytes)
    }

    pub(super) fn set_dscp(&self, end: &OwnedFd) -> io::Result<()> {
        socket::set_dscp(end, self.dscp)
    }
}
