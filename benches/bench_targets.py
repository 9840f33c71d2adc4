"""Congestion controls on the rows of targets of docs/evidence/tarn.md: fairness and queue of own
flows, late comers, unequal RTTs, shares beside other kinds, loss, shallow buffers, links that
change or jitter, short flows, active queues.

Prints a Markdown row for each cell: the mean over seeds with Student's 95 % interval. With --out
the figures are kept by algorithm and cell, and only missing ones are run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fullpipe
from fullpipe.metrics import (
    View,
    goodput_bps,
    jain,
    phase_shares,
    queue_delay_rttmin,
    summarise,
    throughput_over_time,
)  # fmt: skip
from fullpipe.statistics.intervals import half_width

RATE_BPS, RTT = 100e6, "40ms"
#: Goodput of a full link: a segment's data of its packet.
FULL = 1448 / 1500
NEVER = 99.0
Figures = dict[str, float]


@dataclass(frozen=True)
class Cell:
    """One scenario and what is measured in it."""

    row: str
    name: str
    scenario: dict[str, Any]
    measure: Callable[[Any], Figures]
    engines: tuple[str, ...] = ("sim",)


def path(buffer: float, rate: str = "100mbit", rtt: str = RTT, **more: Any) -> dict[str, Any]:
    """Keys of a scenario's path."""
    return {"rate": rate, "rtt": rtt, "buffer": f"{buffer}bdp", **more}


def seconds(scenario: dict[str, Any]) -> float:
    """How long a scenario lasts."""
    return float(str(scenario["duration"]).removesuffix("s"))


def steady(begin: float, end: float, rate_bps: float = RATE_BPS) -> Callable[[Any], Figures]:
    """Fairness in windows of 10 s, queue, use, loss and the share of competition."""

    def measure(recording: Any) -> Figures:
        view = View(recording, begin, end)
        _, rates = throughput_over_time(view, 10.0)
        queue = queue_delay_rttmin(view)
        goodput = goodput_bps(view)
        competing = [phase_shares(view, i).get("avoidance", 0.0) for i in range(len(goodput))]
        return {
            "jain": float(np.mean([jain(rates[:, k]) for k in range(rates.shape[1])])),
            "queue": float(np.median(queue)), "queue_95": float(np.quantile(queue, 0.95)),
            "use": float(goodput.sum() / (rate_bps * FULL)),
            "loss": view.path_metrics["loss_ratio"],
            "competing": float(np.mean(competing)),
        }  # fmt: skip

    return measure


def own(cc: str) -> Iterator[Cell]:
    for flows in (1, 2, 8, 32, 64):
        for buffer in (1, 4, 16):
            scenario = {"duration": "60s", "path": path(buffer),
                        "flow": [{"cc": cc, "count": flows}]}  # fmt: skip
            engines = ("sim", "vm") if flows <= 8 and buffer == 4 else ("sim",)
            yield Cell("own", f"N = {flows}, {buffer} BDP", scenario, steady(20, 60), engines)
    for rate in (10, 1000):
        for flows in (1, 2, 8):
            scenario = {"duration": "60s", "path": path(4, f"{rate}mbit"),
                        "flow": [{"cc": cc, "count": flows}]}  # fmt: skip
            yield Cell("own", f"N = {flows}, {rate} Mbit/s", scenario, steady(20, 60, rate * 1e6))


def settles(recording: Any) -> Figures:
    """Seconds from the last start until each flow stays within 25 % of its share, in windows of
    5 s."""
    _, rates = throughput_over_time(View(recording, 20, 80), 5.0)
    share = rates / rates.sum(axis=0, keepdims=True) * len(rates)
    ok = (np.abs(share - 1) <= 0.25).all(axis=0)
    good = [i for i in range(len(ok)) if ok[i:].all()]
    return {"settles_s": 5.0 * good[0] if good else NEVER}


def late(cc: str) -> Iterator[Cell]:
    for first, then in ((1, 1), (4, 1), (15, 15)):
        flows = [{"cc": cc, "count": first}, {"cc": cc, "count": then, "start": "20s"}]
        scenario = {"duration": "80s", "path": path(4), "flow": flows}
        yield Cell("late", f"{first} + {then}", scenario, settles)


def ratios(cc: str) -> Iterator[Cell]:
    def measure(recording: Any) -> Figures:
        goodput = goodput_bps(View(recording, 20, 80))
        return {"ratio": float(goodput.max() / max(goodput.min(), 1.0))}

    for buffer in (1, 4, 8):
        flows = [{"cc": cc, "rtt": rtt} for rtt in ("10ms", "20ms", "40ms", "80ms")]
        scenario = {"duration": "80s", "path": path(buffer), "flow": flows}
        yield Cell("RTT 10 to 80 ms", f"{buffer} BDP", scenario, measure)


