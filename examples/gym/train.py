"""Trains a small agent to set a congestion window, and shows it beside CUBIC.

pip install 'fullpipe[gym]' cma; python train.py [--generations 15]; minutes on two cores.

The policy has seven numbers: three features, their squares, a bias, and a tanh. CMA-ES (the library
cma) looks for them: few numbers and noisy episodes are what evolution strategies are for, and
nothing of PyTorch's size is needed. All candidates of a generation meet the same random paths.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Sequence
from typing import Any

import cma
import numpy as np

import fullpipe
from fullpipe.gym import FEATURES, CongestionEnv, Floats

EPISODE_S = 10
EPISODES = 6
_SEEN = [[name for name, _, _ in FEATURES].index(name)
         for name in ("delay", "smoothed_delay", "lost")]  # fmt: skip
#: Grows on an empty path, shrinks by delay and loss: from zeros the search takes far longer.
START = [-1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.2]
EVALUATED = [
    {"rate": "10mbit", "rtt": "20ms"},
    {"rate": "50mbit", "rtt": "40ms"},
    {"rate": "20mbit", "rtt": "80ms", "loss": "1%"},
]


class Policy:
    """Action = tanh(w x + v x^2 + b) of delay, smoothed delay and the share lost: what tells how
    full the path is, whatever path it is."""

    size = 7

    def __init__(self, numbers: Sequence[float]) -> None:
        weights = np.asarray(numbers, np.float64)
        self._linear, self._squares, self._bias = weights[:3], weights[3:6], weights[6]

    def __call__(self, seen: Floats) -> Floats:
        """The action for an observation."""
        x = np.minimum(seen[_SEEN], 2.0)
        wanted = self._linear @ x + self._squares @ (x * x) + self._bias
        return np.array([np.tanh(wanted)], np.float32)


def draw(rng: np.random.Generator) -> dict[str, Any]:
    """A random path: rate and RTT over a factor of ten, buffer of half to four BDP."""
    rate, rtt = 5 * 10 ** rng.uniform(0, 1), 10 * 10 ** rng.uniform(0, 1)
    return scenario(
        {
            "rate": f"{rate:.3f}mbit",
            "rtt": f"{rtt:.3f}ms",
            "buffer": f"{2 ** rng.uniform(-1, 2):.3f}bdp",
            "loss": "1%" if rng.random() < 0.25 else "0%",
        },
        "agent",
    )


def scenario(path: dict[str, Any], cc: str) -> dict[str, Any]:
    """One flow over a path."""
    return {
        "duration": f"{EPISODE_S}s",
        "path": {"buffer": "1bdp"} | path,
        "flow": [{"cc": cc, "name": cc}],
    }


def play(env: CongestionEnv, policy: Policy, seed: int) -> float:
    """One episode; the reward over its length, 1 for a full link without a queue."""
    seen, _ = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        seen, reward, terminated, truncated, _ = env.step(policy(seen))
        total += reward
        ended = terminated or truncated
    return total / EPISODE_S


def cost(task: tuple[Sequence[float], int]) -> float:
    """What CMA-ES makes small: less the mean reward over a generation's paths."""
    numbers, generation = task
    env = CongestionEnv(draw)
    seeds = range(generation * EPISODES, (generation + 1) * EPISODES)
    return -float(np.mean([play(env, Policy(numbers), seed) for seed in seeds]))


def train(generations: int, workers: int) -> Policy:
    """The best policy that was found."""
    search = cma.CMAEvolutionStrategy(START, 0.2, {"seed": 1, "verbose": -9})
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for generation in range(generations):
            candidates = search.ask()
            costs = pool.map(cost, [(one, generation) for one in candidates])
            search.tell(candidates, costs)
            print(f"generation {generation + 1:2}: best {-min(costs):+.3f}, "
                  f"mean {-np.mean(costs):+.3f}", flush=True)  # fmt: skip
    return Policy(search.result.xfavorite)


def show(policy: Policy) -> None:
    """The agent and CUBIC, each alone, on paths that training did not draw."""
    print(f"{'path':32}{'flow':8}{'goodput':>13}{'RTT p95':>11}{'retransmitted':>15}")
    for path in EVALUATED:
        env = CongestionEnv(scenario(path, "agent"))
        play(env, policy, seed=1)
        for runs in (env.recordings(), fullpipe.run(scenario(path, "cubic"))):
            for row in runs.metrics().to_pylist():
                print(
                    f"{', '.join(path.values()):32}{row['flow']:8}"
                    f"{row['goodput_bps'] / 1e6:8.2f} Mbit/s{row['rtt_p95_us'] / 1e3:8.1f} ms"
                    f"{row['retransmit_ratio']:15.2%}"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=15)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    show(train(asked.generations, asked.workers))
