"""Runs random scenarios in the simulator and checks what they recorded.

    python tests/swarm/run.py --seed 17                one scenario, and what is wrong with it
    python tests/swarm/run.py --seed 17 --write DIR    its files, for `fullpipe run`
    python tests/swarm/run.py --first 0 --count 300    that many
    python tests/swarm/run.py --seconds 3600           as many as an hour has time for

Prints every seed that fails, what is wrong, and the command that repeats it. Exit status 1 if any.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import problems_of
from fullpipe.base.errors import UserError
from fullpipe.engines.record import record_result
from fullpipe.engines.run import Run
from fullpipe.engines.sim import SimEngine
from fullpipe.metrics.summary import summarise
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.document import find_files
from fullpipe.scenario.model import make_scenario
from generate import Case, generate

#: One in so many scenarios that have no capture is run twice.
_REPEATED = 4


@dataclass
class Result:
    """What became of one seed."""

    seed: int
    refused: str | None = None
    problems: list[str] = field(default_factory=list)


def run_seed(seed: int) -> Result:
    """Runs the scenario of a seed in a folder of its own and checks the recording."""
    folder = Path(tempfile.mkdtemp(prefix="fullpipe-swarm-"))
    try:
        return _run(generate(seed), folder)
    except Exception:
        return Result(seed, problems=[f"crash: {traceback.format_exc(limit=-3).strip()}"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(case: Case, folder: Path) -> Path:
    """Writes a scenario and its files; returns the scenario's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in case.files.items():
        (folder / name).write_text(text)
    path = folder / "scenario.toml"
    path.write_text(tomli_w.dumps(case.document))
    return path


def _run(case: Case, folder: Path) -> Result:
    text = write(case, folder).read_text()
    find_files(case.document, folder)
    try:
        scenario = make_scenario(case.document)
        plan = resolve(scenario)
    except UserError as error:
        refused = str(error)
        lines = refused.count("\n") + 1
        wrong = [f"refusal of {lines} lines: {refused[:300]}"] if lines > 2 else []
        return Result(case.seed, refused, wrong)
    pcap = None if plan.get("pages") or plan.get("traffic") else folder / "run.pcap"
    engine = SimEngine()
    options = {"pcap": str(pcap)} if pcap else {}
    result = engine.run(plan, lambda _done: True, options)
    problems = []
    if pcap or case.seed % _REPEATED == 0:
        # A capture must not change a run, nor must anything else.
        again = engine.run(plan, lambda _done: True, {})
        problems += [
            f"repeat: {name} differs from that of the same run without a capture"
            for name, table in result.tables.items()
            if not table.equals(again.tables[name])
        ]
    recording = record_result(Run(plan, text, scenario.warmup), folder / "recording", result)
    problems += problems_of(folder / "recording", pcap, summarise(recording))
    return Result(case.seed, problems=problems)


def run_many(seeds: Iterator[int], jobs: int) -> Iterator[Result]:
    """Results of seeds as they come, of this many processes at a time. A process that dies is a
    failure of its seed."""
    context = multiprocessing.get_context("spawn")
    while True:
        pending: dict[Future[Result], int] = {}
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            try:
                while True:
                    for seed in itertools.islice(seeds, 4 * jobs - len(pending)):
                        pending[pool.submit(run_seed, seed)] = seed
                    if not pending:
                        return
                    for future in wait(pending, return_when=FIRST_COMPLETED).done:
                        result = future.result()
                        del pending[future]
                        yield result
            except BrokenProcessPool:
                pass
        # Which of them did it is known when each has a process of its own.
        for seed in pending.values():
            with ProcessPoolExecutor(1, mp_context=context) as alone:
                try:
                    yield alone.submit(run_seed, seed).result()
                except BrokenProcessPool:
                    yield Result(seed, problems=["crash: the process died"])


def command(seed: int) -> str:
    """What repeats a seed."""
    return f"python tests/swarm/run.py --seed {seed}"


def report(results: Iterator[Result]) -> int:
    """Prints failures and counts; returns the number of seeds that failed."""
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for result in results:
        counts["refused" if result.refused else "run"] += 1
        if result.problems:
            counts["failed"] += 1
            kinds.update({problem.partition(":")[0] for problem in result.problems})
            for problem in result.problems:
                print(f"seed {result.seed}: {problem}")
            print(f"seed {result.seed}: {command(result.seed)}", flush=True)
    print(", ".join(f"{counts[key]} {key}" for key in ("run", "refused", "failed")))
    for kind, count in kinds.most_common():
        print(f"  {kind}: {count} seeds")
    return counts["failed"]


def _seeds(first: int, count: int | None, seconds: float | None) -> Iterator[int]:
    end = None if seconds is None else time.monotonic() + seconds
    seed = first
    while (count is None or seed < first + count) and (end is None or time.monotonic() < end):
        yield seed
        seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="run this one")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write its files, run nothing")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given: Any = parser.parse_args()
    if given.seed is not None and given.write:
        print(write(generate(given.seed), given.write))
        return 0
    if given.seed is not None:
        return bool(report(iter([run_seed(given.seed)])))
    count = 300 if given.count is None and given.seconds is None else given.count
    seeds = _seeds(given.first, count, given.seconds)
    return bool(report(run_many(seeds, given.jobs)))


if __name__ == "__main__":
    sys.exit(main())
