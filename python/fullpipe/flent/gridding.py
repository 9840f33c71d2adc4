"""Series of a Flent file from the columns of a recording: raw values, and the grid.

On the grid a rate is the bytes of the step that ends there over the step; a gauge is interpolated
between its samples, with a gap where the next is more than five steps away, as Flent does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe.flent.document import Floats

Columns = dict[str, npt.NDArray[Any]]

#: Flent's name -> column, and how many of the column's unit make one of Flent's.
_FLOW_GAUGES = {
    "tcp_cwnd": ("cwnd_packets", 1.0),
    "tcp_rtt": ("srtt_us", 1e3),
    "tcp_pacing_rate": ("pacing_rate_bps", 1e6),
    "tcp_delivery_rate": ("delivery_rate_bps", 1e6),
}
_CC_GAUGES = {
    "tcp_bbr_bw": ("bw_bps", 1e6),
    "tcp_bbr_mrtt": ("min_rtt_us", 1e3),
    "tcp_bbr_pacing_gain": ("pacing_gain", 1.0),
    "tcp_bbr_cwnd_gain": ("cwnd_gain", 1.0),
}
_QUEUE_GAUGES = {
    "backlog_bytes": "queue_bytes",
    "backlog_pkts": "queue_packets",
    "sent_bytes": "sent_bytes",
    "sent_pkts": "sent_packets",
}
_QUEUE_EVENTS = {"dropped": "dropped_packets", "ecn_mark": "marked_packets"}
_GAP_STEPS = 5


@dataclass(frozen=True)
class SeriesData:
    """One series: values on the grid (NaN for a gap; None if it has no grid), raw values (None
    if it has none of its own), and its SERIES_META."""

    grid: Floats | None
    raw: list[dict[str, float]] | None
    meta: dict[str, Any]


def flow_series(
    name: str, flow: int, tables: dict[str, Columns], x: Floats, start_s: float, t0: float
) -> dict[str, SeriesData]:
    """A flow's throughput in Mbit/s, under `name`, with its socket statistics, each under `name::`
    and the statistic. `flow` is its row in the table of flows; the recording starts at `start_s`
    of `x`."""
    row = {key: values[flow] for key, values in tables["flows"].items()}
    samples = _of_flow(tables["flow_samples"], row["flow_id"])
    begin = float(row["start_us"]) / 1e6
    at, counted = _counter(samples, begin)
    end = float(row["completion_us"]) / 1e6
    end = max(begin, at[-1]) if np.isnan(end) else end
    total = float(row["bytes_delivered"])
    total = counted[-1] if np.isnan(total) else total
    at, counted = _ended(at, counted, end, total)
    meta: dict[str, Any] = {
        "UNITS": "Mbits/s",
        "CONG_CONTROL": "" if row["cc"] == "unknown" else str(row["cc"]).removeprefix("kernel:"),
        "FULLPIPE_CC": str(row["cc"]),
        "ELAPSED_TIME": end - begin,
        "MEAN_VALUE": _mbps(total, end - begin),
        "BYTES_RECVD": round(total),
    }
    for key, column in (("TCP_MSS", "mss_bytes"), ("TCP_RETRANSMIT", "packets_retransmitted")):
        if not np.isnan(row[column]):
            meta[key] = round(float(row[column]))
    step = float(x[1] - x[0])
    at_grid = np.interp(x - start_s, at, counted)
    rate = np.diff(at_grid, prepend=at_grid[0]) * 8 / 1e6 / step
    alive = (x - start_s > begin + 1e-9) & (x - start_s - step < end - 1e-9)
    picked = _thinned(at, step)
    raw = [
        {"t": t0 + start_s + t, "dur": lasted, "val": _mbps(volume, lasted)}
        for t, lasted, volume in zip(
            at[picked][1:].tolist(),
            np.diff(at[picked]).tolist(),
            np.diff(counted[picked]).tolist(),
            strict=True,
        )
    ]
    gauges = _gauges(samples, _FLOW_GAUGES)
    algorithm = _of_flow(tables["cc_samples"], row["flow_id"])
    gauges |= _gauges(algorithm, _CC_GAUGES) if not np.isnan(algorithm["bw_bps"]).all() else {}
    raw += _statistics(gauges, step, t0 + start_s)
    series = {
        f"{name}::{key}": SeriesData(on_grid(x, t + start_s, v), None, {"UNITS": _unit(key)})
        for key, (t, v) in gauges.items()
    }
    series[name] = SeriesData(
        np.where(alive, rate, np.nan), sorted(raw, key=lambda entry: entry["t"]), meta
    )
    return series


def ping_series(pings: Columns, probe: str, x: Floats, start_s: float, t0: float) -> SeriesData:
    """A probe's round-trip times in ms. Raw values have the time of the answer, as fping's do;
    requests without an answer are left out."""
    of_probe = (pings["probe"] == probe) & ~np.isnan(pings["rtt_us"])
    sent, rtt_ms = pings["t_us"][of_probe] / 1e6 + start_s, pings["rtt_us"][of_probe] / 1e3
    answered = sent + rtt_ms / 1e3
    raw = [
        {"t": t0 + t, "seq": float(seq), "val": value}
        for t, seq, value in zip(
            answered.tolist(), pings["seq"][of_probe].tolist(), rtt_ms.tolist(), strict=True
        )
    ]
    raw.sort(key=lambda entry: entry["t"])
    order = np.argsort(answered, kind="stable")
    return SeriesData(on_grid(x, answered[order], rtt_ms[order]), raw, {"UNITS": "ms"})


def queue_series(queues: Columns, x: Floats, start_s: float, t0: float) -> dict[str, SeriesData]:
    """Statistics of each queue: the forward one as the local host's qdisc. Drops and marks are
    those since the entry before; bytes and packets sent are totals."""
    series: dict[str, SeriesData] = {}
    step = float(x[1] - x[0])
    for queue in dict.fromkeys(queues["queue"]):
        of_queue = {key: values[queues["queue"] == queue] for key, values in queues.items()}
        picked = _thinned(of_queue["t_us"] / 1e6, step)
        of_queue = {key: values[picked] for key, values in of_queue.items()}
        values = {key: of_queue[column] for key, column in _QUEUE_GAUGES.items()}
        for key, column in _QUEUE_EVENTS.items():
            counted = of_queue[column]
            if key == "dropped":  # tc's count has what CAKE filters too
                counted = counted + np.nan_to_num(of_queue["filtered_packets"])
            values[key] = np.diff(counted, prepend=counted[:1])
        values = {key: each for key, each in values.items() if not np.isnan(each).all()}
        seconds = of_queue["t_us"] / 1e6 + start_s
        name = f"qdisc_stats_{'localhost' if queue == 'forward' else queue}"
        rows = zip(*(each.tolist() for each in values.values()), strict=True)
        raw = [
            {"t": t0 + t, **{k: v for k, v in zip(values, row, strict=True) if v == v}}
            for t, row in zip(seconds.tolist(), rows, strict=False)
        ]
        series[name] = SeriesData(None, raw, {"UNITS": "misc"})
        for key, each in values.items():
            series[f"{name}::{key}"] = SeriesData(on_grid(x, seconds, each), None, {})
    return series


def on_grid(x: Floats, t: Floats, values: Floats) -> Floats:
    """Samples at times `t`, which rise, on the grid `x`: interpolated linearly, NaN before the
    first, after the last, and where the next sample is more than five steps away."""
    measured = ~np.isnan(values)
    t, values = t[measured], values[measured]
    if not t.size:
        return np.full(x.size, np.nan)
    tolerance = 1e-9
    following = np.searchsorted(t, x - tolerance)
    wait = t[np.minimum(following, t.size - 1)] - x
    near = (following < t.size) & (wait <= _GAP_STEPS * float(x[1] - x[0]) + tolerance)
    inside = x >= t[0] - tolerance
    return np.where(near & inside, np.interp(x, t, values), np.nan)


def _counter(samples: Columns, begin: float) -> tuple[Floats, Floats]:
    """Times and payload bytes since the flow's start, which counts 0; times rise."""
    counted = samples["bytes_delivered"]
    measured = ~np.isnan(counted) & (samples["t_us"] / 1e6 > begin)
    at, first = np.unique(samples["t_us"][measured] / 1e6, return_index=True)
    volumes = np.maximum.accumulate(counted[measured][first]) if at.size else np.empty(0)
    return np.concatenate(([begin], at)), np.concatenate(([0.0], volumes))


