"""`fullpipe experiment`: the papers' figures and tables, run and judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.base.writing import write_text
from fullpipe.cli.bars import duration, progress_of_runs
from fullpipe.cli.ending import fail
from fullpipe.cli.output import console, messages
from fullpipe.cli.saying import say

if TYPE_CHECKING:  # help waits for none of these
    from fullpipe.papers import Entry, EntryVerdicts, Store
    from fullpipe.papers.confirming import Question
    from fullpipe.papers.entry import Size
    from fullpipe.papers.results import Results

app = typer.Typer(no_args_is_help=True, help="The papers as experiments, with verdicts.")

Catalogue = Annotated[Path | None, typer.Option(help="folder of entries; the checkout's")]
StoreFolder = Annotated[Path | None, typer.Option("--store", help="where runs are kept")]
EngineNames = Annotated[list[str] | None, typer.Option("--engine", help="instead of the entry's")]
Full = Annotated[bool, typer.Option("--full", help="the paper's durations and repetitions")]
Observed = Annotated[list[Path] | None, typer.Option(help="CSV of measured points to lay beside")]
Packets = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="--confirm: of claims that differ or hold in part, only cells of at most so many "
        "million packets",
    ),
]
Repeat = Annotated[int | None, typer.Option(min=1, max=1000, help="runs of each cell")]

_COLOURS = {
    "reproduced": "green", "partly": "yellow", "contradicted": "red", "differs": "magenta",
    "uncertain": "yellow", "not testable here": "yellow",
}  # fmt: skip


@app.command("list")
def list_(
    catalogue: Catalogue = None,
    paper: Annotated[str, typer.Option(help="only of this paper, such as bless2025")] = "",
    runnable: Annotated[bool, typer.Option("--runnable", help="only what can be run")] = False,
    grep: Annotated[
        str, typer.Option(help="only those whose name, title, text or claims hold this")
    ] = "",
) -> None:
    """Lists the catalogue."""
    entries = [
        entry
        for entry in _entries(catalogue)
        if (not paper or entry.paper == paper)
        and (entry.runnable or not runnable)
        and grep.lower() in _words(entry)
    ]
    if not entries:
        raise UserError("experiment list: nothing in the catalogue is like this")
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("shows", overflow="fold")
    for title in ("cells", "runs", "claims"):
        table.add_column(title, justify="right")
    for entry in entries:
        cells = len(entry.cells("default"))
        runs = cells * sum(entry.repetitions_of("default", name) for name in entry.engines)
        state = str(cells) if entry.runnable else ("-" if entry.not_yet_runnable else "none")
        title = entry.heading
        if entry.not_yet_runnable:
            title += " (not yet runnable)"
        table.add_row(entry.id, escape(title), state, str(runs or "-"), str(len(entry.claim)))
    console.print(table)
    say(f"{len(entries)} listed; `fullpipe experiment show NAME` tells more of one")


def _words(entry: Entry) -> str:
    """What --grep looks through."""
    claims = [text for claim in entry.claim for text in (claim.id, claim.text)]
    return " ".join([entry.id, entry.figure, entry.title, entry.shows, *claims]).lower()


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="name of an entry")],
    catalogue: Catalogue = None,
    full: Full = False,
) -> None:
    """Shows what an entry runs, measures and claims."""
    from fullpipe.papers.catalogue import pick
    from fullpipe.papers.verdicts import commands

    size = _size(full)
    for entry in pick(_entries(catalogue), [name]):
        cells = entry.cells(size)
        _line(entry.id, ": " + ", ".join(text for text in (entry.paper, entry.heading) if text))
        _line("", entry.shows)
        for label, text in (
            ("differs", entry.differs), ("not yet runnable", entry.not_yet_runnable)
        ):  # fmt: skip
            if text:
                _line("", f"{label}: {text}")
        engines = ", ".join(entry.engines)
        console.print(
            f"{len(cells)} cells x {entry.repetitions_of(size)} runs on {engines}; "
            f"repeat: {commands(entry, size, catalogue)}"
        )
        for axis in entry.axes:
            values = dict.fromkeys(str(cell.axes.get(axis, "")) for cell in cells)
            _line("", f"  axis {axis}: {', '.join(values) if axis != 'engine' else engines}")
        for metric_name, metric in entry.metric.items():
            _line("", f"  metric {metric_name}: {metric.value} ({metric.over_runs} of runs)")
        for claim in entry.claim:
            _line("", f"  claim {claim.id}: {claim.text}")
            console.print(
                f"    {claim.check or 'not testable: ' + claim.needs}", style="dim", markup=False
            )


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="entries, citation keys, PREFIX*")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="the whole catalogue")] = False,
    full: Full = False,
    engine: EngineNames = None,
    repeat: Repeat = None,
    store: StoreFolder = None,
    observed: Observed = None,
    catalogue: Catalogue = None,
    where: Annotated[
        str, typer.Option(help='only cells for which this holds, such as "rtt == 10"')
    ] = "",
    keep_recordings: Annotated[bool, typer.Option(help="keep each run's recording")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at once; all cores")] = None,
    once: Annotated[
        bool, typer.Option("--once", help="no more runs where a verdict stays uncertain")
    ] = False,
    confirm_: Annotated[
        bool,
        typer.Option("--confirm", help="what the simulator contradicts runs on a kernel too (vm)"),
    ] = False,
    packets: Packets = 1.0,
    budget: Annotated[
        str | None,
        typer.Option(help="--confirm: at most about so long, such as 30min; first what tells most"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="the page; recordings/NAME.html")] = None,
) -> int:
    """Runs entries; what the store holds already is reused. Prints the verdicts, writes a page.

    Where a verdict stays uncertain, its cells are run with more seeds, up to the entry's
    `most_repetitions`; --repeat and --where leave it at that. --all leaves out what compares
    engines: a virtual machine takes hours, so that is named. What --confirm would take says
    `fullpipe experiment report --confirm`."""
    from fullpipe.papers import judge, run_entries
    from fullpipe.papers.confirming import Confirmed, confirm, questions
    from fullpipe.papers.settle import settle

    if budget is not None and not confirm_:
        raise UserError("--budget: bounds --confirm; give both")
    budget_s = None if budget is None else _seconds(budget)

    entries = [
        entry for entry in _chosen(catalogue, names, all_) if names or not entry.compare_engines
    ]
    asked = {entry.id: _engines(entry, engine) for entry in entries}
    size = _size(full)
    kept = _store(store)
    begin = time.monotonic()
    confirmed = Confirmed()
    with progress_of_runs() as update:
        outcome = run_entries(
            entries, kept, size, engine or (), repeat, keep_recordings, jobs, update, where
        )
        if not (outcome.interrupted or once or where or repeat or engine):
            outcome.add(settle(entries, kept, size, observed or (), jobs, update,
                                 keep_recordings))  # fmt: skip
        if confirm_ and not outcome.interrupted:
            asked_of_kernel = questions(entries, kept, size, observed or (), packets * 1e6)
            confirmed = confirm(asked_of_kernel, kept, size, jobs, update, budget_s)
            outcome.add(confirmed.outcome)
    judged = []
    for entry in entries:
        for one in asked[entry.id]:
            found = judge(entry, kept, size, one, repeat, observed or ())
            judged.append(found)
            _print(found)
            if entry.comparison_file:
                _compare(found, catalogue)
    for (entry_id, one), reason in outcome.failures.items():
        messages.print(f"{entry_id} on {one}: {reason}")
    messages.print(
        f"{outcome.ran} runs in {time.monotonic() - begin:.0f} s, {outcome.reused} reused; "
        f"store: {kept.folder}"
    )
    if confirmed.answered or confirmed.left:
        messages.print(_asked(confirmed.answered, "asked of a kernel", jobs))
        if confirmed.left and not outcome.interrupted:
            messages.print(_asked(confirmed.left, "left", jobs) + "; the same command goes on")
    if outcome.interrupted:
        fail("interrupted; the same command continues where it stopped", 130)
    if any(any(one.results.runs) or not one.results.entry.runnable for one in judged):
        from fullpipe.papers.page import verdicts_page  # figures take seconds to load

        name = entries[0].id if len(entries) == 1 else "verdicts"
        _write(out or Path("recordings") / f"{name}.html", verdicts_page(judged, catalogue))
    return 1 if outcome.failures and not outcome.ran and not outcome.reused else 0


@app.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="entries, citation keys, PREFIX*")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="the whole catalogue")] = False,
    out: Annotated[Path, typer.Option(help="the page to write")] = Path("recordings/verdicts.html"),
    claims: Annotated[
        Path | None, typer.Option(help="write the short version here, such as docs/claims.md")
    ] = None,
    full: Full = False,
    engine: EngineNames = None,
    repeat: Repeat = None,
    store: StoreFolder = None,
    observed: Observed = None,
    catalogue: Catalogue = None,
    note: Annotated[
        str, typer.Option(help="a line for the head of --claims, such as which build ran")
    ] = "",
    table: Annotated[
        bool, typer.Option("--table", help="print all cells instead of writing the page")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="write all runs as CSV here instead of the page")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="write all runs as Parquet here instead of the page")
    ] = None,
    confirm_: Annotated[
        bool,
        typer.Option("--confirm", help="print instead what `run --confirm` would still take"),
    ] = False,
    packets: Packets = 1.0,
) -> None:
    """Writes the page of verdicts, or all cells as a table, from what the store holds; runs
    nothing."""
    # Figures and templates take seconds to load: only when they are needed.
    from fullpipe.papers import judge
    from fullpipe.papers.claims import claims_page
    from fullpipe.papers.page import verdicts_page

    entries = _chosen(catalogue, names, all_)
    kept = _store(store)
    if confirm_:
        from fullpipe.papers.confirming import questions

        _print_asked(questions(entries, kept, _size(full), observed or (), packets * 1e6))
        return
    judged = []
    for entry in entries:
        for one in _engines(entry, engine):
            judged.append(judge(entry, kept, _size(full), one, repeat, observed or ()))
            if entry.comparison_file:
                _compare(judged[-1], catalogue)
    if table or csv or parquet:
        _tables([one.results for one in judged], table, csv, parquet)
        return
    _write(out, verdicts_page(judged, catalogue))
    if claims is not None:
        _write(claims, claims_page(judged, note))
    waiting = sum(bool(one.results.missing) for one in judged if one.results.entry.runnable)
    if waiting:
        say(f"entries with cells that were not run: {waiting} (fullpipe experiment run)")


def _print_asked(asked: Sequence[Question]) -> None:
    """A line for each verdict that a kernel is to be asked about, in that order."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("entry", "claim", "verdict"):
        table.add_column(title, overflow="fold")
    for title in ("cells", "runs", "CPU time"):
        table.add_column(title, justify="right")
    for one in asked:
        status = f"[{_COLOURS[one.status]}]{one.status}[/]"
        cells = str(len(one.cells)), str(one.runs), duration(one.cost_s)
        table.add_row(one.entry.id, escape(one.claim), status, *cells)
    if asked:
        console.print(table)
    say(_asked(asked, "to ask of a kernel", None))


