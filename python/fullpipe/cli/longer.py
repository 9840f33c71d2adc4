"""`--until-settled`: the same runs once more, twice as long, until they have settled.

Intervals from runs that were ended when they looked settled could cover less often than they say;
docs/evidence/settling.md has what was measured. Every round starts over with a longer warm-up.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.base.lengthening import MOST_TIMES
from fullpipe.cli.output import message

UntilSettled = Annotated[
    bool,
    typer.Option(
        "--until-settled",
        help=f"Run again, twice as long with half of it as warm-up, until no metric drifts any "
        f"more; at most {MOST_TIMES} times as long.",
    ),
]


def has_to_go_on(groups: Iterable[Sequence[dict[str, Any]]]) -> bool:
    """Whether a group of runs, given by their `settling`, had not settled, or is too short to
    tell."""
    from fullpipe.metrics.settling import goes_on

    return any(map(goes_on, groups))


def discard(folders: Iterable[Path], times: dict[str, str]) -> None:
    """Removes the recordings of a round, and says what the next one is like."""
    for folder in folders:
        shutil.rmtree(folder)
    message(f"not settled: again with {times['duration']}, of which {times['warmup']} is warm-up")
