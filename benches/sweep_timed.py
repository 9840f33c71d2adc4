"""An extra module for workers of a timed sweep (bench_sweep.py): adds up the CPU time spent in the
simulator, in one file for each process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fullpipe.sweep import worker
from fullpipe.sweep.measures import Facts, Rows

#: Names the folder of those files.
FOLDER = "FULLPIPE_BENCH_SUMS"

_spent_s = 0.0


class _Timed(Rows):
    """A worker's rows, which tell what the simulator took."""

    def simulate(self, runs: Sequence[tuple[Facts, bytes]]) -> list[tuple[int, Exception]]:
        """The runs; adds up their CPU time and writes it down."""
        global _spent_s
        before_s = self.simulator_s
        failures = super().simulate(runs)
        _spent_s += self.simulator_s - before_s
        (Path(os.environ[FOLDER]) / str(os.getpid())).write_text(repr(_spent_s))
        return failures


worker.Rows = _Timed  # type: ignore[misc]
