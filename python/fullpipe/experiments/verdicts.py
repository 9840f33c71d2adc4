"""Verdicts: whether the runs in the store bear out each claim.

A check splits into conditions, mostly one for each cell (`check_conditions`). A condition holds if
it does in 97.5 % of the resamples, fails if it does in at most 2.5 %, and is open otherwise, which
is no failure (`outcome`). This module must not run anything.
"""

from __future__ import annotations

import ast
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.experiments.check_conditions import (
    Condition,
    averages,
    conditions_of,
    metric_uses,
    partners,
    touched,
    varying,
)
from fullpipe.experiments.entry import Claim, Entry, Size
from fullpipe.experiments.metric_functions import NO_MEANS_OVER_TIME
from fullpipe.experiments.results import LEAST_RUNS, RESAMPLES, Results, collect, on_kernel
from fullpipe.experiments.run_store import Store
from fullpipe.experiments.values import (
    Array,
    NotRunError,
    UntestableError,
    Value,
    evaluate,
    shown,
    single,
    thresholds,
)
from fullpipe.expr.language import ExpressionError, parse, source
from fullpipe.metrics.settling import of_cells

Status = Literal[
    "reproduced",
    "partly",
    "contradicted",
    "differs",
    "unexplained",
    "uncertain",
    "not run",
    "not testable here",
]
STATUSES: tuple[Status, ...] = get_args(Status)
#: Verdicts that rest on no run.
WITHOUT_RUNS: tuple[Status, ...] = ("not run", "not testable here")
Grade = Literal["paper", "kernel", "simulator", "beyond", ""]
#: The evidence behind a verdict, the strongest first.
GRADES: dict[Grade, str] = {
    "paper": "the paper's own numbers",
    "kernel": "a real kernel",
    "simulator": "the simulator, held against kernels",
    "beyond": "the simulator beyond that",
}
#: A condition holds if it does in at least this share of the resamples.
SURE = 0.975


@dataclass(frozen=True)
class ConditionVerdict:
    """Whether one condition of a check holds: `held` is None if the runs allow both. `cells`: the
    points that it uses; `grade`: the weakest evidence among them; `whole`: it is about all of them
    together."""

    label: str
    held: bool | None
    cells: tuple[int, ...]
    grade: Grade
    whole: bool = False


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim. `value`, `low`, `high`: the measured number and its 95 % interval;
    `published`: the printed text, or the number computed from the published values, and `paper`:
    that number; `support`: share of the resamples in which the claim holds; `thresholds`: the
    numbers with which the check compares `value`; `kernel`: the number measured in the simulator
    if `value` is the virtual machine's, or else the machine's if it has one; `settling`: whether
    the runs behind it had settled, empty where no drift was seen."""

    claim: Claim
    engine: str
    status: Status
    reason: str = ""
    shown: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    runs: tuple[int, int] = (0, 0)
    support: float | None = None
    published: str = ""
    paper: float | None = None
    grade: Grade = ""
    conditions: tuple[ConditionVerdict, ...] = ()
    thresholds: tuple[float, ...] = ()
    kernel: str = ""
    settling: str = ""

    @property
    def word(self) -> str:
        """The printed outcome. A target of this project is met or missed, not reproduced."""
        if self.claim.about != "simulator":
            return self.status
        return _OF_TARGETS.get(self.status, self.status)

    @property
    def measured(self) -> str:
        """The number with its interval and unit; empty if there is none."""
        if self.value is None:
            return ""
        unit = f" {self.claim.unit}" if self.claim.unit else ""
        if self.low is None or self.high is None:
            return f"{self.value:.4g}{unit}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]{unit}"

    @property
    def interval(self) -> str:
        """How the interval was computed; empty if there is none."""
        if self.low is None:
            return ""
        return f"95 %, bootstrap over runs, {RESAMPLES} resamples, seed 1"

    @property
    def where(self) -> str:
        """In how many cells the claim holds and in which it does not; empty for one cell."""
        if len(self.conditions) < 2 or self.status in ("reproduced", *WITHOUT_RUNS):
            return ""
        kind = "conditions" if any(condition.whole for condition in self.conditions) else "cells"
        holds = sum(condition.held is True for condition in self.conditions)
        words = [f"holds in {holds} of {len(self.conditions)} {kind}"]
        for held, grades, title in (
            (False, ("paper", "kernel", "simulator"), "not in"),
            (False, ("beyond",), "differs in"),
            (None, tuple(GRADES), "open in"),
        ):
            labels = [c.label for c in self.conditions if c.held is held and c.grade in grades]
            if labels:
                more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
                words.append(f"{title} {'; '.join(labels[:_NAMED])}{more}")
        return ". ".join(word[:1].upper() + word[1:] for word in words) + "."

    @property
    def undecided(self) -> frozenset[int]:
        """Points whose further runs could decide an uncertain verdict: those of open conditions, or
        all points if only the conjunction is open."""
        if self.status != "uncertain":
            return frozenset()
        some = any(condition.held is None for condition in self.conditions)
        return frozenset(
            cell
            for condition in self.conditions
            for cell in condition.cells
            if condition.held is None or not some
        )

    @property
    def failing(self) -> frozenset[int]:
        """Points in which the claim fails, on the evidence of the simulator alone."""
        return frozenset(
            cell
            for condition in self.conditions
            if condition.held is False and condition.grade in ("simulator", "beyond")
            for cell in condition.cells
        )


_OF_TARGETS = {
    "reproduced": "met",
    "partly": "partly met",
    "contradicted": "missed",
    "differs": "missed",
}
#: At most so many cells are listed by name.
_NAMED = 6


@dataclass(frozen=True)
class EntryVerdicts:
    """The verdicts on an entry's claims, from the runs of one engine."""

    results: Results
    verdicts: list[Verdict]


