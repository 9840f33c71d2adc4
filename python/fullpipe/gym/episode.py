"""One run in steps: who decides when, and what a decision does. Knows no environments."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fullpipe import _native
from fullpipe.api.calls import with_classes
from fullpipe.base.errors import UserError
from fullpipe.base.packets import mss_bytes
from fullpipe.congestion import userfiles
from fullpipe.congestion.policy import FEATURES, MAX_CWND, Counts, State, features
from fullpipe.engines.record import AGENT
from fullpipe.engines.sim import SimEngine
from fullpipe.gym.conditions import Conditions
from fullpipe.gym.rewards import FlowStep
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.plan.senders import cc_choices
from fullpipe.scenario.document import load_document
from fullpipe.scenario.model import Scenario, make_scenario

Document = Mapping[str, Any]

_NEVER = 2**63
_NOTHING = Counts(0, 0, 0, 0, 0, 0, 0)
#: Agents that would decide within this share of their RTT decide now.
_TOGETHER = 0.05
_LEAST_WAIT_NS = 1_000_000


class Setting:
    """A scenario with agents, checked."""

    def __init__(self, scenario: Document | str | Path) -> None:
        """Raises UserError for a scenario that cannot run or has no agent."""
        if isinstance(scenario, str | Path):
            document = load_document(scenario)
        elif not isinstance(scenario, Mapping):
            raise UserError(f"scenario {scenario!r}: must be a TOML file, or a table of its shape")
        else:
            document = with_classes(scenario)
        self.document = document
        stands_in, self.agents = _without_agents(document)
        self.scenario: Scenario = make_scenario(stands_in)
        plan = self.planned(self.scenario.seed)
        SimEngine().check(plan)
        for _, choice in cc_choices(plan):
            if userfiles.is_external(choice["algorithm"]):
                userfiles.load_here(choice["algorithm"])

    def planned(self, seed: int) -> Plan:
        """The plan of an episode."""
        plan = resolve(self.scenario, seed)
        for index in self.agents:
            plan["flows"][index]["cc"] = {"name": AGENT, "algorithm": AGENT, "params": []}
        return plan


class Step(NamedTuple):
    """What came out of a step: observations by agent, of those that have decided before their last
    one; the agents whose next actions count; measurements of the step; and which flows are done."""

    rows: list[tuple[float, ...]]
    deciding: list[int]
    flows: list[FlowStep]
    finished: list[bool]
    info: dict[str, Any]


class _Agent:
    """A flow that is decided about."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.cwnd = 0.0  # 0 before its connection is established
        self.is_active = False
        self.due_ns = 0
        #: Since its last observation.
        self.seen, self.seen_since_ns = _NOTHING, 0
        self.row: tuple[float, ...] = (0.0,) * len(FEATURES)

    def observe(self, state: State, now_ns: int) -> None:
        """Makes its observation of what it saw, and sets when it decides again. Its window is the
        one it decided, which the host's after a timeout is not."""
        state = state._replace(cwnd=round(self.cwnd) or state.cwnd)
        self.row = features(self.seen, state, (now_ns - self.seen_since_ns) / 1e3)
        wait_ns = state.srtt_us * 1000 or round(self.conditions.base_rtt_s(now_ns / 1e9) * 1e9)
        self.seen, self.seen_since_ns, self.due_ns = _NOTHING, now_ns, now_ns + wait_ns


