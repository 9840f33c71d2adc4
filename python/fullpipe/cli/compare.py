"""`fullpipe compare`: congestion controls on one path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.base.errors import AlgorithmError, UserError
from fullpipe.base.lengthening import longer
from fullpipe.cli import INTERRUPTED
from fullpipe.cli.folders import new_folder
from fullpipe.cli.jitter import knife_edges
from fullpipe.cli.longer import UntilSettled, discard, has_to_go_on
from fullpipe.cli.options import (
    DEFAULT_LOOK,
    Changes,
    Engine,
    Figures,
    Json,
    KernelModules,
    Light,
    LookOptions,
    Machine,
    OwnModule,
    Recordings,
    cc_names,
    engine_options,
    kernel_names,
    with_groups,
)
from fullpipe.cli.output import (
    console,
    equal_runs,
    fail,
    message,
    print_comparison,
    warn,
    without_test,
    write_figures,
)
from fullpipe.cli.progress import progress
from fullpipe.cli.recorded import are_recordings, compare_recorded

if TYPE_CHECKING:
    from fullpipe.engines.run import Run
    from fullpipe.recording.recording import Recording
    from fullpipe.report.comparison import Row


#: The path where --path names none.
_PATH = {"rate": "100mbit", "rtt": "40ms", "buffer": "1bdp", "qdisc": "fifo", "loss": "0%"}
#: How long runs are where --path names no file, and where the file does not say.
_TIMES = {"duration": "30s", "warmup": "5s"}
_TIMES_OF_FILES = {"duration": "10s", "warmup": "0s"}


@dataclass(frozen=True)
class Network:
    """The path that all are compared on."""

    path: Annotated[
        Path | None,
        typer.Option(
            metavar="SCENARIO",
            help="Scenario file whose network to take, instead of --rate and the others.",
        ),
    ] = None
    rate: Annotated[
        str | None, typer.Option(help=f"Rate of the bottleneck; by default {_PATH['rate']}.")
    ] = None
    rtt: Annotated[str | None, typer.Option(help=f"Base RTT; by default {_PATH['rtt']}.")] = None
    buffer: Annotated[
        str | None, typer.Option(help=f"Limit of the queue; by default {_PATH['buffer']}.")
    ] = None
    qdisc: Annotated[
        str | None,
        typer.Option(help="Queue discipline: fifo (the default), fq_codel, cake, pie, ..."),
    ] = None
    loss: Annotated[str | None, typer.Option(help="Random loss; by default none.")] = None

    @property
    def source(self) -> str:
        """What errors call it."""
        return "compare" if self.path is None else str(self.path)

    def document(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keys of a scenario that describe it; and duration and warm-up, where no option gives
        them. Raises UserError for an option beside --path."""
        from fullpipe.scenario.document import load_document
        from fullpipe.scenario.network import network_of

        chosen = {name: value for name in _PATH if (value := getattr(self, name)) is not None}
        if self.path is None:
            return {"path": {**_PATH, **chosen}}, dict(_TIMES)
        file = load_document(self.path)
        network = network_of(file, self.source)
        for name, value in chosen.items():
            how = "--set on its [[link]]" if "link" in network else f"--set path.{name}={value}"
            raise UserError(f"--{name}: the path comes from --path; change it with {how}")
        return network, {key: file.get(key, value) for key, value in _TIMES_OF_FILES.items()}


@dataclass(frozen=True)
class Runs:
    """What runs on it, and how often."""

    flows: Annotated[
        int, typer.Option(min=1, max=500, help="Flows of each congestion control in a run.")
    ] = 1
    together: Annotated[
        bool, typer.Option("--together", help="Run all in one run, against each other.")
    ] = False
    harm_to: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run each against as many flows of this one, and measure what those lose.",
            autocompletion=cc_names,
        ),
    ] = None
    duration: Annotated[
        str | None, typer.Option(help="Duration of a run; by default that of --path, or 30s.")
    ] = None
    warmup: Annotated[
        str | None,
        typer.Option(help="Beginning that metrics leave out; by default that of --path, or 5s."),
    ] = None
    set_: Changes = None
    until_settled: UntilSettled = False
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Runs of each, with different seeds.")
    ] = 5

    def check(self, names: Sequence[str]) -> None:
        """Raises UserError for options that contradict each other."""
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(
                f"compare: {', '.join(twice)} is given twice; for more flows use --flows"
            )
        if self.together and self.harm_to is not None:
            raise UserError("--harm-to: runs each in a run of its own; leave out --together")


