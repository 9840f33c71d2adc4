"""A scenario resolved for engines: integers in base units, defaults filled in.

The result is the JSON of crates/fullpipe-plan/src/plan.rs. Here, and only here, a BDP becomes
bytes and a flow's name is made.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from fullpipe._native import DEFAULT_KERNEL
from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import Choice, choose
from fullpipe.scenario import link_traces
from fullpipe.scenario.applications import resolve_page, resolve_pattern, resolve_udp
from fullpipe.scenario.flow import Flow
from fullpipe.scenario.host import Host
from fullpipe.scenario.impairments import resolve_impairments
from fullpipe.scenario.link import Link, LinkDirection
from fullpipe.scenario.model import Scenario
from fullpipe.scenario.path import EcnChoice, Path
from fullpipe.scenario.qdiscs.options import Options
from fullpipe.scenario.queue import resolve_queue, wire_bytes
from fullpipe.scenario.traffic.options import resolve_source
from fullpipe.scenario.wifi import WifiOptions, resolve_wifi, station_names

_DELAYS = ("forward_delay_ns", "reverse_delay_ns")
_PACING_SHIFTS = {"1ms": 10, "2ms": 9, "4ms": 8, "8ms": 7}


def resolve(scenario: Scenario, seed: int | None = None) -> dict[str, Any]:
    """The plan of one run; `seed` replaces the scenario's.

    Raises UserError where two keys contradict each other."""
    seed = scenario.seed if seed is None else seed
    everyone = users(scenario)
    flows = _named_flows(scenario, everyone["flows"], seed)
    plan = {
        "name": scenario.name, "seed": seed, **times(scenario), **network(scenario),
        "flows": flows, "probes": everyone.pop("probes"), **host(scenario),
        # Whoever else there is stands behind the hosts.
        **{**everyone, "flows": flows},
    }  # fmt: skip
    return longer(plan, rtt_offset_ns(scenario.rtt_spread_ns, seed))


def _named_flows(
    scenario: Scenario, rest: Sequence[Mapping[str, Any]], seed: int
) -> list[dict[str, Any]]:
    """The flows (`users`) with names, congestion controls and the start times that the seed draws.

    Raises UserError where two flows have one name."""
    unnamed, tables = iter(rest), scenario.cc_tables
    flows: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    for entry in scenario.flow:
        cc = choose(entry.cc, tables)
        for position in range(entry.count):
            numbers[cc.name] = numbers.get(cc.name, 0) + 1
            name = f"{cc.name}.{numbers[cc.name]}"
            if entry.name:
                name = entry.name if entry.count == 1 else f"{entry.name}.{position + 1}"
            flow = {"name": name, "cc": _cc(cc), **next(unnamed)}
            flow["start_ns"] += _start_offset_ns(scenario.start_spread or 0, seed, len(flows))
            flows.append(flow)
    names = [flow["name"] for flow in flows]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"flow: two flows are called {twice!r}; names must differ")
    return flows


def times(scenario: Scenario) -> dict[str, Any]:
    """How long the run of a plan lasts, and how often it is looked at."""
    return {
        "duration_ns": scenario.duration,
        "sample_interval_ns": scenario.sample_interval,
    }


def network(scenario: Scenario) -> dict[str, Any]:
    """The row of links of a plan, what lies between it and the hosts, and its bottleneck in short.

    Raises UserError where two keys contradict each other."""
    path = scenario.path
    # Pages come down, and ask up.
    senders: list[tuple[str, Any]] = [("down", page) for page in scenario.page]
    for some in (scenario.flow, scenario.udp, scenario.traffic):
        senders += [(one.direction, one) for one in some]
    has_down = any(direction == "down" for direction, _ in senders)
    reverse_rate = path.reverse_rate or (path.rate if has_down else None)
    jitter = _jitter(path.jitter, path.jitter_shape)
    loss = _loss(path.loss, path.loss_correlation, path.loss_marks, path.loss_per)
    reverse_loss = _loss(path.reverse_loss, 0.0, False, "packet")
    forward = {
        "rate_bps": path.rate,
        "delay_ns": 0,
        "qdisc": _queue(path, path.qdisc, path.qdisc_options, path.buffer, path.rate),
        "loss": None,
    }
    reverse = {
        "rate_bps": reverse_rate,
        "delay_ns": 0,
        "qdisc": _queue(
            path,
            path.reverse_qdisc,
            path.reverse_options,
            path.reverse_buffer,
            reverse_rate or path.rate,
        ),
        "loss": None,
    }
    delays = _delays_of_path(path)
    links = [_link(scenario, link, senders) for link in scenario.link] or [
        {"name": "path", "medium": {"kind": "wire", "forward": forward, "reverse": reverse}}
    ]
    if scenario.wifi:
        links.insert(0, {"name": "wifi", "medium": _channel(scenario, scenario.wifi)})
    if any(link.channel for link in scenario.link):
        links = _with_channels(scenario, links)
    return {
        "links": links,
        "ends": {
            "mtu_bytes": path.mtu, **_delays_at_ends(scenario), "jitter": jitter, "loss": loss,
            "reverse_loss": reverse_loss,
        },
        "path": {
            "rate_bps": path.rate, "reverse_rate_bps": reverse_rate, **delays,
            "mtu_bytes": path.mtu, "qdisc": forward["qdisc"], "reverse_qdisc": reverse["qdisc"],
            "loss": loss, "reverse_loss": reverse_loss, "jitter": jitter,
        },
    }  # fmt: skip


def users(scenario: Scenario) -> dict[str, Any]:
    """Who sends over the network of a plan, and the probes: `flows`, `probes`, and those of
    `pages`, `datagrams` and `traffic` that there are. Flows are without their congestion controls.

    Raises UserError where two keys contradict each other."""
    flows = [
        _flow(scenario, flow, index, position)
        for index, flow in enumerate(scenario.flow)
        for position in range(flow.count)
    ]
    found = {
        "flows": flows, "probes": _probes(scenario), "pages": _pages(scenario),
        "datagrams": _datagrams(scenario), "traffic": _traffic(scenario),
    }  # fmt: skip
    _move_routes(found, scenario)
    _put_on_hosts(found, scenario)
    return {name: some for name, some in found.items() if some or name in ("flows", "probes")}


def host(scenario: Scenario) -> dict[str, Any]:
    """How the end hosts of a plan are set up."""
    host = scenario.host
    return {
        "host": {
            "pacing": host.pacing,
            "pacing_shift": _PACING_SHIFTS[host.tsq],
            "gso_max_segments": host.gso_max_segments,
            "receive_aggregation_ns": host.receive_aggregation,
            "ack_policy": host.ack_policy,
            "receive_low_water_bytes": host.receive_low_water,
            "rmem_max_bytes": host.rmem_max,
            "wmem_max_bytes": host.wmem_max,
            "initial_cwnd_packets": host.initial_cwnd,
            "access_rate_bps": host.access_rate or 0,
            "arp": host.arp,
            **({"tcp": host.tcp} if host.tcp != DEFAULT_KERNEL else {}),
            **({"cc_facts": host.cc_facts} if host.cc_facts != "google" else {}),
            **({"work": work} if (work := _work(host)) else {}),
            **({"reader_pauses": pauses} if (pauses := _reader_pauses(host)) else {}),
        },
    }  # fmt: skip


def _reader_pauses(host: Host) -> dict[str, int]:
    """When those who read are kept from it; nothing where they never are."""
    if not host.reader_pause:
        return {}
    spread = {"spread_ns": host.reader_pause_spread} if host.reader_pause_spread else {}
    return {"every_ns": host.reader_pause_every, "for_ns": host.reader_pause, **spread}


def _work(host: Host) -> dict[str, int]:
    """What packets cost the hosts, those that are rare only where they cost something; empty where
    none does."""
    rarer = {"send_ns": host.send_cost, "handshake_ns": host.handshake_cost}
    costs = {"packet_ns": host.packet_cost, "ack_ns": host.ack_cost}
    costs |= {name: cost_ns for name, cost_ns in rarer.items() if cost_ns}
    return costs if any(costs.values()) else {}


def _delays_of_path(path: Path) -> dict[str, int]:
    there = path.forward_delay
    return {"forward_delay_ns": there, "reverse_delay_ns": path.rtt - there}


def _delays_at_ends(scenario: Scenario) -> dict[str, int]:
    """What of the path's delays lies between its links and the hosts: those of a row have theirs
    within."""
    return dict.fromkeys(_DELAYS, 0) if scenario.link else _delays_of_path(scenario.path)


def _channel(scenario: Scenario, wifi: WifiOptions) -> dict[str, Any]:
    """A channel, and at which of its stations everyone is: the one of that name, or the first.
    Groups of traffic have a list of their own. Who stands at the end of a list, at the first
    station, is left out."""
    names = station_names(wifi)

    def places(wanted: Sequence[str | None]) -> list[int]:
        return [names.index(name) if name in names else 0 for name in wanted]

    stations = places([flow.station for flow in scenario.flow for _ in range(flow.count)])
    stations += places([probe.station for probe in scenario.probe])
    others = places([one.station for one in (*scenario.page, *scenario.udp)])
    traffic = places([one.station for one in scenario.traffic])
    return {
        "kind": "wifi", "channel": resolve_wifi(wifi),
        "stations": [*stations, *(others if any(others) else ())],
        **({"traffic": traffic} if any(traffic) else {}),
    }  # fmt: skip


def _move_routes(users: Mapping[str, Sequence[dict[str, Any]]], scenario: Scenario) -> None:
    """Routes by the plan's links, where Wi-Fi puts others between the scenario's."""
    if scenario.wifi:
        # Who enters the row further on is not at the channel.
        moved = {place: (place + 1 if place else 0, place + 1) for place in range(64)}
    elif any(link.channel for link in scenario.link):
        moved = dict(enumerate(_places(scenario)))
    else:
        return
    for some in users.values():
        for user in some:
            for one in (user, *user.get("senders", [])):
                enter, leave = one["route"]["enter"], one["route"]["leave"]
                one["route"] = {"enter": moved[enter][0], "leave": moved[leave][1]}


def _places(scenario: Scenario) -> list[tuple[int, int]]:
    """Of each link, the first and the last place of what it becomes in the plan's row: a channel,
    and before it, in either direction, a wire with what the link has of a queue and a rate."""
    places, last = [], -1
    for link in scenario.link:
        first = last + 1
        rates = (link.rate, link.reverse.rate) if link.channel else ()
        last = first + sum(rate is not None for rate in rates)
        places.append((first, last))
    return places


def _with_channels(scenario: Scenario, wires: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row with Wi-Fi links where their wires stand, as `_places` says."""
    row: list[dict[str, Any]] = []
    for link, wire in zip(scenario.link, wires, strict=True):
        if link.channel is None:
            row.append(wire)
            continue
        forward, reverse = wire["medium"]["forward"], wire["medium"]["reverse"]
        if link.rate is not None:
            row.append(_wire(f"{link.name}.up", forward, _unlimited(reverse)))
        row.append({"name": link.name, "medium": _channel(scenario, link.channel)})
        if link.reverse.rate is not None:
            row.append(_wire(f"{link.name}.down", _unlimited(forward), reverse))
    return row