def beside(cc: str) -> Iterator[Cell]:
    for other, buffers in (
        ("cubic", (1, 2, 4, 16)), ("reno", (1, 2, 4, 16)), ("bbr1", (1, 4, 16)),
        ("bbr3", (1, 4, 16)),
    ):  # fmt: skip
        for buffer in buffers:
            length = 100 if buffer == 16 else 60

            def measure(recording: Any, length: int = length) -> Figures:
                view = View(recording, 20, length)
                mine, theirs = goodput_bps(view)
                queue = float(np.median(queue_delay_rttmin(view)))
                return {"share": float(2 * mine / (mine + theirs)), "queue": queue}

            scenario = {"duration": f"{length}s", "path": path(buffer),
                        "flow": [{"cc": cc}, {"cc": other}]}  # fmt: skip
            engines = ("sim", "vm") if other == "cubic" else ("sim",)
            yield Cell(f"beside {other}", f"{buffer} BDP", scenario, measure, engines)


def leaves(cc: str) -> Iterator[Cell]:
    def measure(recording: Any) -> Figures:
        queue = queue_delay_rttmin(View(recording, 30, 70))
        times = 40 * (np.arange(len(queue)) + 1) / len(queue)
        # A drain is no return: the last time above a half counts.
        above = np.flatnonzero(queue > 0.5)
        view = View(recording, 45, 70)
        competing = [phase_shares(view, i).get("avoidance", 0.0) for i in range(2)]
        return {"below_s": float(times[above[-1]]) if len(above) else 0.0,
                "competing": float(np.mean(competing))}  # fmt: skip

    flows = [{"cc": cc, "count": 2}, {"cc": "cubic", "stop": "30s"}]
    yield Cell(
        "CUBIC leaves", "4 BDP", {"duration": "70s", "path": path(4), "flow": flows}, measure
    )


def losing(cc: str) -> Iterator[Cell]:
    for percent in (0.1, 1, 2, 5):
        scenario = {"duration": "40s", "path": path(1, loss=f"{percent}%"), "flow": [{"cc": cc}]}
        yield Cell("random loss", f"{percent} %", scenario, steady(10, 40), ("sim", "vm"))


def shallow(cc: str) -> Iterator[Cell]:
    for flows in (1, 2, 8, 32):
        for buffer in (0.05, 0.1, 0.25, 0.5):
            scenario = {"duration": "50s", "path": path(buffer),
                        "flow": [{"cc": cc, "count": flows}]}  # fmt: skip
            yield Cell("shallow", f"N = {flows}, {buffer} BDP", scenario, steady(10, 50))


def links(cc: str) -> Iterator[Cell]:
    fifty = {"rate": "50mbit", "rtt": "30ms"}
    flow = [{"cc": cc}]
    held = {"hold": {"time": "10ms", "packets": 64}}
    back = {"rate": "2mbit", "hold": {"time": "5ms", "packets": 16}}
    radio = {"name": "radio", "rate_trace": "scenarios/traces/cellular.trace", "delay": "25ms",
             "buffer": "1MB", "reverse": back}  # fmt: skip
    wifi = {"standard": "n", "mcs": 7, "queue": {"kind": "driver", "packets": 1000},
            "station": [{"name": "laptop"}]}  # fmt: skip
    scenarios: dict[str, dict[str, Any]] = {
        "jitter of slots, 10 ms": {"path": path(2, jitter="10ms", jitter_shape="slotted", **fifty)},
        "jitter of packets, 10 ms": {"path": path(2, jitter="10ms", **fifty)},
        "aggregated ACKs": {"link": [{"name": "a", "rate": "50mbit", "delay": "15ms",
                                      "buffer": "2bdp", "reverse": held}]},
        "cellular": {"link": [radio]},
        "Wi-Fi": {"path": {"rate": "1gbit", "rtt": "30ms"}, "wifi": wifi,
                  "flow": [{"cc": cc, "station": "laptop"}]},
    }  # fmt: skip

    def measure(recording: Any) -> Figures:
        samples = View(recording, 8, 40).samples("flow_samples")
        return {"mbps": float(goodput_bps(View(recording, 8, 40)).sum() / 1e6),
                "srtt_ms": float(np.nanmean(samples["srtt_us"]) / 1e3)}  # fmt: skip

    for name, scenario in scenarios.items():
        yield Cell("links", name, {"duration": "40s", "flow": flow} | scenario, measure)


