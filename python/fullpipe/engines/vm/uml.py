"""One run of User Mode Linux in time travel: a kernel as a program of the host, without rights and
without a clock of its own. Time passes only while it waits; what its processor does takes none. It
knows nothing of plans except which it cannot run.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fullpipe.base.cache import user_cache
from fullpipe.base.scratch import scratch
from fullpipe.engines import assets
from fullpipe.engines.child import stop
from fullpipe.engines.vm import shared
from fullpipe.engines.vm.core import reserved
from fullpipe.engines.vm.shared import Job
from fullpipe.engines.vm.watch import Ended, follow, last_words, prepare, wait
from fullpipe.plan.plan import Plan

#: The names that the agent knows (crates/fullpipe-agent/src/shared.rs).
_SHARED, _CONSOLE = "shared", "console"
#: 2020-01-01, as in QEMU.
_START_NS = 1_577_836_800 * 10**9
_ARGUMENTS = (
    # Since Linux 6.16 the guest's programs run by seccomp, which is faster than ptrace, where the
    # host allows it.
    "seccomp=auto",
    "time-travel=inf-cpu",
    f"time-travel-start={_START_NS}",
    "con=null",
    "con0=null,fd:1",
    "loglevel=4",
    "oops=panic",
    "random.trust_bootloader=on",
)
#: The kernel takes the end of its environment for the end of its address space (um_arch.c,
#: get_top_address()), so it is the same for every run; glibc moves its own variable, so there is
#: another. Before Linux 6.13 programs of the guest begin as copies of the kernel's process, in
#: which the host looks for glibc's rseq area (rseq(2)).
_ENVIRONMENT = {"HOME": "/", "GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
#: personality(2)
_ADDR_NO_RANDOMIZE = 0x0040000


def form_of(options: Mapping[str, Any], is_uml: bool) -> str:
    """How the machine's kernel gets our congestion controls, as asked for or as it can."""
    return str(options.get("cc_form") or ("module" if is_uml else "ebpf"))


def refused(plan: Plan, options: Mapping[str, Any]) -> str:
    """Why this machine cannot run a plan; empty if it can."""
    ours = assets.algorithms(plan)
    if ours and form_of(options, is_uml=True) == "ebpf":
        return (
            f"{', '.join(ours)} would be eBPF, for which User Mode Linux has no compiler; "
            "use --cc-form module, kernel:NAME or --machine qemu"
        )
    if options.get("cc_cost") or options.get("background_processes"):
        return "its processor takes no time, so that nothing can be said about work; use qemu"
    return ""


def run(
    kernel: Path,
    initramfs: Path,
    memory_mib: int,
    shared_bytes: int,
    job: Job,
    progress: Callable[[int], bool],
) -> Ended:
    """Boots a machine, waits for its end and returns the agent's output. `progress(ns)` may return
    False to stop it. Leaves no process behind."""
    with scratch("fullpipe-uml-") as folder, reserved(user_cache() / "cores") as core:
        start = shared.create(folder / _SHARED, shared_bytes, job)
        command = [
            str(kernel.resolve()),
            *_ARGUMENTS,
            f"mem={memory_mib}M",
            f"initrd={initramfs.resolve()}",
            f"hostfs={folder}",
            f"uml_dir={folder}",
            "umid=uml",
        ]
        with shared.view(folder / _SHARED) as view:
            with (folder / _CONSOLE).open("wb") as console:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=_ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    preexec_fn=lambda: _prepare(core),
                    start_new_session=True,
                )
            try:
                interrupted, silent = wait(process, view, start, progress)
            finally:
                stop(process)
                # Programs of the guest are processes of their own.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            _, end = follow(view, start)
            stream = view[start:end]
        console_text = (folder / _CONSOLE).read_text(errors="replace")
        return Ended(None, stream, last_words(console_text.splitlines()), interrupted, silent)


def _prepare(core: int | None) -> None:
    prepare(core)
    # Linux 6.12 does not ask for it itself, and would have another memory in every run.
    ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)
    # A panic ends in abort().
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
