"""What the tests share: running a scenario in the simulator, reading its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def simulate(**document: Any) -> dict[str, Any]:
    """The simulator's raw answer for a scenario given as a dictionary."""
    result: dict[str, Any] = _native.sim.run(json.dumps(resolve(make_scenario(document))))
    return result


def column(raw: dict[str, Any], table: str, name: str) -> npt.NDArray[Any]:
    """One column; null is 0."""
    kind, values = raw[table][name]
    if kind == "text":
        return np.array(values)
    data = values[0] if kind == "opt_u64" else values
    return np.frombuffer(data, dtype="<f8" if kind == "f64" else "<u8")


def shared_file(name: str) -> Path:
    """A file of the data for checks; skips the test, saying so, where it is absent."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path.name}: the data for checks is not beside this checkout")
    return path
