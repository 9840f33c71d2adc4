"""Where simulator and kernel differ: cells drawn at random over what the two have in common.

A cell is a path (rate, RTT, queue discipline, buffer, random loss, jitter) and two groups of flows.
Nobody chooses it: `--seed` decides all cells. Each runs in the simulator and on User Mode Linux
(6.12.117), whose processor takes no time, so hosts cost nothing on either; algorithms know what
Google's kernel tells them. Every run has starts and a round trip of its own. Must know no cell.

For each cell and metric: the difference of the means (simulator less kernel), its 95 % interval
(Welch), and whether it is told apart from zero with the false discovery rate of all tests
controlled at 0.05. The half-width of the interval is the difference that could have been seen.

Usage, from the checkout:

    bench_map.py measure DIR [--draw wide] [--cells 300] [--seed 31] [--runs 8,4] [--budget SECONDS]
    bench_map.py page DIR [--draw wide] [--runs 8,4]

`measure` continues where it was stopped, a cell at a time. `page` prints the tables of
docs/evidence/map.md, and writes the regions that verdicts and reports go by
(python/fullpipe/agreement/map.json); those of the other draw and of other sources stay as they are.
The draw `wide` is of FIFOs with up to 20 flows and 16 BDP.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench_agreement import TARGETS, add_line, lines_of, missing_seeds, values_of
from scipy.stats import t, ttest_ind

import fullpipe
from fullpipe.agreement.regions import Difference as MeanDifference
from fullpipe.agreement.regions import Facts, Limits, Map, Metric, Region, the_map
from fullpipe.congestion.registry import cc_sets
from fullpipe.statistics.distributions import rejected

ALGORITHMS = ("reno", "cubic", "bbr1", "bbr2", "bbr3", "bbrnplus")
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
DURATION_S, WARMUP_S = 15, 5
#: Options of engine `vm`; hosts of the simulator that know as much, with the TCP of that kernel.
KERNEL = {"kernel": "6.12", "machine": "uml"}
HOST = {"cc_facts": "google", "tcp": "6.12.117"}
RATE = 0.05
#: What every draw spans, logarithmically uniform; loss and jitter only in some cells.
RATE_MBPS, RTT_MS, LOSS, JITTER_MS = (2.0, 100.0), (5.0, 200.0), (1e-4, 0.03), (0.3, 5.0)
SOURCE = "docs/evidence/map.md"
MAP = Path(fullpipe.__file__).parent / "agreement" / "map.json"


@dataclass(frozen=True)
class Draw:
    """What is drawn beside that: a discipline with equal chances, the BDPs of a FIFO's buffer, at
    most `of_each` flows of each of two algorithms. `queues`: its regions, since what error to
    expect depends on the queue most, with their disciplines and BDPs."""

    disciplines: tuple[str, ...]
    buffer_bdp: tuple[float, float]
    of_each: int
    queues: dict[str, tuple[tuple[str, ...], tuple[float, float] | None]]


DRAWS = {
    # Half of the cells have a FIFO, since its buffer is one more dimension.
    "usual": Draw(
        ("fifo",) * 5 + ("codel", "fq_codel", "fq", "pie", "cake"), (0.1, 8), 4,
        {
            "FIFO from 2 BDP on": (("fifo",), (2, 8)),
            "FIFO of 0.5 to 2 BDP": (("fifo",), (0.5, 2)),
            "FIFO below 0.5 BDP": (("fifo",), (0.1, 0.5)),
            "CoDel, PIE": (("codel", "pie"), None),
            "FQ-CoDel, fq, CAKE": (("fq_codel", "fq", "cake"), None),
        },
    ),
    "wide": Draw(
        ("fifo",), (0.5, 16), 10, {"FIFO with up to 20 flows and 16 BDP": (("fifo",), (0.5, 16))}
    ),
}  # fmt: skip
USUAL = DRAWS["usual"]
#: The metrics' names in the map.
NAMES: dict[str, Metric] = {
    "share": "share", "delay": "queue_rttmin", "utilisation": "utilisation", "loss": "loss",
    "retransmissions": "retransmissions",
}  # fmt: skip


def cells(number: int, seed: int, draw: Draw = USUAL) -> list[dict[str, Any]]:
    """So many cells; the first of more are the same."""
    random = np.random.default_rng(seed)
    return [drawn(random, draw) for _ in range(number)]


def drawn(random: np.random.Generator, draw: Draw = USUAL) -> dict[str, Any]:
    """A cell."""
    own, other = (str(random.choice(ALGORITHMS)) for _ in range(2))
    cell: dict[str, Any] = {
        "rate_mbps": log_uniform(random, RATE_MBPS), "rtt_ms": log_uniform(random, RTT_MS),
        "qdisc": str(random.choice(draw.disciplines)),
        "buffer_bdp": log_uniform(random, draw.buffer_bdp),
        "loss": log_uniform(random, LOSS), "jitter_ms": log_uniform(random, JITTER_MS),
        "own": own, "other": other,
        "own_flows": int(random.integers(1, draw.of_each + 1)),
        "other_flows": int(random.integers(0, draw.of_each + 1)),
    }  # fmt: skip
    has_loss, has_jitter = random.random(2) < (0.4, 0.2)
    cell["loss"] *= bool(has_loss)
    cell["jitter_ms"] *= bool(has_jitter)
    if cell["qdisc"] != "fifo":
        cell["buffer_bdp"] = None
    return cell


def log_uniform(random: np.random.Generator, bounds: tuple[float, float]) -> float:
    """A number that is logarithmically uniform between bounds, with three digits."""
    low, high = bounds
    return float(f"{np.exp(random.uniform(np.log(low), np.log(high))):.3g}")


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
    engines = (
        ("vm", options.runs[1], KERNEL, {}),
        ("sim", options.runs[0], {}, {"host": HOST}),
    )
    chosen = cells(options.cells, options.seed, DRAWS[options.draw])
    for place, cell in enumerate(chosen):
        if options.budget and time.monotonic() - begin_s > options.budget:
            break
        label = json.dumps(cell)
        for engine, seeds, engine_options, more in engines:
            file = options.folder / f"{engine}.jsonl"
            for seed in missing_seeds(file, label, seeds):
                document = {**document_of(cell), **more, "seed": seed}
                values = values_of(document, engine, engine_options, METRICS)
                add_line(file, label, seed, engine, values)
        print(f"\r{place + 1} of {len(chosen)} cells", end="", file=sys.stderr)
    print(file=sys.stderr)


@dataclass(frozen=True)
class Difference:
    """One metric of one cell: simulator less kernel, its standard error and 95 % interval."""

    cell: Mapping[str, Any]
    metric: str
    mean: float
    error: float
    half_width: float
    p: float


def differences(folder: Path, seeds: tuple[int, int]) -> list[Difference]:
    """Of all cells that simulator and kernel have run so often."""
    files = [lines_of(folder / name) for name in ("sim.jsonl", "vm.jsonl")]
    found = []
    for label in dict.fromkeys(line["cell"] for line in files[1]):
        runs = [[line for line in lines if line["cell"] == label] for lines in files]
        if tuple(len(one) for one in runs) != seeds:
            continue
        found += [difference(*one) for one in compared(json.loads(label), *runs)]
    return found


def compared(
    cell: Mapping[str, Any], sim: Sequence[Mapping[str, Any]], vm: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The cell, and each metric that its runs have, with the values of the simulator's and of the
    kernel's. Flows that are alone have no share."""
    for metric in METRICS:
        values = [np.array([line[metric] for line in one]) for one in (sim, vm)]
        if metric == "share" and not cell["other_flows"]:
            continue
        if all(np.isfinite(one).all() for one in values):
            yield cell, metric, values[0], values[1]


