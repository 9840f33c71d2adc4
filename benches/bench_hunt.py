"""Does the hunt rediscover known faults by itself? Five of them, each with a fixed seed.

    python benches/bench_hunt.py [--budget 1min]

Prints what was found and the CPU seconds that the hunt took; exit status 1 where a fault was not
found, or a hunt took more than two cores do in five minutes. Each fault's condition is in its
entry.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from fullpipe.base import units
from fullpipe.hunt.hunting import PACKETS_A_SECOND, Finding, Hunt
from fullpipe.hunt.space import Worst, described

_LIMIT_CPU_S = 2 * 300
_SEED = 1
_OTHERS = ("cubic", "bbr1", "bbr3")


@dataclass(frozen=True)
class Fault:
    """A known fault: whose, where a hunt must look, and what it must find."""

    name: str
    cc: str
    worst: Worst
    is_it: Callable[[Finding], bool]


FAULTS = (
    Fault("BBRv1 loses packets in shallow buffers (5 % and more below 1 BDP, none in 5 BDP)",
          "bbr1", "loss", lambda f: "trace" not in f.needs
          and f.path["buffer_bdp"] < 1 and f.value > 0.05
          and f.profile.get("buffer_bdp", {5: 0.0})[5] < 0.01),
    Fault("BBRv1 starves by jitter (below half its share, not without jitter)",
          "bbr1", "starvation", lambda f: "jitter_of_one_ms" in f.needs and f.value < 0.5
          and f.profile["jitter_of_one_ms"][0] > 0.6),
    Fault("BBRv3's 2 % cliff (utilisation halves beyond 2 % of loss, not at 1 %)",
          "bbr3", "utilisation", lambda f: "loss_percent" in f.needs
          and f.profile["loss_percent"][1] > 0.8 and f.profile["loss_percent"][4] < 0.6),
    Fault("CUBIC collapses under random loss (below 0.4, where BBRv1 has over 0.8)",
          "cubic", "utilisation", lambda f: "loss_percent" in f.needs and f.value < 0.4
          and f.others["bbr1"] > 0.8),
    Fault("BBR's RTT unfairness (BBRv1: below half its share, not with equal RTTs)",
          "bbr1", "starvation", lambda f: "rtt_ratio" in f.needs and f.value < 0.5
          and f.profile["rtt_ratio"][1] > 0.6),
)  # fmt: skip


def main() -> int:
    """Runs the hunts; several faults may come of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="1min", help="of each hunt; 1min")
    budget = units.parse_time(parser.parse_args().budget) / 1e9 * PACKETS_A_SECOND
    hunts: dict[tuple[str, Worst], tuple[list[Finding], float]] = {}
    missed = False
    for fault in FAULTS:
        asked = (fault.cc, fault.worst)
        if asked not in hunts:
            begin = time.process_time()
            found = Hunt(fault.cc, fault.worst, _SEED, budget).run(_OTHERS)
            hunts[asked] = (found, time.process_time() - begin)
        found, took = hunts[asked]
        hit = next((one for one in found if fault.is_it(one)), None)
        missed |= hit is None or took > _LIMIT_CPU_S
        print(f"{'found ' if hit else 'MISSED'} {took:4.0f} CPU s  {fault.name}")
        for one in [hit] if hit else found:
            path = ", ".join(f"{name} {value}" for name, value in described(one.path).items())
            print(f"               {one.value:.3g} at {path}")
            for name, profile in one.profile.items():
                steps = ", ".join(f"{value:g}: {seen:.2f}" for value, seen in profile.items())
                print(f"               by {name}: {steps}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