class Episode:
    """A run of a setting with a seed."""

    def __init__(self, setting: Setting, seed: int, by_ack: bool) -> None:
        self.setting, self.seed, self._by_ack = setting, seed, by_ack
        self.plan = setting.planned(seed)
        self.stepper = _native.Stepper(json.dumps(self.plan))
        flows = self.plan["flows"]
        self._agents = [_Agent(Conditions(self.plan, flows[at])) for at in setting.agents]
        self._mss_bits = 8 * mss_bytes(self.plan["access"]["mtu_bytes"])
        self._last_ns, self._deciding = 0, list[int]()

        self.latest = self._begun()  #: What came out of the latest step, first of the beginning.

    @property
    def is_over(self) -> bool:
        """Whether the scenario's time is."""
        return self.stepper.is_over

    @property
    def has_finished(self) -> bool:
        """Whether all agents' flows have."""
        return all(self.latest.finished)

    def _begun(self) -> Step:
        """Advances until an agent's connection is established."""
        while True:
            self._advance(self._target_ns(), False)
            step = self.look(None)
            if self.is_over or any(agent.cwnd for agent in self._agents):
                return step

    def decide(self, action: npt.ArrayLike) -> None:
        """Applies the actions of the agents that decide. Raises UserError for what is no action,
        which changes nothing."""
        for index, wanted in zip(self._deciding, self.check(action), strict=True):
            agent = self._agents[index]
            factor = 2.0 ** min(max(wanted, -1.0), 1.0)
            if self._by_ack:
                # A window of packets that is delivered changes the window by this factor.
                cwnd = agent.cwnd + (factor - 1.0) * self._delivered[index]
            else:
                cwnd = agent.cwnd * factor
            agent.cwnd = min(max(cwnd, 1.0), MAX_CWND)
            self.stepper.decide(index, round(agent.cwnd), 0)

    def advance(self) -> Step:
        """Runs to the next decision."""
        return self.look(self._advance(*self.until()))

    def _advance(self, until_ns: int, stops_at_acks: bool) -> int | None:
        with explained():
            return self.stepper.advance(until_ns, stops_at_acks)

    def until(self) -> tuple[int, bool]:
        """How far to advance the stepper: to which time, and whether an ACK ends the step."""
        return (_NEVER, True) if self._by_ack else (self._target_ns(), False)

    def look(self, acked: int | None) -> Step:
        """What came out of a step, which the ACK of an agent ended."""
        now_ns = self.stepper.now_ns
        elapsed_s, self._last_ns = (now_ns - self._last_ns) / 1e9, now_ns
        looks, flows = [], []
        for index, agent in enumerate(self._agents):
            counts, state = Counts(*(both := self.stepper.look(index))[0]), State(*both[1])
            looks.append((counts, state))
            agent.seen = Counts(*map(sum, zip(agent.seen, counts, strict=True)))
            flows.append(_flow_step(agent, counts, state, elapsed_s, now_ns / 1e9))
            if state.is_established and not agent.cwnd:
                agent.cwnd, agent.due_ns = float(state.cwnd), now_ns
            agent.is_active = bool(agent.cwnd) and not state.is_finished
        self._delivered = [counts.delivered for counts, _ in looks]
        self._deciding = []
        for index, (agent, (_, state)) in enumerate(zip(self._agents, looks, strict=True)):
            early_ns = 0 if self._by_ack else int(_TOGETHER * 1000 * state.srtt_us)
            if self._by_ack or now_ns + early_ns >= agent.due_ns:
                agent.observe(state, now_ns)
                if agent.is_active:
                    self._deciding.append(index)
        rows = [agent.row for agent in self._agents]
        finished = [state.is_finished for _, state in looks]
        self.latest = Step(rows, self._deciding, flows, finished, self._info(flows, acked))
        return self.latest

    def _target_ns(self) -> int:
        """When the next agent decides; without one, a base RTT from now."""
        due_ns = [agent.due_ns for agent in self._agents if agent.is_active]
        if due_ns:
            return max(min(due_ns), self._last_ns + 1)
        wait_s = self._agents[0].conditions.base_rtt_s(self._last_ns / 1e9)
        return self._last_ns + max(round(wait_s * 1e9), _LEAST_WAIT_NS)

    def check(self, action: npt.ArrayLike) -> list[float]:
        """The actions of those that decide. Raises UserError for what is no action."""
        count = len(self._agents)
        try:
            values = np.asarray(action, np.float64)
        except (TypeError, ValueError):
            raise UserError(f"action {action!r}: must be {_numbers(count)}") from None
        if values.shape != (count,):
            raise UserError(f"action: has the shape {values.shape}, must be {_numbers(count)}")
        wrong = [index for index in range(count) if not math.isfinite(values[index])]
        if wrong:
            raise UserError(
                f"action: is {values[wrong[0]]} for agent {wrong[0]}, must be a number from -1 to 1"
            )
        return [float(values[index]) for index in self._deciding]

    def _info(self, flows: Sequence[FlowStep], acked: int | None) -> dict[str, Any]:
        queues = [self.stepper.queued(index) for index in range(len(flows))]
        of_agents: dict[str, list[float]] = {
            "goodput_bps": [
                flow.delivered * self._mss_bits / flow.elapsed_s if flow.elapsed_s else 0.0
                for flow in flows
            ],
            "queue_bytes": [waiting for waiting, _ in queues],
            "queue_packets": [waiting for _, waiting in queues],
            "rate_bps": [agent.conditions.latest_bps for agent in self._agents],
            "base_rtt_s": [flow.base_rtt_s for flow in flows],
        }
        return {
            "t_s": self._last_ns / 1e9,
            "seed": self.seed,
            "agent": -1 if acked is None else acked,
            "agents": list(self._deciding),
            **{
                key: values[0] if len(values) == 1 else np.array(values)
                for key, values in of_agents.items()
            },
        }