def _wire(name: str, forward: dict[str, Any], reverse: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "medium": {"kind": "wire", "forward": forward, "reverse": reverse}}


def _unlimited(wire: dict[str, Any]) -> dict[str, Any]:
    return {**wire, "rate_bps": None}


def rtt_offset_ns(spread_ns: int, seed: int | None) -> int:
    """By how much a seed's round trips are longer than its scenario's: uniform in [0, spread]."""
    return _drawn(spread_ns, f"rtt_spread {seed}")


def longer(plan: Mapping[str, Any], more_ns: int) -> dict[str, Any]:
    """The plan with all round trips so much longer, on their way back, as testbeds put delays
    there. Its queues stay: a buffer in BDP is one of the scenario's base RTT."""

    def of(one: Mapping[str, Any]) -> Mapping[str, Any]:
        own_ns = one["reverse_delay_ns"]  # None: the path's
        return one if own_ns is None else {**one, "reverse_delay_ns": own_ns + more_ns}

    if not more_ns:
        return dict(plan)
    changed: dict[str, Any] = {key: of(plan[key]) for key in ("ends", "path")}
    changed["flows"] = [of(flow) for flow in plan["flows"]]
    if "traffic" in plan:
        changed["traffic"] = [
            {**group, "senders": [of(sender) for sender in group["senders"]]}
            for group in plan["traffic"]
        ]
    return {**plan, **changed}


