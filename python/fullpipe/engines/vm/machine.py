"""One virtual machine: QEMU with instruction counting, so that time in the guest is the number of
instructions it ran and nothing else. It knows nothing of plans; it carries a request in and bytes
out, through memory that both sides see.
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fullpipe import _native
from fullpipe.cache import user_cache
from fullpipe.engines import assets
from fullpipe.engines.child import die_with_parent, stop
from fullpipe.engines.scratch import scratch
from fullpipe.engines.vm.core import confine, reserved
from fullpipe.engines.vm.kernels import Kernel
from fullpipe.engines.vm.vmlinux import unpacked
from fullpipe.errors import RunError

PROGRAM = "qemu-system-x86_64"
#: The request's place in the shared memory (crates/fullpipe-agent/src/vm.rs).
_MAGIC = b"fullpipe"
_STREAM_ALIGNMENT = 4096
#: A second of the guest is at most 10^9 instructions, some 10 s of a slow core, and the guest
#: speaks every tenth of a second: who is silent for so much of a core's time hangs.
_SILENCE_CPU_S = 120.0
#: So does who is silent for so long and wants no core; who waits for one on a busy host does not.
_SILENCE_S = 180.0
_POLL_S = 0.1
_LAST_WORDS = 12

#: No random bits from the host, no clock of the host, no device that the run does not need. The
#: machine type is of a time when QEMU did not yet hand a random seed to the guest.
_ARGUMENTS = (
    "-machine", "pc-i440fx-7.1",
    "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
    "-accel", "tcg,thread=single",
    "-icount", "shift=0,sleep=off",
    "-cpu", "max,-rdrand,-rdseed",
    "-smp", "1",
    "-rtc", "base=2020-01-01T00:00:00,clock=vm",
    "-name", "fullpipe,debug-threads=on",
)  # fmt: skip
#: Every failure ends the machine; nothing is random; what costs instructions for the safety of a
#: machine with users, or tests at boot what the run does not use, is off.
_KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=4 panic=-1 oops=panic softlockup_panic=1 reboot=t "
    "nokaslr random.trust_cpu=off tsc=reliable clocksource=tsc "
    "mitigations=off init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off lsm= "
    "psi=0 nolapic "  # accounting that nobody reads; half of the time that booting takes
    "cryptomgr.notests initcall_blacklist=jent_mod_init,load_system_certificate_list"
)


@dataclass(frozen=True)
class Ended:
    """What a machine left: the agent's stream, and the last lines of its console."""

    stream: bytes
    console: list[str]
    #: Asked to end before it was done.
    interrupted: bool
    #: Fell silent and was stopped.
    silent: bool


def run(
    kernel: Kernel,
    image: bytes,
    request: bytes,
    seed: int,
    memory_mib: int,
    stream_mib: int,
    progress: Callable[[int], bool],
) -> Ended:
    """Boots, waits for the end and returns what was written. `progress(ns)` may return False to
    stop the machine. No process is left behind, whatever happens. Raises RunError where QEMU
    itself fails."""
    with (
        scratch("fullpipe-vm-") as folder,
        reserved(user_cache() / "cores") as core,
    ):
        (folder / "initrd").write_bytes(image)
        start, size = _share(folder / "shared", request, stream_mib)
        command = [
            PROGRAM, *_ARGUMENTS,
            "-m", f"{memory_mib}M",
            "-seed", str(seed % 2**32),
            "-kernel", str(unpacked(kernel.image, user_cache() / "vmlinux")),
            "-initrd", str(folder / "initrd"),
            "-append", _KERNEL_ARGUMENTS,
            "-object", f"memory-backend-file,id=shared,share=on,size={size},"
            f"mem-path={folder / 'shared'}",
            "-device", "ivshmem-plain,memdev=shared",
            "-chardev", f"file,id=console,path={folder / 'console'}",
            "-serial", "chardev:console",
        ]  # fmt: skip
        with (folder / "shared").open("rb") as file, (folder / "errors").open("wb") as errors:
            view = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "LD_PRELOAD": str(assets.turnstile())},
                preexec_fn=lambda: _prepare(core),
                start_new_session=True,
            )
            try:
                interrupted, silent = _wait(process, view, start, progress)
            finally:
                stop(process)
            if process.returncode not in (0, -signal.SIGTERM, -signal.SIGKILL):
                words = (folder / "errors").read_text(errors="replace").strip().splitlines()
                raise RunError(f"QEMU: {words[0] if words else 'no reason given'}")
            stream = view[start:]
            view.close()
        console = (folder / "console").read_text(errors="replace").splitlines()
        return Ended(stream, _last_words(console), interrupted, silent)


def _prepare(core: int | None) -> None:
    die_with_parent()
    confine(core)


def _last_words(console: list[str]) -> list[str]:
    """From the kernel's own verdict on, where it gave one: a call trace behind it says less."""
    verdicts = [i for i, line in enumerate(console) if "Kernel panic" in line or "BUG:" in line]
    start = verdicts[0] if verdicts else max(len(console) - _LAST_WORDS, 0)
    return console[start : start + _LAST_WORDS]


def version() -> str | None:
    """QEMU's version; None where it is not installed."""
    if shutil.which(PROGRAM) is None:
        return None
    answer = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=60)
    words = answer.stdout.split()
    return words[3] if len(words) > 3 else None


def _share(path: Path, request: bytes, stream_mib: int) -> tuple[int, int]:
    """Lays the request into the shared file; returns where the stream begins and the size, which
    a PCI device wants to be a power of two."""
    head = _MAGIC + struct.pack("<Q", len(request)) + request
    start = -(-len(head) // _STREAM_ALIGNMENT) * _STREAM_ALIGNMENT
    size = 1 << (start + stream_mib * 2**20 - 1).bit_length()
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
    return start, size


def _wait(
    process: subprocess.Popen[bytes],
    view: mmap.mmap,
    start: int,
    progress: Callable[[int], bool],
) -> tuple[bool, bool]:
    offset = start
    heard, spent_s = time.monotonic(), 0.0
    while True:
        try:
            process.wait(_POLL_S)
            return False, False
        except subprocess.TimeoutExpired:
            pass
        done_ns, offset = _follow(view, offset)
        now_s, wants_more = _effort(process.pid)
        if done_ns is not None:
            heard, spent_s = time.monotonic(), now_s
        if not progress(done_ns or 0):
            return True, False
        idles = time.monotonic() - heard > _SILENCE_S and not wants_more
        if idles or now_s - spent_s > _SILENCE_CPU_S:
            return False, True


def _effort(pid: int) -> tuple[float, bool]:
    """CPU seconds of a process so far, and whether any of its threads runs or waits to
    (proc(5), /proc/PID/task/TID/stat)."""
    ticks, wants_more = 0, False
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            fields = task.read_text().rpartition(")")[2].split()
        except OSError:  # the thread ended meanwhile
            continue
        wants_more |= fields[0] == "R"
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), wants_more


def _follow(view: mmap.mmap, offset: int) -> tuple[int | None, int]:
    """The newest progress and where to look next; frames are read in windows, so that a long
    stream is not copied at every look."""
    newest = None
    while True:
        window = view[offset : offset + 2**21]
        done_ns, used = _native.stream.follow(window, 0)
        newest = done_ns if done_ns is not None else newest
        offset += used
        if used == 0:
            return newest, offset
