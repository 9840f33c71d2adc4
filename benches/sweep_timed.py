"""What workers of a timed sweep load beside what they always do: CPU time within the simulator is
added up in a file for each process. Of bench_sweep.py; nothing else imports it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fullpipe.sweep import worker
from fullpipe.sweep.schedule import Failure

#: Names the folder of those files.
FOLDER = "FULLPIPE_BENCH_SUMS"

_native = worker._native
_run_cells = worker.Cells.__call__
_spent_s = 0.0


class _Timed:
    """The native module as a worker uses it."""

    class sim:  # noqa: N801 - the native module's name
        """The simulator."""

        @staticmethod
        def simulate(plan: str) -> Any:
            """The run, its CPU time added."""
            global _spent_s
            begin = time.process_time()
            try:
                return _native.sim.simulate(plan)
            finally:
                _spent_s += time.process_time() - begin


def _run_and_tell(self: worker.Cells, runs: Sequence[worker.Run]) -> list[Failure]:
    try:
        return _run_cells(self, runs)
    finally:
        place = Path(os.environ[FOLDER]) / str(os.getpid())
        place.write_text(repr(_spent_s))


worker._native = _Timed  # type: ignore[assignment]
worker.Cells.__call__ = _run_and_tell  # type: ignore[method-assign]
