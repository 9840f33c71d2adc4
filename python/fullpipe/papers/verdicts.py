"""Verdicts: each claim held against the runs in the store.

What a claim says of each cell is judged cell by cell (`parts`), with the share of the resamples in
which it holds; an outcome is only given where 95 % of them agree. Must never run anything.
"""

from __future__ import annotations

import ast
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.expr.language import ExpressionError, parse, source
from fullpipe.papers.entry import Claim, Entry, Size
from fullpipe.papers.parts import Part, averages, parts_of, touched
from fullpipe.papers.results import LEAST_RUNS, RESAMPLES, Results, collect, on_kernel
from fullpipe.papers.store import Store
from fullpipe.papers.values import (
    Array,
    UntestableError,
    Value,
    evaluate,
    shown,
    single,
    thresholds,
)

Status = Literal[
    "reproduced", "partly", "contradicted", "differs", "uncertain", "not testable here"
]
STATUSES: tuple[Status, ...] = (
    "reproduced", "partly", "contradicted", "differs", "uncertain", "not testable here",
)  # fmt: skip
Grade = Literal["paper", "kernel", "simulator", "beyond", ""]
#: What a verdict rests on, the firmest first.
GRADES: dict[Grade, str] = {
    "paper": "the paper's own numbers",
    "kernel": "a real kernel",
    "simulator": "the simulator, held against kernels",
    "beyond": "the simulator beyond that",
}
#: An outcome is given where it holds in at least this share of the resamples.
SURE = 0.975


@dataclass(frozen=True)
class Condition:
    """What a claim says of one cell (or of all together, `whole`), and what became of it: True,
    False, or None where the runs allow both; `likely`: by the cells' values alone."""

    label: str
    held: bool | None
    likely: bool
    cells: tuple[int, ...]
    grade: Grade
    whole: bool = False


@dataclass(frozen=True)
class Verdict:
    """What became of a claim. `value`, `low`, `high`: the measured number and its 95 % interval;
    `published`: as the paper prints it, or what its values give, `paper` as a number; `support`:
    share of the resamples in which the claim holds; `conditions`: cell by cell; `thresholds`: what
    the measured number is compared with; `kernel`: the number in the virtual machine, where only
    some of the cells ran there."""

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
    conditions: tuple[Condition, ...] = ()
    thresholds: tuple[float, ...] = ()
    kernel: str = ""

    @property
    def word(self) -> str:
        """The outcome as it is printed: of our own targets nobody claimed anything."""
        if self.claim.about != "simulator":
            return self.status
        return _OF_TARGETS.get(self.status, self.status)

    @property
    def measured(self) -> str:
        """The number with its unit and interval; empty where there is none."""
        if self.value is None:
            return ""
        unit = f" {self.claim.unit}" if self.claim.unit else ""
        if self.low is None or self.high is None:
            return f"{self.value:.4g}{unit}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]{unit}"

    @property
    def interval(self) -> str:
        """How the interval was made; empty where there is none."""
        if self.low is None:
            return ""
        return f"95 %, bootstrap over runs, {RESAMPLES} resamples, seed 1"

    @property
    def where(self) -> str:
        """In how many cells it holds, and in which it does not, where these differ."""
        if len(self.conditions) < 2 or self.status in ("reproduced", "not testable here"):
            return ""
        kind = "conditions" if any(one.whole for one in self.conditions) else "cells"
        holds = sum(one.held is True for one in self.conditions)
        words = [f"holds in {holds} of {len(self.conditions)} {kind}"]
        for held, grades, title in (
            (False, ("paper", "kernel", "simulator"), "not in"),
            (False, ("beyond",), "differs in"),
            (None, tuple(GRADES), "open in"),
        ):  # fmt: skip
            found = [c.label for c in self.conditions if c.held is held and c.grade in grades]
            if found:
                more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
                words.append(f"{title} {'; '.join(found[:_NAMED])}{more}")
        return ". ".join(word[:1].upper() + word[1:] for word in words) + "."

    @property
    def unsettled(self) -> frozenset[int]:
        """Points of which more runs could settle an uncertain verdict: those that are open, or all
        where no cell is but they are not sure together."""
        if self.status != "uncertain":
            return frozenset()
        some = any(one.held is None for one in self.conditions)
        return frozenset(
            cell for one in self.conditions for cell in one.cells if one.held is None or not some
        )

    @property
    def failing(self) -> frozenset[int]:
        """Points in which the claim does not hold by the simulator alone."""
        return frozenset(
            cell
            for one in self.conditions
            if one.held is False and one.grade in ("simulator", "beyond")
            for cell in one.cells
        )


