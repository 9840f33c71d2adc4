"""Writes docs/results.md: what is known, taken from the generated pages of docs/evidence/.

python scripts/results.py
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
EVIDENCE = DOCS / "evidence"
PAGE = DOCS / "results.md"

#: Rows of the scorecards' comparison that most readers ask for: item, measure, what it asks.
_HEADLINES = [
    ("6.1", "utilisation", "How much of a wired path is used?"),
    ("6.1", "queueing delay, 95th percentile, RTTmin", "What queue does it leave there?"),
    ("5.1.2", "queueing delay, 95th percentile, ms", "And over a bloated buffer?"),
    ("5.1.3", "packets lost", "What does it lose in short buffers?"),
    ("5.1.4-starts", "Jain's index", "Do flows that start one by one share evenly?"),
    ("5.1.4-rtts", "lesser flow over the fair share", "Do a near and a far flow?"),
    ("7.1", "share beside CUBIC", "What share does it take beside CUBIC behind AQM?"),
    ("5.2.1", "harm to the goodput of the other", "What does it take from another?"),
    ("5.1.5", "completion of the short, mean, s", "How soon do short flows end?"),
    ("6.4-loss", "utilisation", "What is left under random loss?"),
    ("6.4-wifi", "RTT, 95th percentile, ms", "What RTT does it make over Wi-Fi?"),
    ("c4-satellite", "worst completion of the download, s", "A download over a satellite?"),
]

_HEAD = """# Results

What is known, for readers who install nothing. `python scripts/results.py` takes it from the pages
of [evidence](evidence/index.md), which name commands, commit and date.
"""


#: Pictures of scripts/results_figures.py.
_FIGURES = """## In three figures

![Throughput against delay of seven congestion controls on four paths](images/results/delay.png)

One flow alone for 60 s, the first 20 s left out: a point is the mean of three seeds, an ellipse one
standard deviation. Up and to the left is better.

![Share of goodput beside one flow of CUBIC, by buffer](images/results/share.png)

Beside one flow of CUBIC over 20 Mbit/s and 40 ms, the second half of 180 s: the mean of three seeds
and their range. In short buffers BBRv1 takes most; in deep ones Reno and Prague get little.

![Queue and share in the simulator against Linux](images/results/agreement.png)

Every [cell](evidence/agreement.md) that ran in the simulator and in Linux's kernel.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD, _FIGURES, _scorecards(), _agreement(), _claims()])


def _scorecards() -> str:
    text = (EVIDENCE / "scorecards" / "README.md").read_text(encoding="utf-8")
    head, _, *rows = _table(text, "item")
    rows, item = [_cells(row) for row in rows], ""
    found: dict[tuple[str, str], list[str]] = {}
    for name, measure, *values in rows:
        item = name or item
        found[item, measure] = values
    names = [re.sub(r"\[(\w+)\]\(.*\)", r"`\1`", name) for name in _cells(head)[2:]]
    lines = [
        "## Scorecards side by side\n",
        "A dozen of the rows that the [whole card](evidence/scorecards/README.md) has for each",
        "congestion control, from the simulator. Numbers of items are sections of RFC 9743.\n",
        f"| question | item, measure | {' | '.join(names)} |",
        "|---|---|" + "---:|" * len(names),
    ]
    for item, measure, question in _HEADLINES:
        values = " | ".join(found[item, measure])
        lines.append(f"| {question} | {item}: {measure} | {values} |")
    return "\n".join(lines) + "\n"


def _agreement() -> str:
    text = (EVIDENCE / "agreement.md").read_text(encoding="utf-8")
    return "\n".join(
        [
            "## Simulator and kernel\n",
            "The same contests run in the simulator and in a stock kernel; tests compare the",
            "distributions, with a false discovery rate of 0.05.",
            "[More](evidence/agreement.md).\n",
            *_table(text, "cells"),
            "",
        ]
    )


def _claims() -> str:
    text = (EVIDENCE / "claims.md").read_text(encoding="utf-8")
    runs = re.search(r"^Runs are of .*?\)", text, re.M)
    assert runs is not None, "claims.md names the commit of its runs"
    return "\n".join(
        [
            "## Claims of papers\n",
            "Sentences of [papers](background/papers.md) on BBR, each tested on runs.",
            "*Differs* is a contradiction in the simulator alone, beyond what was compared with",
            f"kernels. [Each claim](evidence/claims.md).\n\n{textwrap.fill(runs[0], 100)}.\n",
            *_table(text, ""),
            "",
        ]
    )


def _table(text: str, first: str) -> list[str]:
    """The lines of the first table whose head begins with this cell."""
    lines = text.splitlines()
    begin = next(
        place
        for place, line in enumerate(lines)
        if line.startswith("|") and _cells(line)[0] == first
    )
    found = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        found.append(line)
    return found


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
