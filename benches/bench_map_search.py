"""Searches the cells in which simulator and kernel differ most, and makes them small.

The space is that of bench_map.py: rate, RTT, queue discipline, buffer, random loss, jitter, number
and kind of flows. The objective is the difference of the means of five metrics, each in what a
reader would act on (bench_agreement.py, TARGETS), beyond two standard errors, so that chance alone
is no finding. Random cells come first, then changed ones of the best. What looks far apart runs
again with other seeds: only those decide whether the engines differ (Welch, false discovery rate of
all these tests 0.05). A finding then loses jitter, loss, flows, its discipline and odd numbers, as
long as fresh seeds still tell three fifths of the difference apart.

Usage, from the checkout:

    bench_map_search.py search DIR [--runs 400] [--cpu SECONDS] [--seed 1] [--without bbr2,...]
        [--most-mbps 100]
    bench_map_search.py list DIR

`search` spends at most so many runs of the kernel, or so many CPU seconds, which `--most-mbps`
makes go further: a run costs as its packets do. It writes each run to
DIR as bench_map.py does, and continues where it was stopped. Findings are DIR/finding-N.toml, which
`fullpipe run` takes with either engine, and DIR/findings.json. `list` prints them as a table.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bench_map
import numpy as np
import tomli_w
from bench_agreement import TARGETS, add_line, lines_of, values_of
from bench_map import (
    HOST,
    KERNEL,
    METRICS,
    RATE,
    TITLES,
    Difference,
    compared,
    difference,
    document_of,
    words_of,
)

from fullpipe.statistics.distributions import rejected

Cell = dict[str, Any]

#: Seeds of the simulator for one of the kernel, which takes many times longer.
SIM_PER_KERNEL = 4
#: Runs of the kernel that a cell gets first, to be told apart, and for each simpler variant.
FIRST, AGAIN, SIMPLER = 2, 6, 4
#: Share of the budget for the search; the rest tells apart and simplifies.
SEARCH = 0.5
#: Share of that for cells at random, before those that are changed.
RANDOM = 0.5
#: Cells from which changed ones come, and cells that run again.
BEST, CANDIDATES = 6, 6
#: Part of a difference that a simpler cell must keep.
KEPT = 0.6


class SpentError(Exception):
    """The budget is used up."""


@dataclass
class Lab:
    """Runs cells on both engines, each seed once, within a budget."""

    folder: Path
    most_runs: int
    most_cpu_s: float
    runs: int = 0

    def differences(self, cell: Cell, first_seed: int, kernel_runs: int) -> list[Difference]:
        """Of a cell, over so many seeds of the kernel. Raises SpentError."""
        label = json.dumps(cell)
        vm = self._values(label, cell, "vm", KERNEL, {}, first_seed, kernel_runs)
        sim = self._values(
            label, cell, "sim", {}, {"host": HOST}, first_seed, kernel_runs * SIM_PER_KERNEL
        )
        found = []
        for one in compared(cell, sim, vm):
            welch = difference(*one)
            found.append(replace(welch, error=max(welch.error, _shared_error(*one[2:]))))
        return found

    def _values(
        self, label: str, cell: Cell, engine: str, options: dict[str, str], more: Cell,
        first_seed: int, number: int,
    ) -> list[dict[str, Any]]:  # fmt: skip
        file = self.folder / f"{engine}.jsonl"
        seeds = range(first_seed, first_seed + number)
        have = {line["seed"]: line for line in lines_of(file) if line["cell"] == label}
        for seed in seeds:
            if seed in have:
                continue
            if engine == "vm":
                if self.runs >= self.most_runs or _cpu_s() > self.most_cpu_s:
                    raise SpentError
                self.runs += 1
            document = {**document_of(cell), **more, "seed": seed}
            have[seed] = values_of(document, engine, options, METRICS)
            add_line(file, label, seed, engine, have[seed])
        return [have[seed] for seed in seeds]


def _shared_error(sim: np.ndarray[Any, Any], vm: np.ndarray[Any, Any]) -> float:
    """The standard error of the difference if both spread as the wider one does: two runs of the
    kernel may be close together by chance."""
    variance = max(float(one.var(ddof=1)) for one in (sim, vm))
    return math.sqrt(variance * (1 / len(sim) + 1 / len(vm)))


def _cpu_s() -> float:
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def badness(found: Sequence[Difference]) -> float:
    """How far a cell's worst metric is beyond chance, in what a reader would act on."""
    return max(excess(one) for one in found)


