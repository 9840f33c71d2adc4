"""What a worker does: runs a group of cells, measures them at once, adds them to the store.

It loads no more than that needs: a cell may take a millisecond. Must never know axes.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fullpipe.base.errors import RunError, UserError
from fullpipe.sweep.collector import without_collector
from fullpipe.sweep.measures import Facts, Rows
from fullpipe.sweep.schedule import Failure
from fullpipe.sweep.spool import Pieces, Span, joined, opened
from fullpipe.sweep.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

#: An algorithm from a file, in a plan's JSON.
_OUTSIDE = re.compile(rb'"algorithm":"([^"]*@[^"]*)"')


class Run(NamedTuple):
    """A run to do. Its plan lies in the spool, JSON in pieces, and behind them where recordings are
    kept the scenario's TOML. Traffic is drawn or read by the engine."""

    facts: Facts
    plan: tuple[Span, ...]
    document: tuple[Span, ...]
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
        with without_collector(), opened(self.spool) as pieces:
            unknown = _unknown(pieces, {span for run in runs for span in run.plan})
            for index, run in enumerate(runs):
                try:
                    # The engine brings a trace's flows along, and lays those that ended on disk.
                    if not bare or run.has_traffic:
                        rows.add(*self._recorded(store, run, pieces, kept))
                    elif unknown and (reasons := unknown.keys() & run.plan):
                        raise unknown[reasons.pop()]
                    else:
                        short.append(index)
                except (RunError, UserError, ValueError, RuntimeError) as error:
                    failures.append(Failure(index, _reason(error)))
            failed = rows.simulate(
                [(runs[index].facts, runs[index].plan) for index in short], pieces
            )
            failures += [Failure(short[place], _reason(error)) for place, error in failed]
        try:
            if rows:
                store.write(rows, kept)
        finally:
            for folder in kept.values():
                shutil.rmtree(folder, ignore_errors=True)
        return failures

    def _recorded(
        self, store: Store, run: Run, pieces: Pieces, kept: dict[str, Path]
    ) -> tuple[Facts, Mapping[str, pa.Table]]:
        from fullpipe.engines.base import engine  # what only these runs need
        from fullpipe.engines.runner import record_result

        plan: dict[str, Any] = json.loads(joined(pieces, run.plan))
        result = engine(self.engine).run(plan, lambda _done: True, self.options)
        if result.failure:
            raise RunError(result.failure)
        if self.keep_recordings:
            place = store.workplace()
            document = joined(pieces, run.document).decode()
            record_result(plan, document, place, self.engine, self.options, result)
            kept[run.facts.key] = place
        problems = "; ".join(str(one) for one in result.health.get("problems", []))
        facts = run.facts._replace(problems=problems, interrupted=result.interrupted)
        return facts, result.tables


def _unknown(pieces: Pieces, spans: Collection[Span]) -> dict[Span, Exception]:
    """Loads the algorithms of files that pieces of plans name; gives the pieces of which one cannot
    be loaded, with why."""
    found: dict[Span, Exception] = {}
    for begin, length in spans:
        piece = pieces[begin : begin + length]
        for name in set(_OUTSIDE.findall(piece)) if b"@" in piece else ():
            from fullpipe.congestion import external  # what only these runs need

            try:
                external.load(name.decode())
            except (RunError, UserError, ValueError, RuntimeError) as error:
                found[begin, length] = error
    return found


def _reason(error: Exception) -> str:
    if not hasattr(error, "details"):
        return str(error)
    from fullpipe.congestion import external

    return f"{external.explain(*error.details)}: {error}"