def _asked(asked: Sequence[Question], what: str, jobs: int | None) -> str:
    """How much these questions are."""
    from fullpipe.sweep.pool import cores

    width, cost_s = jobs or cores(), sum(one.cost_s for one in asked)
    runs = sum(one.runs for one in asked)
    return (
        f"{what}: {len(asked)} verdicts, {runs} runs of the virtual machine, some "
        f"{duration(cost_s / width)} on {width} cores"
    )


def _seconds(text: str) -> float:
    """What --budget says."""
    from fullpipe.base.units import UnitError, parse_time

    try:
        return parse_time(text) / 1e9
    except UnitError as error:
        raise UserError(f"--budget: {error}") from None


def _tables(found: list[Results], table: bool, csv: Path | None, parquet: Path | None) -> None:
    from fullpipe.papers.cells import cell_table, write_runs

    for path, ending in ((csv, ".csv"), (parquet, ".parquet")):
        if path is not None:
            if path.suffix != ending:
                raise UserError(f"--{ending[1:]} {path}: name it *{ending}")
            write_runs(found, path)
            say(f"wrote {path}")
    for results in found if table else []:
        titles, rows = cell_table(results)
        shown = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
        for index, title in enumerate(titles):
            shown.add_column(escape(title), justify="left" if index == 0 else "right")
        for row in rows:
            shown.add_row(*(escape(cell) for cell in row))
        _line(results.entry.id, f" on {results.engine}: {results.entry.heading}")
        if rows:
            console.print(shown)
        else:
            console.print("nothing was run")


