//! What is read from the kernel during a run.

mod burst_loss;
mod cpu;
mod host;
mod kernel_info;
mod proc_file;
mod protocols;
mod qdisc_counters;
mod queue;
mod tcp_info;

pub(crate) use cpu::{CpuMeter, Processors};
pub(crate) use host::{HostMeter, HOST_INTERVAL_NS};
pub(crate) use kernel_info::kernel_row;
pub(crate) use qdisc_counters::counters;
pub(crate) use queue::QueueMeter;
pub(crate) use tcp_info::{option, EcnMode, TcpInfo};
