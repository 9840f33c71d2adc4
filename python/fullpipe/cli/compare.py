"""`fullpipe compare`: congestion controls beside one another on one path."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.base.writing import check_folder
from fullpipe.cli.bars import progress
from fullpipe.cli.completion import congestion_controls, engines
from fullpipe.cli.ending import INTERRUPTED, fail
from fullpipe.cli.output import comparison_table, console
from fullpipe.cli.saying import say, warn

if TYPE_CHECKING:
    import typer

    from fullpipe.recording.recording import Recording
    from fullpipe.scenario.model import Scenario
else:
    from fullpipe.cli.later import typer


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            help="congestion controls, such as bbr3 cubic ./mine.h",
            autocompletion=congestion_controls,
        ),
    ],
    rate: Annotated[str, typer.Option(help="rate of the bottleneck")] = "100mbit",
    rtt: Annotated[str, typer.Option(help="base RTT")] = "40ms",
    buffer: Annotated[str, typer.Option(help="limit of the queue")] = "1bdp",
    qdisc: Annotated[str, typer.Option(help="fifo, fq_codel, cake, pie, ...")] = "fifo",
    flows: Annotated[int, typer.Option(min=1, max=500, help="equal flows in each run")] = 1,
    duration: Annotated[str, typer.Option(help="of each run")] = "30s",
    warmup: Annotated[str, typer.Option(help="left out of the metrics")] = "5s",
    loss: Annotated[str, typer.Option(help="random loss")] = "0%",
    repeat: Annotated[int, typer.Option(min=1, max=1000, help="runs of each, by seed")] = 5,
    engine: Annotated[str, typer.Option(help="sim, vm or live", autocompletion=engines)] = "sim",
    together: Annotated[bool, typer.Option(help="all in one run, against each other")] = False,
    harm_to: Annotated[
        str | None,
        typer.Option(
            metavar="CC",
            help="each beside as many flows of CC, and what those lose by it",
            autocompletion=congestion_controls,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="folder for recordings and report")] = None,
    light: Annotated[bool, typer.Option(help="a small report with static plots")] = False,
    figures: Annotated[Path | None, typer.Option(help="write figures into this folder")] = None,
    json_: Annotated[bool, typer.Option("--json", help="print the metrics as JSON")] = False,
) -> int:
    """Compares congestion controls on the same path, each alone or all together.

    With --harm-to each stands beside flows of another, whose harm is told (docs/statistics.md).
    Means over the runs with 95 % intervals (bootstrap); between controls alone Welch's test of
    each metric. The unit of repetition is the run. Exit status: 0 done, 1 a run failed, 2 bad
    input, 130 interrupted."""
    from fullpipe.engines import engine_names, seeds_of
    from fullpipe.metrics import summarise
    from fullpipe.report import write_figures, write_report
    from fullpipe.report.comparison import (
        BOOTSTRAP_SEED,
        compare_harm,
        compare_runs,
        compare_shares,
    )
    from fullpipe.scenario.model import make_scenario

    if engine not in engine_names():
        raise UserError(f"--engine {engine}: unknown; known are {', '.join(engine_names())}")
    check_folder("--figures", figures)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"compare: {', '.join(twice)} is given twice; for more flows use --flows")
    if together and harm_to is not None:
        raise UserError("--harm-to: each stands beside the others' flows; leave out --together")
    base = out or Path("recordings") / f"compare-{time.strftime('%Y%m%d-%H%M%S')}"
    if base.exists():
        raise UserError(f"{base}: exists already; name another folder with --out")
    path = {"rate": rate, "rtt": rtt, "buffer": buffer, "qdisc": qdisc, "loss": loss}
    plans: dict[str, tuple[Scenario, str]] = {}
    for label, group in _groups(names, flows, together, harm_to).items():
        document: dict[str, Any] = {
            "name": f"compare {label}", "duration": duration, "warmup": warmup,
            "path": path, "flow": group,
            "probe": [{"kind": "ping"}],
        }  # fmt: skip
        scenario = make_scenario(document, "compare")
        plans[label] = (scenario, tomli_w.dumps(document))
    results = {
        label: _run(label, *plan, base, engine, repeat) for label, plan in plans.items()
    }  # fmt: skip
    summaries = {label: [summarise(run) for run in runs] for label, runs in results.items()}
    alone = summaries.get(_alone(harm_to), [])
    compared = {label: runs for label, runs in summaries.items() if runs is not alone}
    rows = compare_runs(compared)
    if harm_to is not None:
        rows += compare_harm(alone, compared)
    if together:
        rows += compare_shares(next(iter(summaries.values())))
    recordings = [run for runs in results.values() for run in runs]
    seeds = seeds_of(next(iter(plans.values()))[0], repeat)
    if json_:
        print(json.dumps({
            "engine": engine, "path": path, "flows_each": flows, "duration": duration,
            "warmup": warmup, "harm_to": harm_to, "seeds": seeds, "bootstrap_seed": BOOTSTRAP_SEED,
            "metrics": [row.to_dict() for row in rows], "runs": summaries,
        }, allow_nan=False))  # fmt: skip
    else:
        alarms = {
            label: "; ".join(why for run in runs for why in run.problems)
            for label, runs in results.items()
        }
        console.print(comparison_table(rows, alarms))
        console.print(_how(seeds, together))
        if harm_to is not None:
            console.print(_how_harm(harm_to, flows))
    for run in recordings:
        warn(str(run.path), run.warnings)
    say(f"recordings: {base}")
    say(f"report: {write_report(recordings, base / 'report.html', light=light)}")
    if figures is not None:
        for figure in write_figures(recordings, figures):
            say(f"figure: {figure}")
    return 0


def _groups(
    names: list[str], flows: int, together: bool, harm_to: str | None
) -> dict[str, list[dict[str, Any]]]:
    """Label -> the flows of a scenario. Files that show by the same name are told apart by their
    paths."""
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
    label = choose(harm_to, {}).name
    beside = {f"{name} beside {label}": [flow, others] for name, flow in each.items()}
    return {**beside, _alone(harm_to): [others]}


def _alone(harm_to: str | None) -> str:
    """Label of the runs without whoever is compared."""
    from fullpipe.congestion.registry import choose

    return "" if harm_to is None else f"{choose(harm_to, {}).name} alone"


def _run(
    label: str, scenario: Scenario, toml: str, base: Path, engine: str, repeat: int
) -> list[Recording]:
    from fullpipe.engines import run_scenario

    folder = base / label.replace(" ", "").replace(":", "_").replace("/", "_").lstrip(".")
    folders = [folder / f"run-{index:03d}" for index in range(repeat)]
    with progress(label[:40], scenario.duration / 1e9 * repeat) as update:
        outcome = run_scenario(scenario, toml, folders, engine, {}, update)
    if outcome.interrupted:
        fail(f"interrupted; what was recorded is readable in {base}", INTERRUPTED)
    if outcome.failures:
        fail("; ".join(outcome.failures), 1)
    return outcome.recordings


def _how(seeds: list[int], together: bool) -> str:
    count = f"{len(seeds)} runs of each" if len(seeds) > 1 else "1 run of each"
    line = f"{count}, seeds {seeds[0]} to {seeds[-1]}; a run is one repetition;\n"
    line += "intervals: bootstrap (BCa) of the mean"
    return line if together else f"{line}; p: chance of such means if all controls had the same"


def _how_harm(harm_to: str, flows: int) -> str:
    from fullpipe.congestion.registry import choose

    label = choose(harm_to, {}).name
    count = f"{flows} flows" if flows > 1 else "the flow"
    return (
        f"harm to {count} of {label}: share of goodput that the others' arrival takes away, share "
        f"of ping\nor retransmissions that it brings; 0 none, 1 nothing left; against {label} "
        "alone, seed by seed"
    )