def excess(one: Difference) -> float:
    """The same of one metric: what is left of it without two standard errors."""
    return (abs(one.mean) - 2 * one.error) / TARGETS[one.metric]


def changed(cell: Cell, random: np.random.Generator, space: Space) -> Cell:
    """The cell with one or two properties drawn again, or changed a little."""
    while True:
        other = bench_map.drawn(random)
        names = list(random.choice(GROUPS, size=int(random.integers(1, 3)), replace=False))
        made = dict(cell)
        for name in names:
            if name in MOVED and random.random() < 0.7:
                low, high = MOVED[name]
                made[name] = float(
                    f"{np.clip(cell[name] * np.exp(random.normal(0, 0.3)), low, high):.3g}"
                )
            elif name == "queue":
                made["qdisc"], made["buffer_bdp"] = other["qdisc"], other["buffer_bdp"]
            elif name == "counts":
                made["own_flows"], made["other_flows"] = other["own_flows"], other["other_flows"]
            else:
                made[name] = other[name]
        if made != cell and space.has(made):
            return made


#: What may move a little instead of being drawn again, and what is changed at once.
MOVED = {"rate_mbps": bench_map.RATE_MBPS, "rtt_ms": bench_map.RTT_MS}
GROUPS = ("rate_mbps", "rtt_ms", "queue", "loss", "jitter_ms", "own", "other", "counts")


@dataclass(frozen=True)
class Space:
    """The part of the map's cells that is searched."""

    without: tuple[str, ...]
    most_mbps: float

    def has(self, cell: Cell) -> bool:
        """Whether a cell is in it."""
        names = {cell["own"], *([cell["other"]] if cell["other_flows"] else [])}
        return not names & {*self.without} and cell["rate_mbps"] <= self.most_mbps


def search(options: argparse.Namespace) -> None:
    """Searches, tells apart, simplifies and writes."""
    options.folder.mkdir(parents=True, exist_ok=True)
    space = Space(tuple(options.without.split(",")), options.most_mbps)
    lab = Lab(options.folder, round(SEARCH * options.runs), SEARCH * options.cpu)
    scored = _scored(lab, np.random.default_rng(options.seed), space, options.runs)
    lab.most_runs, lab.most_cpu_s = options.runs, options.cpu
    print(f"searched {len(scored)} cells in {lab.runs} runs of the kernel", file=sys.stderr)
    told = _told_apart(lab, scored)
    findings = [_simplified(lab, one) for one in told]
    _write(options.folder, findings, len(scored), lab.runs)
    show(options)


def _scored(
    lab: Lab, random: np.random.Generator, space: Space, runs: int
) -> list[tuple[float, Cell, list[Difference]]]:
    """The cells that were tried, the farthest apart first."""
    scored: list[tuple[float, Cell, list[Difference]]] = []
    first = RANDOM * SEARCH * runs / FIRST
    try:
        while True:
            if len(scored) < first:
                cell = bench_map.drawn(random)
                if not space.has(cell):
                    continue
            else:
                parents = scored[:BEST]
                cell = changed(parents[int(random.integers(len(parents)))][1], random, space)
            found = lab.differences(cell, 1, FIRST)
            scored.append((badness(found), cell, found))
            scored.sort(key=lambda one: -one[0])
            print(f"\r{len(scored)} cells, {lab.runs} runs", end="", file=sys.stderr)
    except SpentError:
        print(file=sys.stderr)
    return scored


def _candidates(scored: Sequence[tuple[float, Cell, list[Difference]]]) -> Iterator[Cell]:
    """The farthest apart of each kind, so that one cause is not all of them."""
    kinds = set()
    for _, cell, found in scored:
        worst = max(found, key=excess)
        kind = (bench_map.queue_of(cell), worst.metric, worst.mean > 0, cell["own"])
        if kind not in kinds and len(kinds) < CANDIDATES:
            kinds.add(kind)
            yield cell


def _told_apart(
    lab: Lab, scored: Sequence[tuple[float, Cell, list[Difference]]]
) -> list[Difference]:
    """Of the candidates' cells with fresh seeds, the worst metric each, where the engines differ by
    more than chance and than a reader would act on."""
    found: list[Difference] = []
    try:
        for cell in _candidates(scored):
            found += lab.differences(cell, 101, AGAIN)
    except SpentError:
        pass
    out = rejected([one.p for one in found], RATE)
    large = [o for o, is_out in zip(found, out, strict=True) if is_out and _is_large(o)]
    worst: dict[str, Difference] = {}
    for one in sorted(large, key=excess, reverse=True):
        worst.setdefault(json.dumps(one.cell), one)
    return list(worst.values())


