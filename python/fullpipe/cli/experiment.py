"""`fullpipe experiment`: the papers' figures and tables, run and judged."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fullpipe.base.errors import UserError
from fullpipe.base.units import parse_time
from fullpipe.base.writing import write_text
from fullpipe.cli import INTERRUPTED
from fullpipe.cli.options import Jobs, RunsFolder, parsed, with_groups
from fullpipe.cli.output import console, duration, fail, message, text_table
from fullpipe.cli.progress import progress_of_runs
from fullpipe.engines.base import engine_names

if TYPE_CHECKING:
    from fullpipe.experiments import Entry, EntryVerdicts, Store
    from fullpipe.experiments.entry import Size
    from fullpipe.experiments.kernel_confirmation import Confirmation, Refused
    from fullpipe.experiments.results import Results

app = typer.Typer(help="Runs and judges the experiments of papers.", no_args_is_help=True)


def entry_names() -> list[str]:
    """The names of the catalogue's entries."""
    return [entry.id for entry in _entries(None)]


_Catalogue = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of entries; by default fullpipe's own."),
]
_Full = Annotated[bool, typer.Option("--full", help="Use the paper's durations and repetitions.")]
_Packets = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="--confirm: of claims that differ or hold in part, take only cells of at most this "
        "many million packets.",
    ),
]


