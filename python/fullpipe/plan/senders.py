"""Everything that sends in a plan: flows, probes, pages, datagrams and groups of traffic, with
their names, routes and hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import Choice, choose
from fullpipe.plan.network import DELAYS, delays_at_ends, resolve_jitter, route
from fullpipe.plan.plan import Plan
from fullpipe.plan.seeds import start_offset_ns
from fullpipe.scenario.applications import resolve_page, resolve_pattern, resolve_udp
from fullpipe.scenario.flow import Flow
from fullpipe.scenario.host import Host
from fullpipe.scenario.model import Scenario
from fullpipe.scenario.path import EcnChoice
from fullpipe.scenario.route import Routed
from fullpipe.scenario.traffic.options import Traffic, resolve_source


def senders(scenario: Scenario, seed: int) -> dict[str, list[dict[str, Any]]]:
    """`flows` and `probes` of a plan, and `pages`, `datagrams` and `traffic` where it has some.

    Raises UserError where two keys contradict each other, or two have one name."""
    kinds = {
        "flows": list(_flows(scenario, seed)),
        "probes": list(_probes(scenario)),
        "pages": list(_pages(scenario)),
        "datagrams": list(_datagrams(scenario)),
        "traffic": list(_traffic(scenario)),
    }
    for kind, members in kinds.items():
        names = [member["name"] for member in members]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(f"{kind}: the name {twice!r} is used twice; names must differ")
    _put_on_hosts(kinds, scenario)
    return {name: some for name, some in kinds.items() if some or name in ("flows", "probes")}


def cc_choices(plan: Plan) -> list[tuple[str, dict[str, Any]]]:
    """(sender, choice) of every congestion control of a plan."""
    controls = [(f"flow {flow['name']}", flow["cc"]) for flow in plan["flows"]]
    controls += [(f"page {page['name']}", page["cc"]) for page in plan.get("pages", [])]
    return controls + [
        (f"traffic {group['name']}", group["cc"]) for group in plan.get("traffic", [])
    ]


def _flows(scenario: Scenario, seed: int) -> Iterator[dict[str, Any]]:
    tables, spread_ns, flow_id = scenario.cc_tables, scenario.start_spread or 0, 0
    numbers: dict[str, int] = {}
    for index, flow in enumerate(scenario.flow):
        cc = choose(flow.cc, tables)
        common = _flow(scenario, flow, f"flow.{index}")
        for position in range(flow.count):
            numbers[cc.name] = numbers.get(cc.name, 0) + 1
            name = f"{cc.name}.{numbers[cc.name]}"
            if flow.name:
                name = flow.name if flow.count == 1 else f"{flow.name}.{position + 1}"
            start_ns = flow.start + flow.start_step * position
            start_ns += start_offset_ns(spread_ns, seed, flow_id)
            yield {"name": name, "cc": _cc(cc), **common, "start_ns": start_ns}
            flow_id += 1


def _flow(scenario: Scenario, flow: Flow, key: str) -> dict[str, Any]:
    path = scenario.path
    jitter = None
    if flow.jitter is not None or flow.jitter_shape is not None:
        max_ns = path.jitter if flow.jitter is None else flow.jitter
        shape = flow.jitter_shape or path.jitter_shape
        jitter = resolve_jitter(max_ns, shape) or {"shape": path.jitter_shape, "max_ns": 0}
    pattern = {} if flow.pattern is None else {"pattern": resolve_pattern(flow.pattern)}
    return {
        **pattern,
        "start_ns": 0,
        "stop_ns": flow.stop,
        "amount_bytes": flow.amount,
        "app_rate_bps": flow.app_rate,
        "direction": flow.direction,
        "route": route(scenario, flow),
        "dscp": flow.dscp,
        "host_numbers": flow.host_numbers,
        **_own_delays_ns(scenario, flow, flow.rtt, f"{key}.rtt"),
        "jitter": jitter,
        "receive_window_bytes": flow.receive_window,
        **({"nodelay": True} if flow.nodelay else {}),
        **({"max_pacing_rate_bps": flow.max_pacing_rate} if flow.max_pacing_rate else {}),
        **_ecn(path.ecn if flow.ecn is None else flow.ecn),
        **_stack(scenario.host, flow.tcp),
    }


def _stack(host: Host, tcp: str | None) -> dict[str, Any]:
    """The TCP of a flow's hosts where it is not that of all."""
    if tcp in (None, host.tcp):
        return {}
    return {"stack": {"tcp": tcp, "gso_max_segments": host.largest_burst(tcp)}}


def _probes(scenario: Scenario) -> Iterator[dict[str, Any]]:
    for index, probe in enumerate(scenario.probe):
        yield {
            "name": probe.name or f"{probe.kind}.{index + 1}",
            "kind": probe.kind,
            "interval_ns": probe.interval,
            "start_ns": probe.start,
            "dscp": probe.dscp,
            "route": route(scenario, probe),
            "host_numbers": probe.host_numbers,
        }


def _pages(scenario: Scenario) -> Iterator[dict[str, Any]]:
    tables, ecn = scenario.cc_tables, scenario.path.ecn
    for index, page in enumerate(scenario.page):
        yield {
            "name": page.name or f"page.{index + 1}",
            "cc": _cc(choose(page.cc, tables)),
            "route": route(scenario, page),
            "ecn": bool(ecn if page.ecn is None else page.ecn),
            "host_numbers": page.host_numbers,
            **resolve_page(page),
        }


