"""What of a run's tables the compiled metrics read, as they take it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy.typing as npt

from fullpipe.metrics.columns import Lazy
from fullpipe.recording.recording import QUEUE_COUNTERS

#: Table -> columns.
COLUMNS: dict[str, tuple[str, ...]] = {
    "flows": ("flow", "cc", "direction", "start_us", "completion_us"),
    "flow_samples": (
        "t_us",
        "flow_id",
        "srtt_us",
        "min_rtt_us",
        "cwnd_packets",
        "bytes_delivered",
        "packets_sent",
        "packets_retransmitted",
    ),
    "queue_samples": ("t_us", "queue_bytes", "queue_packets", *QUEUE_COUNTERS),
    "ping_samples": ("t_us", "rtt_us"),
}


def samples_of(
    read: Callable[[str, str], npt.NDArray[Any]], queues: Iterable[str]
) -> dict[str, Any]:
    """The tables as `_native.metrics.Run` takes them, with the samples of these queues; `read`
    gives a column of a table, float64 with NaN for null, or text."""
    tables: dict[str, Any] = {
        table: Lazy(names, lambda name, table=table: _plain(read(table, name)))  # type: ignore[misc]
        for table, names in COLUMNS.items()
    }
    names, queue = COLUMNS["queue_samples"], read("queue_samples", "queue")
    tables["queue_samples"] = {
        queue_name: Lazy(
            names,
            lambda name, rows=queue == queue_name: _plain(read("queue_samples", name)[rows]),  # type: ignore[misc]
        )
        for queue_name in queues
    }
    return tables


def _plain(values: npt.NDArray[Any]) -> Any:
    return values.tolist() if values.dtype == object else values.tobytes()
