"""User Mode Linux as the machine: what it refuses, and, where a kernel for it was built (a build
takes some 8 CPU minutes), that runs are exact, equal, and those of the other machine."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import forks
from fullpipe.base.errors import UserError
from fullpipe.base.overrides import apply_changes
from fullpipe.base.toml import parse_toml
from fullpipe.engines.base import RunResult
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.vm import VmEngine, hardware, kernels, uml, uml_kernel
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.running import run_sweep
from fullpipe.sweep.store import Store

BUILT = uml_kernel.versions()
needs_kernel = pytest.mark.skipif(
    not BUILT, reason=f"no kernel for User Mode Linux; `{uml_kernel.BUILD}` builds one"
)
SCENARIO = """
name = "uml"
duration = "5s"
path = { rate = "100mbit", rtt = "40ms", buffer = "1bdp" }
flow = [{ cc = "%s" }]
"""
SWEEP = """
[scenario]
name = "uml"
duration = "1s"
path = { rate = "{rate}", rtt = "40ms", buffer = "1bdp" }
flow = [{ cc = "kernel:cubic" }]

[axis]
rate = ["10mbit"]

[sweep]
engine = "vm"
machine = "uml"
keep = "recordings"
"""
#: Payload in a packet of 1500 bytes with timestamps; bytes of the packet that htb counts.
PAYLOAD_BYTES, WIRE_BYTES = 1448, 1514


def plan_of(cc: str = "kernel:cubic", **path: Any) -> dict[str, Any]:
    """100 Mbit/s, 40 ms, 1 BDP, unless told otherwise."""
    return resolve(
        make_scenario(
            {
                "name": "uml",
                "duration": "5s",
                "seed": 3,
                "path": {"rate": "100mbit", "rtt": "40ms", "buffer": "1bdp", **path},
                "flow": [{"cc": cc}],
                "probe": [{"kind": "ping", "interval": "200ms"}],
            }
        )
    )


def run(plan: dict[str, Any], kernel: str, machine: str = "uml") -> RunResult:
    """Runs to the end."""
    options = {"kernel": kernel, "machine": machine}
    return VmEngine().run(plan, lambda _done: True, options)


def fullpipe(folder: Path, cc: str, *options: str) -> tuple[int, str]:
    """Runs the command on the scenario with an empty cache."""
    (folder / "s.toml").write_text(SCENARIO % cc)
    return call(folder, "run", "s.toml", "--engine", "vm", *options)


def call(folder: Path, *words: str) -> tuple[int, str]:
    """Runs a command with an empty cache, on a screen that folds no cell of its tables; its exit
    status, and what it says."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "300"}
    return forks.command(words, folder, environment)


def test_a_kernel_that_is_not_built_is_refused_with_the_command_that_builds_it(
    tmp_path: Path,
) -> None:
    assert fullpipe(tmp_path, "kernel:cubic", "--machine", "uml") == (
        2,
        "fullpipe: the kernel 6.12 for --machine uml is not built; `fullpipe doctor --build uml` "
        "builds it\n",
    )
    _, said = fullpipe(tmp_path, "kernel:cubic", "--machine", "uml", "--kernel", "7.3")
    assert "`fullpipe doctor --build uml --kernel 7.3` builds it" in said


def kept_kernel(cache: Path, version: str, stamp: str | None) -> None:
    """Puts what looks like a kernel of that stamp into the cache."""
    folder = cache / "fullpipe/uml" / version
    folder.mkdir(parents=True)
    (folder / "linux").touch()
    (folder / "release").write_text(f"{version}.1")
    if stamp is not None:
        (folder / "stamp").write_text(stamp)


@pytest.mark.parametrize("stamp", [None, "", "another"])
def test_a_kernel_of_other_options_is_refused_with_the_command_that_builds_it_again(
    tmp_path: Path, stamp: str | None
) -> None:
    kept_kernel(tmp_path / "cache", "6.12", stamp)
    assert fullpipe(tmp_path, "kernel:cubic", "--machine", "uml") == (
        2,
        "fullpipe: the kernel 6.12 for --machine uml is built with other options; "
        "`fullpipe doctor --build uml` builds it again\n",
    )
    said = " ".join(call(tmp_path, "doctor", "--for", "vm")[1].split())
    assert "no vm: User Mode Linux 6.12 is built with other options" in said
    # Where tools that build it are missing, the remedy begins with their installation.
    assert re.search(r"--machine uml (apt-get .*, then )?fullpipe doctor --build uml", said)


