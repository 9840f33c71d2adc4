//! Features of the running kernel that a load needs, and clear errors where they are missing.

use std::fs;
use std::sync::OnceLock;

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{BtfType, TypeId};
use libbpf_rs::{Btf, ReferencesType};
use nix::time::{clock_getres, ClockId};

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The running kernel's release (`uname -r`).
pub(crate) fn kernel_release() -> String {
    nix::sys::utsname::uname().map_or_else(
        |error| format!("unknown: {error}"),
        |name| name.release().to_string_lossy().into_owned(),
    )
}

/// What differs between kernels.
pub(super) struct Features {
    /// Arguments of `cong_control`: 2 before Linux 6.10, 4 since.
    pub(super) cong_control_args: u32,
    /// struct_ops can be held by a link (Linux 6.4).
    pub(super) has_links: bool,
    /// A start after idle has a callback of its own (Linux 7.1).
    pub(super) has_tx_start: bool,
    /// Length of a jiffy.
    pub(super) tick_us: u32,
}

/// The features of the running kernel, read once; the error says what is missing.
pub(super) fn probe() -> Result<&'static Features, String> {
    // Reading a kernel's types takes 60 million instructions.
    static FOUND: OnceLock<Features> = OnceLock::new();
    check_rights()?;
    match FOUND.get() {
        Some(found) => Ok(found),
        None => {
            let found = read_features()?;
            Ok(FOUND.get_or_init(|| found))
        }
    }
}

fn read_features() -> Result<Features, String> {
    let btf = Btf::from_vmlinux().map_err(|_| {
        "this kernel tells nobody its types: it has no /sys/kernel/btf/vmlinux (needs a kernel \
         built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are)"
            .to_owned()
    })?;
    if find::<Struct<'_>>(&btf, "bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(
            "this kernel takes no congestion control from eBPF (needs Linux 5.6 or later, \
             CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y)"
                .to_owned(),
        );
    }
    Ok(Features {
        cong_control_args: cong_control_args(&btf)
            .ok_or("this kernel's tcp_congestion_ops has no cong_control")?,
        has_links: find::<Struct<'_>>(&btf, "bpf_struct_ops_link").is_some(),
        has_tx_start: operation(&btf, "cwnd_event_tx_start").is_some(),
        tick_us: tick_us()?,
    })
}

/// Whether this process may load programs and list them; the error says what it lacks.
pub(super) fn check_rights() -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective >> capability & 1 == 1;
    let is_admin = has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON);
    if is_admin && has(CAP_NET_ADMIN) {
        return Ok(());
    }
    Err(
        "no right to handle congestion controls of the kernel: run as root (or with CAP_BPF, \
         CAP_PERFMON and CAP_NET_ADMIN)"
            .to_owned(),
    )
}

fn find<'btf, K: TryFrom<BtfType<'btf>>>(btf: &'btf Btf<'_>, name: &str) -> Option<K> {
    btf.type_by_name(name)
}

/// The type of a callback of `struct tcp_congestion_ops`; `None`: this kernel has no such callback.
fn operation(btf: &Btf<'_>, called: &str) -> Option<TypeId> {
    let ops: Struct<'_> = find(btf, "tcp_congestion_ops")?;
    let member = ops
        .iter()
        .find(|member| member.name.is_some_and(|name| name == called))?;
    Some(member.ty)
}

fn cong_control_args(btf: &Btf<'_>) -> Option<u32> {
    let pointer: Ptr<'_> = btf.type_by_id(operation(btf, "cong_control")?)?;
    let prototype = FuncProto::try_from(pointer.referenced_type()).ok()?;
    u32::try_from(prototype.len()).ok()
}

/// The coarse clock moves with the jiffies (Linux hrtimer_get_res(): KTIME_LOW_RES).
fn tick_us() -> Result<u32, String> {
    let step = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)
        .map_err(|error| format!("length of a jiffy: {error}"))?;
    u32::try_from(step.tv_nsec() / 1000).map_err(|error| format!("length of a jiffy: {error}"))
}
