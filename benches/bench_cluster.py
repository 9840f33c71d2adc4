"""What Ray costs beside the pool: the same runs on two nodes of one core each (two raylets of this
machine, which share nothing but its disk) and on the pool with as many processes.

Runs take somewhat more than a CPU second each. Both executors of a sweep
(`fullpipe.sweep.pool`, `fullpipe.sweep.cluster`) do some of them alternately, within one process:
other work on the machine and its clock change from one minute to the next by more than is judged
here, and meet both alike. Each round is one turn of each, which begins first changes; judged is the
median over rounds of Ray's time over the pool's. Workers have started before: what joining a
cluster takes, once for a sweep however long, is printed. Ray's workers have the priority that the
pool's have; by themselves they would be nice (15) to whatever else the machine does. The tables
must be the same.

Needs Ray: `make test-cluster` makes an environment that has it, build/cluster. Exit status 1:
slower than the target, 15 % below the pool's speed, or other tables.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import tomli_w

from fullpipe.sweep.cells import cells_of, plan_runs
from fullpipe.sweep.file import load_sweep
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.schedule import Executor, Item, grouped
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells

MOST = 0.15
CORES = 2


def document(seconds: int, seeds: int) -> dict[str, object]:
    """A sweep of two runs a seed; 400 simulated seconds are somewhat more than a CPU second."""
    return {
        "scenario": {
            "duration": f"{seconds}s", "path": {"rate": "100mbit", "rtt": "20ms", "buffer": "1bdp"},
            "flow": [{"cc": "{cc}"}, {"cc": "cubic"}],
        },
        "axis": {"cc": ["bbr3", "cubic"]}, "sweep": {"seeds": seeds},
    }  # fmt: skip


class Work:
    """Runs of a sweep, planned once; each turn has a store of its own."""

    def __init__(self, folder: Path, name: str, seconds: int, seeds: int) -> None:
        self.folder, self.name = folder, name
        file = folder / f"{name}.toml"
        file.write_text(tomli_w.dumps(document(seconds, seeds)))
        sweep = load_sweep(file)
        self.runs = [planned.run for planned in plan_runs(sweep, cells_of(sweep), seeds)]

    def turn(self, executor: Executor, turn: str) -> float:
        """Does all runs into a new store, grouped as in a sweep; gives how long it took (s)."""
        place = self.folder / f"{self.name}-{turn}"
        cells = Cells(Store(place, create=True).folder, "sim", {}, False)
        items = [Item(run, 1.0) for run in self.runs]
        groups = grouped(items, executor.width, executor.group_s)
        begin = time.monotonic()
        for _, outcome in executor.run(cells, iter(groups)):
            if outcome:
                raise SystemExit(f"a run failed: {outcome}")
        return time.monotonic() - begin

    def tables(self, turn: str) -> dict[str, bytes]:
        """The compacted rows of a turn."""
        store = Store(self.folder / f"{self.name}-{turn}")
        store.compact()
        (part,) = store.parts()
        return {file.name: file.read_bytes() for file in sorted(part.glob("*.parquet"))}


def main(words: Sequence[str] | None = None) -> int:
    """Prints one line for each round, and the verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=12, help="of a turn, an even number")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(words)
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="300")
    os.environ.update(RAY_worker_niceness="0")
    with tempfile.TemporaryDirectory(prefix="fullpipe-bench-") as name:
        folder = Path(name)
        warm, work = Work(folder, "warm", 1, 2), Work(folder, "runs", 400, given.runs // 2)
        pool = Pool(CORES)
        # Before Ray is loaded, whose threads no fork would have.
        print(f"pool: ready after {warm.turn(pool, 'pool'):.1f} s", flush=True)
        from ray.cluster_utils import Cluster as Nodes

        from fullpipe.sweep.cluster import Cluster

        nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
        try:
            nodes.add_node(num_cpus=1)
            nodes.wait_for_nodes()
            begin = time.monotonic()
            ray = Cluster(nodes.address, None, "sim")
            warm.turn(ray, "ray")
            print(f"ray: joined, and ready after {time.monotonic() - begin:.1f} s", flush=True)
            more = [_round(work, pool, ray, index) for index in range(given.rounds)]
            ray.close()
        finally:
            nodes.shutdown()
            pool.close()
        first = work.tables("pool-0")
        turns = [f"{kind}-{index}" for kind in ("pool", "ray") for index in range(given.rounds)]
        same = all(work.tables(turn) == first for turn in turns)
    middle = statistics.median(more)
    ok = same and middle <= MOST
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{'the same' if same else 'OTHER'} tables; Ray's time over the pool's: median "
        f"{middle * 100:+.1f} %, {min(more) * 100:+.0f} to {max(more) * 100:+.0f} in "
        f"{given.rounds} rounds (at most {MOST * 100:.0f}){'' if ok else '  MISSED'}"
    )
    return 0 if ok else 1


def _round(work: Work, pool: Executor, ray: Executor, index: int) -> float:
    """A turn of each; Ray's time over the pool's, less 1."""
    kinds = [("pool", pool), ("ray", ray)]
    took = {
        name: work.turn(executor, f"{name}-{index}")
        for name, executor in (kinds if index % 2 == 0 else reversed(kinds))
    }
    more = took["ray"] / took["pool"] - 1
    print(f"pool {took['pool']:5.1f} s, ray {took['ray']:5.1f} s: {more * 100:+.0f} %", flush=True)
    return more


if __name__ == "__main__":
    sys.exit(main())
