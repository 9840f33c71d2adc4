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

from fullpipe import _native
from fullpipe.congestion.registry import cc_sets
from fullpipe.engines.runner import run_scenario
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

ROOT = Path(__file__).resolve().parents[2]


def document(name: str, *ccs: str, **path: Any) -> dict[str, Any]:
    return {
        "name": name, "duration": "6s", "seed": 7,
        "path": {"rate": "20mbit", "rtt": "30ms", "buffer": "2bdp", **path},
        "flow": [{"cc": cc, "start_step": "100ms"} for cc in ccs],
        "probe": [{"kind": "ping"}],
    }  # fmt: skip


def everything() -> list[dict[str, Any]]:
    """Every congestion control, every queue discipline, every kind of chance and of host."""
    names = list(cc_sets())
    alone = [document(f"{name}, loss", name, "cubic", loss="0.3%") for name in names]
    managed = [
        document(f"{qdisc}, ECN {ecn}", "bbr3", "reno", "bbr2", qdisc=qdisc, buffer="100p", ecn=ecn)
        for qdisc in DISCIPLINES
        for ecn in (False, True)
    ]
    for doc in managed:
        doc["flow"][1]["dscp"] = "EF"
    slots = document("slotted jitter", "bbr1", "bbr3", jitter="20ms", jitter_shape="slotted")
    jitter = document("jitter", "bbr3-linux", "cubic", jitter="10ms")
    bursts = document("correlated bursts", "bbr2", loss="1%", loss_correlation="25%")
    bursts["path"]["loss_per"] = "burst"
    hosts = document("hosts", "cubic", "bbr3", "reno", reverse_rate="2mbit", reverse_loss="1%")
    hosts["host"] = {"pacing": "fq", "receive_aggregation": "1ms", "tsq": "4ms", "arp": True}
    hosts["flow"][0] |= {"direction": "down", "receive_window": "64KB"}
    hosts["flow"][1] |= {"app_rate": "3mbit", "rtt": "80ms"}
    hosts["flow"][2] |= {"amount": "2MB"}
    return [*alone, *managed, slots, jitter, bursts, hosts]


def in_debug(plans: Sequence[str]) -> list[Any]:
    """Events and tables of each plan, from the simulator built without optimisation and with its
    checks of overflow."""
    # By its program: of one package, the crates that Rust's tests have built would be built anew.
    command = ["cargo", "run", "--quiet", "--locked", "--bin", "fullpipe-tables"]
    done = subprocess.run(
        command, cwd=ROOT, input="\n".join(plans), capture_output=True, text=True, check=False
    )
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
