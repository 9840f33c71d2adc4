//! System calls (seccomp): a list of what is allowed. All others fail with EPERM, so that a program
//! can say what it was refused; those of another architecture end the process.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    apply_filter_all_threads, BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen,
    SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::rights::Rights;

/// Memory, threads, time, signals to itself, files that Landlock restricts, and descriptors that are
/// open already. No `ioctl`: TIOCSTI types into a terminal. No `sendmsg`: it hands over descriptors.
const ALWAYS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrlimit,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setitimer, // signals to itself
    libc::SYS_sigaltstack,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Calls of `ALWAYS` that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
const ALWAYS_OLD: &[i64] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALWAYS_OLD: &[i64] = &[];

/// Where something may be written.
const WRITING: &[i64] = &[
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_pwritev,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
];

#[cfg(target_arch = "x86_64")]
const WRITING_OLD: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_creat,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const WRITING_OLD: &[i64] = &[];

/// Where processes may be started.
const PROCESSES: &[i64] = &[
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getpgid,
    libc::SYS_pipe2,
    libc::SYS_setpgid,
    libc::SYS_wait4,
    libc::SYS_waitid,
];

#[cfg(target_arch = "x86_64")]
const PROCESSES_OLD: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_getpgrp,
    libc::SYS_pipe,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const PROCESSES_OLD: &[i64] = &[];

/// Flags of clone(2) that make namespaces.
const NAMESPACES: libc::c_int = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns whether the kernel filters this process's calls.
pub(crate) fn restrict(rights: &Rights) -> io::Result<bool> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    let programs = programs(rights, arch).map_err(io::Error::other)?;
    for program in &programs {
        match apply_filter_all_threads(program) {
            Ok(()) => {}
            // seccomp(2): a kernel without filters, or a host that allows none.
            Err(Error::Seccomp(_)) => return Ok(false),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(true)
}

fn programs(rights: &Rights, arch: TargetArch) -> Result<[BpfProgram; 2], BackendError> {
    // The C library falls back to clone(2), whose flags can be seen here, if it gets ENOSYS.
    let no_clone3 = SeccompFilter::new(
        Rules::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        arch,
    )?;
    let allowed = SeccompFilter::new(
        rules(rights)?,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        arch,
    )?;
    Ok([no_clone3.try_into()?, allowed.try_into()?])
}

fn rules(rights: &Rights) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let mut allow = |calls: &[i64]| {
        rules.extend(calls.iter().map(|call| (*call, Vec::new())));
    };
    allow(ALWAYS);
    allow(ALWAYS_OLD);
    allow(&[libc::SYS_clone3]); // refused by the other filter
    if !rights.write.is_empty() {
        allow(WRITING);
        allow(WRITING_OLD);
    }
    if !rights.execute.is_empty() {
        allow(&[libc::SYS_execve]);
    }
    if rights.processes {
        allow(PROCESSES);
        allow(PROCESSES_OLD);
    }
    let threads = libc::CLONE_THREAD as u64;
    let clone = if rights.processes {
        masked(0, NAMESPACES as u64, 0)?
    } else {
        masked(0, threads, threads)?
    };
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![clone])?]);
    rules.insert(libc::SYS_fcntl, fcntl()?);
    rules.insert(libc::SYS_prlimit64, prlimit(rights)?);
    if !rights.processes && rights.execute.is_empty() {
        // abort(3) signals itself; of what is started later the number is not known here.
        let own = equal(0, u64::from(std::process::id()))?;
        rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![own])?]);
    }
    Ok(rules)
}

/// Not F_SETOWN, which has signals sent to any process of the user.
fn fcntl() -> Result<Vec<SeccompRule>, BackendError> {
    [
        libc::F_DUPFD,
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_GETLK,
        libc::F_SETLK,
        libc::F_SETLKW,
    ]
    .into_iter()
    .map(|command| SeccompRule::new(vec![equal(1, command as u64)?]))
    .collect()
}

/// Of this process only; what starts others, such as a compiler, may set its own.
fn prlimit(rights: &Rights) -> Result<Vec<SeccompRule>, BackendError> {
    let own = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 0)?;
    let mut conditions = vec![own];
    if !rights.processes {
        conditions.push(SeccompCondition::new(
            2,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::Eq,
            0,
        )?);
    }
    Ok(vec![SeccompRule::new(conditions)?])
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    let operation = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}
