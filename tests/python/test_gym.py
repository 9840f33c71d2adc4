"""The Gymnasium environment: the simulator in steps."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fullpipe
from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.gym import FEATURES, CongestionEnv
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

SCENARIO: dict[str, Any] = {
    "duration": "4s",
    "path": {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"},
    "flow": [{"cc": "agent"}],
}
BDP_PACKETS = 10e6 * 0.02 / 8 / 1500


def episode(env: CongestionEnv, actions: Any, seed: int = 1) -> tuple[list[Any], float]:
    seen, total = [env.reset(seed=seed)[0]], 0.0
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(np.array(action, np.float32))
        seen.append(observation)
        total += reward
        if terminated or truncated:
            break
    return seen, total


@pytest.mark.parametrize("step", ["rtt", "ack"])
@pytest.mark.parametrize("agents", [1, 2])
def test_gymnasiums_own_checks_pass(step: Any, agents: int) -> None:
    scenario = SCENARIO | {"flow": [{"cc": "agent", "count": agents}, {"cc": "cubic"}]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(CongestionEnv(scenario, step), skip_render_check=True)
    made = gymnasium.make("fullpipe/Congestion-v0", scenario=scenario, step=step)
    observation, _ = made.reset(seed=3)
    assert observation.shape == ((len(FEATURES),) if agents == 1 else (2, len(FEATURES)))


def test_a_window_that_is_left_alone_is_delivered_once_a_round_trip() -> None:
    """Little's law: 10 packets of 1448 bytes in 20 ms; an idle htb adds no time of sending."""
    env = CongestionEnv(SCENARIO)
    episode(env, [[0.0]] * 10_000)
    (flow,) = env.recordings().metrics().to_pylist()
    assert flow["goodput_bps"] == pytest.approx(10 * 1448 * 8 / 0.02, rel=0.01)
    assert flow["flow"] == flow["cc"] == "agent" and flow["cwnd_mean_packets"] == 10


def test_of_round_trips_that_spread_the_reward_knows_the_episodes_own() -> None:
    """A window that fills no queue measures the round trip of the empty path."""
    found: list[tuple[float, float]] = []

    def reward(flows: Any) -> float:
        found.append((flows[0].rtt_s, flows[0].base_rtt_s))
        return 0.0

    env = CongestionEnv({**SCENARIO, "rtt_spread": "9ms"}, reward=reward)
    for seed in (1, 2):
        episode(env, [[0.0]] * 5, seed)
    episodes = found[:5], found[5:]
    for steps in episodes:
        ((base_s,), rtts_s) = {base_s for _, base_s in steps}, [rtt_s for rtt_s, _ in steps]
        assert min(rtts_s) == pytest.approx(base_s, abs=2e-6)
    assert episodes[0][0][1] != episodes[1][0][1]


def test_an_action_of_one_doubles_the_window_in_a_round_trip_either_way() -> None:
    by_rtt = CongestionEnv(SCENARIO)
    seen, _ = episode(by_rtt, [[1.0]] * 2)
    assert [round(2 ** row[0]) for row in seen] == [10, 20, 40]
    by_ack = CongestionEnv(SCENARIO, "ack")
    by_ack.reset(seed=1)
    begun_s, cwnd = 0.0, 10.0
    while cwnd < 20:
        observation, *_, info = by_ack.step(np.array([1.0], np.float32))
        begun_s = begun_s or info["t_s"]
        cwnd = 2 ** observation[0]
    assert 0.3 * 0.02 < info["t_s"] - begun_s < 2 * 0.02


def test_seeds_decide_everything_and_differ() -> None:
    scenario = SCENARIO | {"path": {**SCENARIO["path"], "loss": "1%"}}
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (100, 1))
    for step in ("rtt", "ack"):
        env = CongestionEnv(scenario, step)  # type: ignore[arg-type]
        first, reward = episode(env, actions, seed=5)
        again, same = episode(env, actions, seed=5)
        other, _ = episode(env, actions, seed=6)
        assert np.array_equal(first, again) and reward == same
        assert not np.array_equal(first[-1], other[-1])


def test_stopping_for_decisions_changes_nothing_of_a_run() -> None:
    """The same plan in steps and at once, where the decision is the window that stands."""
    plan = resolve(make_scenario(SCENARIO | {"flow": [{"cc": "reno"}, {"cc": "cubic"}]}))
    plan["flows"][0]["cc"] = {"name": "agent", "algorithm": "agent", "params": []}
    text = json.dumps(plan)
    stepper = _native.Stepper(text)
    while not stepper.is_over:
        stepper.advance(2**63, True)
    assert {name: table for name, table in _native.sim.run(text).items()
            if name not in ("health",)} == stepper.finish()  # fmt: skip


def test_a_full_link_without_a_queue_earns_the_episodes_length() -> None:
    """The window at the BDP, from the start on."""
    env = CongestionEnv(SCENARIO)
    up = np.log2((BDP_PACKETS + 2) / 10)
    _, total = episode(env, [[up]] + [[0.0]] * 10_000)
    assert 0.85 * 4 < total < 4
    _, flooded = episode(env, [[1.0]] * 10_000)
    assert flooded < 0.5 * total


def test_agents_decide_about_their_own_flows() -> None:
    env = CongestionEnv(SCENARIO | {"flow": [{"cc": "agent"}, {"cc": "agent", "start": "1s"}]})
    seen, _ = episode(env, [[0.3, 0.0]] * 5 + [[0.0, 0.0]] * 10_000)
    assert seen[-1][0][0] == pytest.approx(np.log2(10) + 1.5, abs=0.1)
    assert seen[-1][1][0] == pytest.approx(np.log2(10))
    flows = env.recordings().metrics().to_pylist()
    assert [flow["flow"] for flow in flows] == ["agent", "agent-2"]
    assert flows[0]["goodput_bps"] > flows[1]["goodput_bps"] > 0


def test_a_scenario_can_be_drawn_for_each_episode() -> None:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return SCENARIO | {"path": {"rate": f"{rng.integers(5, 50)}mbit", "rtt": "20ms"}}

    env = CongestionEnv(draw)
    rates = set()
    for seed in (1, 1, 2, 3):
        env.reset(seed=seed)
        rates.add(env._plan["path"]["rate_bps"])
    assert len(rates) > 1


def test_an_agent_that_finishes_terminates() -> None:
    env = CongestionEnv(SCENARIO | {"flow": [{"cc": "agent", "amount": "100kB"}]})
    env.reset(seed=1)
    for _ in range(100):
        *_, terminated, truncated, _ = env.step(np.zeros(1, np.float32))
        if terminated:
            break
    assert terminated and not truncated


def test_wrong_use_is_a_user_error() -> None:
    with pytest.raises(UserError, match='no flow has cc = "agent"'):
        CongestionEnv(SCENARIO | {"flow": [{"cc": "cubic"}]})
    with pytest.raises(UserError, match=r"step 'day'"):
        CongestionEnv(SCENARIO, "day")  # type: ignore[arg-type]
    env = CongestionEnv(SCENARIO)
    with pytest.raises(UserError, match="reset"):
        env.step(np.zeros(1, np.float32))
    env.reset()
    env.recordings()
    with pytest.raises(UserError, match="no episode"):
        env.recordings()
    with pytest.raises(fullpipe.UserError, match="agent"):
        fullpipe.run(SCENARIO)
