"""An algorithm on paths drawn at random: fairness, queue and use of its own flows alone, and its
share beside one flow of another kind.

The draw "training" is for choosing constants and mechanisms. "held-out", "held-out-2" and
"held-out-3" are for the figures that are published: nothing is chosen on them, and
docs/evidence/tarn.md says how often each was run. Prints Markdown, a row an algorithm, with
Wilson's 95 % intervals of the shares of paths. With --misses, the paths that fail too.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import fullpipe
from fullpipe.metrics import (
    View,
    goodput_bps,
    jain,
    phase_shares,
    queue_delay_rttmin,
    throughput_over_time,
)  # fmt: skip
from fullpipe.statistics.intervals import wilson

Floats = npt.NDArray[Any]

SEEDS = {"training": 20261125, "held-out": 32, "held-out-2": 33, "held-out-3": 34}
PACKET_BITS = 12_000
#: Goodput of a full link: a segment's data of its packet.
FULL = 1448 / 1500
#: Packets ms: rate times the square of the queueing delay, which tarn keeps (cc/tarn.h, `area`).
AREA = 16.0


@dataclass(frozen=True)
class DrawnPath:
    """One path and its flows; `measured_s` is how long they run after the last start."""

    rate_mbps: float
    rtt_ms: float
    buffer_bdp: float
    flows: int
    has_ratios: bool
    has_jitter: bool
    seed: int

    @property
    def measured_s(self) -> float:
        return max(60.0, 0.3 * self.rtt_ms)

    @property
    def most_queue(self) -> float:
        """The bound of the median queue in RTTmin: a half, or what the law itself asks for."""
        packets_per_ms = self.rate_mbps * 1e3 / PACKET_BITS
        return max(0.5, float(np.sqrt(AREA * self.flows / packets_per_ms)) / self.rtt_ms)

    def path(self) -> dict[str, str]:
        """Keys of the scenario's path."""
        jitter = {"jitter": "4ms", "jitter_shape": "slotted"} if self.has_jitter else {}
        return {
            "rate": f"{self.rate_mbps:.3f}mbit", "rtt": f"{self.rtt_ms:.3f}ms",
            "buffer": f"{self.buffer_bdp:.3f}bdp",
        } | jitter  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What own flows do on one path, and, beside one flow of another kind, twice the own share."""

    jain: float
    queue: float
    utilisation: float
    competing: float
    share: float

    def meets(self, path: DrawnPath) -> tuple[bool, bool, bool]:
        """Fairness, queue, utilisation."""
        return self.jain >= 0.95, self.queue <= path.most_queue, self.utilisation >= 0.97


def draw(count: int, seed: int) -> list[DrawnPath]:
    """`count` paths; a path has at least five packets of BDP for each of its flows."""
    rng = np.random.default_rng(seed)
    found: list[DrawnPath] = []
    while len(found) < count:
        rate, rtt, buffer, most = (
            float(np.exp(rng.uniform(np.log(low), np.log(high))))
            for low, high in ((8, 1000), (5, 200), (0.5, 16), (2, 64.99))
        )
        ratios, jitter = bool(rng.random() < 0.5), bool(rng.random() < 1 / 3)
        run_seed = int(rng.integers(1, 10**6))
        fitting = int(rate * 1e3 / PACKET_BITS * rtt / 5)
        if fitting >= 2:
            flows = min(int(most), fitting)
            found.append(DrawnPath(rate, rtt, buffer, flows, ratios, jitter, run_seed))
    return found


def run(path: DrawnPath, length_s: float, flows: list[dict[str, Any]], last_s: float) -> View:
    """The last seconds of one run."""
    scenario = {"duration": f"{length_s:.3f}s", "rtt_spread": "1pkt", "path": path.path()}
    recordings = fullpipe.run(scenario | {"flow": flows}, seeds=[path.seed], jobs=1)
    return View(recordings[0], length_s - last_s, length_s)


def measure(cc: str, other: str | None, path: DrawnPath) -> Outcome:
    """One path: own flows from starts over 4 s; and one beside `other`, if any."""
    flows = [
        {"cc": cc, "start": f"{round(4 * i / path.flows, 3)}s"}
        | ({"rtt": f"{path.rtt_ms * (1 + i % 3):.3f}ms"} if path.has_ratios else {})
        for i in range(path.flows)
    ]
    view = run(path, 4 + path.measured_s, flows, 20)
    _, rates = throughput_over_time(view, 10.0)
    competing = [phase_shares(view, i).get("avoidance", 0.0) for i in range(path.flows)]
    share = float("nan")
    if other is not None:
        mine, theirs = goodput_bps(run(path, 80, [{"cc": cc}, {"cc": other}], 60))
        share = float(2 * mine / (mine + theirs))
    return Outcome(
        float(np.mean([jain(rates[:, k]) for k in range(rates.shape[1])])),
        float(np.median(queue_delay_rttmin(view))),
        float(np.sum(goodput_bps(view)) / (path.rate_mbps * 1e6 * FULL)),
        float(np.mean(competing)), share,
    )  # fmt: skip


def part(met: npt.ArrayLike) -> str:
    """A part of the paths with Wilson's 95 % interval."""
    parts = np.asarray(met)
    low, high = wilson(int(parts.sum()), len(parts))
    return f"{parts.mean():.2f} ({low:.2f}-{high:.2f})"


def row(cc: str, other: str | None, paths: list[DrawnPath], found: list[Outcome]) -> str:
    """One algorithm's row of the table."""
    met = np.array([outcome.meets(path) for outcome, path in zip(found, paths, strict=True)])
    competing = np.array([outcome.competing for outcome in found])
    cells = [cc, *(part(met[:, k]) for k in range(3)), part(met.all(axis=1))]
    cells += [f"{competing.mean():.3f}", part(competing > 0.02)]
    if other is not None:
        share = np.array([outcome.share for outcome in found])
        low, median, high = np.quantile(share, (0.05, 0.5, 0.95))
        cells += [part((share >= 0.6) & (share <= 1.4)), f"{low:.2f}, {median:.2f}, {high:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Runs the draws and prints them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cc", nargs="+")
    parser.add_argument("--draw", choices=SEEDS, default="training")
    parser.add_argument("--paths", type=int, default=40)
    parser.add_argument("--beside", help="the other kind, such as cubic")
    parser.add_argument("--misses", action="store_true", help="print the paths that fail too")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    paths = draw(asked.paths, SEEDS[asked.draw])
    heads = ["", "Jain >= .95", "queue", "use >= .97", "all three", "competing", "above 2 %"]
    heads += [f"beside {asked.beside}: .6 to 1.4", "5, 50, 95 %"] if asked.beside else []
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    with ProcessPoolExecutor(asked.jobs) as pool:
        for cc in asked.cc:
            found = list(pool.map(partial(measure, cc, asked.beside), paths))
            print(row(cc, asked.beside, paths, found), flush=True)
            for path, outcome in zip(paths, found, strict=True):
                if asked.misses and not all(outcome.meets(path)):
                    print(f"    {path}\n        {outcome}")


if __name__ == "__main__":
    main()
