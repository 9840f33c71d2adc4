"""Workloads in the simulator against the same over real sockets in the virtual machine.

Prints mean and 99th percentile of the slowdown of a few hundred flows that come and go, and their
timeouts, on four paths of 20 Mbit/s (targets: within 5 and 15 %; the simulator's over runs that
begin microseconds apart, since single runs of the same arrivals differ by chance); the page times
of three pages (target: within 5 %); those of this host's curl and lighttpd in the machine against
the agent's own (target: within 3 %); and shares and pings of RRUL's classes, CAKE diffserv4 at 20
Mbit/s in both directions (target: within 10 %). Both engines see the same arrivals. `--only PART`
runs what has PART in its name, `--seeds N` so many seeds of traffic. Exit status 1 where a target
is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from targets import Targets

from fullpipe.engines.run import runs_of
from fullpipe.engines.runner import execute
from fullpipe.engines.vm import web
from fullpipe.flent.templates import scenario_of, template
from fullpipe.metrics import View, goodput_bps, traffic_flows
from fullpipe.metrics.pages import page_loads
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario

ENGINES = ("sim", "vm")
PARETO = {"sizes": "pareto", "pareto_shape": 1.2, "pareto_min": "4KB", "pareto_max": "1MB"}
PATH = {"rate": "20mbit", "rtt": "20ms", "buffer": "1bdp"}

TRAFFIC: dict[str, dict[str, Any]] = {
    "traffic cubic 30 kB, load 0.5": {
        "path": PATH,
        "traffic": [{"cc": "cubic", "load": 0.5, "sizes": "30KB"}],
    },
    "traffic bbr3 Pareto, load 0.6, 10 and 60 ms": {
        "path": PATH,
        "traffic": [{"cc": "bbr3", "load": 0.6, "senders": 2, "rtts": ["10ms", "60ms"], **PARETO}],
    },
    "traffic cubic Pareto, load 0.7, fq_codel": {
        "path": {**PATH, "qdisc": "fq_codel"},
        "traffic": [{"cc": "cubic", "load": 0.7, **PARETO}],
    },
    "traffic reno down, load 0.8": {
        "path": {**PATH, "reverse_rate": "20mbit"},
        "traffic": [{"cc": "reno", "load": 0.8, "direction": "down", **PARETO}],
    },
}
TRAFFIC_LENGTH = "12s"
#: Runs of the simulator for each of the machine's, each begun so much later: which packet meets a
#: full queue hangs on microseconds, and one run's mean on that.
SIM_RUNS, LATER_US = 10, 37

NINE = ((60,), (200, 20, 20, 50), (30, 5, 5, 100))
#: Levels of objects in kB, protocol, and how many pages of about these sizes.
PAGES: dict[str, tuple[tuple[tuple[int, ...], ...], str, int]] = {
    "page of 9 objects, http1": (NINE, "http1", 64),
    "page of 9 objects, http2": (NINE, "http2", 8),
    "page of one object of 1 MB": (((1000,),), "http1", 8),
}
#: Objects in kB of pages that curl loads with four workers, how often. Nothing is lost, so that
#: every load is alike.
CURL: dict[str, tuple[tuple[int, ...], int]] = {
    "curl, one object of 1 MB": ((1000,), 8),
    "curl, 9 objects of 0.5 MB in all": ((60, 200, 20, 20, 50, 30, 5, 5, 100), 8),
    "curl, 19 objects of 5 MB in all": (
        (18, 213, 36, 416, 70, 812, 136, 23, 266, 45, 519, 87, 1015, 170, 29, 332, 56, 649, 109), 4,
    ),
}  # fmt: skip
#: The same with 1 % of the packets down lost: loads differ by chance.
CURL_LOSSY, LOSSY_LOADS = "curl, 9 objects of 0.5 MB in all, 1 % lost", 60
RRUL = "rrul"


def recorded(
    document: dict[str, Any], engine: str, seed: int, folder: str, web_programs: bool = False
) -> Recording:
    """A run of the scenario."""
    scenario = make_scenario({**document, "seed": seed})
    out = Path(folder) / f"{engine}{seed}"
    options = {"web": True} if web_programs else {}
    (recording,) = execute(runs_of(scenario, "", [seed], engine, options), [out]).recordings
    for warning in recording.warnings:
        print(f"  {engine}: {warning}")
    return recording


def begun_later(document: dict[str, Any], later_us: int) -> dict[str, Any]:
    """The scenario with all its arrivals so much later."""
    groups = [{**group, "start": f"{later_us}us"} for group in document["traffic"]]
    return {"duration": TRAFFIC_LENGTH, **document, "traffic": groups}


def ended(recording: Recording) -> Any:
    """Slowdown and timeouts of every flow that ended."""
    every = [
        np.stack((flows.slowdown, flows.timeouts))
        for flows in traffic_flows(View(recording, start_s=0.0))
    ]
    both = np.concatenate(every, axis=1)
    return both[:, ~np.isnan(both[0])]


def pages_of(levels: Any, protocol: str, count: int) -> dict[str, Any]:
    """One page a second, each of other sizes, up to a tenth off. Equal pages would all have one
    fate: whether the end of an object is lost, and costs a timeout of 200 ms, hangs on microseconds
    where several connections meet a full queue."""
    rng = np.random.default_rng(1)
    return {
        "duration": f"{count + 2}s", "sample_interval": "1s", "path": PATH,
        "page": [
            {
                "cc": "cubic", "name": f"page{number}", "start": f"{number}s", "interval": "1s",
                "loads": 1, "protocol": protocol,
                "levels": [[f"{int(1000 * size * rng.uniform(0.9, 1.1))}B" for size in level]
                           for level in levels],
            }
            for number in range(count)
        ],
    }  # fmt: skip


def stock_page(sizes: tuple[int, ...], loads: int) -> dict[str, Any]:
    """A page with requests like curl's, loaded once more, before, to warm the server up."""
    return {
        "duration": f"{3 * (loads + 2)}s", "sample_interval": "1s",
        "path": {**PATH, "reverse_buffer": "8bdp"},
        "page": [
            {
                "cc": "cubic", "start": "1s", "interval": "3s", "loads": loads + 1,
                "lookup": "none", "request": f"{web.REQUEST_BYTES}B",
                "levels": [[f"{1000 * size}B" for size in sizes]],
            }
        ],
    }  # fmt: skip


