"""How metrics are called in plots: by name, with statistic and unit, in the units that people read.

Names are those of crates/fullpipe-metrics. Must never know a recording.
"""

from __future__ import annotations

from fullpipe.base.units import KIB

_QUANTITIES = {
    "completion": "Completion time",
    "cwnd": "Congestion window",
    "delivered": "Payload delivered",
    "drops": "Drops",
    "finished": "Finished flows",
    "flows": "Flows",
    "goodput": "Goodput",
    "jain": "Jain's index",
    "jain_flows": "Flows of equal demand",
    "loss": "Loss",
    "mark": "Marks",
    "marks": "Marks",
    "ping": "Ping RTT",
    "queue": "Backlog",
    "queue_delay": "Queueing delay",
    "random_losses": "Random losses",
    "retransmit": "Retransmissions",
    "retransmits": "Retransmissions",
    "rtt": "Smoothed RTT",
    "share": "Share of goodput",
    "start": "Start",
    "throughput": "Throughput on the wire",
    "utilisation": "Utilisation",
    # Those of metrics.kinds.
    "page_loads": "Page loads",
    "page_loads_finished": "Finished page loads",
    "page_mib": "Page size (MiB)",
    "page_objects": "Objects of a page",
    "page_time": "Page time",
    "probe_loss": "Probes lost",
    "probe_rtt": "RTT of probes",
    "probe_sent": "Probes sent",
    "stream_delay": "Delay of datagrams",
    "stream_frames_in_time": "Frames in time",
    "stream_jitter": "Jitter of datagrams",
    "stream_loss": "Datagrams lost",
    "stream_sent": "Datagrams sent",
    "traffic_completion": "Completion time",
    "traffic_flows": "Flows",
    "traffic_flows_at_once": "Flows at once",
    "traffic_flows_finished": "Finished flows",
    "traffic_goodput": "Goodput",
    "traffic_ps_slowdown": "Slowdown under processor sharing",
    "traffic_retransmit": "Retransmissions",
    "traffic_slowdown": "Slowdown",
    "traffic_srpt_slowdown": "Slowdown under SRPT",
}
_STATISTICS = {
    "mean": "mean",
    "min": "minimum",
    "max": "maximum",
    "p5": "5th percentile",
    "p50": "median",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "all": "all flows",
}
#: Unit in names -> what is read, and how many of the first it has.
_UNITS = {
    "bps": ("Mbit/s", 1e6),
    "bytes": ("KiB", float(KIB)),
    "ms": ("ms", 1.0),
    "mbps": ("Mbit/s", 1.0),
    "packets": ("packets", 1.0),
    "percent": ("%", 1.0),
    "ratio": ("%", 0.01),
    "rttmin": ("RTTmin", 1.0),
    "s": ("s", 1.0),
    "us": ("ms", 1e3),
}


def title_of(metric: str) -> tuple[str, float]:
    """(title with its unit, what a value is divided by), such as `queue_delay_p95_rttmin` ->
    ("Queueing delay, 95th percentile (RTTmin)", 1). A name that is not known is its own title."""
    words = metric.split("_")
    statistic = next((word for word in words if word in _STATISTICS), None)
    unit = next((word for word in words if word in _UNITS), None)
    quantity = _QUANTITIES.get("_".join(word for word in words if word not in (statistic, unit)))
    quantity = _QUANTITIES.get(metric, quantity)
    if quantity is None:
        return metric.replace("_", " "), 1.0
    title = f"{quantity}, {_STATISTICS[statistic]}" if statistic else quantity
    if unit is None:
        return title, 1.0
    shown, divisor = _UNITS[unit]
    return f"{title} ({shown})", divisor
