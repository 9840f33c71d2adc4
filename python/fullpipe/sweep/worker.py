"""What a worker does: runs a group of cells, measures them at once, adds them to the store.

It loads no more than that needs: a cell may take a millisecond. Must never know axes.
"""

from __future__ import annotations

import json
import mmap
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fullpipe.errors import RunError, UserError
from fullpipe.sweep.collector import without_collector
from fullpipe.sweep.measures import Facts, Rows
from fullpipe.sweep.schedule import Failure
from fullpipe.sweep.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

#: An algorithm from a file, in a plan's JSON.
_OUTSIDE = re.compile(rb'"algorithm":"([^"]*@[^"]*)"')


class Run(NamedTuple):
    """A run to do. Its plan lies in the spool, JSON from `offset` on and the scenario's TOML behind
    it, so that a million of them wait on disk and not in memory. Traffic is drawn or read by the
    engine."""

    facts: Facts
    offset: int
    plan_bytes: int
    document_bytes: int
    has_traffic: bool


@dataclass(frozen=True)
class Cells:
    """What groups of one sweep have in common; called with runs, it does them."""

    store: Path
    spool: Path
    engine: str
    options: dict[str, str]
    keep_recordings: bool

    def __call__(self, runs: Sequence[Run]) -> list[Failure]:
        """Runs, measures and stores; a run that fails does not stop the others."""
        store = Store(self.store)
        rows = Rows()
        kept: dict[str, Path] = {}
        failures: list[Failure] = []
        bare = self.engine == "sim" and not self.keep_recordings
        short: list[int] = []
        texts = _spooled(self.spool, runs)
        with without_collector():
            for index, (run, (text, document)) in enumerate(zip(runs, texts, strict=True)):
                try:
                    # The engine brings a trace's flows along, and lays those that ended on disk.
                    if bare and not run.has_traffic:
                        _know(text)
                        short.append(index)
                    else:
                        rows.add(*self._recorded(store, run, text, document, kept))
                except (RunError, UserError, ValueError, RuntimeError) as error:
                    failures.append(Failure(index, _reason(error)))
            failed = rows.simulate([(runs[index].facts, texts[index][0]) for index in short])
            failures += [Failure(short[place], _reason(error)) for place, error in failed]
        try:
            if rows:
                store.write(rows, kept)
        finally:
            for folder in kept.values():
                shutil.rmtree(folder, ignore_errors=True)
        return failures

    def _recorded(
        self, store: Store, run: Run, text: bytes, document: str, kept: dict[str, Path]
    ) -> tuple[Facts, Mapping[str, pa.Table]]:
        from fullpipe.engines.base import engine  # what only these runs need
        from fullpipe.engines.runner import record_result

        plan: dict[str, Any] = json.loads(text)
        result = engine(self.engine).run(plan, lambda _done: True, self.options)
        if result.failure:
            raise RunError(result.failure)
        if self.keep_recordings:
            place = store.workplace()
            record_result(plan, document, place, self.engine, self.options, result)
            kept[run.facts.key] = place
        problems = "; ".join(str(one) for one in result.health.get("problems", []))
        facts = run.facts._replace(problems=problems, interrupted=result.interrupted)
        return facts, result.tables


def _spooled(spool: Path, runs: Sequence[Run]) -> list[tuple[bytes, str]]:
    """The plan of each run, and its scenario's TOML."""
    found = []
    # A call for each would take longer than its bytes.
    with (
        spool.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as plans,
    ):
        for run in runs:
            middle = run.offset + run.plan_bytes
            document = plans[middle : middle + run.document_bytes] if run.document_bytes else b""
            found.append((plans[run.offset : middle], document.decode()))
    return found


def _know(plan_json: bytes) -> None:
    """Loads the algorithms of files that a plan names."""
    names = set(_OUTSIDE.findall(plan_json)) if b"@" in plan_json else None
    if names:
        from fullpipe import outside  # what only these runs need

        for name in names:
            outside.load(name.decode())


def _reason(error: Exception) -> str:
    if not hasattr(error, "details"):
        return str(error)
    from fullpipe import outside

    return f"{outside.explain(*error.details)}: {error}"
