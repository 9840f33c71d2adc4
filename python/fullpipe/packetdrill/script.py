"""A script as it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class ScriptError(Exception):
    """A script that is none, at a line."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


class NotSupportedError(ScriptError):
    """A part of the language that no engine has; `kind` is the same for all such parts."""

    @property
    def kind(self) -> str:
        """What is missing."""
        return str(self)


@dataclass(frozen=True)
class Time:
    """When an event happens."""

    #: As in the program: `start`, `before`, `any`.
    anchor: str
    at_us: int = 0
    #: The end of a range of times, or of a call that blocks; counted as `at_us`.
    end_us: int | None = None


@dataclass(frozen=True)
class Packet:
    """A TCP packet. What is None is not compared."""

    is_inbound: bool
    flags: int
    sequence: int
    bytes: int
    ack: int | None
    window: int | None
    ecn: tuple[int, ...] | None
    #: `["nop"]`, `["ts", value, echo]`, ...; None: `<...>`.
    options: list[list[Any]] | None
    text: str


@dataclass(frozen=True)
class Call:
    """A system call."""

    name: str
    #: Numbers, symbols (str), lists, dicts; None: `...`.
    arguments: list[Any]
    #: None: `...`.
    result: int | None
    errno: str | None
    blocks: bool
    text: str


@dataclass(frozen=True)
class Command:
    """A shell command."""

    text: str


@dataclass(frozen=True)
class Code:
    """Python's statements about tcp_info."""

    text: str


@dataclass(frozen=True)
class Event:
    """Something that a script does or expects."""

    line: int
    time: Time
    action: Packet | Call | Command | Code


@dataclass
class Script:
    """A whole script."""

    path: str
    options: dict[str, str] = field(default_factory=dict)
    #: A command before all events.
    first: Command | None = None
    events: list[Event] = field(default_factory=list)