@dataclass(frozen=True)
class _KernelRuns:
    """The runs of the virtual machine in an entry's cells. `enough`: the points with as many as the
    simulator has, or as an interval needs; `alone`: the results of these; `mixed`: the simulator's
    with the machine's runs in these."""

    results: Results
    enough: tuple[int, ...]
    alone: Results
    mixed: Results


def judge(
    entry: Entry,
    store: Store,
    size: Size = "default",
    engine: str | None = None,
    repetitions: int | None = None,
    observed: Sequence[Path] = (),
    with_kernel: bool = True,
) -> EntryVerdicts:
    """The verdicts on an entry's claims, from the runs in the store. With `with_kernel`, runs of
    the virtual machine replace those of the simulator in the same cell.

    Raises UserError if an observed file cannot be read."""
    results = collect(entry, store, size, engine, repetitions, observed)
    kernel = None
    if results.engine == "sim" and entry.runnable and with_kernel:
        on_vm = on_kernel(results, store, repetitions)
        kernel = _kernel_runs(results, on_vm) if any(on_vm.runs) else None
    return EntryVerdicts(results, [_verdict(claim, results, kernel) for claim in entry.claim])


def _verdict(claim: Claim, results: Results, kernel: _KernelRuns | None) -> Verdict:
    if claim.check is None:
        return _untestable(claim, results, claim.needs)
    if results.entry.not_yet_runnable and claim.about != "arithmetic":
        return _untestable(claim, results, results.entry.not_yet_runnable)
    try:
        check = parse(claim.check)
        single(evaluate(check, results.table), claim.check)
        verdict = _judged(claim, check, results)
        return verdict if kernel is None else _with_kernel(verdict, check, results, kernel)
    except UntestableError as error:
        status: Status = "not run" if isinstance(error, NotRunError) else "not testable here"
        return _untestable(claim, results, str(error), status)
    except ExpressionError as error:
        raise UserError(f"{results.entry.source}: claim {claim.id}: {error}") from None


