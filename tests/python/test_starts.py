"""The slow starts of CUBIC and Reno end at the same window in the simulator and in the kernel."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from fullpipe.engines.base import engine
from fullpipe.kernel.calls import read_calls
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: rate in Mbit/s, RTT in ms, buffer, algorithm.
PATHS = (
    (20, 40, "2bdp", "cubic"),
    (50, 20, "1bdp", "reno"),
    (10, 100, "1bdp", "cubic"),
    (30, 200, "3bdp", "reno"),
)
STARTS = ("linux", "hystart++", "search", "careful-resume", "rapid")
#: What the machine's processor takes, measured apart from this: the second path is so near to a
#: threshold of HyStart++ that some us decide (docs/evidence/slow_start.md).
MACHINE = Path(__file__).parents[2] / "benches" / "machine.py"
WORK: dict[str, str] = runpy.run_path(str(MACHINE))["WORK"]


def ends(name: str, path: tuple[int, int, str, str]) -> list[tuple[int, int]]:
    """Window at which the first slow start ended, and its rounds, of each start; Linux's counts
    none."""
    rate, rtt, buffer, algorithm = path
    bdp = round(rate * 1e6 * rtt / 1e3 / 8 / 1514)
    found = []
    for start in STARTS:
        saved = f",saved_cwnd={bdp},saved_rtt_us={rtt * 1000}" if start == STARTS[3] else ""
        document: dict[str, Any] = {
            "duration": "6s",
            "host": {"pacing": "fq", **(WORK if name == "sim" else {})},
            "path": {"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "buffer": buffer},
            "flow": [{"cc": f"{algorithm}[start={start}{saved}]"}],
        }
        result = engine(name).run(resolve(make_scenario(document)), lambda _done: True, {})
        assert result.failure is None
        last = result.tables["cc_samples"].to_pylist()[-1]
        found.append((round(last["start_exit_cwnd_packets"]), round(last["start_rounds"] or 0)))
        assert (last["start_rounds"] is None) == (start == "linux")
    return found


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_a_start_ends_in_the_kernel_where_it_ends_in_the_simulator(
    path: tuple[int, int, str, str],
) -> None:
    for start, ours, kernels in zip(STARTS, ends("sim", path), ends("vm", path), strict=True):
        assert ours[0] == pytest.approx(kernels[0], rel=0.05), (start, ours, kernels)
        assert ours[1] == kernels[1], (start, ours, kernels)


def first_threshold(name: str, cc: str, path: tuple[int, int, str, str]) -> int:
    """The window in packets at which the first slow start ended; HyStart makes it the threshold."""
    rate, rtt, buffer, _ = path
    document: dict[str, Any] = {
        "duration": "6s", "sample_interval": "10ms",
        "host": {"pacing": "fq", **(WORK if name == "sim" else {})},
        "path": {"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "buffer": buffer}, "flow": [{"cc": cc}],
    }  # fmt: skip
    result = engine(name).run(resolve(make_scenario(document)), lambda _done: True, {})
    thresholds = result.tables["flow_samples"]["ssthresh_packets"].to_pylist()
    return next(one for one in thresholds if one is not None and one < 1 << 20)


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_hystart_of_the_kernels_cubic_ends_where_the_simulators_does(
    path: tuple[int, int, str, str],
) -> None:
    kernels = first_threshold("vm", "kernel:cubic", path)
    # The two need different processor time for a call, so the RTT that ends the start may be that
    # of one ACK later, and an ACK adds one packet. Over five times of the flow's start on the last
    # path, each of them had 1139 three times and 1140 twice, but not at the same times.
    assert abs(first_threshold("vm", "cubic", path) - kernels) <= 1
    assert first_threshold("sim", "cubic", path) == pytest.approx(kernels, rel=0.05)


@pytest.mark.parametrize("engine_name", ["sim", pytest.param("vm", marks=[pytest.mark.vm])])
@pytest.mark.parametrize(
    ("cc", "wants"), [("reno", False), ("reno[start=hystart++]", True), ("cubic", True)]
)
def test_rtt_samples_come_where_the_constants_need_them(
    cc: str, wants: bool, engine_name: str, tmp_path: Path
) -> None:
    document = {"duration": "2s", "path": {"rate": "10mbit", "rtt": "20ms"}, "flow": [{"cc": cc}]}
    plan = resolve(make_scenario(document))
    engine(engine_name).run(plan, lambda _done: True, {"cc_trace": str(tmp_path / "trace")})
    calls = read_calls(tmp_path / "trace", ["call"])["call"].to_pylist()
    assert "ack" in calls
    assert ("rtt" in calls) == wants


def test_constants_of_other_starts_change_nothing_of_linuxs() -> None:
    document: dict[str, Any] = {
        "duration": "5s",
        "path": {"rate": "20mbit", "rtt": "40ms"},
        "flow": [{"cc": "cubic"}, {"cc": "reno", "start": "1s"}],
    }
    plain = engine("sim").run(resolve(make_scenario(document)), lambda _done: True, {})
    document["flow"][0]["cc"] = "cubic[saved_cwnd=400,saved_rtt_us=40000,css_rounds=2]"
    other = engine("sim").run(resolve(make_scenario(document)), lambda _done: True, {})
    assert plain.tables["flow_samples"].equals(other.tables["flow_samples"])
