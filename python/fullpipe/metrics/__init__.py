"""Metrics: functions from a recording to numbers. Rates are bytes delivered over time, never
averages of samples. Nothing here knows which engine ran.

`View` cuts a recording to the part that counts (after the warm-up); the other modules compute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullpipe.base.deferred import deferred
from fullpipe.metrics.backlog import Backlog, backlog, cdf, queue_delay_ms
from fullpipe.metrics.fairness import (
    coefficient_of_variation,
    convergence_time_s,
    jain,
    jain_over_time,
    throughput_over_time,
)
from fullpipe.metrics.flows import (
    completion_s,
    goodput_bps,
    group_goodput_bps,
    link_share,
    phase_shares,
    slowdown,
)
from fullpipe.metrics.groups import FlowGroup, equal_demand, flow_groups
from fullpipe.metrics.latency import added_latency_ms, idle_latency_ms, latency_under_load_ms
from fullpipe.metrics.links import has_names, summarise_links
from fullpipe.metrics.loss import loss_ratio, retransmission_ratio, retransmission_ratios
from fullpipe.metrics.queue import ping_ms, queue_bytes, queue_delay_rttmin
from fullpipe.metrics.summary import summarise
from fullpipe.metrics.view import View

if TYPE_CHECKING:
    from fullpipe.metrics.pages import PageLoads, page_loads
    from fullpipe.metrics.traffic import (
        TrafficFlows,
        at_once,
        at_once_together,
        mean_at_once,
        summarise_traffic,
        traffic_flows,
    )

__all__ = [
    "Backlog",
    "FlowGroup",
    "PageLoads",
    "TrafficFlows",
    "View",
    "added_latency_ms",
    "at_once",
    "at_once_together",
    "backlog",
    "cdf",
    "coefficient_of_variation",
    "completion_s",
    "convergence_time_s",
    "equal_demand",
    "flow_groups",
    "goodput_bps",
    "group_goodput_bps",
    "has_names",
    "idle_latency_ms",
    "jain",
    "jain_over_time",
    "latency_under_load_ms",
    "link_share",
    "loss_ratio",
    "mean_at_once",
    "page_loads",
    "phase_shares",
    "ping_ms",
    "queue_bytes",
    "queue_delay_ms",
    "queue_delay_rttmin",
    "retransmission_ratio",
    "retransmission_ratios",
    "slowdown",
    "summarise",
    "summarise_links",
    "summarise_traffic",
    "throughput_over_time",
    "traffic_flows",
]

# Of what few runs have.
__getattr__ = deferred(__name__, {
    "pages": ["PageLoads", "page_loads"],
    "traffic": ["TrafficFlows", "at_once", "at_once_together", "mean_at_once",
                "summarise_traffic", "traffic_flows"],
})  # fmt: skip
