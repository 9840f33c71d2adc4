"""The published fluid model against its authors' program, analytical results and itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.models import FluidRun, published_run, run_fluid
from helpers import DATA

REFERENCE = DATA / "fluid_reference_runs.jsonl"
OURS = {"BBR": "bbr1", "BBR2": "bbr2", "CUBIC": "cubic", "RENO": "reno"}
AQM = {"RED": "red", "Drop-tail": "drop_tail"}


def reference() -> list[dict[str, Any]]:
    return [json.loads(line) for line in REFERENCE.read_text().splitlines()]


def run_of(line: dict[str, Any]) -> FluidRun:
    senders, mbps, buffer, ccs, link_ms, access, aqm, send, front, back, step = line["args"]
    return published_run(
        senders, mbps, buffer, [OURS[cc] for cc in ccs], link_ms, tuple(access), AQM[aqm],
        send, front, back, step,
    )  # fmt: skip


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_every_reference_run_is_reproduced_from_its_arguments(step: int) -> None:
    lines = reference()[::step]
    runs = [run_of(line) for line in lines]
    for line, result in zip(lines, run_fluid(runs), strict=True):
        run = result.run
        assert [OURS[cc] for cc in line["CC"]] == list(run.ccs)
        delays = [2 * run.link_delay_ms + 2 * delay for delay in run.access_delays_ms]
        assert delays == line["D"]
        assert run.buffer_segments == line["B_pkts"]
        assert result.sending_rate_seg_per_ms == pytest.approx(line["mean_x"], rel=1e-3)
        assert result.ifip_mbps() == pytest.approx(line["thr_ifip"], rel=1e-3)
        assert result.queue_segments == pytest.approx(line["avg_queue"], rel=5e-3)
        assert 100 * result.occupancy == pytest.approx(line["occupancy_pct"], rel=5e-3)
        # Below 1e-9 % is the tail of (queue / buffer)^100, not loss.
        assert 100 * result.loss_smooth == pytest.approx(line["loss_pct"], rel=1e-2, abs=1e-9)
        discrete = line["loss_discrete_pct"]
        assert 100 * result.loss_discrete == pytest.approx(discrete, rel=1e-2, abs=1e-9)
        assert 100 * result.utilisation == pytest.approx(line["utilization_pct"], rel=1e-3)
        assert result.jain_index == pytest.approx(line["jfi"], rel=1e-3)
        assert result.jitter_ms == pytest.approx(line["avg_jitter_ms"], rel=1e-2, abs=1e-9)


# Published table of regenerated values: 10 flows, 100 Mbit/s, 10 ms link, 5-10 ms access.
@pytest.mark.parametrize(
    ("aqm", "buffer", "ccs", "jain", "loss_pct", "queue"),
    [
        ("drop_tail", 4.0, ["reno", "bbr2"], 0.927258, 0.07434, 265.3497),
        ("drop_tail", 7.0, ["bbr1", "bbr2"], 0.835536, 0.08746, 343.8358),
        ("red", 4.0, ["reno", "bbr2"], 0.843990, 0.80652, 2.5368),
    ],
)
def test_runs_that_are_not_in_the_reference_file_are_reproduced_too(
    aqm: str, buffer: float, ccs: list[str], jain: float, loss_pct: float, queue: float
) -> None:
    result = run_fluid([published_run(10, 100, buffer, ccs, 10, (5, 10), aqm)])[0]
    assert result.jain_index == pytest.approx(jain, abs=1e-6)
    assert 100 * result.loss_smooth == pytest.approx(loss_pct, abs=1e-5)
    assert result.queue_segments == pytest.approx(queue, abs=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        (2, 10, 4.0, ["cubic", "bbr1"], 10, (10, 10)),
        (2, 50, 1.0, ["cubic", "bbr1"], 7.5, (7.5, 7.5)),
        (2, 10, 4.0, ["cubic", "bbr2"], 10, (10, 10)),
        (2, 10, 16.0, ["reno", "bbr2"], 10, (10, 10)),
        (2, 50, 16.0, ["cubic", "bbr2"], 7.5, (7.5, 7.5)),
        (10, 100, 4.0, ["cubic", "bbr1"], 10, (5, 10)),
        pytest.param((10, 100, 1.0, ["bbr2"], 10, (5, 10)), marks=pytest.mark.slow),
        (10, 100, 4.0, ["reno", "cubic"], 10, (5, 10)),
    ],
)
def test_halving_the_step_changes_shares_by_less_than_half_a_percent(arguments: Any) -> None:
    run = published_run(*arguments)
    whole, half = run_fluid([run, replace(run, step_ms=run.step_ms / 2)])
    for cc in set(run.ccs):
        assert abs(whole.share_of(cc) - half.share_of(cc)) < 0.005


def test_bbr1_alone_in_a_shallow_buffer_loses_what_the_equilibrium_says() -> None:
    # N flows of rate 5C / (4N + 1) each: loss (N - 1) / (5N) of what is sent (section 10 of the
    # paper's analysis); the probing pulses are smooth, hence the tolerance.
    result = run_fluid([published_run(10, 100, 1.0, ["bbr1"], 10, (10, 10))])[0]
    assert result.loss_discrete == pytest.approx(9 / 50, abs=0.03)


def test_delivered_rates_fill_the_link_and_never_exceed_what_is_sent() -> None:
    runs = [
        published_run(2, 10, 1.0, ["cubic", "bbr1"], 10, (10, 10)),
        published_run(10, 100, 4.0, ["reno", "cubic"], 10, (5, 10), "red"),
    ]
    for result in run_fluid(runs):
        assert sum(result.delivery_share) == pytest.approx(result.utilisation, abs=2e-3)
        for delivered, sent in zip(result.delivery_share, result.sending_share, strict=True):
            assert delivered <= sent + 2e-3


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    runs = [published_run(2, 10, buffer, ["cubic", "bbr1"], 10, (10, 10)) for buffer in (1.0, 4.0)]
    assert run_fluid(runs, threads=1) == run_fluid(runs, threads=4)


def test_a_horizon_without_probe_rtt_and_a_deep_buffer_are_warned_about_by_name() -> None:
    run = published_run(2, 10, 16.0, ["cubic", "bbr1"], 10, (10, 10), duration_s=9.0)
    names = [caution.assumption for caution in run.cautions()]
    assert names == ["horizon_includes_probe_rtt", "moderate_buffer"]
    longer = published_run(2, 10, 4.0, ["cubic", "bbr1"], 10, (10, 10), duration_s=12.0)
    assert longer.cautions() == ()


@pytest.mark.parametrize(
    "change",
    [
        {"rate_bps": 0.0}, {"rate_bps": float("nan")}, {"buffer_segments": -1.0},
        {"link_delay_ms": 0.0}, {"duration_ms": 0.0}, {"step_ms": -0.01}, {"step_ms": 5.0},
        {"window_start_ms": 9000.0}, {"access_delays_ms": (0.0, 10.0)}, {"duration_ms": 1e12},
        {"rate_bps": 1e-3}, {"sample_interval_ms": 1e-9},
    ],
)  # fmt: skip
def test_runs_out_of_range_are_refused(change: dict[str, Any]) -> None:
    run = published_run(2, 10, 4.0, ["cubic", "bbr1"], 10, (10, 10))
    with pytest.raises(UserError):
        run_fluid([replace(run, **change)])


@pytest.mark.parametrize(
    "arguments",
    [
        (2, 10, 4.0, ["cubic", "bbr3"], 10, (10, 10)),
        (3, 10, 4.0, ["cubic", "bbr1"], 10, (10, 10)),
        (2, -10, 4.0, ["cubic", "bbr1"], 10, (10, 10)),
        (2, 10, 0.0, ["cubic", "bbr1"], 10, (10, 10)),
        (2, 10, 4.0, [], 10, (10, 10)),
    ],
)
def test_configurations_that_make_no_sense_are_refused(arguments: Any) -> None:
    with pytest.raises(UserError):
        published_run(*arguments)


MEMORY = """
from fullpipe.models import published_run, run_fluid
def peak_mb():
    # Not ru_maxrss: a child's begins with its parent's.
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines["VmHWM"].split()[0]) / 1024
ccs = ["cubic", "bbr2"]
run = published_run({flows}, 100, 4.0, ccs, 10, (5, 10), {aqm!r}, duration_s={seconds})
run_fluid([run], threads=1)
print(peak_mb())
"""


def peak_mb(seconds: float, aqm: str, flows: int = 10) -> float:
    code = MEMORY.format(flows=flows, aqm=aqm, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
def test_memory_does_not_grow_with_simulated_time_beyond_the_longest_delay() -> None:
    # RED keeps the least RTT moving, which is the worst case of the longest history, 10 s.
    assert peak_mb(60, "red") < peak_mb(15, "red") + 10


@pytest.mark.slow
def test_a_thousand_seconds_need_less_than_200_mb() -> None:
    # Two flows: what each keeps is bounded by the test above; this is about the length.
    assert peak_mb(1000, "drop_tail", flows=2) < 200
