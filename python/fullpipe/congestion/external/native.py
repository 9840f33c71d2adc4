"""A file's algorithm for the simulator: a cached shared object of cc/external.c, whose calls are
guarded (cc/external.h). All algorithms share one guard. Must never know an engine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.writing import atomic_file
from fullpipe.congestion.external.source import Source, folder_of, keep, source_of

#: The largest state of a connection (the kernel's socket storage holds at most 64 KB).
MAX_STATE_BYTES = 4096
_COMMON = (
    "-std=c11", "-O2", "-g1", "-fPIC", "-ffreestanding", "-nostdinc", "-fno-common",
    "-fvisibility=hidden", "-fno-stack-protector", "-ftls-model=initial-exec",
)  # fmt: skip
#: Flags that protect the process (cc/external.h), and flags that enforce the contract.
_GUARDED = (
    "-fsanitize-coverage=trace-pc", "-fsanitize=integer-divide-by-zero,bounds",
    "-fno-optimize-sibling-calls",
    "-fno-sanitize-recover=all",
    "-Wall", "-Werror=implicit-function-declaration", "-Werror=discarded-qualifiers",
    "-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-Werror=return-type",
    "-Werror=vla", "-Werror=frame-larger-than=4096", "-Wno-unknown-warning-option",
    "-Wno-unused-function",
)  # fmt: skip
#: A compiler that takes longer is killed, for example one that inlines a recursive function.
COMPILER_TIMEOUT_S = 60.0
#: A line of `objdump -t`: an object in a section that can be written.
_VARIABLE = re.compile(
    r"\S+ .{6}O (?:\.data(?:\.rel(?:\.local)?)?|\.bss|\.tdata|\.tbss|\*COM\*)\s+\S+\s+(\w\S*)$"
)
_ERROR = re.compile(r"^(.*?:\d+)(?::\d+)?: (?:fatal )?error: (.*)$", re.M)
_LINK = re.compile(r"^(?:.*?ld: )?(.*?:\d+|.*?): undefined reference to [`'](\w+)'", re.M)


@cache
def load(identity: str) -> dict[str, Any]:
    """Makes the algorithm of a file known to this process (sim, replay, reading of states); returns
    what `_native.cc.algorithms` says of one. Raises UserError if it cannot be compiled."""
    return describe(source_of(identity))


def describe(source: Source) -> dict[str, Any]:
    """As `load`, for a source that was read just now."""
    if source.is_class:
        from fullpipe.congestion.external import classes

        return classes.describe(source)
    found: dict[str, Any] = _native.cc.load(str(_shared_object(source)), source.id, str(_guard()))
    if found["state_bytes"] > MAX_STATE_BYTES:
        raise UserError(
            f"{source.path}: struct {source.name} has {found['state_bytes']} bytes; a connection's "
            f"state is at most {MAX_STATE_BYTES}"
        )
    return found


def warnings(source: Source) -> str:
    """Compiles the source with the warnings of this project's own code. Returns an empty text.
    Raises UserError with the first warning."""
    folder = keep(source)
    include = shipped("cc")
    answer = _run([
        _compiler(), *_COMMON, "-Wall", "-Wextra", "-Wconversion", "-Wshadow",
        "-Wno-unused-parameter", "-Werror", f"-DCC_NAME={source.name}", '-DCC_TITLE=""',
        f'-DCC_SOURCE="{source.main}"', f"-I{folder / 'source'}", f"-I{include}",
        "-c", str(include / "external.c"), "-o", os.devnull,
    ])  # fmt: skip
    words = source.place(answer.stderr)
    if answer.returncode != 0:
        raise UserError(explain_errors(source, words) or words.strip()[-500:])
    return "none"


def explain(identity: str, place: tuple[str, int] | None, offset: int) -> str:
    """Where in the user's file the code was when the guard stopped it: `file:line`, or the file."""
    source = source_of(identity)
    if place is not None:
        return source.place(f"{place[0]}:{place[1]}")
    if offset and shutil.which("addr2line"):
        answer = _run(["addr2line", "-e", str(_shared_object(source)), hex(offset - 1)])
        line = source.place(answer.stdout.split(" (")[0].strip())
        if answer.returncode == 0 and not line.startswith("?"):
            return line
    return str(source.path)


