"""What was lost on the path, and what senders sent again. The two differ: retransmissions that
were not needed repeat what was never lost, and a flow's end leaves losses unrepaired."""

from __future__ import annotations

import numpy as np

from fullpipe.metrics.view import Floats, View


def loss_ratio(view: View) -> float:
    """Packets that the bottleneck's queue or the path's random loss dropped within the window,
    over those offered to them (sent on or dropped); NaN where there were none."""
    sent, dropped, lost = (
        view.queue_counter(view.main_queue, name, view.end_s)
        - view.queue_counter(view.main_queue, name, view.start_s)
        for name in ("sent_packets", "dropped_packets", "random_lost_packets")
    )
    lost = 0.0 if np.isnan(lost) else lost
    offered = sent + dropped + lost
    return (dropped + lost) / offered if offered > 0 else float("nan")


def retransmission_ratios(view: View) -> Floats:
    """Of each flow, packets sent again over all packets sent within the window; NaN for a flow
    that sent none, or whose recording has no such counters."""
    ratios = []
    for flow in range(view.flows["flow_id"].size):
        sent, again = _sent(view, flow)
        ratios.append(again / sent if sent > 0 else float("nan"))
    return np.array(ratios)


def retransmission_ratio(view: View) -> float:
    """The same of all flows together: packets sent again over packets sent."""
    pairs = [_sent(view, flow) for flow in range(view.flows["flow_id"].size)]
    sent, again = (sum(pair[index] for pair in pairs) for index in (0, 1))
    return again / sent if sent > 0 else float("nan")


def _sent(view: View, flow: int) -> tuple[float, float]:
    sent, again = (
        view.counter(flow, name, view.end_s) - view.counter(flow, name, view.start_s)
        for name in ("packets_sent", "packets_retransmitted")
    )
    return sent, again
