"""What Ray costs beside the pool: one sweep on two nodes of one core each (two raylets of this
machine, which share nothing but its disk) and on the pool with as many processes, in turns.

Runs take somewhat more than a CPU second each, so that each is a task. A cluster runs already, as
one does; joining it and sending it the program counts. Printed are CPU times of all processes,
Ray's daemons included, and the time that each sweep took; of that the least of the rounds counts,
as other work on the machine only adds. The tables must be the same.

Needs Ray: `make test-cluster` makes an environment that has it, build/cluster. Exit status 1:
slower than the target, 15 % over the pool, or other tables.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tomli_w

from fullpipe.sweep.store import Store

PROGRAM = [sys.executable, "-c", "from fullpipe.cli import main; main()"]
MOST = 0.15
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
_TICKS = os.sysconf("SC_CLK_TCK")


def document(runs: int) -> dict[str, object]:
    """A sweep of so many runs of somewhat more than a CPU second."""
    return {
        "scenario": {
            "duration": "120s", "path": {"rate": "100mbit", "rtt": "20ms", "buffer": "1bdp"},
            "flow": [{"cc": "{cc}"}, {"cc": "cubic"}],
        },
        "axis": {"cc": ["bbr3", "cubic"]}, "sweep": {"seeds": runs // 2},
    }  # fmt: skip


def swept(file: Path, store: Path, *words: str) -> float:
    """Runs the sweep: how long it took."""
    begin = time.monotonic()
    subprocess.run(
        [*PROGRAM, "sweep", str(file), "--jobs", "2", "--out", str(store), *words],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.monotonic() - begin


def cpu_s() -> float:
    """User and system time of this process and of all that it started, ended ones included."""
    return sum(ticks for _, ticks in _processes().values()) / _TICKS


def await_end(before: set[int]) -> None:
    """Waits for what a command left behind, the pool's fork server, which this process adopts."""
    while left := [pid for pid, (parent, _) in _processes().items() if parent == os.getpid()
                   and pid not in before]:  # fmt: skip
        for pid in left:
            os.waitpid(pid, 0)


def _processes() -> dict[int, tuple[int, int]]:
    """This process and all below it: parent, ticks of its own and of its ended children."""
    stats = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(place.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, (parent, _) in stats.items() if parent in mine} - mine:
        mine |= more
    return {pid: stats[pid] for pid in mine}


def main() -> int:
    """Prints a line a round, and what is to be had."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="300")
    from ray.cluster_utils import Cluster

    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    took: dict[str, list[tuple[float, float]]] = {"pool": [], "ray": []}
    with tempfile.TemporaryDirectory(prefix="fullpipe-bench-") as name:
        folder = Path(name)
        file = folder / "sweep.toml"
        file.write_text(tomli_w.dumps(document(given.runs)))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        try:
            cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            for index in range(given.rounds):
                for kind, words in (("pool", []), ("ray", ["--on", cluster.address])):
                    begin, daemons = cpu_s(), set(_processes())
                    seconds = swept(file, folder / f"{kind}-{index}", *words)
                    await_end(daemons)
                    took[kind].append((seconds, cpu_s() - begin))
                    print(f"{kind:5} {seconds:6.1f} s, {took[kind][-1][1]:6.1f} CPU s", flush=True)
        finally:
            cluster.shutdown()
        first = _tables(folder / "pool-0")
        same = all(_tables(folder / f"ray-{index}") == first for index in range(given.rounds))
    slower, more = (
        min(round_[which] for round_ in took["ray"]) / min(round_[which] for round_ in took["pool"])
        - 1
        for which in (0, 1)
    )
    ok = same and slower <= MOST
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{'the same' if same else 'OTHER'} tables; CPU time {more * 100:+.1f} %; "
        f"time {slower * 100:+.1f} % (at most {MOST * 100:.0f}){'' if ok else '  MISSED'}"
    )
    return 0 if ok else 1


def _tables(store: Path) -> dict[str, bytes]:
    (part,) = Store(store).parts()
    return {file.name: file.read_bytes() for file in sorted(part.glob("*.parquet"))}


if __name__ == "__main__":
    sys.exit(main())
