"""`fullpipe run`: a scenario file into recordings."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fullpipe.base.errors import UserError
from fullpipe.base.writing import check_folder
from fullpipe.cli.bars import progress
from fullpipe.cli.completion import engines
from fullpipe.cli.ending import INTERRUPTED, fail
from fullpipe.cli.saying import say, warn

if TYPE_CHECKING:
    import typer

    from fullpipe.recording.recording import Recording
    from fullpipe.scenario.model import Scenario
else:
    from fullpipe.cli.later import typer

#: More runs than this, and their flows are in the report only; than that, the runs too.
MAX_RUNS_OF_FLOWS, MAX_RUNS_OF_LINES = 3, 10


def run(
    scenario: Annotated[Path, typer.Argument(help="scenario file (TOML); see `fullpipe schema`")],
    engine: Annotated[str, typer.Option(help="sim, vm or live", autocompletion=engines)] = "sim",
    repeat: Annotated[int, typer.Option(min=1, max=10000, help="runs with further seeds")] = 1,
    out: Annotated[Path | None, typer.Option(help="folder for the recording(s)")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, such as path.rate=10mbit")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="print the metrics as JSON")] = False,
    per_flow: Annotated[
        bool, typer.Option(help="a row for each flow, not for each [[flow]] entry")
    ] = False,
    cc: Annotated[
        str | None, typer.Option(help="what every flow runs instead: a name or a file, ./mine.h")
    ] = None,
    pcap: Annotated[Path | None, typer.Option(help="write a capture (sim, one run)")] = None,
    report: Annotated[bool, typer.Option(help="write an HTML report beside")] = True,
    light: Annotated[bool, typer.Option(help="a small report with static plots")] = False,
    figures: Annotated[Path | None, typer.Option(help="write figures into this folder")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at once; all cores")] = None,
    kernel: Annotated[Path | None, typer.Option(help="kernel image (vm)")] = None,
    modules: Annotated[Path | None, typer.Option(help="its modules folder (vm)")] = None,
    cc_trace: Annotated[
        Path | None,
        typer.Option(help="every call of our algorithms, for `fullpipe replay` (one run)"),
    ] = None,
    background_processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1000,
            help="short processes that the measured host starts every 110 ms, as a script "
            "does that reads its queues (vm, live)",
        ),
    ] = None,
    peer: Annotated[str | None, typer.Option(help="HOST[:PORT] of an agent (live)")] = None,
    token: Annotated[
        str | None, typer.Option(envvar="FULLPIPE_TOKEN", help="token of that agent (live)")
    ] = None,
) -> int:
    """Runs a scenario and records it.

    Ctrl-C ends the runs under way early; what they recorded is kept, is reported, and says so.
    Exit status: 0 done, 1 a run failed, 2 bad input, 130 interrupted."""
    from fullpipe.base.overrides import apply_changes
    from fullpipe.engines import engine as engine_of
    from fullpipe.engines import engine_names
    from fullpipe.plan.resolve import resolve
    from fullpipe.scenario.document import load_document
    from fullpipe.scenario.model import make_scenario

    if engine not in engine_names():
        raise UserError(f"--engine {engine}: unknown; known are {', '.join(engine_names())}")
    if pcap is not None and (repeat > 1 or engine != "sim"):
        raise UserError("--pcap: only with --engine sim and one run")
    if cc_trace is not None and repeat > 1:
        raise UserError("--cc-trace: only with one run")
    if background_processes and engine == "sim":
        raise UserError("--background-processes: the simulator's hosts have none; for vm and live")
    check_folder("--figures", figures)
    document = apply_changes(load_document(scenario), set_ or [])
    if cc is not None:
        _run_instead(document, cc)
    # As it was written, comments included, where nothing was changed.
    asis = scenario.is_file() and not set_ and cc is None
    toml = scenario.read_text(encoding="utf-8") if asis else _written(document)
    parsed = make_scenario(document, str(scenario))
    try:
        engine_of(engine).check(resolve(parsed))
    except UserError as error:
        raise UserError(f"{scenario}: {error}") from None
    options = {
        name: str(value)
        for name, value in (
            ("pcap", pcap), ("kernel", kernel), ("modules", modules), ("peer", peer),
            ("background_processes", background_processes), ("cc_trace", cc_trace),
            ("token", token if peer else None),
        )
        if value is not None
    }  # fmt: skip
    base = out or Path("recordings") / f"{_slug(parsed.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    return record(
        parsed, toml, base, engine, repeat, options, json_, per_flow, report, light, figures, jobs
    )


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
) -> int:
    """Runs, prints and reports; returns the exit status."""
    from fullpipe.engines import run_scenario
    from fullpipe.metrics import summarise

    folders = [base] if repeat == 1 else [base / f"run-{index:03d}" for index in range(repeat)]
    label = scenario.name if repeat == 1 else f"{scenario.name}, {repeat} runs"
    with progress(label[:40], scenario.duration / 1e9 * repeat) as update:
        outcome = run_scenario(scenario, scenario_toml, folders, engine, options, update, jobs)
    if outcome.recordings:
        _print([summarise(recording) for recording in outcome.recordings], as_json, per_flow)
    for recording in outcome.recordings:
        warn(str(recording.path), recording.warnings)
    if outcome.recordings:
        say(f"recording: {base}")
    for line in _pages(outcome.recordings, base, report, light, figures):
        say(line)
    if outcome.interrupted and not outcome.recordings:
        fail("interrupted before anything was recorded", INTERRUPTED)
    if outcome.interrupted:
        of = f" ({len(outcome.recordings)} of {repeat} runs)" if repeat > 1 else ""
        fail(f"interrupted; what was recorded is readable in {base}{of}", INTERRUPTED)
    if outcome.failures:
        fail("; ".join(outcome.failures), 1)
    return 0


def _print(summaries: list[dict[str, Any]], as_json: bool, per_flow: bool) -> None:
    if as_json:
        single = len(summaries) == 1
        print(json.dumps(summaries[0] if single else summaries, allow_nan=False))
        return
    from fullpipe.cli.outcome import (
        link_table,
        page_table,
        path_line,
        run_table,
        stream_table,
        traffic_table,
    )
    from fullpipe.cli.sheet import show

    if len(summaries) <= MAX_RUNS_OF_FLOWS:
        if any(summary["flows"] for summary in summaries):
            show(run_table(summaries, per_flow))
        tables = (("pages", page_table), ("streams", stream_table), ("traffic", traffic_table))
        for key, table in tables:
            found = [summary for summary in summaries if key in summary]
            if found:
                show(table(found))
        from fullpipe.metrics import has_names

        named = [summary for summary in summaries if has_names(summary["links"])]
        if named:
            show(link_table(named))
    for summary in summaries[:MAX_RUNS_OF_LINES]:
        show(path_line(summary))
    if len(summaries) > MAX_RUNS_OF_LINES:
        show(f"and {len(summaries) - MAX_RUNS_OF_LINES} more runs, all in the report")
    if len(summaries) > 1:
        from fullpipe.cli.output import comparison_table, console
        from fullpipe.report.comparison import compare_runs, compare_shares

        bad = [why for summary in summaries for why in summary["health"]["problems"]]
        label = str(summaries[0]["scenario"])
        rows = compare_runs({label: summaries}) + compare_shares(summaries)
        console.print(comparison_table(rows, {label: "; ".join(bad)}))


def _pages(
    recordings: list[Recording], base: Path, report: bool, light: bool, figures: Path | None
) -> list[str]:
    lines = []
    if report and recordings:
        from fullpipe.report.page import write_report

        lines.append(f"report: {write_report(recordings, base / 'report.html', light=light)}")
    if figures is not None and recordings:
        from fullpipe.report.figures import write_figures

        lines += [f"figure: {path}" for path in write_figures(recordings, figures)]
    return lines


def _written(document: dict[str, Any]) -> str:
    import tomli_w  # only where the document was changed

    return tomli_w.dumps(document)


def _run_instead(document: dict[str, Any], cc: str) -> None:
    for key in ("flow", "page", "traffic"):
        entries = document.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                entry["cc"] = cc


def _slug(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    return kept.strip("-")[:60] or "scenario"