@dataclass(frozen=True)
class On:
    """The engine and its options."""

    engine: Engine = "sim"
    machine: Machine = "qemu"
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE|TREE,...",
            help="Kernel for --engine vm, as for `fullpipe run`; all run on each of several.",
            autocompletion=kernel_names,
        ),
    ] = None

    modules: KernelModules = None
    module: OwnModule = None

    def options(self, wanted: Runs) -> dict[str, dict[str, str]]:
        """The engine's options by what is added to labels: nothing, or the kernel. Raises UserError
        for options of another engine, and where kernels cannot be compared."""
        kernels = [name.strip() for name in (self.kernel or "").split(",")]
        if len(kernels) == 1:
            options = engine_options(
                self.engine,
                self.machine,
                kernel=self.kernel,
                modules=self.modules,
                module=self.module,
            )
            return {"": options}
        if "" in kernels or len(set(kernels)) < len(kernels):
            raise UserError(f"--kernel {self.kernel}: name each kernel once, such as 6.1,6.12")
        if wanted.together or wanted.harm_to is not None:
            raise UserError("--kernel: one kernel with --together and --harm-to")
        if self.modules is not None or self.module is not None:
            raise UserError("--modules, --module: with one --kernel, for which they were built")
        return {
            f" on {kernel}": engine_options(self.engine, self.machine, kernel=kernel)
            for kernel in kernels
        }


@dataclass(frozen=True)
class Output:
    """What is written and printed."""

    out: Recordings = None
    light: Light = False
    figures: Figures = None
    json_: Json = False


_NETWORK, _RUNS, _ON, _OUTPUT = Network(), Runs(), On(), Output()


@with_groups
def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Congestion controls, such as bbr3 cubic ./mine.h; or folders of recordings, "
            "imported ones too.",
            autocompletion=cc_names,
        ),
    ],
    network: Network = _NETWORK,
    wanted: Runs = _RUNS,
    on: On = _ON,
    output: Output = _OUTPUT,
    looks: LookOptions = DEFAULT_LOOK,
) -> None:
    """Compares congestion controls on one path, or recordings.

    Each runs alone, unless --together or --harm-to is given. Prints means over the runs with 95 %
    intervals (bootstrap) and, for controls that run alone, Welch's test of each metric. A run is
    one repetition. Exit status: 0 done, 1 a run failed, 2 bad input, 130 interrupted."""
    from fullpipe.base.writing import check_folder
    from fullpipe.metrics import summarise
    from fullpipe.report.page import write_report

    check_folder("--figures", output.figures)
    look = looks.look_of(output.figures)
    wanted.check(names)
    if are_recordings(names):
        if (network, wanted, on) != (_NETWORK, _RUNS, _ON):
            raise UserError("compare: recordings are compared as they are; leave other options out")
        every = compare_recorded(names, output.out, output.light, output.json_)
        write_figures(every, output.figures, look)
        return
    path, times = network.document()
    options = on.options(wanted)
    base = output.out or new_folder("compare")
    if base.exists():
        raise UserError(f"{base}: exists already; name another folder with --out")
    overrides = {"duration": wanted.duration, "warmup": wanted.warmup}
    times |= {key: value for key, value in overrides.items() if value is not None}
    first_ns = None
    while True:
        planned = _planned(names, network, path, wanted, times, on.engine, options)
        results, failures = _run_all(planned, base, wanted.harm_to)
        summaries = {name: [summarise(run) for run in runs] for name, runs in results.items()}
        first = next(iter(planned.values()))
        first_ns = first_ns or first.duration_ns
        may_go_on = wanted.until_settled and not failures
        more = longer(first.duration_ns, first_ns) if may_go_on else None
        settlings = [[run["settling"] for run in runs] for runs in summaries.values()]
        if more is None or not has_to_go_on(settlings):
            break
        discard([base], more)
        times = more
    common = {key: first.document[key] for key in (*path, "duration", "warmup")}
    facts = {
        "knife_edges": knife_edges({k: plan.runs for k, plan in planned.items()}, summaries),
        "engine": on.engine,
        **options.get("", {"kernel": on.kernel}),
        **common,
    }
    _show(results, summaries, first.seeds, wanted, facts, output.json_)
    every = [recording for recordings in results.values() for recording in recordings]
    for recording in every:
        warn(str(recording.path), recording.warnings)
    message(f"recordings: {base}")
    message(f"report: {write_report(every, base / 'report.html', light=output.light)}")
    write_figures(every, output.figures, look)
    if failures:
        fail("; ".join(failures), 1)


@dataclass(frozen=True)
class _Planned:
    """What runs under one label."""

    document: Mapping[str, Any]
    duration_ns: int
    runs: Sequence[Run]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]


def _planned(
    names: list[str],
    network: Network,
    path: Mapping[str, Any],
    wanted: Runs,
    times: Mapping[str, Any],
    engine: str,
    options: Mapping[str, Mapping[str, str]],
) -> dict[str, _Planned]:
    """Label -> its runs. Raises UserError where one is no scenario or the engine cannot run it."""
    import tomli_w

    from fullpipe.engines.run import runs_of, seeds_of
    from fullpipe.scenario.document import changed
    from fullpipe.scenario.model import make_scenario

    planned = {}
    for label, flows in _groups(names, wanted.flows, wanted.together, wanted.harm_to).items():
        document: dict[str, Any] = {
            **path,
            "name": label,
            **times,
            "flow": flows,
            "probe": [{"kind": "ping"}],
        }
        document = changed(document, wanted.set_ or [], network.path or "compare")
        scenario = make_scenario(document, network.source)
        seeds = seeds_of(scenario, wanted.repeat)
        for where, machine_options in options.items():
            runs = runs_of(scenario, tomli_w.dumps(document), seeds, engine, dict(machine_options))
            planned[label + where] = _Planned(document, scenario.duration, runs)
    return planned


