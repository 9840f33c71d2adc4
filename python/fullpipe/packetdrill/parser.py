"""Reads a script: options, then events with their times. Structure after the grammar of packetdrill
(parser.y); what no engine has raises NotSupportedError.
"""

from __future__ import annotations

import re

from fullpipe.packetdrill.calls import read_call
from fullpipe.packetdrill.packets import read_packet
from fullpipe.packetdrill.scanner import Scanner
from fullpipe.packetdrill.script import (
    Call,
    Code,
    Command,
    Event,
    NotSupportedError,
    Packet,
    Script,
    ScriptError,
    Time,
)

_OPTION = re.compile(r"--(\w+)(?:=(`[^`]*`|\"[^\"]*\"|[^\s/]+(?:/(?!/)[^\s/]*)*))?")
_COMMAND = re.compile(r"`([^`]*)`")
_CODE = re.compile(r"%\{(.*?)\}%", re.DOTALL)
#: `0...0.3` are two numbers.
_NUMBER = r"\d+(?:\.(?!\.)\d*)?|\.\d+"
_TIME = re.compile(rf"(\*)|(\+)?({_NUMBER})(?:\s*~\s*(\+)?({_NUMBER}))?")
_BLOCKS = re.compile(rf"\.\.\.\s*({_NUMBER})")
_DIRECTION = re.compile(r"[<>]")
#: A file of more than this is no script.
_MOST_LETTERS = 1_000_000
_MOST_SECONDS = 3_600


def parse(path: str, text: str) -> Script:
    """Reads the text of a script. Raises ScriptError."""
    if len(text) > _MOST_LETTERS:
        raise ScriptError(1, f"has {len(text)} letters: must have at most {_MOST_LETTERS}")
    scanner, script = Scanner(text), Script(path)
    while (option := scanner.take(_OPTION)) is not None:
        script.options[option[1]] = option[2] or ""
    command = scanner.take(_COMMAND)
    script.first = Command(command[1]) if command is not None else None
    while not scanner.is_done():
        _read_event(scanner, script)
    if not script.events:
        raise ScriptError(1, "has no event")
    return script


def _read_event(scanner: Scanner, script: Script) -> None:
    line = scanner.line
    cleanup = scanner.take(_COMMAND)
    if cleanup is not None:
        # Behind the last event: what restores the host, which is not kept.
        if not scanner.is_done():
            raise ScriptError(line, "a command without a time must be the first or the last line")
        return
    time = _read_time(scanner)
    line = scanner.line
    code = scanner.take(_CODE)
    command = scanner.take(_COMMAND) if code is None else None
    action: Packet | Call | Command | Code
    if code is not None:
        action = Code(code[1])
    elif command is not None:
        action = Command(command[1])
    elif (direction := scanner.take(_DIRECTION)) is not None:
        action = read_packet(scanner, is_inbound=direction[0] == "<")
    else:
        blocks = scanner.take(_BLOCKS)
        if blocks is not None:
            time = Time(time.anchor, time.at_us, _microseconds(scanner, blocks[1]))
        scanner.skip()
        line = scanner.line
        action = read_call(scanner, blocks is not None)
    script.events.append(Event(line, time, action))


def _read_time(scanner: Scanner) -> Time:
    read = scanner.need(_TIME, "a time")
    wildcard, plus, at, end_plus, end = read.groups()
    if wildcard:
        return Time("any")
    if end is not None and plus != end_plus:
        raise scanner.error("both ends of a range must have `+` or none")
    at_us = _microseconds(scanner, at)
    end_us = _microseconds(scanner, end) if end is not None else None
    if end_us is not None and end_us < at_us:
        raise scanner.error("a range of times must not end before it begins")
    return Time("before" if plus else "start", at_us, end_us)


def _microseconds(scanner: Scanner, text: str) -> int:
    seconds = float(text)
    if seconds > _MOST_SECONDS:
        raise NotSupportedError(scanner.line, f"times above {_MOST_SECONDS} s")
    return round(seconds * 1e6)
