"""Where simulator and kernel differ: cells drawn at random over what the two have in common.

A cell is a path (rate, RTT, queue discipline, buffer, random loss, jitter) and two groups of flows.
Nobody chooses it: `--seed` decides all cells. Each runs in the simulator and on User Mode Linux
(6.12.117), whose processor takes no time, so hosts cost nothing on either; algorithms know what
Google's kernel tells them. Every run has starts and a round trip of its own. Must know no cell.

For each cell and metric: the difference of the means (simulator less kernel), its 95 % interval
(Welch), and whether it is told apart from zero with the false discovery rate of all tests
controlled at 0.05. The half-width of the interval is the difference that could have been seen.

Usage, from the checkout:

    bench_map.py measure DIR [--cells 300] [--seed 31] [--budget SECONDS]
    bench_map.py page DIR

`measure` continues where it was stopped, a cell at a time. `page` prints docs/evidence/map.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench_agreement import TARGETS, add_line, lines_of, values_of
from scipy.stats import t, ttest_ind

from fullpipe.statistics.distributions import rejected

ALGORITHMS = ("reno", "cubic", "bbr1", "bbr2", "bbr3", "bbrnplus")
#: Half of the cells have a FIFO, since its buffer is one more dimension.
DISCIPLINES = ("fifo",) * 5 + ("codel", "fq_codel", "fq", "pie", "cake")
METRICS = {
    "share": "share('own')",
    "delay": "queue_delay_rttmin('median')",
    "utilisation": "utilisation()",
    "loss": "loss()",
    "retransmissions": "retransmits()",
}
TITLES = {
    "share": "share", "delay": "median queue, RTTmin", "utilisation": "utilisation",
    "loss": "loss", "retransmissions": "sent again",
}  # fmt: skip
SIM_SEEDS, KERNEL_SEEDS = 8, 4
DURATION_S, WARMUP_S = 15, 5
RATE = 0.05


def cells(number: int, seed: int) -> list[dict[str, Any]]:
    """So many cells; the first of more are the same."""
    random = np.random.default_rng(seed)
    return [_cell(random) for _ in range(number)]


def _cell(random: np.random.Generator) -> dict[str, Any]:
    def between(low: float, high: float) -> float:
        """Logarithmically uniform, three digits."""
        return float(f"{np.exp(random.uniform(np.log(low), np.log(high))):.3g}")

    own, other = (str(random.choice(ALGORITHMS)) for _ in range(2))
    cell: dict[str, Any] = {
        "rate_mbps": between(2, 100), "rtt_ms": between(5, 200),
        "qdisc": str(random.choice(DISCIPLINES)), "buffer_bdp": between(0.1, 8),
        "loss": between(1e-4, 0.03), "jitter_ms": between(0.3, 5),
        "own": own, "other": other,
        "own_flows": int(random.integers(1, 5)), "other_flows": int(random.integers(0, 5)),
    }  # fmt: skip
    has_loss, has_jitter = random.random(2) < (0.4, 0.2)
    cell["loss"] *= bool(has_loss)
    cell["jitter_ms"] *= bool(has_jitter)
    if cell["qdisc"] != "fifo":
        cell["buffer_bdp"] = None
    return cell


def document_of(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario of a cell without its seed."""
    path = {
        "rate": f"{cell['rate_mbps']}mbit", "rtt": f"{cell['rtt_ms']}ms", "qdisc": cell["qdisc"],
        "loss": cell["loss"], "jitter": f"{cell['jitter_ms']}ms",
    }  # fmt: skip
    if cell["buffer_bdp"]:
        bdp_packets = cell["rate_mbps"] * cell["rtt_ms"] * 1e3 / 8 / 1514
        path["buffer"] = f"{max(4, round(cell['buffer_bdp'] * bdp_packets))}pkt"
    flows = [{"name": "own", "cc": cell["own"], "count": cell["own_flows"]}]
    if cell["other_flows"]:
        flows.append({"name": "other", "cc": cell["other"], "count": cell["other_flows"]})
    return {
        "name": "map", "duration": f"{DURATION_S}s", "warmup": f"{WARMUP_S}s", "path": path,
        "flow": flows, "start_spread": "100ms", "rtt_spread": "1pkt",
    }  # fmt: skip


