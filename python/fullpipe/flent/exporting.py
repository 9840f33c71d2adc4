"""A recording as a .flent.gz of format version 4, which Flent opens and plots.

Rates are bytes over time at every point: Flent's `avg` is the whole flow's. The file's bytes
depend on the recording alone: a recording without a date gets a fixed one.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.flent.applications import page_series, stream_series
from fullpipe.flent.document import Floats
from fullpipe.flent.gridding import Columns, SeriesData, flow_series, ping_series, queue_series
from fullpipe.flent.shapes import TESTS, End, Shape, of_applications, shape, with_applications
from fullpipe.flent.templates import DELAY_S, Template, names, shape_of, template
from fullpipe.flent.versions import FORMAT_VERSION
from fullpipe.recording.recording import Recording, RecordingError

STEP_S = 0.2
#: The date of recordings that have none: simulated time has no calendar.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def export_flent(
    recording: Recording, out: Path, test: str | None = None, title: str | None = None
) -> Shape:
    """Writes the recording to the file `out`, whole or not at all, and returns the shape that it
    was given. Raises UserError if it fits no test or `out` exists or cannot be written."""
    if out.exists():
        raise UserError(f"{out}: exists already; name another file with --out")
    document, shape_used = flent_document(recording, test, title)
    document["metadata"]["DATA_FILENAME"] = out.name
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
    partial = out.with_name(f".{out.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
        partial.rename(out)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{out}: cannot be written: a folder of its path is a file") from None
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return shape_used


def flent_document(
    recording: Recording, test: str | None = None, title: str | None = None
) -> tuple[dict[str, Any], Shape]:
    """The recording as the JSON object of a Flent file, and its shape."""
    tables = {
        name: _columns(recording, name)
        for name in ("flows", "flow_samples", "cc_samples", "ping_samples", "queue_samples")
    }
    flows = tables["flows"]
    probes = list(dict.fromkeys(map(str, tables["ping_samples"]["probe"])))
    origin = recording.metadata.get("flent", {}).get("name")
    of_test = _template(recording, test)
    ends = _ends(recording, flows)
    named = dict(zip(map(str, flows["flow"]), ends, strict=True))
    plan = recording.metadata.get("plan", {})
    pages, streams = (
        [str(entry["name"]) for entry in plan.get(key, [])] for key in ("pages", "datagrams")
    )
    layout = shape_of(of_test, named, probes, pages, streams) if of_test else None
    if layout is None and not ends and test is None:
        layout = of_applications(pages, streams, probes)
    if layout is None:
        of_flows = shape(test or (origin if origin in TESTS else None), ends, probes)
        layout = with_applications(of_flows, pages, streams)
    clock = _Clock(recording, tables, of_test if of_test and layout.test == of_test.name else None)
    data: dict[str, SeriesData] = {}
    for index, name in enumerate(layout.flows):
        data |= flow_series(name, index, tables, clock.x, clock.start_s, clock.t0)
    for name, probe in zip(layout.pings, probes, strict=True):
        data[name] = ping_series(tables["ping_samples"], probe, clock.x, clock.start_s, clock.t0)
    for index, name in enumerate(layout.pages):
        loads = _columns(recording, "page_loads")
        data[name] = page_series(loads, index, clock.x, clock.start_s, clock.t0)
    for index, name in enumerate(layout.streams):
        sent = _columns(recording, "datagrams")
        data |= stream_series(name, sent, index, clock.x, clock.start_s, clock.t0)
    queues = queue_series(tables["queue_samples"], clock.x, clock.start_s, clock.t0)
    data |= queues
    for name, (how, of) in layout.computed.items():
        parts = [data[part] for part in of]
        data[name] = _computed(how, parts)
    metadata = _metadata(recording, layout, clock, title)
    if queues:
        hosts = dict.fromkeys(name.split("::")[0].removeprefix("qdisc_stats_") for name in queues)
        metadata["TEST_PARAMETERS"] |= {
            "qdisc_stats_hosts": ",".join(hosts),
            "qdisc_stats_interfaces": ",".join("bottleneck" for _ in hosts),
        }
    metadata["SERIES_META"] = {name: series.meta for name, series in data.items()}
    return {
        "version": FORMAT_VERSION,
        "metadata": metadata,
        "x_values": [round(float(x), 6) for x in clock.x],
        "results": {
            name: _listed(series.grid) for name, series in data.items() if series.grid is not None
        },
        "raw_values": {name: series.raw for name, series in data.items() if series.raw is not None},
    }, layout


class _Clock:
    """Maps the recording to Flent's axis: it starts at `start_s` of `x`, whose 0 is the Unix time
    `t0`."""

    def __init__(
        self, recording: Recording, tables: dict[str, Columns], of_test: Template | None
    ) -> None:
        metadata = recording.metadata
        origin = metadata.get("flent") if metadata.get("engine") == "flent" else None
        plan = metadata.get("plan", {})
        times = [table["t_us"] for name, table in tables.items() if name != "flows"]
        last_s = max((float(t.max()) / 1e6 for t in times if t.size), default=0.0)
        planned_s = float(plan.get("duration_ns") or 0) / 1e9
        self.step_s = max(STEP_S, float(plan.get("sample_interval_ns") or 0) / 1e9)
        # A run of a test has its streams' delay in it.
        self.start_s = 0.0 if origin or of_test else DELAY_S
        self.length_s = planned_s or last_s
        if of_test:
            self.length_s = max(0.0, self.length_s - of_test.delay_s - of_test.tail_s)
        self.total_s = planned_s if of_test else self.length_s + 2 * self.start_s
        self.t0 = float(origin["t0_unix_s"]) if origin else EPOCH.timestamp()
        if origin:
            self.length_s = origin.get("length_s") or self.length_s
            self.total_s = origin.get("total_length_s") or self.total_s
        end_s = max(self.total_s, last_s + self.start_s)
        if end_s / self.step_s > 10_000_000:
            raise RecordingError(f"{recording.path}: lasts {end_s:.0f} s; too long to export")
        self.x = np.arange(round(end_s / self.step_s) + 1) * np.float64(self.step_s)

    @property
    def iso(self) -> str:
        """The time of x = 0 as Flent writes it."""
        when = datetime.fromtimestamp(self.t0, UTC)
        return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _template(recording: Recording, test: str | None) -> Template | None:
    """The test that the recording's scenario says it is, unless another one is wanted."""
    name = recording.document.get("flent_test")
    return template(name) if name in names() and test in (None, name) else None


