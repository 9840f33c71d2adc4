"""What users notice: pings, calls, pages and short flows beside others, in simulator and kernel.

Cells are drawn at random: lines from 64 kbit/s on, both directions busy, every discipline with
options of its own, sparse traffic, and impairments. `--seed` decides all of them. Each runs in the
simulator and on Linux 6.12.117, with starts and a round trip of every run's own, since slow lines
lock phases. Must know no cell.

Each figure has a bound below which nobody would notice a difference (BOUNDS), stated before the
cells were drawn. A cell agrees if, for every figure that it has, the 95 % interval of the
difference lies inside the bound. An interval that is too wide to tell counts against it. A seed
draws the same starts and round trip for both, so its two runs are a pair (Student's interval of
their differences).

Usage, from the checkout:

    bench_map_users.py measure DIR [--cells 300] [--seed 61] [--runs 10,10] [--budget SECONDS]
    bench_map_users.py page DIR [--runs 10,10]

`measure` continues where it was stopped, a cell at a time. `page` prints the tables of
docs/evidence/map_users.md. `show DIR CELL` prints a cell's scenario and figures.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from bench_agreement import add_line, lines_of, missing_seeds, recorded
from bench_map import HOST, KERNEL, counts_of_runs, log_uniform

from fullpipe.metrics.summary import summarise
from fullpipe.statistics.intervals import half_width

Row = Mapping[str, Any]

ALGORITHMS = ("reno", "cubic", "bbr1", "bbr3")
DURATION_S, WARMUP_S = 40, 5
#: What is drawn logarithmically uniform. The line down is up to 16 times as fast as the one up.
UP_MBPS, ASYMMETRY, RTT_MS, BUFFER_MS = (0.064, 20.0), (1.0, 16.0), (5.0, 200.0), (20.0, 1000.0)
#: RED's thresholds need some packets.
LEAST_RED_BYTES = 40_000
PING_MS, LOSS, REORDER = (20.0, 1000.0), (1e-4, 0.01), (1e-3, 0.02)


@dataclass(frozen=True)
class Bound:
    """How far a figure may differ before somebody notices: `least` in the figure's unit, or
    `ratio` of the kernel's value where that is more. `unit` and `factor`: how it is printed."""

    title: str
    least: float
    ratio: float = 0.0
    unit: str = "ms"
    factor: float = 1.0

    def at(self, kernel: float) -> float:
        """The bound beside this value of the kernel's."""
        return max(self.least, self.ratio * abs(kernel))


#: A percent of loss, some 10 ms and a tenth of a delay, 50 ms and a tenth of a page, a twentieth of
#: a rate: below what tests of speech (ITU-T G.107, G.114) and of pages tell apart.
BOUNDS = {
    "ping_loss": Bound("pings lost", 0.01, 0.1, "%", 100),
    "ping_p50": Bound("ping, median", 10, 0.1),
    "ping_p95": Bound("ping, 95th percentile", 20, 0.15),
    "call_loss": Bound("datagrams of a call lost", 0.01, 0.1, "%", 100),
    "call_p50": Bound("delay of a call, median", 10, 0.1),
    "call_p95": Bound("delay of a call, 95th percentile", 20, 0.15),
    "frames_late": Bound("frames of a video late or lost", 0.02, 0.1, "%", 100),
    "page_p50": Bound("page, median", 50, 0.1),
    "page_loads": Bound("pages loaded", 1, 0.1, ""),
    "short_p50": Bound("short flows, median", 20, 0.1),
    "short_p95": Bound("short flows, 95th percentile", 50, 0.2),
    "up": Bound("uploads' goodput", 0.02, 0.07, "of the line"),
    "down": Bound("downloads' goodput", 0.02, 0.07, "of the line"),
    "retransmits": Bound("sent again", 0.01, 0.15, "%", 100),
}


def cells(number: int, seed: int) -> list[dict[str, Any]]:
    """So many cells; the first of more are the same."""
    random = np.random.default_rng(seed)
    return [drawn(random) for _ in range(number)]