@dataclass(frozen=True)
class Chosen:
    """The entries that are run or judged, and which of their runs."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Entries, papers or PREFIX*.", autocompletion=entry_names
        ),
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="Take the whole catalogue.")] = False
    full: _Full = False
    engine: Annotated[
        list[str] | None,
        typer.Option(help="Instead of the entry's; repeatable.", autocompletion=engine_names),
    ] = None
    repeat: Annotated[int | None, typer.Option(min=1, max=1000, help="Runs of each cell.")] = None
    store: RunsFolder = None
    observed: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="CSV of measured points to plot as well; repeatable."),
    ] = None
    catalogue: _Catalogue = None

    @property
    def size(self) -> Size:
        """Of the experiments."""
        return _size(self.full)

    def entries(self) -> list[Entry]:
        """Raises UserError for unknown names, and unless either names or --all are given."""
        if self.all_ == bool(self.names):
            raise UserError("experiment: name entries (see `fullpipe experiment list`), or --all")
        from fullpipe.experiments.catalogue import pick

        entries = _entries(self.catalogue)
        return entries if self.all_ else pick(entries, self.names or [])

    def runs(self) -> Store:
        """The store."""
        from fullpipe.experiments import Store, default_store

        return Store(self.store or default_store())

    def judged(self, entry: Entry, runs: Store, or_short: bool = False) -> Iterator[EntryVerdicts]:
        """The verdicts on an entry by each engine that is wanted; of an entry that compares engines
        one, and their comparison is written. `or_short`: by the short runs where cells of the full
        size lack all runs, and fewer cells of the short size do."""
        from fullpipe.experiments import judge

        for name in self.engine or []:
            if name not in engine_names():
                raise UserError(f"--engine {name}: unknown; known are {', '.join(engine_names())}")
        engines = entry.engines[:1] if entry.compare_engines else entry.engines
        for name in self.engine or engines:
            judgement = judge(entry, runs, self.size, name, self.repeat, self.observed or ())
            if or_short and judgement.results.missing:
                short = judge(entry, runs, "default", name, self.repeat, self.observed or ())
                if len(short.results.missing) < len(judgement.results.missing):
                    judgement = short
            if entry.comparison_file:
                _write_comparison(judgement, self.catalogue)
            yield judgement


_DEFAULT = Chosen()

_COLOURS = {
    "reproduced": "green",
    "partly": "yellow",
    "contradicted": "red",
    "differs": "magenta",
    "unexplained": "magenta",
    "uncertain": "yellow",
    "not run": "yellow",
    "not testable here": "yellow",
}


@app.command("list")
def list_(
    catalogue: _Catalogue = None,
    paper: Annotated[
        str, typer.Option(metavar="KEY", help="Only of this paper, such as bless2025.")
    ] = "",
    runnable: Annotated[
        bool, typer.Option("--runnable", help="Only entries that can be run.")
    ] = False,
    grep: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Only entries whose name, title, text or claims contain this."
        ),
    ] = "",
) -> None:
    """Lists the catalogue."""
    entries = [
        entry
        for entry in _entries(catalogue)
        if (not paper or entry.paper == paper)
        and (entry.runnable or not runnable)
        and grep.lower() in _searched(entry)
    ]
    if not entries:
        raise UserError("experiment list: no entry of the catalogue matches")
    table = text_table("name", "shows", right=("cells", "runs", "claims"))
    table.columns[0].no_wrap = True
    for entry in entries:
        cells = len(entry.cells("default"))
        runs = cells * sum(entry.repetitions_of("default", name) for name in entry.engines)
        state = str(cells) if entry.runnable else ("-" if entry.not_yet_runnable else "none")
        title = entry.heading + (" (not yet runnable)" if entry.not_yet_runnable else "")
        table.add_row(entry.id, title, state, str(runs or "-"), str(len(entry.claim)))
    console.print(table)
    message(f"{len(entries)} entries; `fullpipe experiment show NAME` shows one")


def _searched(entry: Entry) -> str:
    """The text that --grep searches."""
    claims = [text for claim in entry.claim for text in (claim.id, claim.text)]
    return " ".join([entry.id, entry.figure, entry.title, entry.shows, *claims]).lower()


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An entry.", autocompletion=entry_names)
    ],
    catalogue: _Catalogue = None,
    full: _Full = False,
) -> None:
    """Shows what an entry runs, measures and claims."""
    from fullpipe.experiments.catalogue import pick
    from fullpipe.experiments.verdicts import commands

    size = _size(full)
    for entry in pick(_entries(catalogue), [name]):
        cells = entry.cells(size)
        heading = ", ".join(text for text in (entry.paper, entry.heading) if text)
        console.print(Text.assemble((entry.id, "bold"), f": {heading}"))
        console.print(entry.shows)
        for label, text in (
            ("differs", entry.differs),
            ("not yet runnable", entry.not_yet_runnable),
        ):
            if text:
                console.print(f"{label}: {text}")
        engines = ", ".join(entry.engines)
        console.print(
            f"{len(cells)} cells x {entry.repetitions_of(size)} runs on {engines}; "
            f"repeat: {commands(entry, size, catalogue)}"
        )
        for axis in entry.axes:
            values = dict.fromkeys(str(cell.axes.get(axis, "")) for cell in cells)
            console.print(f"  axis {axis}: {engines if axis == 'engine' else ', '.join(values)}")
        for metric_name, metric in entry.metric.items():
            console.print(f"  metric {metric_name}: {metric.value} ({metric.over_runs} of runs)")
        for claim in entry.claim:
            console.print(f"  claim {claim.id}: {claim.text}")
            console.print(f"    {claim.check or 'not testable: ' + claim.needs}", style="dim")


@app.command()
@with_groups
def run(
    chosen: Chosen = _DEFAULT,
    where: Annotated[
        str,
        typer.Option(metavar="CONDITION", help='Only cells for which this holds: "rtt == 10".'),
    ] = "",
    keep_recordings: Annotated[
        bool, typer.Option("--keep-recordings", help="Keep the recording of each run.")
    ] = False,
    jobs: Jobs = None,
    cc: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="NAME|FILE",
            help="Run this algorithm beside the paper's, such as ./mine.h; prints all cells and "
            "judges no claim.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Add no runs where a verdict stays uncertain.")
    ] = False,
    confirm_: Annotated[
        bool,
        typer.Option("--confirm", help="Run what the simulator contradicts on a kernel too (vm)."),
    ] = False,
    packets: _Packets = 1.0,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="--confirm: stop after about this long, such as 30min; the most telling runs "
            "come first.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page; by default recordings/NAME.html."
        ),
    ] = None,
) -> None:
    """Runs entries, prints verdicts, and writes a page.

    Runs that the store has are reused. Where a verdict stays uncertain, its cells are run with
    more seeds, up to the entry's `most_repetitions`, unless --once, --repeat, --where or --engine
    is given. --all leaves out the entries that compare engines, which take hours: name those.
    `fullpipe experiment report --confirm` prints what --confirm would run."""
    from fullpipe.experiments import run_entries
    from fullpipe.experiments.adaptive_runs import run_until_decided
    from fullpipe.experiments.kernel_confirmation import Confirmed, confirm, confirmations

    if budget is not None and not confirm_:
        raise UserError("--budget: bounds --confirm; give both")
    budget_s = None if budget is None else parsed("--budget", parse_time, budget) / 1e9
    entries = [entry for entry in chosen.entries() if chosen.names or not entry.compare_engines]
    if cc is not None:
        from fullpipe.experiments.own_algorithm import with_algorithm

        if confirm_:
            raise UserError("--cc: --confirm tests claims, which are about the paper's algorithms")
        entries = [with_algorithm(entry, cc) for entry in entries]
    size, observed, runs = chosen.size, chosen.observed or (), chosen.runs()
    engine, repeat = chosen.engine or (), chosen.repeat
    begin = time.monotonic()
    confirmed, refused = Confirmed(), []
    with progress_of_runs() as update:
        outcome = run_entries(
            entries, runs, size, engine, repeat, keep_recordings, jobs, update, where
        )
        if not (outcome.interrupted or once or where or repeat or engine):
            outcome.add(
                run_until_decided(entries, runs, size, observed, jobs, update, keep_recordings)
            )
        if confirm_ and not outcome.interrupted:
            plan = confirmations(entries, runs, size, observed, packets * 1e6)
            refused = plan.refused
            confirmed = confirm(plan.wanted, runs, size, jobs, update, budget_s)
            outcome.add(confirmed.outcome)
    judged = []
    for entry in entries:
        for judgement in chosen.judged(entry, runs):
            judged.append(judgement)
            if cc is None:
                _print(judgement)
            else:
                _write_cells([judgement.results], True, None, None)
    for sentence in outcome.damaged:
        message(sentence, "bold red")
    for (entry_id, name), reason in outcome.failures.items():
        message(f"{entry_id} on {name}: {reason}")
    message(
        f"{outcome.ran} runs in {time.monotonic() - begin:.0f} s, {outcome.reused} reused; "
        f"store: {runs.folder}"
    )
    if confirmed.done or confirmed.left:
        message(_cost(confirmed.done, "confirmed on a kernel", jobs))
        if confirmed.left and not outcome.interrupted:
            message(_cost(confirmed.left, "left", jobs) + "; the same command continues")
    _print_refused(refused)
    if outcome.interrupted:
        fail("interrupted; the same command continues where it stopped", INTERRUPTED)
    if any(
        any(judgement.results.runs) or not judgement.results.entry.runnable for judgement in judged
    ):
        from fullpipe.experiments.verdicts_page import verdicts_page

        stem = entries[0].id if len(entries) == 1 else "verdicts"
        _write(out or Path("recordings") / f"{stem}.html", verdicts_page(judged, chosen.catalogue))
    if outcome.failures and not outcome.ran and not outcome.reused:
        raise typer.Exit(1)


@app.command()
@with_groups
def report(
    chosen: Chosen = _DEFAULT,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The page; by default recordings/verdicts.html, and none with --evidence.",
        ),
    ] = None,
    claims: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a short version too, such as claims.md."),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write a page for each paper with its figures, a page of counts, and all verdicts "
            "as CSV.",
        ),
    ] = None,
    note: Annotated[
        str, typer.Option(help="A line for the head of these pages, such as which build ran.")
    ] = "",
    table: Annotated[
        bool, typer.Option("--table", help="Print all cells instead of writing the page.")
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print all verdicts as JSON instead of writing the page.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all runs as CSV instead of the page."),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all runs as Parquet instead of the page."),
    ] = None,
    or_short: Annotated[
        bool,
        typer.Option(
            "--or-short",
            help="--full: judge entries by their short runs where the store lacks cells of the "
            "paper's size.",
        ),
    ] = False,
    confirm_: Annotated[
        bool, typer.Option("--confirm", help="Print what `run --confirm` would still run instead.")
    ] = False,
    packets: _Packets = 1.0,
) -> None:
    """Writes the page of verdicts from what the store has; runs nothing."""
    from fullpipe.experiments.claims_page import claims_page
    from fullpipe.experiments.verdicts_page import verdicts_page

    entries, runs = chosen.entries(), chosen.runs()
    if confirm_:
        from fullpipe.experiments.kernel_confirmation import confirmations

        plan = confirmations(entries, runs, chosen.size, chosen.observed or (), packets * 1e6)
        _print_confirmations(plan.wanted)
        _print_refused(plan.refused)
        return
    if or_short and not chosen.full:
        raise UserError("--or-short: says what stands in for --full; give both")
    judged = [judgement for entry in entries for judgement in chosen.judged(entry, runs, or_short)]
    if table or csv or parquet:
        _write_cells([judgement.results for judgement in judged], table, csv, parquet)
        return
    if json_:
        from fullpipe.experiments.export import verdict_rows

        print(json.dumps(verdict_rows(judged), allow_nan=False))
        return
    if out is not None or evidence is None:
        path = out or Path("recordings/verdicts.html")
        _write(path, verdicts_page(judged, chosen.catalogue))
    if claims is not None:
        where = "" if chosen.catalogue is None else _shown(chosen.catalogue)
        names = chosen.names or ()
        _write(claims, claims_page(judged, note, where, _shown(claims), names))
    if evidence is not None:
        from fullpipe.experiments.paper_pages import paper_pages, require_right_if

        for name, text in paper_pages(judged, _shown(evidence), note).items():
            write_text(evidence / name, text)
        message(f"wrote {evidence}")
        require_right_if(judged)
    waiting = sum(
        bool(judgement.results.missing) for judgement in judged if judgement.results.entry.runnable
    )
    if waiting:
        message(f"entries with cells that were not run: {waiting} (fullpipe experiment run)")


def _print_confirmations(wanted: Sequence[Confirmation]) -> None:
    """A line for each verdict that is to be confirmed on a kernel, in that order."""
    table = text_table("entry", "claim", "verdict", right=("cells", "runs", "CPU time"))
    for confirmation in wanted:
        table.add_row(
            confirmation.entry.id,
            confirmation.claim,
            Text(confirmation.status, style=_COLOURS[confirmation.status]),
            str(len(confirmation.cells)),
            str(confirmation.runs),
            duration(confirmation.cost_s),
        )
    if wanted:
        console.print(table)
    message(_cost(wanted, "to confirm on a kernel", None))


def _print_refused(refused: Sequence[Refused]) -> None:
    """How many verdicts cannot be confirmed on a kernel, for each reason of the engine's."""
    for reason, count in Counter(refusal.reason for refusal in refused).most_common():
        message(f"cannot be run on a kernel: {_verdicts(count)}: {reason}")


