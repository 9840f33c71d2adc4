"""A Gymnasium environment over the simulator: an agent sets the window of one or several flows
(`pip install 'fullpipe[gym]'`).

The simulation pauses for every decision and then continues; nothing else differs from a run. Must
never know how an agent learns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
import tomli_w
from gymnasium import spaces

from fullpipe import _native
from fullpipe.api.recordings import Recordings
from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles
from fullpipe.engines.base import RunResult
from fullpipe.engines.record import AGENT, record_result
from fullpipe.engines.run import Run
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.tables import arrow_tables
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.plan.seeds import rtt_offset_ns
from fullpipe.plan.senders import cc_choices
from fullpipe.scenario.document import load_document
from fullpipe.scenario.model import Scenario, make_scenario

Floats = npt.NDArray[np.float32]
Document = Mapping[str, Any]

#: Features of a flow's observation: name, least, largest value. A real sender knows all of them.
FEATURES: tuple[tuple[str, float, float], ...] = (
    ("window", 0.0, 24.0),  # log2 of the window in packets
    ("delay", 0.0, 10.0),  # mean RTT of the step over the least RTT, less 1; 0 without a sample
    ("smoothed_delay", 0.0, 10.0),  # the same of the smoothed RTT
    ("delivered", 0.0, 4.0),  # packets delivered in the step over the window
    ("lost", 0.0, 1.0),  # of those delivered or lost in the step, the share that was lost
    ("marked", 0.0, 1.0),  # of those delivered in the step, the share with CE
    ("inflight", 0.0, 2.0),  # packets in the network over the window
    ("elapsed", 0.0, 10.0),  # length of the step over the least RTT
)
_LEAST, _LARGEST = (np.array([row[at] for row in FEATURES], np.float32) for at in (1, 2))
_MAX_CWND = 1 << 24
#: Costs in the default reward: of a second with one base RTT of queueing delay, in seconds of a
#: full link; and of a lost packet, in packets.
_DELAY_COST, _LOSS_COST, _MAX_DELAY = 0.5, 5.0, 4.0
_NEVER = 2**63


class FlowStep(NamedTuple):
    """A flow's measurements in a step, from which rewards are computed."""

    elapsed_s: float  #: length of the step
    delivered: int  #: packets
    lost: int  #: packets
    marked: int  #: packets with CE
    timeouts: int  #: retransmission timeouts
    rtt_s: float  #: mean RTT of the step's ACKs; the smoothed one where none had a sample
    base_rtt_s: float  #: of the empty path
    packet_s: float  #: how long a full packet takes at the bottleneck's rate
    cwnd: float  #: window in packets before the decision that follows


def default_reward(flows: Sequence[FlowStep]) -> float:
    """Seconds of full link: of each flow the time that the bottleneck takes for what was delivered
    less that of five times what was lost, less half the step's length for each base RTT of queueing
    (four at most). An episode that fills the link without a queue gets its length in seconds."""
    total = 0.0
    for one in flows:
        delay = one.rtt_s / one.base_rtt_s - 1.0 if one.rtt_s else 0.0
        total += one.packet_s * (one.delivered - _LOSS_COST * one.lost)
        total -= _DELAY_COST * one.elapsed_s * min(max(delay, 0.0), _MAX_DELAY) / len(flows)
    return total


