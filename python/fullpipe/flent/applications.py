"""Series of pages and of streams of datagrams, as Flent's http_getter and voip leave them."""

from __future__ import annotations

import numpy as np

from fullpipe.flent.document import Floats
from fullpipe.flent.gridding import Columns, SeriesData, on_grid


def page_series(loads: Columns, page_id: int, x: Floats, start_s: float, t0: float) -> SeriesData:
    """Times of a page's loads in ms, each at the time when it ended; unfinished loads are left
    out."""
    of_page = (loads["page_id"] == page_id) & ~np.isnan(loads["done_us"])
    ended = loads["done_us"][of_page] / 1e6 + start_s
    took_ms = (loads["done_us"] - loads["start_us"])[of_page] / 1e3
    raw = [
        {"t": t0 + t, "val": value}
        for t, value in zip(ended.tolist(), took_ms.tolist(), strict=True)
    ]
    meta = {"UNITS": "ms"}
    return SeriesData(on_grid(x, ended, took_ms), raw, meta)


def stream_series(
    name: str, datagrams: Columns, stream_id: int, x: Floats, start_s: float, t0: float
) -> dict[str, SeriesData]:
    """A stream by steps: one-way delay and jitter in ms (means of what was sent in the step), loss
    in datagrams, bit rate in kbit/s; and the delay beyond its least."""
    of_stream = datagrams["stream_id"] == stream_id
    sent = datagrams["t_us"][of_stream] / 1e6 + start_s
    delay_ms = datagrams["delay_us"][of_stream] / 1e3
    volume = datagrams["bytes"][of_stream]
    step = float(x[1] - x[0])
    at = np.minimum(np.ceil(sent / step - 1e-9).astype(int), x.size - 1)
    there = ~np.isnan(delay_ms)
    jitter = np.full(delay_ms.size, np.nan)
    jitter[np.flatnonzero(there)[1:]] = np.abs(np.diff(delay_ms[there]))

    def mean(values: Floats) -> Floats:
        measured = ~np.isnan(values)
        count = np.bincount(at[measured], minlength=x.size)
        total = np.bincount(at[measured], values[measured], minlength=x.size)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    alive = np.bincount(at, minlength=x.size) > 0
    lost = np.bincount(at[~there], minlength=x.size).astype(float)
    rate = np.bincount(at[there], volume[there], minlength=x.size) * 8 / 1e3 / step
    grids = {
        "bitrate": (np.where(alive, rate, np.nan), "Kbits/s"),
        "delay": (mean(delay_ms), "ms"),
        "jitter": (mean(jitter), "ms"),
        "loss": (np.where(alive, lost, np.nan), "count"),
    }
    raw = []
    for i in np.flatnonzero(alive):
        there_now = {key: float(v[i]) for key, (v, _) in grids.items() if not np.isnan(v[i])}
        raw.append({"t": t0 + float(x[i]), **there_now})
    series = {
        f"{name}::{key}": SeriesData(values, None, {"UNITS": units})
        for key, (values, units) in grids.items()
    }
    least = float(np.nanmin(delay_ms)) if there.any() else 0.0
    induced = grids["delay"][0] - least
    series[f"{name}::induced_delay"] = SeriesData(induced, [], {"UNITS": "ms"})
    series[name] = SeriesData(np.full(x.size, np.nan), raw, {"UNITS": "Kbps"})
    return series
