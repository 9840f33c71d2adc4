"""Prague and CUBIC beside one another over DualPI2: the simulator against the kernel's module.

Kernels send ECT(0) for Prague too, and over DualPI2 in `vm` what is ECT goes to the L queue
(docs/background/l4s.md); so CUBIC goes without ECN here, in both engines, and is
dropped with the probability with which it would be marked. Exit status 1 where a target is missed:
mean windows within 20 %, the 99th percentile of the L queue below 2 ms (of Prague's smoothed RTT
above its base, as both engines have it).

Needs a kernel with the module (docs/background/vm.md):
`.venv/bin/python benches/bench_dualpi2.py [--kernel stock-7.3] [--seeds 5] [--vm-seeds 1]`.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
from runs import arguments, pair

from fullpipe.metrics import View
from fullpipe.recording.recording import Recording

PATHS = (("40mbit", "20ms"), ("40mbit", "10ms"), ("100mbit", "20ms"))
SECONDS, WARMUP_S = 45, 15
WINDOW, L_QUEUE_MS = 0.2, 2.0


def document(rate: str, rtt: str, _engine: str, seed: int) -> dict[str, Any]:
    """The scenario."""
    return {
        "name": f"dualpi2 {rate} {rtt}",
        "seed": seed,
        "duration": f"{SECONDS}s",
        "warmup": f"{WARMUP_S}s",
        "sample_interval": "10ms",
        "path": {"rate": rate, "rtt": rtt, "qdisc": "dualpi2", "ecn": "l4s"},
        "flow": [{"cc": "prague"}, {"cc": "cubic", "ecn": False}],
    }


def figures(made: list[Recording]) -> dict[str, float]:
    """Means over runs: windows in packets, rates in Mbit/s, the L queue in ms, Prague's marks."""
    rows = []
    for recording in made:
        view = View(recording)
        samples = view.samples("flow_samples")
        base_us = view.flows["base_rtt_us"][0]
        mine = [samples["flow_id"] == flow for flow in view.flows["flow_id"]]
        names = ("t_us", "bytes_delivered", "packets_delivered", "packets_delivered_ce")
        grown = [{n: float(np.ptp(samples[n][flow])) for n in names} for flow in mine]
        rows.append({
            "prague": float(samples["cwnd_packets"][mine[0]].mean()),
            "cubic": float(samples["cwnd_packets"][mine[1]].mean()),
            "prague_mbps": 8 * grown[0]["bytes_delivered"] / grown[0]["t_us"],
            "cubic_mbps": 8 * grown[1]["bytes_delivered"] / grown[1]["t_us"],
            "marked": grown[0]["packets_delivered_ce"] / grown[0]["packets_delivered"],
            "l_ms": float(np.percentile(samples["srtt_us"][mine[0]] - base_us, 99)) / 1000,
        })  # fmt: skip
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def main() -> None:
    """Runs and prints."""
    parser = arguments(__doc__, 5, 1)
    parser.add_argument("--kernel", default="stock-7.3", help="one with sch_dualpi2")
    given = parser.parse_args()
    print(
        f"{'path':14} {'cwnd Prague':>15} {'cwnd CUBIC':>15} {'Mbit/s Prague':>15} "
        f"{'Mbit/s CUBIC':>15} {'marked':>13} {'L p99 ms':>11}"
    )
    failed = 0
    for rate, rtt in PATHS:
        if given.only not in f"{rate} {rtt}":
            continue
        made = pair(
            partial(document, rate, rtt),
            (given.seeds, given.vm_seeds),
            given.jobs,
            kernel=given.kernel,
        )
        sim, vm = (figures(one) for one in made)
        missed = [cc for cc in ("prague", "cubic") if abs(sim[cc] / vm[cc] - 1) > WINDOW]
        missed += [
            f"L of {name}" for name, one in (("sim", sim), ("vm", vm)) if one["l_ms"] > L_QUEUE_MS
        ]
        failed += bool(missed)
        print(
            f"{rate + ' ' + rtt:14} {sim['prague']:7.1f} {vm['prague']:7.1f} {sim['cubic']:7.1f} "
            f"{vm['cubic']:7.1f} {sim['prague_mbps']:7.2f} {vm['prague_mbps']:7.2f} "
            f"{sim['cubic_mbps']:7.2f} {vm['cubic_mbps']:7.2f} {sim['marked']:6.3f} "
            f"{vm['marked']:6.3f} {sim['l_ms']:5.2f} {vm['l_ms']:5.2f} {', '.join(missed) or 'ok'}",
            flush=True,
        )
    print(
        f"sim, vm; targets: windows within {WINDOW:.0%}, L queue below {L_QUEUE_MS:g} ms; "
        f"missed on {failed} paths"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
