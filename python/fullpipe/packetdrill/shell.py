"""Shell lines of a script: settings of TCP are taken out of them, no shell is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from fullpipe.base.supplied import read_regular
from fullpipe.packetdrill.script import NotSupportedError

_PREFIX = "net.ipv4."
_PATH = "/proc/sys/net/ipv4/"
_ASSIGNMENT = re.compile(r"([\w./]+?)=(.*)")
_SUM = re.compile(r"\$\(\(([\d\s*]+)\)\)")
#: What a script of defaults sets is what kernels and the simulator start with, or says nothing of
#: what a sender does; the simulator plays with its own.
_DEFAULTS = "defaults.sh"
_SYSCTL_PROGRAMS = ("sysctl", "set_sysctls.py")
#: Queues that neither pace nor drop what a script sends.
_PLAIN_QUEUES = ("pfifo", "pfifo_fast", "bfifo", "noqueue")
_MOST_BYTES = 100_000


def settings(command: str, script: str, line: int) -> tuple[dict[str, str], dict[str, str]]:
    """What a command sets (keys below net.ipv4), and what its script of defaults sets. Raises
    NotSupportedError for a command that does anything else."""
    changed: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for words in _commands(command, line):
        program = Path(words[0]).name
        if program == _DEFAULTS:
            defaults.update(_from_file(Path(script).parent / words[0], line))
        elif program in _SYSCTL_PROGRAMS:
            changed.update(_assignments(words[1:]))
        elif program.startswith("sysctl_restore") or _is_plain_queue(words):
            continue
        else:
            raise NotSupportedError(line, f"command {program[:20]}")
    return changed, defaults


def _is_plain_queue(words: list[str]) -> bool:
    is_plain = any(kind in words for kind in _PLAIN_QUEUES) and words[-2:] != ["limit", "0"]
    return words[:2] == ["tc", "qdisc"] and is_plain


def _commands(text: str, line: int) -> Iterator[list[str]]:
    joined = text.replace("\\\n", " ")
    for each in re.split(r"[\n;]|&&", joined):
        try:
            words = shlex.split(_calculated(each), comments=True)
        except ValueError as error:
            raise NotSupportedError(line, f"command with {error}") from None
        words = [word for word in words if not re.fullmatch(r"\d?>&?\S*|/dev/null", word)]
        if words:
            yield words


def _calculated(text: str) -> str:
    """The products of `$((...))` worked out."""

    def product(match: re.Match[str]) -> str:
        total = 1
        for factor in match[1].split("*"):
            total *= int(factor) if factor.strip() else 1
        return str(total)

    return _SUM.sub(product, text)


def _assignments(words: list[str]) -> dict[str, str]:
    assignments = {}
    for word in words:
        assignment = _ASSIGNMENT.fullmatch(word)
        if assignment is None:
            continue
        key = assignment[1].removeprefix(_PATH).removeprefix(_PREFIX)
        assignments[key] = " ".join(assignment[2].split())
    return assignments


def _from_file(path: Path, line: int) -> dict[str, str]:
    """The settings of a file of shell commands; none if there is no such file."""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return {}
    assignments: dict[str, str] = {}
    for words in _commands(read_regular(path, _MOST_BYTES).decode("utf-8", "replace"), line):
        if Path(words[0]).name in _SYSCTL_PROGRAMS:
            assignments.update(_assignments(words[1:]))
    return assignments
