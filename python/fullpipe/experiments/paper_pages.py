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
    judged = [
        judgement
        for judgement in judged
        if not judgement.results.entry.compare_engines and judgement.verdicts
    ]
    pages: dict[str, str] = {}
    for paper in papers(judged):
        of_paper = [judgement for judgement in judged if judgement.results.entry.paper == paper]
        pages |= _paper(paper, sorted(of_paper, key=_order), folder, note)
    pages["claims.csv"] = _csv(judged)
    pages["claims.md"] = _counts(judged, folder, note)
    return pages


def require_right_if(judged: Sequence[EntryVerdicts]) -> None:
    """Raises UserError naming the claims of papers that are contradicted or differ and do not say
    what would have to be true for the paper to be right."""
    lacking = [
        f"{judgement.results.entry.source}: {verdict.claim.id}"
        for judgement in judged
        for verdict in judgement.verdicts
        if verdict.status in ("contradicted", "differs")
        and kind(verdict) != "target"
        and not verdict.claim.right_if
    ]
    if lacking:
        raise UserError(
            f"claims that are contradicted or differ, without right_if ({len(lacking)}): say in a "
            f"sentence what would have to be true for the paper to be right: {'; '.join(lacking)}"
        )


def _paper(paper: str, judged: Sequence[EntryVerdicts], folder: str, note: str) -> dict[str, str]:
    command = _COMMAND.format(which=paper, folder=folder)
    lines = [_PAPER_HEAD.format(title=title(paper), paper=paper, command=command)]
    lines += [*([escaped(note), ""] if note else []), *counts_table(judged), "", reread(judged), ""]
    files: dict[str, str] = {}
    for judgement in judged:
        drawn = figures(judgement.results)
        for number, figure in enumerate(drawn, 1):
            files[f"papers/images/{_image(judgement, number)}"] = figure.svg
        lines += _entry(judgement, drawn)
    files[f"papers/{paper}.md"] = "\n".join(lines).rstrip() + "\n"
    return files


def _entry(judgement: EntryVerdicts, drawn: Sequence[Figure]) -> list[str]:
    entry = judgement.results.entry
    lines = [f"## {escaped(entry.heading)}", "", escaped(entry.shows), ""]
    if entry.differs:
        lines += [f"*Here:* {escaped(entry.differs)}", ""]
    if entry.runnable:
        lines += [f"`{commands(entry, judgement.results.size)}`: {_runs(judgement)}", ""]
    for number, figure in enumerate(drawn, 1):
        heading = escaped(figure.title)
        lines += [
            f"![{heading}](images/{_image(judgement, number)})",
            "",
            f"*{heading}; {figure.note}*",
            "",
        ]
    return [*lines, agreement(judgement.verdicts), "", *claims_table(judgement.verdicts), ""]


def agreement(verdicts: Sequence[Verdict]) -> str:
    """One sentence on what agrees with the paper and what does not; our targets do not count."""
    of_paper = [verdict for verdict in verdicts if kind(verdict) != "target"]
    judged = [verdict for verdict in of_paper if verdict.status not in WITHOUT_RUNS]
    holds = sum(verdict.status == "reproduced" for verdict in judged)
    words = [f"{holds} of {len(judged)} sentences hold"]
    for status in STATUSES:
        names = [f"`{verdict.claim.id}`" for verdict in of_paper if verdict.status == status]
        if names and status != "reproduced":
            words.append(f"{status}: {', '.join(names)}")
    return "; ".join(words) + "."


def reread(judged: Sequence[EntryVerdicts]) -> str:
    """How many claims were changed when they were read again against the papers."""
    claims = [verdict.claim for judgement in judged for verdict in judgement.verdicts]
    changed = sum(bool(claim.reread) for claim in claims)
    return (
        f"{changed} of {len(claims)} claims were changed when they were read again against the "
        "papers' texts; each gives the reason."
    )


def _runs(judgement: EntryVerdicts) -> str:
    results = judgement.results
    low, high = results.repetitions
    if not high:
        return "not run"
    runs = str(low) if low == high else f"{low} to {high}"
    many = "s" if high > 1 else ""
    whole = results.size == "full" or not results.entry.shortened
    size = "the paper's size" if whole else "short size"
    cells = f"each of {len(results.points)} cells" if len(results.points) > 1 else "one cell"
    text = f"{runs} run{many} of {cells}, {size}"
    if results.missing:
        text += f", {len(results.missing)} cells not run"
    return f"{text}, engine {results.engine}"


def _image(judgement: EntryVerdicts, number: int) -> str:
    return f"{judgement.results.entry.id}-{number}.svg"


def _order(judgement: EntryVerdicts) -> tuple[int, int, str]:
    entry: Entry = judgement.results.entry
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
    rows = [{name: _cell(value) for name, value in row.items()} for row in verdict_rows(judged)]
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