class CongestionEnv(gymnasium.Env[Floats, Floats]):
    """An agent sets the windows of the flows whose `cc` is "agent".

    **Observation**: `Box`, float32, a value a feature of `FEATURES`; of several agents a row each,
    in the scenario's order. **Action**: `Box(-1, 1)`, float32, one a flow: with `step="rtt"` the
    window becomes 2**action times as large; with `step="ack"` as much per window of packets that
    is delivered, so that 1 doubles it in a round trip, as slow start does. 0 keeps the window in
    both modes. Pacing follows the window (Linux's rule); the host repairs losses but does not
    reduce the window.

    **A step** is a round trip of the first agent (its smoothed RTT), or an ACK of any agent, whose
    number is then in `info["agent"]`. Decisions hold from that time on. `info["t_s"]`: simulated
    time. `terminated`: all agents' flows have finished; `truncated`: the scenario's time is over.

    **Seeds**: `reset(seed=...)` determines all later episodes; each reset draws the seed of its
    run."""

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        scenario: Document | str | Path | Callable[[np.random.Generator], Document],
        step: Literal["rtt", "ack"] = "rtt",
        reward: Callable[[Sequence[FlowStep]], float] = default_reward,
    ) -> None:
        """`scenario`: a TOML file, a dictionary of its shape, or a function that draws one for each
        episode (always with the same number of agents). `reward`: computes the reward from the
        agents' steps. Raises UserError for a scenario that cannot run or has no agent."""
        if step not in ("rtt", "ack"):
            raise UserError(f"step {step!r}: must be 'rtt' or 'ack'")
        self._draw = scenario if callable(scenario) else None
        self._by_ack = step == "ack"
        self._reward = reward
        self._stepper: _native.Stepper | None = None
        first = scenario(np.random.default_rng(0)) if callable(scenario) else scenario
        self._prepare(first)
        self._flows = len(self._agents)
        shape = (self._flows, len(FEATURES)) if self._flows > 1 else (len(FEATURES),)
        low, high = np.broadcast_to(_LEAST, shape), np.broadcast_to(_LARGEST, shape)
        self.observation_space = spaces.Box(low, high, dtype=np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self._flows,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins a run, and advances it until the first agent's connection is established."""
        super().reset(seed=seed)
        if self._draw is not None:
            self._prepare(self._draw(self.np_random))
            if len(self._agents) != self._flows:
                raise UserError("scenario: every episode must have as many agents as the first")
        self._seed = int(self.np_random.integers(2**31))
        self._plan = self._planned(self._seed)
        drawn_ns = rtt_offset_ns(self._scenario.rtt_spread_ns, self._seed)
        rtts_ns = [rtt_ns + drawn_ns for rtt_ns in self._rtts_ns]
        self._base_rtt_s = [max(rtt_ns, 1000) / 1e9 for rtt_ns in rtts_ns]
        stepper = self._stepper = _native.Stepper(json.dumps(self._plan))
        self._cwnd = [0.0] * self._flows
        self._last_ns, self._wait_ns, self._ended = 0, max(rtts_ns[0], 1_000_000), False
        while not stepper.is_over and self._cwnd == [0.0] * self._flows:
            stepper.advance(stepper.now_ns + self._wait_ns, False)
            observation, _ = self._look(stepper)
        return observation, {"t_s": stepper.now_ns / 1e9}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Applies the action and runs to the next decision. Raises UserError before `reset` and
        after `recordings`."""
        stepper = self._stepper
        if stepper is None:
            raise UserError("step: call reset() first")
        self._decide(stepper, action)
        if self._by_ack:
            agent = stepper.advance(_NEVER, True)
        else:
            agent = stepper.advance(stepper.now_ns + self._wait_ns, False)
        observation, flows = self._look(stepper)
        info = {"t_s": stepper.now_ns / 1e9, "agent": -1 if agent is None else agent}
        return observation, float(self._reward(flows)), self._ended, stepper.is_over, info

    def recordings(self, out: str | Path | None = None) -> Recordings:
        """The episode so far as a recording, as `fullpipe.run` gives one; the episode ends with it.
        Raises UserError without an episode, or where `out` exists."""
        if self._stepper is None:
            raise UserError("recordings: there is no episode; call reset() and step() first")
        raw = self._stepper.finish()
        self._stepper = None
        keeps = TemporaryDirectory(prefix="fullpipe-") if out is None else None
        folder = Path(keeps.name) / "run" if keeps is not None else Path(out or "")
        result = RunResult(arrow_tables(raw), {}, {"problems": []}, interrupted=raw["interrupted"])
        toml = tomli_w.dumps({**self._document, "seed": self._seed})
        run = Run(self._plan, toml, self._scenario.warmup)
        return Recordings([record_result(run, folder, result)], keeps)

    def _prepare(self, scenario: Document | str | Path) -> None:
        document = dict(scenario) if isinstance(scenario, Mapping) else load_document(scenario)
        self._document = document
        stands_in, self._agents, entries = _without_agents(document)
        self._scenario: Scenario = make_scenario(stands_in)
        plan = self._planned(self._scenario.seed)
        SimEngine().check(plan)
        for _, choice in cc_choices(plan):
            if userfiles.is_external(choice["algorithm"]):
                userfiles.load_here(choice["algorithm"])
        path = plan["path"]
        self._packet_s = path["mtu_bytes"] * 8 / path["rate_bps"]
        usual_ns = self._scenario.path.rtt
        self._rtts_ns = [self._scenario.flow[entry].rtt or usual_ns for entry in entries]

    def _planned(self, seed: int) -> Plan:
        plan = resolve(self._scenario, seed)
        for index in self._agents:
            plan["flows"][index]["cc"] = {"name": AGENT, "algorithm": AGENT, "params": []}
        return plan

    def _decide(self, stepper: _native.Stepper, action: Floats) -> None:
        for agent, wanted in enumerate(np.asarray(action, np.float64).reshape(-1).tolist()):
            cwnd = self._cwnd[agent]
            if not cwnd:
                continue
            exponent = min(max(wanted, -1.0), 1.0)
            if self._by_ack:
                exponent *= self._delivered[agent] / cwnd
            cwnd = min(max(cwnd * 2.0**exponent, 1.0), _MAX_CWND)
            self._cwnd[agent] = cwnd
            stepper.decide(agent, round(cwnd), 0)

    def _look(self, stepper: _native.Stepper) -> tuple[Floats, list[FlowStep]]:
        elapsed_ns = stepper.now_ns - self._last_ns
        self._last_ns += elapsed_ns
        rows, flows, self._delivered = [], [], []
        ended = 0
        for agent in range(self._flows):
            counts, state = stepper.look(agent)
            _, delivered, marked, lost, timeouts, samples, rtt_sum_us = counts
            cwnd, inflight, srtt_us, min_rtt_us, is_established, is_finished = state
            ended += is_finished
            self._delivered.append(delivered)
            if is_established and not self._cwnd[agent]:
                self._cwnd[agent] = float(cwnd)
            if agent == 0 and srtt_us:
                self._wait_ns = srtt_us * 1000
            rtt_us = rtt_sum_us / samples if samples else srtt_us
            least_us = min_rtt_us or rtt_us or 1
            rows.append((
                np.log2(cwnd), rtt_us / least_us - 1 if samples else 0.0, srtt_us / least_us - 1,
                delivered / cwnd, lost / max(delivered + lost, 1), marked / max(delivered, 1),
                inflight / cwnd, elapsed_ns / 1e3 / least_us,
            ))  # fmt: skip
            flows.append(FlowStep(
                elapsed_ns / 1e9, delivered, lost, marked, timeouts, rtt_us / 1e6,
                self._base_rtt_s[agent], self._packet_s, self._cwnd[agent],
            ))  # fmt: skip
        self._ended = ended == self._flows
        seen = np.array(rows if self._flows > 1 else rows[0], np.float32)
        return np.minimum(np.maximum(seen, _LEAST), _LARGEST), flows


def _without_agents(document: Document) -> tuple[dict[str, Any], list[int], list[int]]:
    """The scenario with placeholders for the agents, the positions of their flows, and each one's
    `[[flow]]` entry."""
    flows: list[Any] = []
    positions: list[int] = []
    entries: list[int] = []
    count = 0
    written = document.get("flow")
    for entry, flow in enumerate(written if isinstance(written, Sequence) else []):
        many = flow.get("count", 1) if isinstance(flow, Mapping) else 1
        many = many if isinstance(many, int) else 1
        if isinstance(flow, Mapping) and flow.get("cc") == AGENT:
            name = AGENT if not positions else f"{AGENT}-{len(positions) + 1}"
            positions += range(count, count + many)
            entries += [entry] * many
            flow = {"name": name, **flow, "cc": "reno"}
        flows.append(flow)
        count += many
    if not positions:
        raise UserError(
            f'scenario: no flow has cc = "{AGENT}", which is what an agent decides about'
        )
    return {**document, "flow": flows}, positions, entries


gymnasium.register("fullpipe/Congestion-v0", entry_point="fullpipe.gym:CongestionEnv")