def measure_cells(options: argparse.Namespace) -> None:
    """Adds what is missing to the folder's two files, cell by cell."""
    options.folder.mkdir(parents=True, exist_ok=True)
    begin_s = time.monotonic()
    host = {"cc_facts": "google", "tcp": "6.12.117"}
    engines = (
        ("vm", KERNEL_SEEDS, {"kernel": "6.12", "machine": "uml"}, {}),
        ("sim", SIM_SEEDS, {}, {"host": host}),
    )
    drawn = cells(options.cells, options.seed)
    for place, cell in enumerate(drawn):
        if options.budget and time.monotonic() - begin_s > options.budget:
            break
        label = json.dumps(cell)
        for engine, seeds, engine_options, more in engines:
            file = options.folder / f"{engine}.jsonl"
            have = {line["seed"] for line in lines_of(file) if line["cell"] == label}
            for seed in sorted(set(range(1, seeds + 1)) - have):
                document = {**document_of(cell), **more, "seed": seed}
                values = values_of(document, engine, engine_options, METRICS)
                add_line(file, label, seed, engine, values)
        print(f"\r{place + 1} of {len(drawn)} cells", end="", file=sys.stderr)
    print(file=sys.stderr)


@dataclass(frozen=True)
class Difference:
    """One metric of one cell: simulator less kernel."""

    cell: Mapping[str, Any]
    metric: str
    mean: float
    half_width: float
    p: float


def differences(folder: Path) -> list[Difference]:
    """Of all cells that both engines have run as often as asked."""
    files = [lines_of(folder / name) for name in ("sim.jsonl", "vm.jsonl")]
    found = []
    for label in dict.fromkeys(line["cell"] for line in files[1]):
        runs = [[line for line in lines if line["cell"] == label] for lines in files]
        if [len(one) for one in runs] != [SIM_SEEDS, KERNEL_SEEDS]:
            continue
        cell = json.loads(label)
        for metric in METRICS:
            sim, vm = (np.array([line[metric] for line in one]) for one in runs)
            if metric == "share" and not cell["other_flows"]:
                continue
            if np.isfinite(sim).all() and np.isfinite(vm).all():
                found.append(_difference(cell, metric, sim, vm))
    return found


def _difference(
    cell: Mapping[str, Any], metric: str, sim: np.ndarray[Any, Any], vm: np.ndarray[Any, Any]
) -> Difference:
    mean = float(sim.mean() - vm.mean())
    parts = [float(one.var(ddof=1)) / len(one) for one in (sim, vm)]
    if not sum(parts):
        return Difference(cell, metric, mean, 0.0, 1.0 if mean == 0 else 0.0)
    squares = [part**2 / (len(one) - 1) for part, one in zip(parts, (sim, vm), strict=True)]
    freedom = sum(parts) ** 2 / sum(squares)
    half = float(t.ppf(0.975, freedom)) * sum(parts) ** 0.5
    return Difference(cell, metric, mean, half, float(ttest_ind(sim, vm, equal_var=False).pvalue))


#: Regions by one property each, so that a cell is in several.
REGIONS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "all": lambda _: True,
    "FIFO below 0.5 BDP": lambda c: c["qdisc"] == "fifo" and c["buffer_bdp"] < 0.5,
    "FIFO of 0.5 to 2 BDP": lambda c: c["qdisc"] == "fifo" and 0.5 <= c["buffer_bdp"] < 2,
    "FIFO from 2 BDP on": lambda c: c["qdisc"] == "fifo" and c["buffer_bdp"] >= 2,
    "CoDel, PIE": lambda c: c["qdisc"] in ("codel", "pie"),
    "FQ-CoDel, fq, CAKE": lambda c: c["qdisc"] in ("fq_codel", "fq", "cake"),
    "no random loss": lambda c: not c["loss"],
    "random loss below 0.3 %": lambda c: 0 < c["loss"] < 0.003,
    "random loss from 0.3 % on": lambda c: c["loss"] >= 0.003,
    "jitter": lambda c: c["jitter_ms"] > 0,
    "below 10 Mbit/s": lambda c: c["rate_mbps"] < 10,
    "10 Mbit/s and more": lambda c: c["rate_mbps"] >= 10,
    "RTT below 20 ms": lambda c: c["rtt_ms"] < 20,
    "RTT of 20 to 80 ms": lambda c: 20 <= c["rtt_ms"] < 80,
    "RTT from 80 ms on": lambda c: c["rtt_ms"] >= 80,
    "loss-based flows only": lambda c: not _has_bbr(c),
    "BBR's family among them": lambda c: _has_bbr(c),
    "one flow": lambda c: c["own_flows"] + c["other_flows"] == 1,
    "2 or 3 flows": lambda c: 2 <= c["own_flows"] + c["other_flows"] <= 3,
    "4 to 8 flows": lambda c: c["own_flows"] + c["other_flows"] >= 4,
}