def drawn(random: np.random.Generator) -> dict[str, Any]:
    """A cell: a line, and what goes over it."""
    between = functools.partial(log_uniform, random)
    up_mbps = between(UP_MBPS)
    down_mbps = float(f"{up_mbps * between(ASYMMETRY):.3g}")
    cell: dict[str, Any] = {
        "up_mbps": up_mbps, "down_mbps": down_mbps, "rtt_ms": between(RTT_MS),
        "up": queue_drawn(random), "down": queue_drawn(random),
        "ping_ms": between(PING_MS),
        "loss": between(LOSS) if random.random() < 0.3 else 0.0,
        "reorder": between(REORDER) if random.random() < 0.15 else 0.0,
        "uploads": flows_drawn(random), "downloads": flows_drawn(random),
    }  # fmt: skip
    if random.random() < 0.15:
        cell["outage_s"] = [12.0, between((0.3, 4.0))]
    if random.random() < 0.15:
        cell["step"] = [20.0, float(f"{up_mbps * between((0.3, 3.0)):.3g}")]
    kinds = random.random(4) < (0.4, 0.2, 0.4, 0.4)
    if not (cell["uploads"] or cell["downloads"] or any(kinds)):
        cell["uploads"] = [ALGORITHMS[0]]
    if kinds[0]:
        cell["call_kbps"] = float(f"{min(64.0, 300 * up_mbps):.3g}")
    if kinds[1]:
        cell["video_mbps"] = float(f"{up_mbps * between((0.1, 0.4)):.3g}")
    if kinds[2]:
        # Some 1 to 4 s of the idle line.
        volume = between((0.2, 1.0)) * down_mbps * 1e6 / 8
        objects = int(random.integers(1, 9))
        cell["page_bytes"] = [max(600, round(volume / 8)), *([round(volume / objects)] * objects)]
        cell["page_protocol"] = str(random.choice(["http1", "http2"]))
    if kinds[3]:
        cell["short_bytes"] = round(max(600.0, between((0.02, 0.5)) * up_mbps * 1e6 / 8))
        cell["short_load"] = between((0.05, 0.3))
    return cell


def flows_drawn(random: np.random.Generator) -> list[str]:
    """No, one, two or three long flows of a direction."""
    return [str(random.choice(ALGORITHMS)) for _ in range(int(random.integers(0, 4)))]


def queue_drawn(random: np.random.Generator) -> dict[str, Any]:
    """A discipline and, in half of the cells, options of its own."""
    name = str(random.choice(list(QUEUES)))
    queue: dict[str, Any] = {"qdisc": name, "buffer_ms": log_uniform(random, BUFFER_MS)}
    options = QUEUES[name](random)
    if options and random.random() < 0.5:
        queue["options"] = options
    return queue


def _codel(random: np.random.Generator) -> dict[str, Any]:
    return {
        "target": f"{log_uniform(random, (2, 40))}ms",
        "interval": f"{log_uniform(random, (50, 400))}ms",
    }


def _fq_codel(random: np.random.Generator) -> dict[str, Any]:
    sizes = {
        "quantum": f"{random.choice([300, 1514, 3028])}B",
        "flows": int(2 ** random.integers(4, 11)),
    }
    return {**_codel(random), **sizes}


def _cake(random: np.random.Generator) -> dict[str, Any]:
    return {
        "rtt": f"{log_uniform(random, (20, 400))}ms",
        "tins": str(random.choice(["besteffort", "diffserv3", "diffserv4"])),
        "isolation": str(random.choice(["flows", "triple-isolate", "flowblind"])),
        "ack_filter": str(random.choice(["no", "filter", "aggressive"])),
        "ingress": bool(random.random() < 0.3),
    }


def _pie(random: np.random.Generator) -> dict[str, Any]:
    return {"target": f"{log_uniform(random, (5, 60))}ms"}


def _sfq(random: np.random.Generator) -> dict[str, Any]:
    return {"flow_limit": int(random.integers(8, 128))}


def _none(_random: np.random.Generator) -> dict[str, Any]:
    return {}


QUEUES: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "fifo": _none, "fq": _none, "codel": _codel, "fq_codel": _fq_codel, "red": _none,
    "cake": _cake, "pie": _pie, "fq_pie": _pie, "sfq": _sfq, "prio": _none,
}  # fmt: skip


