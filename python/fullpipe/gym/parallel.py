"""Several agents with a reward each, in the interface of PettingZoo's parallel environments, which
need not be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from fullpipe.base.errors import UserError
from fullpipe.congestion.policy import FEATURES
from fullpipe.gym.environment import CongestionEnv, Scenarios
from fullpipe.gym.episode import Step
from fullpipe.gym.observation import LARGEST, LEAST, Floats, within_bounds
from fullpipe.gym.rewards import FlowStep, finite, flow_reward

Rewards = dict[str, float]
Flags = dict[str, bool]
Infos = dict[str, dict[str, Any]]
_OF_EPISODE = ("t_s", "seed", "agent", "agents")


class CongestionParallelEnv:
    """As `CongestionEnv`, with agents `agent_0`, `agent_1`, ... that each have an observation, an
    action of one number, and a reward. `infos[agent]["decides"]` says whether the agent's
    observation is new and its next action counts. An agent leaves when its flow has finished."""

    metadata = {"render_modes": [], "name": "fullpipe_congestion_v0"}  # noqa: RUF012
    render_mode = None

    def __init__(
        self,
        scenario: Scenarios,
        step: Literal["rtt", "ack"] = "rtt",
        reward: Callable[[FlowStep, int], float] = flow_reward,
    ) -> None:
        """`scenario`, `step`: as of `CongestionEnv`. `reward`: computes an agent's reward from its
        step and the number of agents; the default is its part of `default_reward`."""
        self._env = CongestionEnv(scenario, step)
        self._reward = reward
        self.possible_agents = [f"agent_{index}" for index in range(self._env.agents)]
        self.agents: list[str] = []
        self._actions = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._observations = spaces.Box(LEAST, LARGEST, (len(FEATURES),), np.float32)

    @property
    def unwrapped(self) -> CongestionParallelEnv:
        """The environment itself."""
        return self

    @property
    def num_agents(self) -> int:
        """How many agents have not finished."""
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        """How many agents the scenario has."""
        return len(self.possible_agents)

    def observation_space(self, agent: str) -> spaces.Box:
        """The same for all agents."""
        return self._observations

    def action_space(self, agent: str) -> spaces.Box:
        """The same for all agents."""
        return self._actions

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], Infos]:
        """Begins a run, as `CongestionEnv.reset`."""
        self._env.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        begun = self._env.episode.latest
        return self._observed(begun), self._infos(begun)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Floats], Rewards, Flags, Flags, Infos]:
        """Applies the actions of all agents that are left and runs to the next decision of one.
        Raises UserError for what is no action of each, which changes nothing."""
        if not isinstance(actions, Mapping) or set(actions) != set(self.agents):
            raise UserError(f"actions: must be of {', '.join(self.agents) or 'no agent'}")
        wanted = [
            self._action_of(agent, actions[agent]) if agent in actions else 0.0
            for agent in self.possible_agents
        ]
        episode = self._env.episode
        episode.decide(wanted)
        done = episode.advance()
        count = len(self.possible_agents)
        ends = dict(zip(self.possible_agents, done.finished, strict=True))
        rewards = {
            agent: finite(self._reward(flow, count))
            for agent, flow in zip(self.possible_agents, done.flows, strict=True)
            if agent in self.agents
        }
        observations, infos = self._observed(done), self._infos(done)
        terminated = {agent: ends[agent] for agent in self.agents}
        truncated = dict.fromkeys(self.agents, episode.is_over)
        self.agents = [
            agent for agent in self.agents if not terminated[agent] and not episode.is_over
        ]
        return observations, rewards, terminated, truncated, infos

    def render(self) -> None:
        """Shows nothing: `CongestionEnv.recordings` makes pages."""

    def close(self) -> None:
        """Ends the environment."""
        self._env.close()

    def _action_of(self, agent: str, action: Any) -> float:
        try:
            values = np.asarray(action, np.float64)
        except (TypeError, ValueError):
            raise UserError(f"action of {agent}: {action!r}; must be one number, as (1,)") from None
        if values.shape != (1,):
            raise UserError(f"action of {agent}: has the shape {values.shape}, must be (1,)")
        return float(values[0])

    def _observed(self, step: Step) -> dict[str, Floats]:
        rows = within_bounds(step.rows)
        return {
            agent: rows[index]
            for index, agent in enumerate(self.possible_agents)
            if agent in self.agents
        }

    def _infos(self, step: Step) -> Infos:
        common = {key: step.info[key] for key in _OF_EPISODE}
        return {
            agent: {
                **common,
                "decides": index in step.deciding,
                **{
                    key: float(np.atleast_1d(values)[index])
                    for key, values in step.info.items()
                    if key not in _OF_EPISODE
                },
            }
            for index, agent in enumerate(self.possible_agents)
            if agent in self.agents
        }