def stock_times(document: dict[str, Any], folder: str) -> list[Any]:
    """Page times in ms by curl and by the agent, without the first load."""
    times = []
    for by in (True, False):
        (loads,) = page_loads(View(recorded(document, "vm", 1, f"{folder}{by}", by), 0.0))
        times.append(1e3 * loads.time_s[1:])
    return times


def rrul_figures(recording: Recording) -> dict[str, float]:
    """Mean goodput in Mbit/s of each class in both directions, and the median of each probe in ms,
    while all streams run."""
    view = View(recording, start_s=7.0, end_s=recording.metadata["plan"]["duration_ns"] / 1e9 - 6)
    found = {}
    for flow, rate in zip(view.flows["flow"], goodput_bps(view), strict=True):
        found[str(flow)] = float(rate) / 1e6
    pings = view.samples("ping_samples")
    for probe in sorted({str(name) for name in pings["probe"]}):
        values = pings["rtt_us"][pings["probe"] == probe] / 1e3
        found[probe] = float(np.nanmedian(values))
    return found


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PART")
    parser.add_argument("--seeds", type=int, default=4, help="of traffic (default 4)")
    parser.add_argument("--length", default="20s", help="of RRUL's streams (default 20s)")
    options = parser.parse_args()
    targets = Targets()

    def hold(
        what: str, simulated: float, machine: float, unit: str, most: float, who: Any = ENGINES
    ) -> None:
        off = simulated / machine - 1
        targets.hold(
            f"{what}: {who[0]} {simulated:.4g}, {who[1]} {machine:.4g} {unit} ({100 * off:+.1f} %)",
            abs(off) <= most,
        )

    with tempfile.TemporaryDirectory() as folder:
        for name, document in TRAFFIC.items():
            if options.only in name:
                found = []
                for engine in ENGINES:
                    runs = [
                        ended(recorded(begun_later(document, run * LATER_US), engine, seed,
                                           f"{folder}/{name.replace(' ', '_')}{run}"))
                        for seed in range(1, options.seeds + 1)
                        for run in range(SIM_RUNS if engine == "sim" else 1)
                    ]  # fmt: skip
                    found.append(np.concatenate(runs, axis=1))
                (sim, sim_timeouts), (vm, vm_timeouts) = found
                print(
                    f"{name}: {sim.size // SIM_RUNS} and {vm.size} flows ended, with "
                    f"{sim_timeouts.sum() / SIM_RUNS:.1f} and {vm_timeouts.sum():.0f} timeouts"
                )
                hold("  mean slowdown", sim.mean(), vm.mean(), "", 0.05)
                p99 = [float(np.quantile(values, 0.99)) for values in (sim, vm)]
                hold("  99th percentile", *p99, "", 0.15)
        for name, page in PAGES.items():
            if options.only in name:
                document = pages_of(*page)
                times = [
                    np.concatenate([
                        loads.time_s
                        for loads in page_loads(View(recorded(
                            document, engine, 1, f"{folder}/{name.replace(' ', '_')}"), 0.0))
                    ])
                    for engine in ENGINES
                ]  # fmt: skip
                hold(name, *(1e3 * float(np.mean(one)) for one in times), "ms", 0.05)
        for name, (sizes, loads) in CURL.items():
            if options.only in name:
                times = stock_times(stock_page(sizes, loads), f"{folder}/{len(sizes)}")
                means = (float(one.mean()) for one in times)
                hold(f"{name}, {loads} loads", *means, "ms", 0.03, ("curl", "agent"))
        if options.only in CURL_LOSSY:
            sizes, _ = CURL["curl, 9 objects of 0.5 MB in all"]
            document = stock_page(sizes, LOSSY_LOADS)
            document["path"]["reverse_loss"] = "1%"
            times = stock_times(document, f"{folder}/lossy")
            shown = (f"{one.mean():.0f} +- {one.std() / np.sqrt(one.size):.0f}" for one in times)
            print(f"{CURL_LOSSY}: means and their errors {' and '.join(shown)} ms")
            medians = (float(np.median(one)) for one in times)
            hold(f"  median of {LOSSY_LOADS} loads", *medians, "ms", 0.03, ("curl", "agent"))
        if options.only in RRUL:
            path = {
                "path": {
                    "rate": "20mbit", "reverse_rate": "20mbit", "rtt": "20ms", "qdisc": "cake",
                    "reverse_qdisc": "cake", "qdisc_options": {"tins": "diffserv4"},
                }
            }  # fmt: skip
            document = scenario_of(template(RRUL), path, "rrul", "cubic", options.length)
            sim, vm = (
                rrul_figures(recorded(document, engine, 1, f"{folder}/rrul")) for engine in ENGINES
            )
            for what in sim:
                hold(f"RRUL {what}", sim[what], vm[what], "", 0.1)
    sys.exit(targets.status)


if __name__ == "__main__":
    main()
