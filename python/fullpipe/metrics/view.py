"""A recording as metrics read it: NumPy columns, cut to a time window, and the metrics that
crates/fullpipe-metrics defines."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fullpipe import _native
from fullpipe.base.columns import as_numpy
from fullpipe.metrics.carrying import Carrying
from fullpipe.metrics.columns import Lazy
from fullpipe.metrics.samples import samples_of
from fullpipe.metrics.settling import settled_summary
from fullpipe.plan.bottleneck import Bottleneck, bottleneck, bottleneck_of, data_directions
from fullpipe.plan.facts import Facts, LinkQueue, facts_of, link_queues
from fullpipe.recording.recording import Recording

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]
#: Metrics by their names (`_native.metrics.TABLES`); NaN where there is nothing to measure.
Row = dict[str, float]

#: Columns of `flow_samples` that are a connection's state: after its end there is none.
_STATE = (
    "cwnd_packets",
    "ssthresh_packets",
    "inflight_packets",
    "srtt_us",
    "min_rtt_us",
    "pacing_rate_bps",
    "delivery_rate_bps",
    "receive_window_bytes",
    "ca_state",
)
#: Of tables with more rows columns are read when they are asked for, and not kept.
_KEPT_ROWS = 200_000


class View:
    """The part of a recording from `start_s` to `end_s`; by default from the warm-up to the end.

    It begins and ends at sampling times, where counters are known: at the first one that is not
    before the requested start, and the last one not after the requested end. Columns are float64
    with NaN for null, or object for text."""

    def __init__(
        self, recording: Recording, start_s: float | None = None, end_s: float | None = None
    ) -> None:
        self.recording = recording
        self.plan: dict[str, Any] = recording.metadata.get("plan", {})
        self._wanted_s = start_s, end_s
        self._tables: dict[str, Columns] = {}

    def between(self, start_s: float, end_s: float) -> View:
        """Another part of the same recording."""
        part = View(self.recording, start_s, end_s)
        part._tables = self._tables
        return part

    @cached_property
    def run_metrics(self) -> Row:
        """Metrics of the run."""
        return _row("run", self._measured.run())

    @cached_property
    def flow_metrics(self) -> list[Row]:
        """Metrics of each flow."""
        return [_row("flow", values) for values in self._measured.flows()]

    @cached_property
    def settling(self) -> dict[str, Any]:
        """Whether the run had settled within the window (`settling.settled_summary`)."""
        return settled_summary(*self._measured.settling(), self.end_s - self.start_s)

    def group_metrics(self, members: Sequence[int]) -> Row:
        """Metrics of some flows together."""
        return _row("group", self._measured.group(list(members)))

    @cached_property
    def path_metrics(self) -> Row:
        """Metrics of the queue that the data goes through."""
        return self._queue_metrics[0]

    @cached_property
    def link_metrics(self) -> list[tuple[LinkQueue, Row]]:
        """Metrics of each queue that has a rate, and of both of a Wi-Fi channel."""
        return list(zip(link_queues(self.plan), self._queue_metrics[1:], strict=True))

    @property
    def equal_demand(self) -> tuple[int, ...]:
        """The flows whose goodputs can be compared, over which the run's Jain's index is."""
        return self._facts.equal_demand

    @cached_property
    def start_s(self) -> float:
        """When the window begins."""
        return self._window[0]

    @cached_property
    def end_s(self) -> float:
        """When it ends."""
        return self._window[1]

    @cached_property
    def late_s(self) -> float:
        """How much later than its time a sample may be."""
        return self._window[2]

    @cached_property
    def _facts(self) -> Facts:
        directions = [str(direction) for direction in self.flows["direction"]]
        facts = facts_of(self.plan, directions, self.recording.metadata.get("warmup_ns", 0))
        start_s, end_s = self._wanted_s
        return facts._replace(
            start_s=facts.start_s if start_s is None else start_s,
            end_s=facts.end_s if end_s is None else min(end_s, facts.end_s),
            queues=(*facts.queues, *[queue.queue for queue in link_queues(self.plan)]),
        )

    @cached_property
    def _window(self) -> tuple[float, float, float]:
        sampled_us = self._all("flow_samples")["t_us"]
        return _native.metrics.window(self._facts, sampled_us.tobytes())

    @cached_property
    def _measured(self) -> _native.MeasuredRun:
        queues = [queue.name for queue in self._facts.queues]
        samples = samples_of(lambda table, column: self._all(table)[column], queues)
        return _native.metrics.Run(self._facts, samples)

    @cached_property
    def _queue_metrics(self) -> list[Row]:
        return [_row("queue", values) for values in self._measured.queues()]

    def _all(self, table: str) -> Columns:
        if table not in self._tables:
            names = self.recording.names(table)
            columns: Columns = Lazy(names, functools.partial(self._column, table))
            if self.recording.rows(table) <= _KEPT_ROWS:
                arrow = self.recording.table(table)
                columns = {name: as_numpy(arrow[name].combine_chunks()) for name in names}
            self._tables[table] = columns
        return self._tables[table]

    def _column(self, table: str, name: str) -> npt.NDArray[Any]:
        values = as_numpy(self.recording.columns(table, [name])[name].combine_chunks())
        pa.default_memory_pool().release_unused()
        return values

    @cached_property
    def flows(self) -> Columns:
        """The table of flows: whole, it has no times to cut by."""
        return self._all("flows")

    def samples(self, table: str) -> Columns:
        """A table's rows within the window, its start excluded (a sample ends an interval); of
        algorithms' variables those up to the end of their flow."""
        columns = self._all(table)
        # Pings have times of their own, and are not of any other.
        keep = self._within(columns["t_us"], 1e-9 if table == "ping_samples" else self.late_s)
        if table == "cc_samples":
            keep &= ~self._is_over(columns)
        return _cut(columns, keep)

    def flow_samples(self, flow_id: int) -> Columns:
        """One flow's samples within the window. After its end its counters stay, and its state
        (RTT, windows, rates) is NaN."""
        columns = self._by_flow.get(float(flow_id), {})
        if not columns:
            return {name: values[:0] for name, values in self._all("flow_samples").items()}
        samples = _cut(columns, self._within(columns["t_us"], self.late_s))
        over = self._is_over(samples)
        if not over.any():
            return samples
        state = {name: np.where(over, np.nan, samples[name]) for name in _STATE if name in samples}
        return {**samples, **state}

    def _is_over(self, rows: Columns) -> npt.NDArray[np.bool_]:
        """Which rows of flows' samples lie after the end of their flow."""
        ends_us = self.flows["completion_us"]
        if not ends_us.size:
            return np.zeros(rows["t_us"].size, dtype=bool)
        flow = rows["flow_id"].astype(int)
        is_known = flow < ends_us.size
        return np.asarray(is_known & (rows["t_us"] > ends_us[np.where(is_known, flow, 0)]))

    def _within(self, t_us: Floats, late_s: float) -> npt.NDArray[np.bool_]:
        seconds = t_us / 1e6
        return np.asarray((seconds > self.start_s + late_s) & (seconds <= self.end_s + late_s))

    @cached_property
    def _by_flow(self) -> dict[float, Columns]:
        """Every flow's samples, in their order: cut once, however many flows there are."""
        columns = self._all("flow_samples")
        order = np.argsort(columns["flow_id"], kind="stable")
        flows, firsts = np.unique(columns["flow_id"][order], return_index=True)
        parts = np.split(order, firsts[1:]) if flows.size else []
        return {float(flow): _cut(columns, part) for flow, part in zip(flows, parts, strict=True)}

    def queue(self, name: str = "forward") -> Columns:
        """One queue's samples within the window."""
        samples = self.samples("queue_samples")
        keep = samples["queue"] == name
        return _cut(samples, keep)

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
        flows = [str(direction) for direction in self.flows["direction"]]
        return {
            "up" if direction == "forward" else "down": bottleneck_of(self.plan, direction)
            for direction in data_directions(self.plan, flows)
        }

    @property
    def bottleneck(self) -> str:
        """Name of the link that `path` is about: the slowest of the row, of equals the first."""
        return bottleneck(self.plan)

    @property
    def rate_bps(self) -> float:
        """Rate of the bottleneck at the start, the mean of a trace; NaN where it has none."""
        return self._main_queue.rate_bps or math.nan

    @cached_property
    def carrying(self) -> Carrying:
        """What the bottleneck could carry."""
        return Carrying(self._main_queue.capacity)

    @property
    def mean_rate_bps(self) -> float:
        """What it could carry within the window, over its length; NaN where it is not known."""
        if self.end_s <= self.start_s:
            return math.nan
        return float(self.carrying.rates_bps(np.array([self.start_s, self.end_s]))[0])

    @property
    def rtt_min_s(self) -> float:
        """Base RTT of the path (RTTmin: no queue, no serialization); NaN where it is not known."""
        return self._facts.rtt_s

    def active_s(self, flow_id: int) -> tuple[float, float]:
        """From when to when a flow was active within the window."""
        flows = self.flows
        start = max(self.start_s, float(flows["start_us"][flow_id]) / 1e6)
        end = self.end_s
        completion = float(flows["completion_us"][flow_id]) / 1e6
        if not np.isnan(completion):
            end = min(end, completion)
        return start, max(start, end)


def _row(table: str, values: Sequence[float]) -> Row:
    columns = _native.metrics.TABLES[table]
    return {name: value for (name, _, _), value in zip(columns, values, strict=True)}


def _cut(columns: Columns, rows: npt.NDArray[Any]) -> Columns:
    """Some rows of columns: indices, or which to keep."""
    if isinstance(columns, Lazy):
        return Lazy(columns, lambda name: columns[name][rows])
    return {name: values[rows] for name, values in columns.items()}
