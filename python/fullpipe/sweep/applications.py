"""What a sweep's store keeps of pages, streams of datagrams, probes and flows that come and go: the
figures of `metrics.kinds`, a row each. Must never know an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fullpipe.base.columns import column
from fullpipe.metrics.kinds import KINDS
from fullpipe.metrics.summary import applications
from fullpipe.metrics.view import View
from fullpipe.recording.recording import Recording

#: Keys of a plan whose runs have such rows. The native metrics have none of these.
_PLANNED = ("pages", "datagrams", "probes", "traffic")
#: Part of the keys of these runs: what the rows are.
VERSION = 1
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("figure", pa.string()),
        ("value", pa.float64()),
    ]
)
#: Kind -> the columns of its view, which the figures become.
COLUMNS = {kind.key: [figure.column for figure in kind.figures] for kind in KINDS}
#: Kind -> the column of its view with the name of a page, stream, probe or group.
NAMES = {kind.key: kind.named for kind in KINDS}


def has_applications(plan: Mapping[str, Any]) -> bool:
    """Whether runs of a plan have rows."""
    return any(plan.get(key) for key in _PLANNED)


def application_rows(key: str, recording: Recording) -> pa.Table:
    """The rows of a recorded run. What there is nothing of has no row."""
    summary = applications(View(recording))
    rows = [
        (kind.key, str(row[kind.named]), figure.column, value)
        for kind in KINDS
        for row in summary.get(kind.key, ())
        for figure in kind.figures
        if (value := figure.read(row)) is not None
    ]
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    texts = [column(values, pa.string()) for values in ([key] * len(rows), *columns[:3])]
    return pa.table([*texts, column(columns[3], pa.float64())], schema=SCHEMA)


def view_of_kind(kind: str, rows: str) -> str:
    """A SELECT of a view's columns, a row for each of a kind in a run, from the table `rows`."""
    figures = ", ".join(
        f"max(value) filter (figure = '{name}') as {name}" for name in COLUMNS[kind]
    )
    return (
        f"select key, name as {NAMES[kind]}, {figures} from {rows} where kind = '{kind}' "
        "group by key, name"
    )
