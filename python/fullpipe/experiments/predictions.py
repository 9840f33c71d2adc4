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
    plans: dict[str, tuple[Plan, float]] = {}
    if any(metric.predict for metric in entry.metric.values()):
        for cell in entry.cells(size):
            if where and not Condition(where).holds(cell.fields):
                continue
            plan, warmup_s = resolve(cell.scenario), cell.scenario.warmup / 1e9
            key = _key(plan, warmup_s)
            if store.read_fact(_KIND, key) is None:
                plans[key] = (plan, warmup_s)
    return plans


def predict(plan: Plan, warmup_s: float, store: Store) -> None:
    """Stores the predictions of every model for a plan."""
    from fullpipe import models

    predictions = [
        {
            "model": prediction.model,
            "shares": prediction.shares,
            "queue_bytes": prediction.queue_bytes,
            "loss": prediction.loss,
            "jain_index": prediction.jain_index,
        }
        for prediction in models.predict(plan, warmup_s)
    ]
    store.write_fact(_KIND, _key(plan, warmup_s), predictions)


def predicted_cells(
    entry: Entry, size: Size, points: list[Point], store: Store
) -> dict[tuple[str, str, str], dict[int, float]]:
    """(predicted, metric, model) -> point -> value, for every stored prediction."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    cells = entry.cells(size)
    for index, point in enumerate(points):
        cell = cells[index % len(cells)]
        plan = resolve(cell.scenario)
        for prediction in store.read_fact(_KIND, _key(plan, cell.scenario.warmup / 1e9)) or []:
            for name, metric in entry.metric.items():
                where = f"{entry.source}: metric.{name}.predict"
                wanted = fill(metric.predict, point.fields, where)
                value = _pick(prediction, wanted, plan) if wanted else None
                if value is not None:
                    values.setdefault(("predicted", name, prediction["model"]), {})[index] = value
    return values


def _pick(prediction: dict[str, Any], wanted: str, plan: Plan) -> float | None:
    kind, _, cc = wanted.partition(":")
    if kind == "share":
        share: float | None = prediction["shares"].get(cc)
        return share
    if kind == "occupancy":
        limit = plan["path"]["qdisc"]["limit_bytes"]
        defined = prediction["queue_bytes"] is not None and limit
        return prediction["queue_bytes"] / limit if defined else None
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
