"""A disk that is full, a quota that is used up, and a kill, at every change that a program makes:
what was stored stays, and the same command continues."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fullpipe.sweep.store import Store
from interruptions import DONE, KILLED, SAID, steps
from sweep_files import filled, rows, sweep

pytestmark = pytest.mark.slow


def _folders(parent: Path) -> Iterator[Path]:
    return (parent / f"after-{count}" / "results" for count in itertools.count())


def _unlisted(folder: Path) -> list[str]:
    """The files of a store that belong to nothing. What a program was about to lock stays a day."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    locks = {".leases", ".adding", ".listing", ".compacting"}
    return [
        str(file) for file in files
        if file.suffix != ".making"
        and (file.parts[0] == "work" or (file.name.startswith(".") and file.name not in locks))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "keep"),
    [(None, "recordings"), (errno.EDQUOT, "recordings")],
)
def test_a_sweep_that_was_interrupted_anywhere_is_continued_to_the_same_rows(
    number: int | None, keep: str, tmp_path: Path
) -> None:
    small = sweep(
        axis={"rtt": ["10ms", "40ms"], "buffer": [1], "cc": ["cubic"]},
        sweep={"seeds": 1, "keep": keep},
    )
    undisturbed = rows(filled(tmp_path / "undisturbed", small)[0])
    statuses = []
    for folder, status, said in steps(lambda own: filled(own, small), _folders(tmp_path), number):
        statuses.append(status)
        if status == SAID:
            assert number is not None and os.strerror(number) in said
            holds = (folder / "parts").is_dir() and any((folder / "parts").iterdir())
            assert not holds or "the same command continues" in said
        store, outcome = filled(folder, small)
        assert rows(store) == undisturbed
        assert (outcome.failures, outcome.damaged) == ([], [])
        assert _unlisted(folder) == []
        assert Store(folder).mend() == []
    assert statuses.pop() == DONE and len(statuses) > 50
    assert set(statuses) == {KILLED if number is None else SAID}
