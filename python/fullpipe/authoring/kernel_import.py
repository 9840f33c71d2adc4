"""Writes the file that makes a congestion control of a Linux kernel an algorithm of the contract
(cc/linux_host.h). The kernel's file stays as it is. Must never compile it.
"""

from __future__ import annotations

from pathlib import Path

from fullpipe.authoring.new import check_name
from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles
from fullpipe.congestion.userfiles.kernel_files import read_kernel_file
from fullpipe.congestion.userfiles.kernel_wrapper import name_of, wrapper

#: What get_info() may tell, and what it never does.
_OF_GET_INFO = frozenset({"bw", "max_bw", "min_rtt", "pacing_gain", "cwnd_gain"})
_INFO = frozenset(
    {
        "phase",
        "bw_shortterm",
        "inflight_longterm",
        "inflight_shortterm",
        "extra_acked",
        "round_count",
    }
)


def import_kernel_file(
    path: Path, name: str | None, folder: Path, force: bool = False
) -> tuple[Path, str]:
    """Writes NAME.h into a folder, with copies of the kernel's files if they lie elsewhere; returns
    its path, and the kernel's name. Raises UserError, and leaves nothing, if the file has no
    congestion control of a kernel or needs what the contract cannot give, or if something is there
    already; `force` replaces NAME.h."""
    file, _, operations = path.name.partition(":")
    kernel_file = read_kernel_file(path.with_name(file), operations or None)
    chosen = name.removesuffix(".h") if name is not None else name_of(kernel_file)
    check_name(chosen)
    out = folder / f"{chosen}.h"
    if (out.exists() and not force) or out.name in kernel_file.files:
        raise UserError(f"{out}: exists already; choose another name with --as, or --force")
    before = out.read_bytes() if out.exists() else None
    written = {out: wrapper(kernel_file, chosen)}
    for file, text in kernel_file.files.items():
        copy = folder / file
        if not copy.exists():
            written[copy] = text
        elif copy.read_bytes() != text.encode():
            raise UserError(f"{copy}: exists already and is another file than {path}")
    try:
        for copy, text in written.items():
            copy.write_text(text, encoding="utf-8", newline="")
        userfiles.describe(userfiles.read(out))
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None
    except UserError:
        for copy in written:
            copy.unlink()
        if before is not None:
            out.write_bytes(before)
        raise
    return out, kernel_file.name


def never_set(algorithm: str) -> frozenset[str]:
    """The variables of CC_INFO_STATE (cc/state.h) that an algorithm, as plans name it, never has a
    value of, because linux_info() (cc/linux_host.h) fills them from the kernel file's get_info().
    Empty unless `import_kernel_file` wrote its file."""
    if not userfiles.is_external(algorithm) or userfiles.is_class(algorithm):
        return frozenset()
    source = userfiles.source_of(algorithm)
    if not source.is_kernels:
        return frozenset()
    text = source.files[source.main]
    return _INFO if "#define LINUX_GET_INFO " in text else _INFO | _OF_GET_INFO