def _run_all(
    planned: Mapping[str, _Planned], base: Path, harm_to: str | None
) -> tuple[dict[str, list[Recording]], list[str]]:
    """The recordings by label, and why runs failed. Ends the command where nothing is left to
    compare."""
    from fullpipe.engines.runner import execute

    folders = {
        label: [_folder(base, label) / f"run-{index:03d}" for index in range(len(plan.runs))]
        for label, plan in planned.items()
    }
    runs = [run for plan in planned.values() for run in plan.runs]
    out = [folder for of_label in folders.values() for folder in of_label]
    with progress("compare", sum(run.duration_ns for run in runs) / 1e9) as update:
        try:
            outcome = execute(runs, out, update)
        except AlgorithmError as error:  # raised where there is a single run
            fail(str(error), 1)
    if outcome.interrupted:
        fail(f"interrupted; what was recorded is readable in {base}", INTERRUPTED)
    recorded = {recording.path: recording for recording in outcome.recordings}
    results = {
        label: [recorded[folder] for folder in of_label if folder in recorded]
        for label, of_label in folders.items()
    }
    results = {label: recordings for label, recordings in results.items() if recordings}
    if not results or (harm_to is not None and _alone(harm_to) not in results):
        fail("; ".join(outcome.failures), 1)
    return results, outcome.failures


def _folder(base: Path, label: str) -> Path:
    return base / label.replace(" ", "").replace(":", "_").replace("/", "_").lstrip(".")


def _show(
    results: Mapping[str, Sequence[Recording]],
    summaries: dict[str, list[dict[str, Any]]],
    seeds: list[int],
    wanted: Runs,
    facts: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Prints the comparison; `facts`: what its JSON says of the runs besides."""
    from fullpipe.report.comparison import (
        compare_harm,
        compare_runs,
        compare_shares,
    )

    alone = summaries.get(_alone(wanted.harm_to), [])
    compared = {name: runs for name, runs in summaries.items() if runs is not alone}
    rows = compare_runs(compared)
    if wanted.harm_to is not None:
        rows += compare_harm(alone, compared)
    if wanted.together:
        rows += compare_shares(next(iter(summaries.values())))
    if as_json:
        document = {
            **facts,
            "flows_each": wanted.flows,
            "harm_to": wanted.harm_to,
            "seeds": seeds,
            "metrics": [row.to_dict() for row in rows],
            "runs": summaries,
        }
        print(json.dumps(document, allow_nan=False))
        return
    print_comparison(rows, results)
    _print_settling(summaries)
    for label, edge in facts["knife_edges"].items():
        console.print(f"{label}: {edge}", soft_wrap=True)
    console.print(_notes(seeds, rows), soft_wrap=True)
    if note := equal_runs(rows):
        console.print(note, soft_wrap=True)
    if wanted.harm_to is not None:
        console.print(_harm_note(wanted.harm_to, wanted.flows))


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


def _print_settling(summaries: Mapping[str, list[dict[str, Any]]]) -> None:
    """Of each group whether its runs had settled; one line where all are alike."""
    from fullpipe.metrics.settling import sentence

    sentences = {
        label: sentence([run["settling"] for run in runs]) for label, runs in summaries.items()
    }
    if len(set(sentences.values())) == 1:
        console.print(next(iter(sentences.values())), soft_wrap=True)
        return
    for label, text in sentences.items():
        console.print(f"{label}: {text}", soft_wrap=True)


def _notes(seeds: list[int], rows: list[Row]) -> str:
    of = f"{len(seeds)} runs of each, seeds {seeds[0]} to {seeds[-1]}"
    if len(seeds) == 1:
        of = f"1 run of each, seed {seeds[0]}"
    lines = [f"{of}; a run is one repetition", "intervals of means: 95 %, Student's t"]
    test = next((row.test.name for row in rows if row.test is not None), None)
    if test is not None:
        from fullpipe.report.comparison import LEAST_RATIO, LEAST_RELATIVE

        lines += [
            f"worth noticing: all of the interval (Welch) beyond {100 * LEAST_RELATIVE:.0f} % of "
            "the first mean,",
            f"  of ratios beyond {100 * LEAST_RATIO:.0f} %",
            f"p: {test}: probability of such a difference if all had the same mean",
        ]
        if missing := without_test(rows):
            lines.append(f"no test: {missing}")
    return "\n".join(lines)


def _harm_note(harm_to: str, flows: int) -> str:
    label = _harmed(harm_to)
    victims = f"{flows} flows" if flows > 1 else "the flow"
    return (
        f"harm to {victims} of {label}: share of goodput that the others take away, share of\n"
        f"ping or retransmissions that they add; 0 none, 1 all; compared with {label} alone,\n"
        "seed by seed"
    )
