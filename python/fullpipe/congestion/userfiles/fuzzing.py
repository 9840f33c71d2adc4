"""Fuzzes a file's algorithm under sanitizers: random calls that the contract allows, in a separate
process (cc/fuzz.c) that may read its own program alone. Must never load it into this one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles import toolchain
from fullpipe.congestion.userfiles.errors import explain_errors
from fullpipe.congestion.userfiles.native import defines
from fullpipe.congestion.userfiles.preprocessing import preprocess
from fullpipe.congestion.userfiles.source import Source, keep
from fullpipe.congestion.userfiles.stalls import output_of

#: Number of connections, of 1,000 calls each.
CONNECTIONS = 2000
#: Limit of all calls, without waits for a processor. The process ends itself if 1,000 calls take
#: 2 s of processor time.
TIMEOUT_S = 60.0

_SANITIZED = (
    "-std=gnu11",
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=undefined,address",
    "-fno-sanitize-recover=all",
    "-Wno-unused-function",
)
#: The same calls where clang says which products wrap.
PRODUCTS = ("-std=gnu11", "-O1", "-g", "-Wno-unused-function")
_WRAPS = "-fsanitize=unsigned-integer-overflow"
#: The host sees decisions before they are bounded.
_NOTES = "-DCC_NOTES_DECISIONS"
#: Of the user's file, which sees no header of a libc.
_ALONE = ("-std=gnu11", "-ffreestanding", "-nostdinc")
#: Room for struct call of cc/fuzz.c.
CALL_BYTES = 4096
_UNDEFINED = re.compile(r"^(\S+:\d+):\d+: runtime error: (.*)$", re.M)
_MEMORY = re.compile(r"ERROR: AddressSanitizer: (\S+)")
_FAULT = re.compile(r"^fault: (?::0|(.+?:\d+)): (.+)$")
_FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ in (\w+) (\S+?:\d+)\b", re.M)


class NoSanitizersError(UserError):
    """The compiler has no sanitizers, so the file could not be tested."""


def fuzz(source: Source, seed: int = 1, connections: int = CONNECTIONS) -> str:
    """Makes the calls of so many connections; returns a sentence on what was run. Raises UserError
    with the line of the user's file, what is undefined there, and the call that led to it;
    NoSanitizersError if the compiler has none."""
    keep(source)
    with toolchain.workplace() as scratch:
        program = build(source, scratch, _SANITIZED)
        drive(source, program, seed, connections)
        clang = shutil.which(os.environ.get("CLANG", "clang"))
        if clang is not None:
            program = build(source, scratch, PRODUCTS, clang)
            drive(source, program, seed, connections)
    lacks = "" if clang else "; without clang, which sees 32-bit products that wrap"
    return f"{connections * 1000:,} calls of {connections:,} connections{lacks}"


def drive(source: Source, program: Path, seed: int, connections: int) -> None:
    """Runs a program of `build`. Raises UserError as `fuzz`."""
    with (program.parent / "call").open("w+b") as note:
        note.truncate(CALL_BYTES)
        answer = _answer([str(program), str(note.fileno()), str(seed), str(connections)], note)
        if answer.returncode == 0:
            return
        last = _answer([str(program), str(note.fileno())], note)
    raise UserError(_explained(source, answer, last.stdout))


def build(source: Source, scratch: Path, flags: Sequence[str], clang: str | None = None) -> Path:
    """A program in the folder `scratch`: the file, compiled with these flags as it is checked, and
    cc/fuzz.c, with clang watching the file's products. Raises UserError with the compiler's
    errors, NoSanitizersError if it has none."""
    include = shipped("cc")
    folder = keep(source) / "source"
    defined = [_NOTES, *(flag for flag in flags if flag.startswith("-D"))]
    command = [toolchain.compiler(), *_ALONE, *defined, *defines(source)]
    command += [f"-I{folder}", f"-I{include}"]
    checked = preprocess(source, command, include / "external.c", scratch)
    compiled, program = scratch / "external.o", scratch / "fuzz"
    first = [clang, *flags, _WRAPS] if clang else [toolchain.compiler(), *flags]
    hosts = [toolchain.compiler(), *flags, *(("-DCC_WATCHES_PRODUCTS",) if clang else ())]
    steps = (
        [*first, "-ffreestanding", "-c", str(checked.file), "-o", str(compiled)],
        [*hosts, f"-I{include}", str(include / "fuzz.c"), str(compiled), "-o", str(program)],
    )
    for step in steps:
        built = toolchain.run(step, [folder, include], scratch, source.path)
        if built.returncode != 0:
            words = source.with_user_paths(built.stderr)
            refused = explain_errors(source, words)
            if refused is None:
                raise NoSanitizersError(
                    f"{toolchain.compiler()} has no sanitizers here (libubsan, libasan): "
                    f"{words.strip()[-200:]}"
                )
            raise UserError(refused)
    return program


def _answer(command: list[str], note: BinaryIO) -> subprocess.CompletedProcess[str]:
    environment = {
        "LC_ALL": "C",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:disable_coredump=0",
    }
    try:
        return output_of(
            command,
            TIMEOUT_S,
            env=environment,
            pass_fds=(note.fileno(),),
            preexec_fn=toolchain.confined_to(command[0]),
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{' '.join(command[3:])} connections of 1,000 calls took more than {TIMEOUT_S:g} s; a "
            "call is too long for a kernel"
        ) from None


def _explained(source: Source, answer: subprocess.CompletedProcess[str], log: str) -> str:
    """`file:line: problem; call 12 of connection 3: on_ack ...`."""
    report = source.with_user_paths(answer.stderr)
    locations = [location for _, location in _FRAME.findall(report) if _is_own(source, location)]
    undefined, memory = _UNDEFINED.search(report), _MEMORY.search(report)
    lines = log.splitlines()
    call = lines[-1] if lines else "no call is known"
    fault = next((_FAULT.match(line) for line in lines if line.startswith("fault: ")), None)
    where = locations[0] if locations else str(source.path)
    if fault:
        where, problem = source.with_user_paths(fault[1]) if fault[1] else where, fault[2]
    elif undefined:
        problem = undefined[2]
        if _is_own(source, undefined[1]):
            where = undefined[1]
        elif not locations:
            problem = f"{problem} ({undefined[1]})"
    elif memory:
        problem = f"{memory[1]}: it touches memory that is not its own"
    elif "differs" in lines:
        problem = (
            "the same call decides otherwise when it is made again: a variable is read before it "
            "was written"
        )
    elif answer.returncode == -signal.SIGPROF:
        problem = "1,000 calls did not end within 2 s of processor time"
    else:
        problem = f"it ended the process ({_ended_by(answer.returncode)})"
    return f"{where}: {problem}; {call}"


def _ended_by(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"status {status}"


def _is_own(source: Source, location: str) -> bool:
    return Path(location.rpartition(":")[0]).name in source.files
