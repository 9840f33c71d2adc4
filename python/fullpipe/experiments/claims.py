"""The verdicts as one short Markdown page, and the counts of both pages.

The same results give the same bytes: no dates, no machines, no paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fullpipe.experiments.verdicts import STATUSES, EntryVerdicts, Verdict

_HEAD = """# What the papers claim, and what we find

Generated, never edited by hand:

```
fullpipe experiment run --all
fullpipe experiment report --all --claims docs/claims.md
```

Claims on others' measured points need `--observed FILE.csv` with both commands. How verdicts are
made: [experiments.md](experiments.md). Measured values stand with their 95 % interval over runs,
where there are at least three of each cell; the unit of repetition is the run.
"""
_MARKS = {"reproduced": "reproduced", "contradicted": "**contradicted**",
          "not testable here": "not testable"}  # fmt: skip


def claims_page(judged: Sequence[EntryVerdicts]) -> str:
    """The page's text."""
    lines = [_HEAD, *_table(judged)]
    for seed in seeds(judged):
        lines += ["", f"## {seed_title(seed)}"]
        for one in judged:
            if one.results.entry.seed == seed and one.verdicts:
                lines += _section(one)
    return "\n".join(lines) + "\n"


def seeds(judged: Iterable[EntryVerdicts]) -> list[str]:
    """The seeds in order."""
    return sorted({one.results.entry.seed for one in judged})


def seed_title(seed: str) -> str:
    """How a page calls a seed."""
    return f"Seed {seed}" if seed.isdecimal() else "Engines against each other"


def counts(judged: Iterable[EntryVerdicts], seed: str = "") -> dict[str, int]:
    """Status -> how many claims of a seed, or of all."""
    statuses = [
        verdict.status
        for one in judged
        for verdict in one.verdicts
        if seed in ("", one.results.entry.seed)
    ]
    return {status: statuses.count(status) for status in STATUSES}


def _table(judged: Sequence[EntryVerdicts]) -> list[str]:
    lines = [f"| | {' | '.join(STATUSES)} |", "|---|" + "---:|" * len(STATUSES)]
    for seed in [*seeds(judged), ""]:
        found = counts(judged, seed)
        name = seed_title(seed) if seed else "all"
        lines.append(f"| {name} | " + " | ".join(str(found[status]) for status in STATUSES) + " |")
    return lines


def _section(one: EntryVerdicts) -> list[str]:
    entry = one.results.entry
    runs = one.results.repetitions[0]
    lines = ["", _escaped(f"### {entry.figure}: {entry.title}"), f"`{entry.id}`"]
    if runs:
        lines[-1] += (
            f", {one.results.engine}, {runs} runs of each of {len(one.results.points)} cells"
        )
    lines += ["", "| claim | published | measured | verdict |", "|---|---|---|---|"]
    return lines + [_row(verdict) for verdict in one.verdicts]


def _row(verdict: Verdict) -> str:
    claim = verdict.claim
    words = [_MARKS[verdict.status]]
    if verdict.status == "contradicted" and claim.explanation:
        words.append(claim.explanation)
    if verdict.reason:
        words.append(verdict.reason)
    if claim.note:
        words.append(claim.note)
    about = "" if claim.about == "paper" else f" *({_ABOUT[claim.about]})*"
    cells = (
        claim.text + about, verdict.published, verdict.measured, ": ".join(words[:2])
        + "".join(f" {word}" for word in words[2:]),
    )  # fmt: skip
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


_ABOUT = {"simulator": "our target", "arithmetic": "the paper's own numbers"}


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
