"""From a template to a run: the scenario at a point, its plan, its key, what it costs.

Sweeps, experiments, scorecards and hunts all make their runs here. Must never run one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from fullpipe.congestion import userfiles
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.plan.senders import cc_choices
from fullpipe.scenario.document import find_files
from fullpipe.scenario.model import Scenario, make_scenario
from fullpipe.sweep import applications
from fullpipe.sweep.keys import run_key
from fullpipe.sweep.measures import VERSION, Facts, facts_of
from fullpipe.sweep.templates import fill_scenario

#: Rough cost in the simulator: CPU s a packet on the bottleneck, a run, a flow. It orders work and
#: sizes groups; the estimates that users see come from trials (estimate.py).
PACKET_S, _RUN_S, _FLOW_S = 1.5e-7, 5e-5, 3e-5
#: Rough cost in the virtual machine: an idle simulated second, a packet, a run (which resumes a
#: snapshot).
_VM_SECOND_S, _VM_PACKET_S, _VM_RUN_S = 0.1, 6e-5, 1.5


class Run(NamedTuple):
    """A run to do.

    `plan`: JSON. `cost_s`: rough CPU seconds. `external`: algorithms from files.
    `has_applications`: it has pages, streams, probes or groups of flows. `document`: the scenario
    as TOML, where recordings are kept."""

    facts: Facts
    plan: bytes
    cost_s: float
    external: tuple[str, ...]
    has_applications: bool
    document: str = ""
    warmup_ns: int = 0


def scenario_at(
    template: Mapping[str, Any], fields: Mapping[str, Any], source: str, folder: Path
) -> tuple[dict[str, Any], Scenario]:
    """The scenario of a template at a point (`templates.fields_of`), as a document and read. Files
    that it names lie in `folder`.

    Raises UserError naming `source`, the point and the key."""
    document = fill_scenario(template, fields, f"{source}: scenario")
    find_files(document, folder)
    point = ", ".join(f"{name} {value}" for name, value in fields.items() if "." not in name)
    where = f"{source}: scenario at {point}" if point else f"{source}: scenario"
    return document, make_scenario(document, where)


def run_of(
    scenario: Scenario, seed: int, engine_name: str, options: Mapping[str, str] | None = None
) -> Run:
    """The run of a scenario with a seed. `options`: those of the engine that change results.

    Raises UserError where two keys of the scenario contradict each other."""
    plan = resolve(scenario, seed)
    nameless = to_json({**plan, "name": ""})  # the name changes no result
    has_applications = applications.has_applications(plan)
    version = f"{VERSION}+{applications.VERSION}" if has_applications else str(VERSION)
    key = run_key(nameless, engine_name, scenario.warmup, version, options or {})
    facts = facts_of(key, plan, seed, engine_name, scenario.warmup)
    algorithms = (choice["algorithm"] for _, choice in cc_choices(plan))
    from_files = tuple(filter(userfiles.is_external, algorithms))
    cost = cost_s(plan, engine_name)
    return Run(facts, to_json(plan), cost, from_files, has_applications, warmup_ns=scenario.warmup)


def cost_s(plan: Plan, engine_name: str) -> float:
    """Rough CPU seconds of a run."""
    path = plan["path"]
    rate_bps: float = path["rate_bps"] + (path["reverse_rate_bps"] or 0)
    seconds: float = plan["duration_ns"] / 1e9
    packets: float = rate_bps * seconds / (8 * path["mtu_bytes"])
    if engine_name == "sim":
        return _RUN_S + _FLOW_S * len(plan["flows"]) + PACKET_S * packets
    return _VM_RUN_S + _VM_SECOND_S * seconds + _VM_PACKET_S * packets
