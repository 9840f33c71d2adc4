"""What of a run's tables the compiled metrics read, as they take it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy.typing as npt

from fullpipe.recording.recording import QUEUE_COUNTERS

#: Table -> columns.
COLUMNS: dict[str, tuple[str, ...]] = {
    "flows": ("flow", "cc", "direction", "start_us", "completion_us"),
    "flow_samples": (
        "t_us", "flow_id", "srtt_us", "min_rtt_us", "cwnd_packets", "bytes_delivered",
        "packets_sent", "packets_retransmitted",
    ),
    "queue_samples": ("t_us", "queue_bytes", *QUEUE_COUNTERS),
    "ping_samples": ("t_us", "rtt_us"),
}  # fmt: skip


def samples_of(
    read: Callable[[str, str], npt.NDArray[Any]], queues: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """The tables as `_native.metrics.Run` takes them, with the samples of these queues; `read`
    gives a column of a table, float64 with NaN for null, or text."""
    found: dict[str, dict[str, Any]] = {}
    for table, names in COLUMNS.items():
        columns = {name: read(table, name) for name in names}
        if table == "queue_samples":
            queue = read(table, "queue")
            found[table] = {
                name: _plain({key: values[queue == name] for key, values in columns.items()})
                for name in queues
            }
        else:
            found[table] = _plain(columns)
    return found


def _plain(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    return {
        name: values.tolist() if values.dtype == object else values.tobytes()
        for name, values in columns.items()
    }
