"""A page for each paper, with its figures drawn from the runs and the verdicts on its sentences, a
page of counts, and all verdicts as CSV.

Equal results give equal bytes: nothing here has a date, a machine or a path of one. This module
must not judge or run anything.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.experiments.claims_page import (
    claims_table,
    counts_table,
    escaped,
    evidence_table,
    kind,
    outcomes,
    papers,
    title,
)
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.export import verdict_rows
from fullpipe.experiments.figures import Figure, figures
from fullpipe.experiments.verdicts import (
    STATUSES,
    WITHOUT_RUNS,
    EntryVerdicts,
    Verdict,
    commands,
)

_COMMAND = "fullpipe experiment report {which} --evidence {folder}"
_PAPER_HEAD = """# {title}

Generated, never edited by hand:

```
fullpipe experiment run {paper} --confirm
{command}
```

[Bibliography](../../background/papers.md) ·
[how verdicts are made](../../reference/experiments.md#verdicts) · [all papers](../claims.md)

In the figures crosses are the paper's numbers, circles what others measured, broken lines models.
Each table has the paper's sentences: what it prints, what the runs measured with its 95 % interval
over runs, the verdict with its reason, and the evidence.
"""
_COUNTS_HEAD = """# Claims and verdicts

Generated, never edited by hand:

```
fullpipe experiment run --all --confirm
{command}
```

Each paper has a page with its figures and the verdicts on its sentences: {links}. All verdicts are
rows of [claims.csv](claims.csv).

{outcomes}
"""
#: Figures come in the order of their numbers, then tables, then what has none.
_NUMBERED = re.compile(r"(Figs?\.|Tables?) ([\dIVX]+)")
_ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5}


def paper_pages(judged: Sequence[EntryVerdicts], folder: str, note: str = "") -> dict[str, str]:
    """File, relative to the folder of evidence -> its text. `folder`: as the pages' commands name
    it; `note`: a line that the results do not tell, such as the build. Comparisons of engines have
    pages of their own."""
    judged = [one for one in judged if not one.results.entry.compare_engines and one.verdicts]
    found: dict[str, str] = {}
    for paper in papers(judged):
        own = [one for one in judged if one.results.entry.paper == paper]
        found |= _paper(paper, sorted(own, key=_place), folder, note)
    found["claims.csv"] = _csv(judged)
    found["claims.md"] = _counts(judged, folder, note)
    return found


def require_right_if(judged: Sequence[EntryVerdicts]) -> None:
    """Raises UserError naming the claims of papers that are contradicted or differ and do not say
    what would have to be true for the paper to be right."""
    lacking = [
        f"{one.results.entry.source}: {verdict.claim.id}"
        for one in judged
        for verdict in one.verdicts
        if verdict.status in ("contradicted", "differs")
        and kind(verdict) != "target"
        and not verdict.claim.right_if
    ]
    if lacking:
        raise UserError(
            f"claims that are contradicted or differ, without right_if ({len(lacking)}): say in a "
            f"sentence what would have to be true for the paper to be right: {'; '.join(lacking)}"
        )


def _paper(paper: str, own: Sequence[EntryVerdicts], folder: str, note: str) -> dict[str, str]:
    command = _COMMAND.format(which=paper, folder=folder)
    lines = [_PAPER_HEAD.format(title=title(paper), paper=paper, command=command)]
    lines += [*([escaped(note), ""] if note else []), *counts_table(own), "", reread(own), ""]
    found: dict[str, str] = {}
    for one in own:
        drawn = figures(one.results)
        for number, figure in enumerate(drawn, 1):
            found[f"papers/images/{_image(one, number)}"] = figure.svg
        lines += _entry(one, drawn)
    found[f"papers/{paper}.md"] = "\n".join(lines).rstrip() + "\n"
    return found


def _entry(one: EntryVerdicts, drawn: Sequence[Figure]) -> list[str]:
    entry = one.results.entry
    lines = [f"## {escaped(entry.heading)}", "", escaped(entry.shows), ""]
    if entry.differs:
        lines += [f"*Here:* {escaped(entry.differs)}", ""]
    if entry.runnable:
        lines += [f"`{commands(entry, one.results.size)}`: {_runs(one)}", ""]
    for number, figure in enumerate(drawn, 1):
        heading = escaped(figure.title)
        lines += [
            f"![{heading}](images/{_image(one, number)})",
            "",
            f"*{heading}; {figure.note}*",
            "",
        ]
    return [*lines, agreement(one.verdicts), "", *claims_table(one.verdicts), ""]


def agreement(verdicts: Sequence[Verdict]) -> str:
    """One sentence on what agrees with the paper and what does not; our targets do not count."""
    of_paper = [one for one in verdicts if kind(one) != "target"]
    judged = [one for one in of_paper if one.status not in WITHOUT_RUNS]
    holds = sum(one.status == "reproduced" for one in judged)
    words = [f"{holds} of {len(judged)} sentences hold"]
    for status in STATUSES:
        names = [f"`{one.claim.id}`" for one in of_paper if one.status == status]
        if names and status != "reproduced":
            words.append(f"{status}: {', '.join(names)}")
    return "; ".join(words) + "."


def reread(judged: Sequence[EntryVerdicts]) -> str:
    """How many claims were changed when they were read again against the papers."""
    claims = [verdict.claim for one in judged for verdict in one.verdicts]
    changed = sum(bool(claim.reread) for claim in claims)
    return (
        f"{changed} of {len(claims)} claims were changed when they were read again against the "
        "papers' texts; each gives the reason."
    )


def _runs(one: EntryVerdicts) -> str:
    results = one.results
    low, high = results.repetitions
    if not high:
        return "not run"
    runs = str(low) if low == high else f"{low} to {high}"
    many = "s" if high > 1 else ""
    size = "the paper's size" if results.size == "full" else "short size"
    cells = f"each of {len(results.points)} cells" if len(results.points) > 1 else "one cell"
    text = f"{runs} run{many} of {cells}, {size}"
    if results.missing:
        text += f", {len(results.missing)} cells not run"
    return f"{text}, engine {results.engine}"


def _image(one: EntryVerdicts, number: int) -> str:
    return f"{one.results.entry.id}-{number}.svg"


def _place(one: EntryVerdicts) -> tuple[int, int, str]:
    entry: Entry = one.results.entry
    numbered = _NUMBERED.search(entry.figure)
    if numbered is None:
        return (2, 0, entry.id)
    number = _ROMAN.get(numbered[2]) or int(numbered[2])
    return (int(numbered[1].startswith("T")), number, entry.id)


def _counts(judged: Sequence[EntryVerdicts], folder: str, note: str) -> str:
    names = papers(judged)
    links = ", ".join(f"[{title(paper)}](papers/{paper}.md)" for paper in names)
    head = _COUNTS_HEAD.format(
        command=_COMMAND.format(which="--all", folder=folder), links=links, outcomes=outcomes()
    )
    lines = [head, *([escaped(note), ""] if note else []), *counts_table(judged), ""]
    lines += [reread(judged), ""]
    # The manual's pages of papers are this page's, since papers come and go with the catalogue.
    contents = ["", "```{toctree}", ":hidden:", "", *(f"papers/{paper}" for paper in names), "```"]
    return "\n".join([*lines, *evidence_table(judged), *contents]) + "\n"


def _csv(judged: Sequence[EntryVerdicts]) -> str:
    text = io.StringIO()
    found = [{name: _cell(value) for name, value in row.items()} for row in verdict_rows(judged)]
    rows = csv.DictWriter(text, list(found[0]) if found else [], lineterminator="\n")
    rows.writeheader()
    rows.writerows(found)
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
