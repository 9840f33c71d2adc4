"""Many environments that step together, on several threads and without the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.gym.environment import CongestionEnv, Scenarios
from fullpipe.gym.episode import explained
from fullpipe.gym.observation import Floats
from fullpipe.gym.rewards import FlowStep, default_reward

Array = npt.NDArray[Any]


class CongestionVectorEnv(gymnasium.vector.VectorEnv[Floats, Floats, Array]):
    """`num_envs` environments as `CongestionEnv`, each of a scenario that a function draws, or all
    of one with different seeds. Where an episode has ended, the next step begins another and
    ignores the action (Gymnasium's `AutoresetMode.NEXT_STEP`).

    Results do not depend on `threads`."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        scenario: Scenarios,
        num_envs: int,
        step: Literal["rtt", "ack"] = "rtt",
        reward: Callable[[Sequence[FlowStep]], float] = default_reward,
        threads: int | None = None,
    ) -> None:
        """`threads`: at most so many; one a processor by default."""
        if num_envs < 1 or (threads is not None and threads < 1):
            raise UserError("num_envs, threads: must be at least 1")
        self.envs = [CongestionEnv(scenario, step, reward) for _ in range(num_envs)]
        self.num_envs = num_envs
        self._threads = min(threads or os.cpu_count() or 1, num_envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._has_ended = np.zeros(num_envs, bool)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins a run in each. A single `seed` is the first one's, and counts up."""
        seeds = [None] * self.num_envs if seed is None else seed
        if isinstance(seeds, int):
            seeds = range(seeds, seeds + self.num_envs)
        infos: dict[str, Any] = {}
        observations = []
        for index, (env, seed_of_env) in enumerate(zip(self.envs, seeds, strict=True)):
            observation, info = env.reset(seed=seed_of_env, options=options)
            infos = self._add_info(infos, info, index)
            observations.append(observation)
        self._has_ended[:] = False
        return np.stack(observations), infos

    def step(self, actions: Floats) -> tuple[Floats, Array, Array, Array, dict[str, Any]]:
        """Steps each. Raises UserError for what is no action, which steps none of them."""
        try:
            wanted = np.asarray(actions, np.float64)
        except (TypeError, ValueError):
            shape = self.action_space.shape
            raise UserError(f"actions {actions!r}: must be numbers, as {shape}") from None
        if wanted.shape != self.action_space.shape:
            raise UserError(
                f"actions: have the shape {wanted.shape}, not {self.action_space.shape}"
            )
        going = [index for index in range(self.num_envs) if not self._has_ended[index]]
        episodes = [self.envs[index].episode for index in going]
        for episode, index in zip(episodes, going, strict=True):
            episode.check(wanted[index])
        for episode, index in zip(episodes, going, strict=True):
            episode.decide(wanted[index])
        until = [episode.until() for episode in episodes]
        with explained():
            acked = _native.advance_all(
                [episode.stepper for episode in episodes],
                [at_ns for at_ns, _ in until],
                any(stops_at_acks for _, stops_at_acks in until),
                self._threads,
            )
        done = dict(zip(going, zip(episodes, acked, strict=True), strict=True))
        rows, infos = [], dict[str, Any]()
        for index, env in enumerate(self.envs):
            if index in done:
                episode, agent = done[index]
                *row, info = env.outcome(episode.look(agent))
            else:
                observation, info = env.reset()
                row = [observation, 0.0, False, False]
            rows.append(row)
            infos = self._add_info(infos, info, index)
        observations, rewards, terminated, truncated = zip(*rows, strict=True)
        self._has_ended = np.array(terminated) | np.array(truncated)
        return (
            np.stack(observations),
            np.array(rewards, np.float32),
            np.array(terminated),
            np.array(truncated),
            infos,
        )
