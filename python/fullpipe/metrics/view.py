"""A recording as metrics read it: NumPy columns, cut to a time window."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fullpipe.base.columns import as_numpy
from fullpipe.plan.bottleneck import Bottleneck, bottleneck, bottleneck_of, data_ways
from fullpipe.recording.recording import Recording

Floats = npt.NDArray[np.float64]
Columns = dict[str, npt.NDArray[Any]]
#: A kernel's samples are taken a little after the time that they are of: 6 us, or 0.2 ms where
#: many flows are asked in turn; of a machine whose processor is two thirds busy now and then 1 to
#: 2 ms. One that is later than a tenth of the interval the agent calls late (its health.rs).
MOST_LATE_S, MOST_LATE = 1e-3, 0.1


class View:
    """The part of a recording from `start_s` to `end_s`; by default from the warm-up to the end.

    Columns are float64 with NaN for null, or object for text."""

    def __init__(
        self, recording: Recording, start_s: float | None = None, end_s: float | None = None
    ) -> None:
        self.recording = recording
        self.plan: dict[str, Any] = recording.metadata.get("plan", {})
        warmup_s = recording.metadata.get("warmup_ns", 0) / 1e9
        interval_s = self.plan.get("sample_interval_ns", 0) / 1e9
        #: How much later than a time its samples may be.
        self.late_s = max(1e-6, min(MOST_LATE_S, interval_s / 2), MOST_LATE * interval_s)
        self.start_s = warmup_s if start_s is None else start_s
        self.end_s = self._last_s() if end_s is None else min(end_s, self._last_s())

    def _last_s(self) -> float:
        samples = self._all("flow_samples")["t_us"]
        planned = self.plan.get("duration_ns", 0) / 1e9
        last = float(samples.max()) / 1e6 if samples.size else planned
        return min(last, planned) if planned else last

    def _all(self, table: str) -> Columns:
        cache = self.__dict__.setdefault("_tables", {})
        if table not in cache:
            arrow = self.recording.table(table)
            cache[table] = {
                name: as_numpy(column.combine_chunks())
                for name, column in zip(arrow.column_names, arrow.columns, strict=True)
            }
        found: Columns = cache[table]
        return found

    @cached_property
    def flows(self) -> Columns:
        """The table of flows: whole, it has no times to cut by."""
        return self._all("flows")

    def samples(self, table: str) -> Columns:
        """A table's rows within the window, its start excluded (a sample ends an interval)."""
        columns = self._all(table)
        # Pings have times of their own, and are not of any other.
        keep = self._within(columns["t_us"], 1e-9 if table == "ping_samples" else self.late_s)
        return {name: values[keep] for name, values in columns.items()}

    def flow_samples(self, flow_id: int) -> Columns:
        """One flow's samples within the window."""
        columns = self._by_flow.get(float(flow_id), {})
        if not columns:
            return {name: values[:0] for name, values in self._all("flow_samples").items()}
        keep = self._within(columns["t_us"], self.late_s)
        return {name: values[keep] for name, values in columns.items()}

    def _within(self, t_us: Floats, late_s: float) -> npt.NDArray[np.bool_]:
        seconds = t_us / 1e6
        return np.asarray((seconds > self.start_s + late_s) & (seconds <= self.end_s + late_s))

    @cached_property
    def _by_flow(self) -> dict[float, Columns]:
        """Every flow's samples, in their order: cut once, however many flows there are."""
        columns = self._all("flow_samples")
        order = np.argsort(columns["flow_id"], kind="stable")
        owners = columns["flow_id"][order]
        # As np.unique(owners, return_index=True), which would load masked arrays.
        firsts = np.flatnonzero(np.append(owners.size > 0, owners[1:] != owners[:-1]))
        lasts = np.append(firsts, order.size)[1:]
        return {
            float(flow): {name: values[order[first:last]] for name, values in columns.items()}
            for flow, first, last in zip(owners[firsts], firsts, lasts, strict=True)
        }

    def counter(self, flow_id: int, name: str, at_s: float) -> float:
        """A flow's counter at a time: its last sample not after it; 0 before the first. Between
        samples no value is made up, except at the very end of a run, which the flows' own totals
        cover."""
        columns = self._by_flow.get(float(flow_id), {})
        if not columns:
            return 0.0
        values = columns[name][columns["t_us"] / 1e6 <= at_s + self.late_s]
        return float(values[-1]) if values.size else 0.0

    def queue(self, name: str = "forward") -> Columns:
        """One queue's samples within the window."""
        samples = self.samples("queue_samples")
        keep = samples["queue"] == name
        return {column: values[keep] for column, values in samples.items()}

    def queue_counter(self, queue: str, name: str, at_s: float) -> float:
        """A queue's counter at a time, as `counter`."""
        columns = self._all("queue_samples")
        keep = (columns["queue"] == queue) & (columns["t_us"] / 1e6 <= at_s + self.late_s)
        values = columns[name][keep]
        return float(values[-1]) if values.size else 0.0

    @property
    def main_queue(self) -> str:
        """The queue that the data goes through: `reverse` where every flow is a download."""
        return self._main_queue.queue

    @property
    def main_qdisc(self) -> Mapping[str, Any]:
        """That queue, as the plan has it."""
        return self._main_queue.qdisc

    @property
    def _main_queue(self) -> Bottleneck:
        return next(iter(self.bottlenecks.values()))

    @cached_property
    def bottlenecks(self) -> dict[Literal["up", "down"], Bottleneck]:
        """The queues that the data goes through, by their directions."""
        ways = data_ways(self.plan, [str(way) for way in self.flows["direction"]])
        return {"up" if way == "forward" else "down": bottleneck_of(self.plan, way) for way in ways}

    @property
    def bottleneck(self) -> str:
        """Name of the link that `path` is about: the slowest of the row, of equals the first."""
        return bottleneck(self.plan)

    @property
    def rate_bps(self) -> float:
        """Rate of the bottleneck that the data goes through; NaN where the plan is not known."""
        return self._main_queue.rate_bps or float("nan")

    @property
    def rtt_min_s(self) -> float:
        """Base RTT of the path (RTTmin: no queue, no serialization); NaN where it is not known."""
        path = self.plan.get("path")
        if not path:
            return float("nan")
        return float(path["forward_delay_ns"] + path["reverse_delay_ns"]) / 1e9

    def active_s(self, flow_id: int) -> tuple[float, float]:
        """From when to when a flow was at work within the window."""
        flows = self.flows
        start = max(self.start_s, float(flows["start_us"][flow_id]) / 1e6)
        end = self.end_s
        completion = float(flows["completion_us"][flow_id]) / 1e6
        if not np.isnan(completion):
            end = min(end, completion)
        return start, max(start, end)
