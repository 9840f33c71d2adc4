"""Numbers of a Flent file: by bytes and, on request, as Flent interpolates.

The two differ where netperf's interim results are rare. Flent drops a grid point whose next sample
is more than five steps away, and `TCP upload sum` counts a dropped point as 0; so the mean of the
sum falls as queues grow although no byte is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fullpipe.flent.container import FlentError
from fullpipe.flent.document import FlentFile, Floats, Raw, clean

#: The largest valid rate (10 Tbit/s).
MAX_MBPS = 1e7


@dataclass(frozen=True)
class FlowTotal:
    """Payload bytes of one flow over `elapsed_s` seconds from `start_s` (since T0).

    `certain` is False where netperf's mean or its duration is missing and the interim results stand
    in for it."""

    series: str
    direction: str
    bytes_delivered: int
    start_s: float
    elapsed_s: float
    certain: bool

    @property
    def rate_bps(self) -> float:
        """Bytes over time."""
        return 8 * self.bytes_delivered / self.elapsed_s if self.elapsed_s else 0.0


@dataclass(frozen=True)
class Interim:
    """Netperf's interim results of a flow: payload bytes between `start_s` and `end_s` (s since
    T0) each."""

    start_s: Floats
    end_s: Floats
    bytes: Floats


def flow_totals(file: FlentFile) -> list[FlowTotal]:
    """By bytes: netperf's mean over the whole flow times its duration (SERIES_META MEAN_VALUE and
    ELAPSED_TIME), in the order of `file.flows`. Older files have no duration: then that of the
    interim results stands in, or the test's. Raises FlentError."""
    return [_total(file, series, direction) for series, direction in file.flows]


def total_bps(file: FlentFile, direction: str) -> float:
    """All flows of a direction (`up`, `down`) together: the sum of their rates by bytes."""
    return sum(flow.rate_bps for flow in flow_totals(file) if flow.direction == direction)


def interim(file: FlentFile, series: str) -> Interim:
    """Netperf's interim results of a flow, in the order of time, or what Flent interpolated of them
    where the file has neither them nor their mean; else empty."""
    unit = file.mbps_unit(series)
    raw = file.raw.get(series, Raw(f"{file.path}: results[{clean(series)!r}]", ())).with_key("val")
    if len(raw):
        ends, mbps, lasted = file.since_t0(raw), raw.column("val") * unit, raw.column("dur")
    else:
        ends, mbps = _grid(file, series)
        mbps, lasted = mbps * unit, np.full(ends.size, np.nan)
    before = np.diff(ends, prepend=ends[0] - file_step(file) if ends.size else 0.0)
    lasted = np.where(np.isnan(lasted), before, lasted)
    for values, key, most in ((mbps, "val", MAX_MBPS), (lasted, "dur", 1e7)):
        if values.size and not ((values >= 0) & (values <= most)).all():
            raise FlentError(f"{raw.where}.{key}: must be from 0 to {most:g}")
    return Interim(ends - lasted, ends, mbps * 1e6 / 8 * lasted)


def interpolated(file: FlentFile, series: str) -> Floats:
    """A series as Flent interpolated it, gaps left out. `series` is its name, or `throughput` (the
    sum of uploads, else the single upload, else the same of downloads), or `ping`.

    Raises FlentError if the file has no such series."""
    results = file.results
    for name in _candidates(series):
        if name in results:
            values = results[name]
            return np.asarray(values[~np.isnan(values)])
    some = ", ".join(sorted(clean(name) for name in results if "::" not in name)[:8])
    raise FlentError(f"{file.path}: has no series {series!r}; it has {some or 'none'}")


def ping_rtts_ms(file: FlentFile) -> Floats:
    """Raw round-trip times: of the ICMP probe, or of all probes where it goes by no such name;
    empty if there is none."""
    names = [n for n in _candidates("ping") if n in file.pings] or file.pings
    columns = [file.raw[name].with_key("val").column("val") for name in names]
    return np.concatenate(columns) if columns else np.empty(0)


def file_step(file: FlentFile) -> float:
    """The step of the grid in seconds: STEP_SIZE, else what x_values say, else Flent's 0.2."""
    step = file.seconds("STEP_SIZE")
    if step:
        return step
    return float(np.median(np.diff(file.x))) if file.x.size > 1 else 0.2


def _total(file: FlentFile, series: str, direction: str) -> FlowTotal:
    pieces = interim(file, series)
    mean, elapsed = (file.meta_number(series, key) for key in ("MEAN_VALUE", "ELAPSED_TIME"))
    where = f"{file.path}: metadata.SERIES_META[{clean(series)!r}]"
    mean = None if mean is None else mean * file.mbps_unit(series)
    if mean is not None and not 0 <= mean <= MAX_MBPS:
        raise FlentError(f"{where}.MEAN_VALUE: must be from 0 to {MAX_MBPS:g} Mbit/s")
    if elapsed is not None and not 0 <= elapsed <= 1e7:
        raise FlentError(f"{where}.ELAPSED_TIME: must be from 0 to 1e7 s")
    start = max(0.0, float(pieces.start_s[0])) if pieces.start_s.size else _delay(file)
    covered_s = float(pieces.end_s[-1]) - start if pieces.end_s.size else 0.0
    if mean is not None:
        lasted = elapsed or max(covered_s, 0.0) or file.seconds("LENGTH") or 0.0
        counted = round(mean * 1e6 / 8 * lasted)
        return FlowTotal(series, direction, counted, start, lasted, bool(elapsed))
    added_up = round(float(pieces.bytes.sum()))
    return FlowTotal(series, direction, added_up, start, max(covered_s, 0.0), False)


def stands_on_its_grid(file: FlentFile, series: str) -> bool:
    """Whether only what Flent interpolated tells of a flow."""
    raw = file.raw.get(series)
    has_raw = raw is not None and len(raw.with_key("val")) > 0
    return not has_raw and file.meta_number(series, "MEAN_VALUE") is None


def _grid(file: FlentFile, series: str) -> tuple[Floats, Floats]:
    """Times and values that Flent interpolated, where nothing else tells of a flow."""
    grid = file.results.get(series)
    if grid is None or not stands_on_its_grid(file, series):
        return np.empty(0), np.empty(0)
    there = ~np.isnan(grid)
    return file.x[there], grid[there]


def _delay(file: FlentFile) -> float:
    """Flows begin this long after T0: half of what the test lasts beyond the flows."""
    total, length = file.seconds("TOTAL_LENGTH"), file.seconds("LENGTH")
    return max(0.0, (total - length) / 2) if total and length else 0.0


def _candidates(series: str) -> list[str]:
    if series == "throughput":
        return ["TCP upload sum", "TCP upload", "TCP download sum", "TCP download"]
    if series == "ping":
        return ["Ping (ms) ICMP", "Ping (ms) avg"]
    return [series]
