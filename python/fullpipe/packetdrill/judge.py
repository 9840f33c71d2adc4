"""Compares what an engine did with what a script expects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fullpipe.packetdrill import packets
from fullpipe.packetdrill.code import AssertionFailedError, Evaluator
from fullpipe.packetdrill.program import Program
from fullpipe.packetdrill.script import Call, Code, Event, NotSupportedError, Packet, ScriptError
from fullpipe.packetdrill.symbols import ERRNO, ERRNO_NAMES

PASSED, FAILED, NOT_SUPPORTED, WRONG = "passed", "failed", "not supported", "no script"
#: packetdrill's own.
_TOLERANCE_US = 4_000
_OPTION_TOLERANCE = "tolerance_usecs"
_OPTION_TICK = "tcp_ts_tick_usecs"
_WORDS_OF_FLAGS = packets.FIN | packets.SYN | packets.RST | packets.PSH | packets.ACK
_ALL_FLAGS = _WORDS_OF_FLAGS | packets.ECE | packets.CWR


@dataclass(frozen=True)
class Verdict:
    """What became of a script."""

    path: str
    outcome: str
    line: int | None = None
    #: What went wrong; of parts that are not supported, their kind.
    sentence: str = ""

    def words(self) -> str:
        """In a line or several."""
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        match self.outcome:
            case "passed":
                return f"{where}: passed"
            case "not supported":
                return f"{where}: not supported: {self.sentence}"
            case _:
                return f"{where}: {self.sentence}"


class _MismatchError(Exception):
    pass


def judge(program: Program, answer: str) -> Verdict:
    """The verdict on an engine's answer."""
    document = json.loads(answer)
    judge_ = _Judge(program)
    stop = document["stop"]
    path = program.script.path
    ended: int | None = None if stop is None else stop["event"]
    for index, (event, entry) in enumerate(zip(program.events, document["entries"], strict=False)):
        if index == ended:
            break
        if stop is not None and stop["is_unsupported"] and _has_not_returned(event, entry):
            continue
        try:
            judge_.event(event, entry)
        except _MismatchError as error:
            return Verdict(path, FAILED, event.line, str(error))
        except AssertionFailedError as error:
            return Verdict(path, FAILED, event.line, f"error in code: {error}")
        except NotSupportedError as error:
            return Verdict(path, NOT_SUPPORTED, event.line, error.kind)
        except ScriptError as error:
            return Verdict(path, WRONG, event.line, str(error))
    if stop is None or ended is None:
        return Verdict(path, PASSED)
    line = program.events[ended].line if document["entries"] else None
    if stop["is_unsupported"]:
        return Verdict(path, NOT_SUPPORTED, line, stop["sentence"])
    return Verdict(path, FAILED, line, _stopped(program.events[ended], stop["sentence"]))


def _has_not_returned(event: Event, entry: dict[str, Any]) -> bool:
    return isinstance(event.action, Call) and "returned" not in entry


def _stopped(event: Event, sentence: str) -> str:
    match event.action:
        case Packet() as packet:
            return f"error handling packet: expected {packet.text}, but {sentence}"
        case Call() as call:
            return f"error in system call: {call.text}: {sentence}"
        case _:
            return sentence