def document_of(cell: Row, seed: int) -> dict[str, Any]:
    """The scenario of a run of a cell. Streams start at times of the run's own: at the same moment
    chance decides which packet comes first, in every frame again."""
    starts_s = np.random.default_rng(seed).uniform(0, 0.1, 2).round(6)
    link = {"name": "line", **_direction(cell, "up"), "delay": f"{cell['rtt_ms'] / 2}ms"}
    link["reverse"] = _direction(cell, "down")
    if cell["loss"]:
        link["loss"] = cell["loss"]
    if cell["reorder"]:
        link["reorder"] = cell["reorder"]
    if "outage_s" in cell:
        link["outage"] = [[f"{part}s" for part in cell["outage_s"]]]
    if "step" in cell:
        link["rate_steps"] = [[f"{cell['step'][0]}s", f"{cell['step'][1]}mbit"]]
    flows = [
        {"name": f"{way}{number}", "cc": cc, "direction": way}
        for way in ("up", "down")
        for number, cc in enumerate(cell[f"{way}loads"])
    ]
    document: dict[str, Any] = {
        "name": f"{cell['up_mbps']:g} Mbit/s up, {cell['rtt_ms']:g} ms", "seed": seed,
        "duration": f"{DURATION_S}s", "warmup": f"{WARMUP_S}s",
        "start_spread": "1s", "rtt_spread": "1pkt", "path": {"mtu": 1500}, "link": [link],
        "probe": [{"name": "ping", "interval": f"{cell['ping_ms']}ms"}],
    }  # fmt: skip
    if flows:
        document["flow"] = flows
    if "call_kbps" in cell:
        call = {"name": "call", "rate": f"{cell['call_kbps']}kbit", "payload": "160B",
                "start": f"{starts_s[0]}s"}  # fmt: skip
        document.setdefault("udp", []).append(call)
    if "video_mbps" in cell:
        video = {
            "name": "video",
            "rate": f"{cell['video_mbps']}mbit",
            "frames": 10,
            "start": f"{starts_s[1]}s",
            "deadline": f"{cell['rtt_ms'] / 2 + 400}ms",
        }
        document.setdefault("udp", []).append(video)
    if "page_bytes" in cell:
        first, *others = (f"{size}B" for size in cell["page_bytes"])
        document["page"] = [{"name": "page", "cc": "cubic", "levels": [[first], others],
                             "interval": "2s", "protocol": cell["page_protocol"]}]  # fmt: skip
    if "short_bytes" in cell:
        document["traffic"] = [{"name": "short", "cc": "cubic", "sizes": f"{cell['short_bytes']}B",
                                "load": cell["short_load"]}]  # fmt: skip
    return document


def _direction(cell: Row, way: str) -> dict[str, Any]:
    queue, rate = cell[way], cell[f"{way}_mbps"]
    limit = max(6000, round(rate * 1e6 / 8 * queue["buffer_ms"] / 1e3))
    if queue["qdisc"] in ("fifo", "red"):
        limit_text = f"{max(limit, LEAST_RED_BYTES) if queue['qdisc'] == 'red' else limit}B"
    else:
        limit_text = f"{max(4, round(limit / 1514))}pkt"
    direction = {"rate": f"{rate}mbit", "qdisc": queue["qdisc"]}
    if queue["qdisc"] != "cake":  # whose limit is memory
        direction["buffer"] = limit_text
    options = dict(queue.get("options", {}))
    if queue["qdisc"] == "cake" and way == "up" and {"outage_s", "step"} & cell.keys():
        options["bandwidth"] = "unlimited"  # its own shaper has one rate
    if options:
        direction["qdisc_options"] = options
    return direction


