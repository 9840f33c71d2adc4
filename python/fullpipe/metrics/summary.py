"""The metrics of one run as one document: what `fullpipe run --json` prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from fullpipe.metrics.fairness import jain
from fullpipe.metrics.flows import delivered_bytes, finite, goodput_bps, mean, quantiles
from fullpipe.metrics.queue import ping_ms, queue_bytes, queue_delay_rttmin
from fullpipe.metrics.view import Floats, View
from fullpipe.recording import Recording


def summarise(recording: Recording) -> dict[str, Any]:
    """Engine, seed, scenario, `health`, `flows`, `path`, `ping_ms`, `jain`: all after the warm-up.

    Shares and goodput count payload, utilisation counts bytes on the wire. RTTs are the smoothed
    ones at the samples (the kernel exports no others), their `min` the connection's minimum.
    None stands where there is nothing to measure."""
    view = View(recording)
    return {
        "engine": recording.metadata.get("engine"),
        "seed": recording.metadata.get("seed"),
        "scenario": view.plan.get("name"),
        "health": {"problems": recording.problems},
        "interrupted": bool(recording.metadata.get("interrupted")),
        "failure": recording.metadata.get("failure"),
        "flows": _flows(view),
        "path": _path(view),
        "ping_ms": _spread(ping_ms(view), ("p50", "p95", "p99", "max")),
        "jain": finite(jain(goodput_bps(view))),
    }


def _flows(view: View) -> list[dict[str, Any]]:
    rates, volumes = goodput_bps(view), delivered_bytes(view)
    total = float(volumes.sum())
    return [
        {
            "flow": str(view.flows["flow"][flow]),
            "cc": str(view.flows["cc"][flow]),
            "goodput_bps": float(rates[flow]),
            "share": float(volumes[flow]) / total if total > 0 else None,
            "retransmit_ratio": _ratio(view, flow),
            "rtt_us": _rtt(view, flow),
            "cwnd_packets": _cwnd(view, flow),
            "completion_us": finite(float(view.flows["completion_us"][flow])),
        }
        for flow in range(rates.size)
    ]


def _ratio(view: View, flow: int) -> float | None:
    sent, again = (
        view.counter(flow, name, view.end_s) - view.counter(flow, name, view.start_s)
        for name in ("packets_sent", "packets_retransmitted")
    )
    return again / sent if sent > 0 else None


def _rtt(view: View, flow: int) -> dict[str, float | None]:
    samples = view.flow_samples(flow)
    p50, p95, p99 = quantiles(samples["srtt_us"], (0.5, 0.95, 0.99))
    least = samples["min_rtt_us"][~np.isnan(samples["min_rtt_us"])]
    return {
        "min": float(least.min()) if least.size else None,
        "p50": p50, "p95": p95, "p99": p99, "mean": mean(samples["srtt_us"]),
    }  # fmt: skip


def _cwnd(view: View, flow: int) -> dict[str, float | None]:
    values = view.flow_samples(flow)["cwnd_packets"]
    return {"mean": mean(values), "p50": quantiles(values, (0.5,))[0]}


def _path(view: View) -> dict[str, Any]:
    queue, seconds = view.main_queue, view.end_s - view.start_s
    sent, packets, drops, marks, lost, random_marks = (
        view.queue_counter(queue, name, view.end_s) - view.queue_counter(queue, name, view.start_s)
        for name in (
            "sent_bytes", "sent_packets", "dropped_packets", "marked_packets",
            "random_lost_packets", "random_marked_packets",
        )
    )  # fmt: skip
    offered = packets + drops + lost
    keys = ("mean", "p50", "p95", "max")
    seen = view.queue(queue)["t_us"].size > 0
    return {
        "utilisation": finite(8 * sent / (view.rate_bps * seconds)) if seen else None,
        "queue_delay_rttmin": _spread(queue_delay_rttmin(view), keys),
        "queue_bytes": _spread(queue_bytes(view), keys),
        "drops": drops if seen else None,
        "marks": marks + random_marks if seen else None,
        "loss_ratio": (drops + lost) / offered if offered > 0 else None,
    }


def _spread(values: Floats, keys: tuple[str, ...]) -> dict[str, float | None]:
    known = values[~np.isnan(values)]
    if not known.size:
        return dict.fromkeys(keys)
    points = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        key: float(known.mean()) if key == "mean" else float(np.quantile(known, points[key]))
        for key in keys
    }
