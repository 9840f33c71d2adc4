"""What the path of a flow was like at a time, by its plan: what its slowest link could carry, and
its base RTT. Knows plans, and nothing of what flows did."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe import _native
from fullpipe.plan.bottleneck import (
    DIRECTIONS,
    Capacity,
    Direction,
    link_capacity,
    link_rates_bps,
    policed_bps,
)
from fullpipe.plan.plan import Flow, Plan


class Conditions:
    """The path of one flow."""

    def __init__(self, plan: Plan, flow: Flow) -> None:
        direction: Direction = "forward" if flow["direction"] == "up" else "reverse"
        route, access = flow["route"], plan["access"]
        links = plan["links"][route["enter"] : route["leave"] + 1]
        constant_bps, self._changing = _limits(links, direction)
        if not self._changing and math.isinf(constant_bps):
            constant_bps = plan["path"]["rate_bps"]
        self._packet_bits = 8.0 * access["mtu_bytes"]
        self._constant_bps = constant_bps
        #: What `rate_bps` said last.
        self.latest_bps = min([constant_bps, *(link.first_bps for link in self._changing)])
        delays_ns = (
            access[key] if flow[key] is None else flow[key]
            for key in ("forward_delay_ns", "reverse_delay_ns")
        )
        self._constant_s = sum(delay_ns or 0 for delay_ns in delays_ns) / 1e9
        self._delays = []
        for way in (link["medium"].get(direction) for link in links for direction in DIRECTIONS):
            steps = _delay_steps(way, plan["duration_ns"]) if way else []
            if len(steps) > 1:
                self._delays.append(_Steps(steps))
            else:
                self._constant_s += steps[0][1] if steps else 0.0

    def base_rtt_s(self, at_s: float) -> float:
        """The RTT of the empty path for a packet that leaves at this time."""
        changing_s = sum(steps.at(at_s) for steps in self._delays)
        return max(self._constant_s + changing_s, 1e-6)

    def rate_bps(self, begin_s: float, end_s: float) -> float:
        """The mean rate of the slowest link between two times, while it had one. Within an outage
        it is the rate before."""
        if self._changing:
            least = min(self._changing, key=lambda link: link.bits(begin_s, end_s))
            up_s = least.up_s(begin_s, end_s)
            changing_bps = least.bits(begin_s, end_s) / up_s if up_s > 0.0 else 0.0
            self.latest_bps = min(self._constant_bps, changing_bps) or self.latest_bps
        return self.latest_bps

    def packet_s(self, begin_s: float, end_s: float) -> float:
        """How long a full packet takes at that rate."""
        return self._packet_bits / self.rate_bps(begin_s, end_s)


class _Steps:
    """Values that hold from times on; the first before its time too."""

    def __init__(self, steps: list[tuple[float, float]]) -> None:
        self._times = [at_s for at_s, _ in steps]
        self._values = [value for _, value in steps]

    def at(self, at_s: float) -> float:
        return self._values[max(bisect_right(self._times, at_s) - 1, 0)]


class _ChangingRate:
    """What a link carries whose rate changes."""

    def __init__(self, capacity: Capacity, first_bps: float) -> None:
        self.first_bps = first_bps
        self._native = _native.metrics.Capacity(capacity)
        pieces = [(at_s, float(rate > 0)) for at_s, rate in capacity.rates]
        self._is_up = _native.metrics.Capacity(Capacity(tuple(pieces))) if pieces else None

    def bits(self, begin_s: float, end_s: float) -> float:
        """Bits that it can carry between two times."""
        return _between(self._native, begin_s, end_s)

    def up_s(self, begin_s: float, end_s: float) -> float:
        """For how long it had a rate between two times."""
        if self._is_up is None:
            return end_s - begin_s
        return _between(self._is_up, begin_s, end_s)


def _between(capacity: _native.Capacity, begin_s: float, end_s: float) -> float:
    edges = array("d", (begin_s, end_s)).tobytes()
    return float(array("d", capacity.bits(edges))[0])


def _limits(
    links: Sequence[Mapping[str, Any]], direction: Direction
) -> tuple[float, list[_ChangingRate]]:
    """The least of the rates that stay (infinite without one), and the rates that change."""
    constant_bps, changing = math.inf, list[_ChangingRate]()
    for link in links:
        first_bps = link_rates_bps(link)[DIRECTIONS.index(direction)]
        capacity = link_capacity(link, direction)
        constant_bps = min(constant_bps, policed_bps(link, direction) or math.inf)
        if first_bps and (capacity == Capacity() or capacity.is_constant):
            constant_bps = min(constant_bps, first_bps)
        elif first_bps:
            changing.append(_ChangingRate(capacity, first_bps))
    return constant_bps, changing


def _delay_steps(way: Mapping[str, Any], until_ns: int) -> list[tuple[float, float]]:
    """Times and delays of a direction of a wire, in s."""
    steps = [(0, way["delay_ns"]), *way.get("delay_steps", ())]
    if trace := way.get("delay_trace"):
        steps = _native.traces.delays(trace["path"], until_ns)
    return [(at_ns / 1e9, delay_ns / 1e9) for at_ns, delay_ns in steps]
