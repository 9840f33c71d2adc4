"""A kernel's file with its own macros and the files beside it put in, for files whose struct
tcp_congestion_ops a macro makes or an included file has. Macros of kernel headers stay as they are.
Must never compile.
"""

from __future__ import annotations

import re
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.congestion.userfiles import toolchain

_SYSTEM_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<[^>\n]*>", re.M)
_MOST_BYTES = 8 * 2**20
_WORDS = 500


def expanded(path: Path, files: dict[str, str]) -> str:
    """The text of `path` as the preprocessor leaves it. Raises UserError if that refuses it."""
    with toolchain.workplace() as folder:
        for name, text in files.items():
            (folder / name).write_text(_SYSTEM_INCLUDE.sub("", text), encoding="utf-8")
        made = folder / "expanded.i"
        # No headers of the host: what the kernel defines must not be what libc does.
        command = [toolchain.compiler(), "-E", "-P", "-nostdinc", "-undef", "-D__KERNEL__"]
        command += [str(folder / path.name), "-o", str(made)]
        answer = toolchain.run(command, [folder], folder, path, output_bytes=_MOST_BYTES)
        if answer.returncode != 0:
            words = answer.stderr.replace(f"{folder}/", "").strip()
            raise UserError(f"{path}: {words[-_WORDS:]}")
        return made.read_text(encoding="utf-8", errors="replace")
