"""Runs the cases of a document for a congestion control and says which hold.

Some changes happen when the connection enters a phase. A first run finds that time; the simulator
repeats the run exactly up to it. Must never know how a result is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.conformance.cases import Case, Trigger
from fullpipe.conformance.draft_measures import MEASURES
from fullpipe.conformance.measured_conditions import figures, holds
from fullpipe.conformance.paths import path_fields
from fullpipe.conformance.trajectory import Trajectory
from fullpipe.conformance.window_measures import WINDOW_MEASURES
from fullpipe.conformance.windows import Windows
from fullpipe.congestion.registry import choose
from fullpipe.expr.language import Scalar
from fullpipe.recording.recording import Recording
from fullpipe.sweep.schedule import Progress
from fullpipe.sweep.store import Store
from fullpipe.sweep.together import run_together

#: Phases that only BBRv2 and v3 have. The draft's cases do not apply without them.
_FAMILY = ("cruise", "refill")
_NOT_FAMILY = "shows no phases of BBRv2 or v3"
_NO_ESTIMATE = "records no max_bw, no min_rtt or no rounds, which the cases measure"

#: What a case reads of a run.
Read = Trajectory | Windows
_MEASURES = {**MEASURES, **WINDOW_MEASURES}


@dataclass(frozen=True)
class OnPath:
    """A case on one path: the measured values, the texts of conditions that do not hold, with
    their figures, and the run; None if there was none."""

    path: str
    values: dict[str, Scalar]
    failed: tuple[str, ...]
    recording: Recording | None = None


@dataclass(frozen=True)
class Result:
    """A case. `holds` is None if it was not run, and `why` says why."""

    case: Case
    holds: bool | None
    paths: tuple[OnPath, ...] = ()
    why: str = ""

    def document(self, cc: str) -> dict[str, Any]:
        """As JSON: the first path's values, how many paths hold, and what fails on the others."""
        command = "scorecard" if self.case.reads_bbr else "conformance"
        return {
            "id": self.case.id,
            "title": self.case.title,
            "holds": self.holds,
            "measured": self._measured(),
            "command": f"fullpipe {command} {cc} --only {self.case.id}",
        }

    def _measured(self) -> dict[str, Any]:
        if self.holds is None:
            return {"why": self.why}
        first = self.paths[0]
        return {
            "path": first.path,
            **{name: _plain(value) for name, value in first.values.items()},
            "paths": len(self.paths),
            "paths_hold": sum(not path.failed for path in self.paths),
            "fails": {path.path: list(path.failed) for path in self.paths if path.failed},
        }


def run_cases(
    cc: str,
    cases: Sequence[Case],
    store: Store,
    quick: bool = False,
    jobs: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    engine: str = "sim",
) -> list[Result]:
    """Every case, on its first path only where `quick`. Raises UserError for an unknown `cc`, or
    where the engine cannot run it."""
    choose(cc, {})
    plain: list[tuple[Case, list[dict[str, Any]], bool]] = []
    for case in cases:
        if not case.needs:
            texts = case.paths[:1] if quick else case.paths
            fields = [path_fields(text, case.id) for text in texts]
            plain.append((case, fields, False))
    first = _read(cc, plain, store, jobs, on_progress, engine)
    later = [
        (case, _triggered(case, fields, first[case.id]), True)
        for case, fields, _ in plain
        if case.trigger is not None
    ]
    again = [trial for trial in later if trial[1]]
    second = _read(cc, again, store, jobs, on_progress, engine)
    first_readings = [reading for readings in first.values() for reading in readings.values()]
    unfit = _unfit([reading for reading in first_readings if isinstance(reading, Trajectory)])
    results = []
    for case in cases:
        if case.needs or (unfit and case.reads_bbr):
            why = f"needs {case.needs}" if case.needs else unfit
            results.append(Result(case, None, why=why))
            continue
        readings = second.get(case.id, {}) if case.trigger else first[case.id]
        texts = [str(fields["label"]) for fields in next(f for i, f, _ in plain if i is case)]
        paths = tuple(_judged(case, text, readings.get(text)) for text in texts)
        results.append(Result(case, not any(path.failed for path in paths), paths))
    return results


