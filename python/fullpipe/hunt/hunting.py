"""Searches for the path on which a congestion control does worst, and simplifies it.

Differential evolution (SciPy) searches over the knobs of a path. The result then loses every
ingredient that it does not need, and its numbers are rounded. The next search excludes the
ingredients that were needed, so that one hunt finds several causes. Must never print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution

from fullpipe.base.scratch import scratch
from fullpipe.hunt.rates import Rates
from fullpipe.hunt.space import (
    BUFFER,
    KNOBS,
    TRACE,
    Knob,
    Path,
    Worst,
    badness,
    document,
    matters,
    packets_of,
    plain,
)
from fullpipe.hunt.trials import Tables, run_trials

#: Packets that a second of budget stands for: about half of what two cores of 2020 simulate.
PACKETS_A_SECOND = 500_000
#: Fixed cost of a trial in packets: building, starting and measuring it.
TRIAL_PACKETS = 10_000
#: Population size for each knob.
_POPULATION = 4
#: Shares of the badness found that a path must keep: with rounder numbers, and without an
#: ingredient. If it keeps less, the ingredient is needed.
_STILL, _WITHOUT = 0.8, 0.6
#: Share of the remaining budget that one search may take.
_SHARE = 0.4
#: The most searches: the first with all ingredients, then without those that were needed.
_ROUNDS = 5
#: Badness below this is no finding: utilisation and fairness of 85 %, one RTT, 2 % of loss.
_NOTABLE: dict[Worst, float] = {"utilisation": 0.15, "starvation": 0.4, "delay": 1.0, "loss": 0.02}


@dataclass(frozen=True)
class Finding:
    """A path on which the congestion control does badly. `needs`: the ingredients that cause it;
    `profile`: for each of them, value -> measurement with all else equal; `others`: measurements
    of other congestion controls on the same path."""

    path: dict[str, float]
    value: float
    found: float
    needs: tuple[str, ...]
    profile: dict[str, dict[float, float]]
    others: dict[str, float]


@dataclass
class Hunt:
    """A hunt. `budget`: packets. No search begins after it is spent, but findings are still
    simplified."""

    cc: str
    worst: Worst
    seed: int
    budget: float
    jobs: int | None = None
    on_progress: Callable[[float], None] = lambda _share: None
    spent: float = 0.0
    count: int = 0
    measured: dict[tuple[str, tuple[float, ...]], float] = field(default_factory=dict)
    rates: Rates = field(init=False)

    def run(self, others: Sequence[str] = ()) -> list[Finding]:
        """The findings, the worst first to be found. Raises UserError for an unknown name."""
        with scratch("fullpipe-hunt-") as folder:
            self.rates = Rates(folder)
            return self._run(others)

    def _run(self, others: Sequence[str]) -> list[Finding]:
        left = list(KNOBS[self.worst])
        findings: list[Finding] = []
        for _ in range(_ROUNDS):
            limit = self.spent + (self.budget - self.spent) * _SHARE
            best = self._search(left, limit)
            if badness(self.worst, self._measure(best)) < _NOTABLE[self.worst]:
                break
            finding = self._finding(best, left, others)
            findings.append(finding)
            # If no ingredient is needed, the buffer is the cause. If several are, each may suffice
            # alone: exclude one of them, a trace first, because it makes all others worse.
            name = finding.needs[-1] if finding.needs else BUFFER.name
            name = TRACE.name if TRACE.name in finding.needs else name
            blamed = next(knob for knob in left if knob.name == name)
            left = [knob for knob in left if knob.name not in (name, *blamed.parts)]
            if self.spent >= self.budget:
                break
        self.on_progress(1.0)
        return findings

    def _search(self, knobs: Sequence[Knob], limit: float) -> dict[str, float]:
        """The worst path found until `limit` packets were spent."""
        best: tuple[float, dict[str, float]] = (-math.inf, {})

        def costs(shares: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
            nonlocal best
            paths = [self._path(knobs, column) for column in np.atleast_2d(shares.T)]
            badnesses = [badness(self.worst, value) for value in self._measured(paths)]
            for bad, path in zip(badnesses, paths, strict=True):
                best = max(best, (bad, path), key=lambda scored: scored[0])
            return np.array([-bad for bad in badnesses])

        differential_evolution(
            costs,
            [(0.0, 1.0)] * len(knobs),
            popsize=_POPULATION,
            init="latinhypercube",
            mutation=(0.4, 0.9),
            recombination=0.8,
            tol=0,
            polish=False,
            rng=self.seed,
            vectorized=True,
            updating="deferred",
            maxiter=10_000,
            callback=lambda *_: self.spent >= limit,
        )
        return best[1]

    def _path(self, knobs: Sequence[Knob], shares: Sequence[float]) -> dict[str, float]:
        path = {knob.name: knob.usual for knob in KNOBS[self.worst]}
        drawn = zip(knobs, shares, strict=True)
        return plain(path | {knob.name: knob.at(float(share)) for knob, share in drawn})

    def _finding(
        self, path: dict[str, float], knobs: Sequence[Knob], others: Sequence[str]
    ) -> Finding:
        values = self._measure(path)
        simple = self._simplified(path, knobs, badness(self.worst, values))
        needs = tuple(k.name for k in knobs if k.off is not None and simple[k.name] != k.off)
        parts = [name for knob in knobs if knob.name in needs for name in knob.parts]
        profile = {
            knob.name: self._profile(simple, knob)
            for knob in knobs
            if knob.name in needs or (knob.name in parts and matters(knob, simple))
        }
        if not needs:
            profile[BUFFER.name] = self._profile(simple, BUFFER)
        beside = {name: self._measured([simple], name)[0] for name in others if name != self.cc}
        return Finding(simple, self._measure(simple), values, needs, profile, beside)

    def _simplified(
        self, path: dict[str, float], knobs: Sequence[Knob], bad: float
    ) -> dict[str, float]:
        """The path without unneeded ingredients, with default or round numbers, as long as it stays
        about as bad as the original; needed ingredients get the smallest value that is. It does
        this twice, because with other numbers the path may need fewer ingredients."""
        for knob in 2 * sorted(knobs, key=lambda knob: knob.off is None):
            if knob.off is not None:
                choices = [knob.off, *(value for value in knob.nice if value < path[knob.name])]
            else:
                near = sorted(knob.nice, key=lambda v: abs(math.log(v / path[knob.name])))
                choices = [knob.usual, *near[:2]]
            # Try the preferred value first: usually the others need not run.
            simpler = self._first(path, knob, choices[:1], bad)
            path = simpler or self._first(path, knob, choices[1:], bad) or path
        return path

    def _first(
        self, path: dict[str, float], knob: Knob, choices: Sequence[float], bad: float
    ) -> dict[str, float] | None:
        """The path with the first of these values with which it is about as bad."""
        variants = [plain(path | {knob.name: value}) for value in choices]
        enough = [bad * (_WITHOUT if value == knob.off else _STILL) for value in choices]
        pairs = zip(variants, self._measured(variants), enough, strict=True)
        return next((v for v, value, least in pairs if badness(self.worst, value) >= least), None)

    def _profile(self, path: Path, knob: Knob) -> dict[float, float]:
        values = ([] if knob.off is None else [knob.off]) + list(knob.nice)
        measured = self._measured([plain({**path, knob.name: value}) for value in values])
        return dict(zip(values, measured, strict=True))

    def _measure(self, path: Path) -> float:
        return self._measured([path])[0]

    def _measured(self, paths: Sequence[Path], cc: str | None = None) -> list[float]:
        """The measurements on these paths; each path runs once."""
        name = cc or self.cc
        keys = [(name, tuple(path.values())) for path in paths]
        fresh = {
            key: path for key, path in zip(keys, paths, strict=True) if key not in self.measured
        }
        if fresh:
            documents = [
                document(name, self.worst, path, self.rates.file(path)) for path in fresh.values()
            ]
            values = run_trials(documents, self.jobs)
            for key, tables in zip(fresh, values, strict=True):
                self.measured[key] = _value(self.worst, tables)
            self.count += len(fresh)
            self.spent += sum(TRIAL_PACKETS + packets_of(path) for path in fresh.values())
            self.on_progress(min(self.spent / self.budget, 1.0))
        return [self.measured[key] for key in keys]


def _value(worst: Worst, tables: Tables | None) -> float:
    """The measurement from a run's rows; NaN if the run failed."""
    if tables is None:
        return math.nan
    if worst == "starvation":
        shares = tables["flows"]["share"].drop_null().to_pylist()
        return min(shares) * len(shares) if shares else math.nan
    column = {
        "utilisation": "utilisation",
        "delay": "queue_delay_p95_rttmin",
        "loss": "loss_ratio",
    }[worst]
    value = tables["path"][column][0].as_py()
    return math.nan if value is None else float(value)