def _judged(claim: Claim, check: ast.expr, results: Results) -> Verdict:
    used = touched(check, results.table)
    runs = results.repetitions_of(used)
    conditions, support = _conditions(claim, check, results, used)
    node = parse(claim.value) if claim.value else shown(check)
    value, low, high = _measured(node, results, runs[0] >= LEAST_RUNS)
    paper = _as_published(node, results)
    printed = claim.published or ("" if paper is None else f"{paper:.4g}")
    status = _of_claim(claim, conditions, support)
    return Verdict(
        claim,
        results.engine if used else "",
        status,
        shown=source(node) if node else "",
        value=value,
        low=low,
        high=high,
        runs=runs,
        support=support,
        published=printed,
        paper=_number(claim) if paper is None else paper,
        grade=_grade(conditions, status),
        conditions=conditions,
        thresholds=thresholds(check, node, results.table),
        settling=_settling([check] if node is None else [check, node], results),
    )


def _settling(expressions: Sequence[ast.expr], results: Results) -> str:
    """Whether the runs had settled of which these expressions use means over time."""
    means = _means_over_time(results)
    leaves = [
        node
        for expression in expressions
        for node in metric_uses(expression, results.table)
        if means.intersection(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
    ]
    points = sorted({point for leaf in leaves for point in touched(leaf, results.table)})
    axes = varying(results.points, points)
    cells = [
        (
            ", ".join(f"{name} {results.points[point].axes[name]}" for name in axes),
            [run.unsettled for run in results.runs[point]],
        )
        for point in points
    ]
    return of_cells(cells).text()


def _means_over_time(results: Results) -> frozenset[str]:
    """The entry's metrics of which a part is a mean over time."""
    return frozenset(
        name
        for name, metric in results.entry.metric.items()
        if any(call not in NO_MEANS_OVER_TIME for call in re.findall(r"(\w+)\(", metric.value))
    )


def _conditions(
    claim: Claim, check: ast.expr, results: Results, used: Sequence[int]
) -> tuple[tuple[ConditionVerdict, ...], float | None]:
    """The verdict on each condition, and the share of the resamples in which all of them hold."""
    conditions = conditions_of(check, results.table)
    drawn: list[Array] = []
    support = None
    if results.repetitions_of(used)[0] >= LEAST_RUNS:
        drawn = [
            _drawn(condition, results) for condition in conditions_of(check, results.resampled)
        ]
        support = float(np.all(np.broadcast_arrays(*drawn), axis=0).mean())
    verdicts = []
    for index, condition in enumerate(conditions):
        held: bool | None = bool(condition.holds[0])
        if drawn:
            share = float(drawn[index].mean())
            held = True if share >= SURE else False if share <= 1 - SURE else None
        cells, whole = condition.cells, condition.whole is not None
        grade = _rests_on(claim, results, cells)
        verdicts.append(ConditionVerdict(condition.label, held, cells, grade, whole))
    return tuple(verdicts), support


def _drawn(condition: Condition, results: Results) -> Array:
    """Whether a condition holds in each resample. An average over cells has the degrees of freedom
    of all their runs."""
    whole, cells = condition.whole, condition.cells
    if whole is None or not averages(whole) or len(cells) < 2:
        return condition.holds
    table = results.resampled_for(len(cells))
    return np.asarray(evaluate(whole, table).data[:, 0], dtype=bool)


def _rests_on(claim: Claim, results: Results, cells: Sequence[int]) -> Grade:
    if claim.about == "arithmetic" or not cells:
        return "paper"
    if results.engine in ("vm", "live"):
        return "kernel"
    return "beyond" if any(results.beyond(cell) for cell in cells) else "simulator"


def _of_claim(
    claim: Claim, conditions: Sequence[ConditionVerdict], support: float | None
) -> Status:
    """The outcome of a claim. What fails is unexplained where the entry says so and why."""
    counted = [condition.held for condition in conditions]
    firm = sum(condition.held is False and condition.grade != "beyond" for condition in conditions)
    conjunction = support is None or support >= SURE
    status = outcome(
        counted.count(True), counted.count(False), counted.count(None), firm, conjunction
    )
    failed = status in ("contradicted", "differs")
    return "unexplained" if failed and claim.unexplained is not None else status


def outcome(holds: int, fails: int, open_: int, firm: int, conjunction: bool = True) -> Status:
    """The outcome of so many conditions that hold, fail and are open. `firm`: those of the failing
    that do not rest on the simulator beyond what was compared with kernels; `conjunction`: all
    conditions hold together in enough of the resamples."""
    conditions = holds + fails + open_
    if 2 * firm > conditions:
        return "contradicted"
    if 2 * fails > conditions:
        return "differs"
    if fails and holds:
        return "partly"
    return "uncertain" if fails or open_ or not conjunction else "reproduced"


def _grade(conditions: Sequence[ConditionVerdict], status: Status) -> Grade:
    """The weakest evidence of all conditions; of a contradiction, of the strongest half that
    suffices for it."""
    order = list(GRADES)
    ranks = sorted(order.index(condition.grade) for condition in conditions)
    if status == "contradicted":
        ranks = sorted(
            order.index(condition.grade) for condition in conditions if condition.held is False
        )
        ranks = ranks[: len(conditions) // 2 + 1]
    return order[ranks[-1]] if ranks else ""


def _kernel_runs(results: Results, on_vm: Results) -> _KernelRuns:
    counts = [(len(runs), len(there)) for runs, there in zip(results.runs, on_vm.runs, strict=True)]
    enough = [
        point
        for point, (simulated, count) in enumerate(counts)
        if count and count >= min(LEAST_RUNS, simulated)
    ]
    mixed = results.with_runs(on_vm, enough)
    return _KernelRuns(on_vm, tuple(enough), on_vm.only(enough), mixed)


def _with_kernel(
    verdict: Verdict, check: ast.expr, results: Results, kernel: _KernelRuns
) -> Verdict:
    """The verdict with the runs of the virtual machine in the cells that have enough of them. What
    it measured is shown even where the verdict does not rest on it."""
    claim, enough = verdict.claim, set(kernel.enough)
    used = touched(check, results.table)
    if claim.about != "paper" or not used:
        return verdict
    node = parse(claim.value) if claim.value else shown(check)
    try:
        if enough.issuperset(used if node is None else (*used, *touched(node, results.table))):
            alone = _judged(claim, check, kernel.alone)
            back = tuple(
                replace(condition, cells=tuple(kernel.enough[cell] for cell in condition.cells))
                for condition in alone.conditions
            )
            return replace(alone, conditions=back, kernel=f"simulator: {verdict.measured}")
        answers, _ = _conditions(claim, check, kernel.mixed, used)
    except UntestableError:
        return replace(verdict, kernel=_kernel_number(node, results, kernel, verdict.conditions))
    conditions = tuple(
        replace(answer, grade="kernel")
        if answer.cells and enough.issuperset(answer.cells)
        else condition
        for condition, answer in zip(verdict.conditions, answers, strict=True)
    )
    failed = any(condition.held is False for condition in verdict.conditions)
    status = _of_claim(claim, conditions, None if failed else verdict.support)
    return replace(
        verdict,
        status=status,
        grade=_grade(conditions, status),
        conditions=conditions,
        kernel=_kernel_number(node, results, kernel, verdict.conditions),
    )


def _kernel_number(
    node: ast.expr | None,
    results: Results,
    kernel: _KernelRuns,
    conditions: Sequence[ConditionVerdict],
) -> str:
    """The number that the virtual machine measured, for a verdict whose number is the simulator's:
    from all cells of the number, else from those of the conditions of which it ran all cells; empty
    if there is none, or if cells of it would be compared with others than their own partners."""
    if node is None:
        return ""
    ran = {point for point, runs in enumerate(kernel.results.runs) if runs}
    cells, extent = set(touched(node, results.table)), ""
    if not cells <= ran:
        covered = [
            condition
            for condition in conditions
            if condition.cells and ran.issuperset(condition.cells)
        ]
        cells = {cell for condition in covered for cell in condition.cells}
        if not cells or not cells.issuperset(partners(node, results.table, cells)):
            return ""
        kind = "condition" if any(condition.whole for condition in covered) else "cell"
        extent = f", {len(covered)} {kind}{'s' if len(covered) != 1 else ''}"
    value, _, _ = _measured(node, kernel.results.only(sorted(cells)), False)
    few = "" if cells <= set(kernel.enough) else ", too few runs"
    return "" if value is None else f"virtual machine{extent}{few}: {value:.4g}"


def _untestable(
    claim: Claim, results: Results, reason: str, status: Status = "not testable here"
) -> Verdict:
    return Verdict(claim, results.engine, status, reason, published=claim.published)


def _as_published(node: ast.expr | None, results: Results) -> float | None:
    """The shown number computed from the published values; None if the paper does not print all
    that it uses."""
    metrics = {name: np.full((1, len(results.points)), np.nan) for name in results.entry.metric}
    for (kind, metric, _), values in results.beside.items():
        if kind == "published":
            metrics[metric][0, list(values)] = list(values.values())
    table = results.with_values(metrics, whole=True)
    if node is None or not touched(node, table):
        return None
    try:
        return _plain(evaluate(node, table))
    except UntestableError:
        return None


def _number(claim: Claim) -> float | None:
    """The number that the printed text consists of, if it has the unit of the measured one; None
    for a bound ("> 1.5")."""
    match = re.fullmatch(r"(?:~|about)?\s*(-?\d+(?:\.\d+)?)(?:\s+(\S+))?", claim.published)
    if match is None or not claim.unit.startswith(match[2] or ""):
        return None
    return float(match[1]) if match[2] or not claim.unit else None


def _measured(
    node: ast.expr | None, results: Results, interval: bool
) -> tuple[float | None, float | None, float | None]:
    """The number to show and its interval, each None if there is none."""
    if node is None:
        return None, None, None
    try:
        value = _plain(evaluate(node, results.table))
        if not interval or value is None:
            return value, None, None
        pooled = len(touched(node, results.table)) if averages(node) else 1
        low, high = _interval(evaluate(node, results.resampled_for(max(pooled, 1))))
        if low is None or high is None:
            return value, None, None
        # Resamples of a worst cell or of a distance may all lie on one side of the estimate.
        return value, min(low, value), max(high, value)
    except UntestableError:
        return None, None, None


def _plain(value: Value) -> float | None:
    number = float(value.data[0, 0]) if value.data.shape[1] == 1 else math.nan
    return number if math.isfinite(number) else None


def _interval(value: Value) -> tuple[float | None, float | None]:
    data = value.data[:, 0].astype(float)
    if data.size < 2 or not np.isfinite(data).all():
        return None, None
    low, high = np.quantile(data, [0.025, 0.975])
    return float(low), float(high)


def commands(
    entry: Entry, size: Size, catalogue: Path | None = None, engines: Sequence[str] = ()
) -> str:
    """The command that repeats an entry. `catalogue`: its folder, None for the shipped one."""
    words = ["fullpipe experiment run", entry.id]
    if catalogue is not None:
        words.append(f"--catalogue {shlex.quote(str(catalogue))}")
    if size == "full":
        words.append("--full")
    chosen = [name for name in engines if name not in entry.engines]
    words += [f"--engine {name}" for name in chosen]
    if entry.observed and catalogue is not None:
        words.append("--observed FILE.csv")
    return " ".join(words)
