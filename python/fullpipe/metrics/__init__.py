"""Metrics: functions from a recording to numbers. Rates are bytes delivered over time, never
averages of samples. Nothing here knows which engine ran.

The metrics of a run, its flows, groups and queues are defined in crates/fullpipe-metrics alone;
`View` has them, and cuts a recording to the part that counts (after the warm-up) for all else.
"""

from __future__ import annotations

from fullpipe.metrics.backlog import Backlog, backlog, cdf, queue_delay_ms
from fullpipe.metrics.fairness import (
    coefficient_of_variation,
    convergence_time_s,
    jain,
    jain_over_time,
    smooth_throughput_over_time,
    throughput_over_time,
)
from fullpipe.metrics.flows import (
    completion_s,
    delivered_bytes,
    goodput_bps,
    link_share,
    phase_shares,
    slowdown,
)
from fullpipe.metrics.groups import FlowGroup, flow_groups
from fullpipe.metrics.latency import added_latency_ms, idle_latency_ms, latency_under_load_ms
from fullpipe.metrics.pages import PageLoads, page_loads
from fullpipe.metrics.queue import ping_ms, queue_bytes, queue_delay_rttmin
from fullpipe.metrics.summary import has_names, summarise, summary_of
from fullpipe.metrics.traffic import (
    TrafficFlows,
    at_once,
    at_once_together,
    mean_at_once,
    summarise_traffic,
    traffic_flows,
)
from fullpipe.metrics.view import Row, View

__all__ = [
    "Backlog",
    "FlowGroup",
    "PageLoads",
    "Row",
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
    "delivered_bytes",
    "flow_groups",
    "goodput_bps",
    "has_names",
    "idle_latency_ms",
    "jain",
    "jain_over_time",
    "latency_under_load_ms",
    "link_share",
    "mean_at_once",
    "page_loads",
    "phase_shares",
    "ping_ms",
    "queue_bytes",
    "queue_delay_ms",
    "queue_delay_rttmin",
    "slowdown",
    "smooth_throughput_over_time",
    "summarise",
    "summarise_traffic",
    "summary_of",
    "throughput_over_time",
    "traffic_flows",
]
