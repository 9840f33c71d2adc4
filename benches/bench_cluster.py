"""What Ray costs beside the pool: one sweep on two nodes of one core each (two raylets of this
machine, which share nothing but its disk) and on the pool with as many processes, in turns.

Runs take somewhat more than a CPU second each, so that each is a task. A cluster runs already, as
one does. Judged is the speed: groups of runs a second, from the first result to the last. The whole
command, which joins the cluster and sends it the program, is printed beside it: what it adds is
once for a sweep, however long. Of both the least of the rounds counts, as other work on the machine
only adds. CPU times are not compared: Ray's workers are no processes of this one's. The tables must
be the same.

Needs Ray: `make test-cluster` makes an environment that has it, build/cluster. Exit status 1:
slower than the target, 15 % below the pool's speed, or other tables.
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
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from fullpipe.sweep.store import Store

PROGRAM = [sys.executable, "-c", "from fullpipe.cli import main; main()"]
MOST = 0.15
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h


def document(runs: int) -> dict[str, object]:
    """A sweep of so many runs of somewhat more than a CPU second."""
    return {
        "scenario": {
            "duration": "480s", "path": {"rate": "100mbit", "rtt": "20ms", "buffer": "1bdp"},
            "flow": [{"cc": "{cc}"}, {"cc": "cubic"}],
        },
        "axis": {"cc": ["bbr3", "cubic"]}, "sweep": {"seeds": runs // 2},
    }  # fmt: skip


@dataclass
class Took:
    """How long a sweep took, from its first result to its last, and with all its processes."""

    whole_s: float
    results_s: float


def swept(file: Path, store: Path, *words: str) -> Took:
    """Runs the sweep."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [*PROGRAM, "sweep", str(file), "--jobs", "2", "--out", str(store), *words],
        stderr=subprocess.DEVNULL,
    )
    came: list[float] = []
    while process.poll() is None:
        time.sleep(0.02)
        # Without the settled part, which is made of the others.
        parts = list((store / "parts").iterdir()) if (store / "parts").is_dir() else []
        some = sum(not (part / "replaces.json").exists() for part in parts)
        came += [time.monotonic()] * (some - len(came))
    if process.returncode:
        raise SystemExit("the sweep failed")
    return Took(time.monotonic() - begin, came[-1] - came[0])


def await_end(before: set[int]) -> None:
    """Waits for what a command left behind, the pool's fork server, which this process adopts."""
    while left := _children() - before:
        for pid in left:
            os.waitpid(pid, 0)


def _children() -> set[int]:
    """Of this process, adopted ones included."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(place.name))
    return found


def main() -> int:
    """Prints a line a round, and what is to be had."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="300")
    from ray.cluster_utils import Cluster

    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    took: dict[str, list[Took]] = {"pool": [], "ray": []}
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
                    daemons = _children()
                    one = swept(file, folder / f"{kind}-{index}", *words)
                    await_end(daemons)
                    took[kind].append(one)
                    print(
                        f"{kind:5} {one.whole_s:6.1f} s, {one.results_s:6.1f} s from the first "
                        f"result to the last", flush=True,
                    )  # fmt: skip
        finally:
            cluster.shutdown()
        first = _tables(folder / "pool-0")
        same = all(_tables(folder / f"ray-{index}") == first for index in range(given.rounds))
    more = {
        name: min(getattr(one, name) for one in took["ray"])
        / min(getattr(one, name) for one in took["pool"])
        - 1
        for name in ("results_s", "whole_s")
    }
    ok = same and more["results_s"] <= MOST
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{'the same' if same else 'OTHER'} tables; whole command "
        f"{more['whole_s'] * 100:+.1f} %; from the first result to the last "
        f"{more['results_s'] * 100:+.1f} % (at most {MOST * 100:.0f}){'' if ok else '  MISSED'}"
    )
    return 0 if ok else 1


def _tables(store: Path) -> dict[str, bytes]:
    (part,) = Store(store).parts()
    return {file.name: file.read_bytes() for file in sorted(part.glob("*.parquet"))}


if __name__ == "__main__":
    sys.exit(main())