def without_seed(
    plan: Mapping[str, Any], start_spread_ns: int, rtt_spread: units.Spread
) -> dict[str, Any]:
    """The plan without its seed and what that drew: flows start when their scenario says, over its
    round trips. Plans of repetitions are then equal."""
    seed = plan.get("seed")
    if rtt_spread.value:
        path = plan["path"]
        spread_ns = rtt_spread.ns(path["rate_bps"], wire_bytes(path["mtu_bytes"]))
        plan = longer(plan, -rtt_offset_ns(spread_ns, seed))
    flows = [
        {**flow, "start_ns": flow["start_ns"] - _start_offset_ns(start_spread_ns, seed, index)}
        for index, flow in enumerate(plan.get("flows", []))
    ]
    return {**plan, "seed": None, "flows": flows}


def _start_offset_ns(spread_ns: int, seed: int | None, index: int) -> int:
    """How much later the flow of this index starts: uniform in [0, spread]."""
    return _drawn(spread_ns, f"start_spread {seed} {index}")


def _drawn(spread_ns: int, whose: str) -> int:
    """Uniform in [0, spread]; from a stream of its own, which no other random number of a run
    shares."""
    if spread_ns == 0:
        return 0
    digest = hashlib.sha256(whose.encode()).digest()
    return int.from_bytes(digest[:8], "little") % (spread_ns + 1)