class _Judge:
    """Goes through the events in their order."""

    def __init__(self, program: Program) -> None:
        options = program.script.options
        self._tolerance_us = _number(options.get(_OPTION_TOLERANCE), _TOLERANCE_US)
        self._tick_us = _number(options.get(_OPTION_TICK), 0)
        self._evaluator = Evaluator()
        #: Timestamps of the first packet: the script's and the engine's.
        self._first_stamps: tuple[int, int] | None = None

    def event(self, event: Event, entry: dict[str, Any]) -> None:
        """Raises one of the errors above."""
        match event.action:
            case Call() as call:
                self._call(event, call, entry)
            case Code(text):
                self._evaluator.run(text, entry["info"], event.line)
            case Packet(is_inbound=False) as packet:
                self._packet(event, packet, entry)

    def _call(self, event: Event, call: Call, entry: dict[str, Any]) -> None:
        if _has_not_returned(event, entry):
            raise _MismatchError(f"error in system call: {call.text} does not return")
        at_us, returned = entry["returned"]
        expected = call.result
        value, errno = returned["value"], returned["errno"]
        if expected is not None and (value != expected or not _is_errno(call, errno)):
            got = f"{value} {ERRNO_NAMES.get(errno, errno)}" if value < 0 else str(value)
            raise _MismatchError(f"error in system call: expected {call.text}, but got {got}")
        if call.name == "getsockopt" and value == 0:
            _compare_option(call, returned.get("option", []))
        if call.blocks and event.time.end_us is not None:
            due_us = entry["due_us"] - event.time.at_us + event.time.end_us
            self._time(due_us, due_us, at_us, f"{call.text} returned")

    def _time(self, first_us: int, last_us: int, at_us: int, subject: str) -> None:
        if first_us - self._tolerance_us <= at_us <= last_us + self._tolerance_us:
            return
        expected = f"{first_us / 1e6:.6f}"
        if last_us > first_us:
            expected = f"{expected} to {last_us / 1e6:.6f}"
        raise _MismatchError(
            f"timing error: {subject} at {at_us / 1e6:.6f} s, expected at {expected} s"
        )

    def _packet(self, event: Event, packet: Packet, entry: dict[str, Any]) -> None:
        live = _joined(entry["sent"])
        differing = self._differences(packet, live)
        if differing:
            raise _MismatchError(
                f"error handling packet: {', '.join(differing)}: expected {packet.text}, "
                f"but got {packets.shown(live)}"
            )
        if event.time.anchor != "any":
            first_us = entry["due_us"]
            last_us = first_us
            if event.time.end_us is not None:
                last_us = first_us - event.time.at_us + event.time.end_us
            for segment in (entry["sent"][0], entry["sent"][-1]):
                self._time(first_us, last_us, segment["at_us"], f"packet {packet.text} was sent")

    def _differences(self, packet: Packet, live: dict[str, Any]) -> list[str]:
        """Names of the fields in which they differ."""
        pairs = [
            ("flags", packet.flags & _ALL_FLAGS, live["flags"] & _ALL_FLAGS),
            ("sequence number", packet.sequence, live["sequence"]),
            ("length", packet.bytes, live["bytes"]),
            ("ack", packet.ack, live["ack"]),
            ("window", packet.window, live["window"]),
        ]
        differing = [name for name, wanted, got in pairs if wanted is not None and wanted != got]
        if packet.ecn is not None and live["ecn"] not in packet.ecn:
            differing.append("ECN codepoint")
        if packet.options is not None and not self._are_same(packet.options, live):
            differing.append("options")
        return differing

    def _are_same(self, wanted: list[list[Any]], live: dict[str, Any]) -> bool:
        got = packets.listed(live["options"])
        if len(wanted) != len(got):
            return False
        return all(self._is_same(*pair) for pair in zip(wanted, got, strict=True))

    def _is_same(self, wanted: list[Any], got: list[Any]) -> bool:
        if wanted[0] != "ts" or got[0] != "ts":
            return bool(wanted == got)
        if wanted[2] != got[2]:
            return False
        if self._first_stamps is None:
            self._first_stamps = (wanted[1], got[1])
        # A clock of another rate is compared with nothing, as in packetdrill.
        if not self._tick_us:
            return True
        passed = [
            pair[1] - first for pair, first in zip((wanted, got), self._first_stamps, strict=True)
        ]
        tolerance = max(self._tolerance_us // self._tick_us, 1)
        return bool(abs(passed[0] - passed[1]) <= tolerance)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() else default


def _is_errno(call: Call, errno: int) -> bool:
    return call.result != -1 or call.errno is None or ERRNO.get(call.errno) == errno


def _compare_option(call: Call, content: list[int]) -> None:
    wanted = call.arguments[3]
    is_number = isinstance(wanted, list) and len(wanted) == 1 and isinstance(wanted[0], int)
    if is_number and len(content) <= 8:
        got = int.from_bytes(bytes(content), "little", signed=True)
        if got != wanted[0]:
            raise _MismatchError(f"error in system call: expected {call.text}, but got [{got}]")


def _joined(sent: list[dict[str, Any]]) -> dict[str, Any]:
    """Consecutive packets as one: scripts write the bursts that a host hands down."""
    first, last = sent[0], sent[-1]
    flags = last["flags"]
    for segment in sent:
        # PSH of a burst is that of its end.
        flags |= segment["flags"] & ~packets.PSH
    length = sum(segment["bytes"] for segment in sent)
    return {
        **last,
        "at_us": first["at_us"],
        "ecn": first["ecn"],
        "flags": flags,
        "sequence": first["sequence"],
        "bytes": length,
    }
