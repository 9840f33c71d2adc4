"""A recording that no file holds: the tables of a run that is measured and let go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from fullpipe.recording.recording import TABLES, Recording

_SAMPLES = "cc_samples"


@dataclass(frozen=True)
class UnwrittenRecording(Recording):
    """The tables of a run and its metadata; `path` is that of nothing."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def table(self, name: str) -> pa.Table:
        """One table, with all its columns."""
        return self.tables[name]

    def names(self, name: str) -> list[str]:
        """The names of a table's columns."""
        return list(self.tables[name].column_names)

    @cached_property
    def variables(self) -> list[str]:
        """The columns of `cc_samples` that only some algorithms have."""
        return [name for name in self.names(_SAMPLES) if name not in TABLES[_SAMPLES].names]

    def rows(self, name: str) -> int:
        """How many rows a table has."""
        return int(self.tables[name].num_rows)

    def columns(self, name: str, names: Sequence[str]) -> pa.Table:
        """Some columns of a table."""
        return self.tables[name].select(names)

    def has(self, name: str) -> bool:
        """Whether the run has this table."""
        return name in self.tables
