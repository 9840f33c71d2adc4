"""What scripts are played to: a TCP socket, or a queue discipline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe import _native
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

_OF_BOTH = ("veth",)


@dataclass(frozen=True)
class Played:
    """What the machine needs to play scripts."""

    #: Scripts of this kind have this name in the machine's job.
    job_key: str
    #: Modules of the kernel, for these scripts.
    modules: Callable[[Sequence[dict[str, Any]]], tuple[str, ...]]


@dataclass(frozen=True)
class Subject(Played):
    """Its model and the comparison."""

    name: str
    #: A script, a kernel's answer and the model's kernel -> the first difference.
    judge: Callable[[str, str, str], dict[str, Any] | None]
    #: A script, its last event, parts -> scripts without each part.
    shorter: Callable[[str, int, int], list[str]]


def _queue_modules(scripts: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    kinds = sorted({script["qdisc"]["aqm"]["kind"] for script in scripts})
    modules = [name for kind in kinds for name in DISCIPLINES[kind].modules]
    return (*_OF_BOTH, "sch_htb", *modules)


def _judge_tcp(script: str, answer: str, model: str) -> dict[str, Any] | None:
    return _native.differential.compare(answer, _native.differential.play(script, model))


TCP = Subject(
    job_key="tcp",
    modules=lambda _: _OF_BOTH,
    name="tcp",
    judge=_judge_tcp,
    shorter=_native.differential.shorter,
)
QUEUE = Subject(
    job_key="queues",
    modules=_queue_modules,
    name="queue",
    judge=_native.differential.judge_queue,
    shorter=_native.differential.shorter_queue,
)
PACKETDRILL = Played(job_key="packetdrill", modules=lambda _: _OF_BOTH)
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
    """So many scripts of a seed, round robin over these disciplines. Those whose outcome
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
