"""`fullpipe run`: a scenario file into recordings."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli import INTERRUPTED
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
    Recordings,
    ScenarioFile,
    cc_names,
    engine_options,
    with_groups,
)
from fullpipe.cli.output import (
    comparison_table,
    console,
    fail,
    message,
    print_table,
    warn,
    write_figures,
)
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.plots.look import Look
    from fullpipe.scenario.model import Scenario

#: Of more runs than this the tables are only in the report; of more than that, the lines too.
MAX_RUNS_OF_TABLES, MAX_RUNS_OF_LINES = 3, 10


@with_groups
def run(
    context: typer.Context,
    scenario: ScenarioFile,
    engine: Engine = "sim",
    repeat: Annotated[
        int, typer.Option(min=1, max=10000, help="Number of runs, each with another seed.")
    ] = 1,
    out: Recordings = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the recordings that --out has.")
    ] = False,
    set_: Changes = None,
    json_: Json = False,
    per_flow: Annotated[
        bool, typer.Option("--per-flow", help="Print a row per flow, not per [[flow]] entry.")
    ] = False,
    cc: Annotated[
        str | None,
        typer.Option(
            help="Congestion control for every flow: a name, or a file such as ./mine.h.",
            autocompletion=cc_names,
        ),
    ] = None,
    pcap: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a packet capture (sim, one run).")
    ] = None,
    report: Annotated[bool, typer.Option(help="Write an HTML report beside the recording.")] = True,
    light: Light = False,
    figures: Figures = None,
    looks: LookOptions = DEFAULT_LOOK,
    jobs: Jobs = None,
    machine: Machine = "qemu",
    cc_form: Form = None,
    kernel: KernelImage = None,
    modules: KernelModules = None,
    cc_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record every call of fullpipe's algorithms for `fullpipe replay` (one run).",
        ),
    ] = None,
    debug_cc: Annotated[
        bool,
        typer.Option(
            "--debug-cc",
            help="Compile files of congestion controls for a debugger, and print how gdb runs this "
            "(sim, one run).",
        ),
    ] = False,
    background_processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1000,
            help="Short processes that the measured host starts every 110 ms, like a script that "
            "polls its queues (vm, live).",
        ),
    ] = None,
    peer: Annotated[
        str | None, typer.Option(metavar="HOST[:PORT]", help="Agent on the far host (live).")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="FULLPIPE_TOKEN", help="Token of that agent.")
    ] = None,
) -> None:
    """Runs a scenario and records it.

    Ctrl-C ends the runs early. What they have recorded is kept and reported as interrupted. Exit
    status: 0 done, 1 a run failed, 2 bad input, 130 interrupted."""
    from fullpipe.base.writing import check_folder
    from fullpipe.engines import engine as engine_of
    from fullpipe.plan.resolve import resolve
    from fullpipe.recording.replacing import replaced
    from fullpipe.scenario.document import changed, load_document
    from fullpipe.scenario.model import make_scenario

    if pcap is not None and (repeat > 1 or engine != "sim"):
        raise UserError("--pcap: only with --engine sim and one run")
    if cc_trace is not None and repeat > 1:
        raise UserError("--cc-trace: only with one run")
    if debug_cc and (repeat > 1 or engine != "sim"):
        raise UserError("--debug-cc: only with --engine sim and one run")
    options = engine_options(
        engine, machine, pcap=pcap, kernel=kernel, modules=modules, cc_form=cc_form, peer=peer,
        background_processes=background_processes, cc_trace=cc_trace, debug_cc=debug_cc or None,
        token=_token(context, token, peer),
    )  # fmt: skip
    if "token" in options and peer is None:
        raise UserError("--token: is for the agent of another host; name that with --peer HOST")
    check_folder("--figures", figures)
    look = looks.look_of(figures)
    document = changed(load_document(scenario), set_ or [], scenario)
    if cc is not None:
        _set_cc(document, cc)
    # An unchanged file is recorded as it was written, with its comments.
    is_unchanged = scenario.is_file() and not set_ and cc is None
    toml = scenario.read_text(encoding="utf-8") if is_unchanged else _as_toml(document)
    try:
        made = make_scenario(document, str(scenario))
    except UserError as error:
        # Every flow has what --cc says; the file may be right.
        own, is_first, why = str(error).partition("flow.0.cc: ")
        if cc is None or not is_first or own != f"{scenario}: ":
            raise
        raise UserError(f"--cc: {why}") from None
    try:
        engine_of(engine).check(resolve(made))
    except UserError as error:
        raise UserError(f"{scenario}: {error}") from None
    if debug_cc:
        from fullpipe.cli.debugging import how_gdb_runs_it, is_debugged

        told = how_gdb_runs_it(made, sys.argv)
        if not is_debugged():
            message(f"under gdb:\n  {told}")
    base = out or Path("recordings") / f"{_slug(made.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    taken = next((folder for folder in _folders(base, repeat) if folder.exists()), None)
    if taken is not None and not force:
        raise UserError(
            f"{taken}: exists already; name another folder with --out, or replace it with --force"
        )
    with replaced(base) if force else nullcontext():
        record(
            made, toml, base, engine, repeat, options, json_, per_flow, report, light, figures,
            jobs, look,
        )  # fmt: skip


def _folders(base: Path, repeat: int) -> list[Path]:
    """A folder for each run."""
    return [base] if repeat == 1 else [base / f"run-{index:03d}" for index in range(repeat)]


def record(
    scenario: Scenario,
    scenario_toml: str,
    base: Path,
    engine: str,
    repeat: int,
    options: dict[str, str],
    as_json: bool,
    per_flow: bool,
    report: bool,
    light: bool,
    figures: Path | None,
    jobs: int | None,
    look: Look | None = None,
) -> None:
    """Runs, prints and reports. Ends the command with status 1 where a run failed and 130 where
    it was interrupted."""
    from fullpipe.engines.runner import run_scenario
    from fullpipe.metrics import summarise

    folders = _folders(base, repeat)
    label = scenario.name if repeat == 1 else f"{scenario.name}, {repeat} runs"
    with progress(label[:40], scenario.duration / 1e9 * repeat) as update:
        outcome = run_scenario(scenario, scenario_toml, folders, engine, options, update, jobs)
    recordings = outcome.recordings
    if recordings:
        _print([summarise(recording) for recording in recordings], as_json, per_flow)
        if engine == "sim" and not as_json:
            from fullpipe.agreement.expected import sentence

            console.print(sentence(scenario))
        for recording in recordings:
            warn(str(recording.path), recording.warnings)
        message(f"recording: {base}")
        if report:
            from fullpipe.report.page import write_report

            message(f"report: {write_report(recordings, base / 'report.html', light=light)}")
        write_figures(recordings, figures, look)
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
    if len(summaries) > 1:
        from fullpipe.report.comparison import compare_runs, compare_shares

        problems = [why for summary in summaries for why in summary["health"]["problems"]]
        label = str(summaries[0]["scenario"])
        rows = compare_runs({label: summaries}) + compare_shares(summaries)
        console.print(comparison_table(rows, {label: "; ".join(problems)}))


def _token(context: typer.Context, token: str | None, peer: str | None) -> str | None:
    """The token where there is a peer, or where it is on the command line: the environment may have
    one for other commands."""
    source = context.get_parameter_source("token")
    is_written = source is not None and source.name == "COMMANDLINE"
    return token if peer is not None or is_written else None


def _as_toml(document: dict[str, Any]) -> str:
    import tomli_w

    return tomli_w.dumps(document)


def _set_cc(document: dict[str, Any], cc: str) -> None:
    """Gives every flow of a scenario's document this congestion control."""
    for key in ("flow", "page", "traffic"):
        entries = document.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                entry["cc"] = cc


def _slug(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    return kept.strip("-")[:60] or "scenario"
