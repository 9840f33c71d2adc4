"""Which link limited a run, by what was measured: the one that dropped or marked packets, of
several the one that packets waited longest for. Must never know a recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Where nothing was dropped, a link that makes packets wait for less holds nobody up.
_LEAST_WAIT_MS = 1.0


def wait_ms(link: Mapping[str, Any]) -> float | None:
    """Mean time in the queue and on the link by Little's law, backlog over throughput, in ms: it
    needs no rate, so Wi-Fi has it. None where nothing passed."""
    backlog_bytes, throughput_bps = link["queue_bytes"]["mean"], link["throughput_bps"]
    if backlog_bytes is None or not throughput_bps:
        return None
    return float(8e3 * backlog_bytes / throughput_bps)


def limiting_link(links: Sequence[Mapping[str, Any]], main: Mapping[str, Any]) -> Mapping[str, Any]:
    """The summary of the link that limited a run, with its mean `wait_ms`; `main`, which the plan
    names, where no other stands out."""
    fallback = {**main, "wait_ms": wait_ms(main)}
    candidates = [{**link, "wait_ms": wait_ms(link)} for link in links]
    best = max(candidates, key=_weight, default=fallback)
    return best if _weight(best) > _weight(fallback) else fallback


def _weight(link: Mapping[str, Any]) -> tuple[bool, float, float]:
    """Of two links the one with more of this limits more: drops or marks, waiting, utilisation."""
    p95_ms = link["queue_delay_ms"]["p95"]
    waits = float((link["wait_ms"] if p95_ms is None else p95_ms) or 0.0)
    is_full = bool(link["drops"] or link["marks"])
    used = float(link["utilisation"] or 0.0)
    return is_full, waits if waits >= _LEAST_WAIT_MS else 0.0, used
