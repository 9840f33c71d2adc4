"""Plays scripts on an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.differential.machine import answers
from fullpipe.differential.subjects import PACKETDRILL
from fullpipe.packetdrill import parser
from fullpipe.packetdrill.code import parse as parse_code
from fullpipe.packetdrill.judge import NOT_SUPPORTED, WRONG, Verdict, judge
from fullpipe.packetdrill.program import Program, build
from fullpipe.packetdrill.script import Code, NotSupportedError, ScriptError

_MOST_BYTES = 1 << 20

#: Programs -> their answers.
Engine = Callable[[Sequence[str]], list[str]]


def simulator(model: str) -> Engine:
    """The simulator with the rules of a kernel."""
    return lambda programs: [
        _native.differential.play_packetdrill(program, model) for program in programs
    ]


def machine(kernel: str) -> Engine:
    """A kernel in the virtual machine. Raises UserError or RunError when it plays."""
    return lambda programs: answers(programs, kernel, subject=PACKETDRILL)[0] if programs else []


def play(paths: Sequence[Path], engine: Engine) -> list[Verdict]:
    """The verdicts on files of scripts, in their order. Raises UserError for one that cannot be
    read."""
    read = [_program(path, number) for number, path in enumerate(paths)]
    programs = [each for each in read if isinstance(each, Program)]
    answers = iter(engine([program.text for program in programs]))
    return [each if isinstance(each, Verdict) else judge(each, next(answers)) for each in read]


def _program(path: Path, number: int) -> Program | Verdict:
    try:
        text = read_regular(path, _MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        return Verdict(str(path), WRONG, None, "is no text in UTF-8")
    try:
        script = parser.parse(str(path), text)
        for event in script.events:
            if isinstance(event.action, Code):
                parse_code(event.action.text, event.line)
        return build(script, f"{number} {path.name}")
    except NotSupportedError as error:
        return Verdict(str(path), NOT_SUPPORTED, error.line, error.kind)
    except ScriptError as error:
        return Verdict(str(path), WRONG, error.line, str(error))