@contextmanager
def explained() -> Iterator[None]:
    """Makes a UserError with its line of what the class of a flow raised."""
    try:
        yield
    except RuntimeError as error:
        cause, algorithm = error.__cause__, getattr(error, "algorithm", None)
        if algorithm is None or not isinstance(cause, Exception):
            raise
        from fullpipe.congestion.userfiles import classes

        raise UserError(classes.explain(algorithm, cause)) from cause


def _flow_step(
    agent: _Agent, counts: Counts, state: State, elapsed_s: float, now_s: float
) -> FlowStep:
    samples = counts.rtt_samples
    rtt_us = counts.rtt_sum_us / samples if samples else state.srtt_us
    # What was acknowledged passed the bottleneck a base RTT ago, and left a round trip ago.
    base_s = agent.conditions.base_rtt_s(max(now_s - elapsed_s / 2 - rtt_us / 1e6, 0.0))
    length_s = max(elapsed_s, base_s)
    end_s = max(now_s - base_s, length_s)
    packet_s = agent.conditions.packet_s(end_s - length_s, end_s)
    return FlowStep(
        elapsed_s=elapsed_s,
        delivered=counts.delivered,
        lost=counts.lost,
        marked=counts.marked,
        timeouts=counts.timeouts,
        rtt_s=rtt_us / 1e6,
        base_rtt_s=base_s,
        packet_s=packet_s,
        cwnd=agent.cwnd,
    )


def _numbers(count: int) -> str:
    return f"{count} number{'s' * (count > 1)} from -1 to 1, one for each agent, as ({count},)"


def _without_agents(document: Document) -> tuple[dict[str, Any], list[int]]:
    """The scenario with placeholders for the agents, and the positions of their flows."""
    flows: list[Any] = []
    positions: list[int] = []
    count = 0
    written = document.get("flow")
    for flow in written if isinstance(written, Sequence) else []:
        many = flow.get("count", 1) if isinstance(flow, Mapping) else 1
        many = many if isinstance(many, int) else 1
        if isinstance(flow, Mapping) and flow.get("cc") == AGENT:
            name = AGENT if not positions else f"{AGENT}-{len(positions) + 1}"
            positions += range(count, count + many)
            flow = {"name": name, **flow, "cc": "reno"}
        flows.append(flow)
        count += many
    if not positions:
        raise UserError(
            f'scenario: no flow has cc = "{AGENT}", which is what an agent decides about'
        )
    return {**document, "flow": flows}, positions