def _has_bbr(cell: Mapping[str, Any]) -> bool:
    others = [cell["other"]] if cell["other_flows"] else []
    return any(name.startswith("bbr") for name in [cell["own"], *others])


def page(options: argparse.Namespace) -> None:
    """Prints the page's tables."""
    found = differences(options.folder)
    out = [bool(one) for one in rejected([one.p for one in found], RATE)]
    apart = {id(one): is_out for one, is_out in zip(found, out, strict=True)}
    all_cells = {json.dumps(one.cell) for one in found}
    told = {json.dumps(one.cell) for one in found if apart[id(one)]}
    large = {
        json.dumps(one.cell)
        for one in found
        if apart[id(one)] and abs(one.mean) > TARGETS[one.metric]
    }
    print(
        f"{len(all_cells)} cells, {len(found)} tests: {sum(out)} rejected, in {len(told)} cells; "
        f"in {len(large)} by more than a reader would act on "
        f"({1 - len(large) / len(all_cells):.1%} are not told apart).\n"
    )
    _score(found, apart)
    _regions(found, apart)
    _farthest(found, apart)


def _score(found: Sequence[Difference], apart: Mapping[int, bool]) -> None:
    print(
        "| metric | cells | mean difference | 9 in 10 below | could have been seen | told apart |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for metric in METRICS:
        ones = [one for one in found if one.metric == metric]
        sizes = [abs(one.mean) for one in ones]
        seen = np.median([one.half_width for one in ones])
        print(
            f"| {TITLES[metric]} | {len(ones)} | {np.mean(sizes):.4f} | "
            f"{np.quantile(sizes, 0.9):.4f} | {seen:.4f} | {sum(apart[id(o)] for o in ones)} |"
        )
    print()


def _regions(found: Sequence[Difference], apart: Mapping[int, bool]) -> None:
    print(f"| region | cells | {' | '.join(TITLES[m] for m in METRICS)} | told apart |")
    print(f"|---|---:|{'---:|' * (len(METRICS) + 1)}")
    for name, is_in in REGIONS.items():
        ones = [one for one in found if is_in(one.cell)]
        if not ones:
            continue
        number = len({json.dumps(one.cell) for one in ones})
        told = len({json.dumps(one.cell) for one in ones if apart[id(one)]})
        words = []
        for metric in METRICS:
            sizes = [abs(one.mean) for one in ones if one.metric == metric]
            words.append(f"{np.mean(sizes):.4f}" if sizes else "-")
        print(f"| {name} | {number} | {' | '.join(words)} | {told} |")
    print()


def _farthest(found: Sequence[Difference], apart: Mapping[int, bool]) -> None:
    """What is told apart, the most telling first."""
    ones = [one for one in found if apart[id(one)]]
    ones.sort(key=lambda one: -abs(one.mean) / TARGETS[one.metric])
    print("| cell | metric | simulator less kernel | 95 % |")
    print("|---|---|---:|---:|")
    for one in ones[:30]:
        print(
            f"| {_words(one.cell)} | {TITLES[one.metric]} | {one.mean:+.4f} | "
            f"± {one.half_width:.4f} |"
        )


def _words(cell: Mapping[str, Any]) -> str:
    words = [f"{cell['own_flows']} {cell['own']}"]
    if cell["other_flows"]:
        words[0] += f" and {cell['other_flows']} {cell['other']}"
    words += [f"{cell['rate_mbps']:g} Mbit/s", f"{cell['rtt_ms']:g} ms"]
    words.append(f"{cell['buffer_bdp']:g} BDP" if cell["buffer_bdp"] else cell["qdisc"])
    if cell["loss"]:
        words.append(f"loss {cell['loss']:.2%}")
    if cell["jitter_ms"]:
        words.append(f"jitter {cell['jitter_ms']:g} ms")
    return ", ".join(words)


def main() -> None:
    """Does one of both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--cells", type=int, default=300)
    verb.add_argument("--seed", type=int, default=31)
    verb.add_argument("--budget", type=float, help="seconds; a cell that was begun is ended")
    verb.set_defaults(do=measure_cells)
    verb = verbs.add_parser("page")
    verb.add_argument("folder", type=Path)
    verb.set_defaults(do=page)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
