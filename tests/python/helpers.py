"""What the tests share: running a scenario in the simulator, its columns, measured numbers."""

from __future__ import annotations

import csv
import json
import os
import select
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.recording import checksums
from fullpipe.scenario.model import make_scenario

#: Measured numbers; its README says where they come from.
DATA = Path(__file__).resolve().parents[1] / "data"
#: Runs a program, whose name follows, built as Rust's tests are. With a package named, cargo would
#: build again what those have built.
RUN_AS_TESTS = (
    "cargo", "run", "--quiet", "--locked", "--release", "--config", ".cargo/tests.toml", "--bin",
)  # fmt: skip


def simulate(**document: Any) -> dict[str, Any]:
    """The simulator's raw answer for a scenario given as a dictionary."""
    result: dict[str, Any] = _native.sim.run(json.dumps(resolve(make_scenario(document))))
    return result


def column(raw: dict[str, Any], table: str, name: str) -> npt.NDArray[Any]:
    """One column; null is 0."""
    kind, values = raw[table][name]
    if kind == "text":
        return np.array(values)
    data = values[0] if kind.startswith("opt_") else values
    return np.frombuffer(data, dtype="<f8" if kind.endswith("f64") else "<u8")


def measured(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file of tests/data."""
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def await_ends(watched: Iterable[int]) -> None:
    """Waits until the processes of these pidfds have ended. Where one never does, the test hangs: a
    limit would depend on how busy the machine is."""
    for descriptor in watched:
        select.select([descriptor], [], [])
        os.close(descriptor)


def resealed(folder: Path) -> None:
    """Lists the checksums of a folder's files as they are now."""
    (folder / checksums.FILE).unlink()
    checksums.seal(folder, [file.name for file in folder.iterdir()])
