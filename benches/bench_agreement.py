"""The simulator and the virtual machine as distributions, cell by cell.

The cells are those of `experiments/agreement.toml` (every algorithm alone, two equal flows, one
beside CUBIC), or of `--entry`, such as `benches/agreement_loss.toml` or
`benches/agreement_kernel.toml`. Each is run with several seeds on both engines; starts spread by 5
ms and round trips by one packet's time (each seed has one of its own, the same on both), so that
seeds draw from the contest, and not from one start and one phase (`--exact`: of one phase); the
simulator tells congestion controls what a stock kernel does, has the TCP of the machine's kernel
(Debian's 6.12.117, or that of `--kernel`), and its hosts work as long for a packet and an ACK as
the machine's do (with `--machine uml` they take no time, and algorithms know what Google's kernel
tells them). `--draw` takes so many of the cells, the first of one fixed random order. The
entry's metrics (share, median queueing delay, utilisation and loss) are each tested for equality of
their distributions (energy distance, permutations), the false discovery rate of all tests together
controlled at 0.05. A rejected test counts as a difference where the means are further apart than
what a reader would act on. Exit status 1 where more than 5 % of the tests differ so, or the mean
difference of means misses its target.

Usage, from the checkout:

    bench_agreement.py measure vm|sim FILE [--entry TOML] [--cells AXIS=VALUE,... ...] [--draw N]
        [--seeds 10] [--seconds S] [--exact] [--kernel 7.3] [--machine uml]
    bench_agreement.py compare SIM VM [--csv FILE]

`measure` adds one line of JSON a run to FILE, which is of one build, and leaves out what it has.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from machine import WORK

from fullpipe.engines.runner import run_scenario
from fullpipe.experiments.catalogue import default_folder, load_entry
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.grid import Cell, cells_of
from fullpipe.experiments.measure import measure
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario
from fullpipe.statistics.distributions import Equality, equality, rejected

#: Target of the mean difference of means, over cells; a cell's own difference below it is none.
TARGETS = {
    "share": 0.01, "delay": 0.02, "utilisation": 0.003, "loss": 0.003, "goodput": 0.02,
    "retransmissions": 0.003,
}  # fmt: skip
RATE = 0.05
PERMUTATIONS = 9999
#: Algorithms of the kernel, and the simulator's own.
OURS = {"kernel:reno": "reno", "kernel:cubic": "cubic", "kernel:bbr": "bbr1"}
#: The machine's kernels, and the simulator's TCP that is theirs.
TCP = {"6.12": "6.12.117", "6.1": "6.1", "7.3": "7.3"}
#: Share of a requested duration that is warm-up.
WARMUP = 1 / 3
DRAW_SEED = 13
_AXES = ("cc", "flows", "queue", "rate", "rtt_ms", "loss")


@dataclass(frozen=True)
class Test:
    """One metric of one cell."""

    cell: str
    metric: str
    sim: np.ndarray[Any, np.dtype[np.float64]]
    vm: np.ndarray[Any, np.dtype[np.float64]]
    found: Equality

    @property
    def is_large(self) -> bool:
        """A reader would act on it."""
        return abs(self.found.difference) > TARGETS[self.metric]


def chosen(entry: Entry, wishes: Sequence[str]) -> list[Cell]:
    """The cells that a wish describes, such as `cc=bbr3,queue=1 BDP`; without any, all."""
    asked = [dict(pair.split("=", 1) for pair in wish.split(",")) for wish in wishes] or [{}]
    return [
        cell
        for cell in cells_of(entry.grids(), entry.scenario, "agreement")
        if any(all(str(cell.axes.get(k)) == v for k, v in wish.items()) for wish in asked)
    ]


def run(options: argparse.Namespace) -> None:
    """Adds what is missing to the file."""
    entry = load_entry(options.entry or default_folder() / "agreement.toml")
    metrics = {name: metric.value for name, metric in entry.metric.items()}
    have = {(line["cell"], line["seed"]) for line in lines_of(options.file)}
    jobs = []
    cells = chosen(entry, options.cells)
    if options.draw:
        random.Random(DRAW_SEED).shuffle(cells)
        cells = cells[: options.draw]
    for cell in cells:
        document = {**cell.document, "name": "agreement", "start_spread": "5ms"}
        if not options.exact:
            document["rtt_spread"] = "1pkt"
        if options.engine == "sim":
            # What runs there is a module, which knows as much of each packet as Google's kernel.
            uml = options.machine == "uml"
            host = {"cc_facts": "google"} if uml else {"cc_facts": "stock", **WORK}
            document["host"] = {**host, "tcp": TCP[options.kernel]}
            document["flow"] = [{**flow, "cc": _ours(flow["cc"])} for flow in document["flow"]]
        label = cell.label
        if options.seconds:
            document["duration"] = f"{options.seconds}s"
            document["warmup"] = f"{round(options.seconds * WARMUP)}s"
            label += f", {options.seconds} s"
        for seed in range(1, options.seeds + 1):
            if (label, seed) not in have:
                jobs.append((label, {**document, "seed": seed}))

    is_vm = options.engine == "vm"
    chosen_engine = {"kernel": options.kernel, "machine": options.machine} if is_vm else {}

    def one(job: tuple[str, dict[str, Any]]) -> None:
        label, document = job
        values = values_of(document, options.engine, chosen_engine, metrics)
        add_line(options.file, label, document["seed"], options.engine, values)

    with ThreadPoolExecutor(options.jobs) as pool:
        for number, _ in enumerate(pool.map(one, jobs), 1):
            print(f"\r{number} of {len(jobs)} runs", end="", file=sys.stderr)
    print(file=sys.stderr)


def values_of(
    document: dict[str, Any], engine: str, engine_options: dict[str, str], metrics: dict[str, Any]
) -> dict[str, float]:
    """The metrics of one run of a scenario. Raises SystemExit where the run fails."""
    with recorded(document, engine, engine_options) as recording:
        return measure(metrics, recording)


@contextlib.contextmanager
def recorded(
    document: dict[str, Any], engine: str, engine_options: dict[str, str]
) -> Iterator[Recording]:
    """The recording of one run of a scenario, until the block ends. Raises SystemExit where the run
    fails."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, text = make_scenario(dict(document)), tomli_w.dumps(document)
        out = [Path(folder) / "recording"]
        made = run_scenario(scenario, text, out, engine, engine_options)
        if made.failures:
            raise SystemExit(f"{document['name']}: {'; '.join(made.failures)}")
        yield made.recordings[0]