def test_a_kernel_is_taken_while_neither_patch_nor_options_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = tmp_path / "options"
    options.write_text("CONFIG_NET=y\n")
    monkeypatch.setattr(uml_kernel, "_OPTIONS", (options,))
    for version in ("6.12", "7.3"):
        kept_kernel(tmp_path, version, uml_kernel.stamp("6.12"))
    assert (uml_kernel.versions(), uml_kernel.outdated()) == (["6.12"], ["7.3"])
    VmEngine().check(plan_of(), {"machine": "uml"})
    with pytest.raises(UserError, match=r"`fullpipe doctor --build uml --kernel 7\.3` builds it"):
        VmEngine().check(plan_of(), {"machine": "uml", "kernel": "7.3"})
    options.write_text("CONFIG_NET=y\nCONFIG_WLAN=y\n")
    assert (uml_kernel.versions(), uml_kernel.outdated()) == ([], ["6.12", "7.3"])


@pytest.mark.vm
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
def test_auto_takes_qemu_and_records_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml_kernel, "stamp", lambda version: f"of another {version}")
    plan = {**plan_of(rate="10mbit"), "duration_ns": 10**9}
    metadata = run(plan, kernels.DEFAULT, "auto").metadata
    assert metadata["machine"] == "qemu"
    assert f"`{uml_kernel.BUILD}`" in metadata["facts"]["not User Mode Linux"]
    assert "not User Mode Linux" not in run(plan, kernels.DEFAULT, "qemu").metadata["facts"]


def test_compare_and_sweeps_are_refused_before_anything_runs(tmp_path: Path) -> None:
    words = ["compare", "kernel:cubic", "--engine", "vm", "--machine", "uml", "--out", "runs"]
    status, said = call(tmp_path, *words)
    assert (status, "is not built" in said) == (2, True)
    (tmp_path / "s.toml").write_text(SWEEP)
    status, said = call(tmp_path, "sweep", "s.toml")
    assert (status, "is not built" in said) == (2, True)
    _, said = call(tmp_path, "compare", "cubic", "--machine", "uml", "--out", "runs")
    assert said == "fullpipe: --machine: belongs to --engine vm\n"
    assert not (tmp_path / "runs").exists()


@pytest.mark.vm
@needs_kernel
def test_compare_and_sweeps_record_the_machine_that_ran(tmp_path: Path) -> None:
    scenario = make_scenario({**parse_toml(SCENARIO % "kernel:reno"), "duration": "1s"})
    options = {"machine": "auto", "kernel": BUILT[0]}
    made = run_scenario(scenario, "", [tmp_path / "one"], "vm", options)
    assert made.recordings[0].metadata["options"] == {"machine": "uml", "kernel": BUILT[0]}
    sweep = read_sweep(apply_changes(parse_toml(SWEEP), [f'sweep.kernel="{BUILT[0]}"']), "s.toml")
    store = Store(tmp_path / "store", create=True)
    outcome = run_sweep(sweep, store, Pool(1))
    assert (outcome.ran, outcome.failures) == (1, [])
    (folder,) = (path.parent for path in (tmp_path / "store").rglob("metadata.json"))
    kept = Recording.open(folder).metadata
    assert (kept["machine"], kept["options"]["machine"]) == ("uml", "uml")


@pytest.mark.parametrize("options", [("--kernel", "bzImage"), ("--modules", ".")])
def test_kernels_of_ones_own_are_refused_by_name(tmp_path: Path, options: tuple[str, str]) -> None:
    status, said = fullpipe(tmp_path, "kernel:cubic", "--machine", "uml", *options)
    assert (status, len(said.splitlines())) == (2, 1)
    assert options[0] in said


def test_algorithms_as_ebpf_are_refused_with_what_runs_instead(tmp_path: Path) -> None:
    status, said = fullpipe(tmp_path, "bbr3", "--machine", "uml", "--cc-form", "ebpf")
    assert (status, len(said.splitlines())) == (2, 1)
    assert "bbr3 would be eBPF" in said and "--machine qemu" in said


