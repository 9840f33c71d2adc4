"""Reference traces: a flow's window, flight, RTT and rates over time at even intervals, for others
to hold their own implementation against. Must never judge.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from fullpipe.base.errors import UserError
from fullpipe.metrics.view import View
from fullpipe.recording.recording import Recording

#: Intervals in ms.
INTERVALS_MS = (1, 5, 100)
_COLUMNS = (
    "cwnd_packets",
    "ssthresh_packets",
    "inflight_packets",
    "srtt_us",
    "min_rtt_us",
    "pacing_rate_bps",
    "delivery_rate_bps",
    "bytes_delivered",
    "packets_sent",
    "packets_lost",
)


def trace_of(recording: Recording, interval_ms: int) -> pa.Table:
    """The first flow's samples at even times: `t_ms`, then the columns of `flow_samples` and the
    phase, each as the last sample at or before that time has it; null before there is one, and
    where the host does not tell."""
    view = View(recording, start_s=-1.0)
    flow = view.flow_samples(0)
    last_ms = float(flow["t_us"][-1]) / 1e3
    t_ms = np.arange(0.0, last_ms + 1e-9, interval_ms)
    at = np.searchsorted(flow["t_us"], t_ms * 1e3 + 1e-6, side="right") - 1
    has_sample = at >= 0
    columns = {"t_ms": pa.array(t_ms)}
    for name in _COLUMNS:
        values = np.where(has_sample, flow[name][at], np.nan)
        columns[name] = pa.array(values, pa.float64(), mask=np.isnan(values))
    columns["phase"] = _phases(view, t_ms)
    return pa.table(columns)


def write_traces(recording: Recording, folder: Path, case: str, path: str) -> list[Path]:
    """Writes the trace at each of INTERVALS_MS as CSV; gives the files. Raises UserError where it
    cannot."""
    stem = re.sub(r"[^a-z0-9.]+", "_", f"{case} {path}".lower())
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for interval_ms in INTERVALS_MS:
            file = folder / f"{stem}_{interval_ms}ms.csv"
            pc.write_csv(trace_of(recording, interval_ms), file)
            files.append(file)
    except OSError as error:
        raise UserError(f"--traces {folder}: cannot be written: {error.strerror}") from None
    return files


def _phases(view: View, t_ms: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pa.Array:
    samples = view.samples("cc_samples")
    of_flow = samples["flow_id"] == 0
    t_us, phase = samples["t_us"][of_flow], samples["phase"][of_flow]
    if not t_us.size:
        return pa.nulls(t_ms.size, pa.string())
    at = np.searchsorted(t_us, t_ms * 1e3 + 1e-6, side="right") - 1
    return pa.array([None if i < 0 else phase[i] for i in at], pa.string())