def _ended(at: Floats, counted: Floats, end: float, total: float) -> tuple[Floats, Floats]:
    """The counter up to the flow's end, where it is the total."""
    before = at < end - 1e-9
    before[0] = True
    at = np.concatenate((at[before], [end] if end > at[0] else []))
    counted = np.minimum(counted[before], total)
    return at, np.concatenate((counted, [total] if at.size > counted.size else []))


def _thinned(at: Floats, step: float) -> npt.NDArray[np.bool_]:
    """The last sample of each step, and the first and last of all."""
    if not at.size:
        return np.zeros(0, dtype=bool)
    steps = np.ceil((at - at[0]) / step - 1e-6)
    picked = np.concatenate((np.diff(steps) > 0, [True]))
    picked[0] = True
    return np.asarray(picked)


def _gauges(
    samples: Columns, which: dict[str, tuple[str, float]]
) -> dict[str, tuple[Floats, Floats]]:
    series = {}
    for key, (column, unit) in which.items():
        measured = ~np.isnan(samples[column])
        if measured.any():
            series[key] = (samples["t_us"][measured] / 1e6, samples[column][measured] / unit)
    return series


def _statistics(
    gauges: dict[str, tuple[Floats, Floats]], step: float, zero: float
) -> list[dict[str, float]]:
    """Socket statistics of the same moment in one entry, no more than one a step."""
    entries: dict[float, dict[str, float]] = {}
    for key, (t, values) in gauges.items():
        picked = _thinned(t, step)
        for at, value in zip(t[picked].tolist(), values[picked].tolist(), strict=True):
            entries.setdefault(at, {"t": zero + at})[key] = value
    return list(entries.values())


def _of_flow(samples: Columns, flow_id: float) -> Columns:
    of_flow = samples["flow_id"] == flow_id
    return {key: values[of_flow] for key, values in samples.items()}


def _mbps(volume: float, seconds: float) -> float:
    return volume * 8 / 1e6 / seconds if seconds > 0 else 0.0


def _unit(key: str) -> str:
    if key.endswith(("_rate", "_bw")):
        return "Mbits/s"
    return "ms" if key.endswith("rtt") else "packets" if key == "tcp_cwnd" else ""