def _flow(scenario: Scenario, flow: Flow, index: int, position: int) -> dict[str, Any]:
    path = scenario.path
    enter, leave = scenario.route(flow)
    forward, reverse = _own_delays_ns(scenario, flow.rtt, (enter, leave), f"flow.{index}.rtt")
    jitter = None
    if flow.jitter is not None or flow.jitter_shape is not None:
        jitter = _jitter(
            path.jitter if flow.jitter is None else flow.jitter,
            flow.jitter_shape or path.jitter_shape,
        ) or {"shape": path.jitter_shape, "max_ns": 0}
    pattern = {} if flow.pattern is None else {"pattern": resolve_pattern(flow.pattern)}
    return {
        **pattern,
        "start_ns": flow.start + flow.start_step * position,
        "stop_ns": flow.stop,
        "amount_bytes": flow.amount,
        "app_rate_bps": flow.app_rate,
        "direction": flow.direction,
        "route": {"enter": enter, "leave": leave},
        "dscp": flow.dscp,
        "host_numbers": (flow.host, flow.far_host),
        "forward_delay_ns": forward,
        "reverse_delay_ns": reverse,
        "jitter": jitter,
        "receive_window_bytes": flow.receive_window,
        **_ecn(path.ecn if flow.ecn is None else flow.ecn),
    }


def _pages(scenario: Scenario) -> list[dict[str, Any]]:
    tables, ecn = scenario.cc_tables, scenario.path.ecn
    return [
        {
            "name": page.name or f"page.{index + 1}", "cc": _cc(choose(page.cc, tables)),
            "route": dict(zip(("enter", "leave"), scenario.route(page), strict=True)),
            "ecn": bool(ecn if page.ecn is None else page.ecn),
            "host_numbers": (page.host, page.far_host), **resolve_page(page),
        }
        for index, page in enumerate(scenario.page)
    ]  # fmt: skip


def _datagrams(scenario: Scenario) -> list[dict[str, Any]]:
    return [
        {
            "name": udp.name or f"udp.{index + 1}",
            "route": dict(zip(("enter", "leave"), scenario.route(udp), strict=True)),
            "host_numbers": (udp.host, udp.far_host), **resolve_udp(udp),
        }
        for index, udp in enumerate(scenario.udp)
    ]  # fmt: skip


def _own_delays_ns(
    scenario: Scenario, rtt_ns: int | None, route: tuple[int, int], key: str
) -> tuple[int | None, int | None]:
    """Delays of the ends (forward, reverse) of who has a base RTT of its own; None: the path's."""
    if rtt_ns is None:
        return None, None
    if scenario.link:
        enter, leave = route
        links_ns = sum(sum(link.delays_ns) for link in scenario.link[enter : leave + 1])
        if rtt_ns < links_ns:
            raise UserError(
                f"{key}: is less than its links' delays, {units.format_time(links_ns)} both ways"
            )
        return 0, rtt_ns - links_ns
    forward_ns = scenario.path.forward_delay
    if rtt_ns < forward_ns:
        raise UserError(f"{key}: is less than path.forward_delay, a part of it")
    return forward_ns, rtt_ns - forward_ns


