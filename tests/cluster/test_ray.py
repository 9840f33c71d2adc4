"""Sweeps on Ray leave the bytes of this machine's pool, also where a worker or a node is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import tomli_w
from ray.cluster_utils import Cluster

from fullpipe.sweep.store import Store
from sweep_files import document, rows


def test_ray_on_this_machine_leaves_the_bytes_of_the_pool(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(document()))
    for name, words in (("ray", ["--on", "ray"]), ("pool", [])):
        command = [sys.executable, "-c", "from fullpipe.cli import main; main()", "sweep",
                   str(file), "--jobs", "2", "--out", str(tmp_path / name), *words]  # fmt: skip
        subprocess.run(command, check=True, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"})
    assert rows(Store(tmp_path / "ray")) == rows(Store(tmp_path / "pool"))


def test_a_worker_killed_and_a_node_gone_lose_nothing(tmp_path: Path) -> None:
    long = document(axis={"rtt": ["10ms", "20ms"], "buffer": [1, 4], "cc": ["bbr3"]})
    long["scenario"]["duration"] = "200s"
    long["scenario"]["path"]["rate"] = "50mbit"
    long["sweep"]["seeds"] = 4
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(long))
    command = [sys.executable, "-c", "from fullpipe.cli import main; main()", "sweep", str(file),
               "--jobs", "2", "--out"]  # fmt: skip
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        process = subprocess.Popen([*command, str(tmp_path / "ray"), "--on", cluster.address])
        _await_parts(tmp_path / "ray", 2, process)
        workers = _descendants("ray::execute")
        os.kill(workers[0], signal.SIGKILL)
        _await_parts(tmp_path / "ray", 5, process)
        cluster.remove_node(second, allow_graceful=False)
        assert process.poll() is None, "it ended before the node did"
        assert process.wait() == 0
    finally:
        cluster.shutdown()
    subprocess.run([*command, str(tmp_path / "pool")], check=True)
    assert rows(Store(tmp_path / "ray")) == rows(Store(tmp_path / "pool"))


def _await_parts(store: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while not (store / "parts").is_dir() or len(list((store / "parts").iterdir())) < count:
        assert process.poll() is None, "the sweep ended early"
        time.sleep(0.05)


def _descendants(title: str) -> list[int]:
    """Processes below this one whose command begins with a title."""
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(place.name)] = int(
                (place / "stat").read_text().rpartition(")")[2].split()[1]
            )
    found = []
    for pid in parents:
        above = parents.get(pid, 0)
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_text()
            if above == os.getpid() and command.startswith(title):
                found.append(pid)
    return found
