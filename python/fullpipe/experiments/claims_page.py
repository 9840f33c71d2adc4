"""The verdicts as one Markdown page, and the counts for both pages.

Equal results give equal bytes: the page has no dates, machines or paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fullpipe.experiments.verdict_chart import text_chart
from fullpipe.experiments.verdicts import (
    GRADES,
    STATUSES,
    WITHOUT_RUNS,
    EntryVerdicts,
    Grade,
    Status,
    Verdict,
)

_HEAD = """# {heading}

Generated, never edited by hand:

```
fullpipe experiment run {which}{options}
fullpipe experiment report {which} --claims {page}
```

Papers are named by the citation keys of [papers.md](../background/papers.md). Claims on points
that others measured need `--observed FILE.csv` with both commands.
[experiments.md](../reference/experiments.md#verdicts) says how verdicts are made. The unit of
repetition is the run; the intervals are 95 % over runs.

{outcomes}

**Charts.** `o` the measured value, `[==]` its interval, `┃` the threshold of the claim, `x` the
paper's value.
"""
_OUTCOMES = """\
**Outcomes.** *Reproduced*: holds in every cell. *Partly*: holds in some cells and fails in at most
half, which are listed. *Contradicted*: fails in more than half. *Differs*: as contradicted, but
only in the simulator, in cells that were not compared with a kernel. *Unexplained*: as these, over
the paper's own set-up, and no cause that was tried accounts for the difference. *Uncertain*: the
runs allow both outcomes. A cell in which they do is no failure. Values without an interval have
fewer than three runs."""
#: Kinds of claims: printed in a paper, necessary for a printed one to mean what it says, or a
#: target of this project.
KINDS = {"printed": "claims of the papers", "implied": "implied by them", "target": "our targets"}


def claims_page(
    judged: Sequence[EntryVerdicts],
    note: str = "",
    catalogue: str = "",
    page: str = "",
    names: Sequence[str] = (),
) -> str:
    """The page's text. `note`: a line that the results do not tell, such as the build. `catalogue`:
    the folder of the entries, `page` the file, `names` those of the entries unless it has all, for
    the commands in its head. Comparisons of engines with missing runs are left out; they have a
    page of their own."""
    head = _HEAD.format(
        heading="Published measurements" if catalogue else "Claims and verdicts",
        which=" ".join(names) or "--all",
        options=f" --catalogue {catalogue}" if catalogue else " --confirm",
        page=page + (f" --catalogue {catalogue}" if catalogue else ""),
        outcomes=_OUTCOMES,
    )
    judged = [
        judgement
        for judgement in judged
        if not (judgement.results.entry.comparison_file and judgement.results.missing)
    ]
    lines = [head, *([escaped(note), ""] if note else []), *counts_table(judged), ""]
    lines += [*_held_out(judged), *evidence_table(judged)]
    for paper in papers(judged):
        lines += ["", f"## {title(paper)}"]
        for judgement in judged:
            if judgement.results.entry.paper == paper and judgement.verdicts:
                lines += _section(judgement)
    return "\n".join(lines) + "\n"


def outcomes() -> str:
    """What each verdict means."""
    return _OUTCOMES


def papers(judged: Iterable[EntryVerdicts]) -> list[str]:
    """The `paper` of all entries, in order."""
    return sorted({judgement.results.entry.paper for judgement in judged})


def title(paper: str) -> str:
    """The heading of a paper's section."""
    return "Engines against each other" if paper == "agreement" else paper or "Experiments"


def kind(verdict: Verdict) -> str:
    """The kind of a claim, a key of KINDS."""
    if verdict.claim.about == "simulator":
        return "target"
    return "implied" if verdict.claim.text.startswith("Implied:") else "printed"


def counts(
    judged: Iterable[EntryVerdicts], paper: str | None = None, held_out: bool | None = None
) -> dict[Status, int]:
    """Status -> number of claims of one paper, or of all papers, held out or not, or all of them;
    without our own targets."""
    statuses = [
        verdict.status
        for judgement in judged
        for verdict in judgement.verdicts
        if paper in (None, judgement.results.entry.paper)
        and held_out in (None, verdict.claim.held_out)
        and kind(verdict) != "target"
    ]
    return {status: statuses.count(status) for status in STATUSES}


def rests(judged: Iterable[EntryVerdicts], wanted: str) -> dict[tuple[Status, Grade], int]:
    """(Status, grade of evidence) -> number of claims of a kind."""
    numbers: dict[tuple[Status, Grade], int] = {}
    for judgement in judged:
        for verdict in judgement.verdicts:
            if kind(verdict) == wanted:
                key = (verdict.status, verdict.grade)
                numbers[key] = numbers.get(key, 0) + 1
    return numbers


def counts_table(judged: Sequence[EntryVerdicts]) -> list[str]:
    """The lines of the table of verdicts by paper."""
    lines = list(_COUNTS_HEAD)
    for paper in papers(judged):
        lines += _counts_row(title(paper), counts(judged, paper))
    return lines + _counts_row("all", counts(judged))


def _held_out(judged: Sequence[EntryVerdicts]) -> list[str]:
    """The counts of the works of which some claims are held out: those claims, and the others.
    Nothing for a catalogue that holds none out."""
    works = papers(
        judgement
        for judgement in judged
        if any(verdict.claim.held_out for verdict in judgement.verdicts)
    )
    if not works:
        return []
    of_works = [judgement for judgement in judged if judgement.results.entry.paper in works]
    lines = ["Of the works with claims that are held out:", "", *_COUNTS_HEAD]
    for held_out, name in ((True, "held out"), (False, "the others")):
        for paper in works:
            lines += _counts_row(f"{title(paper)}, {name}", counts(of_works, paper, held_out))
        lines += _counts_row(f"all, {name}", counts(of_works, None, held_out))
    return [*lines, ""]


_COUNTS_HEAD = (f"| | {' | '.join(STATUSES)} |", "|---|" + "---:|" * len(STATUSES))


def _counts_row(name: str, numbers: dict[Status, int]) -> list[str]:
    """A row of counts; none where there is nothing to count."""
    if not any(numbers.values()):
        return []
    return [f"| {name} | " + " | ".join(str(numbers[status]) for status in STATUSES) + " |"]


def evidence_table(judged: Sequence[EntryVerdicts]) -> list[str]:
    """The lines of the table of verdicts by the evidence that they rest on."""
    titles = [*GRADES.values(), "nothing"]
    lines = [
        "Evidence:",
        "",
        f"| | {' | '.join(titles)} | all |",
        "|---|" + "---:|" * (len(titles) + 1),
    ]
    for name, title in KINDS.items():
        numbers = rests(judged, name)
        if not numbers:
            continue
        lines.append(
            f"| **{title}** | " + " | ".join("" for _ in titles) + f" | {sum(numbers.values())} |"
        )
        for status in STATUSES:
            row = [numbers.get((status, grade), 0) for grade in (*GRADES, "")]
            if any(row):
                cells = " | ".join(str(count or "") for count in row)
                lines.append(f"| {status} | {cells} | {sum(row)} |")
    return lines


def _section(judgement: EntryVerdicts) -> list[str]:
    results, entry = judgement.results, judgement.results.entry
    low, high = results.repetitions
    lines = ["", escaped(f"### {entry.heading}"), f"`{entry.id}`"]
    if high:
        runs = str(low) if low == high else f"{low} to {high}"
        many = "s" if high > 1 else ""
        lines[-1] += f", {results.engine}, {runs} run{many} of each of {len(results.points)} cells"
    return [*lines, "", *claims_table(judgement.verdicts)]


def claims_table(verdicts: Iterable[Verdict]) -> list[str]:
    """The lines of the table of these verdicts."""
    head = ("| claim | published | measured | verdict | evidence |", "|---|---|---|---|---|")
    return [*head, *(_row(verdict) for verdict in verdicts)]


def _row(verdict: Verdict) -> str:
    claim = verdict.claim
    again = f"Read again: {claim.reread}" if claim.reread else ""
    words = [
        sentence_of(verdict.settling),
        verdict.where,
        verdict.reason,
        why(verdict),
        claim.note,
        again,
    ]
    remarks = " ".join(word for word in words if word)
    mark = verdict.word if verdict.status == "reproduced" else f"**{verdict.word}**"
    about = "" if claim.about == "paper" else f" *({_ABOUT[claim.about]})*"
    about += " *(held out)*" if claim.held_out else ""
    chart = text_chart(verdict)
    measured = escaped(verdict.measured + (f" ({verdict.kernel})" if verdict.kernel else ""))
    cells = (
        escaped(claim.text + about),
        escaped(verdict.published),
        measured + (f"<br>`{chart}`" if chart else ""),
        mark + (f": {escaped(remarks)}" if remarks else ""),
        GRADES.get(verdict.grade, ""),
    )
    return "| " + " | ".join(cells) + " |"


def sentence_of(words: str) -> str:
    """Words as a sentence; empty for none."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def why(verdict: Verdict) -> str:
    """Why a claim does not hold, and what would have to be true for the paper to be right."""
    claim = verdict.claim
    if verdict.status in ("reproduced", *WITHOUT_RUNS):
        return ""
    words = [claim.explanation]
    if verdict.status == "unexplained" and claim.unexplained is not None:
        words.append(f"Set-up: {claim.unexplained.setup} Tried:")
        words += [f"{attempt.cause}: {attempt.effect}" for attempt in claim.unexplained.tried]
    if verdict.status in ("contradicted", "differs") and claim.right_if:
        words.append(f"The paper is right if {claim.right_if}")
    return " ".join(word for word in words if word)


_ABOUT = {"simulator": "our target", "arithmetic": "the paper's own numbers"}


def escaped(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
