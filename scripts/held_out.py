"""Draws the figures of experiments/published that are held out, and checks the files against it.

    python scripts/held_out.py

A figure is a cell of an entry with all claims about it. Of the works in WORKS, half of the figures
are drawn by SEED; their claims say `held_out = true`. They are run for the first time when nothing
changes any more. Must run nothing itself.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from pathlib import Path

from fullpipe.experiments.catalogue import load_catalogue
from fullpipe.experiments.entry import Entry

CATALOGUE = Path(__file__).parent.parent / "experiments" / "published"
#: The day of the draw.
SEED = 20261128
#: The works that were drawn from; a later work would be a draw of its own.
WORKS = (
    "cooks2025", "heist2019", "hsiao2017", "parasrampuria2024", "tilmans2020", "xu2023",
)  # fmt: skip
_CELL = re.compile(r"cell == '([^']+)'")


def drawn(entries: Iterable[Entry]) -> set[tuple[str, str]]:
    """(Entry, label of a cell) of the figures that are held out."""
    figures = sorted(
        (entry.id, str(cell.axes["cell"]))
        for entry in entries
        if entry.paper in WORKS
        for cell in entry.cells("full")
    )
    return set(random.Random(SEED).sample(figures, len(figures) // 2))


def marked(entries: Iterable[Entry]) -> set[tuple[str, str]]:
    """(Entry, label of a cell) of the claims that say so."""
    return {
        (entry.id, cell)
        for entry in entries
        for claim in entry.claim
        if claim.held_out and claim.check is not None
        for cell in _CELL.findall(claim.check)
    }


def main() -> int:
    """Prints the draw. 1 if the files hold out other figures."""
    entries = load_catalogue(CATALOGUE)
    wanted, found = drawn(entries), marked(entries)
    for entry, cell in sorted(wanted):
        print(f"{entry}: {cell}")
    for entry, cell in sorted(wanted ^ found):
        print(f"{entry}: {cell}: {'not ' if (entry, cell) in wanted else ''}marked as held out")
    return int(wanted != found)


if __name__ == "__main__":
    raise SystemExit(main())
