"""The search itself, what each constant is worth, and the one look at the held-out paths.

Differential evolution (SciPy) minimises the objective over the ranges. Afterwards every constant
goes back to its default, to the value that turns its mechanism off, and a little to either side:
what moves no row can be left out. Must never print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution

from fullpipe.base.errors import UserError
from fullpipe.tune.file import Search
from fullpipe.tune.settings import Bench, Result, Setting

#: Population for each constant, and the least population.
_POPULATION, _LEAST_POPULATION = 4, 8
#: How far the neighbours of a value lie, as a share of its range.
_NEIGHBOUR = 0.1
#: Stands for infinity, with which differential evolution cannot compute.
_WORST = 1e300


@dataclass(frozen=True)
class Trial:
    """A setting that was tried."""

    setting: dict[str, str]
    result: Result


@dataclass(frozen=True)
class Variant:
    """The best setting with one change: `kind` is default, off, lower, higher or ablation."""

    name: str
    kind: str
    setting: dict[str, str]
    result: Result


@dataclass
class Found:
    """What a search found: all trials in their order, the best one, the defaults, and variants of
    the best."""

    trials: list[Trial] = field(default_factory=list)
    best: Trial | None = None
    default: Result | None = None
    variants: list[Variant] = field(default_factory=list)


def search(
    wanted: Search, bench: Bench, trials: int, on_trial: Callable[[int, float], None]
) -> Found:
    """Tries about so many settings, the defaults first, and then the variants of the best.

    `on_trial` gets the number of trials and the least objective. Raises UserError where a row
    cannot run, and where all runs of the first population ended but the objective has no value for
    any of them: nothing would lead the search."""
    outcome = Found(default=bench.measure([{}])[0])
    seen: set[str] = set()

    def costs(shares: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        settings = [
            {
                parameter.name: parameter.at(float(share))
                for parameter, share in zip(wanted.parameters, column, strict=True)
            }
            for column in np.atleast_2d(shares.T)
        ]
        results = bench.measure(settings)
        for setting, result in zip(settings, results, strict=True):
            if result.name not in seen:
                seen.add(result.name)
                outcome.trials.append(Trial(setting, result))
                if outcome.best is None or result.objective < outcome.best.result.objective:
                    outcome.best = outcome.trials[-1]
        if not bench.failures:
            _check_some_value(wanted, outcome.trials)
        least = math.inf if outcome.best is None else outcome.best.result.objective
        on_trial(len(outcome.trials), least)
        return np.array([min(result.objective, _WORST) for result in results])

    count = len(wanted.parameters)
    population = max(_POPULATION * count, _LEAST_POPULATION)
    differential_evolution(
        costs,
        [(0.0, 1.0)] * count,
        popsize=math.ceil(population / count),
        init="latinhypercube",
        x0=[parameter.share(wanted.defaults[parameter.name]) for parameter in wanted.parameters],
        mutation=(0.4, 0.9),
        recombination=0.8,
        tol=0,
        polish=False,
        rng=wanted.options.seed,
        vectorized=True,
        updating="deferred",
        maxiter=trials,
        callback=lambda *_: len(outcome.trials) >= trials,
    )
    if outcome.best is not None:
        outcome.best = _simplified(wanted, bench, outcome.best)
        outcome.variants = _variants(wanted, bench, outcome.best.setting)
    return outcome


def _check_some_value(wanted: Search, trials: Sequence[Trial]) -> None:
    """Raises UserError, which says why, if the objective has no value for any of the trials."""
    if any(math.isfinite(trial.result.objective) for trial in trials):
        return
    names = [name for name in trials[0].result.values if name in wanted.objective.names]
    missing = [
        name
        for name in names
        if not any(math.isfinite(trial.result.values[name]) for trial in trials)
    ]
    why = (
        f"none of the first {len(trials)} has a value of {', '.join(missing)}"
        if missing
        else f"{wanted.objective.text!r} divides by 0"
    )
    raise UserError(f"{wanted.source}: tune.minimise has no value for any setting: {why}")


def _simplified(wanted: Search, bench: Bench, best: Trial) -> Trial:
    """The best setting, with the default of each constant that gains nothing."""
    for parameter in wanted.parameters:
        setting = {**best.setting, parameter.name: wanted.defaults[parameter.name]}
        (result,) = bench.measure([setting])
        if result.objective <= best.result.objective:
            best = Trial(setting, result)
    return best


def _variants(wanted: Search, bench: Bench, best: Setting) -> list[Variant]:
    """One change each; those that give the same setting as the best are left out."""
    changes: list[tuple[str, str, dict[str, str]]] = []
    for parameter in wanted.parameters:
        changes.append(
            (parameter.name, "default", {parameter.name: wanted.defaults[parameter.name]})
        )
        if parameter.off is not None:
            changes.append(
                (parameter.name, "off", {parameter.name: parameter.written(parameter.off)})
            )
        for kind, step in (("lower", -_NEIGHBOUR), ("higher", _NEIGHBOUR)):
            share = parameter.share(best[parameter.name]) + step
            if 0 <= share <= 1:
                changes.append((parameter.name, kind, {parameter.name: parameter.at(share)}))
    changes += [(name, "ablation", change) for name, change in wanted.ablations.items()]
    settings = [{**best, **change} for _, _, change in changes]
    changed = [index for index, setting in enumerate(settings) if setting != dict(best)]
    results = bench.measure([settings[index] for index in changed])
    return [
        Variant(changes[index][0], changes[index][1], settings[index], result)
        for index, result in zip(changed, results, strict=True)
    ]
