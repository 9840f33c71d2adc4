"""The same plan gives the same bytes: in debug and release builds, and on any number of cores."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from every_feature import document, everything
from fullpipe import _native
from fullpipe.engines.runner import run_scenario
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from helpers import RUN_AS_TESTS

ROOT = Path(__file__).resolve().parents[2]


def in_debug(plans: Sequence[str]) -> list[Any]:
    """Events and tables of each plan, from the simulator built without optimisation and with its
    checks of overflow."""
    done = subprocess.run(
        [*RUN_AS_TESTS, "fullpipe-tables"],
        cwd=ROOT, input="\n".join(plans), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_release(plan: str) -> list[Any]:
    """The same, from the module that everything else here uses."""
    run = _native.sim.run(plan)
    tables = [
        {"name": name, "columns": [[title, told(*column)] for title, column in table.items()]}
        for name, table in run.items()
        if name not in ("health", "interrupted")
    ]
    return [run["health"]["events"], tables]


def told(kind: str, values: Any) -> dict[str, Any]:
    """A column as JSON has it."""
    if kind.startswith("opt_"):
        data, valid = values
        numbers = np.frombuffer(data, "<f8" if kind == "opt_f64" else "<u8").tolist()
        return {kind: [n if there else None for n, there in zip(numbers, valid, strict=True)]}
    if kind == "text":
        return {kind: list(values)}
    numbers = np.frombuffer(values, {"u64": "<u8", "f64": "<f8"}[kind]).tolist()
    # JSON has no figure that is none.
    return {kind: [None if n != n else n for n in numbers]}


@pytest.mark.slow
def test_a_build_without_optimisation_records_what_the_module_records() -> None:
    documents = everything()
    plans = [json.dumps(resolve(make_scenario(doc))) for doc in documents]
    debug = in_debug(plans)
    release = [in_release(plan) for plan in plans]
    assert len(debug) == len(documents)
    # Where a discipline never marks, ECN changes nothing.
    of_ecn = [bool(doc["path"].get("ecn")) for doc in documents]
    tables = [json.dumps(tables) for _, tables in release]
    assert len(set(zip(of_ecn, tables, strict=True))) == len(documents)
    for doc, one, other in zip(documents, debug, release, strict=True):
        assert one == other, doc["name"]


def test_repetitions_are_the_same_bytes_on_one_core_and_on_two(tmp_path: Path) -> None:
    doc = document("repeated", "bbr3", "cubic", loss="0.1%")
    scenario, toml = make_scenario(doc), tomli_w.dumps(doc)
    for jobs in (1, 2):
        folders = [tmp_path / f"{jobs}" / f"run-{index}" for index in range(3)]
        outcome = run_scenario(scenario, toml, folders, jobs=jobs)
        assert [run.metadata["seed"] for run in outcome.recordings] == [7, 8, 9]
    one, two = (
        {str(file.relative_to(tmp_path / jobs)): file.read_bytes() for file in sorted(files)}
        for jobs in ("1", "2")
        for files in [(tmp_path / jobs).rglob("*.*")]
    )
    assert len(one) == 3 * 9 and one == two
    tables = [one[f"run-{index}/flow_samples.parquet"] for index in range(3)]
    assert len(set(tables)) == 3
