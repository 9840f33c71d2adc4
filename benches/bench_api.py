"""What Python costs: ACKs a CPU second of a class, compared with an algorithm in C, and steps a CPU
second of the Gymnasium environment.

Exit status 1 where a target is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import fullpipe
from fullpipe.congestion.userfiles import classes
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

ACKS_PER_S = 200_000
STEPS_PER_S = {"ack": 30_000.0, "rtt": 100_000 / 60}
ROUNDS = 5


class Aimd(fullpipe.Controller):
    """AIMD that reads the usual facts, and counts its calls."""

    flags = fullpipe.Controller.OWNS_CWND
    calls = 0

    def init(self) -> None:
        """Nothing is lost yet."""
        self.cut_at = 0

    def on_ack(self, ack: fullpipe.Ack) -> None:
        """A packet a round trip; nine tenths at a loss, once a round trip."""
        Aimd.calls += 1
        conn, ctl = self.conn, self.ctl
        if ack.losses and conn.delivered > self.cut_at:
            self.cut_at = conn.delivered + conn.inflight
            ctl.cwnd = ctl.ssthresh = max(ctl.cwnd * 9 // 10, 2)
        elif ack.rtt_us > 0:
            left = self.slow_start(ack.acked_sacked) if ctl.cwnd < ctl.ssthresh else 1
            self.additive_increase(ctl.cwnd, left)


def plan(cc: str) -> dict[str, Any]:
    """One flow over 50 Mbit/s and 40 ms for a simulated minute."""
    path = {"rate": "50mbit", "rtt": "40ms", "buffer": "1bdp"}
    return resolve(make_scenario({"duration": "60s", "path": path, "flow": [{"cc": cc}]}))


def seconds(work: Callable[[], Any]) -> float:
    """The least CPU time of some rounds; other load only adds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def run(planned: dict[str, Any]) -> None:
    """Runs a plan and drops what it left."""
    SimEngine().run(planned, lambda _done: True, {})


def acks() -> bool:
    """A class against C."""
    mine = plan(classes.hand_over(Aimd))
    run(mine)
    calls = Aimd.calls
    per_s = calls / seconds(lambda: run(mine))
    c_s = seconds(lambda: run(plan("reno")))
    print(f"a class: {per_s:,.0f} ACKs a CPU second, simulation included (target {ACKS_PER_S:,});")
    print(f"    {calls:,} ACKs a run; a run of reno in C: {c_s:.2f} CPU s")
    return per_s >= ACKS_PER_S


def steps() -> bool:
    """The environment with the same path, made as users make it."""
    import gymnasium
    import numpy as np

    import fullpipe.gym  # noqa: F401 - registers it

    path = {"rate": "50mbit", "rtt": "40ms", "buffer": "1bdp"}
    asked = {"duration": "20s", "path": path, "flow": [{"cc": "agent"}]}
    fits = True
    for kind, target in STEPS_PER_S.items():
        env = gymnasium.make("fullpipe/Congestion-v0", scenario=asked, step=kind)
        action = np.full(1, 0.1 if kind == "rtt" else 0.0, np.float32)
        best = 0.0
        for seed in range(ROUNDS):
            env.reset(seed=seed)
            count, begun, ended = 0, time.process_time(), False
            while not ended:
                _, _, terminated, truncated, _ = env.step(action)
                ended, count = terminated or truncated, count + 1
            best = max(best, count / (time.process_time() - begun))
        print(f"a step {'an ACK' if kind == 'ack' else 'a round trip'}: {best:,.0f} steps a CPU "
              f"second (target {target:,.0f}), {count:,} an episode")  # fmt: skip
        fits &= best >= target
    return fits


if __name__ == "__main__":
    sys.exit(0 if all([acks(), steps()]) else 1)
