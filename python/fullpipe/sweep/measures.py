"""What a sweep's store keeps of runs: the metrics of many runs at once.

They are computed where the simulator is (crates/fullpipe-metrics), so that a run of two simulated
seconds takes a millisecond. Must never know an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fullpipe import _native
from fullpipe.base.columns import as_numpy, column
from fullpipe.congestion import stacks
from fullpipe.metrics.samples import COLUMNS, samples_of
from fullpipe.metrics.silence import sentences
from fullpipe.plan.blocked import blocked_flows
from fullpipe.plan.facts import Facts as PlanFacts
from fullpipe.plan.facts import facts_of as plan_facts
from fullpipe.recording.recording import Recording

#: Of what the stored metrics mean; part of the keys of runs.
VERSION = _native.metrics.VERSION


class Facts(NamedTuple):
    """What is known of a run beside its tables. `plan`: what its metrics need of its plan;
    `flows`: names; `blocked`: flows that cannot deliver anything, and why."""

    key: str
    seed: int
    engine: str
    plan: PlanFacts
    flows: tuple[str, ...] = ()
    blocked: Mapping[int, str] = {}
    problems: str = ""
    interrupted: bool = False


def facts_of(key: str, plan: Mapping[str, Any], seed: int, engine: str, warmup_ns: int) -> Facts:
    """The facts of a plan with this seed."""
    directions = [flow["direction"] for flow in plan["flows"]]
    return Facts(
        key,
        seed,
        engine,
        plan_facts(plan, directions, warmup_ns),
        tuple(flow["name"] for flow in plan["flows"]),
        blocked_flows(plan),
    )


class Rows:
    """Measures runs, one after another."""

    def __init__(self) -> None:
        self._measures = _native.Measures()
        self._facts: list[Facts] = []

    def __bool__(self) -> bool:
        return bool(self._facts)

    def add(self, facts: Facts, tables: Mapping[str, pa.Table]) -> None:
        """Adds a run by its tables."""

        def read(table: str, column: str) -> Any:
            return as_numpy(tables[table][column].combine_chunks())

        samples = samples_of(read, [queue.name for queue in facts.plan.queues])
        self._measures.add_recorded(samples, facts.plan)
        self._facts.append(facts)

    def simulate(self, runs: Sequence[tuple[Facts, bytes]]) -> list[tuple[int, Exception]]:
        """Runs plans (JSON, without traces of traffic) in the simulator and adds them; returns the
        places of those that failed, with the errors."""
        modules = sorted({module for _, plan in runs for module in stacks.modules_in(plan)})
        planned = [(facts.plan, plan) for facts, plan in runs]
        failures = self._measures.simulate(planned, stacks.transports(modules))
        failed = {index for index, _ in failures}
        self._facts += [facts for index, (facts, _) in enumerate(runs) if index not in failed]
        return failures

    @property
    def simulator_s(self) -> float:
        """CPU seconds of all `simulate` within the simulator."""
        return self._measures.simulator_s

    def take(self) -> dict[str, pa.Table]:
        """The rows of every table of a store for these runs, in their order; removes them here."""
        facts, self._facts = self._facts, []
        tables = self._measures.take()
        runs, flows, path = (
            {name: _array(*values) for name, values in tables[table].items()}
            for table in ("runs", "flows", "path")
        )
        key = column([run.key for run in facts], pa.string())
        silent, loss = runs.pop("silent").to_pylist(), path["loss_ratio"].to_pylist()
        problems = [_problems(*values) for values in zip(facts, silent, loss, strict=True)]
        return {
            "runs": pa.table(
                {
                    "key": key,
                    "seed": column([run.seed for run in facts], pa.uint64()),
                    "engine": column([run.engine for run in facts], pa.string()),
                    **runs,
                    "problems": column(problems, pa.string()),
                    "interrupted": column([run.interrupted for run in facts], pa.bool_()),
                }
            ),
            "flows": pa.table({"key": key.take(flows.pop("run")), **flows}),
            "path": pa.table(
                {
                    "key": key,
                    "queue": column([run.plan.queues[0].name for run in facts], pa.string()),
                    **path,
                }
            ),
        }


def _problems(facts: Facts, silent: str, loss_ratio: float | None) -> str:
    """Why a run is not to be trusted, its own silence included; empty where it is."""
    queue = facts.plan.queues[0].name if loss_ratio == 1 else ""
    if not silent and not queue:
        return facts.problems
    problems = sentences(facts.flows, [int(flow) for flow in silent.split()], facts.blocked, queue)
    problems = [facts.problems, *[problem for problem in problems if problem not in facts.problems]]
    return "; ".join(filter(None, problems))


def _array(kind: str, values: Any) -> pa.Array:
    """A column of the native module (crates/fullpipe-py/src/tables.rs); NaN becomes null."""
    if kind == "text":
        return column(values, pa.string())
    if kind == "f64":
        return column(np.frombuffer(values, np.float64), pa.float64())
    return column(np.frombuffer(values, np.uint64), pa.uint64())


def measured(runs: Iterable[tuple[Facts, Mapping[str, pa.Table]]]) -> dict[str, pa.Table]:
    """The rows of every table of SCHEMAS for these runs, in their order."""
    rows = Rows()
    for facts, tables in runs:
        rows.add(facts, tables)
    return rows.take()


def recorded(key: str, recording: Recording) -> tuple[Facts, dict[str, pa.Table]]:
    """A run as `measured` takes it, from its recording."""
    about = recording.metadata
    plan = about["plan"]
    if "flows" in plan:
        facts = facts_of(key, plan, plan["seed"], about["engine"], about["warmup_ns"])
    else:  # from elsewhere, such as an imported file of Flent
        flows = recording.table("flows").select(["direction", "flow"]).to_pydict()
        measured_facts = plan_facts(plan, flows["direction"], about["warmup_ns"])
        names = tuple(flows["flow"])
        facts = Facts(key, about.get("seed") or 0, about["engine"], measured_facts, names)
    facts = facts._replace(
        problems="; ".join(recording.problems), interrupted=bool(about.get("interrupted"))
    )
    return facts, {name: recording.table(name) for name in COLUMNS}