def missing_seeds(file: Path, cell: str, seeds: int) -> list[int]:
    """The seeds from 1 to `seeds` of which the file has no run of the cell."""
    have = {line["seed"] for line in lines_of(file) if line["cell"] == cell}
    return sorted(set(range(1, seeds + 1)) - have)


def add_line(file: Path, cell: str, seed: int, engine: str, values: dict[str, float]) -> None:
    """Adds a run to a file."""
    line = {"cell": cell, "seed": seed, "engine": engine, **values}
    with file.open("a", encoding="utf-8") as end:
        end.write(json.dumps(line) + "\n")


def _ours(cc: str) -> str:
    return OURS.get(cc, cc)


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The runs of a file that need not be there."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def tests_of(sim: Path, vm: Path) -> list[Test]:
    """Every metric that means something in a cell of which both files have two runs or more."""
    by_cell: list[defaultdict[str, list[dict[str, Any]]]] = []
    for file in (sim, vm):
        cells: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines_of(file):
            cells[line["cell"]].append(line)
        by_cell.append(cells)
    tests = []
    for cell in (name for name in by_cell[1] if all(len(cells[name]) > 1 for cells in by_cell)):
        for metric in (name for name in TARGETS if name in by_cell[1][cell][0]):
            sim_values, vm_values = (
                np.array([line[metric] for line in cells[cell]]) for cells in by_cell
            )
            is_told = np.isfinite(np.concatenate([sim_values, vm_values])).all()
            if is_told and (metric != "share" or "flows one," not in cell):
                found = equality(list(sim_values), list(vm_values), len(cell), PERMUTATIONS)
                tests.append(Test(cell, metric, sim_values, vm_values, found))
    return tests