def _verdicts(count: int) -> str:
    return f"{count} verdict{'s' if count != 1 else ''}"


def _cost(wanted: Sequence[Confirmation], label: str, jobs: int | None) -> str:
    """What it costs to confirm these verdicts."""
    from fullpipe.base.machine import cores

    width, cost_s = jobs or cores(), sum(confirmation.cost_s for confirmation in wanted)
    runs = sum(confirmation.runs for confirmation in wanted)
    return (
        f"{label}: {_verdicts(len(wanted))}, {runs} runs of the virtual machine, about "
        f"{duration(cost_s / width)} on {width} cores"
    )


def _write_cells(
    entries: list[Results], table: bool, csv: Path | None, parquet: Path | None
) -> None:
    from fullpipe.experiments.export import cell_table, write_runs

    for path, suffix in ((csv, ".csv"), (parquet, ".parquet")):
        if path is not None:
            if path.suffix != suffix:
                raise UserError(f"--{suffix[1:]} {path}: name it *{suffix}")
            write_runs(entries, path)
            message(f"wrote {path}")
    for results in entries if table else []:
        titles, rows = cell_table(results)
        cells = text_table(titles[0], right=titles[1:])
        for row in rows:
            cells.add_row(*row)
        engine = f" on {results.engine}: {results.entry.heading}"
        console.print(Text.assemble((results.entry.id, "bold"), engine))
        console.print(cells if rows else "nothing was run")


