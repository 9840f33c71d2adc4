"""Fuzzes a file's algorithm under sanitizers: random calls that the contract allows, in a separate
process (cc/fuzz.c). Must never load it into this one.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.external.native import _compiler, _plain, _run, explain_errors
from fullpipe.congestion.external.source import Source, keep

#: Number of connections, of 1,000 calls each.
CONNECTIONS = 200
#: Time limit for all calls. The process ends itself if 1,000 calls take 2 s of CPU time.
TIMEOUT_S = 60.0

_SANITIZED = (
    "-std=gnu11", "-O1", "-g", "-ffreestanding", "-fno-omit-frame-pointer",
    "-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-Wno-unused-function",
)  # fmt: skip
_UNDEFINED = re.compile(r"^(\S+:\d+):\d+: runtime error: (.*)$", re.M)
_MEMORY = re.compile(r"ERROR: AddressSanitizer: (\S+)")
_FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ in (\w+) (\S+?:\d+)\b", re.M)


class NoSanitizersError(UserError):
    """The compiler has no sanitizers, so the file could not be tested."""


def fuzz(source: Source, seed: int = 1, connections: int = CONNECTIONS) -> str:
    """Makes the calls of so many connections; returns a sentence on what was run. Raises UserError
    with the line of the user's file, what is undefined there, and the call that led to it;
    NoSanitizersError if the compiler has none."""
    folder = keep(source)
    include = shipped("cc")
    with tempfile.TemporaryDirectory(prefix="fullpipe-fuzz-") as place:
        program = Path(place) / "fuzz"
        built = _run([
            _compiler(), *_SANITIZED, "-DCC_UNGUARDED", f"-DCC_NAME={source.name}",
            f'-DCC_TITLE="{_plain(source.title)}"', f'-DCC_SOURCE="{source.main}"',
            f"-I{folder / 'source'}", f"-I{include}", str(include / "external.c"),
            str(include / "fuzz.c"), "-o", str(program),
        ])  # fmt: skip
        if built.returncode != 0:
            words = source.place(built.stderr)
            refused = explain_errors(source, words)
            if refused is None:
                raise NoSanitizersError(
                    f"{_compiler()} has no sanitizers here (libubsan, libasan): "
                    f"{words.strip()[-200:]}"
                )
            raise UserError(refused)
        answer = _answer(program, seed, connections)
    if answer.returncode == 0:
        return f"{connections * 1000:,} calls of {connections} connections"
    raise UserError(_explained(source, answer))


def _answer(program: Path, seed: int, connections: int) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ.get("PATH", ""), "LC_ALL": "C",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
    }  # fmt: skip
    program_and_words = [str(program), str(seed), str(connections)]
    with subprocess.Popen(
        program_and_words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", env=environment,
    ) as process:  # fmt: skip
        try:
            said, errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            # Wait until the child that makes the calls, which dies with it, has closed the pipe.
            process.communicate()
            raise UserError(
                f"{connections} connections of 1,000 calls took more than {TIMEOUT_S:g} s; a call "
                "is too long for a kernel"
            ) from None
    return subprocess.CompletedProcess(program_and_words, process.returncode, said, errors)


def _explained(source: Source, answer: subprocess.CompletedProcess[str]) -> str:
    """`file:line: what; call 12 of connection 3: on_ack ...`."""
    report = source.place(answer.stderr)
    own = [place for _, place in _FRAME.findall(report) if _is_own(source, place)]
    undefined, memory = _UNDEFINED.search(report), _MEMORY.search(report)
    said = answer.stdout.splitlines()
    call = said[-1] if said else "no call is known"
    where = own[0] if own else str(source.path)
    if undefined:
        what = undefined[2]
        if _is_own(source, undefined[1]):
            where = undefined[1]
        elif not own:
            what = f"{what} ({undefined[1]})"
    elif memory:
        what = f"{memory[1]}: it touches memory that is not its own"
    elif "differs" in said:
        what = (
            "the same call decides otherwise when it is made again: a variable is read before it "
            "was written"
        )
    elif "signal 27" in said:  # SIGPROF
        what = "1,000 calls did not end within 2 s of processor time"
    else:
        what = f"it ended the process ({', '.join(said[:-1]) or answer.returncode})"
    return f"{where}: {what}; {call}"


def _is_own(source: Source, place: str) -> bool:
    return Path(place.rpartition(":")[0]).name in source.files
