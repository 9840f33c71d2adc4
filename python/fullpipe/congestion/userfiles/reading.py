"""The source of a user's file in C, of the contract or of a Linux kernel. Must never compile."""

from __future__ import annotations

from pathlib import Path

from fullpipe.congestion.userfiles.source import KERNEL_INCLUDE, Source, read_source


def read(path: Path | str) -> Source:
    """The source in a file, with the files beside it that it includes. `tcp_NAME.c` is a congestion
    control of a kernel, and what the contract needs of it is made of its text at each reading.

    Raises UserError if it cannot be read, defines no congestion control or more than one, was
    written for another version of the contract, breaks a rule that can be seen without a compiler,
    or carries a kernel's file that says something else today; the message names file and line."""
    path = Path(path)
    if is_kernels_name(path.name):
        from fullpipe.congestion.userfiles.kernel_wrapper import read_kernel

        return read_kernel(path)
    source = read_source(path)
    if KERNEL_INCLUDE in source.files[source.main]:
        from fullpipe.congestion.userfiles.kernel_wrapper import check_current

        check_current(source)
    return source


def is_kernels_name(name: str) -> bool:
    """Whether a file's name is that of a kernel's file: NAME.c, or NAME.c:OPERATIONS."""
    return name.partition(":")[0].endswith(".c")