def test_work_of_the_processor_is_refused_because_it_takes_no_time() -> None:
    with pytest.raises(UserError, match="takes no time"):
        run_with = {"machine": "uml", "background_processes": "3"}
        VmEngine().run(plan_of(), lambda _done: True, run_with)
    assert uml.refused(plan_of(), {}) == ""


@pytest.mark.vm
@needs_kernel
@pytest.mark.parametrize("kernel", BUILT)
def test_a_flow_gets_the_payload_of_a_full_link(kernel: str) -> None:
    result = run(plan_of(), kernel)
    flow = result.tables["flow_samples"].to_pydict()
    at = {t_us: sent for t_us, sent in zip(flow["t_us"], flow["bytes_delivered"], strict=True)}
    goodput_bps = (at[5_000_000] - at[2_000_000]) * 8 / 3
    assert goodput_bps == pytest.approx(100e6 * PAYLOAD_BYTES / WIRE_BYTES, rel=0.001)
    assert result.metadata["machine"] == "uml"
    assert result.metadata["facts"]["processor"] == "takes no time"
    assert result.health["problems"] == []


@pytest.mark.vm
@needs_kernel
@pytest.mark.parametrize("kernel", BUILT)
def test_runs_beside_one_another_are_equal_in_every_table(kernel: str) -> None:
    plan = plan_of(loss="0.1%", jitter="1ms")
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: run(plan, kernel), range(6)))
    for other in results[1:]:
        assert other.metadata == results[0].metadata
        for name, table in results[0].tables.items():
            assert table.equals(other.tables[name]), name


@pytest.mark.vm
@needs_kernel
@pytest.mark.parametrize("kernel", BUILT)
def test_an_application_faster_than_its_path_waits_for_its_socket_as_any_other_does(
    kernel: str,
) -> None:
    # The buffer, not the link, bounds the goodput, so that waiting for a third of it shows. With a
    # smaller one chance decides: with 180 to 300 KB both applications get 15 to 19 MB across.
    document = {
        "duration": "3s",
        "path": {"rate": "100mbit", "rtt": "40ms", "buffer": "1bdp"},
        "host": {"wmem_max": "400KB"},
    }
    delivered_bytes = []
    for flow in ({}, {"app_rate": "1gbit"}):
        scenario = make_scenario({**document, "flow": [{"cc": "kernel:cubic", **flow}]})
        result = run(resolve(scenario), kernel)
        delivered_bytes.append(result.tables["flows"]["bytes_delivered"][0].as_py())
    endless, paced = delivered_bytes
    assert paced == pytest.approx(endless, rel=0.03)
    assert endless < 0.7 * 3 * 100e6 / 8


@pytest.mark.vm
@needs_kernel
@pytest.mark.parametrize("kernel", BUILT)
def test_a_packet_takes_the_memory_that_it_takes_in_debians_kernels(kernel: str) -> None:
    document = {
        "duration": "3s",
        "path": {"rate": "100mbit", "rtt": "40ms", "buffer": "1bdp"},
        "host": {"rmem_max": "1MB"},
        "flow": [{"cc": "kernel:cubic"}],
    }
    result = run(resolve(make_scenario(document)), kernel)
    largest = max(result.tables["flow_samples"]["receive_window_bytes"].to_pylist())
    # The payload's part of its memory, 2344 bytes in Debian's cloud kernels, in 256ths
    # (tcp_measure_rcv_mss()); windows are less by up to a packet (__tcp_select_window()).
    window_bytes = 2**20 * (PAYLOAD_BYTES * 256 // 2344) / 256
    assert window_bytes - PAYLOAD_BYTES < largest <= window_bytes


@pytest.mark.vm
@needs_kernel
def test_another_seed_gives_other_losses() -> None:
    one, other = (
        run({**plan_of(loss="0.1%"), "seed": seed}, BUILT[0]).tables["flow_samples"]
        for seed in (1, 2)
    )
    assert not one.equals(other)


@pytest.mark.vm
@needs_kernel
def test_auto_takes_it_only_where_the_plan_fits() -> None:
    assert run(plan_of(), BUILT[0], "auto").metadata["machine"] == "uml"
    assert uml.refused(plan_of("bbr3"), {"cc_form": "ebpf"})
