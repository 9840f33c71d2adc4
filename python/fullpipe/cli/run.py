"""`fullpipe run`: a scenario file into recordings."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import tomli_w
import typer

from fullpipe.cli.output import console, fail, messages, path_line, progress, run_table
from fullpipe.engines import engine_names, run_scenario
from fullpipe.engines.runner import Outcome
from fullpipe.errors import UserError
from fullpipe.metrics import summarise
from fullpipe.recording import Recording
from fullpipe.report import write_figures, write_report
from fullpipe.scenario import Scenario, apply_changes, load_document, make_scenario


def run(
    scenario: Annotated[Path, typer.Argument(help="scenario file (TOML); see `fullpipe schema`")],
    engine: Annotated[str, typer.Option(help="sim, vm or live")] = "sim",
    repeat: Annotated[int, typer.Option(min=1, max=10000, help="runs with further seeds")] = 1,
    out: Annotated[Path | None, typer.Option(help="folder for the recording(s)")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, such as path.rate=10mbit")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="print the metrics as JSON")] = False,
    pcap: Annotated[Path | None, typer.Option(help="write a capture (sim, one run)")] = None,
    report: Annotated[bool, typer.Option(help="write an HTML report beside")] = True,
    figures: Annotated[Path | None, typer.Option(help="write figures into this folder")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at once; all cores")] = None,
    kernel: Annotated[Path | None, typer.Option(help="kernel image (vm)")] = None,
    modules: Annotated[Path | None, typer.Option(help="its modules folder (vm)")] = None,
    peer: Annotated[str | None, typer.Option(help="HOST[:PORT] of an agent (live)")] = None,
    token: Annotated[str | None, typer.Option(help="shared token of that agent")] = None,
) -> int:
    """Runs a scenario and records it."""
    if engine not in engine_names():
        raise UserError(f"--engine {engine}: unknown; known are {', '.join(engine_names())}")
    if pcap is not None and (repeat > 1 or engine != "sim"):
        raise UserError("--pcap: only with --engine sim and one run")
    document = apply_changes(load_document(scenario), set_ or [])
    parsed = make_scenario(document, str(scenario))
    options = {
        name: str(value)
        for name, value in (
            ("pcap", pcap), ("kernel", kernel), ("modules", modules), ("peer", peer),
            ("token", token),
        )
        if value is not None
    }  # fmt: skip
    base = out or Path("recordings") / f"{_slug(parsed.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    return record(
        parsed, tomli_w.dumps(document), base, engine, repeat, options, json_, report, figures, jobs
    )


def record(
    scenario: Scenario,
    scenario_toml: str,
    base: Path,
    engine: str,
    repeat: int,
    options: dict[str, str],
    as_json: bool,
    report: bool,
    figures: Path | None,
    jobs: int | None,
) -> int:
    """Runs, prints and reports; returns the exit status."""
    folders = [base] if repeat == 1 else [base / f"run-{index:03d}" for index in range(repeat)]
    label = scenario.name if repeat == 1 else f"{scenario.name}, {repeat} runs"
    with progress(label[:40], scenario.duration / 1e9 * repeat) as update:
        outcome = run_scenario(scenario, scenario_toml, folders, engine, options, update, jobs)
    _print(outcome, as_json)
    pages = _pages(outcome, base, repeat, report, figures)
    for line in [f"recording: {base}", *pages]:
        messages.print(line)
    if outcome.interrupted:
        fail(f"interrupted; what was recorded is readable in {base}", 130)
    if outcome.failures:
        fail("; ".join(outcome.failures), 1)
    return 0


def _print(outcome: Outcome, as_json: bool) -> None:
    summaries = [summarise(recording) for recording in outcome.recordings]
    if as_json:
        single = len(summaries) == 1
        print(json.dumps(summaries[0] if single else summaries, allow_nan=False))
        return
    if len(summaries) <= 3:
        console.print(run_table(summaries))
    for summary in summaries:
        console.print(path_line(summary))


def _pages(
    outcome: Outcome, base: Path, repeat: int, report: bool, figures: Path | None
) -> list[str]:
    recordings: list[Recording] = outcome.recordings
    lines = []
    if report and recordings:
        page = base / "report.html"
        lines.append(f"report: {write_report(recordings, page)}")
    if figures is not None and recordings:
        lines += [f"figure: {path}" for path in write_figures(recordings, figures)]
    return lines


def _slug(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    return kept.strip("-")[:60] or "scenario"
