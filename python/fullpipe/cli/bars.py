"""How far something is, for a person at a terminal; without one nothing is shown or loaded."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from fullpipe.sweep.schedule import Progress


@contextmanager
def progress(label: str, simulated_s: float) -> Iterator[Callable[[float], None]]:
    """Shows how much is done, how fast (simulated over real time) and how long it will take.

    Gives a function that takes the share done."""
    if not sys.stderr.isatty():
        yield lambda _share: None
        return
    from rich.progress import TextColumn, TimeRemainingColumn

    begin = time.monotonic()
    with _bar(label, 30, (TextColumn("left"), TimeRemainingColumn())) as show:

        def update(share: float) -> None:
            spent = max(time.monotonic() - begin, 1e-3)
            show(completed=min(share, 1.0), said=f"{share * simulated_s / spent:.3g} x real time")

        yield update


@contextmanager
def progress_of_runs() -> Iterator[Callable[[Progress], None]]:
    """Shows how far the scheduler is; gives what it calls."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    from rich.progress import TextColumn

    # Drawn when the scheduler calls, at least twice a second: a thread that draws would be in the
    # way of workers that are forks (sweep/pool.py).
    with _bar("runs", 24, (TextColumn("{task.fields[left]}"),), auto_refresh=False) as show:

        def update(now: Progress) -> None:
            left = "" if now.left_s is None else f"{duration(now.left_s)} left"
            failed = f", {now.failed} failed" if now.failed else ""
            said = f"{now.done} of {now.total}{failed}, {now.per_s:.3g}/s"
            show(completed=now.share, said=said, left=left, refresh=True)

        yield update


@contextmanager
def _bar(
    label: str, width: int, ending: Iterable[ProgressColumn], auto_refresh: bool = True
) -> Iterator[Callable[..., None]]:
    """A bar with its share, what is `said`, the time spent and this ending; gives what changes
    it."""
    from rich import progress as bars

    from fullpipe.cli.output import messages

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=width),
        bars.TextColumn("{task.percentage:>3.0f} %"),
        bars.TextColumn("{task.fields[said]}"),
        bars.TimeElapsedColumn(),
        *ending,
    )
    with bars.Progress(
        *columns, console=messages, transient=True, auto_refresh=auto_refresh
    ) as bar:
        task = bar.add_task(label, total=1.0, said="", left="")
        yield functools.partial(bar.update, task)


def duration(seconds: float) -> str:
    """A time for a person: seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