_OF_TARGETS = {
    "reproduced": "met", "partly": "partly met", "contradicted": "missed", "differs": "missed",
}  # fmt: skip
#: Cells that are named; of more only the number is told.
_NAMED = 6


@dataclass(frozen=True)
class EntryVerdicts:
    """An entry's claims on one engine."""

    results: Results
    verdicts: list[Verdict]


def judge(
    entry: Entry,
    store: Store,
    size: Size = "default",
    engine: str | None = None,
    repetitions: int | None = None,
    observed: Sequence[Path] = (),
    with_kernel: bool = True,
) -> EntryVerdicts:
    """The verdicts on an entry's claims by what the store holds. What the virtual machine ran of
    the simulator's cells goes before the simulator, unless that is asked for alone.

    Raises UserError where the observed file cannot be read."""
    results = collect(entry, store, size, engine, repetitions, observed)
    kernel = None
    if results.engine == "sim" and entry.runnable and with_kernel:
        found = on_kernel(results, store, repetitions)
        kernel = found if any(found.runs) else None
    return EntryVerdicts(results, [_verdict(claim, results, kernel) for claim in entry.claim])


def _verdict(claim: Claim, results: Results, kernel: Results | None) -> Verdict:
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
        return _untestable(claim, results, str(error))
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
    status = _outcome(conditions, support)
    return Verdict(
        claim, results.engine if used else "", status, "", source(node) if node else "", value, low,
        high, runs, support, printed, _number(claim) if paper is None else paper,
        _grade(conditions, status), conditions, thresholds(check, node, results.table),
    )  # fmt: skip


def _conditions(
    claim: Claim, check: ast.expr, results: Results, used: Sequence[int]
) -> tuple[tuple[Condition, ...], float | None]:
    """What the claim says cell by cell, and the share of the resamples in which it holds at all."""
    parts = parts_of(check, results.table)
    drawn: list[Array] = []
    support = None
    if results.repetitions_of(used)[0] >= LEAST_RUNS:
        drawn = [_drawn(part, results) for part in parts_of(check, results.resampled)]
        support = float(np.all(np.broadcast_arrays(*drawn), axis=0).mean())
    found = []
    for index, part in enumerate(parts):
        held: bool | None = bool(part.holds[0])
        if drawn:
            share = float(drawn[index].mean())
            held = True if share >= SURE else False if share <= 1 - SURE else None
        grade = _rests_on(claim, results, part.cells)
        likely = bool(part.holds[0])
        found.append(Condition(part.label, held, likely, part.cells, grade, part.whole is not None))
    return tuple(found), support


def _drawn(part: Part, results: Results) -> Array:
    """Whether a condition holds, resample by resample."""
    if part.whole is None or not averages(part.whole) or len(part.cells) < 2:
        return part.holds
    table = results.resampled_for(len(part.cells))
    return np.asarray(evaluate(part.whole, table).data[:, 0], dtype=bool)


def _rests_on(claim: Claim, results: Results, cells: Sequence[int]) -> Grade:
    if claim.about == "arithmetic" or not cells:
        return "paper"
    if results.engine in ("vm", "live"):
        return "kernel"
    return "beyond" if any(results.beyond(cell) for cell in cells) else "simulator"


def _outcome(conditions: Sequence[Condition], support: float | None) -> Status:
    """Where it surely fails in some cell: contradicted if it fails, as far as can be told, in more
    than half of them, partly if in fewer; cells of which nobody knows how the simulator relates to
    a kernel do not contradict, they differ."""
    if any(one.held is False for one in conditions):
        fails = [one for one in conditions if not one.likely]
        if 2 * len(fails) <= len(conditions):
            return "partly"
        firm = [one for one in fails if one.grade != "beyond"]
        sure = any(one.held is False for one in firm)
        return "contradicted" if sure and 2 * len(firm) > len(conditions) else "differs"
    open_ = any(one.held is None for one in conditions)
    return "uncertain" if open_ or (support is not None and support < SURE) else "reproduced"


