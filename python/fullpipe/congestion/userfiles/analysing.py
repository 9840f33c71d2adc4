"""Asks Frama-C's Eva whether a call of a file's algorithm can do what C leaves undefined, with any
state, constants and facts (cc/every_input.c). Must never run the file's code.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion.userfiles import toolchain
from fullpipe.congestion.userfiles.native import defines
from fullpipe.congestion.userfiles.preprocessing import preprocess
from fullpipe.congestion.userfiles.source import Source, keep

PROGRAM = "frama-c"
#: Where OCaml's libraries are: the analysis loads its parts through them.
_READS = Path("/etc/ocamlfind.conf")
#: Functions of the contract. Each is analysed from `check_` and its name.
CALLS = ("init", "on_ack", "on_event")
#: Of the user's file, which sees no header of a libc.
_ALONE = ("-std=gnu11", "-ffreestanding", "-nostdinc")
_ANALYSIS = (
    "-c11",
    "-machdep",
    "gcc_x86_64",
    "-lib-entry",
    "-eva",
    "-eva-no-print",
    "-eva-no-show-progress",
)
#: An alarm: where, and what Eva cannot exclude.
_ALARM = re.compile(r"^\[eva:alarm\] (\S+:\d+): Warning:\s+(.+?)[.;]", re.M | re.S)
#: What ends an analysis that went through; and what makes its answer one of something else.
_DONE = "[eva:summary]"
_GUESSED = re.compile(r"Neither code nor specification for function (\w+)")
#: Eva's words -> the plain ones, where they differ.
_WORDS = {
    "invalid RHS operand for shift": "a shift by too many bits",
    "invalid LHS operand for left shift": "a shift of a negative number",
    "accessing uninitialized left-value": "a read of what was not written",
    "out of bounds index": "an index out of bounds",
    "out of bounds read": "a read out of bounds",
    "out of bounds write": "a write out of bounds",
}
_REFUSED = re.compile(r"^\[kernel\][^\n]*\n?\s*([^\n]*error[^\n]*|[^\n]*not supported[^\n]*)", re.M)


class NoAnalysisError(UserError):
    """The analysis is not installed, or does not read this file."""


def every_input(source: Source) -> str:
    """Analyses each call. Returns a sentence on what holds. Raises UserError with the first line
    for which something undefined is not excluded, NoAnalysisError if there is no analysis."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise NoAnalysisError(f"needs {PROGRAM} (apt-get install frama-c-base)")
    include = shipped("cc")
    folder = keep(source) / "source"
    command = [toolchain.compiler(), *_ALONE, *defines(source, title="")]
    command += [f"-I{folder}", f"-I{include}"]
    undefined = []
    with toolchain.workplace() as scratch:
        unit = preprocess(source, command, include / "every_input.c", scratch).file
        for call in CALLS:
            undefined += [
                (call, *alarm) for alarm in alarms(_analysed(source, unit, call, program))
            ]
    if undefined:
        call, where, problem = undefined[0]
        more = f" (and {len(undefined) - 1} more)" if len(undefined) > 1 else ""
        raise UserError(f"{where}: {problem} not excluded, in {call}{more}")
    return f"{', '.join(CALLS)}: no undefined behaviour for any state, constants and facts"


def _analysed(source: Source, unit: Path, call: str, program: str) -> str:
    """What the analysis says of one call."""
    reads = [keep(source) / "source", shipped("cc"), unit.parent, _READS]
    command = [program, *_ANALYSIS, "-main", f"check_{call}", str(unit)]
    try:
        answer = toolchain.run(command, reads, unit.parent, source.path)
    except UserError as error:
        raise NoAnalysisError(f"{PROGRAM} comes to no end with {call}: {error}") from None
    return source.with_user_paths(f"{answer.stdout}\n{answer.stderr}")


def alarms(output: str) -> list[tuple[str, str]]:
    """(file:line, problem) of each alarm in the words of an analysis, in their order. Raises
    NoAnalysisError where it did not end, or took a function for something that it is not."""
    if _DONE not in output:
        refused = _REFUSED.search(output)
        words = refused[1].strip() if refused else output.strip()[-200:]
        raise NoAnalysisError(f"{PROGRAM} does not read this file: {words}")
    guessed = _GUESSED.search(output)
    if guessed:
        raise NoAnalysisError(f"{PROGRAM} does not know {guessed[1]}(), which is called")
    prefix = f"{shipped('cc')}/"
    return [
        (where.removeprefix(prefix), _WORDS.get(problem.strip(), problem.strip()))
        for where, problem in _ALARM.findall(output)
    ]
