"""The network of a plan: its row of links, what lies between the row and the hosts, and where
routes enter and leave the row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.scenario import link_traces
from fullpipe.scenario.impairments import resolve_impairments
from fullpipe.scenario.link import LinkDirection
from fullpipe.scenario.link_layer import LinkLayer
from fullpipe.scenario.model import Scenario
from fullpipe.scenario.path import Path
from fullpipe.scenario.qdiscs.options import Options
from fullpipe.scenario.queue import resolve_queue
from fullpipe.scenario.route import Routed
from fullpipe.scenario.wifi import WifiOptions, resolve_wifi, station_names

DELAYS = ("forward_delay_ns", "reverse_delay_ns")


def network(scenario: Scenario) -> dict[str, Any]:
    """`links`, `ends` and `path` of a plan."""
    path, down = scenario.path, _links_down(scenario)
    # Where data flow down, the reverse rate defaults to the forward rate.
    reverse_bps = path.reverse_rate or (path.rate if down else None)
    queue = _queue(path, path.qdisc, path.qdisc_options, path.buffer, path.rate, path.link_layer)
    reverse_queue = _queue(
        path,
        path.reverse_qdisc,
        path.reverse_options,
        path.reverse_buffer,
        reverse_bps or path.rate,
        path.link_layer,
    )
    jitter = resolve_jitter(path.jitter, path.jitter_shape)
    losses = {
        "loss": _loss(path.loss, path.loss_correlation, path.loss_marks, path.loss_per),
        "reverse_loss": _loss(path.reverse_loss, 0.0, False, "packet"),
    }
    layer = path.link_layer
    links = _row(scenario, down) or [
        _wire(
            "path",
            {
                "rate_bps": path.rate,
                "delay_ns": 0,
                "qdisc": queue,
                "loss": None,
                **_overhead(layer, path.rate, queue),
            },
            {
                "rate_bps": reverse_bps,
                "delay_ns": 0,
                "qdisc": reverse_queue,
                "loss": None,
                **_overhead(layer, reverse_bps, reverse_queue),
            },
        )
    ]
    if scenario.wifi:
        links.insert(0, _channel(scenario, "wifi", scenario.wifi))
    return {
        "links": links,
        "access": {"mtu_bytes": path.mtu, **delays_at_ends(scenario), "jitter": jitter, **losses},
        "path": {
            "rate_bps": path.rate,
            "reverse_rate_bps": reverse_bps,
            **_delays_of_path(path),
            "mtu_bytes": path.mtu,
            "qdisc": queue,
            "reverse_qdisc": reverse_queue,
            **losses,
            "jitter": jitter,
        },
    }


def route(scenario: Scenario, routed: Routed) -> dict[str, int]:
    """Positions of the first and the last link of a plan that it passes."""
    enter, leave = scenario.route(routed)
    positions = _positions(scenario)
    return {"enter": positions[enter][0], "leave": positions[leave][1]}


def delays_at_ends(scenario: Scenario) -> dict[str, int]:
    """The delays between the row and the hosts: those of the path, as links have their own."""
    return dict.fromkeys(DELAYS, 0) if scenario.link else _delays_of_path(scenario.path)


def resolve_jitter(max_ns: int, shape: str) -> dict[str, Any] | None:
    """A jitter of a plan; None for no jitter."""
    return {"shape": shape, "max_ns": max_ns} if max_ns else None


def _positions(scenario: Scenario) -> list[tuple[int, int]]:
    """Of each link of the scenario, the first and the last position of what it becomes in the plan.

    A Wi-Fi link with rates becomes its channel between wires. The channel of `[wifi]` lies before
    the first link; only what enters there passes it."""
    if scenario.wifi:
        others = range(1, max(1, len(scenario.link)))
        return [(0, 1), *((link + 1, link + 1) for link in others)]
    positions, last = [], -1
    for link in scenario.link:
        first = last + 1
        rates = (link.rate, link.reverse.rate) if link.channel else ()
        last = first + sum(rate is not None for rate in rates)
        positions.append((first, last))
    return positions or [(0, 0)]


def _row(scenario: Scenario, down: set[int]) -> list[dict[str, Any]]:
    """The links of a row, at their `_places`; data flow down over those of `down`."""
    row: list[dict[str, Any]] = []
    for index, link in enumerate(scenario.link):
        reverse_bps = link.reverse.mean_rate or (link.mean_rate if index in down else None)
        forward_ns, reverse_ns = link.delays_ns
        layer = link.link_layer
        forward = _direction(scenario.path, link, link.mean_rate, forward_ns, layer)
        reverse = _direction(
            scenario.path, link.reverse, reverse_bps, reverse_ns, link.reverse.link_layer or layer
        )
        if link.channel is None:
            row.append(_wire(link.name, forward, reverse))
            continue
        if link.rate is not None:
            row.append(_wire(f"{link.name}.up", forward, {**reverse, "rate_bps": None}))
        row.append(_channel(scenario, link.name, link.channel))
        if link.reverse.rate is not None:
            row.append(_wire(f"{link.name}.down", {**forward, "rate_bps": None}, reverse))
    return row


def _wire(name: str, forward: dict[str, Any], reverse: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "medium": {"kind": "wire", "forward": forward, "reverse": reverse}}


def _channel(scenario: Scenario, name: str, wifi: WifiOptions) -> dict[str, Any]:
    """A channel, with the station of each sender: the one that it names, or the first. Groups of
    traffic have a list of their own; lists leave out first stations at their end."""
    names = station_names(wifi)

    def station_numbers(wanted: Sequence[str | None]) -> list[int]:
        return [names.index(name) if name in names else 0 for name in wanted]

    stations = station_numbers([flow.station for flow in scenario.flow for _ in range(flow.count)])
    stations += station_numbers([probe.station for probe in scenario.probe])
    applications = station_numbers([entry.station for entry in (*scenario.page, *scenario.udp)])
    traffic = station_numbers([entry.station for entry in scenario.traffic])
    medium = {
        "kind": "wifi",
        "channel": resolve_wifi(wifi),
        "stations": [*stations, *(applications if any(applications) else ())],
        **({"traffic": traffic} if any(traffic) else {}),
    }
    return {"name": name, "medium": medium}


def _links_down(scenario: Scenario) -> set[int]:
    """Positions of the links over which data flow down; that of the path is 0."""
    down: list[Routed] = [*scenario.page]
    down += [flow for flow in scenario.flow if flow.direction == "down"]
    down += [udp for udp in scenario.udp if udp.direction == "down"]
    down += [traffic for traffic in scenario.traffic if traffic.direction == "down"]
    firsts: set[int] = set()
    for entry in down:
        first, last = scenario.route(entry)
        firsts |= {*range(first, last + 1)}
    return firsts


def _direction(
    path: Path,
    direction: LinkDirection,
    rate_bps: int | None,
    delay_ns: int,
    layer: LinkLayer | None,
) -> dict[str, Any]:
    queue = _queue(
        path,
        direction.qdisc,
        direction.qdisc_options,
        direction.buffer,
        rate_bps or path.rate,
        layer,
    )
    resolved: dict[str, Any] = {
        "rate_bps": rate_bps,
        "delay_ns": delay_ns,
        "qdisc": queue,
        "loss": _loss(direction.loss, direction.loss_correlation, direction.loss_marks, "packet"),
        "rate_steps": _rate_steps(direction),
        "delay_steps": [list(step) for step in direction.delay_steps],
        **_overhead(layer if not direction.rate_trace else None, rate_bps, queue),
    }
    if impairments := resolve_impairments(direction):
        resolved["impairments"] = impairments
    if direction.rate_trace:
        resolved["rate_trace"] = link_traces.rate_trace(direction.rate_trace).planned()
    if direction.delay_trace:
        resolved["delay_trace"] = link_traces.delay_trace(direction.delay_trace).planned()
    return resolved


def _rate_steps(direction: LinkDirection) -> list[list[int]]:
    """The steps of the rate, in which an outage is a rate of 0."""
    steps = [(0, direction.rate or 0), *direction.rate_steps]
    ends = [(start, start + length) for start, length in direction.outage]
    changes = {at for at, _ in direction.rate_steps} | {at for both in ends for at in both}
    limited = []
    for at in sorted(changes):
        _, rate = steps[bisect_right(steps, at, key=itemgetter(0)) - 1]
        outage = bisect_right(ends, at, key=itemgetter(0)) - 1
        limited.append([at, 0 if outage >= 0 and at < ends[outage][1] else rate])
    return limited


def _delays_of_path(path: Path) -> dict[str, int]:
    return dict(zip(DELAYS, (path.forward_delay, path.rtt - path.forward_delay), strict=True))


def _overhead(
    layer: LinkLayer | None, rate_bps: int | None, queue: dict[str, Any]
) -> dict[str, Any]:
    """What a direction's shaper counts of its link layer, unless the discipline does."""
    aqm = queue["aqm"]
    if layer is None or rate_bps is None or (aqm["kind"] == "cake" and aqm["shapes"]):
        return {}
    if aqm["kind"] == "tbf":
        raise UserError("overhead: tbf shapes by itself, and counts frames; use another qdisc")
    return {"overhead": layer.planned()}


def _queue(
    path: Path,
    name: str,
    options: Options,
    buffer: units.Buffer | None,
    rate_bps: int,
    layer: LinkLayer | None,
) -> dict[str, Any]:
    return resolve_queue(name, options, buffer, rate_bps, path.rtt, path.mtu, bool(path.ecn), layer)


def _loss(probability: float, correlation: float, marks: bool, per: str) -> dict[str, Any] | None:
    if probability == 0:
        return None
    return {
        "probability_ppm": round(probability * 1e6),
        "correlation_ppm": round(correlation * 1e6),
        "ecn": marks,
        "per_burst": per == "burst",
    }