def _write_comparison(judgement: EntryVerdicts, catalogue: Path | None) -> None:
    """Writes the comparison of engines, once there are runs on both."""
    from fullpipe.experiments.catalogue import default_folder
    from fullpipe.experiments.engine_comparison import comparison_cells, comparison_page

    text = comparison_page(judgement)
    if text:
        page = (catalogue or default_folder()).resolve().parent
        page /= judgement.results.entry.comparison_file
        _write(page, text)
        _write(page.with_suffix(".csv"), comparison_cells(judgement))


def _write(path: Path, text: str) -> None:
    write_text(path, text)
    message(f"wrote {path}")


def _size(full: bool) -> Size:
    return "full" if full else "default"


def _entries(catalogue: Path | None) -> list[Entry]:
    from fullpipe.experiments import load_catalogue
    from fullpipe.experiments.catalogue import default_folder

    return load_catalogue(catalogue or default_folder())


def _print(judgement: EntryVerdicts) -> None:
    from fullpipe.experiments.verdicts import GRADES

    entry = judgement.results.entry
    console.print(Text.assemble((entry.id, "bold"), f" {entry.heading}"))
    for verdict in judgement.verdicts:
        word = (verdict.word, _COLOURS[verdict.status])
        console.print(Text.assemble("  ", word, f" {verdict.claim.id}: {verdict.claim.text}"))
        details = [text for text in (verdict.settling, verdict.reason, verdict.where) if text]
        if verdict.measured:
            low, high = verdict.runs
            many = str(low) if low == high else f"{low} to {high}"
            runs = f", {many} runs on {verdict.engine}" if high else ""
            details.append(f"measured {verdict.measured}{runs}")
        if verdict.published:
            details.append(f"published {verdict.published}")
        if verdict.grade:
            details.append(f"evidence: {GRADES[verdict.grade]}")
        if details:
            console.print(f"    {'; '.join(details)}", style="dim")


def _shown(path: Path) -> str:
    """A path as written, or of one of this machine its last part: the page is the same anywhere."""
    return path.name if path.is_absolute() else str(path)
