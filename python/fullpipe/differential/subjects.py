"""What scripts are played to: a TCP socket, or a queue discipline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe import _native
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

_OF_BOTH = ("veth",)


@dataclass(frozen=True)
class Subject:
    """The model of one, the comparison, and what the machine needs for it."""

    name: str
    #: A script, a kernel's answer and the model's kernel -> the first difference.
    judge: Callable[[str, str, str], dict[str, Any] | None]
    #: A script, its last event, parts -> scripts without each part.
    shorter: Callable[[str, int, int], list[str]]
    #: The machine's job has its scripts under this key.
    job_key: str
    #: Modules of the kernel, for these scripts.
    modules: Callable[[Sequence[dict[str, Any]]], tuple[str, ...]]


def _queue_modules(scripts: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    kinds = sorted({script["qdisc"]["aqm"]["kind"] for script in scripts})
    own = [name for kind in kinds for name in DISCIPLINES[kind].modules]
    return (*_OF_BOTH, "sch_htb", *own)


def _judge_tcp(script: str, answer: str, model: str) -> dict[str, Any] | None:
    return _native.differential.compare(answer, _native.differential.play(script, model))


TCP = Subject(
    "tcp",
    _judge_tcp,
    _native.differential.shorter,
    "scripts",
    lambda _: _OF_BOTH,
)
QUEUE = Subject(
    "queue",
    _native.differential.judge_queue,
    _native.differential.shorter_queue,
    "queue_scripts",
    _queue_modules,
)
SUBJECTS = {subject.name: subject for subject in (TCP, QUEUE)}
#: The queue disciplines that scripts can be drawn for.
QUEUES: tuple[str, ...] = tuple(_native.differential.QUEUES)


def draw(seed: int, count: int, model: str, first: int = 0) -> list[str]:
    """So many scripts of a seed for TCP. Those that the model refuses are left out."""
    drawn = (
        lambda number=number: _native.differential.draw(seed, number, model)
        for number in range(first, first + count)
    )
    return list(_that_can_be_drawn(drawn))


def draw_queues(seed: int, count: int, model: str, kinds: Sequence[str]) -> list[str]:
    """So many scripts of a seed, of each of these disciplines in turn. Those whose outcome
    microseconds decide, however often they are drawn, are left out."""
    drawn = (
        lambda number=number: _native.differential.draw_queue(
            seed, number // len(kinds), kinds[number % len(kinds)], model
        )
        for number in range(count)
    )
    return list(_that_can_be_drawn(drawn))


def _that_can_be_drawn(drawn: Iterator[Callable[[], str]]) -> Iterator[str]:
    for script in drawn:
        try:
            yield script()
        except ValueError:
            continue