def compare(options: argparse.Namespace) -> None:
    """Prints every test and the verdict."""
    tests = tests_of(options.sim, options.vm)
    if not tests:
        sys.exit(f"{options.sim}, {options.vm}: no cell has two runs or more in both")
    out = [bool(one) for one in rejected([test.found.p for test in tests], RATE)]
    _lines_of_tests(tests, out)
    if options.csv:
        _write_csv(options.csv, tests, out)
    cells = {test.cell for test in tests}
    apart = {test.cell for test, is_out in zip(tests, out, strict=True) if is_out}
    differ = {t.cell for t, is_out in zip(tests, out, strict=True) if is_out and t.is_large}
    failed = len(differ) > RATE * len(cells)
    print(
        f"\n{sum(out)} of {len(tests)} tests rejected, in {len(apart)} of {len(cells)} cells; "
        f"{len(differ)} cells differ by more than a target ({len(differ) / len(cells):.0%}; "
        f"at most {RATE:.0%})"
    )
    for metric in dict.fromkeys(test.metric for test in tests):
        target = TARGETS[metric]
        means = [abs(test.found.difference) for test in tests if test.metric == metric]
        failed |= bool(np.mean(means) > target)
        print(f"{metric}: means differ by {np.mean(means):.4f} in the mean; target {target}")
    sys.exit(int(failed))


def _lines_of_tests(tests: Sequence[Test], out: Sequence[bool]) -> None:
    print(
        f"{'':14} {'sim, mean ± SD':>15} {'vm':>15} {'p':>8}  at a false discovery rate of {RATE}"
    )
    cell = ""
    for test, is_out in zip(tests, out, strict=True):
        if test.cell != cell:
            cell = test.cell
            print(f"{cell} ({len(test.sim)} and {len(test.vm)} runs)")
        sim, vm = (_mean_sd(x) for x in (test.sim, test.vm))
        print(
            f"  {test.metric:12} {sim:>15} {vm:>15} {test.found.p:8.4f}  {_verdict(test, is_out)}"
        )


def _write_csv(file: Path, tests: Sequence[Test], out: Sequence[bool]) -> None:
    """A line a cell: runs; means, standard deviations and the verdict of each metric."""
    metrics = list(dict.fromkeys(test.metric for test in tests))
    numbers = ("sim", "sim_sd", "vm", "vm_sd", "test")
    cells: dict[str, dict[str, str | int]] = defaultdict(dict)
    for test, is_out in zip(tests, out, strict=True):
        line = cells[test.cell]
        line |= {"cell": _short(test.cell), "runs_sim": len(test.sim), "runs_vm": len(test.vm)}
        for engine, values in (("sim", test.sim), ("vm", test.vm)):
            line[f"{test.metric}_{engine}"] = f"{values.mean():.3f}"
            line[f"{test.metric}_{engine}_sd"] = f"{values.std(ddof=1):.3f}"
        line[f"{test.metric}_test"] = _verdict(test, is_out)
    with file.open("w", encoding="utf-8", newline="") as stream:
        columns = [f"{metric}_{number}" for metric in metrics for number in numbers]
        head = ["cell", "runs_sim", "runs_vm", *columns]
        writer = csv.DictWriter(stream, head, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells.values())


def _short(label: str) -> str:
    """Without the names of the axes."""
    parts = (part.split(" ", 1) for part in label.split(", "))
    return ", ".join(rest if name in _AXES else f"{name} {rest}" for name, rest in parts)


def _mean_sd(values: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def _verdict(test: Test, is_out: bool) -> str:
    return ("equal", "equal", "small", "differs")[2 * is_out + test.is_large]


def main() -> None:
    """Does one of both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("engine", choices=("sim", "vm"))
    verb.add_argument("file", type=Path)
    verb.add_argument(
        "--entry", type=Path, metavar="TOML", help="whose cells; else the catalogue's"
    )
    verb.add_argument("--cells", nargs="*", default=[], metavar="AXIS=VALUE,...")
    verb.add_argument("--draw", type=int, help="so many of them, drawn at random")
    verb.add_argument("--seeds", type=int, default=10)
    verb.add_argument("--seconds", type=int, help="a third of it warm-up; else the catalogue's")
    verb.add_argument(
        "--exact", action="store_true", help="the cells' own round trips to all seeds"
    )
    verb.add_argument("--kernel", choices=TCP, default="6.12", help="the machine's")
    verb.add_argument(
        "--machine", choices=("qemu", "uml"), default="qemu", help="what the simulator's hosts are"
    )
    verb.add_argument("--jobs", type=int, default=1)
    verb.set_defaults(do=run)
    verb = verbs.add_parser("compare")
    verb.add_argument("sim", type=Path)
    verb.add_argument("vm", type=Path)
    verb.add_argument("--csv", type=Path, metavar="FILE", help="writes a line a cell")
    verb.set_defaults(do=compare)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
