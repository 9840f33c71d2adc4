"""Many environments at once, many agents with a reward each, and sets of paths."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.gym import (
    CongestionEnv,
    CongestionParallelEnv,
    CongestionVectorEnv,
    PathSet,
    default_reward,
    random_path,
)

PATH = {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"}
SCENARIO: dict[str, Any] = {"duration": "1s", "path": PATH, "flow": [{"cc": "agent"}]}


def draw(rng: np.random.Generator) -> dict[str, Any]:
    return SCENARIO | {"path": {**PATH, "rate": f"{rng.integers(5, 50)}mbit", "loss": "1%"}}


@pytest.mark.parametrize("step", ["rtt", "ack"])
@pytest.mark.parametrize("threads", [1, 2])
def test_environments_of_a_batch_do_what_each_does_alone(step: Any, threads: int) -> None:
    batch = CongestionVectorEnv(draw, 3, step, threads=threads)
    seen, infos = batch.reset(seed=7)
    alone = [CongestionEnv(draw, step) for _ in range(3)]
    begun = [env.reset(seed=7 + index) for index, env in enumerate(alone)]
    assert np.array_equal(seen, [row for row, _ in begun])
    assert [*infos["seed"]] == [info["seed"] for _, info in begun]
    ended = [False] * 3
    for turn in range(120):
        action = np.full((3, 1), 0.4 * np.sin(turn), np.float32)
        seen, rewards, terminated, truncated, infos = batch.step(action)
        for index, env in enumerate(alone):
            if ended[index]:
                observation, info = env.reset()
                row = (observation, 0.0, False, False)
            else:
                *row, info = env.step(action[index])
            assert np.array_equal(seen[index], row[0])
            assert rewards[index] == np.float32(row[1])
            assert (terminated[index], truncated[index]) == (row[2], row[3])
            assert infos["t_s"][index] == info["t_s"]
            ended[index] = row[2] or row[3]
    assert step == "ack" or max(env.episode.seed for env in alone) > 0


def test_gymnasium_makes_batches() -> None:
    batch = gymnasium.make_vec("fullpipe/Congestion-v0", num_envs=2, scenario=SCENARIO)
    assert batch.reset(seed=1)[0].shape == (2, 8)
    assert batch.step(batch.action_space.sample())[1].shape == (2,)


def test_an_action_that_is_none_steps_no_environment_of_a_batch() -> None:
    batch = CongestionVectorEnv(SCENARIO, 2)
    batch.reset(seed=1)
    wrong: Any
    for wrong in ([[0.5], [np.nan]], [[0.5]], [0.5, 0.5], [[0.5], [0.5, 0.5]], [["up"], [0.5]]):
        with pytest.raises(UserError, match="action"):
            batch.step(wrong)
    assert batch.step(np.zeros((2, 1), np.float32))[0][:, 0] == pytest.approx(np.log2(10))


class Fixed(fullpipe.Controller):
    """A window of ten packets."""

    flags = fullpipe.Controller.OWNS_CWND

    def on_ack(self, ack: fullpipe.Ack) -> None:
        self.ctl.cwnd = 10


class Failing(Fixed):
    """Divides by zero."""

    def on_ack(self, ack: fullpipe.Ack) -> None:
        self.ctl.cwnd = 10 // self.conn.app_limited


def test_classes_run_beside_agents_on_threads_without_a_deadlock() -> None:
    """Their calls take the GIL, so that a batch that kept it would wait for ever."""
    batch = CongestionVectorEnv(SCENARIO | {"flow": [{"cc": "agent"}, {"cc": Fixed}]}, 2, threads=2)
    batch.reset(seed=1)
    for _ in range(20):
        batch.step(np.zeros((2, 1), np.float32))
    flows = batch.envs[0].recordings().metrics().to_pylist()
    assert flows[1]["cwnd_mean_packets"] == 10


@pytest.mark.parametrize("count", [1, 2])
def test_what_a_class_beside_an_agent_raises_is_an_error_with_its_line(count: int) -> None:
    scenario = SCENARIO | {"flow": [{"cc": "agent"}, {"cc": Failing}]}
    with pytest.raises(UserError, match=r"test_gym_many\.py:\d+: in on_ack .*ZeroDivisionError"):
        if count == 1:
            env = CongestionEnv(scenario)
            env.reset(seed=1)
            for _ in range(10):
                env.step(np.zeros(1, np.float32))
        else:
            batch = CongestionVectorEnv(scenario, 2)
            batch.reset(seed=1)
            for _ in range(10):
                batch.step(np.zeros((2, 1), np.float32))


def test_rewards_of_agents_add_up_to_the_reward_of_all() -> None:
    scenario = SCENARIO | {"flow": [{"cc": "agent", "rtt": "60ms"}, {"cc": "agent"}]}
    parts, whole = CongestionParallelEnv(scenario), CongestionEnv(scenario, reward=default_reward)
    seen, infos = parts.reset(seed=4)
    both, info = whole.reset(seed=4)
    decided = {agent: 0 for agent in parts.agents}
    while parts.agents:
        assert np.array_equal(np.stack([*seen.values()]), both)
        assert info["agents"] == [at for at, one in enumerate(infos.values()) if one["decides"]]
        for agent, one in infos.items():
            decided[agent] += one["decides"]
        actions = {"agent_0": np.array([0.1]), "agent_1": np.array([-0.05])}
        seen, rewards, terminated, truncated, infos = parts.step(actions)
        both, reward, *_, info = whole.step(np.array([0.1, -0.05]))
        assert sum(rewards.values()) == pytest.approx(reward)
    assert truncated == {"agent_0": True, "agent_1": True} and not any(terminated.values())
    assert decided["agent_1"] > 2 * decided["agent_0"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"agent_0": [0.0]},
        [[0.0], [0.0]],
        {"agent_0": ["up"], "agent_1": [0.0]},
        {"agent_0": 0.5, "agent_1": [0.0]},
        {"agent_0": [np.nan], "agent_1": [0.0]},
    ],
)
def test_what_is_no_action_of_each_agent_is_refused_and_changes_nothing(wrong: Any) -> None:
    scenario = SCENARIO | {"flow": [{"cc": "agent", "count": 2}]}
    asked, spared = CongestionParallelEnv(scenario), CongestionParallelEnv(scenario)
    asked.reset(seed=1), spared.reset(seed=1)
    with pytest.raises(UserError, match="action"):
        asked.step(wrong)
    right = {"agent_0": [0.5], "agent_1": [-0.5]}
    after = [environment.step(right)[0] for environment in (asked, spared)]
    assert np.array_equal(after[0]["agent_0"], after[1]["agent_0"])


def test_an_agent_leaves_when_its_flow_has_finished() -> None:
    flows = [{"cc": "agent", "amount": "50kB"}, {"cc": "agent"}]
    env = CongestionParallelEnv(SCENARIO | {"flow": flows})
    env.reset(seed=1)
    while "agent_0" in env.agents:
        _, _, terminated, _, _ = env.step({agent: np.zeros(1) for agent in env.agents})
    assert terminated["agent_0"] and env.agents == ["agent_1"]
    _, rewards, *_ = env.step({"agent_1": np.zeros(1)})
    assert [*rewards] == ["agent_1"]
    with pytest.raises(UserError, match="must be of agent_1"):
        env.step({"agent_0": np.zeros(1)})


def test_what_is_held_out_is_not_trained_on() -> None:
    paths = PathSet.drawn(random_path, 20, seed=3)
    train, held_out = paths.split(0.25, seed=1)
    assert (len(train), len(held_out)) == (15, 5)
    assert sorted(map(str, [*train, *held_out])) == sorted(map(str, paths))
    assert list(PathSet.drawn(random_path, 20, seed=3)) == list(paths)
    assert list(paths.split(0.25, seed=1)[1]) == list(held_out)
    env = CongestionEnv(train)
    rates = set()
    for _ in range(10):
        env.reset()
        rates.add(env.episode.plan["path"]["rate_bps"])
    assert len(rates) > 3
    with pytest.raises(UserError, match="leaves one part empty"):
        paths.split(0.0)
