"""`fullpipe sweep`: a scenario over axes, into a store; shards of it, merged."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fullpipe.base.errors import UserError
from fullpipe.base.lengthening import MOST_TIMES
from fullpipe.base.units import counted, format_size
from fullpipe.cli import INTERRUPTED
from fullpipe.cli.longer import UntilSettled
from fullpipe.cli.options import Changes, Jobs
from fullpipe.cli.output import console, duration, fail, message
from fullpipe.cli.progress import progress_of_runs

if TYPE_CHECKING:
    from fullpipe.sweep.cells import Cell
    from fullpipe.sweep.file import Options, Sweep
    from fullpipe.sweep.running import Outcome, Shard
    from fullpipe.sweep.schedule import Executor
    from fullpipe.sweep.store import Store

#: Failed runs that are listed one by one.
_LISTED = 10


class _RunByDefault(TyperGroup):
    """`fullpipe sweep FILE` is `fullpipe sweep run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["run", *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=_RunByDefault,
    help="Runs a scenario over axes: `fullpipe sweep FILE.toml`.",
    no_args_is_help=True,
)

_SweepFile = Annotated[Path, typer.Argument(metavar="FILE", help="The sweep (TOML).")]


@app.command()
def run(
    file: _SweepFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The store; by default sweeps/NAME."),
    ] = None,
    jobs: Jobs = None,
    set_: Changes = None,
    until_settled: UntilSettled = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it would take; run nothing.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Run only part I of N, such as 3/8 (Slurm, CI)."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ray|ADDRESS",
            help="Run on Ray: ray (this machine), ray://HOST:PORT, HOST:PORT, or a file with one.",
        ),
    ] = None,
) -> None:
    """Runs what a store lacks of a sweep.

    Finished runs are kept; after Ctrl-C, a crash or a full disk the same command continues. Exit
    status: 0 done, 1 some runs failed, 2 bad input, 130 interrupted."""
    from fullpipe.sweep.file import load_sweep
    from fullpipe.sweep.running import run_sweep
    from fullpipe.sweep.store import Store

    if until_settled:
        set_ = [*(set_ or []), "sweep.until_settled=true"]
    sweep = load_sweep(file, set_)
    part = _shard(shard)
    folder = out or Path("sweeps") / file.stem
    if dry_run:
        _forecast(sweep, folder, jobs)
        return
    store = Store(folder, create=True)
    begin = time.monotonic()
    with progress_of_runs() as update:
        outcome = run_sweep(sweep, store, _executor(on, jobs, sweep), part, update)
    for sentence in outcome.damaged:
        message(sentence, "bold red")
    of = f" (shard {shard})" if shard else ""
    ran = f"{counted(outcome.ran, 'run')} in {time.monotonic() - begin:.0f} s"
    message(
        f"{ran}, {outcome.reused} there before{of}; {counted(outcome.cells, 'cell')}; "
        f"store: {folder}"
    )
    _list_failures(outcome, file, set_ or [], sweep.options)
    _list_problems(store, outcome)
    if outcome.interrupted:
        fail("interrupted; the same command continues where it stopped", INTERRUPTED)
    message(f'to query it: fullpipe query {folder} "select * from flows limit 10"')
    if outcome.failures:
        raise typer.Exit(1)


@app.command()
def cell(
    file: _SweepFile,
    index: Annotated[int, typer.Argument(metavar="INDEX", min=0, help="Number of the cell.")],
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**63 - 1, help="Random seed of the run; by default the scenario's."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the scenario to this file."),
    ] = None,
    set_: Changes = None,
) -> None:
    """Prints the scenario of one cell for `fullpipe run`."""
    import tomli_w

    from fullpipe.base.writing import write_text
    from fullpipe.sweep.cells import cells_of, scenario_of
    from fullpipe.sweep.file import load_sweep

    sweep = load_sweep(file, set_)
    cells = cells_of(sweep)
    if index >= len(cells):
        raise UserError(f"{file}: has no cell {index}; `--dry-run` says how many there are")
    document, scenario = scenario_of(sweep, cells[index])
    text = tomli_w.dumps({**document, "seed": scenario.seed if seed is None else seed})
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)


@app.command()
def merge(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The store that gets all; may be missing.")
    ],
    sources: Annotated[
        list[Path], typer.Argument(metavar="SOURCE", help="The stores of the shards.")
    ],
) -> None:
    """Merges the stores of shards.

    Prints how many runs are still missing; exit status 1 where there are any."""
    from fullpipe.sweep.merging import merge as merge_stores

    result = merge_stores(target, sources)
    message(f"{target}: {counted(result.runs, 'run')}, {result.missing} missing")
    if result.missing:
        raise typer.Exit(1)


def _shard(text: str | None) -> Shard:
    from fullpipe.sweep.running import WHOLE, Shard

    if text is None:
        return WHOLE
    index, _, count = text.partition("/")
    if index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count) <= 100_000:
        return Shard(int(index), int(count))
    raise UserError(f"--shard {text}: write I/N, such as 3/8: part I of N, I from 1 to N")


def _executor(on: str | None, jobs: int | None, sweep: Sweep) -> Executor:
    if on is None:
        from fullpipe.sweep.pool import Pool

        return Pool(jobs)
    from fullpipe.sweep.cluster import Cluster, address_of

    return Cluster(address_of(on), jobs, sweep.options.engine)


def _forecast(sweep: Sweep, folder: Path, jobs: int | None) -> None:
    from fullpipe.base.machine import cores
    from fullpipe.sweep.estimate import estimate
    from fullpipe.sweep.filling import work_of
    from fullpipe.sweep.running import missing
    from fullpipe.sweep.store import Store

    store = Store(folder) if (folder / "store.json").exists() else None
    lacking, cells, runs = missing(sweep, store)
    forecast = estimate(lacking, work_of(sweep, folder))
    width = jobs or cores()
    console.print(f"cells    {cells}")
    console.print(f"runs     {runs}, of which {len(lacking)} are missing")
    if sweep.seeds.rule:
        console.print(f"         up to {cells * (sweep.seeds.most or 0)} where {sweep.seeds.until}")
    if sweep.options.until_settled:
        console.print(f"         up to {MOST_TIMES} times as long where they had not settled")
    from_trials = f"from {forecast.trials} trials" if forecast.trials else "from experience"
    console.print(
        f"time     about {duration(forecast.cpu_s / width)} on {width} cores "
        f"({duration(forecast.cpu_s)} of one core, {from_trials})"
    )
    console.print(f"disk     about {format_size(forecast.disk_bytes)}")


def _list_failures(outcome: Outcome, file: Path, changes: list[str], options: Options) -> None:
    how = [] if options.engine == "sim" else ["--engine", options.engine]
    for name, value in options.engine_options().items():
        how += [f"--{name}", value]
    for failed, seed, reason in outcome.failures[:_LISTED]:
        message(f"failed: {_label(failed)}, seed {seed}: {reason}", "bold red")
        words = ["fullpipe", "sweep", "cell", str(file), str(failed.index), "--seed", str(seed)]
        for change in changes:
            words += ["--set", change]
        again = shlex.join(["fullpipe", "run", "cell.toml", *how])
        message(f"  {shlex.join(words)} --out cell.toml && {again}")
    if len(outcome.failures) > _LISTED:
        message(f"and {counted(len(outcome.failures) - _LISTED, 'more failed run')}")


def _list_problems(store: Store, outcome: Outcome) -> None:
    """Names the runs of the sweep that are not to be trusted, which charts leave out."""
    from collections import Counter

    keys = set(store.sweeps()[outcome.sweep]["key"].to_pylist())
    runs = store.table("runs")
    problems = dict(zip(runs["key"].to_pylist(), runs["problems"].to_pylist(), strict=True))
    counts = Counter(problems[key] for key in keys & problems.keys())
    del counts[""]
    for problem, count in counts.most_common(_LISTED):
        message(f"not to be trusted: {counted(count, 'run')}: {problem}", "bold red")


def _label(cell: Cell) -> str:
    from fullpipe.sweep.templates import fields_of

    return f"cell {cell.index} " + ", ".join(
        f"{name} {value}" for name, value in fields_of(cell.point).items() if "." not in name
    )
