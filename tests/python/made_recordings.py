"""Recordings made by hand: a path of 8 Mbit/s and 20 ms, and rows of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from fullpipe.metrics import View
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES, empty_table, write_recording

#: 8 Mbit/s is 1 MB a second; 20 ms; a packet of 1514 B carries 1448 B.
PLAN = {
    "name": "by hand", "duration_ns": 10 * 10**9,
    "path": {"rate_bps": 8_000_000, "reverse_rate_bps": None, "forward_delay_ns": 0,
             "reverse_delay_ns": 20_000_000, "mtu_bytes": 1500},
}  # fmt: skip


def recorded(
    path: Path,
    warmup_s: float = 0,
    plan: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    scenario: str = "",
    **rows: list[dict[str, Any]],
) -> View:
    """The view of a recording with these rows; other tables are empty. `metadata`: what it says
    besides; `scenario`: its TOML."""
    schemas = {**TABLES, **OPTIONAL_TABLES}
    tables = {name: empty_table(name) for name in TABLES}
    for name, given in rows.items():
        full = [{column: row.get(column) for column in schemas[name].names} for row in given]
        tables[name] = pa.Table.from_pylist(full, schema=schemas[name])
    metadata = {
        "engine": "sim",
        "plan": plan or PLAN,
        "warmup_ns": round(warmup_s * 1e9),
        "health": {},
        **(metadata or {}),
    }
    return View(write_recording(path / "recording", metadata, scenario, tables))


def flow(flow_id: int, **more: Any) -> dict[str, Any]:
    """A flow's row."""
    row = {"flow_id": flow_id, "flow": f"f{flow_id}", "cc": "bbr3", "direction": "up"}
    return row | {"start_us": 0, "base_rtt_us": 20_000, "mss_bytes": 1448} | more


def samples(flow_id: int, delivered: list[int], **more: list[int]) -> list[dict[str, Any]]:
    """A sample a second with these bytes delivered, and other counters."""
    return [
        {"t_us": (second + 1) * 1_000_000, "flow_id": flow_id, "bytes_delivered": volume}
        | {name: values[second] for name, values in more.items()}
        for second, volume in enumerate(delivered)
    ]


def queue(lengths: list[int], **more: list[int]) -> list[dict[str, Any]]:
    """A sample a second of the forward queue."""
    return [
        {"t_us": (second + 1) * 1_000_000, "queue": "forward", "queue_bytes": length}
        | {name: values[second] for name, values in more.items()}
        for second, length in enumerate(lengths)
    ]


def of_a_link(**wire: Any) -> dict[str, Any]:
    """PLAN with its path as a link."""
    wire = {"rate_bps": PLAN["path"]["rate_bps"], "qdisc": {}, **wire}
    medium = {"kind": "wire", "forward": wire, "reverse": {"rate_bps": None}}
    return {**PLAN, "links": [{"name": "path", "medium": medium}]}
