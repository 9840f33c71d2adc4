"""A file's algorithm for the kernel: a cached eBPF object with the same glue as the built-in ones.
Must never load it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles import objects, toolchain
from fullpipe.congestion.userfiles.errors import explain_errors
from fullpipe.congestion.userfiles.kept import is_whole, keep_object
from fullpipe.congestion.userfiles.preprocessing import preprocess
from fullpipe.congestion.userfiles.source import Source, folder_of, is_class, keep, source_of

_SIGNED_DIVISION = re.compile(
    r"(?:sdiv|srem) [^\n]*?, (\S+?:\d+):\d+|^(\S+?:\d+):\d+: error: [^\n]*signed division", re.M
)


class NoClangError(UserError):
    """No compiler for eBPF is installed, so the file could not be compiled for kernels."""


def bpf_object(identity: str) -> Path:
    """The eBPF object of an algorithm of a plan that came from a file. Raises UserError if it
    cannot be compiled, with the user's line."""
    if is_class(identity):
        raise UserError(
            f"{source_of(identity).path}: a class of Python runs in the simulator alone; vm, live "
            "and kernels run C: `fullpipe cc new NAME` writes a file to start from"
        )
    folder = folder_of(identity)
    out = folder / f"{identity}.bpf.o"
    return out if is_whole(out) else compile_bpf(source_of(identity))


def compile_bpf(source: Source) -> Path:
    """Compiles the source as bpf/build.sh does, even if it is in the cache. Raises UserError
    if it cannot be compiled, NoClangError if there is no compiler."""
    if source.is_kernels:
        raise UserError(
            f"{source.path}: a file of the Linux kernel is no eBPF; in a kernel it runs as a "
            "module: --cc-form module, which --engine vm takes by itself, or `kernel load --as "
            "module`"
        )
    clang = shutil.which(os.environ.get("CLANG", "clang"))
    if clang is None:
        raise NoClangError(
            "a congestion control in a file needs clang and libbpf's headers for the kernel: "
            "apt-get install clang libbpf-dev linux-libc-dev"
        )
    out = keep(source) / f"{source.id}.bpf.o"
    headers = [Path("/usr/include")]
    glue = shipped("bpf")
    with toolchain.workplace() as scratch:
        command = [
            clang,
            "-g",
            "-O2",
            "-target",
            "bpf",
            "-mcpu=v3",
            "-Wall",
            "-Wno-unused-function",
            "-fno-crash-diagnostics",
            f"-I/usr/include/{platform.machine()}-linux-gnu",
            f"-I{out.parent / 'source'}",
            f"-I{shipped('cc')}",
            f"-DFP_ALGORITHM={source.name}",
            f'-DFP_SOURCE="{source.main}"',
        ]
        try:
            checked = preprocess(source, command, glue / "algorithm.bpf.c", scratch, headers)
        except UserError as error:
            if "bpf/bpf_helpers.h" in str(error):
                raise NoClangError(
                    "libbpf's headers are missing: apt-get install libbpf-dev"
                ) from None
            raise
        compiled = scratch / out.name
        answer = toolchain.run(
            [*command, "-c", str(checked.file), "-o", str(compiled)],
            [out.parent / "source", shipped("cc"), glue, *headers],
            scratch,
            source.path,
        )
        if answer.returncode != 0:
            words = source.with_user_paths(answer.stderr)
            raise UserError(
                _explain_division(words)
                or explain_errors(source, words)
                or f"{source.path}: clang: {words.strip()[-500:]}"
            )
        objects.check_bpf(source, compiled)
        keep_object(compiled, out)
    return out


def _explain_division(words: str) -> str | None:
    """Explains a signed division: clang 14 crashes on one, 17 and later report an error."""
    match = _SIGNED_DIVISION.search(words)
    if not match:
        return None
    return (
        f"{match[1] or match[2]}: division of signed values: eBPF has none before Linux 6.6; "
        "divide unsigned ones"
    )
