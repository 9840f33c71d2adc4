"""Cells run elsewhere come back as the same bytes; nothing is lost with a worker or a node."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.sweep.cells import cells_of, plan_runs
from fullpipe.sweep.cluster import address_of
from fullpipe.sweep.running import work_of
from fullpipe.sweep.shipping import accept, execute
from fullpipe.sweep.store import Store
from sweep_files import document, filled, rows, sweep


@pytest.mark.parametrize("keep", ["metrics", "recordings"])
def test_a_group_run_elsewhere_is_the_group_run_here(tmp_path: Path, keep: str) -> None:
    found = sweep(sweep={"seeds": 1, "keep": keep})
    here, _ = filled(tmp_path / "here", found)
    there = Store(tmp_path / "there", create=True)
    runs = [planned.run for planned in plan_runs(found, cells_of(found), 1)]
    cells = work_of(found, there.folder)
    for group in (runs[:2], runs[2:]):
        assert accept(cells, execute(cells, group)) == []
    there.settle()
    assert {k: sorted(map(str, v)) for k, v in rows(there).items()} == {
        k: sorted(map(str, v)) for k, v in rows(here).items()
    }
    for run in runs:
        files = sorted(file.name for file in here.recording(run.facts.key).glob("*.parquet"))
        assert bool(files) == (keep == "recordings")
        for name in files:
            own, other = (store.recording(run.facts.key) / name for store in (here, there))
            assert own.read_bytes() == other.read_bytes()


def test_an_address_is_ray_a_host_with_port_or_a_file_that_holds_one(tmp_path: Path) -> None:
    file = tmp_path / "head"
    file.write_text("127.0.0.1:6399\n")
    assert address_of("ray") is None
    assert address_of("ray://10.0.0.1:10001") == "ray://10.0.0.1:10001"
    assert address_of(str(file)) == "127.0.0.1:6399"
    file.write_text("nothing")
    for wrong in ("cluster", "host:", ":6379", str(file)):
        with pytest.raises(UserError, match="--on"):
            address_of(wrong)


def test_the_pool_never_loads_ray(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(document()))
    code = (
        "import sys; from fullpipe import cli\n"
        "sys.argv[1:] = ['sweep', sys.argv[1], '--jobs', '1', '--out', sys.argv[2]]\n"
        "try:\n    cli.main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "assert 'ray' not in sys.modules and 'fullpipe.sweep.cluster' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, str(file), str(tmp_path / "store")]
    subprocess.run(command, check=True)


@pytest.mark.slow
def test_ray_on_this_machine_leaves_the_bytes_of_the_pool(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (pip install 'fullpipe[cluster]')")
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(document()))
    for name, words in (("ray", ["--on", "ray"]), ("pool", [])):
        command = [sys.executable, "-c", "from fullpipe.cli import main; main()", "sweep",
                   str(file), "--jobs", "2", "--out", str(tmp_path / name), *words]  # fmt: skip
        subprocess.run(command, check=True, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"})
    assert rows(Store(tmp_path / "ray")) == rows(Store(tmp_path / "pool"))


@pytest.mark.slow
def test_a_worker_killed_and_a_node_gone_lose_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (make test-cluster)")
    from ray.cluster_utils import Cluster

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
