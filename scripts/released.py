"""Writes tests/data/released/VERSION/: a scenario and its recording, a sweep and its store, and
what this version says of them (`said.json`). Later versions must read them and say the same
(tests/python/test_released.py).

It is run for a release, by the version that is released. Folders of earlier ones never change.

python scripts/released.py
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import fullpipe
from fullpipe.congestion.registry import params_of
from fullpipe.metrics import summarise
from fullpipe.plan.resolve import resolve
from fullpipe.plan.senders import cc_choices
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES, verify_recording
from fullpipe.scenario.model import Scenario, load_scenario
from fullpipe.sweep.cells import cells_of, scenario_of
from fullpipe.sweep.file import load_sweep
from fullpipe.sweep.query import VIEWS

ROOT = Path(__file__).resolve().parent.parent
RELEASED = ROOT / "tests" / "data" / "released"

SCENARIO = """\
# What a recording of this version holds: two flows, a page, a stream, traffic and a probe.
version = 1
name = "released"
seed = 7
duration = "3s"
warmup = "500ms"
sample_interval = "50ms"

[path]
rate = "8mbit"
rtt = "30ms"
buffer = "200pkt"
qdisc = "fq_codel"
qdisc_options = { target = "8ms", flows = 256 }
loss = "0.2%"
ecn = true

[host]
tcp = "6.18"
ack_cost = "2us"

[cc.gentle]
base = "cubic"
beta = 0.8

[[flow]]
cc = "bbr3"
name = "bulk"

[[flow]]
cc = "gentle"
name = "late"
direction = "down"
start = "400ms"
amount = "1MB"

[[page]]
cc = "reno"
levels = [["4KB"], ["10KB", "2KB"]]
lookup = "none"
interval = "500ms"

[[udp]]
rate = "64kbit"
payload = "160B"
dscp = "EF"

[[traffic]]
cc = "cubic"
flows_per_s = 8
sizes = "20KB"
samples = [0, 5]

[[probe]]
kind = "ping"
"""

SWEEP = """\
# Four cells with two seeds each: an axis with units, and one that the flows have as a column.
version = 1

[scenario]
duration = "2s"
warmup = "500ms"
path = { rate = "10mbit", rtt = "{rtt}", buffer = "1.5bdp", qdisc = "codel" }
flow = [{ cc = "{cc}" }, { cc = "cubic", start = "200ms" }]
probe = [{ kind = "ping" }]

[axis]
cc = ["bbr3", "reno"]
rtt = ["10ms", "40ms"]

[sweep]
seeds = 2
"""


def said(folder: Path) -> dict[str, Any]:
    """What this program says of the files in a version's folder, as JSON has it."""
    verify_recording(folder / "recording")
    recording = fullpipe.load(folder / "recording")[0]
    tables = [*TABLES, *(name for name in OPTIONAL_TABLES if recording.has(name))]
    sweep = load_sweep(folder / "sweep.toml")
    store = fullpipe.SweepResults(folder / "store")
    found: dict[str, Any] = _as_json(
        {
            "fullpipe_version": recording.metadata["fullpipe_version"],
            "plan": _plan(load_scenario(folder / "scenario.toml")),
            "rows": {name: recording.table(name).num_rows for name in tables},
            "metrics": summarise(recording),
            "plans_of_cells": [_plan(scenario_of(sweep, cell)[1]) for cell in cells_of(sweep)],
            "store": {view: store.table(view).to_pylist() for view in VIEWS},
        }
    )
    return found


def _plan(scenario: Scenario) -> dict[str, Any]:
    """The plan of a scenario, in which constants have their names: an algorithm may get more."""
    plan: dict[str, Any] = _as_json(resolve(scenario))
    for _, choice in cc_choices(plan):
        names = [param.name for param in params_of(choice["algorithm"])]
        choice["params"] = dict(zip(names, choice["params"], strict=True))
    return plan


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def write(folder: Path) -> None:
    """Writes a version's folder, which is not there yet."""
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    (folder / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    fullpipe.run(folder / "scenario.toml", out=folder / "recording")
    fullpipe.run_sweep(folder / "sweep.toml", out=folder / "store", jobs=1)
    text = json.dumps(said(folder), indent=1)
    (folder / "said.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Makes the folder of the installed version, or makes it again."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = cargo["workspace"]["package"]["version"]
    if fullpipe.__version__ != version:
        sys.exit(
            f"fullpipe {fullpipe.__version__} is installed, Cargo.toml says {version}: `make build`"
        )
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch) / version)
        shutil.rmtree(RELEASED / version, ignore_errors=True)
        locks = shutil.ignore_patterns(".*")
        shutil.copytree(Path(scratch) / version, RELEASED / version, ignore=locks)
    print(f"wrote {(RELEASED / version).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
