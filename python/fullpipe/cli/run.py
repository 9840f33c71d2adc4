"""`fullpipe run`: a scenario file into recordings."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.base.errors import UserError
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
    Form,
    Jobs,
    Json,
    KernelImage,
    KernelModules,
    Light,
    LookOptions,
    Machine,
    OwnModule,
    Recordings,
    ScenarioFile,
    cc_names,
    engine_options,
    with_groups,
)
from fullpipe.cli.output import (
    comparison_table,
    console,
    equal_runs,
    fail,
    message,
    print_table,
    warn,
    write_figures,
)
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.engines.run import Run
    from fullpipe.plots.look import Look
    from fullpipe.recording.recording import Recording
    from fullpipe.scenario.model import Scenario

#: Of more runs than this the tables are only in the report; of more than that, the lines too.
MAX_RUNS_OF_TABLES, MAX_RUNS_OF_LINES = 3, 10


@dataclass(frozen=True)
class What:
    """What of a scenario is run, and how often."""

    set_: Changes = None
    cc: Annotated[
        str | None,
        typer.Option(
            help="Congestion control for every flow: a name, or a file such as ./mine.h.",
            autocompletion=cc_names,
        ),
    ] = None
    repeat: Annotated[
        int, typer.Option(min=1, max=10000, help="Number of runs, each with another seed.")
    ] = 1
    until_settled: UntilSettled = False
    jobs: Jobs = None


@dataclass(frozen=True)
class On:
    """The engine and its options."""

    engine: Engine = "sim"
    machine: Machine = "qemu"
    cc_form: Form = None
    kernel: KernelImage = None
    modules: KernelModules = None
    module: OwnModule = None
    background_processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1000,
            help="Short processes that the measured host starts every 110 ms, like a script that "
            "polls its queues (vm, live).",
        ),
    ] = None
    peer: Annotated[
        str | None, typer.Option(metavar="HOST[:PORT]", help="Agent on the far host (live).")
    ] = None
    token: Annotated[
        str | None, typer.Option(envvar="FULLPIPE_TOKEN", help="Token of that agent.")
    ] = None
    pcap: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a packet capture, of a machine of both ends (sim, vm; one run).",
        ),
    ] = None
    cc_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record every call of fullpipe's algorithms for `fullpipe replay` (one run).",
        ),
    ] = None
    debug_cc: Annotated[
        bool,
        typer.Option(
            "--debug-cc",
            help="Compile files of congestion controls for a debugger, and print how gdb runs this "
            "(sim, one run).",
        ),
    ] = False

    def options(self, repeat: int) -> dict[str, str]:
        """The options as the engine takes them. Raises UserError for those of another engine, and
        for those of one run where there are more."""
        is_single_sim = repeat == 1 and self.engine == "sim"
        if self.pcap is not None and (repeat > 1 or self.engine == "live"):
            raise UserError("--pcap: only with --engine sim or vm and one run")
        if self.cc_trace is not None and repeat > 1:
            raise UserError("--cc-trace: only with one run")
        if self.debug_cc and not is_single_sim:
            raise UserError("--debug-cc: only with --engine sim and one run")
        options = engine_options(
            self.engine,
            self.machine,
            pcap=self.pcap,
            kernel=self.kernel,
            modules=self.modules,
            module=self.module,
            cc_form=self.cc_form,
            peer=self.peer,
            cc_trace=self.cc_trace,
            background_processes=self.background_processes,
            debug_cc=self.debug_cc or None,
            token=self.token,
        )
        if self.token is not None and self.peer is None:
            raise UserError("--token: is for the agent of another host; name that with --peer HOST")
        return options


@dataclass(frozen=True)
class Output:
    """What is written and printed."""

    out: Recordings = None
    force: Annotated[
        bool, typer.Option("--force", help="Replace the recordings that --out has.")
    ] = False
    json_: Json = False
    per_flow: Annotated[
        bool, typer.Option("--per-flow", help="Print a row per flow, not per [[flow]] entry.")
    ] = False
    report: Annotated[bool, typer.Option(help="Write an HTML report beside the recording.")] = True
    light: Light = False
    figures: Figures = None


DEFAULT_WHAT, DEFAULT_ON, DEFAULT_OUTPUT = What(), On(), Output()


@with_groups
def run(
    context: typer.Context,
    scenario: ScenarioFile,
    what: What = DEFAULT_WHAT,
    on: On = DEFAULT_ON,
    output: Output = DEFAULT_OUTPUT,
    looks: LookOptions = DEFAULT_LOOK,
) -> None:
    """Runs a scenario and records it.

    Ctrl-C ends the runs early. What they have recorded is kept and reported as interrupted. Exit
    status: 0 done, 1 a run failed, 2 bad input, 130 interrupted."""
    from fullpipe.base.writing import check_folder
    from fullpipe.engines.run import runs_of, seeds_of
    from fullpipe.recording.replacing import replaced, restore

    on = _with_token(context, on)
    options = on.options(what.repeat)
    check_folder("--figures", output.figures)
    look = looks.look_of(output.figures)
    made, text = read_scenario(scenario, what)
    runs = runs_of(made, text, seeds_of(made, what.repeat), on.engine, options, str(scenario))
    if on.debug_cc:
        from fullpipe.cli.debugging import how_gdb_runs_it, is_debugged

        command = how_gdb_runs_it(runs[0].plan, sys.argv)
        if not is_debugged():
            message(f"under gdb:\n  {command}")
    base = output.out or new_folder(_slug(made.name))
    for aside in restore(base):
        message(f"{aside}: an earlier recording of {base}, whose replacement was ended by force")
    existing = next((folder for folder in _folders(base, what.repeat) if folder.exists()), None)
    if existing is not None and not output.force:
        raise UserError(
            f"{existing}: exists already; name another folder with --out, or replace it with "
            "--force"
        )
    with replaced(base) if output.force else nullcontext():
        record(made, runs, base, output, what.jobs, look, what.until_settled)


def read_scenario(path: Path, what: What) -> tuple[Scenario, str]:
    """The scenario with its changes, and its TOML."""
    from fullpipe.scenario.model import load_with_toml

    cc = what.cc
    if cc is None:
        return load_with_toml(path, what.set_ or [])
    try:
        return load_with_toml(path, what.set_ or [], lambda document: _set_cc(document, cc))
    except UserError as error:
        # Every flow has what --cc says; the file may be right.
        prefix, is_first, why = str(error).partition("flow.0.cc: ")
        if not is_first or prefix != f"{path}: ":
            raise
        raise UserError(f"--cc: {why}") from None


def _folders(base: Path, repeat: int) -> list[Path]:
    """A folder for each run."""
    return [base] if repeat == 1 else [base / f"run-{index:03d}" for index in range(repeat)]


def record(
    scenario: Scenario,
    runs: Sequence[Run],
    base: Path,
    output: Output,
    jobs: int | None = None,
    look: Look | None = None,
    until_settled: bool = False,
) -> None:
    """Does runs, prints and reports. Ends the command with status 1 where a run failed and 130
    where it was interrupted."""
    from fullpipe.engines.runner import execute
    from fullpipe.metrics import summarise

    repeat = len(runs)
    folders = _folders(base, repeat)
    label = scenario.name if repeat == 1 else f"{scenario.name}, {repeat} runs"
    first_ns = runs[0].duration_ns
    while True:
        with progress(label[:40], runs[0].duration_ns / 1e9 * repeat) as update:
            outcome = execute(runs, folders, update, jobs)
        recordings = outcome.recordings
        summaries = [summarise(recording) for recording in recordings]
        times = longer(runs[0].duration_ns, first_ns) if until_settled else None
        is_whole = recordings and not outcome.interrupted and not outcome.failures
        if times is None or not is_whole or not has_to_go_on([_settlings(summaries)]):
            break
        discard(folders, times)
        runs = [_with_times(run, times) for run in runs]
    if recordings:
        edges = knife_edges({"": runs}, {"": summaries}, jobs) if is_whole else {}
        edge = edges.get("", "")
        if repeat > 1:
            summaries = [{**summary, "knife_edge": edge} for summary in summaries]
        _print(summaries, output.json_, output.per_flow)
        if runs[0].engine == "sim" and not output.json_:
            from fullpipe.agreement.expected import brief

            if edge:
                console.print(edge, soft_wrap=True)
            console.print(brief(scenario), soft_wrap=True)
        for recording in recordings:
            warn(str(recording.path), recording.warnings)
        _print_log(recordings[0])
        message(f"recording: {base}")
        if output.report:
            from fullpipe.report.page import write_report

            page = write_report(recordings, base / "report.html", light=output.light)
            message(f"report: {page}")
        write_figures(recordings, output.figures, look)
    if outcome.interrupted and not recordings:
        fail("interrupted before anything was recorded", INTERRUPTED)
    if outcome.interrupted:
        of = f" ({len(recordings)} of {repeat} runs)" if repeat > 1 else ""
        fail(f"interrupted; what was recorded is readable in {base}{of}", INTERRUPTED)
    if outcome.failures:
        fail("; ".join(outcome.failures), 1)


def _print(summaries: list[dict[str, Any]], as_json: bool, per_flow: bool) -> None:
    if as_json:
        is_single = len(summaries) == 1
        print(json.dumps(summaries[0] if is_single else summaries, allow_nan=False))
        return
    from fullpipe.cli.run_tables import path_line, run_tables

    if len(summaries) <= MAX_RUNS_OF_TABLES:
        for table in run_tables(summaries, per_flow):
            print_table(table)
    for summary in summaries[:MAX_RUNS_OF_LINES]:
        console.print(path_line(summary), soft_wrap=True)
    if len(summaries) > MAX_RUNS_OF_LINES:
        console.print(f"and {len(summaries) - MAX_RUNS_OF_LINES} more runs, all in the report")
    from fullpipe.metrics.settling import sentence

    console.print(sentence(_settlings(summaries)), soft_wrap=True)
    if len(summaries) > 1:
        from fullpipe.report.comparison import compare_runs, compare_shares

        problems = [why for summary in summaries for why in summary["health"]["problems"]]
        label = str(summaries[0]["scenario"])
        rows = compare_runs({label: summaries}) + compare_shares(summaries)
        console.print(comparison_table(rows, {label: "; ".join(problems)}))
        if note := equal_runs(rows):
            console.print(note, soft_wrap=True)


def _print_log(recording: Recording) -> None:
    """The first lines that a kernel, or a kernel's file, logged in a run, and a warning."""
    from fullpipe.cli.kernel_log import shown
    from fullpipe.recording.recording import KERNEL_LOG

    facts = recording.metadata.get("facts")
    text = facts.get(KERNEL_LOG) if isinstance(facts, dict) else None
    for line in shown(str(text)) if text else ():
        message(line)


def _settlings(summaries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [summary["settling"] for summary in summaries]


def _with_times(run: Run, times: dict[str, str]) -> Run:
    """The run with another duration and warm-up."""
    from fullpipe.base.toml import parse_toml, with_value
    from fullpipe.engines.run import runs_of
    from fullpipe.scenario.model import make_scenario

    text = run.text
    for key, value in times.items():
        text = with_value(text, key, value)
    scenario = make_scenario(parse_toml(text))
    (longer_run,) = runs_of(scenario, text, [run.seed], run.engine, run.options)
    return longer_run


def _with_token(context: typer.Context, on: On) -> On:
    """Without a token from the environment where there is no peer: it may be for other commands."""
    source = context.get_parameter_source("token")
    is_written = source is not None and source.name == "COMMANDLINE"
    return on if on.peer is not None or is_written else replace(on, token=None)


def _set_cc(document: dict[str, Any], cc: str) -> None:
    """Gives every flow of a scenario's document this congestion control."""
    for key in ("flow", "page", "traffic"):
        entries = document.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                entry["cc"] = cc


def _slug(name: str) -> str:
    letters = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    return letters.strip("-")[:60] or "scenario"
