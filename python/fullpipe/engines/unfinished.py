"""Totals for a kernel engine's run that did not finish: it has samples and events up to the end,
but no totals of its flows. It knows no engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fullpipe.base.packets import mss_bytes
from fullpipe.plan.plan import Plan
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES

_TOTALS = (
    "bytes_delivered",
    "bytes_acked",
    "packets_sent",
    "packets_retransmitted",
    "packets_lost",
    "packets_delivered",
    "packets_delivered_ce",
)


def with_totals(tables: Mapping[str, pa.Table], plan: Plan) -> dict[str, pa.Table]:
    """The tables, with a row in `flows` for every flow of the plan that has samples; missing rows
    are made from its last sample. It does not have recoveries and undos."""
    if plan.get("traffic") and "traffic" not in tables:
        tables = {**tables, "traffic": OPTIONAL_TABLES["traffic"].empty_table()}
    recorded = set(tables["flows"]["flow_id"].to_pylist())
    last = {
        index: samples.slice(samples.num_rows - 1).to_pylist()[0]
        for index in range(len(plan["flows"]))
        if index not in recorded and (samples := _of_flow(tables["flow_samples"], index)).num_rows
    }
    if not last:
        return dict(tables)
    events = tables["events"].to_pylist()
    counts = Counter((row["flow_id"], row["event"]) for row in events)
    finished = {row["flow_id"]: row["t_us"] for row in events if row["event"] == "finish"}
    rows = [
        {
            **_described(index, plan),
            "completion_us": finished.get(index),
            **{name: sample[name] for name in _TOTALS},
            "recoveries": None,
            "timeouts": counts[index, "rto"],
            "undos": None,
        }
        for index, sample in last.items()
    ]
    added = pa.Table.from_pylist(rows, schema=TABLES["flows"])
    flows = pa.concat_tables([tables["flows"], added]).sort_by("flow_id")
    return {**tables, "flows": flows}


def _of_flow(samples: pa.Table, index: int) -> pa.Table:
    import pyarrow.compute as pc  # slow to import, and few runs are unfinished

    return samples.filter(pc.equal(samples["flow_id"], index))


def _described(index: int, plan: Plan) -> dict[str, Any]:
    flow, path = plan["flows"][index], plan["path"]
    forward_ns, reverse_ns = flow["forward_delay_ns"], flow["reverse_delay_ns"]
    forward_ns = path["forward_delay_ns"] if forward_ns is None else forward_ns
    reverse_ns = path["reverse_delay_ns"] if reverse_ns is None else reverse_ns
    return {
        "flow_id": index,
        "flow": flow["name"],
        "cc": flow["cc"]["name"],
        "direction": flow["direction"],
        "start_us": flow["start_ns"] // 1000,
        "base_rtt_us": (forward_ns + reverse_ns) // 1000,
        "mss_bytes": mss_bytes(path["mtu_bytes"]),
    }
