"""The Gymnasium environment: an agent sets the window of one or several flows.

The simulation pauses for every decision and then continues; nothing else differs from a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import gymnasium
import numpy as np
import tomli_w
from gymnasium import spaces

from fullpipe.api.recordings import Recordings
from fullpipe.base.errors import UserError
from fullpipe.congestion.policy import FEATURES
from fullpipe.engines.base import RunResult
from fullpipe.engines.record import record_result
from fullpipe.engines.run import Run
from fullpipe.engines.tables import arrow_tables
from fullpipe.gym.episode import Document, Episode, Setting, Step
from fullpipe.gym.observation import LARGEST, LEAST, Floats, within_bounds
from fullpipe.gym.rewards import FlowStep, default_reward, finite

Scenarios = Document | str | Path | Callable[[np.random.Generator], Document]


class CongestionEnv(gymnasium.Env[Floats, Floats]):
    """An agent sets the windows of the flows whose `cc` is "agent".

    **Observation**: `Box`, float32, a value a feature of `FEATURES`; of several agents a row each,
    in the scenario's order. **Action**: `Box(-1, 1)`, float32, one a flow: 1 doubles the window in
    a round trip, -1 halves it, 0 keeps it. With `step="rtt"` the window becomes 2**action times as
    large; with `step="ack"` it changes with every packet that is delivered, as in slow start.
    Pacing follows the window (Linux's rule); the host repairs losses but does not reduce the
    window.

    **A step** ends when a round trip of an agent is over (its smoothed RTT since it last decided),
    or at an ACK of any agent, whose number is then in `info["agent"]`. `info["agents"]` are those
    whose observation is new and whose next action counts; with `step="rtt"` the others keep theirs.
    `terminated`: all agents' flows have finished; `truncated`: the scenario's time is over.

    **info** also has what no sender knows: the simulated time `t_s`, the `seed` of the run (which
    `fullpipe.run` takes), and of each agent (a number for one, else an array) `goodput_bps`,
    `queue_bytes` and `queue_packets` on its route, and `rate_bps` and `base_rtt_s` of its path.

    **Seeds**: `reset(seed=...)` determines all later episodes; each reset draws the seed of its
    run."""

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        scenario: Scenarios,
        step: Literal["rtt", "ack"] = "rtt",
        reward: Callable[[Sequence[FlowStep]], float] = default_reward,
    ) -> None:
        """`scenario`: a TOML file, a dictionary of its shape, or a function that draws one for each
        episode (always with the same number of agents). `reward`: computes the reward from the
        agents' steps. Raises UserError for a scenario that cannot run or has no agent."""
        if step not in ("rtt", "ack"):
            raise UserError(f"step {step!r}: must be 'rtt' or 'ack'")
        if not callable(reward):
            raise UserError(f"reward {reward!r}: must be a function of a sequence of FlowStep")
        self._draw = scenario if callable(scenario) else None
        self._by_ack = step == "ack"
        self._reward = reward
        self._episode: Episode | None = None
        first = scenario(np.random.default_rng(0)) if callable(scenario) else scenario
        self._setting = Setting(first)
        self._flows = len(self._setting.agents)
        shape = (self._flows, len(FEATURES)) if self._flows > 1 else (len(FEATURES),)
        low, high = np.broadcast_to(LEAST, shape), np.broadcast_to(LARGEST, shape)
        self.observation_space = spaces.Box(low, high, dtype=np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self._flows,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins a run, and advances it until an agent's connection is established."""
        super().reset(seed=seed)
        if self._draw is not None:
            self._setting = Setting(self._draw(self.np_random))
            if len(self._setting.agents) != self._flows:
                raise UserError("scenario: every episode must have as many agents as the first")
        drawn = int(self.np_random.integers(2**31))
        self._episode = Episode(self._setting, drawn, self._by_ack)
        begun = self._episode.latest
        return self._observation(begun), begun.info

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Applies the action and runs to the next decision. Raises UserError before `reset`, after
        `recordings`, and for what is no action, which leaves the episode as it was."""
        episode = self._begun("step")
        episode.decide(action)
        return self.outcome(episode.advance())

    def outcome(self, done: Step) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """What `step` returns of a step of the episode."""
        episode, reward = self.episode, finite(self._reward(done.flows))
        return self._observation(done), reward, episode.has_finished, episode.is_over, done.info

    @property
    def agents(self) -> int:
        """How many flows are decided about."""
        return self._flows

    @property
    def episode(self) -> Episode:
        """The run in progress. Raises UserError before `reset` and after `recordings`."""
        return self._begun("episode")

    def recordings(self, out: str | Path | None = None) -> Recordings:
        """The episode so far as a recording, as `fullpipe.run` gives one; the episode ends with it.
        Raises UserError without an episode, or where `out` exists."""
        episode = self._begun("recordings")
        self._episode = None
        raw = episode.stepper.finish()
        keeps = TemporaryDirectory(prefix="fullpipe-") if out is None else None
        folder = Path(keeps.name) / "run" if keeps is not None else Path(out or "")
        result = RunResult(arrow_tables(raw), {}, {"problems": []}, interrupted=raw["interrupted"])
        toml = tomli_w.dumps({**episode.setting.document, "seed": episode.seed})
        run = Run(episode.plan, toml, episode.setting.scenario.warmup)
        return Recordings([record_result(run, folder, result)], keeps)

    def _begun(self, call: str) -> Episode:
        if self._episode is None:
            raise UserError(f"{call}: there is no episode; call reset() first")
        return self._episode

    def _observation(self, step: Step) -> Floats:
        return within_bounds(step.rows if self._flows > 1 else step.rows[0])
