"""How evenly and how steadily flows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fullpipe import _native
from fullpipe.metrics.view import Floats, View


def jain(rates: Floats) -> float:
    """Jain's index (sum x)^2 / (n sum x^2), 1/n to 1, of the rates that are known (not NaN); NaN
    for no flow or no traffic."""
    return _native.metrics.jain(np.asarray(rates, dtype=np.float64).tobytes())


def throughput_over_time(view: View, window_s: float = 1.0) -> tuple[Floats, Floats]:
    """(ends of the windows in s, bit/s [flow, window]): bytes delivered in each whole window.

    Windows begin at the view's start; counters are read at the samples, so a window should be a
    multiple of the sampling interval."""
    return _rates(view, window_s, lambda columns: columns["bytes_delivered"])


def smooth_throughput_over_time(view: View, window_s: float = 1.0) -> tuple[Floats, Floats]:
    """As `throughput_over_time`, by packets that reached the receiver: bytes count when the holes
    before them are filled, and then all at once, faster than the link."""
    return _rates(view, window_s, _bytes_of_packets)


def _bytes_of_packets(columns: Mapping[str, Floats]) -> Floats:
    """The packets that a flow delivered up to each sample, of its mean payload; its bytes where
    packets are not counted."""
    volumes, packets = columns["bytes_delivered"], columns["packets_delivered"]
    if np.isnan(packets).any() or not packets[-1] > 0:
        return volumes
    of_packets: Floats = packets * (volumes[-1] / packets[-1])
    return of_packets


def _rates(
    view: View, window_s: float, delivered: Callable[[Mapping[str, Floats]], Floats]
) -> tuple[Floats, Floats]:
    """The rate at which each flow delivers what `delivered` says of its samples."""
    count = int((view.end_s - view.start_s) / window_s + 1e-9)
    edges: Floats = view.start_s + window_s * np.arange(count + 1, dtype=np.float64)
    columns = view._all("flow_samples")
    rates: Floats = np.zeros((view.flows["flow_id"].size, count))
    for flow in range(rates.shape[0]):
        of_flow = columns["flow_id"] == flow
        times = columns["t_us"][of_flow] / 1e6
        if not times.size:
            continue
        names = ("bytes_delivered", "packets_delivered")
        volumes = delivered({name: columns[name][of_flow] for name in names})
        index = np.searchsorted(times, edges + view.late_s, side="right") - 1
        at_edges = np.where(index >= 0, volumes[np.maximum(index, 0)], 0.0)
        rates[flow] = 8 * np.diff(at_edges) / window_s
    return edges[1:], rates


def jain_over_time(view: View, window_s: float = 1.0) -> tuple[Floats, Floats]:
    """(ends of the windows in s, Jain's index of the flows that had started and not finished);
    NaN in windows without traffic."""
    ends, rates = throughput_over_time(view, window_s)
    flows = view.flows
    begin, end = flows["start_us"] / 1e6, flows["completion_us"] / 1e6
    end = np.where(np.isnan(end), np.inf, end)
    values = []
    for index, until in enumerate(ends):
        active = (begin <= until - window_s + 1e-9) & (end >= until - 1e-9)
        values.append(jain(rates[active, index]) if active.any() else float("nan"))
    return ends, np.array(values)


def convergence_time_s(
    view: View, threshold: float = 0.9, window_s: float = 1.0, hold_s: float = 5.0
) -> float | None:
    """Seconds from the last flow's start until Jain's index of windows stays above the threshold
    to the end of the view, for at least `hold_s`; None where it does not."""
    ends, values = jain_over_time(view, window_s)
    last_start = float(view.flows["start_us"].max()) / 1e6
    keep = ends - window_s >= last_start - 1e-9
    ends, values = ends[keep], values[keep]
    below = np.flatnonzero(~(values >= threshold))
    first = int(below[-1]) + 1 if below.size else 0
    if first >= ends.size or ends[-1] - (ends[first] - window_s) < hold_s - 1e-9:
        return None
    return float(ends[first] - window_s - last_start)


def coefficient_of_variation(view: View, window_s: float = 1.0) -> Floats:
    """Standard deviation over mean of each flow's window rates while it was active (ahsan2025b);
    NaN for a flow without traffic."""
    ends, rates = throughput_over_time(view, window_s)
    result = []
    for flow in range(rates.shape[0]):
        start, end = view.active_s(flow)
        active = rates[flow, (ends - window_s >= start - 1e-9) & (ends <= end + 1e-9)]
        usable = active.size > 1 and active.mean() > 0
        result.append(float(active.std(ddof=1) / active.mean()) if usable else float("nan"))
    return np.array(result)