def _traffic(scenario: Scenario) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    path, tables, numbers = scenario.path, scenario.cc_tables, dict[str, int]()
    for index, traffic in enumerate(scenario.traffic):
        cc = choose(traffic.cc, tables)
        numbers[cc.name] = numbers.get(cc.name, 0) + 1
        name = traffic.name or f"{cc.name}-traffic.{numbers[cc.name]}"
        if name in [known["name"] for known in groups]:
            raise UserError(f"traffic.{index}.name: {name!r} is used twice; names must differ")
        is_up = traffic.direction == "up"
        rate_bps = path.rate if is_up else path.reverse_rate or path.rate
        ecn = bool(path.ecn if traffic.ecn is None else traffic.ecn)
        enter, leave = scenario.route(traffic)
        senders = []
        for position in range(traffic.senders):
            forward, reverse = _own_delays_ns(
                scenario, traffic.rtt_of(position), (enter, leave), f"traffic.{index}.rtts"
            )
            senders.append({
                "host_numbers": (position, 0) if is_up else (0, position),
                "forward_delay_ns": forward, "reverse_delay_ns": reverse,
                "direction": traffic.direction, "ecn": ecn,
                "route": {"enter": enter, "leave": leave},
            })  # fmt: skip
        try:
            source = resolve_source(traffic, rate_bps, path.mtu)
        except UserError as error:
            raise UserError(f"traffic.{index}: {error}") from None
        groups.append({
            "name": name, "cc": _cc(cc), "direction": traffic.direction,
            "route": {"enter": enter, "leave": leave}, "dscp": traffic.dscp, "ecn": ecn,
            "start_ns": traffic.start, "stop_ns": traffic.stop, "senders": senders,
            "source": source, **({"samples": traffic.samples} if traffic.samples else {}),
        })  # fmt: skip
    return groups


