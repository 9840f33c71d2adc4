"""`fullpipe compare`: congestion controls on one path."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.base.errors import AlgorithmError, UserError
from fullpipe.cli import INTERRUPTED
from fullpipe.cli.options import (
    DEFAULT_LOOK,
    Changes,
    Engine,
    Figures,
    Json,
    KernelImage,
    Light,
    LookOptions,
    Machine,
    Recordings,
    cc_names,
    engine_options,
    with_groups,
)
from fullpipe.cli.output import comparison_table, console, fail, message, warn, write_figures
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.recording.recording import Recording
    from fullpipe.scenario.model import Scenario


#: The path where --path names none.
_PATH = {"rate": "100mbit", "rtt": "40ms", "buffer": "1bdp", "qdisc": "fifo", "loss": "0%"}


@with_groups
def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Congestion controls, such as bbr3 cubic ./mine.h.",
            autocompletion=cc_names,
        ),
    ],
    path: Annotated[
        Path | None,
        typer.Option(
            metavar="SCENARIO",
            help="Scenario file whose network to take, instead of --rate and the others.",
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help=f"Rate of the bottleneck; by default {_PATH['rate']}.")
    ] = None,
    rtt: Annotated[str | None, typer.Option(help=f"Base RTT; by default {_PATH['rtt']}.")] = None,
    buffer: Annotated[
        str | None, typer.Option(help=f"Limit of the queue; by default {_PATH['buffer']}.")
    ] = None,
    qdisc: Annotated[
        str | None,
        typer.Option(help="Queue discipline: fifo (the default), fq_codel, cake, pie, ..."),
    ] = None,
    flows: Annotated[
        int, typer.Option(min=1, max=500, help="Flows of each congestion control in a run.")
    ] = 1,
    duration: Annotated[str, typer.Option(help="Duration of a run.")] = "30s",
    warmup: Annotated[str, typer.Option(help="Beginning that metrics leave out.")] = "5s",
    loss: Annotated[str | None, typer.Option(help="Random loss; by default none.")] = None,
    set_: Changes = None,
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Runs of each, with different seeds.")
    ] = 5,
    engine: Engine = "sim",
    machine: Machine = "qemu",
    kernel: KernelImage = None,
    together: Annotated[
        bool, typer.Option("--together", help="Run all in one run, against each other.")
    ] = False,
    harm_to: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run each against as many flows of this one, and measure what those lose.",
            autocompletion=cc_names,
        ),
    ] = None,
    out: Recordings = None,
    light: Light = False,
    figures: Figures = None,
    looks: LookOptions = DEFAULT_LOOK,
    json_: Json = False,
) -> None:
    """Compares congestion controls on one path.

    Each runs alone, unless --together or --harm-to is given. Prints means over the runs with 95 %
    intervals (bootstrap) and, for controls that run alone, Welch's test of each metric. A run is
    one repetition. Exit status: 0 done, 1 a run failed, 2 bad input, 130 interrupted."""
    import tomli_w

    from fullpipe.base.writing import check_folder
    from fullpipe.engines.runner import seeds_of
    from fullpipe.metrics import summarise
    from fullpipe.report.comparison import (
        BOOTSTRAP_SEED,
        compare_harm,
        compare_runs,
        compare_shares,
    )
    from fullpipe.report.page import write_report
    from fullpipe.scenario.document import changed, load_document
    from fullpipe.scenario.model import make_scenario
    from fullpipe.scenario.network import network_of

    check_folder("--figures", figures)
    look = looks.look_of(figures)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"compare: {', '.join(twice)} is given twice; for more flows use --flows")
    if together and harm_to is not None:
        raise UserError("--harm-to: runs each in a run of its own; leave out --together")
    wanted = {"rate": rate, "rtt": rtt, "buffer": buffer, "qdisc": qdisc, "loss": loss}
    given = {name: value for name, value in wanted.items() if value is not None}
    if path is not None and given:
        name, value = next(iter(given.items()))
        is_row = "link" in network_of(load_document(path), str(path))
        how = "--set on its [[link]]" if is_row else f"--set path.{name}={value}"
        raise UserError(f"--{name}: the path comes from --path; change it with {how}")
    options = engine_options(engine, machine, kernel=kernel)
    base = out or Path("recordings") / f"compare-{time.strftime('%Y%m%d-%H%M%S')}"
    if base.exists():
        raise UserError(f"{base}: exists already; name another folder with --out")
    if path is None:
        network: dict[str, Any] = {"path": {**_PATH, **given}}
    else:
        network = network_of(load_document(path), str(path))
    plans: dict[str, tuple[Scenario, str]] = {}
    common: dict[str, Any] = {}
    for name, group in _groups(names, flows, together, harm_to).items():
        document: dict[str, Any] = {
            **network, "name": name, "duration": duration, "warmup": warmup,
            "flow": group, "probe": [{"kind": "ping"}],
        }  # fmt: skip
        document = changed(document, set_ or [], path or "compare")
        common = {key: document[key] for key in (*network, "duration", "warmup")}
        scenario = make_scenario(document, "compare" if path is None else str(path))
        plans[name] = (scenario, tomli_w.dumps(document))
    failures: list[str] = []
    results = {}
    for name, plan in plans.items():
        runs, failed = _run(name, *plan, base, engine, options, repeat)
        failures += failed
        if runs:
            results[name] = runs
    if not results or (harm_to is not None and _alone(harm_to) not in results):
        fail("; ".join(failures), 1)
    summaries = {name: [summarise(run) for run in runs] for name, runs in results.items()}
    alone = summaries.get(_alone(harm_to), [])
    compared = {name: runs for name, runs in summaries.items() if runs is not alone}
    rows = compare_runs(compared)
    if harm_to is not None:
        rows += compare_harm(alone, compared)
    if together:
        rows += compare_shares(next(iter(summaries.values())))
    recordings = [run for runs in results.values() for run in runs]
    seeds = seeds_of(next(iter(plans.values()))[0], repeat)
    if json_:
        print(json.dumps({
            "engine": engine, **options, **common, "flows_each": flows, "harm_to": harm_to,
            "seeds": seeds, "bootstrap_seed": BOOTSTRAP_SEED,
            "metrics": [row.to_dict() for row in rows], "runs": summaries,
        }, allow_nan=False))  # fmt: skip
    else:
        alarms = {
            name: "; ".join(why for run in runs for why in run.problems)
            for name, runs in results.items()
        }
        console.print(comparison_table(rows, alarms))
        console.print(_notes(seeds, any(row.test is not None for row in rows)))
        if harm_to is not None:
            console.print(_harm_note(harm_to, flows))
    for run in recordings:
        warn(str(run.path), run.warnings)
    message(f"recordings: {base}")
    message(f"report: {write_report(recordings, base / 'report.html', light=light)}")
    write_figures(recordings, figures, look)
    if failures:
        fail("; ".join(failures), 1)


def _groups(
    names: list[str], flows: int, together: bool, harm_to: str | None
) -> dict[str, list[dict[str, Any]]]:
    """Label -> the flows of a scenario. The label of a file is its path where another has its
    name."""
    from fullpipe.congestion.registry import choose
    from fullpipe.report.comparison import OTHERS

    if together:
        label = " + ".join(choose(name, {}).name for name in names)
        return {label: [{"cc": name, "count": flows} for name in names]}
    shown = {name: choose(name, {}).name for name in names}
    called = [*shown.values()]
    each = {
        label if called.count(label) == 1 else name: {"cc": name, "count": flows}
        for name, label in shown.items()
    }
    if harm_to is None:
        return {label: [flow] for label, flow in each.items()}
    others = {"cc": harm_to, "count": flows, "name": OTHERS}
    beside = {f"{name} beside {_harmed(harm_to)}": [flow, others] for name, flow in each.items()}
    return {**beside, _alone(harm_to): [others]}


def _harmed(harm_to: str) -> str:
    """How `harm_to` is called. Raises UserError where it is none."""
    from fullpipe.congestion.registry import choose

    try:
        return choose(harm_to, {}).name
    except UserError as error:
        raise UserError(f"--harm-to: {error}") from None


def _alone(harm_to: str | None) -> str:
    """Label of the runs of `harm_to` alone."""
    return "" if harm_to is None else f"{_harmed(harm_to)} alone"


def _run(
    label: str,
    scenario: Scenario,
    toml: str,
    base: Path,
    engine: str,
    options: dict[str, str],
    repeat: int,
) -> tuple[list[Recording], list[str]]:
    """The recordings, and why runs failed."""
    from fullpipe.engines.runner import run_scenario

    folder = base / label.replace(" ", "").replace(":", "_").replace("/", "_").lstrip(".")
    folders = [folder / f"run-{index:03d}" for index in range(repeat)]
    with progress(label[:40], scenario.duration / 1e9 * repeat) as update:
        try:
            outcome = run_scenario(scenario, toml, folders, engine, options, update)
        except AlgorithmError as error:
            return [], [f"{label}: {error}"]
    if outcome.interrupted:
        fail(f"interrupted; what was recorded is readable in {base}", INTERRUPTED)
    return outcome.recordings, outcome.failures


def _notes(seeds: list[int], is_tested: bool) -> str:
    of = f"{len(seeds)} runs of each, seeds {seeds[0]} to {seeds[-1]}"
    if len(seeds) == 1:
        of = f"1 run of each, seed {seeds[0]}"
    line = f"{of}; a run is one repetition;\nintervals: bootstrap (BCa) of the mean"
    if not is_tested:
        return line
    return f"{line};\np: probability of such a difference if all had the same mean"


def _harm_note(harm_to: str, flows: int) -> str:
    label = _harmed(harm_to)
    victims = f"{flows} flows" if flows > 1 else "the flow"
    return (
        f"harm to {victims} of {label}: share of goodput that the others take away, share of\n"
        f"ping or retransmissions that they add; 0 none, 1 all; compared with {label} alone,\n"
        "seed by seed"
    )
