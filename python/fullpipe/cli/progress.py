"""Progress bars for a person at a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fullpipe.cli.output import duration, messages

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from fullpipe.sweep.schedule import Progress


@contextmanager
def progress(label: str, simulated_s: float) -> Iterator[Callable[[float], None]]:
    """Shows the share done, the speed (simulated over real time) and the time left.

    Yields a function that takes the share done."""
    if not sys.stderr.isatty():
        yield lambda _share: None
        return
    from rich.progress import TextColumn, TimeRemainingColumn

    begin = time.monotonic()
    with _bar(label, TextColumn("left"), TimeRemainingColumn()) as update:

        def show(share: float) -> None:
            spent_s = max(time.monotonic() - begin, 1e-3)
            speed = f"{share * simulated_s / spent_s:.3g} x real time" if simulated_s else ""
            update(completed=min(share, 1.0), status=speed)

        yield show


@contextmanager
def progress_of_runs() -> Iterator[Callable[[Progress], None]]:
    """Shows how far the scheduler is; yields what the scheduler calls."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    from rich.progress import TextColumn

    # Drawn only when the scheduler calls, at least twice a second: with a drawing thread a sweep
    # could not fork its workers (engines/workers.py).
    with _bar("runs", TextColumn("{task.fields[left]}"), auto_refresh=False) as update:

        def show(now: Progress) -> None:
            left = "" if now.left_s is None else f"{duration(now.left_s)} left"
            failed = f", {now.failed} failed" if now.failed else ""
            planned = "planned " if now.is_planning else ""
            status = f"{planned}{now.done} of {now.total}{failed}, {now.per_s:.3g}/s"
            update(completed=now.share, status=status, left=left, refresh=True)

        yield show


@contextmanager
def _bar(
    label: str, *left: ProgressColumn, auto_refresh: bool = True
) -> Iterator[Callable[..., None]]:
    """A bar with the share done, a `status`, the time spent and columns for the time left. Yields
    what updates its fields."""
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=24),
        bars.TextColumn("{task.percentage:>3.0f} %"),
        bars.TextColumn("{task.fields[status]}"),
        bars.TimeElapsedColumn(),
        *left,
    )
    with bars.Progress(
        *columns, console=messages, transient=True, auto_refresh=auto_refresh
    ) as bar:
        task = bar.add_task(label, total=1.0, status="", left="")
        yield functools.partial(bar.update, task)
