"""A file's algorithm for the simulator: a cached shared object of cc/external.c, which a worker
loads (pool.py). Must never know an engine.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles import pool, protocol, toolchain
from fullpipe.congestion.userfiles.errors import explain_errors
from fullpipe.congestion.userfiles.kept import is_whole, keep_object
from fullpipe.congestion.userfiles.source import Source, folder_of, is_class, keep, source_of

#: The largest state of a connection (the kernel's socket storage holds at most 64 KB).
MAX_STATE_BYTES = 4096
_COMMON = (
    "-std=c11",
    "-O2",
    "-g1",
    "-gdwarf-4",
    "-fPIC",
    "-ffreestanding",
    "-nostdinc",
    "-fno-common",
    "-fvisibility=hidden",
    "-fno-stack-protector",
    "-ftls-model=initial-exec",
)
#: Checks that end the process with a trap where the processor does not, and flags that enforce the
#: contract.
_CHECKED = (
    "-fsanitize=bounds"
    if platform.machine() == "x86_64"  # which traps divisions itself
    else "-fsanitize=bounds,integer-divide-by-zero",
    "-fsanitize-undefined-trap-on-error",
    "-Wall",
    "-Werror=implicit-function-declaration",
    "-Werror=discarded-qualifiers",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-Werror=return-type",
    "-Werror=vla",
    "-Werror=frame-larger-than=4096",
    "-Wno-unknown-warning-option",
    "-Wno-unused-function",
)
#: Warnings of this project's own code.
_STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wno-unused-parameter", "-Werror")
#: For a debugger: what would hide variables and calls is left out.
_DEBUGGED = ("-Og", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-DCC_DEBUG")
#: How the kernel's Makefile has its C understood.
_KERNELS = (
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-delete-null-pointer-checks",
    "-Werror=strict-prototypes",
)
#: Not in quotes: those would find the header of a built-in algorithm of that name, which is beside
#: cc/external.c.
_SOURCE = "-DCC_SOURCE=<{}>"

#: What a worker says of an algorithm and of each of its constants.
_ALGORITHM = {"name": str, "title": str, "sources": str, "flags": int, "state_bytes": int}
_CONSTANT = {
    "name": str,
    "unit": str,
    "zero": str,
    "source": str,
    "meaning": str,
    "default": int,
    "min": int,
    "max": int,
    "scale": int,
    "origin": int,
}
_VARIABLE = {"name": str, "column": str, "unit": str, "meaning": str, "scale": float}


@cache
def load(identity: str) -> dict[str, Any]:
    """What `_native.cc.algorithms` says of the algorithm of a file. Raises UserError if it cannot
    be compiled, or fails."""
    return describe(source_of(identity))


def describe(source: Source) -> dict[str, Any]:
    """As `load`, for a source that was read just now. A class that this program passed becomes
    known to its simulator."""
    if source.is_handed:
        from fullpipe.congestion.userfiles import classes

        return classes.describe(source.id)
    keep(source)
    answer = pool.ask([_algorithm(source)], "describe", {"identity": source.id})
    description = _checked(source, answer.value)
    if description["state_bytes"] > MAX_STATE_BYTES:
        raise UserError(
            f"{source.path}: struct {source.name} has {description['state_bytes']} bytes; a "
            f"connection's state is at most {MAX_STATE_BYTES}"
        )
    return description


def ask(
    identities: Iterable[str],
    job: str,
    arguments: Mapping[str, Any],
    blobs: Sequence[bytes] = (),
    listener: protocol.Listener | None = None,
    read: Sequence[str] = (),
    files: Mapping[str, int] | None = None,
    bounds: protocol.Bounds | None = None,
) -> protocol.Answer:
    """As `pool.ask`, with the algorithms of these ids."""
    algorithms = [_algorithm(source_of(identity)) for identity in identities]
    return pool.ask(algorithms, job, arguments, blobs, listener, read, files, bounds)


def load_here(identity: str, is_debugged: bool = False) -> None:
    """Makes it known to the simulator of this process, with all rights that this process has: for
    programs that run the simulator in steps, or under a debugger. Raises UserError as `load`."""
    load(identity)
    if is_class(identity):
        from fullpipe.congestion.userfiles import classes

        classes.describe(identity)
    else:
        source = source_of(identity)
        file = _debugged_object(source) if is_debugged else _shared_object(source)
        _native.cc.load(str(file), identity)


def _algorithm(source: Source) -> protocol.Algorithm:
    return protocol.Algorithm(source, None if source.is_class else _shared_object(source))


def _checked(source: Source, description: Any) -> dict[str, Any]:
    """The description, if it is one: a file's code may have forged it."""

    def holds(value: Any, kinds: Mapping[str, type]) -> bool:
        return isinstance(value, dict) and all(
            type(value.get(name)) is kind for name, kind in kinds.items()
        )

    if (
        not holds(description, _ALGORITHM)
        or not all(
            holds(item, _CONSTANT) and item["scale"] > 0 for item in description.get("params", [0])
        )
        or not all(holds(item, _VARIABLE) for item in description.get("variables", [0]))
    ):
        raise UserError(f"{source.path}: its description is forged")
    params = [{name: item[name] for name in _CONSTANT} for item in description["params"]]
    variables = [{name: item[name] for name in _VARIABLE} for item in description["variables"]]
    return {
        **{name: description[name] for name in _ALGORITHM},
        "params": params,
        "variables": variables,
    }


