"""The models' predictions for the cells of an entry, kept in the store.

A model decides whether a cell lies within its domain. This module must not know claims.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from fullpipe.experiments.entry import Entry, Size
from fullpipe.experiments.run_store import Store, code_version
from fullpipe.experiments.values import Point
from fullpipe.expr.conditions import Condition
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.sweep.templates import fill

_KIND = "predictions"


def lacking(
    entry: Entry, size: Size, store: Store, where: str = ""
) -> dict[str, tuple[Plan, float]]:
    """Key -> plan and warm-up (s) of the cells that lack predictions. `where`: a condition on their
    axes."""
    found: dict[str, tuple[Plan, float]] = {}
    if any(metric.predict for metric in entry.metric.values()):
        for cell in entry.cells(size):
            if where and not Condition(where).holds(cell.fields):
                continue
            plan, warmup_s = resolve(cell.scenario), cell.scenario.warmup / 1e9
            key = _key(plan, warmup_s)
            if store.read_fact(_KIND, key) is None:
                found[key] = (plan, warmup_s)
    return found


def predict(plan: Plan, warmup_s: float, store: Store) -> None:
    """Stores the predictions of every model for a plan."""
    from fullpipe import models

    found = [
        {
            "model": one.model, "shares": one.shares, "queue_bytes": one.queue_bytes,
            "loss": one.loss, "jain_index": one.jain_index,
        }
        for one in models.predict(plan, warmup_s)
    ]  # fmt: skip
    store.write_fact(_KIND, _key(plan, warmup_s), found)


def predicted_cells(
    entry: Entry, size: Size, points: list[Point], store: Store
) -> dict[tuple[str, str, str], dict[int, float]]:
    """(predicted, metric, model) -> point -> value, for every stored prediction."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    cells = entry.cells(size)
    for index, point in enumerate(points):
        cell = cells[index % len(cells)]
        plan = resolve(cell.scenario)
        for one in store.read_fact(_KIND, _key(plan, cell.scenario.warmup / 1e9)) or []:
            for name, metric in entry.metric.items():
                where = f"{entry.source}: metric.{name}.predict"
                wanted = fill(metric.predict, point.fields, where)
                value = _pick(one, wanted, plan) if wanted else None
                if value is not None:
                    found.setdefault(("predicted", name, one["model"]), {})[index] = value
    return found


def _pick(prediction: dict[str, Any], wanted: str, plan: Plan) -> float | None:
    kind, _, cc = wanted.partition(":")
    if kind == "share":
        share: float | None = prediction["shares"].get(cc)
        return share
    if kind == "occupancy":
        limit = plan["path"]["qdisc"]["limit_bytes"]
        known = prediction["queue_bytes"] is not None and limit
        return prediction["queue_bytes"] / limit if known else None
    value: float | None = prediction["jain_index" if kind == "jain" else kind]
    return value


def _key(plan: Plan, warmup_s: float) -> str:
    facts = [{**plan, "name": ""}, warmup_s, code_version("sim"), _models_version()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@functools.cache
def _models_version() -> str:
    """A hash of the models' Python sources."""
    from fullpipe import models

    files = sorted(Path(models.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