def figures_of(summary: Row, cell: Row) -> dict[str, float]:
    """The figures of BOUNDS that a run has, NaN where nothing arrived."""
    figures: dict[str, float] = {}
    for probe in summary.get("probes", []):
        figures["ping_loss"] = probe["loss_ratio"]
        figures["ping_p50"], figures["ping_p95"] = _ms(probe["rtt_ms"], 1)
    for stream in summary.get("streams", []):
        if stream["stream"] == "video":
            figures["frames_late"] = 1 - _number(stream["frames_in_time"])
        else:
            figures["call_loss"] = stream["loss_ratio"]
            figures["call_p50"], figures["call_p95"] = _ms(stream["delay_s"], 1e3)
    for page in summary.get("pages", []):
        figures["page_p50"] = _ms(page["time_s"], 1e3)[0]
        figures["page_loads"] = page["finished"]
    for group in summary.get("traffic", []):
        figures["short_p50"], figures["short_p95"] = _ms(group["completion_s"], 1e3)
    for way in ("up", "down"):
        if flows := [flow for flow in summary["flows"] if flow["direction"] == way]:
            line_bps = cell[f"{way}_mbps"] * 1e6
            figures[way] = sum(_number(flow["goodput_bps"]) for flow in flows) / line_bps
    if summary["flows"]:
        figures["retransmits"] = _number(summary["retransmit_ratio"])
    return {name: _number(value) for name, value in figures.items()}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _ms(spread: Row, factor: float) -> tuple[float, float]:
    return _number(spread["p50"]) * factor, _number(spread["p95"]) * factor


def measure_cells(options: argparse.Namespace) -> None:
    """Adds what is missing to the folder's two files, cell by cell."""
    options.folder.mkdir(parents=True, exist_ok=True)
    begin_s = time.monotonic()
    engines = (("vm", options.runs[1], KERNEL, {}), ("sim", options.runs[0], {}, {"host": HOST}))
    chosen = list(enumerate(cells(options.cells, options.seed)))[options.first :: options.stride]
    for number, cell in chosen:
        if options.budget and time.monotonic() - begin_s > options.budget:
            break
        label = json.dumps(cell)
        for engine, seeds, engine_options, more in engines:
            file = options.folder / f"{engine}{options.first}.jsonl"
            for seed in missing_seeds(file, label, seeds):
                document = {**document_of(cell, seed), **more}
                figures = measured(document, cell, engine, engine_options)
                add_line(file, label, seed, engine, figures)
        print(f"\rcell {number + 1} of {options.cells}", end="", file=sys.stderr)
    print(file=sys.stderr)


def measured(
    document: dict[str, Any], cell: Row, engine: str, engine_options: dict[str, str]
) -> dict[str, float]:
    """The figures of one run. Raises SystemExit where the run fails."""
    with recorded(document, engine, engine_options) as recording:
        return figures_of(summarise(recording), cell)


@dataclass(frozen=True)
class Difference:
    """A figure of a cell: means of kernel and simulator, half of the 95 % interval of their
    difference, and the bound."""

    cell: Row
    figure: str
    kernel: float
    simulator: float
    half_width: float
    bound: float

    @property
    def mean(self) -> float:
        """Simulator less kernel."""
        return self.simulator - self.kernel

    @property
    def verdict(self) -> str:
        """`agrees`, `differs` (the interval is outside the bound), or `open`."""
        if abs(self.mean) + self.half_width <= self.bound:
            return "agrees"
        return "differs" if abs(self.mean) - self.half_width > self.bound else "open"


def differences(folder: Path, seeds: tuple[int, int]) -> list[Difference]:
    """Of all cells that simulator and kernel have run so often."""
    runs: dict[str, dict[str, list[Row]]] = {}
    for engine in ("sim", "vm"):
        for file in sorted(folder.glob(f"{engine}*.jsonl")):
            for line in lines_of(file):
                runs.setdefault(line["cell"], {"sim": [], "vm": []})[engine].append(line)
    made = []
    for label, by_engine in runs.items():
        if (len(by_engine["sim"]), len(by_engine["vm"])) == seeds:
            made += compared(json.loads(label), by_engine["sim"], by_engine["vm"])
    return made


def compared(cell: Row, sim: Sequence[Row], vm: Sequence[Row]) -> list[Difference]:
    """Every figure of a cell, over the seeds in which both have it, if there are two."""
    made = []
    by_seed = {run["seed"]: run for run in sim}
    for figure, bound in BOUNDS.items():
        pairs = np.array([
            (by_seed[run["seed"]][figure], run[figure])
            for run in vm
            if np.isfinite(run.get(figure, np.nan))
            and np.isfinite(by_seed[run["seed"]].get(figure, np.nan))
        ])  # fmt: skip
        if len(pairs) > 1:
            simulator, kernel = (float(mean) for mean in pairs.mean(axis=0))
            half = half_width(pairs[:, 0] - pairs[:, 1])
            made.append(Difference(cell, figure, kernel, simulator, half, bound.at(kernel)))
    return made


