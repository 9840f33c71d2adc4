"""Files of the Linux kernel in the kernel module: TCP calls them as its own, and every call of a
trace gives in the simulator's build (cc/linux_host.h) what the kernel decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fullpipe.authoring.kernel_import import import_kernel_file
from fullpipe.base.errors import RunError
from fullpipe.congestion import module
from fullpipe.congestion.registry import cc_set
from fullpipe.engines.base import RunResult
from fullpipe.engines.vm import VmEngine, hardware, uml_kernel
from fullpipe.kernel import replay
from fullpipe.kernel.calls import read_calls
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from kernel_files import CONTROL_6_10, RATED, plain, write

KERNEL = "6.12"
HAS_UML = KERNEL in uml_kernel.versions()
needs_uml = pytest.mark.skipif(
    not HAS_UML, reason=f"no kernel for User Mode Linux; `{uml_kernel.BUILD}` builds one"
)
needs_kernel = pytest.mark.skipif(
    not HAS_UML and not hardware.is_there(), reason="QEMU is not installed"
)
#: User Mode Linux is the faster one, and not on every machine.
MACHINE = {"machine": "uml"} if HAS_UML else {"cc_form": "module", "from_snapshot": False}
#: A reduction that is drawn, and another that no loss asks for.
DRAWN = ("return max((u32)((u64)tcp_snd_cwnd(tp) * keep >> shift), 2U)",
         "return max(tcp_snd_cwnd(tp) / 2 + get_random_u32_below(5), 2U)")  # fmt: skip
CWR = ("\tif (!tcp_is_cwnd_limited(sk))\n",
       "\tif (tcp_snd_cwnd(tp) == 30 && tp->snd_cwnd_cnt == 7)\n\t\ttcp_enter_cwr(sk);\n"
       "\tif (!tcp_is_cwnd_limited(sk))\n")  # fmt: skip


def run(*controls: str, trace: Path | None = None, **more: Any) -> RunResult:
    document = {"duration": "4s", "path": {"rate": "10mbit", "rtt": "20ms", "loss": "0.2%"},
                "flow": [{"cc": cc} for cc in controls]} | more  # fmt: skip
    options = {"kernel": KERNEL} | MACHINE | ({"cc_trace": str(trace)} if trace else {})
    return VmEngine().run(resolve(make_scenario(document)), lambda _done: True, options)


def imported(path: Path) -> str:
    return str(import_kernel_file(path, None, path.parent)[0])


@pytest.mark.vm
@needs_uml
def test_the_kernels_reno_as_a_file_sends_what_the_kernels_own_reno_sends(tmp_path: Path) -> None:
    ours = run(imported(plain(tmp_path)), trace=tmp_path / "trace").tables
    known = run("kernel:reno").tables
    assert ours["flow_samples"].equals(known["flow_samples"])
    (found,) = replay(tmp_path / "trace").algorithms
    assert (found.difference, found.lost, found.skipped) == (None, 0, 0)
    calls = read_calls(tmp_path / "trace", ["call"])["call"].to_pylist()
    assert found.acks > 1000 and calls.count("ssthresh") > 2


@pytest.mark.vm
@pytest.mark.slow
@needs_kernel
def test_what_a_file_draws_and_the_cwr_that_it_asks_for_are_repeated(tmp_path: Path) -> None:
    path = plain(tmp_path, *DRAWN)
    path.write_text(path.read_text().replace(*CWR))
    run(imported(path), trace=tmp_path / "trace")
    assert replay(tmp_path / "trace").algorithms[0].difference is None
    calls = read_calls(tmp_path / "trace", ["call", "event_value", "before_cwnd", "ssthresh"])
    drawn = [
        one["ssthresh"] - one["before_cwnd"] // 2
        for one in calls.to_pylist() if one["call"] == "ssthresh"
    ]  # fmt: skip
    assert set(drawn) <= set(range(5)) and len(set(drawn)) > 1
    cwr = [one for one in calls.to_pylist() if one["call"] == "state" and one["event_value"] == 2]
    assert cwr and {one["before_cwnd"] for one in cwr} == {30}


@pytest.mark.vm
@pytest.mark.slow
@needs_kernel
def test_a_file_with_cong_control_gets_the_kernels_samples(tmp_path: Path) -> None:
    path = imported(write(tmp_path, "rated", RATED.replace("@", CONTROL_6_10)))
    delivered = run(path, trace=tmp_path / "trace").tables["flow_samples"]["bytes_delivered"]
    (found,) = replay(tmp_path / "trace").algorithms
    assert (found.difference, found.lost, found.skipped) == (None, 0, 0)
    # A path of 10 Mbit/s that loses 0.2 % of the packets; headers take 4.4 %.
    assert found.acks > 1000 and delivered.to_pylist()[-1] * 8 / 4 > 8.5e6


@pytest.mark.vm
@pytest.mark.slow
@needs_kernel
def test_a_replay_tells_a_kernel_that_decides_otherwise(tmp_path: Path) -> None:
    # The kernel's arithmetic and this project's agree; what they are given does not.
    path = plain(tmp_path, *DRAWN)
    text = path.read_text()
    path.write_text(text.replace("get_random_u32_below(5)", "(LINUX_VERSION_CODE & 1)"))
    run(imported(path), trace=tmp_path / "trace")
    found = replay(tmp_path / "trace").algorithms[0].difference
    assert found is not None and (found.call, found.field) == ("ssthresh", "ssthresh")
    assert found.kernel == found.native + 1


@pytest.mark.vm
@pytest.mark.slow
@needs_kernel
def test_its_constants_are_the_modules_and_one_set_at_a_time(tmp_path: Path) -> None:
    path = imported(plain(tmp_path))
    gentle = run(f"{path}[keep=870]", trace=tmp_path / "trace").tables["flow_samples"]
    assert not gentle.equals(run(path).tables["flow_samples"])
    assert replay(tmp_path / "trace").algorithms[0].difference is None
    with pytest.raises(RunError, match="has one set of constants at a time"):
        run(path, f"{path}[keep=870]")


def test_a_package_has_the_file_unchanged_and_the_kernels_side_of_its_headers(
    tmp_path: Path,
) -> None:
    source = plain(tmp_path)
    package = tmp_path / "package"
    module.write_package([cc_set(imported(source))], package)
    (folder,) = (package / "user").iterdir()
    assert (folder / source.name).read_bytes() == source.read_bytes()
    for name in ("linux_base.h", "linux_tcp.h", "linux_host.h"):
        assert not (folder / name).exists()
        kernels, simulators = package / "module/linux" / name, package / "cc" / name
        assert "FULLPIPE_MODULE_LINUX" in kernels.read_text()
        assert "FULLPIPE_CC_LINUX" in simulators.read_text()
