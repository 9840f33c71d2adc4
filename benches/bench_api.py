"""What Python costs: ACKs a CPU second of a class, beside the same algorithm in C.

Exit status 1 where a target is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import fullpipe
from fullpipe.engines.sim import SimEngine
from fullpipe.outside import classes
from fullpipe.plan import resolve
from fullpipe.scenario import make_scenario

ACKS_PER_S = 200_000
ROUNDS = 5


class Aimd(fullpipe.Controller):
    """Looks at what such a thing looks at, and counts the calls."""

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
    """The least CPU time of some rounds: whatever else the machine does only adds."""
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


if __name__ == "__main__":
    sys.exit(0 if all([acks()]) else 1)
