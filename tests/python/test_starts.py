"""The slow starts of CUBIC and Reno end at the same window in the simulator and in the kernel."""

from __future__ import annotations

from typing import Any

import pytest

from fullpipe.engines.base import engine
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


def ends(name: str, path: tuple[int, int, str, str]) -> list[tuple[int, int]]:
    """Window at which the first slow start ended, and its rounds, of each start."""
    rate, rtt, buffer, algorithm = path
    bdp = round(rate * 1e6 * rtt / 1e3 / 8 / 1514)
    found = []
    for start in STARTS:
        saved = f",saved_cwnd={bdp},saved_rtt_us={rtt * 1000}" if start == STARTS[3] else ""
        document: dict[str, Any] = {
            "duration": "6s",
            "host": {"pacing": "fq"},
            "path": {"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "buffer": buffer},
            "flow": [{"cc": f"{algorithm}[start={start}{saved}]"}],
        }
        result = engine(name).run(resolve(make_scenario(document)), lambda _done: True, {})
        assert result.failure is None
        last = result.tables["cc_samples"].to_pylist()[-1]
        found.append((round(last["start_exit_cwnd_packets"]), round(last["start_rounds"])))
    return found


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_a_start_ends_in_the_kernel_where_it_ends_in_the_simulator(
    path: tuple[int, int, str, str],
) -> None:
    for start, ours, kernels in zip(STARTS, ends("sim", path), ends("vm", path), strict=True):
        # A round of HyStart++ ends by what had left: a paced packet more or less doubles each round
        # (docs/evidence/slow_start.md).
        window, rounds = (0.1, 2) if start == "hystart++" else (0.05, 1)
        assert ours[0] == pytest.approx(kernels[0], rel=window), (start, ours, kernels)
        assert abs(ours[1] - kernels[1]) <= rounds, (start, ours, kernels)


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