def _shared_object(source: Source) -> Path:
    compiler = _compiler()
    folder = folder_of(source.id)
    out = folder / f"native-{_identity(compiler)}.so"
    if out.is_file():
        return out
    keep(source)
    include = shipped("cc")
    with atomic_file(out) as partial, tempfile.TemporaryDirectory(prefix="fullpipe-cc-") as place:
        compiled = Path(place) / "outside.o"
        _compile(source, compiler, [
            *_COMMON, *_GUARDED, f"-DCC_NAME={source.name}", f'-DCC_TITLE="{_plain(source.title)}"',
            f'-DCC_SOURCE="{source.main}"', f"-I{folder / 'source'}", f"-I{include}",
            "-c", str(include / "external.c"), "-o", str(compiled),
        ])  # fmt: skip
        _check_data(source, compiled)
        _compile(source, compiler, [
            "-shared", "-nostdlib", "-Wl,-z,defs", str(compiled), str(_guard()),
            "-o", str(partial),
        ])  # fmt: skip
    return out


def _guard() -> Path:
    """The shared object of the guard; all algorithms of one compiler link to it."""
    compiler = _compiler()
    include = shipped("cc")
    text = (include / "external.h").read_bytes() + (include / "external_guard.c").read_bytes()
    name = f"guard-{_identity(compiler)}-{hashlib.sha256(text).hexdigest()[:12]}.so"
    out = user_cache() / "cc" / name
    if not out.is_file():
        with atomic_file(out) as partial:
            answer = _run([
                compiler, *_COMMON, "-fno-tree-loop-distribute-patterns", "-shared", "-nostdlib",
                "-Wl,-z,defs", f"-Wl,-soname,{name}", f"-I{include}",
                str(include / "external_guard.c"), "-o", str(partial),
            ])  # fmt: skip
            if answer.returncode != 0:
                raise UserError(f"{compiler}: cannot compile the guard of algorithms: "
                                f"{answer.stderr.strip()[-500:]}")  # fmt: skip
    return out


def _compile(source: Source, compiler: str, arguments: list[str]) -> None:
    answer = _run([compiler, *arguments])
    if answer.returncode == 0:
        return
    words = source.place(answer.stderr)
    missing = _LINK.search(words)
    if missing:
        raise UserError(
            f"{missing[1]}: {missing[2]}() is not there: an algorithm has no libc; it runs in the "
            "kernel too"
        )
    raise UserError(explain_errors(source, words) or f"{source.path}: {words.strip()[-500:]}")


def explain_errors(source: Source, words: str) -> str | None:
    """The first error of a compiler and the number of others; None if it reported none."""
    errors = _ERROR.findall(words)
    if not errors:
        return None
    place, what = errors[0]
    if "frame size" in what:
        what = f"{what}: a call has 512 bytes of stack in the kernel"
    if Path(place.rpartition(":")[0]).name not in source.files:
        place = str(source.path)  # the error is in the code that includes the file
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {what}{more}"


def _check_data(source: Source, compiled: Path) -> None:
    """Raises UserError for a writable global variable: state belongs to a connection."""
    answer = _run(["objdump", "-t", str(compiled)])
    for line in answer.stdout.splitlines():
        match = _VARIABLE.match(line)
        if match:
            name = match[1].split(".")[0]
            raise UserError(
                f"{source.path}: {name} is a variable outside the state: connections would share "
                f"it, and no replay could repeat it. Put it into struct {source.name}"
            )


def _compiler() -> str:
    name = os.environ.get("CC", "cc")
    found = shutil.which(name)
    if found is None:
        raise UserError(
            f"a congestion control in a file needs a C compiler, and {name} is not there: "
            "apt-get install gcc (or set CC)"
        )
    return found


def _identity(compiler: str) -> str:
    facts = Path(compiler).resolve().stat()
    text = f"{Path(compiler).resolve()} {facts.st_size} {facts.st_mtime_ns} {_COMMON} {_GUARDED}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(title: str) -> str:
    return re.sub(r'[\\"\n]', "", title)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        compiler = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
            errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}") from None
    with compiler:
        try:
            out, words = compiler.communicate(timeout=COMPILER_TIMEOUT_S)
        except BaseException as error:
            # Its children hold the pipes, and one in an endless loop ignores SIGTERM.
            os.killpg(compiler.pid, signal.SIGKILL)
            compiler.communicate()  # wait until all processes have closed the pipes
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise UserError(
                f"{command[0]} did not end within {COMPILER_TIMEOUT_S:g} s and was stopped; does a "
                "function call itself?"
            ) from None
    return subprocess.CompletedProcess(command, compiler.returncode, out, words)
