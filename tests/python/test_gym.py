"""The Gymnasium environment: the simulator in steps."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
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


@pytest.mark.parametrize(("action", "factor"), [(1.0, 2.0), (0.5, 2**0.5), (-1.0, 0.5)])
def test_ack_by_ack_an_action_changes_the_window_as_much_in_a_round_trip(
    action: float, factor: float
) -> None:
    """As slow start does (RFC 5681 section 3.1): a packet more for each delivered doubles it."""
    path = {"rate": "10gbit", "rtt": "100ms", "buffer": "4bdp"}
    env = CongestionEnv({**SCENARIO, "path": path}, "ack")
    _, info = env.reset(seed=1)
    windows = []
    while info["t_s"] < 1.3:
        now = 1.0 if info["t_s"] < 0.7 else action
        observation, *_, info = env.step(np.array([now], np.float32))
        windows.append((info["t_s"], 2 ** float(observation[0])))

    def at(wanted_s: float) -> float:
        return min(windows, key=lambda row: abs(row[0] - wanted_s))[1]

    for begin_s in (0.4, 0.5):
        assert at(begin_s + 0.1) / at(begin_s) == pytest.approx(2, rel=0.05)
    for begin_s in (0.95, 1.05):
        assert at(begin_s + 0.1) / at(begin_s) == pytest.approx(factor, rel=0.05)


def test_agents_of_unequal_round_trips_each_decide_in_their_own() -> None:
    flows = [{"cc": "agent", "rtt": "100ms"}, {"cc": "agent", "rtt": "20ms"}]
    env = CongestionEnv({**SCENARIO, "path": {"rate": "10gbit", "rtt": "20ms"}, "flow": flows})
    seen, info = env.reset(seed=1)
    decided_s: list[list[float]] = [[], []]
    while info["t_s"] < 1.0:
        for agent in info["agents"]:
            decided_s[agent].append(info["t_s"])
        before = seen
        seen, *_, info = env.step(np.array([0.5, 0.1], np.float32))
        for agent in {0, 1} - {*info["agents"]}:
            assert np.array_equal(seen[agent], before[agent])
    flows_of = zip(seen, decided_s, (0.1, 0.02), (0.5, 0.1), strict=True)
    for row, times_s, rtt_s, action in flows_of:
        assert np.diff(times_s) == pytest.approx(rtt_s, rel=0.06)
        grown = np.log2(10) + action * len(times_s)
        assert row[0] == pytest.approx(grown, abs=0.05 + action)


@pytest.mark.parametrize("wrong", [[np.nan, 0.0], [0.0, np.inf], [1.0], [0.0] * 3, [], 0.0, "up"])
def test_what_is_no_action_is_refused_and_changes_nothing(wrong: Any) -> None:
    scenario = SCENARIO | {"flow": [{"cc": "agent", "count": 2}]}
    asked, spared = CongestionEnv(scenario), CongestionEnv(scenario)
    asked.reset(seed=1), spared.reset(seed=1)
    with pytest.raises(UserError, match="action"):
        asked.step(wrong)
    for action in ([0.5, -0.5], [0.0, 0.0]):
        wanted = np.array(action, np.float32)
        assert np.array_equal(asked.step(wanted)[0], spared.step(wanted)[0])


@pytest.mark.parametrize("returned", [np.nan, np.inf, None, "much", np.zeros(2)])
def test_a_reward_that_is_no_finite_number_is_refused(returned: Any) -> None:
    env = CongestionEnv(SCENARIO, reward=lambda flows: returned)
    env.reset(seed=1)
    with pytest.raises(UserError, match=r"reward: returned .*; must return a finite number"):
        env.step(np.zeros(1, np.float32))


def rewarded(link: dict[str, Any], window: Any, after_s: float, step: Any = "rtt") -> float:
    """Mean reward a second, with a window in packets at a time."""
    scenario = {"duration": "12s", "link": [{"name": "a", **link}], "flow": [{"cc": "agent"}]}
    env = CongestionEnv(scenario, step)
    seen, info = env.reset(seed=5)
    total, is_over = 0.0, False
    while not is_over:
        t_s = info["t_s"]
        action = np.clip([np.log2(window(t_s)) - seen[0]], -1, 1).astype(np.float32)
        seen, reward, _, is_over, info = env.step(action)
        total += reward if t_s > after_s else 0.0
    return total / (12 - after_s)


@pytest.mark.parametrize("step", ["rtt", "ack"])
@pytest.mark.parametrize(("first", "then", "window"), [(50, 5, 30), (5, 50, 300)])
def test_a_full_link_earns_its_seconds_after_its_rate_changed(
    first: int, then: int, window: int, step: Any
) -> None:
    """Of 80 ms at 5 Mbit/s, 33 packets are the BDP. The buffer holds either window."""
    link = {"delay": "40ms", "buffer": "400pkt"}
    steps = {"rate": f"{first}mbit", "rate_steps": [["2s", f"{then}mbit"]]}
    changed = rewarded(link | steps, lambda _: window, 6, step)
    constant = rewarded(link | {"rate": f"{then}mbit"}, lambda _: window, 6, step)
    assert changed == pytest.approx(constant, abs=0.03) and 0.8 < constant < 1.0


def test_delay_of_an_empty_path_costs_nothing_as_it_changes(tmp_path: Path) -> None:
    (tmp_path / "rise.delay").write_text("0 20\n3000 60\n15000 60\n")
    by_trace = {"rate": "20mbit", "delay_trace": str(tmp_path / "rise.delay")}
    by_steps = {"rate": "20mbit", "delay": "20ms", "delay_steps": [["3s", "60ms"]]}
    back = {"reverse": {"delay": "0s"}}
    usual = rewarded({"rate": "20mbit", "delay": "60ms", **back}, lambda _: 120, 5)
    by_steps |= back
    for link in (by_trace, by_steps):
        assert rewarded(link, lambda _: 120, 5) == pytest.approx(usual, abs=0.02)


def test_of_a_rate_trace_each_opportunity_earns_its_share(tmp_path: Path) -> None:
    """24 Mbit/s for half a second, 12 Mbit/s for the next, by one and two packets a ms."""
    rows = [ms for ms in range(1, 1001) for _ in range(2 if ms <= 500 else 1)]
    (tmp_path / "half.trace").write_text("".join(f"{ms}\n" for ms in rows))
    link = {"rate_trace": str(tmp_path / "half.trace"), "delay": "20ms", "buffer": "200pkt"}
    assert rewarded(link, lambda _: 80, 4) == pytest.approx(0.8, abs=0.2)


def test_an_outage_earns_nothing_and_spoils_nothing() -> None:
    """What is delivered in the three seconds after a second of outage is worth three seconds."""
    link = {"rate": "10mbit", "delay": "20ms", "buffer": "200pkt", "outage": [["2s", "1s"]]}
    worth: dict[float, float] = {}

    def reward(flows: Any) -> float:
        (flow,) = flows
        assert flow.packet_s == 0.0012 and flow.base_rtt_s == 0.04
        return float(flow.packet_s * flow.delivered)

    scenario = {"duration": "6s", "link": [{"name": "a", **link}], "flow": [{"cc": "agent"}]}
    env = CongestionEnv(scenario, reward=reward)
    seen, info = env.reset(seed=1)
    is_over = False
    while not is_over:
        action = np.clip([np.log2(60) - seen[0]], -1, 1).astype(np.float32)
        seen, earned, _, is_over, info = env.step(action)
        worth[info["t_s"]] = earned
    assert sum(one for t_s, one in worth.items() if 2.1 < t_s < 3.0) < 0.01
    assert sum(one for t_s, one in worth.items() if t_s > 3.0) == pytest.approx(3.0, rel=0.06)


def test_info_tells_what_no_sender_knows() -> None:
    scenario = {
        "duration": "4s",
        "link": [{"name": "a", "rate": "10mbit", "delay": "20ms", "rate_steps": [["2s", "5mbit"]]}],
        "flow": [{"cc": "agent"}],
    }
    env = CongestionEnv(scenario)
    _, info = env.reset(seed=3)
    rows = []
    while info["t_s"] < 3.9:
        *_, info = env.step(np.array([np.clip(1.5 - info["t_s"], 0, 0.3)], np.float32))
        rows.append(info)
    recording = env.recordings()
    assert recording.seeds == [info["seed"]]
    queues = recording.pandas("queue_samples")
    queues = queues[queues.queue == "a.forward"].set_index("t_us")
    least, most = queues.queue_packets.loc[3e6:].agg(["min", "max"])
    late = [row for row in rows if row["t_s"] > 3]
    assert most > 0 and all(least - 2 <= row["queue_packets"] <= most + 2 for row in late)
    assert {row["rate_bps"] for row in late} == {5e6} and rows[5]["rate_bps"] == 10e6
    assert np.mean([row["goodput_bps"] for row in late]) == pytest.approx(
        5e6 * 1448 / 1514, rel=0.1
    )
    assert {row["base_rtt_s"] for row in late} == {0.04}


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
        rates.add(env.episode.plan["path"]["rate_bps"])
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
    with pytest.raises(UserError, match=r"reward 3: must be a function"):
        CongestionEnv(SCENARIO, reward=3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"scenario None: must be a TOML file, or a table"):
        CongestionEnv(None)  # type: ignore[arg-type]
    env = CongestionEnv(SCENARIO)
    with pytest.raises(UserError, match="reset"):
        env.step(np.zeros(1, np.float32))
    env.reset()
    env.recordings()
    with pytest.raises(UserError, match="no episode"):
        env.recordings()
    with pytest.raises(fullpipe.UserError, match="agent"):
        fullpipe.run(SCENARIO)