def steps(cc: str) -> Iterator[Cell]:
    def filled(recording: Any) -> Figures:
        edges, rates = throughput_over_time(View(recording, 20, 40), 0.5)
        full = rates.sum(axis=0) >= 0.9 * RATE_BPS * FULL
        return {"s": float(edges[np.argmax(full)] - 20) if full.any() else NEVER}

    def emptied(recording: Any) -> Figures:
        samples = View(recording, 20.3, 40).samples("queue_samples")
        names = samples["queue"].astype(str)
        backlog = samples["queue_bytes"].astype(float)
        busiest = max(set(names), key=lambda name: backlog[names == name].sum())
        times = samples["t_us"][names == busiest] / 1e6 - 20
        low = backlog[names == busiest] * 8 / 10e6 < 0.010
        return {"s": float(times[np.argmax(low)]) if low.any() else NEVER}

    for name, before, after, measure in (
        ("rate x 10: full after", "10mbit", "100mbit", filled),
        ("rate / 10: drained after", "100mbit", "10mbit", emptied),
    ):
        link = {"name": "l", "rate": before, "delay": "20ms", "buffer": "340pkt",
                "rate_steps": [["20s", after]]}  # fmt: skip
        scenario = {"duration": "40s", "sample_interval": "50ms", "link": [link],
                    "flow": [{"cc": cc}]}  # fmt: skip
        yield Cell("steps", name, scenario, measure, ("sim", "vm"))


def short(cc: str) -> Iterator[Cell]:
    def measure(recording: Any) -> Figures:
        slowdown = summarise(recording)["traffic"][0]["slowdown"]
        return {"mean": slowdown["mean"], "p99": slowdown["p99"]}

    traffic = {"name": "s", "cc": cc, "load": 0.6, "sizes": "websearch", "senders": 2}
    scenario = {"duration": "20s", "warmup": "2s", "path": path(2, rtt="20ms"),
                "traffic": [traffic]}  # fmt: skip
    yield Cell("short flows", "WebSearch, load 0.6", scenario, measure)


def active(cc: str) -> Iterator[Cell]:
    for discipline in ("codel", "fq_codel", "cake", "pie", "dualpi2"):
        for flows in (1, 8):
            one = {"rate": "100mbit", "rtt": RTT, "qdisc": discipline}
            if discipline != "cake":
                one["buffer"] = "1000pkt"
            scenario = {"duration": "40s", "path": one, "flow": [{"cc": cc, "count": flows}]}
            yield Cell("active queues", f"{discipline}, N = {flows}", scenario, steady(10, 40))


ROWS = (own, late, ratios, beside, leaves, losing, shallow, links, steps, short, active)


def interval(values: list[float]) -> str:
    """Mean and the half of Student's 95 % interval."""
    mean = float(np.mean(values))
    if len(values) < 2 or np.ptp(values) == 0:
        return f"{mean:.3g}"
    return f"{mean:.3g} ± {half_width(values):.1g}"


def run_cell(
    cell: Cell, seeds: int, engine: str, options: dict[str, str]
) -> dict[str, list[float]]:
    """The figures of a cell, each over its seeds. `options`: of the engine."""
    scenario = dict(cell.scenario)
    if "link" not in scenario and "wifi" not in scenario and "traffic" not in scenario:
        scenario["rtt_spread"] = "1pkt"
    found: dict[str, list[float]] = {}
    recordings = fullpipe.run(scenario, engine=engine, seeds=range(1, seeds + 1), jobs=1, **options)
    for recording in list(recordings):
        for name, value in cell.measure(recording).items():
            found.setdefault(name, []).append(value)
    return found


def main() -> None:
    """Runs the selected rows and prints them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cc", nargs="+")
    parser.add_argument("--rows", default="", help="names of rows, by their beginnings")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--engine", default="sim", choices=("sim", "vm"))
    parser.add_argument("--machine", choices=("qemu", "uml"), help="of engine vm")
    parser.add_argument("--out", type=Path, help="a JSON file of figures")
    asked = parser.parse_args()
    options = {"machine": asked.machine} if asked.machine else {}
    kept: dict[str, Any] = {}
    if asked.out and asked.out.exists():
        kept = json.loads(asked.out.read_text())
    wanted = tuple(asked.rows.split(",")) if asked.rows else ("",)
    by_cell: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = {}
    for cc in asked.cc:
        for cell in (cell for row in ROWS for cell in row(cc)):
            if not cell.row.startswith(wanted) or asked.engine not in cell.engines:
                continue
            engine = "-".join((asked.engine, *options.values()))
            key = "|".join((cc, engine, str(asked.seeds), cell.row, cell.name))
            if key not in kept:
                try:
                    kept[key] = run_cell(cell, asked.seeds, asked.engine, options)
                except fullpipe.UserError as error:
                    print(f"{cc}, {cell.row}, {cell.name}: {error}", file=sys.stderr)
                    continue
                if asked.out:
                    asked.out.write_text(json.dumps(kept))
            by_cell.setdefault((cell.row, cell.name), {})[cc] = kept[key]
    print("| row | cell | figure | " + " | ".join(asked.cc) + " |")
    print("|---" * (3 + len(asked.cc)) + "|")
    for (row, name), columns in by_cell.items():
        for figure in next(iter(columns.values())):
            cells = [interval(columns[cc][figure]) if cc in columns else "-" for cc in asked.cc]
            print(f"| {row} | {name} | {figure} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
