"""`--until-settled`: the same runs once more, twice as long, until they have settled.

Intervals from runs that were ended when they looked settled could cover less often than they say;
docs/evidence/settling.md has what was measured. Every round begins anew with a longer warm-up.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.cli.output import message

#: Runs become at most this many times as long.
MOST_TIMES = 16

UntilSettled = Annotated[
    bool,
    typer.Option(
        "--until-settled",
        help=f"Run again, twice as long with half of it as warm-up, until no metric drifts any "
        f"more; at most {MOST_TIMES} times as long.",
    ),
]


def longer(duration_ns: int, first_ns: int) -> dict[str, str] | None:
    """Duration and warm-up of the round after one of this duration; None where that is longer than
    the bound. `first_ns`: duration of the first round."""
    doubled_ns = 2 * duration_ns
    if doubled_ns > MOST_TIMES * first_ns:
        return None
    return {"duration": f"{doubled_ns / 1e9:g}s", "warmup": f"{doubled_ns / 2e9:g}s"}


def has_to_go_on(groups: Iterable[Sequence[dict[str, Any]]]) -> bool:
    """Whether a group of runs, given by their `settling`, had not settled, or is too short to
    tell."""
    from fullpipe.metrics.settling import unsettled

    return any(
        unsettled(group) or any(one["state"] == "too short" for one in group) for group in groups
    )


def discard(folders: Iterable[Path], times: dict[str, str]) -> None:
    """Removes the recordings of a round, and says what the next one is like."""
    for folder in folders:
        shutil.rmtree(folder)
    message(f"not settled: again with {times['duration']}, of which {times['warmup']} is warm-up")
