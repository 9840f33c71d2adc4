"""The extended fluid model against measurements, conservation and what BBRv3 does alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fullpipe.base.errors import UserError
from fullpipe.models import Contest, ExtendedRun, bbr3_share, contest_run, read_observed
from fullpipe.models.extended import run_extended
from helpers import DATA

OBSERVED = DATA / "link_share_observed.csv"


def contest(flows: int, buffer_bdp: float, cc: str = "bbr3", against: str = "cubic") -> Contest:
    return Contest(cc, flows, against, 10e6, 0.04, buffer_bdp)


def alone(ccs: tuple[str, ...], buffer_bdp: float, rtts_s: tuple[float, ...]) -> ExtendedRun:
    return ExtendedRun(
        rate_bps=10e6, buffer_bytes=buffer_bdp * 10e6 * 0.04 / 8, ccs=ccs, rtts_s=rtts_s,
        starts_s=(0.0,) * len(ccs), duration_s=120.0, window_start_s=40.0,
    )  # fmt: skip


@pytest.mark.slow
def test_error_on_the_observed_panel_of_bbr3_is_within_the_aim() -> None:
    panel = next(p for p in read_observed(OBSERVED) if p.figure == "5a")
    # One seed, not the mean of three that a prediction is: its chance only adds to the error, which
    # is half of the aim (0.0029).
    results = run_extended([contest_run(p.contest) for p in panel.points], seeds=[1])
    fluid, steady = (
        [(share - p.share) ** 2 for share, p in zip(shares, panel.points, strict=True)]
        for shares in (
            [result.share_of("bbr3") for result in results],
            [bbr3_share(p.contest).share for p in panel.points],
        )
    )
    assert len(panel.points) == 42
    assert sum(fluid) / 42 <= 0.006
    assert sum(steady) / 42 <= 0.021  # BBRv1's formula: 0.036


@pytest.mark.parametrize(("mbps", "rtt_ms", "against", "low", "high"), [
    # The project's own simulator, seeds 1 and 2, 1000 s: paths on which nothing was tried out.
    (50, 30, "cubic", 0.58, 0.65),
    (10, 40, "reno", 0.57, 0.68),
])  # fmt: skip
def test_shares_on_other_paths_are_those_of_the_packet_simulator(
    mbps: float, rtt_ms: float, against: str, low: float, high: float
) -> None:
    question = Contest("bbr3", 4, against, mbps * 1e6, rtt_ms / 1000, 8.0)
    assert low < run_extended([contest_run(question)])[0].share_of("bbr3") < high


@pytest.mark.slow
def test_halving_the_step_changes_the_mean_share_by_less_than_half_a_percent() -> None:
    # Shares differ from seed to seed by 0.01 to 0.02; the mean of 24 is known to 0.001 to 0.004.
    for flows, buffer_bdp in ((1, 1.0), (1, 8.0), (4, 2.0)):
        run = replace(
            contest_run(contest(flows, buffer_bdp)), duration_s=600.0, window_start_s=200.0
        )
        runs = [run, replace(run, steps_per_rtt=2 * run.steps_per_rtt)]
        whole, half = run_extended(runs, seeds=range(1, 25))
        assert abs(whole.share_of("bbr3") - half.share_of("bbr3")) < 0.005


def test_what_the_flows_get_and_lose_adds_up() -> None:
    for flows, buffer_bdp in ((1, 1.0), (4, 8.0), (32, 1.0)):
        result = run_extended([contest_run(contest(flows, buffer_bdp))], seeds=[1])[0]
        assert sum(result.wire_share) == pytest.approx(result.utilisation, abs=1e-3)
        assert result.utilisation <= 1 + 1e-9
        assert 0 < result.queue_segments <= result.run.buffer_bytes / 1514 * (1 + 1e-9)
        assert all(0 <= loss < 0.5 for loss in result.loss)


@pytest.mark.slow
def test_more_bbr3_flows_get_more_on_slow_and_fast_short_and_long_paths() -> None:
    # Up to 4 BDP: in deeper buffers a few hundred seconds of few flows are single draws.
    counts = (1, 4, 32)
    questions = [
        Contest("bbr3", flows, against, mbps * 1e6, rtt_ms / 1000, buffer_bdp)
        for mbps, rtt_ms in ((10, 20), (10, 60), (100, 20), (100, 60))
        for against in ("cubic", "reno")
        for buffer_bdp in (0.5, 4.0)
        for flows in counts
    ]
    runs = [
        replace(contest_run(question), duration_s=300.0, window_start_s=100.0)
        for question in questions
    ]
    shares = [result.share_of("bbr3") for result in run_extended(runs, seeds=[1])]
    assert all(0 < share < 1 for share in shares)
    for begin in range(0, len(shares), len(counts)):
        group = shares[begin : begin + len(counts)]
        assert group == sorted(group)


def test_one_bbr3_flow_alone_fills_the_link_with_little_queue_and_no_loss() -> None:
    result = run_extended([alone(("bbr3",), 8.0, (0.04,))], seeds=[1])[0]
    assert result.utilisation > 0.93  # a pacing margin of 1 %, ProbeRTT
    assert result.loss == (0.0,)
    assert result.queue_segments < 0.5 * 33


@pytest.mark.parametrize("cc", ["cubic", "reno"])
def test_loss_based_flows_alone_fill_buffer_and_link_and_share_evenly(cc: str) -> None:
    result = run_extended([alone((cc, cc), 1.0, (0.04, 0.04))])[0]
    assert result.utilisation > 0.99
    assert result.jain_index > 0.95
    assert 0.3 < result.queue_segments / 33 < 1


def test_reno_alone_loses_what_its_sawtooth_says() -> None:
    # From half of W = BDP + buffer back to W: 3/8 W^2 segments for each lost one.
    result = run_extended([alone(("reno",), 1.0, (0.04,))])[0]
    window = 2 * 10e6 * 0.04 / 8 / 1514
    assert result.loss[0] == pytest.approx(8 / (3 * window**2), rel=0.35)


@pytest.mark.slow
def test_bbr3_takes_more_than_bbr2_from_cubic_in_every_buffer_up_to_eight_bdp() -> None:
    for buffer_bdp in (1.0, 4.0, 8.0):
        for flows in (1, 4):
            runs = [contest_run(contest(flows, buffer_bdp, cc)) for cc in ("bbr2", "bbr3")]
            second, third = run_extended(runs)
            assert third.share_of("bbr3") > second.share_of("bbr2")


def test_a_run_is_the_same_twice_and_differs_with_its_seed() -> None:
    run = replace(contest_run(contest(2, 4.0)), duration_s=60.0, window_start_s=20.0)
    first, again, other = run_extended([run, run, replace(run, duration_s=60.0)], seeds=[7])
    assert first == again == other
    assert run_extended([run], seeds=[8])[0].wire_share != first.wire_share


def test_a_later_start_is_a_start() -> None:
    run = ExtendedRun(10e6, 2 * 50_000, ("bbr3", "cubic"), (0.04, 0.04), (0.0, 50.0), 50.0, 10.0)
    result = run_extended([run], seeds=[1])[0]
    assert result.wire_share[1] == 0
    assert result.wire_share[0] > 0.9


def test_a_horizon_too_short_for_probe_rtt_is_warned_about_by_name() -> None:
    run = replace(contest_run(contest(1, 4.0)), duration_s=4.0, window_start_s=1.0)
    assert [caution.assumption for caution in run.cautions()] == ["horizon_includes_probe_rtt"]


@pytest.mark.parametrize(
    "change",
    [
        {"ccs": ("bbr1", "cubic")}, {"rate_bps": float("nan")}, {"buffer_bytes": 0.0},
        {"duration_s": -1.0}, {"rtts_s": (1e-6, 1e-6)}, {"window_start_s": 1000.0},
        {"buffer_bytes": 1e18},
    ],
)  # fmt: skip
def test_runs_out_of_range_are_refused(change: dict[str, object]) -> None:
    run = contest_run(contest(1, 4.0))
    with pytest.raises(UserError):
        run_extended([replace(run, **change)])  # type: ignore[arg-type]