def difference(
    cell: Mapping[str, Any], metric: str, sim: np.ndarray[Any, Any], vm: np.ndarray[Any, Any]
) -> Difference:
    """By Welch's test."""
    mean = float(sim.mean() - vm.mean())
    parts = [float(one.var(ddof=1)) / len(one) for one in (sim, vm)]
    if not sum(parts):
        return Difference(cell, metric, mean, 0.0, 0.0, 1.0 if mean == 0 else 0.0)
    squares = [part**2 / (len(one) - 1) for part, one in zip(parts, (sim, vm), strict=True)]
    freedom = sum(parts) ** 2 / sum(squares)
    error = sum(parts) ** 0.5
    half = float(t.ppf(0.975, freedom)) * error
    p = float(ttest_ind(sim, vm, equal_var=False).pvalue)
    return Difference(cell, metric, mean, error, half, p)


def limits_of(queue: str, draw: Draw = USUAL) -> Limits:
    """What is drawn of a region's cells."""
    qdiscs, buffer_bdp = draw.queues[queue]
    return Limits(
        qdiscs=qdiscs, buffer_bdp=buffer_bdp, rate_mbps=RATE_MBPS, rtt_ms=RTT_MS,
        loss=(0, LOSS[1]), jitter_ms=(0, JITTER_MS[1]), flows=(1, 2 * draw.of_each),
        algorithms=tuple(dict.fromkeys(cc_sets()[name].algorithm for name in ALGORITHMS)),
    )  # fmt: skip


