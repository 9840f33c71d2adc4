"""The scheduler of sweeps and experiments: runs work on an executor, the longest items first, in
groups large enough to be worth their delivery. It collects failures and survives processes that
die.

Must not know what the work is: payloads go to a function in another process or machine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

#: Work in a group on one machine (CPU s): enough to make storing cheap, little enough to lose.
GROUP_S = 1.0
#: Groups become smaller towards the end, but not below this share of it where there is much work:
#: storing a group takes some milliseconds.
_LEAST = 0.1
#: A payload is given up when its process died this often while nothing else ran.
_ATTEMPTS = 2


class Item(NamedTuple):
    """One thing to do. `cost_s`: CPU seconds that it takes, roughly."""

    payload: Any
    cost_s: float


@dataclass(frozen=True)
class Failure:
    """A payload that failed: its index within the group, and why."""

    index: int
    reason: str


#: Does a group of payloads; returns those that failed.
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
    """The process or machine that did a group died; the group may be repeated."""


class Executor(Protocol):
    """Runs groups."""

    #: Groups that run at once.
    width: int
    #: Groups are made up to so much work (CPU seconds), worth the delivery.
    group_s: float

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """Runs the groups, a few ahead; yields each with its failures, or LostError if its process
        died. Now and then yields an unfinished group with None, so that progress can be shown."""

    def close(self) -> None:
        """Ends what runs."""


@dataclass(frozen=True)
class Progress:
    """How far the work is. `left_s`: None before the first result. `is_planning`: nothing runs yet,
    and `done` and `total` count planned cells."""

    done: int
    total: int
    failed: int
    share: float
    left_s: float | None
    per_s: float
    is_planning: bool = False


@dataclass
class Result:
    """The result of `run_all`."""

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
    """Does all items, in groups of `group_s` or the executor's size. Ctrl-C ends it; finished work
    stays done."""
    result = Result()
    if not items:
        return result
    todo = deque(grouped(items, executor.width, group_s or executor.group_s))
    suspects: deque[Group] = deque()
    total, done_s, begin = sum(item.cost_s for item in items), 0.0, time.monotonic()
    try:
        while todo or suspects:
            # Which of several groups killed its process is unknown; alone, it is known.
            alone = bool(suspects)
            groups = iter([suspects.popleft()]) if alone else _one_by_one(todo)
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


def _one_by_one(todo: deque[Group]) -> Iterator[Group]:
    while todo:
        yield todo.popleft()


def _again(group: Group, alone: bool, reason: str, result: Result) -> list[Group]:
    """What to repeat of a group whose process died: the group alone; if it was alone, its items one
    by one. An item that was alone `_ATTEMPTS` times is given up."""
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