def _unfit(trajectories: Sequence[Trajectory]) -> str:
    """Why the cases cannot be held against an algorithm with these runs; empty where they can."""
    if not any(phase in trajectory.phase for trajectory in trajectories for phase in _FAMILY):
        return _NOT_FAMILY
    return "" if any(trajectory.has_estimates for trajectory in trajectories) else _NO_ESTIMATE


def _read(
    cc: str,
    work: Sequence[tuple[Case, list[dict[str, Any]], bool]],
    store: Store,
    jobs: int | None,
    on_progress: Callable[[Progress], None],
    engine: str,
) -> dict[str, dict[str, Read | None]]:
    """Case -> path -> what it reads of its run; None if the run failed."""
    if not work:
        return {}
    sweeps = [
        case.sweep(_with(cc, case.constants), paths, changed, engine)
        for case, paths, changed in work
    ]
    ran = run_together(sweeps, store, jobs, on_progress)
    if ran.interrupted:
        raise KeyboardInterrupt
    readings: dict[str, dict[str, Read | None]] = {}
    for (case, paths, _), cells in zip(work, ran.cells, strict=True):
        of_case = readings.setdefault(case.id, {})
        for fields, cell in zip(paths, cells, strict=True):
            folder = store.recording(cell.keys[0])
            kind = Trajectory if case.reads_bbr else Windows
            of_case[fields["label"]] = kind(Recording.open(folder)) if folder.is_dir() else None
    return readings


def _triggered(
    case: Case, paths: Sequence[dict[str, Any]], readings: Mapping[str, Read | None]
) -> list[dict[str, Any]]:
    """The paths on which the trigger fired, with its time."""
    trigger = case.trigger
    assert trigger is not None
    result = []
    for fields in paths:
        trajectory = readings[fields["label"]]
        if not isinstance(trajectory, Trajectory):
            continue
        visit = trajectory.visit(trigger.phase, trigger.visit)
        if visit is None:
            continue
        index = visit.first if trigger.when == "entry" else visit.last + 1
        if index >= trajectory.t_s.size:
            continue
        reached_ms = float(trajectory.t_s[index]) * 1e3
        if reached_ms < trigger.after_rtts * fields["rtt_ms"]:
            continue
        at_ms = reached_ms + trigger.rounds * fields["rtt_ms"]
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


def _judged(case: Case, path: str, trajectory: Read | None) -> OnPath:
    if trajectory is None:
        return OnPath(path, {}, (_missed(case.trigger),))
    values: dict[str, Scalar] = {
        **_MEASURES[case.measure](trajectory),
        "bdp": trajectory.bdp,
        "rtt_ms": trajectory.rtt_s * 1e3,
    }
    failed = []
    for hold in case.hold:
        try:
            if not holds(hold.check, values):
                failed.append(f"{hold.text} ({figures(hold.check, values)})")
        except UserError:
            failed.append(f"{hold.text} (not seen)")
    return OnPath(path, values, tuple(failed), trajectory.recording)


def _missed(trigger: Trigger | None) -> str:
    if trigger is None:
        return "never reached the end"
    after = f" for the first time after {trigger.after_rtts:g} RTTs" if trigger.after_rtts else ""
    return f"did not reach {trigger.phase}{after}"


def _with(cc: str, constants: Mapping[str, float]) -> str:
    """The name with changed constants; those that the algorithm does not have are left out."""
    base, bracket, changes = cc.partition("[")
    algorithm = choose(base, {}).base
    has = set() if algorithm is None else {param.name for param in algorithm.params}
    texts = [f"{name}={value:g}" for name, value in constants.items() if name in has]
    texts += [changes.removesuffix("]")] if bracket else []
    return f"{base}[{','.join(texts)}]" if texts else cc


def _plain(value: Scalar) -> Scalar | None:
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    return value