def _compare(found: EntryVerdicts, catalogue: Path | None) -> None:
    """Writes the comparison of engines, once there is something of both to compare."""
    from fullpipe.papers.agreement import agreement_page
    from fullpipe.papers.catalogue import default_folder

    text = agreement_page(found)
    if text:
        folder = (catalogue or default_folder()).resolve().parent
        _write(folder / found.results.entry.comparison_file, text)


def _write(path: Path, text: str) -> None:
    write_text(path, text)
    say(f"wrote {path}")


def _store(folder: Path | None) -> Store:
    from fullpipe.papers import Store, default_store

    return Store(folder or default_store())


def _engines(entry: Entry, asked: list[str] | None) -> list[str]:
    """The engines whose verdicts are wanted, one where they are compared."""
    from fullpipe.engines import engine_names

    for one in asked or []:
        if one not in engine_names():
            raise UserError(f"--engine {one}: unknown; known are {', '.join(engine_names())}")
    return asked or ([entry.engines[0]] if entry.compare_engines else list(entry.engines))


def _size(full: bool) -> Size:
    return "full" if full else "default"


def _entries(catalogue: Path | None) -> list[Entry]:
    from fullpipe.papers import load_catalogue
    from fullpipe.papers.catalogue import default_folder

    return load_catalogue(catalogue or default_folder())


