"""Runs the draft's cases for a congestion control and says which hold.

Some changes happen when the connection enters a phase. A first run finds that time; the simulator
repeats the run exactly up to it. Must never know how a result is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import cc_set
from fullpipe.expr.language import Scalar
from fullpipe.recording.recording import Recording
from fullpipe.scorecard.draft_cases import Case
from fullpipe.scorecard.draft_measures import MEASURES
from fullpipe.scorecard.measured_conditions import holds
from fullpipe.scorecard.paths import path_fields
from fullpipe.scorecard.running import run_together
from fullpipe.scorecard.trajectory import Trajectory
from fullpipe.sweep.schedule import Progress
from fullpipe.sweep.store import Store

#: Phases that only BBRv2 and v3 have. The draft's cases do not apply without them.
_FAMILY = ("cruise", "refill")
_NOT_FAMILY = "shows no phases of BBRv2 or v3"
_NO_ESTIMATE = "records no max_bw or no min_rtt, which the cases measure"


@dataclass(frozen=True)
class OnPath:
    """A case on one path: the measured values, and the texts of conditions that do not hold."""

    path: str
    values: dict[str, Scalar]
    failed: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A case. `holds` is None if it was not run, and `why` says why."""

    case: Case
    holds: bool | None
    paths: tuple[OnPath, ...] = ()
    why: str = ""

    def document(self, cc: str) -> dict[str, Any]:
        """As JSON: the first path's values, how many paths hold, and what fails on the others."""
        return {
            "id": self.case.id,
            "title": self.case.title,
            "holds": self.holds,
            "measured": self._measured(),
            "command": f"fullpipe scorecard {cc} --only {self.case.id}",
        }

    def _measured(self) -> dict[str, Any]:
        if self.holds is None:
            return {"why": self.why}
        first = self.paths[0]
        return {
            "path": first.path,
            **{name: _plain(value) for name, value in first.values.items()},
            "paths": len(self.paths),
            "paths_hold": sum(not one.failed for one in self.paths),
            "fails": {one.path: list(one.failed) for one in self.paths if one.failed},
        }


def run_draft(
    cc: str,
    cases: Sequence[Case],
    store: Store,
    quick: bool = False,
    jobs: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> list[Result]:
    """Every case, on its first path only where `quick`. Raises UserError for an unknown `cc`."""
    cc_set(cc.partition("[")[0])
    plain: list[tuple[Case, list[dict[str, Any]], bool]] = []
    for case in cases:
        if not case.needs:
            texts = case.paths[:1] if quick else case.paths
            fields = [path_fields(text, case.id) for text in texts]
            plain.append((case, fields, False))
    first = _trajectories(cc, plain, store, jobs, on_progress)
    later = [
        (case, _triggered(case, fields, first[case.id]), True)
        for case, fields, _ in plain
        if case.trigger is not None
    ]
    second = _trajectories(cc, [one for one in later if one[1]], store, jobs, on_progress)
    seen = [one for found in first.values() for one in found.values() if one is not None]
    unfit = _unfit(seen)
    results = []
    for case in cases:
        if case.needs or unfit:
            why = f"needs {case.needs}" if case.needs else unfit
            results.append(Result(case, None, why=why))
            continue
        found = second.get(case.id, {}) if case.trigger else first[case.id]
        texts = [str(one["label"]) for one in next(f for i, f, _ in plain if i is case)]
        paths = tuple(_judged(case, text, found.get(text)) for text in texts)
        results.append(Result(case, not any(one.failed for one in paths), paths))
    return results


def _unfit(seen: Sequence[Trajectory]) -> str:
    """Why the cases cannot be held against an algorithm with these runs; empty where they can."""
    if not any(phase in one.phase for one in seen for phase in _FAMILY):
        return _NOT_FAMILY
    return "" if any(one.has_estimates for one in seen) else _NO_ESTIMATE


def _trajectories(
    cc: str,
    work: Sequence[tuple[Case, list[dict[str, Any]], bool]],
    store: Store,
    jobs: int | None,
    on_progress: Callable[[Progress], None],
) -> dict[str, dict[str, Trajectory | None]]:
    """Case -> path -> trajectory of its run; None if the run failed."""
    if not work:
        return {}
    sweeps = [
        case.sweep(_with(cc, case.constants), paths, changed) for case, paths, changed in work
    ]
    ran = run_together(sweeps, store, jobs, on_progress)
    if ran.interrupted:
        raise KeyboardInterrupt
    found: dict[str, dict[str, Trajectory | None]] = {}
    for (case, paths, _), cells in zip(work, ran.cells, strict=True):
        mine = found.setdefault(case.id, {})
        for fields, cell in zip(paths, cells, strict=True):
            folder = store.recording(cell.keys[0])
            mine[fields["label"]] = Trajectory(Recording.open(folder)) if folder.is_dir() else None
    return found


def _triggered(
    case: Case, paths: Sequence[dict[str, Any]], found: Mapping[str, Trajectory | None]
) -> list[dict[str, Any]]:
    """The paths on which the trigger fired, with its time."""
    trigger = case.trigger
    assert trigger is not None
    result = []
    for fields in paths:
        trajectory = found[fields["label"]]
        visit = trajectory.visit(trigger.phase, trigger.visit) if trajectory else None
        if trajectory is None or visit is None:
            continue
        index = visit.first if trigger.when == "entry" else visit.last + 1
        if index >= trajectory.t_s.size:
            continue
        at_ms = float(trajectory.t_s[index]) * 1e3 + trigger.rounds * fields["rtt_ms"]
        result.append({**fields, **_times(at_ms, fields)})
    return result


def _times(at_ms: float, fields: Mapping[str, Any]) -> dict[str, Any]:
    """When something happens, a delay that outlasts any timeout, when that and when losses end."""
    return {
        "at_ms": round(at_ms, 3),
        "spike_ms": fields["half_ms"] + 1000 + 2 * fields["rtt_ms"],
        "later_ms": round(at_ms + fields["rtt_ms"], 3),
        "end_ms": round(at_ms + 5 * fields["rtt_ms"], 3),
    }


def _judged(case: Case, path: str, trajectory: Trajectory | None) -> OnPath:
    if trajectory is None:
        phase = case.trigger.phase if case.trigger else "the end"
        return OnPath(path, {}, (f"never reached {phase}",))
    values: dict[str, Scalar] = {
        **MEASURES[case.measure](trajectory), "bdp": trajectory.bdp,
        "rtt_ms": trajectory.rtt_s * 1e3,
    }  # fmt: skip
    failed = []
    for hold in case.hold:
        try:
            if not holds(hold.check, values):
                failed.append(hold.text)
        except UserError:
            failed.append(f"{hold.text} (not seen)")
    return OnPath(path, values, tuple(failed))


def _with(cc: str, constants: Mapping[str, float]) -> str:
    """The name with changed constants; those that the algorithm does not have are left out."""
    base, bracket, own = cc.partition("[")
    known = {param.name for param in cc_set(base).params}
    texts = [f"{name}={value:g}" for name, value in constants.items() if name in known]
    texts += [own.removesuffix("]")] if bracket else []
    return f"{base}[{','.join(texts)}]" if texts else cc


def _plain(value: Scalar) -> Scalar | None:
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    return value
