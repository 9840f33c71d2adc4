"""Writes docs/reference/metrics.md: every metric, as crates/fullpipe-metrics defines it.

python scripts/metrics.py
"""

from __future__ import annotations

from pathlib import Path

from fullpipe import _native

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"

_HEAD = """# Metrics

Every metric of a run is defined once, in `crates/fullpipe-metrics/src/definitions.rs`; all
commands take it from there. This page is written by `python scripts/metrics.py`.

The **window** is the part of a run that counts: from the first sampling time that is not before
the end of the warm-up, to the last sample. Goodput and shares count payload, throughput bytes on
the wire, and utilisation also what the link's layer adds. Flows down do not share with flows up:
the shares of the flows of one direction sum to 1.

**What a link could carry** is the integral of its rate over the window, through rate steps and
outages; of a trace, its delivery opportunities. The **queueing delay** at a sample is the time
that the link takes for what waits then, at the rates that follow. Both come from the plan, so
they are the same on every engine. What a layer adds to packets (`overhead`, `mpu`, `framing`, of
the link or of CAKE) counts as carried and as waiting. Recordings have bytes and numbers of packets,
so these are taken for full packets and plain ACKs. Wi-Fi has neither a capacity nor such a delay,
nor does CAKE with `autorate_ingress`.

RTTs and congestion windows of a flow are those up to its **end**: what a run records after that
changes none of its metrics.

A mean over time says something of a run that had **settled**. Shares, goodput and the bottleneck's
backlog are tested for a drift through the window, by a straight line through ten batch means;
`settling` of `run --json`, and the column `unsettled` of a store, have what drifts.
[How often it is right](../evidence/settling.md) was measured.

Runs of the simulator that agree within 1 % may be on a **knife edge**: a moment that it repeats
exactly, as no real path does. `run --repeat`, `compare` and `scorecard` then try the same runs with
a jitter of 100 us, where the base RTT is 5 ms at least, and say so where goodput, completion times,
a share or the item's measure move by more than 5 %.

A run in which **nothing was delivered** has a problem of health, with its cause where the plan
tells it: a buffer below a packet, random loss of everything. So has one flow of several whose
data cannot arrive by the plan. A flow counts as silent that delivered no byte in a second and ten
base RTTs at least. Charts of a sweep leave runs with problems out, and heat maps cross their
cells.

Flows of **equal demand** are those of one direction, route and limits that send as much as they
may; if all are limited, all of them, if equally. Jain's index of a run is over the largest such
class.

In JSON a statistic is a key of its own (`rtt_p95_us` is `rtt_us.p95`), and what does not exist is
`null`. In expressions of experiments the metrics of runs and queues are functions without
arguments, those of flows together take a group.
"""
_TITLES = {
    "run": "A run (`runs` of a store, the top of `run --json`)",
    "flow": "A flow (`flows`)",
    "group": "Flows together (`groups` of `run --json`: those of one `[[flow]]`)",
    "queue": "A queue and its link (`path`: the bottleneck's; `links` of `run --json`: each)",
}


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for table, metrics in _native.metrics.TABLES.items():
        rows = [f"| `{name}` | {unit} | {meaning} |\n" for name, unit, meaning in metrics]
        head = f"\n## {_TITLES[table]}\n\n| name | unit | meaning |\n|---|---|---|\n"
        parts += [head, *rows]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
