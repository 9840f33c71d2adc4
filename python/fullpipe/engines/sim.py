"""Engine `sim`: the packet-level simulator (crates/fullpipe-sim), in this process.

It needs nothing and its clock is virtual; the same plan gives the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute

from fullpipe import _native
from fullpipe.engines.base import Progress, RunResult
from fullpipe.errors import RunError, UserError
from fullpipe.recording import TABLES


class SimEngine:
    """The simulator."""

    name = "sim"

    def check(self, plan: Mapping[str, Any]) -> None:
        """Raises UserError for what only a kernel has."""
        for flow in plan["flows"]:
            if flow["cc"]["algorithm"] is None:
                raise UserError(
                    f"flow {flow['name']}: {flow['cc']['name']} is the kernel's own and needs "
                    "--engine vm or live; the simulator runs the names of `fullpipe cc list`"
                )
        for key in ("qdisc", "reverse_qdisc"):
            if plan["path"][key]["aqm"]["kind"] == "cake":
                raise UserError(f"path.{key}: cake needs --engine vm; the simulator has no CAKE")

    def run(
        self, plan: Mapping[str, Any], progress: Progress, options: Mapping[str, Any]
    ) -> RunResult:
        """Runs the plan; option `pcap` is the path of a capture to write."""
        self.check(plan)
        try:
            raw = _native.sim.run(json.dumps(plan), progress, options.get("pcap"))
        except ValueError as error:
            raise UserError(str(error)) from None
        except OSError as error:
            raise UserError(f"{options.get('pcap')}: cannot be written: {error}") from None
        except RuntimeError as error:
            raise RunError(f"the simulator failed: {error}") from None
        tables = {name: _table(raw[name], schema) for name, schema in TABLES.items()}
        health = {"problems": [], **raw.get("health", {})}
        return RunResult(tables, {}, health, interrupted=bool(raw.get("interrupted")))


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    return pa.table([_array(*columns[name]) for name in schema.names], schema=schema)


def _array(kind: str, values: Any) -> pa.Array:
    if kind == "text":
        return pa.array(values, pa.string())
    if kind == "opt_u64":
        data, valid = values
        mask = pa.array([not flag for flag in valid], pa.bool_())
        numbers = pa.Array.from_buffers(pa.uint64(), len(valid), [None, pa.py_buffer(data)])
        return pa.compute.if_else(mask, pa.scalar(None, pa.uint64()), numbers)
    arrow = pa.float64() if kind == "f64" else pa.uint64()
    return pa.Array.from_buffers(arrow, len(values) // 8, [None, pa.py_buffer(values)])
