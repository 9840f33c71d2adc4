"""The kinds of traffic beside flows, and the figures of each: terminal, pages and comparisons show
what this list has. Must never know how anything is printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fullpipe.base.units import MIB

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A figure of a row: its short name in tables, unit, digits, and how it is read. `column`: what
    it is called where figures are columns. `compared`: what it is called beside other runs; empty
    where it is not compared."""

    name: str
    unit: str
    digits: int
    read: Callable[[Row], float | None]
    column: str
    compared: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of traffic: its key in summaries (`metrics.summarise`), the key of a row's name, its
    title, and what figures mean where that is not plain. `noun`: what one of it is called, where
    the key is another word."""

    key: str
    named: str
    title: str
    figures: tuple[Figure, ...]
    note: str = ""
    noun: str = ""

    @property
    def word(self) -> str:
        """What one of it is called."""
        return self.noun or self.named

    def rows(self, summary: Row) -> list[Row]:
        """The rows of a summary, each followed by those of its `classes`, if it has such."""
        rows: list[Row] = []
        for row in summary[self.key]:
            parts = [{**part, self.named: f"  {part['sizes']}"} for part in row.get("classes", ())]
            rows += [row, *parts]
        return rows


def _of(key: str, part: str | None = None, divisor: float = 1.0) -> Callable[[Row], float | None]:
    def read(row: Row) -> float | None:
        value = row.get(key)  # a class of sizes has only some
        if part is not None and value is not None:
            value = value[part]
        return None if value is None else float(value) / divisor

    return read


KINDS: tuple[Kind, ...] = (
    Kind(
        "pages",
        "page",
        "Pages",
        (
            Figure("size", "MiB", 2, _of("bytes", divisor=MIB), "page_mib"),
            Figure("objects", "", 0, lambda row: float(len(row["objects"])), "page_objects"),
            Figure("loads", "", 0, _of("loads"), "page_loads"),
            Figure("finished", "", 0, _of("finished"), "page_loads_finished"),
            Figure("time mean", "ms", 0, _of("time_s", "mean", 1e-3), "page_time_mean_ms"),
            Figure("min", "ms", 0, _of("time_s", "min", 1e-3), "page_time_min_ms"),
            Figure("p50", "ms", 0, _of("time_s", "p50", 1e-3), "page_time_p50_ms", "time p50"),
            Figure("p95", "ms", 0, _of("time_s", "p95", 1e-3), "page_time_p95_ms", "time p95"),
            Figure("p99", "ms", 0, _of("time_s", "p99", 1e-3), "page_time_p99_ms"),
            Figure("max", "ms", 0, _of("time_s", "max", 1e-3), "page_time_max_ms"),
        ),
    ),
    Kind(
        "streams",
        "stream",
        "Streams of datagrams",
        (
            Figure("sent", "", 0, _of("sent"), "stream_sent"),
            Figure("lost", "%", 2, _of("loss_ratio", divisor=0.01), "stream_loss_percent", "loss"),
            Figure("delay mean", "ms", 2, _of("delay_s", "mean", 1e-3), "stream_delay_mean_ms"),
            Figure("p50", "ms", 2, _of("delay_s", "p50", 1e-3), "stream_delay_p50_ms"),
            Figure("p95", "ms", 2, _of("delay_s", "p95", 1e-3), "stream_delay_p95_ms", "delay p95"),
            Figure("p99", "ms", 2, _of("delay_s", "p99", 1e-3), "stream_delay_p99_ms"),
            Figure("max", "ms", 2, _of("delay_s", "max", 1e-3), "stream_delay_max_ms"),
            Figure("jitter", "ms", 2, _of("jitter_s", divisor=1e-3), "stream_jitter_ms", "jitter"),
            Figure(
                "frames in time",
                "%",
                2,
                _of("frames_in_time", divisor=0.01),
                "stream_frames_in_time_percent",
                "frames in time",
            ),
        ),
    ),
    Kind(
        "probes",
        "probe",
        "Probes",
        (
            Figure("sent", "", 0, _of("sent"), "probe_sent"),
            Figure("lost", "%", 2, _of("loss_ratio", divisor=0.01), "probe_loss_percent", "loss"),
            Figure("RTT p50", "ms", 1, _of("rtt_ms", "p50"), "probe_rtt_p50_ms", "RTT p50"),
            Figure("p95", "ms", 1, _of("rtt_ms", "p95"), "probe_rtt_p95_ms", "RTT p95"),
            Figure("p99", "ms", 1, _of("rtt_ms", "p99"), "probe_rtt_p99_ms"),
            Figure("max", "ms", 1, _of("rtt_ms", "max"), "probe_rtt_max_ms"),
        ),
    ),
    Kind(
        "traffic",
        "group",
        "Flows that come and go",
        (
            Figure("flows", "", 0, _of("flows"), "traffic_flows"),
            Figure("done", "", 0, _of("finished"), "traffic_flows_finished"),
            Figure(
                "time p50",
                "ms",
                0,
                _of("completion_s", "p50", 1e-3),
                "traffic_completion_p50_ms",
                "completion time p50",
            ),
            Figure(
                "p95",
                "ms",
                0,
                _of("completion_s", "p95", 1e-3),
                "traffic_completion_p95_ms",
                "completion time p95",
            ),
            Figure(
                "slowdown mean", "", 2, _of("slowdown", "mean"), "traffic_slowdown_mean", "slowdown"
            ),
            Figure("p50", "", 2, _of("slowdown", "p50"), "traffic_slowdown_p50"),
            Figure("p95", "", 2, _of("slowdown", "p95"), "traffic_slowdown_p95", "slowdown p95"),
            Figure("p99", "", 2, _of("slowdown", "p99"), "traffic_slowdown_p99"),
            Figure("SRPT", "", 2, _of("yardsticks", "srpt"), "traffic_srpt_slowdown"),
            Figure("PS", "", 2, _of("yardsticks", "ps"), "traffic_ps_slowdown"),
            Figure(
                "goodput",
                "Mbit/s",
                2,
                _of("goodput_bps", divisor=1e6),
                "traffic_goodput_mbps",
                "goodput",
            ),
            Figure(
                "retrans",
                "%",
                2,
                _of("retransmit_ratio", divisor=0.01),
                "traffic_retransmit_percent",
                "retransmissions",
            ),
            Figure("at once", "", 1, _of("at_once", "mean"), "traffic_flows_at_once"),
        ),
        "Slowdown: completion over size / rate + RTT. SRPT, PS: its mean if an ideal link served "
        "the same arrivals. At once: mean.",
        "traffic",
    ),
)
