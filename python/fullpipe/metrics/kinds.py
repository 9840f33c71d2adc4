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
    """A figure of a row: its short name in tables, unit, digits, and how it is read. `compared`:
    what it is called beside other runs; empty where it is not compared."""

    name: str
    unit: str
    digits: int
    read: Callable[[Row], float | None]
    compared: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of traffic: its key in summaries (`metrics.summarise`), the key of a row's name, and
    its title."""

    key: str
    named: str
    title: str
    figures: tuple[Figure, ...]


def _of(key: str, part: str | None = None, divisor: float = 1.0) -> Callable[[Row], float | None]:
    def read(row: Row) -> float | None:
        value = row[key] if part is None else row[key][part]
        return None if value is None else float(value) / divisor

    return read


KINDS: tuple[Kind, ...] = (
    Kind("pages", "page", "Pages", (
        Figure("size", "MiB", 2, _of("bytes", divisor=MIB)),
        Figure("objects", "", 0, lambda row: float(len(row["objects"]))),
        Figure("loads", "", 0, _of("loads")),
        Figure("finished", "", 0, _of("finished")),
        Figure("time mean", "ms", 0, _of("time_s", "mean", 1e-3)),
        Figure("min", "ms", 0, _of("time_s", "min", 1e-3)),
        Figure("p50", "ms", 0, _of("time_s", "p50", 1e-3), "time p50"),
        Figure("p95", "ms", 0, _of("time_s", "p95", 1e-3), "time p95"),
        Figure("p99", "ms", 0, _of("time_s", "p99", 1e-3)),
        Figure("max", "ms", 0, _of("time_s", "max", 1e-3)),
    )),
    Kind("streams", "stream", "Streams of datagrams", (
        Figure("sent", "", 0, _of("sent")),
        Figure("lost", "%", 2, _of("loss_ratio", divisor=0.01), "loss"),
        Figure("delay mean", "ms", 2, _of("delay_s", "mean", 1e-3)),
        Figure("p50", "ms", 2, _of("delay_s", "p50", 1e-3)),
        Figure("p95", "ms", 2, _of("delay_s", "p95", 1e-3), "delay p95"),
        Figure("p99", "ms", 2, _of("delay_s", "p99", 1e-3)),
        Figure("max", "ms", 2, _of("delay_s", "max", 1e-3)),
        Figure("jitter", "ms", 2, _of("jitter_s", divisor=1e-3), "jitter"),
        Figure("frames in time", "%", 2, _of("frames_in_time", divisor=0.01), "frames in time"),
    )),
    Kind("probes", "probe", "Probes", (
        Figure("sent", "", 0, _of("sent")),
        Figure("lost", "%", 2, _of("loss_ratio", divisor=0.01), "loss"),
        Figure("RTT p50", "ms", 1, _of("rtt_ms", "p50"), "RTT p50"),
        Figure("p95", "ms", 1, _of("rtt_ms", "p95"), "RTT p95"),
        Figure("p99", "ms", 1, _of("rtt_ms", "p99")),
        Figure("max", "ms", 1, _of("rtt_ms", "max")),
    )),
)  # fmt: skip
