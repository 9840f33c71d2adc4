"""The kernel module: what `fullpipe kernel module` writes builds with a distribution's headers,
warnings as errors, and does in the virtual machine what the native build of its algorithms does."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion import module
from fullpipe.congestion.registry import cc_set, cc_sets
from fullpipe.engines.vm import VmEngine, hardware, headers, kernels
from fullpipe.kernel import registration, replay
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: One of each kind: cong_control with a ring, cong_avoid with RTT samples, an echo of marks.
CCS = ("bbr3", "cubic", "dctcp")


#: Of a record (crates/fullpipe-cc/src/replay.rs) and of the call in it (bpf/glue.h).
RECORD_CALL, CALL_KIND, CALL_EVENT, EVENT, LOST = 2, 16, 2, -96, 11
#: Of 20 kB of BDP and four of buffer, in packets of 1448 bytes, with as much again for a window of
#: twice the BDP.
MOST_IN_FLIGHT = 2 * 5 * 20_000 // 1448


def lost_flights(trace: Path) -> list[int]:
    """What was in flight when each packet was sent that CC_EVENT_LOST tells of."""
    content, at = trace.read_bytes(), 8
    found: list[int] = []
    while at < len(content):
        record, size = struct.unpack_from("<II", content, at)
        call = content[at + 8 : at + 8 + size]
        at += 8 + size
        if record == RECORD_CALL and call[CALL_KIND] == CALL_EVENT:
            kind, value = struct.unpack_from("<II", call, len(call) + EVENT)
            found += [value] if kind == LOST else []
    return found


def tree(version: str) -> Path:
    """The headers of a downloaded kernel; without them the test is skipped."""
    if not shutil.which("gcc") or not shutil.which("make"):
        pytest.skip("kbuild needs gcc and make")
    kernel = kernels.cached(version)
    if kernel is None:
        pytest.skip(f"Debian's kernel {version} could not be downloaded")
    try:
        return headers.tree(kernel)
    except RunError as error:
        pytest.skip(f"headers of {kernel.release} could not be downloaded: {error}")


def test_a_package_has_every_set_as_parameters_and_what_dkms_needs(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    module.write_package([cc_set("bbr3"), cc_set("bbr3-linux"), cc_set("cubic")], folder, True)
    assert 'PACKAGE_NAME="fullpipe-cc"' in (folder / "dkms.conf").read_text()
    text = (folder / "algorithm_bbr3.c").read_text()
    for name in ("bbr3", "bbr3-linux"):
        values = ", ".join(f"{value}u" for value in cc_set(name).values)
        assert f"#define FP_VALUES {values}\n" in text
    assert (folder / "cc" / "LICENSE-GPL-2.0").is_file()
    with pytest.raises(UserError, match="exists already"):
        module.write_package([cc_set("cubic")], folder)


def test_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two are named alike"):
        module.write_package([cc_set("cubic"), cc_set("cubic")], tmp_path / "package")


@pytest.mark.slow
@pytest.mark.parametrize("version", ("6.1", "6.12"))
def test_all_sets_build_with_the_distributions_headers(version: str) -> None:
    built = module.build(list(cc_sets().values()), tree(version)).read_bytes()
    for item in cc_sets().values():
        assert f"alias=tcp_{item.kernel_name}\0".encode() in built
        for param in item.params:
            assert f"parm={module._word(item)}_{param.name}:".encode() in built


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
def test_calls_of_the_module_replay_in_the_native_build(tmp_path: Path) -> None:
    tree("6.12")
    document = {
        "name": "module",
        "duration": "3s",
        "seed": 7,
        "path": {"rate": "40mbit", "rtt": "4ms", "buffer": "4bdp", "ecn": True, "loss": "0.3%"},
        "flow": [{"cc": cc} for cc in CCS],
    }
    out = tmp_path / "trace"
    options = {"kernel": "6.12", "cc_form": "module", "cc_trace": str(out), "from_snapshot": False}
    run = VmEngine().run(resolve(make_scenario(document)), lambda _done: True, options)
    assert run.failure is None
    # The states come through the module's device.
    assert set(run.tables["cc_samples"]["flow_id"].to_pylist()) == {0, 1, 2}
    found = replay(out)
    assert not found.is_cut_off
    assert sorted(one.algorithm for one in found.algorithms) == sorted(CCS)
    # Of each packet that was lost BBRv3 learns the flight that it was sent into.
    flights = lost_flights(out)
    assert flights and 0 < min(flights) <= max(flights) <= MOST_IN_FLIGHT
    for one in found.algorithms:
        assert (one.difference, one.lost, one.skipped) == (None, 0, 0), one
        assert one.calls > 300, one


def test_a_kernel_without_modules_is_refused_with_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "_LIST_OF_MODULES", tmp_path / "modules")
    with pytest.raises(UserError, match=r"takes no modules \(needs CONFIG_MODULES=y\)"):
        registration.request("cubic", form="module").document()


def test_a_module_for_this_host_asks_for_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "_LIST_OF_MODULES", tmp_path)
    if Path("/lib/modules", os.uname().release, "build").is_dir():
        pytest.skip("this host has its kernel's headers")
    with pytest.raises(UserError, match=r"headers of this kernel are not here .*apt-get install"):
        registration.request("cubic", form="module").document()


def test_a_module_that_registers_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [registration.Loaded("fp_cubic", "cubic", (), 0, 1, True, True)]
    monkeypatch.setattr(registration, "_MODULES", tmp_path)
    monkeypatch.setattr(registration, "list_loaded", lambda: sets)
    assert registration.left_module() is None
    (tmp_path / "fullpipe_cc").mkdir()
    assert registration.left_module() is None
    sets.clear()
    assert registration.left_module() == "fullpipe_cc"
