//! What is read from the kernel during a run.

mod burst_loss;
mod cpu;
mod host;
mod kernel_info;
mod proc_file;
mod protocols;
mod qdisc_counters;
mod qdisc_text;
mod queue;
mod socket_text;
mod tcp_info;

pub(crate) use cpu::{CpuMeter, Processors};
pub(crate) use host::{HostMeter, HOST_INTERVAL_NS, MAX_HOSTS};
pub(crate) use kernel_info::kernel_row;
pub(crate) use qdisc_counters::counters;
pub(crate) use qdisc_text::qdisc_text;
pub(crate) use queue::QueueMeter;
pub(crate) use socket_text::socket_text;
pub(crate) use tcp_info::{option, EcnMode, TcpInfo};
