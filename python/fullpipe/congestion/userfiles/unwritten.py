"""Finds reads of variables that were not written before. The sanitizers of fuzzing.py see none of
a variable that the optimiser keeps in a register. Must never load the file into this process.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles import fuzzing, toolchain
from fullpipe.congestion.userfiles.errors import explain_errors
from fullpipe.congestion.userfiles.native import defines
from fullpipe.congestion.userfiles.source import Source, keep

#: Without optimisation every variable is in memory, where what the stack held before is read.
_PLAIN = ("-std=gnu11", "-O0", "-g", "-fno-stack-protector", "-w")
_ANALYSIS = (
    "-std=c11",
    "-ffreestanding",
    "-nostdinc",
    "-fsyntax-only",
    "-ferror-limit=0",
    "-Werror=uninitialized",
    "-Werror=conditional-uninitialized",
)
_WATCHING = ("-q", "--vgdb=no", "--track-origins=yes", "--leak-check=no")
#: Connections of 1,000 calls each.
_CONNECTIONS = 200
#: The same under valgrind, which takes 20 times as long.
_WATCHED = 10
_STATUS = 99
_CREATED = "Uninitialised value was created"
_FRAME = re.compile(r"^==\d+==\s+(?:at|by) 0x[0-9A-F]+: \w+ \(([^():]+:\d+)\)$", re.M)


def uninitialised(source: Source) -> str:
    """Asks clang's analysis, calls the file without optimisation on differently filled stacks
    (cc/fuzz.c), and watches some of these calls with valgrind. Returns a sentence on what was done
    and what was not, for want of a program. Raises UserError with the line that reads."""
    asked = []
    clang = shutil.which(os.environ.get("CLANG", "clang"))
    if clang is not None:
        _ask(source, clang)
        asked.append("clang's analysis")
    keep(source)
    valgrind = shutil.which("valgrind")
    if valgrind is not None:
        _watch(source, valgrind)
    with toolchain.workplace() as scratch:
        program = fuzzing.build(source, scratch, _PLAIN)
        fuzzing.drive(source, program, 1, _CONNECTIONS)
    asked.append(f"{_CONNECTIONS * 1000:,} calls on two stacks")
    if valgrind is not None:
        asked.append(f"{_WATCHED * 1000:,} under valgrind")
    missing = [name for name, there in (("clang", clang), ("valgrind", valgrind)) if not there]
    lacks = f"; without {' and '.join(missing)}, which would see more" if missing else ""
    return ", ".join(asked) + lacks


def _ask(source: Source, clang: str) -> None:
    folder, include = keep(source) / "source", shipped("cc")
    with toolchain.workplace() as scratch:
        command = [clang, *_ANALYSIS, *defines(source, title="")]
        command += [f"-I{folder}", f"-I{include}", str(include / "external.c")]
        answer = toolchain.run(command, [folder, include], scratch, source.path)
    errors = explain_errors(source, source.with_user_paths(answer.stderr))
    if errors:
        raise UserError(errors)


def _watch(source: Source, valgrind: str) -> None:
    with toolchain.workplace() as scratch:
        # Functions that are called have names and lines.
        program = fuzzing.build(source, scratch, (*_PLAIN, "-DCC_DEBUG"))
        call = scratch / "call"
        call.write_bytes(bytes(fuzzing.CALL_BYTES))
        with call.open("r+b") as note:
            command = [valgrind, *_WATCHING, f"--error-exitcode={_STATUS}"]
            command += ["--exit-on-first-error=yes", str(program)]
            command += [str(note.fileno()), "1", str(_WATCHED)]
            reads = [scratch, Path("/proc/self")]
            answer = toolchain.run(command, reads, scratch, source.path, inherits=[note.fileno()])
    if answer.returncode != _STATUS:
        return  # it cannot run here, or the calls ended otherwise: the plain run says how
    names = {Path(name).name for name in source.files}
    read, _, made = answer.stderr.partition(_CREATED)
    for frames, problem in (
        (read, "depends on a variable that was not written before"),
        (made, "a variable of this function is read before it was written"),
    ):
        locations = [
            location for location in _FRAME.findall(frames) if location.rpartition(":")[0] in names
        ]
        if locations:
            where = source.with_user_paths(str(keep(source) / "source" / locations[0]))
            raise UserError(f"{where}: {problem}")