def _datagrams(scenario: Scenario) -> Iterator[dict[str, Any]]:
    for index, udp in enumerate(scenario.udp):
        yield {
            "name": udp.name or f"udp.{index + 1}",
            "route": route(scenario, udp),
            "host_numbers": udp.host_numbers,
            **resolve_udp(udp),
        }


def _traffic(scenario: Scenario) -> Iterator[dict[str, Any]]:
    path, tables, numbers = scenario.path, scenario.cc_tables, dict[str, int]()
    for index, traffic in enumerate(scenario.traffic):
        cc = choose(traffic.cc, tables)
        numbers[cc.name] = numbers.get(cc.name, 0) + 1
        is_up = traffic.direction == "up"
        rate_bps = path.rate if is_up else path.reverse_rate or path.rate
        try:
            source = resolve_source(traffic, rate_bps, path.mtu)
        except UserError as error:
            raise UserError(f"traffic.{index}: {error}") from None
        yield {
            "name": traffic.name or f"{cc.name}-traffic.{numbers[cc.name]}",
            "cc": _cc(cc),
            "direction": traffic.direction,
            "route": route(scenario, traffic),
            "dscp": traffic.dscp,
            "ecn": bool(path.ecn if traffic.ecn is None else traffic.ecn),
            "start_ns": traffic.start,
            "stop_ns": traffic.stop,
            "senders": _hosts_of(scenario, traffic, f"traffic.{index}.rtts"),
            "source": source,
            **({"samples": traffic.samples} if traffic.samples else {}),
        }


def _hosts_of(scenario: Scenario, traffic: Traffic, key: str) -> list[dict[str, Any]]:
    """The hosts that send the flows of a group."""
    return [
        {
            "host_numbers": (number, 0) if traffic.direction == "up" else (0, number),
            **_own_delays_ns(scenario, traffic, traffic.rtt_of(number), key),
        }
        for number in range(traffic.senders)
    ]


def _own_delays_ns(
    scenario: Scenario, routed: Routed, rtt_ns: int | None, key: str
) -> dict[str, int | None]:
    """Delays at the ends of what has a base RTT of its own; None: the path's."""
    if rtt_ns is None:
        return dict.fromkeys(DELAYS)
    forward_ns, part = scenario.path.forward_delay, "path.forward_delay, a part of it"
    if scenario.link:
        first, last = scenario.route(routed)
        forward_ns = sum(sum(link.delays_ns) for link in scenario.link[first : last + 1])
        part = f"its links' delays, {units.format_time(forward_ns)} both ways"
    if rtt_ns < forward_ns:
        raise UserError(f"{key}: is less than {part}")
    return {
        "forward_delay_ns": 0 if scenario.link else forward_ns,
        "reverse_delay_ns": rtt_ns - forward_ns,
    }


def _ecn(choice: EcnChoice) -> dict[str, Any]:
    if choice in ("accecn", "l4s"):
        return {"ecn": True, "ecn_kind": choice}
    return {"ecn": bool(choice)}


def _cc(choice: Choice) -> dict[str, Any]:
    algorithm = None if choice.base is None else choice.base.algorithm
    return {"name": choice.name, "algorithm": algorithm, "params": list(choice.values)}


def _put_on_hosts(kinds: Mapping[str, Sequence[dict[str, Any]]], scenario: Scenario) -> None:
    """Gives each sender its hosts. Two share a host if they name the same number, are at the same
    link, have the same delays and negotiate the same ECN. What has jitter has a host of its own,
    and so has what sends over an access link."""
    applications = [*kinds["pages"], *kinds["datagrams"]]
    groups = [[(flow, flow)] for flow in kinds["flows"]]
    groups.append([(probe, probe) for probe in kinds["probes"]])
    groups += [[(application, application)] for application in applications]
    groups += [
        [({**group, **sender}, sender) for sender in group["senders"]] for group in kinds["traffic"]
    ]
    # Probes and datagrams negotiate no ECN; they go where others do.
    first = [*kinds["flows"], *applications, *kinds["traffic"]][0]
    ends, path = delays_at_ends(scenario), scenario.path
    path_jitter = resolve_jitter(path.jitter, path.jitter_shape)
    near: dict[Any, int] = {}
    far: dict[Any, int] = {}
    for index, members in enumerate(groups):
        for settings, member in members:
            forward_ns, reverse_ns = (
                ends[key] if settings.get(key) is None else settings[key] for key in DELAYS
            )
            jitter = settings.get("jitter") or path_jitter
            has_jitter = jitter is not None and jitter["max_ns"] > 0
            sends = settings.get("direction") if scenario.host.access_rate else None
            ecn = settings if "ecn" in settings else first
            near_number, far_number = member.pop("host_numbers")
            sender = (
                near_number,
                reverse_ns,
                ecn.get("ecn", False),
                ecn.get("ecn_kind"),
                index if has_jitter or sends == "up" else None,
                settings["route"]["enter"],
            )
            receiver = (
                far_number,
                forward_ns,
                index if sends == "down" else None,
                settings["route"]["leave"],
            )
            member["hosts"] = {
                "near": near.setdefault(sender, len(near)),
                "far": far.setdefault(receiver, len(far)),
            }