def _is_large(one: Difference) -> bool:
    return abs(one.mean) > TARGETS[one.metric]


def _simplified(lab: Lab, found: Difference) -> tuple[Difference, Difference]:
    """A finding, and the simplest cell that still shows it."""
    best = found
    for change in SIMPLER_BY:
        cell = change(dict(best.cell))
        if cell == best.cell or (found.metric == "share" and not cell["other_flows"]):
            continue
        try:
            simpler = lab.differences(cell, 201, SIMPLER)
        except SpentError:
            break
        for one in simpler:
            is_same = one.metric == found.metric and one.mean * found.mean > 0
            if is_same and one.p < RATE and abs(one.mean) >= KEPT * abs(found.mean):
                best = one
    return found, best


def _only(**values: Any) -> Callable[[Cell], Cell]:
    return lambda cell: {**cell, **values}


def _fewer(cell: Cell) -> Cell:
    return {**cell, "own_flows": 1, "other_flows": min(cell["other_flows"], 1)}


def _one_kind(cell: Cell) -> Cell:
    return {**cell, "other": cell["own"]} if cell["other_flows"] else cell


def _fifo(cell: Cell) -> Cell:
    return {**cell, "qdisc": "fifo", "buffer_bdp": 1.0}


def _round(cell: Cell) -> Cell:
    """Rate and RTT of one digit, loss too."""

    def one_digit(value: float) -> float:
        return float(f"{value:.1g}")

    return {**cell, **{name: one_digit(cell[name]) for name in ("rate_mbps", "rtt_ms", "loss")}}


#: What is left out, one after the other.
SIMPLER_BY: tuple[Callable[[Cell], Cell], ...] = (
    _only(jitter_ms=0.0), _only(loss=0.0), _only(other_flows=0), _fewer, _one_kind, _fifo, _round,
)  # fmt: skip


def _write(
    folder: Path, findings: Sequence[tuple[Difference, Difference]], cells: int, runs: int
) -> None:
    rows = []
    for number, (found, simple) in enumerate(findings, 1):
        file = folder / f"finding-{number}.toml"
        comment = (
            f"# Found by bench_map_search.py in: {words_of(found.cell)}.\n"
            f"# {TITLES[simple.metric]}: simulator less kernel {simple.mean:+.4f} ± "
            f"{simple.half_width:.4f} (means, 95 %).\n"
            "# `fullpipe run` it with --engine vm --machine uml too, and several --repeat.\n"
        )
        document = {**document_of(simple.cell), "host": HOST}
        file.write_text(comment + tomli_w.dumps(document), encoding="utf-8")
        rows.append({"found": _row(found), "simple": _row(simple), "scenario": file.name})
    text = json.dumps({"cells": cells, "runs": runs, "findings": rows}, indent=1)
    (folder / "findings.json").write_text(text + "\n", encoding="utf-8")


def _row(one: Difference) -> dict[str, Any]:
    return {
        "cell": dict(one.cell), "metric": one.metric, "difference": one.mean,
        "half_width": one.half_width, "p": one.p,
    }  # fmt: skip


def show(options: argparse.Namespace) -> None:
    """Prints the findings."""
    found = json.loads((options.folder / "findings.json").read_text(encoding="utf-8"))
    print(f"{found['cells']} cells, {found['runs']} runs of the kernel\n")
    print("| found in | made small | metric | simulator less kernel | 95 % |")
    print("|---|---|---|---:|---:|")
    for row in found["findings"]:
        one = row["simple"]
        print(
            f"| {words_of(row['found']['cell'])} | {words_of(one['cell'])} | "
            f"{TITLES[one['metric']]} | {one['difference']:+.4f} | ± {one['half_width']:.4f} |"
        )


def main() -> None:
    """Does one of both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("search")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--runs", type=int, default=400, help="of the kernel")
    verb.add_argument("--cpu", type=float, default=math.inf, help="CPU seconds")
    verb.add_argument("--seed", type=int, default=1)
    verb.add_argument("--without", default="", help="algorithms whose difference is explained")
    verb.add_argument("--most-mbps", type=float, default=bench_map.RATE_MBPS[1])
    verb.set_defaults(do=search)
    verb = verbs.add_parser("list")
    verb.add_argument("folder", type=Path)
    verb.set_defaults(do=show)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
