"""The virtual machine: the same plan gives the same bytes, what it measures obeys the path, and
whatever ends it leaves words, a recording and no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe._native import stream
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import UserError
from fullpipe.congestion import registry
from fullpipe.engines.base import Engine, RunResult
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.unfinished import with_totals
from fullpipe.engines.vm import (
    VmEngine,
    hardware,
    image,
    kernels,
    machine,
    memory_needed_mib,
    snapshot,
    vmlinux,
)
from fullpipe.engines.vm.shared import Job, stream_offset
from fullpipe.metrics import summarise
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario
from helpers import await_ends

pytestmark = pytest.mark.vm


def plan_of(*flows: Mapping[str, Any], seconds: int = 8, **path: Any) -> dict[str, Any]:
    """A path of 20 Mbit/s, 20 ms, 2 BDP, unless told otherwise."""
    return resolve(
        make_scenario(
            {
                "name": "vm",
                "duration": f"{seconds}s",
                "seed": 3,
                "path": {"rate": "20mbit", "rtt": "20ms", "buffer": "2bdp", **path},
                "flow": [dict(flow) for flow in flows],
                "probe": [{"kind": "ping", "interval": "200ms"}],
            }
        )
    )


def run(plan: dict[str, Any], **options: Any) -> RunResult:
    """Runs to the end."""
    return VmEngine().run(plan, lambda _done: True, options)


def test_runs_of_one_plan_are_equal_in_every_table_and_every_fact() -> None:
    plan = plan_of({"cc": "bbr3"}, {"cc": "cubic", "start": "1s"}, loss="0.1%", seconds=5)
    booted = run(plan, from_snapshot=False)
    assert booted.failure is None
    # A host with other work interrupts QEMU's threads anywhere: five runs, beside one another.
    with ThreadPoolExecutor(3) as pool:
        again = list(pool.map(lambda _: run(plan), range(5)))
    for other in again:
        assert_equal(booted, other)


def assert_equal(one: RunResult, other: RunResult) -> None:
    """In every table and every fact."""
    assert one.metadata == other.metadata
    assert one.health == other.health
    for name, table in one.tables.items():
        assert table.equals(other.tables[name]), name


def test_machines_are_kept_once_whoever_makes_them_and_made_again_where_they_are_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("kernels", "vmlinux", "initramfs"):
        (tmp_path / "fullpipe").mkdir(exist_ok=True)
        (user_cache() / needed).mkdir(parents=True, exist_ok=True)
        (tmp_path / "fullpipe" / needed).symlink_to(user_cache() / needed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = plan_of({"cc": "kernel:cubic"}, seconds=1)
    monkeypatch.setattr(registry, "cc_sets", dict)  # a machine that loads none of ours boots sooner
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: run(plan), range(2))
    assert_equal(first, second)
    (kept,) = (path for path in (tmp_path / "fullpipe/snapshots").iterdir() if path.is_dir())
    assert {path.name for path in kept.iterdir()} == {"ram", "state", "seal.json"}
    made = (kept / "ram").stat().st_ino
    assert_equal(run(plan), first)
    assert (kept / "ram").stat().st_ino == made
    for name, damage in (("ram", b"x" * 4096), ("state", b"x" * 4096)):
        with (kept / name).open("r+b") as file:
            file.seek(2**13)
            file.write(damage)
        assert_equal(run(plan), first)
    # What looks whole and is not: QEMU itself refuses it, and the run boots.
    (kept / "state").write_bytes(b"no state of a machine")
    snapshot.seal(kept)
    assert_equal(run(plan), first)
    assert not kept.exists()


#: One after the other, each alone: every so many seconds one begins, and sends for so long.
ALONE, BEGIN_S, LASTS_S = ("reno", "cubic", "bbr1", "bbr3", "kernel:bbr"), 10, 8
ALONE_BPS = 10e6


@pytest.fixture(scope="module", params=list(kernels.VERSIONS))
def alone(request: pytest.FixtureRequest) -> RunResult:
    """A run of all in one machine of that kernel."""
    version: str = request.param
    if version != kernels.DEFAULT and kernels.cached(version) is None:
        pytest.skip(f"Debian's kernel {version} could not be downloaded")
    flows = [
        {"cc": cc, "start": f"{index * BEGIN_S}s", "stop": f"{index * BEGIN_S + LASTS_S}s"}
        for index, cc in enumerate(ALONE)
    ]
    plan = plan_of(*flows, seconds=len(ALONE) * BEGIN_S, rate=f"{ALONE_BPS:.0f}bit")
    result = run(plan, kernel=version)
    assert result.failure is None
    assert result.health["problems"] == []
    assert str(result.metadata["kernel"]).startswith(f"{version}.")
    # Some 20,000 instructions a packet (docs/background/vm.md), 825 packets a second, and the
    # agent's looks.
    assert 0.01 < result.health["cpu_busy_mean"] < 0.05
    return result


@pytest.mark.parametrize("cc", ALONE)
def test_one_flow_fills_the_pipe_and_no_more_on_every_kernel(cc: str, alone: RunResult) -> None:
    flow = ALONE.index(cc)
    begin_us = flow * BEGIN_S * 10**6
    end_us = begin_us + LASTS_S * 10**6

    def meanwhile(table: str, **only: int) -> list[dict[str, Any]]:
        rows = alone.tables[table].to_pylist()
        rows = [row for row in rows if begin_us <= row["t_us"] <= end_us]
        return [row for row in rows if all(row[name] == value for name, value in only.items())]

    late = [
        (row["t_us"], row["bytes_delivered"])
        for row in meanwhile("flow_samples", flow_id=flow)
        if row["t_us"] >= begin_us + 2_000_000
    ]
    (first_us, first), (last_us, last) = late[0], late[-1]
    assert last_us - first_us > 5_000_000
    rate = (last - first) * 8 / ((last_us - first_us) / 1e6)
    # Payload is 1448 of a packet's 1514 bytes on the wire.
    assert 0.9 * ALONE_BPS * 1448 / 1514 < rate <= 1.005 * ALONE_BPS * 1448 / 1514
    queue_bytes = [row["queue_bytes"] for row in meanwhile("queue_samples")]
    assert 0 < max(queue_bytes) <= 2 * ALONE_BPS * 0.02 / 8
    rtts = [row["rtt_us"] for row in meanwhile("ping_samples")]
    pings = [rtt for rtt in rtts if rtt is not None]
    assert len(pings) > 30
    assert 20_000 <= min(pings) < 24_000
    assert max(pings) < 66_000  # base RTT, a full queue, the packets in service


@pytest.mark.parametrize("engine", [SimEngine(), VmEngine()])
def test_a_repaired_hole_is_no_burst_of_goodput(engine: Engine) -> None:
    plan = plan_of({"cc": "kernel:cubic" if engine.name == "vm" else "cubic"}, loss="0.2%")
    result = engine.run(plan, lambda _done: True, {})
    samples = result.tables["flow_samples"].to_pydict()
    assert max(samples["packets_lost"]) > 10
    grown = np.diff(samples["bytes_delivered"]) * 8 / (np.diff(samples["t_us"]) / 1e6)
    # Of what lies behind a hole the kernel tells when acknowledgements are back, 20 ms later, so as
    # much comes at once in a sample of 100 ms; a hole's whole age would be a round trip and the
    # queue, up to 60 ms.
    assert max(grown) < 1.22 * 20e6 * 1448 / 1514


def test_the_guest_has_memory_for_all_that_a_path_can_hold() -> None:
    slow = memory_needed_mib(plan_of({"cc": "bbr3"}))
    fast = memory_needed_mib(plan_of({"cc": "bbr3"}, rate="1gbit", rtt="100ms", buffer="1bdp"))
    # 12.5 MB each on the way there and in both queues; acknowledgements come back on a free way.
    assert fast - slow == pytest.approx(4 * 37.5e6 / 2**20, abs=2)
    endless = plan_of({"cc": "bbr3"}, rate="10gbit", rtt="1s", buffer="10bdp")
    assert memory_needed_mib(endless) < 1024


@pytest.mark.smoke
def test_an_algorithm_tells_its_phases_and_its_bandwidth_from_inside_the_kernel() -> None:
    result = run(plan_of({"cc": "bbr3"}))
    rows = result.tables["cc_samples"].to_pydict()
    assert {"startup", "cruise", "up"} <= set(rows["phase"])
    settled = [bw for t, bw in zip(rows["t_us"], rows["bw_bps"], strict=True) if t > 4_000_000]
    assert all(15e6 < bw < 22e6 for bw in settled)


def test_a_machine_without_memory_dies_with_words() -> None:
    kernel = kernels.find(None, None)
    initramfs = image.build(kernel, image.module_files(kernel), user_cache() / "initramfs")
    unpacked = vmlinux.unpacked(kernel.image, user_cache() / "vmlinux")
    small = hardware.Hardware(unpacked, initramfs, 72, 2**26)
    ended = machine.run(small, Job({}, (), {}), lambda _done: True, False)
    assert "Kernel panic" in ended.console[0]
    assert not ended.stream


def test_a_run_that_is_told_to_stop_keeps_what_it_recorded() -> None:
    result = VmEngine().run(
        plan_of({"cc": "kernel:cubic"}, seconds=600), lambda done_ns: done_ns < 2_000_000_000, {}
    )
    assert result.interrupted
    assert result.tables["flow_samples"].num_rows >= 10
    assert result.tables["flows"]["bytes_delivered"][0].as_py() > 1_000_000


def test_totals_of_a_run_without_an_end_are_those_that_its_end_would_have_told() -> None:
    plan = plan_of({"cc": "kernel:cubic"}, {"cc": "bbr3", "amount": "1MB"})
    tables = run(plan).tables
    rebuilt = with_totals({**tables, "flows": tables["flows"].slice(0, 0)}, plan)["flows"]
    (endless, done), (found_endless, found_done) = tables["flows"].to_pylist(), rebuilt.to_pylist()
    # The guest counts these two, and tells them at its end.
    untold = {"recoveries": None, "undos": None}
    assert found_done == done | untold
    # Between the last sample and the end, a packet or two may still have come.
    for name, value in endless.items():
        if name.startswith("packets") or name.startswith("bytes"):
            missing = value - found_endless[name]
            assert 0 <= missing <= (5 if name.startswith("packets") else 5 * 1448), name
        else:
            assert found_endless[name] == untold.get(name, value), name
    # Where the guest told them, they stay.
    assert with_totals(tables, plan)["flows"].equals(tables["flows"])


def test_ctrl_c_in_the_midst_of_a_machine_keeps_what_it_recorded(tmp_path: Path) -> None:
    scenario, out = tmp_path / "s.toml", tmp_path / "out"
    scenario.write_text(
        # Not so long that it would need another machine than the tests above: one more to boot.
        'name = "long"\nduration = "60min"\nsample_interval = "1s"\n'
        '[path]\nrate = "1mbit"\nrtt = "20ms"\n[[flow]]\ncc = "kernel:cubic"\n'
    )
    arguments = ["run", str(scenario), "--engine", "vm", "--out", str(out)]
    child = subprocess.Popen(
        [sys.executable, "-c", "from fullpipe.cli import main; main()", *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    # A kept machine goes on from its first second: two samples say that the flow is there.
    while max(map(simulated_ns, tmp_path.glob("fullpipe-vm-*/shared")), default=0) < 2 * 10**9:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.2)
    child.send_signal(signal.SIGINT)
    _, messages = child.communicate()
    assert child.returncode == 130, messages
    assert f"what was recorded is readable in {out}" in messages
    recording = Recording.open(out)
    assert recording.metadata["interrupted"] is True
    assert summarise(recording)["flows"][0]["cc"] == "kernel:cubic"
    assert not list(tmp_path.glob("fullpipe-vm-*"))


def simulated_ns(shared: Path) -> int:
    """How far the guest is, from the memory it shares."""
    with shared.open("rb") as file:
        data = file.read(2**22)
    done_ns, _ = stream.follow(data[stream_offset(data) :], 0)
    return done_ns or 0


def test_no_machine_outlives_its_parent_even_by_sigkill() -> None:
    code = (
        "from test_vm import plan_of, VmEngine\n"
        "VmEngine().run(plan_of({'cc': 'kernel:cubic'}, seconds=3600), "
        "lambda done: print('on', flush=True) or True, {})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    parent.stdout.readline()
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    watched = [os.pidfd_open(int(pid)) for pid in children]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert watched
    await_ends(watched)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "5.10"}, r"must be 6\.12, 6\.1, 7\.3.* the path"),
        ({"kernel": __file__}, "is no x86 kernel image"),
        ({"modules": "lib"}, "--modules: only with --kernel PATH"),
    ],
)
def test_a_kernel_that_is_none_is_refused_by_name(options: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        run(plan_of({"cc": "reno"}), **options)


def test_a_congestion_control_that_the_kernel_lacks_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="no congestion control kernel:bbr9"):
        run(plan_of({"cc": "kernel:bbr9"}))
