"""The simulator and the virtual machine as distributions, cell by cell.

The cells are those of `experiments/agreement.toml` (every algorithm alone, two equal flows, one
beside CUBIC). Each is run with several seeds on both engines; starts spread by 5 ms, so that seeds
draw from the contest and not from one start. Share, median queueing delay, utilisation and loss
are each tested for equality of their distributions (energy distance, permutations), the false
discovery rate of all tests together controlled at 0.05. A rejected test counts as a difference
where the means are further apart than what a reader would act on. Exit status 1 where more than
5 % of the tests differ so, or the mean difference of means misses its target.

Usage: `.venv/bin/python benches/bench_agreement.py [--cells PART ...] [--seeds 10] [--jobs 1]`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from runs import recordings

from fullpipe.experiments.catalogue import default_folder, load_entry
from fullpipe.experiments.grid import Cell, cells_of
from fullpipe.experiments.measure import measure
from fullpipe.statistics.distributions import Equality, equality, rejected

#: Target of the mean difference of means, over cells; a cell's own difference below it is none.
TARGETS = {"share": 0.01, "delay": 0.02, "utilisation": 0.003, "loss": 0.003}
RATE = 0.05
PERMUTATIONS = 9999


@dataclass(frozen=True)
class Test:
    """One metric of one cell."""

    cell: str
    metric: str
    sim: np.ndarray[Any, np.dtype[np.float64]]
    vm: np.ndarray[Any, np.dtype[np.float64]]
    found: Equality


def tests_of(
    cell: Cell, metrics: dict[str, str], seeds: int, vm_seeds: int, jobs: int
) -> list[Test]:
    """Runs a cell on both engines and tests each metric that means something in it."""
    documents = [
        {**cell.document, "name": "agreement", "seed": seed + 1, "start_spread": "5ms"}
        for seed in range(max(seeds, vm_seeds))
    ]
    drawn = {
        engine: [measure(metrics, made) for made in recordings(documents[:count], engine, jobs)]
        for engine, count in (("sim", seeds), ("vm", vm_seeds))
    }
    tests = []
    for metric in metrics:
        sim, vm = (np.array([run[metric] for run in drawn[engine]]) for engine in ("sim", "vm"))
        if not np.isfinite(np.concatenate([sim, vm])).all() or (metric, cell.axes["flows"]) == (
            "share",
            "one",
        ):
            continue
        found = equality(list(sim), list(vm), len(cell.label), PERMUTATIONS)
        tests.append(Test(cell.label, metric, sim, vm, found))
    return tests


def show(test: Test, *, is_rejected: bool) -> None:
    """One line."""
    sim, vm = (f"{x.mean():.3f} ± {x.std(ddof=1):.3f}" for x in (test.sim, test.vm))
    is_large = abs(test.found.difference) > TARGETS[test.metric]
    verdict = ("equal", "equal", "small", "differs")[2 * is_rejected + is_large]
    print(f"  {test.metric:12} {sim:>15} {vm:>15} {test.found.p:8.4f}  {verdict}")


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="*", default=[""], help="cells whose names contain one")
    parser.add_argument("--seeds", type=int, default=10, help="runs in the simulator")
    parser.add_argument("--vm-seeds", type=int, help="runs in the machine; as many by default")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    entry = load_entry(default_folder() / "agreement.toml")
    metrics = {name: metric.value for name, metric in entry.metric.items()}
    cells = [
        cell
        for cell in cells_of(entry.grid, entry.scenario, "agreement")
        if any(part in cell.label for part in options.cells)
    ]
    tests: list[Test] = []
    for number, cell in enumerate(cells, 1):
        vm_seeds = options.vm_seeds or options.seeds
        tests += tests_of(cell, metrics, options.seeds, vm_seeds, options.jobs)
        print(f"{number} of {len(cells)}: {cell.label}", file=sys.stderr)
    out = rejected([test.found.p for test in tests], RATE)
    differ = 0
    print(
        f"{'':14} {'sim, mean ± SD':>15} {'vm':>15} {'p':>8}  at a false discovery rate of {RATE}"
    )
    for cell in cells:
        print(cell.label)
        for test, is_rejected in zip(tests, out, strict=True):
            if test.cell == cell.label:
                show(test, is_rejected=bool(is_rejected))
                is_large = abs(test.found.difference) > TARGETS[test.metric]
                differ += bool(is_rejected) and is_large
    failed = differ > RATE * len(tests)
    print(f"\n{differ} of {len(tests)} tests differ ({int(out.sum())} rejected); target {RATE:.0%}")
    for metric, target in TARGETS.items():
        apart = [abs(test.found.difference) for test in tests if test.metric == metric]
        if apart:
            failed |= bool(np.mean(apart) > target)
            print(f"{metric}: means differ by {np.mean(apart):.4f} in the mean; target {target}")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
