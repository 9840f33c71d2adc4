"""Work on an executor: the longest first, grouped so that a task is worth its delivery, failures
kept apart, a process that dies survived. The one scheduler of sweeps and experiments.

Knows nothing of what work means: payloads go to a function, in another process or machine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

#: Work is grouped up to this much on one machine, so that storing costs little and a loss no more.
GROUP_S = 1.0
#: Groups become smaller towards the end, but not below this share of it where there is much work:
#: storing costs a group some milliseconds.
_LEAST = 0.1
#: A payload whose process dies so often while nothing else runs is given up.
_ATTEMPTS = 2


class Item(NamedTuple):
    """One thing to do. `cost_s`: CPU seconds that it takes, roughly."""

    payload: Any
    cost_s: float


@dataclass(frozen=True)
class Failure:
    """What could not be done: the index of the payload within its group, and why."""

    index: int
    reason: str


#: Does a group of payloads; gives those that failed.
Work = Callable[[Sequence[Any]], list[Failure]]


@dataclass(eq=False)
class Group:
    """Items that are done together."""

    items: list[Item]
    losses_alone: int = 0

    @property
    def cost_s(self) -> float:
        """Of all its items."""
        return sum(item.cost_s for item in self.items)


class LostError(Exception):
    """The process or machine that did a group died; the group may be done again."""


class Executor(Protocol):
    """Where groups are done."""

    #: Groups that run at once.
    width: int
    #: Groups are made up to so much work (CPU seconds), worth the delivery.
    group_s: float

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """Does groups as they come, a few ahead; gives each with its failures, LostError where
        its process died; now and then None beside an arbitrary group, so that time is seen to
        pass."""

    def close(self) -> None:
        """Ends what runs."""


@dataclass(frozen=True)
class Progress:
    """How far work is. `left_s` is None before anything can be said."""

    done: int
    total: int
    failed: int
    share: float
    left_s: float | None
    per_s: float


@dataclass
class Result:
    """What became of the work."""

    done: int = 0
    failures: list[tuple[Any, str]] = field(default_factory=list)
    interrupted: bool = False


def run_all(
    items: Sequence[Item],
    work: Work,
    executor: Executor,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    group_s: float | None = None,
) -> Result:
    """Does all items, in groups of the executor's size or this. Ctrl-C ends it; what was done stays
    done."""
    result = Result()
    if not items:
        return result
    todo = deque(grouped(items, executor.width, group_s or executor.group_s))
    suspects: deque[Group] = deque()
    total, done_s, begin = sum(item.cost_s for item in items), 0.0, time.monotonic()
    try:
        while todo or suspects:
            # Who of several ended their process is not known: alone it is.
            alone = bool(suspects)
            groups = iter([suspects.popleft()]) if alone else _taken(todo)
            for group, outcome in executor.run(work, groups):
                if isinstance(outcome, LostError):
                    suspects.extend(_again(group, alone, str(outcome), result))
                elif outcome is not None:
                    result.done += len(group.items) - len(outcome)
                    result.failures += [(group.items[f.index].payload, f.reason) for f in outcome]
                    done_s += group.cost_s
                on_progress(_progress(result, len(items), done_s / total, begin))
    except KeyboardInterrupt:
        result.interrupted = True
    finally:
        executor.close()
    return result


def grouped(items: Iterable[Item], width: int, group_s: float = GROUP_S) -> list[Group]:
    """Groups of about `group_s` of work, the longest items first and, towards the end, smaller
    ones, so that no executor waits long for another."""
    ordered = sorted(items, key=lambda item: -item.cost_s)
    left = sum(item.cost_s for item in ordered)
    least_s = min(_LEAST * group_s, left / (8 * width))
    groups: list[Group] = []
    current: list[Item] = []
    filled = 0.0
    for item in ordered:
        current.append(item)
        filled += item.cost_s
        if filled >= min(group_s, max(left / (2 * width), least_s)):
            groups.append(Group(current))
            left -= filled
            current, filled = [], 0.0
    return [*groups, Group(current)] if current else groups


def _taken(todo: deque[Group]) -> Iterator[Group]:
    while todo:
        yield todo.popleft()


def _again(group: Group, alone: bool, reason: str, result: Result) -> list[Group]:
    """What becomes of a group whose process died: it is done again alone; where it was, its items
    one by one; and one that was alone so often is given up."""
    if not alone:
        return [group]
    if len(group.items) > 1:
        return [Group([item]) for item in group.items]
    if group.losses_alone + 1 < _ATTEMPTS:
        return [Group(group.items, group.losses_alone + 1)]
    result.failures += [(item.payload, reason) for item in group.items]
    return []


def _progress(result: Result, total: int, share: float, begin: float) -> Progress:
    spent = time.monotonic() - begin
    left_s = spent * (1 - share) / share if share > 0 else None
    per_s = result.done / spent if spent > 0 else 0.0
    return Progress(result.done, total, len(result.failures), share, left_s, per_s)