def warnings(source: Source) -> str:
    """Compiles the source with the warnings of this project's own code. Returns an empty text.
    Raises UserError with the first warning."""
    folder = keep(source) / "source"
    include = shipped("cc")
    with toolchain.workplace() as scratch:
        command = [toolchain.compiler(), *_COMMON, *_STRICT, *defines(source, title="")]
        command += [f"-I{folder}", f"-I{include}", "-c", str(include / "external.c")]
        command += ["-o", str(scratch / "strict.o")]
        answer = toolchain.run(command, [folder, include], scratch, source.path)
    words = source.with_user_paths(answer.stderr)
    if answer.returncode != 0:
        raise UserError(explain_errors(source, words) or words.strip()[-500:])
    return "none"


def defines(source: Source, title: str | None = None) -> tuple[str, ...]:
    """The defines that tell cc/external.c about a source."""
    text = source.title if title is None else title
    dialect: tuple[str, ...] = _KERNELS if source.is_kernels else ()
    if source.is_kernels and platform.machine() in ("x86_64", "aarch64"):
        dialect += (toolchain.INTEGERS_ONLY,)
    return (
        *dialect,
        f"-DCC_NAME={source.name}",
        _SOURCE.format(source.main),
        f'-DCC_TITLE="{_plain(text)}"',
    )


def _shared_object(source: Source) -> Path:
    out = folder_of(source.id) / f"native-{_identity()}.so"
    if not is_whole(out):
        _make_shared_object(source, out, ())
    return out


def _debugged_object(source: Source) -> Path:
    """The same for a debugger, which shows the user's own files."""
    cached = folder_of(source.id)
    out = cached / "debugged.so"
    _make_shared_object(
        source, out, (*_DEBUGGED, f"-fdebug-prefix-map={cached / 'source'}={source.folder}")
    )
    return out


def _make_shared_object(source: Source, out: Path, flags: Sequence[str]) -> None:
    # What compiles alone needs takes longer than many runs to load.
    from fullpipe.congestion.userfiles import objects
    from fullpipe.congestion.userfiles.preprocessing import preprocess

    folder = keep(source) / "source"
    include = shipped("cc")
    with toolchain.workplace() as scratch:
        command = [toolchain.compiler(), *_COMMON, *_CHECKED, *flags, *defines(source)]
        command += [f"-I{folder}", f"-I{include}"]
        checked = preprocess(source, command, include / "external.c", scratch)
        compiled, linked = scratch / "external.o", scratch / "external.so"
        _compile(source, [*command, "-c", str(checked.file), "-o", str(compiled)], scratch)
        objects.check_native(source, compiled, checked.location_of)
        linking = [toolchain.compiler(), *_COMMON, "-shared", "-nostdlib", "-Wl,-z,defs"]
        linking += [str(compiled), str(include / "external_memory.c"), "-o", str(linked)]
        _compile(source, linking, scratch)
        keep_object(linked, out)


def _compile(source: Source, command: Sequence[str], scratch: Path) -> None:
    folder = folder_of(source.id)
    answer = toolchain.run(command, [folder / "source", shipped("cc")], scratch, source.path)
    if answer.returncode != 0:
        words = source.with_user_paths(answer.stderr)
        raise UserError(explain_errors(source, words) or f"{source.path}: {words.strip()[-500:]}")


def _identity() -> str:
    """A hash of what decides over an object besides the source: compiler, flags and rules."""
    here = Path(__file__).parent
    rules = [(here / name).read_bytes() for name in ("objects.py", "refusals.py", "tokens.py")]
    return toolchain.identity(_COMMON, _CHECKED, _KERNELS, _SOURCE, rules)


def _plain(title: str) -> str:
    return re.sub(r'[\\"\n]', "", title)