def cc_choices(plan: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(whose, choice) of every congestion control of a plan."""
    found = [(f"flow {flow['name']}", flow["cc"]) for flow in plan["flows"]]
    found += [(f"page {page['name']}", page["cc"]) for page in plan.get("pages", [])]
    return found + [(f"traffic {group['name']}", group["cc"]) for group in plan.get("traffic", [])]


def _ecn(choice: EcnChoice) -> dict[str, Any]:
    if choice in ("accecn", "l4s"):
        return {"ecn": True, "ecn_kind": choice}
    return {"ecn": bool(choice)}


def _cc(choice: Choice) -> dict[str, Any]:
    algorithm = None if choice.base is None else choice.base.algorithm
    return {"name": choice.name, "algorithm": algorithm, "params": list(choice.values)}


def _link(scenario: Scenario, link: Link, senders: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A link of the plan. Where data flow down, its reverse rate defaults to the forward rate."""
    index = scenario.link.index(link)
    has_down = any(
        direction == "down" and enter <= index <= leave
        for direction, (enter, leave) in (
            (direction, scenario.route(one)) for direction, one in senders
        )
    )
    back_bps = link.reverse.mean_rate or (link.mean_rate if has_down else None)
    forward_ns, reverse_ns = link.delays_ns
    return {
        "name": link.name,
        "medium": {
            "kind": "wire",
            "forward": _direction(scenario.path, link, link.mean_rate, forward_ns),
            "reverse": _direction(scenario.path, link.reverse, back_bps, reverse_ns),
        },
    }


def _direction(
    path: Path, direction: LinkDirection, rate_bps: int | None, delay_ns: int
) -> dict[str, Any]:
    changes: dict[str, Any] = {"damage": resolve_impairments(direction)}
    if direction.rate_trace:
        changes["rate_trace"] = link_traces.rate_trace(direction.rate_trace).planned()
    if direction.delay_trace:
        changes["delay_trace"] = link_traces.delay_trace(direction.delay_trace).planned()
    return {
        "rate_bps": rate_bps,
        "delay_ns": delay_ns,
        "qdisc": _queue(
            path, direction.qdisc, direction.qdisc_options, direction.buffer, rate_bps or path.rate
        ),
        "loss": _loss(direction.loss, direction.loss_correlation, direction.loss_marks, "packet"),
        "rate_steps": _rate_steps(direction),
        "delay_steps": [list(step) for step in direction.delay_steps],
        **{key: value for key, value in changes.items() if value is not None},
    }


def _rate_steps(direction: LinkDirection) -> list[list[int]]:
    """The steps of the rate, in which an outage is a rate of 0."""
    steps = [(0, direction.rate or 0), *direction.rate_steps]
    ends = [(start, start + length) for start, length in direction.outage]
    changes = {at for at, _ in direction.rate_steps} | {at for both in ends for at in both}
    found = []
    for at in sorted(changes):
        _, rate = steps[bisect_right(steps, at, key=itemgetter(0)) - 1]
        outage = bisect_right(ends, at, key=itemgetter(0)) - 1
        found.append([at, 0 if outage >= 0 and at < ends[outage][1] else rate])
    return found


def _put_on_hosts(users: Mapping[str, Sequence[dict[str, Any]]], scenario: Scenario) -> None:
    """Says which flows and probes share a host: those that name the same, are at the same link,
    have the same delays and need the same settings. Whoever has jitter or a link of its own has a
    host of its own."""
    flows, traffic = users["flows"], users["traffic"]
    others = [*users["pages"], *users["datagrams"]]
    first = [*flows, *others, *traffic][0]
    has_link = bool(scenario.host.access_rate)
    near: list[Any] = []
    far: list[Any] = []
    everyone = [*enumerate(flows), *((len(flows), one) for one in users["probes"])]
    everyone += [(len(flows) + 1 + index, one) for index, one in enumerate(others)]
    everyone += [
        (len(flows) + 1 + len(others) + index, sender)
        for index, group in enumerate(traffic)
        for sender in group["senders"]
    ]
    # Where nobody has delays of their own, all have the same, whatever they are.
    has_delays = any(one.get("forward_delay_ns") is not None for _, one in everyone)
    ends = _delays_at_ends(scenario) if has_delays else dict.fromkeys(_DELAYS)
    path_jitter = _jitter(scenario.path.jitter, scenario.path.jitter_shape)
    for index, one in everyone:
        forward_ns, reverse_ns = (
            ends[key] if one.get(key) is None else one[key] for key in _DELAYS
        )
        jitter = one.get("jitter") or path_jitter
        jitter = jitter if jitter and jitter["max_ns"] else None
        sends = one.get("direction") if has_link else None
        # A probe's packets carry no ECN: it goes where there is a host for its delays.
        numbers = one.pop("host_numbers", (0, 0))
        negotiates = one if "ecn" in one else first
        side = (
            numbers[0], reverse_ns, negotiates.get("ecn", False), negotiates.get("ecn_kind"),
        )  # fmt: skip
        sender = (*side, index if jitter or sends == "up" else None, one["route"]["enter"])
        receiver = (
            numbers[1], forward_ns, index if sends == "down" else None, one["route"]["leave"],
        )  # fmt: skip
        one["hosts"] = {"near": _position(near, sender), "far": _position(far, receiver)}
    for group in traffic:
        for one in group["senders"]:
            del one["direction"], one["ecn"], one["route"]


def _position(known: list[Any], wanted: Any) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


def _probes(scenario: Scenario) -> list[dict[str, Any]]:
    probes: list[dict[str, Any]] = []
    for index, probe in enumerate(scenario.probe):
        name = probe.name or f"{probe.kind}.{index + 1}"
        if name in [known["name"] for known in probes]:
            raise UserError(f"probe.{index}.name: {name!r} is used twice; names must differ")
        probes.append({
            "name": name, "kind": probe.kind, "interval_ns": probe.interval,
            "start_ns": probe.start, "dscp": probe.dscp,
            "route": dict(zip(("enter", "leave"), scenario.route(probe), strict=True)),
        })  # fmt: skip
    return probes


def _loss(probability: float, correlation: float, marks: bool, per: str) -> dict[str, Any] | None:
    if probability == 0:
        return None
    return {
        "probability_ppm": round(probability * 1e6),
        "correlation_ppm": round(correlation * 1e6),
        "ecn": marks,
        "per_burst": per == "burst",
    }


def _jitter(max_ns: int, shape: str) -> dict[str, Any] | None:
    return {"shape": shape, "max_ns": max_ns} if max_ns else None


def _queue(
    path: Path, name: str, options: Options, buffer: units.Buffer | None, rate_bps: int
) -> dict[str, Any]:
    return resolve_queue(name, options, buffer, rate_bps, path.rtt, path.mtu, bool(path.ecn))
