"""SO_MAX_PACING_RATE and sysctls of hosts: closed formulas in the simulator, refusals, and what a
kernel makes of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.congestion import stacks
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from helpers import column, simulate

PATH = {"rate": "100mbit", "rtt": "40ms", "buffer": "2bdp"}
#: 300 KB, every 3 s over one connection: 213 packets, in a first window of 10.
PAGE = {
    "cc": "cubic", "levels": [["300KB"]], "protocol": "http2", "keep_connections": True,
    "pause": "3s", "interval": "1ms", "lookup": "none",
}  # fmt: skip


def loads_s(**host: Any) -> list[float]:
    path = {"rate": "50mbit", "reverse_rate": "50mbit", "rtt": "80ms", "buffer": "1bdp"}
    raw = simulate(duration="30s", path=path, page=[PAGE], host=host)
    done, start = (column(raw, "page_loads", f"{end}_us") for end in ("done", "start"))
    return [(end - begin) / 1e6 for begin, end in zip(start, done, strict=True) if end]


def delivered_mbps(raw: dict[str, Any], seconds: float) -> float:
    """Of the last part of a run."""
    bytes_, times = (column(raw, "flow_samples", name) for name in ("bytes_delivered", "t_us"))
    start = int(np.searchsorted(times, times[-1] - round(seconds * 1e6)))
    return float(8 * (int(bytes_[-1]) - int(bytes_[start])) / (int(times[-1]) - int(times[start])))


@pytest.mark.parametrize("cc", ["cubic", "reno", "bbr1", "bbr3", "prague", "tarn"])
@pytest.mark.parametrize("pacing", ["internal", "fq"])
def test_a_limited_flow_has_the_limit_as_its_goodput(cc: str, pacing: str) -> None:
    flow = [{"cc": cc, "max_pacing_rate": "20mbit"}]
    raw = simulate(duration="6s", path=PATH, flow=flow, host={"pacing": pacing})
    # BBR estimates the bandwidth that the limit leaves it, and stays a little below.
    assert 19.0 < delivered_mbps(raw, 3) <= 20.05


def test_a_limit_spares_a_shallow_buffer_the_bursts_of_a_fast_host() -> None:
    """perfSONAR's 10 Gbit/s hosts: CUBIC has 229 Mbit/s of 1 Gbit/s, and 900 with fq-rate."""
    document = {
        "duration": "12s", "path": {"rate": "1gbit", "rtt": "60ms", "buffer": "512KB"},
        "host": {"access_rate": "10gbit"},
    }  # fmt: skip
    free = simulate(**document, flow=[{"cc": "cubic"}])
    limited = simulate(**document, flow=[{"cc": "cubic", "max_pacing_rate": "900mbit"}])
    assert delivered_mbps(free, 5) < 400
    assert delivered_mbps(limited, 5) == pytest.approx(900, rel=0.01)


def test_a_quic_stack_paces_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        stacks, "used", lambda choices: [(whose, "quinn:bbr") for whose, _ in choices]
    )
    plan = resolve(make_scenario(
        {"duration": "1s", "path": PATH, "flow": [{"cc": "cubic", "max_pacing_rate": "1mbit"}]}
    ))  # fmt: skip
    with pytest.raises(UserError, match="max_pacing_rate: quinn:bbr is a QUIC stack's"):
        SimEngine().run(plan, lambda _done: True, {})


def test_a_window_that_is_kept_over_idle_times_spares_round_trips() -> None:
    """After 3 s the window is 10 again: 10 + 20 + 40 + 80 are less than 213 packets, so a load has
    five round trips. A window that was kept has grown beyond a half of them, so it has two."""
    restarts, kept = loads_s(), loads_s(sysctl={"tcp_slow_start_after_idle": 0})
    assert 5 * 0.08 < np.median(restarts[2:]) < 6 * 0.08
    assert 2 * 0.08 < np.median(kept[2:]) < 3 * 0.08


def test_the_pacing_ratios_are_in_percent_of_a_window_in_a_round_trip() -> None:
    """RTT 40 ms without a queue, receive window 64 KiB: CUBIC is paced by fq at the ratio (Linux:
    tcp_update_pacing_rate()), which is 200 % in slow start."""
    flow = [{"cc": "cubic", "receive_window": "64KB"}]

    def windows_a_round_trip(**sysctl: int) -> float:
        host = {"pacing": "fq", "sysctl": sysctl}
        raw = simulate(duration="2s", path=PATH, flow=flow, host=host)
        rate_bps, srtt_us, cwnd = (
            column(raw, "flow_samples", name)[-1]
            for name in ("pacing_rate_bps", "srtt_us", "cwnd_packets")
        )
        return float(rate_bps * srtt_us / 1e6 / (cwnd * 1448 * 8))

    assert windows_a_round_trip() == pytest.approx(2, rel=0.01)
    assert windows_a_round_trip(tcp_pacing_ss_ratio=100) == pytest.approx(1, rel=0.01)


def test_what_only_a_kernel_has_is_refused_by_the_simulator() -> None:
    with pytest.raises(Exception, match=r"host\.sysctl\.tcp_timestamps: .*--engine vm"):
        simulate(
            duration="1s", path=PATH, flow=[{"cc": "cubic"}], host={"sysctl": {"tcp_timestamps": 0}}
        )


def test_a_plan_without_them_is_what_it_was() -> None:
    plan = resolve(make_scenario({"duration": "1s", "path": PATH, "flow": [{"cc": "cubic"}]}))
    assert "sysctl" not in plan["host"]
    assert "max_pacing_rate_bps" not in json.dumps(plan)


@pytest.mark.vm
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
def test_a_kernel_keeps_window_and_limit() -> None:
    document = {
        "duration": "4s", "path": PATH,
        "host": {"sysctl": {"tcp_timestamps": 0, "tcp_slow_start_after_idle": 0}},
        "flow": [{"cc": "cubic", "max_pacing_rate": "20mbit"}],
    }  # fmt: skip
    result = VmEngine().run(resolve(make_scenario(document)), lambda _done: True, {})
    (delivered,) = result.tables["flows"]["bytes_delivered"].to_pylist()
    (mss,) = result.tables["flows"]["mss_bytes"].to_pylist()
    assert mss == 1460, "without timestamps"
    assert 8 * delivered / 4 == pytest.approx(20e6, rel=0.05)
