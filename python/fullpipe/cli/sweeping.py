"""What `fullpipe sweep` does: a scenario over axes, into a store; shards of it, put together."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.base.writing import write_text
from fullpipe.cli.bars import duration, progress_of_runs
from fullpipe.cli.ending import INTERRUPTED, fail
from fullpipe.cli.saying import say

if TYPE_CHECKING:  # help waits for none of these
    import typer

    from fullpipe.sweep.cells import Cell
    from fullpipe.sweep.file import Sweep
    from fullpipe.sweep.running import Outcome, Shard
    from fullpipe.sweep.schedule import Executor
else:
    from fullpipe.cli.later import typer

#: Failed runs that are listed one by one.
_LISTED = 10


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the sweep, a TOML file")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="the store; by default sweeps/NAME")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=4096, help="processes; all cores")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="change a key of the file"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what it would take")] = False,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="only this part, such as 3/8 (Slurm, CI)")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ray|ADDRESS",
            help="Ray: on this machine, ray://HOST:PORT, HOST:PORT or a file that holds one",
        ),
    ] = None,
) -> int:
    """Runs what the store lacks of a sweep.

    Ctrl-C, a crash or a full disk cost what was under way; the same command continues. Exit
    status: 0 done, 1 some runs failed, 2 bad input, 130 interrupted."""
    from fullpipe.sweep.file import load_sweep
    from fullpipe.sweep.running import run_sweep
    from fullpipe.sweep.store import Store

    sweep = load_sweep(file, set_)
    part = _shard(shard)
    folder = out or Path("sweeps") / file.stem
    if dry_run:
        _forecast(sweep, folder, jobs)
        return 0
    store = Store(folder, create=True)
    begin = time.monotonic()
    with progress_of_runs() as update:
        outcome = run_sweep(sweep, store, _executor(on, jobs, sweep), part, update)
    of = f" (shard {shard})" if shard else ""
    say(
        f"{outcome.ran} runs in {time.monotonic() - begin:.0f} s, {outcome.reused} were there"
        f"{of}; {outcome.cells} cells; store: {folder}"
    )
    _list_failures(outcome, file, set_ or [])
    if outcome.interrupted:
        fail("interrupted; the same command continues where it stopped", INTERRUPTED)
    say(f'ask it: fullpipe query {folder} "select * from flows limit 10"')
    return 1 if outcome.failures else 0


def cell(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the sweep, a TOML file")],
    index: Annotated[int, typer.Argument(min=0, help="number of the cell")],
    seed: Annotated[int | None, typer.Option(help="of the run; the scenario's")] = None,
    out: Annotated[Path | None, typer.Option(help="write the scenario here instead")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="change a key of the file"),
    ] = None,
) -> int:
    """Prints the scenario of one cell, which `fullpipe run` takes."""
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
        return 0
    write_text(out, text)
    return 0


def merge(
    target: Annotated[Path, typer.Argument(help="the store that gets all; may be missing")],
    sources: Annotated[list[Path], typer.Argument(help="stores of shards")],
) -> int:
    """Puts the stores of shards together, and says what is still missing."""
    from fullpipe.sweep.merging import merge as merge_stores

    result = merge_stores(target, sources)
    say(f"{target}: {result.runs} runs, {result.missing} missing")
    return 1 if result.missing else 0


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
    from fullpipe.base.units import format_size
    from fullpipe.cli.output import console
    from fullpipe.sweep.estimate import estimate
    from fullpipe.sweep.pool import cores
    from fullpipe.sweep.running import missing, work_of
    from fullpipe.sweep.store import Store

    store = Store(folder) if (folder / "store.json").exists() else None
    lacking, cells, runs = missing(sweep, store)
    found = estimate(lacking, work_of(sweep, folder))
    width = jobs or cores()
    console.print(f"cells    {cells}")
    console.print(f"runs     {runs}, of which {len(lacking)} are missing")
    if sweep.seeds.rule:
        console.print(f"         up to {cells * (sweep.seeds.most or 0)} where {sweep.seeds.until}")
    from_trials = f"from {found.trials} trials" if found.trials else "by experience"
    console.print(
        f"time     about {duration(found.cpu_s / width)} on {width} cores "
        f"({duration(found.cpu_s)} of one core, {from_trials})"
    )
    console.print(f"disk     about {format_size(found.disk_bytes)}")


def _list_failures(outcome: Outcome, file: Path, changes: list[str]) -> None:
    for failed, seed, reason in outcome.failures[:_LISTED]:
        say(f"failed: {_label(failed)}, seed {seed}: {reason}", "bold red")
        words = ["fullpipe", "sweep", "cell", str(file), str(failed.index), "--seed", str(seed)]
        for change in changes:
            words += ["--set", change]
        say(f"  {shlex.join(words)} --out cell.toml && fullpipe run cell.toml")
    if len(outcome.failures) > _LISTED:
        say(f"and {len(outcome.failures) - _LISTED} more failed runs")


def _label(found: Cell) -> str:
    from fullpipe.sweep.templates import fields_of

    return f"cell {found.index} " + ", ".join(
        f"{name} {value}" for name, value in fields_of(found.point).items() if "." not in name
    )