def _metadata(
    recording: Recording, layout: Shape, clock: _Clock, title: str | None
) -> dict[str, Any]:
    engine = str(recording.metadata.get("engine"))
    name = recording.metadata.get("plan", {}).get("name")
    return {
        "NAME": layout.test,
        "TITLE": str(title or name or recording.path.name),
        "TIME": clock.iso,
        "T0": clock.iso,
        "LOCAL_HOST": "fullpipe",
        "HOST": layout.hosts[0],
        "HOSTS": list(layout.hosts),
        "LENGTH": _whole(clock.length_s),
        "TOTAL_LENGTH": _whole(clock.total_s),
        "STEP_SIZE": clock.step_s,
        "TEST_PARAMETERS": dict(layout.parameters),
        "FLENT_VERSION": f"fullpipe {fullpipe.__version__}",
        "IP_VERSION": 4,
        "NOTE": f"exported from a recording of engine {engine}",
        "FAILED_RUNNERS": 0,
        "BATCH_NAME": None,
        "BATCH_TIME": None,
        "BATCH_TITLE": None,
        "BATCH_UUID": None,
        "KERNEL_RELEASE": recording.metadata.get("kernel"),
    }


def _computed(how: str, parts: list[SeriesData]) -> SeriesData:
    """A sum, average or Jain's index over series, at every point over those that are there."""
    meta: dict[str, Any] = {
        "UNITS": "Idx" if how == "fairness" else parts[0].meta["UNITS"] if parts else "",
        "COMPUTED_LATE": False,
    }
    means = [part.meta["MEAN_VALUE"] for part in parts if "MEAN_VALUE" in part.meta]
    if means:
        meta["MEAN_VALUE"] = _combined(how, np.array(means)[:, None])[0]
    if not parts:
        return SeriesData(None, [], meta)
    grid = _combined(how, np.vstack([part.grid for part in parts if part.grid is not None]))
    return SeriesData(grid, [], meta)


def _combined(how: str, values: Floats) -> Floats:
    there = ~np.isnan(values)
    count, measured = there.sum(axis=0), np.where(there, values, 0.0)
    total = measured.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if how == "average":
            combined = total / count
        elif how == "fairness":
            combined = total**2 / (count * (measured**2).sum(axis=0))
        else:
            combined = total
    return np.where(count > 0, combined, np.nan)


def _ends(recording: Recording, flows: Columns) -> list[End]:
    ends = []
    for direction, rtt in zip(flows["direction"], flows["base_rtt_us"], strict=True):
        if direction not in ("up", "down"):
            raise RecordingError(f"{recording.path}/flows: direction must be up or down")
        ends.append(End(direction, None if np.isnan(rtt) else round(rtt)))
    return ends


def _columns(recording: Recording, name: str) -> Columns:
    table = recording.table(name)
    return {
        column: np.asarray(
            values.to_numpy(zero_copy_only=False),
            dtype=object if values.type == "string" else np.float64,
        )
        for column, values in zip(table.column_names, table.columns, strict=True)
    }


def _listed(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _whole(seconds: float) -> int | float:
    return round(seconds) if abs(seconds - round(seconds)) < 1e-9 else seconds
