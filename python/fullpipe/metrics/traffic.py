"""Flows that come and go: slowdown by size, how many there are at once, and what an ideal link
would do with the same arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fullpipe import _native
from fullpipe.base.packets import FRAME_HEADERS_BYTES, mss_bytes
from fullpipe.metrics.carrying import Carrying
from fullpipe.metrics.flows import finite, spread
from fullpipe.metrics.view import Floats, View
from fullpipe.plan.bottleneck import Direction, bottleneck_of

#: Upper bounds of size classes in bytes, and what they are called.
SIZE_CLASSES = (
    (10_000.0, "to 10,000 B"),
    (100_000.0, "to 100,000 B"),
    (1e6, "to 1,000,000 B"),
    (1e7, "to 10,000,000 B"),
    (np.inf, "above"),
)
_SPREAD = ("mean", "p50", "p95", "p99")


@dataclass(frozen=True)
class TrafficFlows:
    """The flows of one group of traffic that began after the warm-up, in the order of arrival.
    Times in s, sizes in bytes of payload; NaN where a flow did not end."""

    name: str
    cc: str
    #: The bottleneck that they pass, and the payload of a full packet.
    carrying: Carrying
    mss_bytes: float
    start_s: Floats
    end_s: Floats
    size_bytes: Floats
    base_rtt_s: Floats
    pause_s: Floats
    chunks: Floats
    packets_sent: Floats
    packets_retransmitted: Floats
    timeouts: Floats

    @cached_property
    def completion_s(self) -> Floats:
        """From being told to connect to the last acknowledged byte, without the application's own
        pauses."""
        return self.end_s - self.start_s - self.pause_s

    @property
    def wire_bytes(self) -> Floats:
        """Its size in bytes on the wire."""
        return self.size_bytes * (self.mss_bytes + FRAME_HEADERS_BYTES) / self.mss_bytes

    @cached_property
    def work_s(self) -> Floats:
        """Time that the bottleneck takes for it alone, from its start on."""
        return self.carrying.drain_s(self.start_s, self.wire_bytes)

    @cached_property
    def slowdown(self) -> Floats:
        """Completion over the time that the link takes for the flow alone, plus an RTT for each
        chunk: handshake and slow start are no part of the ideal."""
        return self.completion_s / (self.work_s + self.chunks * self.base_rtt_s)

    @cached_property
    def slowdown_connected(self) -> Floats:
        """The same with 1.5 RTT, where the handshake is a part of the ideal
        (Zapletal and Kuipers, HotNets 2023, whom bless2025 follows)."""
        return self.completion_s / (self.work_s + (self.chunks + 0.5) * self.base_rtt_s)

    def slowdown_under(self, discipline: str) -> Floats:
        """The slowdown of each flow if the bottleneck, a fluid, served these arrivals by `srpt`
        (shortest remaining processing time first) or `ps` (all evenly), with an RTT on top.
        Pauses are left out: a flow has all its bytes when it comes."""
        # In bits that the link can have carried, its rate is constant.
        arrivals = np.cumsum(self.carrying.bits(np.append(0.0, self.start_s)))
        if np.isnan(arrivals).any():
            return np.full(arrivals.size, np.nan)
        works = 8 * self.wire_bytes
        stays = np.frombuffer(
            _native.traffic.fluid(discipline, arrivals.tobytes(), works.tobytes())
        )
        ends_s = self.carrying.drain_s(np.zeros(arrivals.size), (arrivals + stays) / 8)
        return (ends_s - self.start_s + self.base_rtt_s) / (self.work_s + self.base_rtt_s)


def traffic_flows(view: View) -> list[TrafficFlows]:
    """The groups of traffic of a recording, in the order of the scenario."""
    if not view.recording.has("traffic"):
        return []
    columns = view._all("traffic")
    plan = view.plan
    groups = []
    for index, group in enumerate(plan.get("traffic", [])):
        rows = np.flatnonzero(
            (columns["group_id"] == index) & (columns["start_us"] >= view.start_s * 1e6)
        )
        rows = rows[np.argsort(columns["number"][rows], kind="stable")]
        cut = {name: values[rows] for name, values in columns.items()}
        direction: Direction = "reverse" if group["direction"] == "down" else "forward"
        carrying = Carrying(bottleneck_of(plan, direction).capacity)
        mss = mss_bytes(plan["path"]["mtu_bytes"])
        groups.append(
            TrafficFlows(
                group["name"],
                cc=group["cc"]["name"],
                carrying=carrying,
                mss_bytes=mss,
                start_s=cut["start_us"] / 1e6,
                end_s=cut["completion_us"] / 1e6,
                size_bytes=cut["size_bytes"],
                base_rtt_s=cut["base_rtt_us"] / 1e6,
                pause_s=cut["pause_us"] / 1e6,
                chunks=cut["chunks"],
                packets_sent=cut["packets_sent"],
                packets_retransmitted=cut["packets_retransmitted"],
                timeouts=cut["timeouts"],
            )
        )
    return groups


def at_once(flows: TrafficFlows, until_s: float) -> tuple[Floats, Floats]:
    """(times in s, flows that are connecting or under way from each time on). Flows that did not
    end last until `until_s`."""
    return at_once_together([flows], until_s)


def at_once_together(groups: Sequence[TrafficFlows], until_s: float) -> tuple[Floats, Floats]:
    """The same of several groups."""
    starts = np.concatenate([flows.start_s for flows in groups])
    ends = np.concatenate([flows.end_s for flows in groups])
    ends = np.where(np.isnan(ends), until_s, ends)
    times = np.concatenate((starts, ends))
    steps = np.concatenate((np.ones(ends.size), -np.ones(ends.size)))
    # Who ends at a time has gone when another comes at it.
    order = np.lexsort((steps, times))
    return times[order], np.cumsum(steps[order])


def mean_at_once(flows: TrafficFlows, start_s: float, until_s: float) -> float:
    """Mean number of flows over a window (Little: their stays in it over its length)."""
    ends = np.where(np.isnan(flows.end_s), until_s, np.minimum(flows.end_s, until_s))
    stays = np.clip(ends - np.maximum(flows.start_s, start_s), 0, None)
    return float(stays.sum() / (until_s - start_s)) if until_s > start_s else float("nan")


def summarise_traffic(view: View) -> list[dict[str, Any]]:
    """Of each group: flows, those that finished, `goodput_bps`, `retransmit_ratio`, `slowdown` and
    `slowdown_connected` (mean, p50, p95, p99), slowdown by size `classes`, `completion_s`, flows at
    once (mean, max), and the mean slowdown under `srpt` and `ps`. None where there is nothing."""
    summaries = []
    until_s = view.plan.get("duration_ns", 0) / 1e9
    for flows in traffic_flows(view):
        done = ~np.isnan(flows.end_s)
        _, count = at_once(flows, until_s)
        sent = float(flows.packets_sent.sum())
        sent_again = float(flows.packets_retransmitted.sum())
        summary = {
            "group": flows.name,
            "cc": flows.cc,
            "flows": int(done.size),
            "finished": int(done.sum()),
            "bytes": float(flows.size_bytes.sum()),
            "goodput_bps": finite(
                8 * float(flows.size_bytes[done].sum()) / max(until_s - view.start_s, 1e-9)
            ),
            "retransmit_ratio": sent_again / sent if sent else None,
            "timeouts": int(flows.timeouts.sum()),
            "completion_s": spread(flows.completion_s, _SPREAD),
            "slowdown": spread(flows.slowdown, _SPREAD),
            "slowdown_connected": spread(flows.slowdown_connected, _SPREAD),
            "classes": _classes(flows),
            "at_once": {
                "mean": finite(mean_at_once(flows, view.start_s, until_s)),
                "max": int(count.max()) if count.size else 0,
            },
            "yardsticks": {
                name: _mean(flows.slowdown_under(name)[done]) for name in ("srpt", "ps")
            },
        }
        summaries.append(summary)
    return summaries


def _classes(flows: TrafficFlows) -> list[dict[str, Any]]:
    classes, low = [], 0.0
    for high, name in SIZE_CLASSES:
        in_class = (flows.size_bytes > low) & (flows.size_bytes <= high)
        if in_class.any():
            slowdown = spread(flows.slowdown[in_class], _SPREAD)
            classes.append({"sizes": name, "flows": int(in_class.sum()), "slowdown": slowdown})
        low = high
    return classes


def _mean(values: Floats) -> float | None:
    return finite(float(values.mean())) if values.size else None