def page(options: argparse.Namespace) -> None:
    """Prints the page's tables."""
    all_differences = differences(options.folder, options.runs)
    by_cell: dict[str, list[Difference]] = {}
    for difference in all_differences:
        by_cell.setdefault(json.dumps(difference.cell), []).append(difference)
    verdicts = [worst(rows) for rows in by_cell.values()]
    counts = {word: verdicts.count(word) for word in ("agrees", "open", "differs")}
    print(f"{len(by_cell)} cells: {counts}\n")
    print("| figure | cells | bound | agree | open | differ |")
    print("|---|---:|---|---:|---:|---:|")
    for figure, bound in BOUNDS.items():
        words = [row.verdict for row in all_differences if row.figure == figure]
        limit = f"{bound.least * bound.factor:g} {bound.unit}"
        ratio = f" or {bound.ratio:.0%}" if bound.ratio else ""
        numbers = [words.count(word) for word in ("agrees", "open", "differs")]
        print(
            f"| {bound.title} | {len(words)} | {limit}{ratio} | {' | '.join(map(str, numbers))} |"
        )
    print("\n| cell | figure | kernel | simulator | ± | bound |\n|---|---|---:|---:|---:|---:|")
    apart = [row for row in all_differences if row.verdict != "agrees"]
    for row in sorted(apart, key=lambda row: -abs(row.mean) / row.bound):
        values = (row.kernel, row.simulator, row.half_width, row.bound)
        factor = BOUNDS[row.figure].factor
        numbers_text = " | ".join(f"{value * factor:.4g}" for value in values)
        print(
            f"| {words_of(row.cell)} | {BOUNDS[row.figure].title} ({row.verdict}) "
            f"| {numbers_text} |"
        )


def worst(rows: Sequence[Difference]) -> str:
    """The verdict on a cell."""
    verdicts = {row.verdict for row in rows}
    return next(word for word in ("differs", "open", "agrees") if word in verdicts)


def words_of(cell: Row) -> str:
    """A cell in a line."""
    words = [f"{cell['up_mbps']:g}/{cell['down_mbps']:g} Mbit/s {cell['rtt_ms']:g} ms"]
    for way in ("up", "down"):
        queue = cell[way]
        options = f" {queue['options']}" if "options" in queue else ""
        words.append(f"{way} {queue['qdisc']} {queue['buffer_ms']:g} ms{options}")
        if cell[f"{way}loads"]:
            words.append("+".join(cell[f"{way}loads"]))
    keys = ("loss", "reorder", "outage_s", "step", "call_kbps", "video_mbps", "page_bytes",
            "short_bytes", "ping_ms")  # fmt: skip
    words += [f"{key} {cell[key]}" for key in keys if cell.get(key)]
    return ", ".join(words)


def show(options: argparse.Namespace) -> None:
    """Prints the scenario of a cell by its number, from 1."""
    cell = cells(options.cell, options.seed)[-1]
    print(tomli_w.dumps(document_of(cell, 1)))


def main() -> None:
    """Measures, prints the tables, or shows a cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--cells", type=int, default=300)
    verb.add_argument("--first", type=int, default=0, help="with --stride: a part of the cells")
    verb.add_argument("--stride", type=int, default=1)
    verb.add_argument("--budget", type=float, help="seconds; a cell that was begun is ended")
    verb.set_defaults(do=measure_cells)
    verb = verbs.add_parser("page")
    verb.add_argument("folder", type=Path)
    verb.set_defaults(do=page)
    verb = verbs.add_parser("show")
    verb.add_argument("cell", type=int)
    verb.set_defaults(do=show)
    for verb in verbs.choices.values():
        verb.add_argument("--seed", type=int, default=61)
        verb.add_argument(
            "--runs", type=counts_of_runs, default=(10, 10), help="of simulator and kernel"
        )
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
