"""What a worker does: runs a group of cells, measures them, adds them to the store.

Must never know axes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.base import engine
from fullpipe.engines.record import record_result
from fullpipe.engines.run import Run as EngineRun
from fullpipe.recording.unwritten import UnwrittenRecording
from fullpipe.sweep import leases
from fullpipe.sweep.applications import application_rows
from fullpipe.sweep.measures import Facts, Rows
from fullpipe.sweep.runs import Run
from fullpipe.sweep.schedule import Failure
from fullpipe.sweep.store import Store


@dataclass(frozen=True)
class Cells:
    """What groups of one sweep have in common; called with runs, it does them."""

    store: Path
    engine: str
    options: dict[str, str]
    keep_recordings: bool

    def __call__(self, runs: Sequence[Run]) -> list[Failure]:
        """Runs, measures and stores; a run that fails does not stop the others. What another
        program does at the same time is waited for, and run only if that one gives it up."""
        store = Store(self.store)
        failures: list[Failure] = []
        left = {run.facts.key: index for index, run in enumerate(runs)}
        while left:
            with leases.some_of(self.store, [*left]) as held:
                indices = [left.pop(key) for key in held]
                stored = store.keys_now()
                todo = [
                    index
                    for index in sorted(indices)
                    if self._is_missing(store, stored, runs[index].facts.key)
                ]
                failed = self._done(store, [runs[index] for index in todo])
            failures += [Failure(todo[index], reason) for index, reason in failed]
        return failures

    def _is_missing(self, store: Store, stored: Set[str], key: str) -> bool:
        return key not in stored or (self.keep_recordings and not store.recording(key).is_dir())

    def _done(self, store: Store, runs: Sequence[Run]) -> list[tuple[int, str]]:
        """Does these runs; gives the positions of those that failed, and why."""
        rows = Rows()
        applications: list[pa.Table] = []
        recordings: dict[str, Path] = {}
        failures: list[tuple[int, str]] = []
        direct: list[int] = []
        for index, run in enumerate(runs):
            # The engine prepares algorithms from files and traffic, and applications are measured
            # from tables. The simulator takes all other plans as they are: making tables of a short
            # run takes a third of its time.
            if self.engine == "sim" and not (
                self.keep_recordings or run.external or run.has_applications
            ):
                direct.append(index)
                continue
            try:
                rows.add(*self._recorded(store, run, recordings, applications))
            except (RunError, UserError) as error:
                failures.append((index, str(error)))
        failed = rows.simulate([(runs[index].facts, runs[index].plan) for index in direct])
        failures += [(direct[position], str(error)) for position, error in failed]
        try:
            if rows:
                extra = {"applications": pa.concat_tables(applications)} if applications else {}
                store.write(rows.take() | extra, recordings)
        finally:
            for folder in recordings.values():
                shutil.rmtree(folder, ignore_errors=True)
        return failures

    def _recorded(
        self, store: Store, run: Run, recordings: dict[str, Path], applications: list[pa.Table]
    ) -> tuple[Facts, Mapping[str, pa.Table]]:
        """A run as `Rows.add` takes it. Adds its recording to `kept` where recordings are kept, and
        the rows of its applications."""
        plan = json.loads(run.plan)
        result = engine(self.engine).run(plan, lambda _done: True, self.options)
        if result.failure:
            raise RunError(result.failure)
        if self.keep_recordings:
            folder = store.workplace()
            done = EngineRun(plan, run.document, run.warmup_ns, self.engine, self.options)
            record_result(done, folder, result)
            recordings[run.facts.key] = folder
        if run.has_applications:
            metadata = {"plan": plan, "warmup_ns": run.warmup_ns}
            unwritten = UnwrittenRecording(store.folder, metadata, tables=result.tables)
            applications.append(application_rows(run.facts.key, unwritten))
        problems = "; ".join(str(problem) for problem in result.health.get("problems", []))
        facts = run.facts._replace(problems=problems, interrupted=result.interrupted)
        return facts, result.tables
