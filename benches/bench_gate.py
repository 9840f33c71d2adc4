"""How often does the gate of `fullpipe ci` ring for nothing, and which worsening does it find?

    python benches/bench_gate.py [--pairs 400] [--pool 40] [--seeds 10] [--store DIR] [--csv FILE]

The quick scorecard of four algorithms runs with many seeds. Each algorithm's seeds are then divided
at random into two lots, again and again: two cards of equal algorithms, compared as `fullpipe ci`
compares. Prints the share of comparisons that tell a change, with its 95 % interval (Clopper and
Pearson), against the target of 1 in 100; and for each measure the worsening that is found in 9 of
10 comparisons. A permutation's interval moves with a shift that all runs of one lot get, so the
same comparisons say how large it must be. Exit status 1 where the target is missed.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from fullpipe.base.cache import user_cache
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.changes import LEAST_SHARE, LEVEL, Comparison, compare
from fullpipe.scorecard.items import items
from fullpipe.sweep.store import Store

EQUAL = ("cubic", "reno", "bbr1", "bbr3")
#: What really got worse: an algorithm beside itself with a constant changed.
CHANGED = ("cubic", "cubic[beta=0.65]")
_CHANGED_PAIRS = 20
_SEED = 1


@dataclass
class Tally:
    """What comparisons of equal algorithms told, and what they would have found."""

    pairs: int = 0
    tests: int = 0
    any_change: int = 0
    worse: int = 0
    told: list[str] = field(default_factory=list)
    #: Measure -> the worsening that each comparison needs, as a share of the baseline.
    needed: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, comparison: Comparison, least: dict[str, float]) -> None:
        """Counts one comparison."""
        self.pairs += 1
        self.tests = max(self.tests, len(comparison.changes))
        changed = comparison.of("worse") + comparison.of("better")
        self.any_change += bool(changed)
        self.worse += bool(comparison.of("worse"))
        self.told += [f"{name}: {change.id}" for change in changed]
        for change in comparison.changes:
            counts = LEAST_SHARE
            if change.before:
                counts = max(counts, least[change.id] / abs(change.before))
            need = max(-change.worse_low, counts - change.worse_by)
            self.needed.setdefault(change.id, []).append(need)


def main() -> int:
    """Runs what the store lacks, compares, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=400, help="of equal algorithms; 400")
    parser.add_argument("--pool", type=int, default=40, help="seeds of each algorithm; 40")
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each of a pair; 10")
    parser.add_argument("--jobs", type=int, help="processes; default: all cores")
    parser.add_argument("--store", type=Path, help="where runs are kept; the user's cache")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="the worsening of each measure")
    given = parser.parse_args()
    store = Store(given.store or user_cache() / "scorecards", create=True)
    cards = {name: _card(name, store, given.pool, given.jobs) for name in (*EQUAL, CHANGED[1])}
    least = {f"{item.id}.{m.id}": m.least for item in items() for m in item.measure}
    tally = Tally()
    for name in EQUAL:
        halves = _halves(given.pool, given.seeds, given.pairs // len(EQUAL))
        for first, second in halves:
            tally.add(name, _compared(cards[name], first, cards[name], second), least)
    found: dict[str, int] = {}
    for first, second in _halves(given.pool, given.seeds, _CHANGED_PAIRS):
        comparison = _compared(cards[CHANGED[0]], first, cards[CHANGED[1]], second)
        for change in comparison.of("worse"):
            found[change.id] = found.get(change.id, 0) + 1
    print(_text(tally, found, given))
    return 0 if _rate(tally.any_change, tally.pairs)[0] <= LEVEL else 1


def _card(name: str, store: Store, seeds: int, jobs: int | None) -> dict[str, Any]:
    runnable = [item for item in items() if not item.needs]
    card = run_card(name, [], runnable, store, quick=True, jobs=jobs, seeds=seeds)
    if card["failures"]:
        raise SystemExit(f"{name}: {card['failures'][0]}")
    return card


def _halves(pool: int, seeds: int, count: int) -> Iterator[tuple[Any, Any]]:
    """Pairs of disjoint lots of seeds, drawn at random."""
    random = np.random.default_rng(_SEED)
    for _ in range(count):
        order = random.permutation(pool)
        yield order[:seeds], order[seeds : 2 * seeds]


def _compared(one: dict[str, Any], first: Any, other: dict[str, Any], second: Any) -> Comparison:
    return compare(_with_seeds(one, first), _with_seeds(other, second))


def _with_seeds(card: dict[str, Any], seeds: Any) -> dict[str, Any]:
    """A card of some of its seeds, as `compare` reads it."""
    name = card["scorecard"]
    return {**card, "items": [
        {**item, "measures": [
            {**measure, "subjects": {name: {"values": [
                [row[seed] for seed in seeds] for row in measure["subjects"][name]["values"]
            ]}}}
            for measure in item["measures"]
        ]}
        for item in card["items"]
    ]}  # fmt: skip


def _rate(count: int, pairs: int) -> tuple[float, float, float]:
    interval = binomtest(count, pairs).proportion_ci(0.95, method="exact")
    return count / pairs, float(interval.low), float(interval.high)


def _text(tally: Tally, found: dict[str, int], given: argparse.Namespace) -> str:
    needs = {
        name: float(np.quantile(each, 0.9, method="higher")) for name, each in tally.needed.items()
    }
    lines = [
        f"{tally.pairs} pairs of equal algorithms ({', '.join(EQUAL)}), {tally.tests} measures, "
        f"{given.seeds} seeds each out of {given.pool}.",
        "",
        "| a comparison of equal algorithms | share | 95 % interval | target |",
        "|---|---:|---:|---:|",
        _row("reports any change", tally.any_change, tally.pairs, "1 % at most"),
        _row("reports a worsening (exit status 1)", tally.worse, tally.pairs, ""),
    ]
    lines += [f"told: {text}" for text in tally.told]
    lines += ["", "| worsening found in 9 of 10 comparisons | measures |", "|---|---:|"]
    for limit in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        count = sum(need <= limit for need in needs.values())
        lines.append(f"| of {100 * limit:g} % | {count} of {len(needs)} |")
    if given.csv:
        _write_csv(given.csv, needs)
    lines += [
        "",
        f"{CHANGED[1]} beside {CHANGED[0]}, {_CHANGED_PAIRS} comparisons: "
        + ", ".join(f"{name} in {count}" for name, count in sorted(found.items())),
    ]
    return "\n".join(lines)


def _row(what: str, count: int, pairs: int, target: str) -> str:
    share, low, high = (100 * value for value in _rate(count, pairs))
    return f"| {what} | {count} of {pairs}, {share:.2g} % | {low:.2g} to {high:.2g} % | {target} |"


def _write_csv(file: Path, needs: Mapping[str, float]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["measure", "smallest_worsening_percent"])
        for name, need in needs.items():
            percent = f"{float(f'{100 * need:.2g}'):g}" if np.isfinite(need) else ""
            writer.writerow([name, percent])


if __name__ == "__main__":
    sys.exit(main())