def _chosen(catalogue: Path | None, names: list[str] | None, everything: bool) -> list[Entry]:
    if everything == bool(names):
        raise UserError("experiment: name entries (see `fullpipe experiment list`), or --all")
    from fullpipe.papers.catalogue import pick

    entries = _entries(catalogue)
    return entries if everything else pick(entries, names or [])


def _line(bold: str, text: str) -> None:
    """Text of an entry is no markup."""
    console.print(f"[bold]{bold}[/]{escape(text)}" if bold else escape(text))


def _print(found: EntryVerdicts) -> None:
    from fullpipe.papers.verdicts import GRADES

    entry = found.results.entry
    _line(entry.id, f" {entry.heading}")
    for verdict in found.verdicts:
        colour = _COLOURS[verdict.status]
        said = escape(f"{verdict.claim.id}: {verdict.claim.text}")
        console.print(f"  [{colour}]{verdict.word}[/] {said}")
        details = [text for text in (verdict.reason, verdict.where) if text]
        if verdict.measured:
            low, high = verdict.runs
            many = str(low) if low == high else f"{low} to {high}"
            runs = f", {many} runs on {verdict.engine}" if high else ""
            details.append(f"measured {verdict.measured}{runs}")
        if verdict.published:
            details.append(f"published {verdict.published}")
        if verdict.grade:
            details.append(f"rests on {GRADES[verdict.grade]}")
        if details:
            console.print(f"    {'; '.join(details)}", style="dim", markup=False)