def _grade(conditions: Sequence[Condition], status: Status) -> Grade:
    """The weakest of what it rests on; of a contradiction, of the cells that suffice for it."""
    order = list(GRADES)
    found = sorted(order.index(one.grade) for one in conditions)
    if status == "contradicted":
        found = sorted(order.index(one.grade) for one in conditions if not one.likely)
        found = found[: len(conditions) // 2 + 1]
    return order[found[-1]] if found else ""


def _with_kernel(verdict: Verdict, check: ast.expr, results: Results, kernel: Results) -> Verdict:
    """The verdict with what the virtual machine says of the cells that it ran: as often as the
    simulator, or as an interval takes."""
    claim = verdict.claim
    counts = zip(map(len, kernel.runs), map(len, results.runs), strict=True)
    ran = [
        point
        for point, (count, simulated) in enumerate(counts)
        if count and count >= min(LEAST_RUNS, simulated)
    ]
    some = kernel.only(ran)
    try:
        used = [ran[cell] for cell in touched(check, some.table)]
        conditions, _ = _conditions(claim, check, some, touched(check, some.table))
    except (UntestableError, ExpressionError):
        return verdict
    everything = {cell for one in verdict.conditions for cell in one.cells}
    if claim.about != "paper" or not used:
        return verdict
    if set(used) == everything:
        found = _judged(claim, check, some)
        back = tuple(
            replace(one, cells=tuple(ran[cell] for cell in one.cells)) for one in found.conditions
        )
        return replace(found, conditions=back, kernel=f"simulator: {verdict.measured}")
    by_cell = {
        ran[one.cells[0]]: one
        for one in conditions
        if not one.whole and {ran[cell] for cell in one.cells} <= everything
    }
    mixed = tuple(
        replace(
            one,
            held=by_cell[one.cells[0]].held,
            likely=by_cell[one.cells[0]].likely,
            grade="kernel",
        )
        if not one.whole and one.cells[0] in by_cell
        else one
        for one in verdict.conditions
    )
    if mixed == verdict.conditions:
        return verdict
    failed = any(one.held is False for one in verdict.conditions)
    status = _outcome(mixed, None if failed else verdict.support)
    node = parse(claim.value) if claim.value else shown(check)
    value, _, _ = _measured(node, some, False)
    told = "" if value is None else f"virtual machine, {len(by_cell)} cells: {value:.4g}"
    return replace(
        verdict, status=status, grade=_grade(mixed, status), conditions=mixed, kernel=told
    )


def _untestable(claim: Claim, results: Results, reason: str) -> Verdict:
    status: Status = "not testable here"
    return Verdict(claim, results.engine, status, reason, published=claim.published)


def _as_published(node: ast.expr | None, results: Results) -> float | None:
    """What the shown number is with the paper's values; None where it does not print them all."""
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
    """The number that the printed text consists of, where it has the unit of what is measured; a
    bound ("> 1.5") is none."""
    match = re.fullmatch(r"(?:~|about)?\s*(-?\d+(?:\.\d+)?)(?:\s+(\S+))?", claim.published)
    if match is None or not claim.unit.startswith(match[2] or ""):
        return None
    return float(match[1]) if match[2] or not claim.unit else None


def _measured(
    node: ast.expr | None, results: Results, interval: bool
) -> tuple[float | None, float | None, float | None]:
    """The number to show and its interval, where there are such."""
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
        # Of a worst cell, or of distances, few runs draw values that all lie beyond the estimate.
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
    """The command that repeats an entry of a catalogue; of the one that is shipped where None."""
    words = ["fullpipe experiment run", entry.id]
    if catalogue is not None:
        words.append(f"--catalogue {shlex.quote(str(catalogue))}")
    if size == "full":
        words.append("--full")
    chosen = [name for name in engines if name not in entry.engines]
    words += [f"--engine {name}" for name in chosen]
    if entry.observed:
        words.append("--observed FILE.csv")
    return " ".join(words)
