"""Runs compilers on files from outside: each confined to reading the toolchain and the folders that
are named, and to writing one temporary folder, with limits of time, memory and output. Must never
know what is compiled.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.machine import needs_linux
from fullpipe.base.scratch import scratch
from fullpipe.congestion.userfiles.stalls import output_of

#: What cannot be run elsewhere, as `needs_linux` says it.
CONFINED = "a congestion control in a file, which runs confined by Landlock and seccomp,"
#: Limits of one run of a compiler: time without waits for a processor, processor time, address
#: space, and the largest file that it writes. The largest algorithm of this project takes 1 s,
#: 0.2 GB and 1 MB.
COMPILER_TIMEOUT_S = 60.0
CPU_S = 20
MEMORY_BYTES = 2 * 2**30
OUTPUT_BYTES = 64 * 2**20
#: Processor time of a program that was compiled; what waits for it may set a lower limit.
PROGRAM_CPU_S = 90
#: Of compilers: code needs no more than integers. Files of the kernel write `0.7071 * 1024`
#: (tcp_cdg.c), which its own build makes an integer of.
INTEGERS_ONLY = "-mgeneral-regs-only"
#: Where toolchains of distributions are; folders below an own one's prefix; where programs are.
_SYSTEM = (
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/include",
    "/usr/local/lib",
    "/usr/share",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/dev/null",
    "/dev/urandom",
)
_PROGRAMS = (
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/usr/lib",
    "/usr/libexec",
    "/lib",
    "/lib64",
    "/usr/local/lib",
)
_LOADED = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_PREFIXED = ("bin", "lib", "lib64", "libexec", "include", "share")


def compiler() -> str:
    """The C compiler: `$CC`, by default cc. Raises UserError if there is none."""
    name = os.environ.get("CC", "cc")
    path = shutil.which(name)
    if path is None:
        raise UserError(
            f"a congestion control in a file needs a C compiler, and {name} is not there: "
            "apt-get install gcc libc6-dev (or set CC)"
        )
    return path


def identity(*facts: object) -> str:
    """A hash of the C compiler and of what else decides over an object."""
    file = Path(compiler()).resolve()
    status = file.stat()
    text = f"{file} {status.st_size} {status.st_mtime_ns} {facts}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def workplace() -> AbstractContextManager[Path]:
    """A temporary folder for the files of a compilation. The next one removes it if this program
    is killed."""
    return scratch("fullpipe-cc-")


def run(
    command: Sequence[str],
    reads: Sequence[Path],
    folder: Path,
    about: Path,
    *,
    output_bytes: int = OUTPUT_BYTES,
    inherits: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs a compiler or another tool of the toolchain that may read `reads` and write into
    `folder`; it keeps the descriptors `inherits`. Raises UserError if it cannot be started, or
    exceeds a limit; `about` is the file that the message then names."""
    needs_linux(CONFINED)
    tools = _tools(command[0])
    rights = {
        "read": [*_SYSTEM, *map(str, reads), *tools],
        "write": [str(folder)],
        "execute": [*_PROGRAMS, *tools],
    }

    def confine() -> None:
        _native.sandbox.end_with_parent()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        _native.sandbox.confine(
            **rights, processes=True, memory_bytes=MEMORY_BYTES, file_bytes=output_bytes
        )

    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder), "CCACHE_DISABLE": "1"}
    try:
        # Children hold the pipes, and one in an endless loop ignores SIGTERM.
        done = output_of(
            command, COMPILER_TIMEOUT_S, env=environment, preexec_fn=confine, pass_fds=inherits
        )
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{about}: {command[0]} did not end within {COMPILER_TIMEOUT_S:g} s and was stopped; "
            "does a function call itself?"
        ) from None
    except subprocess.SubprocessError as error:
        raise UserError(f"{command[0]}: cannot be confined: {error}") from None
    exceeded = _exceeded(done.returncode, done.stderr, output_bytes)
    if exceeded:
        raise UserError(f"{about}: {exceeded}; that is no algorithm")
    return done


def confined_to(program: str) -> Callable[[], None]:
    """For `preexec_fn`: the process may execute one program that was compiled here, read what that
    needs to start, and do no more than compute; a sanitizer reads its own memory map too."""
    reads = [*_LOADED, "/proc/self"]

    def confine() -> None:
        _native.sandbox.end_with_parent()
        resource.setrlimit(resource.RLIMIT_CPU, (PROGRAM_CPU_S, PROGRAM_CPU_S))
        _native.sandbox.confine(read=reads, execute=[program, *_LOADED], file_bytes=0)

    return confine


def _tools(program: str) -> list[str]:
    """What belongs to a toolchain outside of the distribution's folders."""
    tools = []
    for file in {Path(program), Path(program).resolve()}:
        tools.append(str(file))
        if file.parent.name == "bin":
            tools += [str(file.parent.parent / name) for name in _PREFIXED]
    return tools


def _exceeded(status: int, words: str, output_bytes: int) -> str | None:
    """Which limit a compiler exceeded. A driver reports the signal that ended its part."""
    if status == 0:
        return None
    if status == -signal.SIGXCPU or "CPU time limit exceeded" in words:
        return f"compiling takes more than {CPU_S} s of processor time"
    if status == -signal.SIGXFSZ or re.search(r"File (size limit exceeded|too large)", words):
        return f"the compiler writes more than {output_bytes // 2**20} MiB"
    if re.search(r"out of memory|memory exhausted|bad_alloc", words):
        return f"compiling takes more than {MEMORY_BYTES // 2**30} GiB of memory"
    return None