def facts_of(cell: Mapping[str, Any]) -> Facts:
    """What decides a cell's region."""
    names = [cell["own"], *([cell["other"]] if cell["other_flows"] else [])]
    return Facts(
        qdisc=cell["qdisc"], buffer_bdp=cell["buffer_bdp"], rate_mbps=cell["rate_mbps"],
        rtts_ms=(cell["rtt_ms"],), loss=cell["loss"], jitter_ms=cell["jitter_ms"],
        flows=cell["own_flows"] + cell["other_flows"],
        algorithms=frozenset(cc_sets()[name].algorithm for name in names),
    )  # fmt: skip


def queue_of(cell: Mapping[str, Any], draw: Draw = USUAL) -> str:
    """The region of a cell."""
    facts = facts_of(cell)
    return next(queue for queue in draw.queues if not limits_of(queue, draw).lacks(facts))


#: Further rows of the page, by one property each, so that a cell is in several.
ROWS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
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
    "4 flows and more": lambda c: c["own_flows"] + c["other_flows"] >= 4,
}


def _has_bbr(cell: Mapping[str, Any]) -> bool:
    others = [cell["other"]] if cell["other_flows"] else []
    return any(name.startswith("bbr") for name in [cell["own"], *others])


def page(options: argparse.Namespace) -> None:
    """Prints the page's tables, and writes the map."""
    draw = DRAWS[options.draw]
    found = differences(options.folder, options.runs)
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
        f"({1 - len(large) / len(all_cells):.1%} do not differ significantly).\n"
    )
    _score(found, apart)
    _rows(found, apart, draw)
    _farthest(found, apart)
    regions = {one.name: one for one in the_map().regions}
    regions |= {queue: region_of(queue, found, apart, draw) for queue in draw.queues}
    # A scenario belongs to the first that holds it: those of the usual draw, then of the other.
    names = dict.fromkeys(name for one in DRAWS.values() for name in one.queues) | regions
    made = Map(
        kernel=the_map().kernel, regions=tuple(regions[name] for name in names if name in regions)
    )
    MAP.write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")


def region_of(
    queue: str, found: Sequence[Difference], apart: Mapping[int, bool], draw: Draw = USUAL
) -> Region:
    """A region of the map."""
    ones = [one for one in found if queue_of(one.cell, draw) == queue]
    differences = {}
    for metric, name in NAMES.items():
        sizes = [abs(one.mean) for one in ones if one.metric == metric]
        mean, bound = (round(float(f), 4) for f in (np.mean(sizes), np.quantile(sizes, 0.9)))
        differences[name] = MeanDifference(mean=mean, nine_in_ten=bound)
    return Region(
        name=queue, source=SOURCE, limits=limits_of(queue, draw), differences=differences,
        cells=len({json.dumps(one.cell) for one in ones}),
        told_apart=len({json.dumps(one.cell) for one in ones if apart[id(one)]}),
    )  # fmt: skip


def _score(found: Sequence[Difference], apart: Mapping[int, bool]) -> None:
    print("| metric | cells | mean difference | 9 in 10 below | could have been seen | differ |")
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


def _rows(found: Sequence[Difference], apart: Mapping[int, bool], draw: Draw) -> None:
    print(f"| region | cells | {' | '.join(TITLES[m] for m in METRICS)} | differ |")
    print(f"|---|---:|{'---:|' * (len(METRICS) + 1)}")
    parts = {"all": found}
    parts |= {q: [one for one in found if queue_of(one.cell, draw) == q] for q in draw.queues}
    parts |= {name: [one for one in found if is_in(one.cell)] for name, is_in in ROWS.items()}
    for name, ones in parts.items():
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
    """The cells that differ, the most telling first."""
    ones = [one for one in found if apart[id(one)]]
    ones.sort(key=lambda one: -abs(one.mean) / TARGETS[one.metric])
    print("| cell | metric | simulator less kernel | 95 % |")
    print("|---|---|---:|---:|")
    for one in ones[:30]:
        print(
            f"| {words_of(one.cell)} | {TITLES[one.metric]} | {one.mean:+.4f} | "
            f"± {one.half_width:.4f} |"
        )


def words_of(cell: Mapping[str, Any]) -> str:
    """A cell in a line."""
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


def counts_of_runs(text: str) -> tuple[int, int]:
    """How many of the simulator and of the kernel: "10,5"."""
    sim, kernel = (int(count) for count in text.split(","))
    return sim, kernel


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
    for verb in verbs.choices.values():
        verb.add_argument("--draw", choices=DRAWS, default="usual")
        verb.add_argument(
            "--runs",
            type=counts_of_runs,
            default=(8, 4),
            help="of simulator and kernel, of each cell",
        )
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
