"""The models' formulas, units and domains, against values done by hand."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.models import (
    Contest,
    ExtendedRun,
    Panel,
    bbr1_share,
    bbr3_share,
    contest_run,
    predict,
    predict_share,
    published_run,
    read_observed,
    run_extended,
    run_fluid,
)
from fullpipe.models.fluid import link_bdp_segments
from fullpipe.models.observed import Observation
from fullpipe.models.plans import extended_run, fluid_run, read_plan
from fullpipe.models.share import contest_fluid_run, version_of
from fullpipe.models.validate import Line, Validation
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


def contest(**more: Any) -> Contest:
    usual = {"cc": "bbr1", "flows": 1, "against": "cubic", "rate_bps": 12e6, "rtt_s": 0.04,
             "buffer_bdp": 2.0}  # fmt: skip
    return Contest(**{**usual, **more})


def names(cautions: Any) -> list[str]:
    return [one.assumption for one in cautions]


def test_the_steady_state_of_bbrv1_by_equations_9_to_11() -> None:
    # 12 Mbit/s are 1000 packets of 12,000 bit a second: a BDP of 40, a buffer of 80.
    found = bbr1_share(contest())
    raw = 0.5 - 1 / 4 - 4 / 80
    assert found.loss_based_raw == pytest.approx(raw) and found.loss_based == pytest.approx(raw)
    assert found.probe_time == pytest.approx((0.08 + 0.2 + 0.04) / 10)
    assert found.share == pytest.approx((1 - raw) * (1 - 0.032)) and found.cautions == ()
    three = bbr1_share(contest(flows=3))
    assert three.loss_based == pytest.approx(0.5 - 1 / 4 - 12 / 80)
    small = bbr1_share(contest(), packet_bits=24_000)
    assert small.loss_based == pytest.approx(0.5 - 1 / 4 - 4 / 40)


def test_the_steady_state_of_bbrv1_says_where_it_ends() -> None:
    assert names(bbr1_share(contest(buffer_bdp=0.999)).cautions)[0] == "full_queue"
    one = bbr1_share(contest(buffer_bdp=1.0))
    # 0.5 - 0.5 - 0.1
    assert names(one.cautions) == ["loss_based_window"] and one.loss_based == 0
    assert one.loss_based_raw == pytest.approx(-0.1)
    assert one.share == pytest.approx(1 - (0.04 + 0.24) / 10)
    # The buffer drains in 9.76 s: with 0.2 s and a round trip of 0.04 s that is all of 10 s.
    long = bbr1_share(contest(buffer_bdp=244.0))
    assert long.probe_time == pytest.approx(1) and long.share == pytest.approx(0, abs=1e-9)
    longer = bbr1_share(contest(buffer_bdp=300.0))
    assert longer.share == 0 and names(longer.cautions) == ["probe_rtt_fits"]
    assert names(bbr1_share(contest(against_flows=2)).cautions) == ["one_loss_based_flow"]


def by_bisection(holds: Any) -> float:
    """The largest part for which a condition holds that holds for all smaller ones."""
    steps = [n / 200_000 for n in range(200_001)]
    low, high = 0, len(steps) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(steps[middle]) else (low, middle)
    return steps[low]


@pytest.mark.parametrize(
    "given",
    [
        contest(cc="bbr3"), contest(cc="bbr3", against="reno"), contest(cc="bbr3", flows=5),
        contest(cc="bbr3", buffer_bdp=0.5), contest(cc="bbr3", buffer_bdp=16.0),
        contest(cc="bbr3", rate_bps=100e6, rtt_s=0.1, against_flows=2, flows=2),
        contest(cc="bbr3", rate_bps=2e6, rtt_s=0.02, buffer_bdp=1.0, flows=8),
        contest(cc="bbr3", rate_bps=50e6, rtt_s=0.01, buffer_bdp=4.0),
    ],
)  # fmt: skip
def test_the_steady_state_of_bbrv3_by_its_two_conditions(given: Contest) -> None:
    # docs/background/models.md, written out here: volumes in frames of 1514 B.
    capacity = given.rate_bps / (8 * 1514)
    full = (given.buffer_bdp + 1) * capacity * given.rtt_s
    full_rtt = full / capacity
    n = given.flows

    def min_rtt(part: float) -> float:
        window = part * full / capacity
        return max(given.rtt_s, window / (1 - 0.5 * (1 - part)), window + 4 * n / capacity)

    def bbr_window(part: float) -> float:
        return 2 * (1 - part) * capacity * min_rtt(part) + 4 * n

    def period(part: float) -> float:
        rounds = min(63, max(4, (1 - part) * capacity * min_rtt(part) / n))
        return min(2 + 1 / (n + 1), rounds * full_rtt) + 6 * full_rtt

    def regrown(seconds: float) -> float:
        growth = max(seconds - full_rtt, full_rtt)
        if given.against == "reno":
            return given.against_flows * growth / full_rtt / 0.5
        friendly = 3 * 0.3 / 1.7 * growth / full_rtt / 0.3
        return given.against_flows * max(0.4 * growth**3 / 0.3, friendly)

    found = bbr3_share(given)
    by_window = by_bisection(lambda part: bbr_window(part) < (1 - part) * full)
    by_clock = by_bisection(lambda part: regrown(period(part)) > part * full)
    assert found.by_window == pytest.approx(by_window, abs=1e-4)
    assert found.by_clock == pytest.approx(by_clock, abs=1e-4)
    floor = min(1, 4 * n / full)
    loss_based = min(max(found.by_window, found.by_clock), 1 - floor)
    assert found.loss_based == pytest.approx(loss_based)
    probe = full_rtt + 0.2
    bbr = (1 - loss_based) * (1 - 0.5 * probe / (5 + probe))
    assert found.wire_share == pytest.approx(bbr / (bbr + loss_based))
    assert found.share == pytest.approx(found.wire_share * 1448 / 1514)
    assert found.period_s == pytest.approx(period(found.by_clock))
    # What it cannot tell, it says.
    part, seconds = (
        max(found.by_window, found.by_clock),
        period(max(found.by_window, found.by_clock)),
    )
    expected = {
        "overflow_by_probes": given.buffer_bdp < 1,
        "probe_before_loss_based_overflow": part >= 1 - 1e-9,
        "more_than_least_window": floor > 1 - part and part < 1 - 1e-9,
        "one_probe_at_a_time": n > 1 and seconds < 12 * full_rtt,
        "probe_rtt_fits": seconds > 5,
    }
    assert names(found.cautions) == [name for name, told in expected.items() if told]


def test_a_contest_is_within_bounds() -> None:
    assert contest().bdp_bytes == pytest.approx(12e6 * 0.04 / 8)
    contest(flows=1000, rate_bps=1e12, rtt_s=60.0, buffer_bdp=1e6)
    for bad in (
        {"flows": 0}, {"flows": 1001}, {"flows": True}, {"flows": 2.0}, {"against_flows": 0},
        {"rate_bps": 0}, {"rate_bps": 1.1e12}, {"rtt_s": 0}, {"rtt_s": 60.1},
        {"buffer_bdp": 0}, {"buffer_bdp": 1.1e6}, {"rtt_s": math.nan}, {"against": "bbr1"},
    ):  # fmt: skip
        with pytest.raises(UserError):
            contest(**bad)


def test_an_extended_run_is_in_segments_and_ms() -> None:
    run = contest_run(contest(cc="bbr3", flows=2, rate_bps=12.112e6, against_flows=3))
    assert run.ccs == ("bbr3",) * 2 + ("cubic",) * 3 and run.starts_s == (0.0,) * 5
    assert run.capacity_seg_per_ms == pytest.approx(1)
    assert run.buffer_bytes == pytest.approx(2 * 12.112e6 * 0.04 / 8)
    assert run.flow_steps == pytest.approx(1000 / 0.04 * 20 * 5)
    spec = run.spec()
    assert spec["buffer_seg"] == pytest.approx(80) and spec["step_ms"] == pytest.approx(2)
    assert spec["duration_ms"] == 1e6 and spec["window_start_ms"] == 6e5 and spec["seed"] == 1
    assert spec["two_burst_seg_per_ms"] == pytest.approx(1.2e6 / (1448 * 8000))
    assert spec["flows"][4] == {"cc": "cubic", "base_rtt_ms": 40, "start_ms": 0}
    late = ExtendedRun(1e7, 1e5, ("reno", "bbr2"), (0.1, 0.02), (0, 1.5), duration_s=9.0)
    assert late.spec()["flows"][1] == {"cc": "bbr2", "base_rtt_ms": 20, "start_ms": 1500}
    assert late.spec()["step_ms"] == pytest.approx(1)
    with pytest.raises(UserError, match="does not know"):
        ExtendedRun(1e7, 1e5, ("bbr1",), (0.1,), (0,)).spec()


def test_an_extended_run_has_bounds_and_cautions() -> None:
    def run(duration_s: float, segments: float, cc: str = "bbr3") -> ExtendedRun:
        return ExtendedRun(1e7, segments * 1514, (cc,), (0.1,), (0,), duration_s=duration_s)

    assert names(run(5.0, 10).cautions()) == ["horizon_includes_probe_rtt"]
    assert names(run(5.01, 10).cautions()) == [] and names(run(5, 10, "cubic").cautions()) == []
    assert names(run(9, 9.99).cautions()) == ["volumes_are_fluid"]
    # 2e9 steps: 1e7 s of 0.1 s and 20 steps.
    run(1e7, 10).spec()
    with pytest.raises(UserError, match="would take"):
        run(1.01e7, 10).spec()


def test_shares_of_the_extended_model_are_means_over_seeds() -> None:
    run = ExtendedRun(1e7, 2e5, ("bbr3", "cubic"), (0.04, 0.04), (0, 0), 8.0, 4.0)
    (both,) = run_extended([run], (1, 2), 1)
    (one,) = run_extended([run], (1,), 1)
    (other,) = run_extended([run], (2,), 1)
    for name in ("wire_share", "goodput_share", "loss"):
        pairs = zip(getattr(one, name), getattr(other, name), strict=True)
        assert getattr(both, name) == pytest.approx([(a + b) / 2 for a, b in pairs])
    for name in ("queue_segments", "utilisation", "jain_index"):
        assert getattr(both, name) == pytest.approx((getattr(one, name) + getattr(other, name)) / 2)
    assert one.spread is None and both.seeds == (1, 2)
    # Of two values the standard deviation is their distance over sqrt(2).
    distance = abs(one.wire_share[0] - other.wire_share[0])
    assert both.spread == pytest.approx(distance / math.sqrt(2))
    assert both.goodput_share == pytest.approx([s * 1448 / 1514 for s in both.wire_share])
    assert both.share_of("cubic") == both.goodput_share[1]
    assert sum(both.wire_share) == pytest.approx(both.utilisation, rel=0.02)


def test_a_published_run_is_set_up_as_the_program_does() -> None:
    # 100 Mbit/s x 10 ms are 125,000 B: 82.56 frames, rounded up to 83.
    assert link_bdp_segments(100e6, 10) == 83
    run = published_run(4, 100, 1.5, ["reno", "bbr2"], 10, (5, 6))
    assert run.ccs == ("bbr2", "bbr2", "reno", "reno") and run.buffer_segments == 124
    draw = random.Random(1)
    delays = [round(draw.uniform(5, 6), 1) for _ in range(4)]
    ages = [draw.random() for _ in range(4)]
    assert run.access_delays_ms == pytest.approx(delays) and run.period_ages_s == tuple(ages)
    assert (run.duration_ms, run.window_start_ms, run.window_cut_ms) == (9000, 4000, 0)
    assert published_run(2, 100, 1, ["reno", "bbr1"], 10, (5, 6)).period_ages_s == (0, 0)
    assert run.capacity_seg_per_ms == pytest.approx(100e6 / 12_112_000)
    for bad in (
        {"senders": 3}, {"senders": 0}, {"senders": 1002}, {"ccs": []}, {"ccs": ["bbr3"]},
        {"capacity_mbps": 0}, {"link_delay_ms": 0}, {"link_delay_ms": 10_001},
        {"buffer_link_bdp": 0},
    ):  # fmt: skip
        usual = {"senders": 4, "capacity_mbps": 100, "buffer_link_bdp": 1, "ccs": ["reno", "bbr1"],
                 "link_delay_ms": 10, "access_delay_range_ms": (5, 6)}  # fmt: skip
        with pytest.raises(UserError):
            published_run(**{**usual, **bad})  # type: ignore[arg-type]


def test_cautions_of_the_published_model() -> None:
    def run(duration_s: float, buffer: float, cc: str) -> list[str]:
        found = published_run(2, 100, buffer, [cc, "reno"], 10, (5, 6), duration_s=duration_s)
        return names(found.cautions())

    assert run(10, 1, "bbr1") == ["horizon_includes_probe_rtt"] and run(10.1, 1, "bbr1") == []
    assert run(5, 1, "bbr2") == ["horizon_includes_probe_rtt"] and run(5.1, 1, "bbr2") == []
    assert run(9, 7, "cubic") == [] and run(9, 7.1, "cubic") == ["moderate_buffer"]


def test_a_contest_for_the_published_model_is_split_in_quarters() -> None:
    run = contest_fluid_run(contest(flows=2, rate_bps=12.112e6))
    assert run.link_delay_ms == 10 and run.access_delays_ms == (10, 10, 10)
    assert run.buffer_segments == 80 and run.ccs == ("bbr1", "bbr1", "cubic")
    # 2 RTT BDP are 8 BDP of a link of a quarter of the RTT.
    assert run.buffer_link_bdp == pytest.approx(8)
    assert (run.duration_ms, run.window_start_ms, run.period_ages_s) == (9000, 4000, (0, 0, 0))
    tiny = contest_fluid_run(contest(rate_bps=1e5, rtt_s=0.01, buffer_bdp=0.1))
    assert tiny.buffer_segments == 1


def test_results_of_the_published_model_are_shares_of_capacity() -> None:
    run = published_run(2, 20, 1, ["bbr1", "reno"], 10, (5, 5), duration_s=0.4,
                        truncate_front_s=0.1)  # fmt: skip
    (found,) = run_fluid([run], 1)
    assert found.sending_rate_seg_per_ms == pytest.approx(
        [share * run.capacity_seg_per_ms for share in found.sending_share]
    )
    assert found.ifip_mbps() == pytest.approx([10 * x for x in found.sending_rate_seg_per_ms])
    assert found.share_of("reno") == found.delivery_share[1]
    assert found.share_of("bbr1", delivered=False) == found.sending_share[0]
    assert found.occupancy == pytest.approx(found.queue_segments / run.buffer_segments)


def plan(**more: Any) -> dict[str, Any]:
    path = {"rate": "12mbit", "rtt": "40ms", "buffer": "2bdp", **more.pop("path", {})}
    flows = more.pop("flow", [{"cc": "bbr1"}, {"cc": "cubic", "start": "500ms"}])
    return resolve(make_scenario({"duration": "30s", "path": path, "flow": flows, **more}))


def test_a_plan_is_read_in_base_units() -> None:
    found = read_plan(plan(flow=[{"cc": "bbr1"}, {"cc": "cubic", "rtt": "60ms", "start": "500ms"}]))
    assert (found.rate_bps, found.aqm, found.duration_s, found.seed) == (12e6, "drop_tail", 30, 1)
    assert found.rtts_s == pytest.approx((0.04, 0.06)) and found.starts_s == (0, 0.5)
    assert found.buffer_bytes == 120_000 and found.ccs == ("bbr1", "cubic")
    packets = read_plan(plan(path={"buffer": "10pkt"}))
    assert packets.buffer_bytes == 15_140
    both = plan()
    both["path"]["qdisc"] = {**both["path"]["qdisc"], "limit_bytes": 20_000, "limit_packets": 10}
    assert read_plan(both).buffer_bytes == 15_140
    assert read_plan(plan(path={"qdisc": "red"})).aqm == "red"
    assert read_plan(plan(flow=[{"cc": "bbr3-linux"}])).ccs == ("bbr3",)


@pytest.mark.parametrize(
    "more",
    [
        {"path": {"qdisc": "codel"}}, {"path": {"loss": "1%"}}, {"path": {"reverse_loss": "1%"}},
        {"path": {"jitter": "1ms"}}, {"flow": [{"cc": "cubic", "direction": "down"}]},
        {"flow": [{"cc": "cubic", "jitter": "1ms"}]}, {"flow": [{"cc": "tarn"}]},
        {"udp": [{"rate": "1mbit"}]},
    ],
)  # fmt: skip
def test_what_no_model_knows_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        read_plan(plan(**more))
    assert predict(plan(**more)) == []


@pytest.mark.parametrize(
    ("more", "caution"),
    [
        ({"flow": [{"cc": "cubic", "amount": "1MB"}]}, "greedy_flows"),
        ({"flow": [{"cc": "cubic", "app_rate": "1mbit"}]}, "greedy_flows"),
        ({"flow": [{"cc": "cubic", "stop": "3s"}]}, "greedy_flows"),
        ({"flow": [{"cc": "cubic", "receive_window": "64KB"}]}, "greedy_flows"),
        ({"path": {"qdisc": "red"}}, "idealised_red"),
        ({"path": {"reverse_rate": "5mbit"}}, "one_bottleneck"),
        ({"path": {"mtu": 1400}}, "full_sized_frames"),
        ({"path": {"ecn": True}}, "no_ecn"),
    ],
)
def test_what_models_ignore_is_said(more: dict[str, Any], caution: str) -> None:
    assert names(read_plan(plan()).cautions) == []
    assert caution in names(read_plan(plan(**more)).cautions)


def test_a_plan_for_the_published_model_is_sorted_and_split() -> None:
    flows = [{"cc": "reno"}, {"cc": "bbr1", "rtt": "60ms"}, {"cc": "cubic"}]
    run, order, cautions = fluid_run(read_plan(plan(flow=flows)), 3)
    assert order == [1, 2, 0] and run.ccs == ("bbr1", "cubic", "reno")
    # A quarter of 40 ms is the link; the rest of each half is before it.
    assert run.link_delay_ms == pytest.approx(10)
    assert run.access_delays_ms == pytest.approx((20, 10, 10))
    assert (run.duration_ms, run.window_start_ms) == (30_000, 3000)
    assert "common_start" not in names(cautions)
    _, _, cautions = fluid_run(read_plan(plan()), 3)
    assert "common_start" in names(cautions)
    with pytest.raises(UserError):
        fluid_run(read_plan(plan(flow=[{"cc": "bbr3"}])), 0)
    extended, _ = extended_run(read_plan(plan(flow=[{"cc": "bbr3"}, {"cc": "cubic"}])), 3)
    assert (extended.window_start_s, extended.duration_s) == (3, 30)
    assert extended.rtts_s == pytest.approx((0.04, 0.04))
    for bad in ({"flow": [{"cc": "bbr1"}]}, {"flow": [{"cc": "cubic"}], "path": {"qdisc": "red"}}):
        with pytest.raises(UserError):
            extended_run(read_plan(plan(**bad)), 0)


def test_a_scenario_of_two_groups_has_a_steady_state() -> None:
    flows = [{"cc": "bbr1", "count": 2}, {"cc": "cubic"}]
    found = {one.model: one for one in predict(plan(flow=flows, duration="100s"), 1)}
    steady = found["steady state of BBRv1"]
    expected = bbr1_share(contest(flows=2))
    assert steady.shares == {"bbr1": pytest.approx(expected.share)} and steady.cautions == ()
    assert (steady.queue_bytes, steady.loss, steady.jain_index) == (None, None, None)
    v3 = [{"cc": "bbr3"}, {"cc": "reno"}]
    for duration, told in (("5s", ["horizon_includes_probe_rtt"]), ("5.1s", ["long_horizon"]),
                           ("49.9s", ["long_horizon"]), ("50s", [])):  # fmt: skip
        short = predict(plan(flow=v3, duration=duration), 1)
        assert names(short[0].cautions) == told
    steady = predict(plan(flow=v3, duration="50s"))[0]
    expected_v3 = bbr3_share(contest(cc="bbr3", against="reno"))
    assert steady.model == "steady state of BBRv3"
    assert steady.shares == {"bbr3": pytest.approx(expected_v3.share)}


@pytest.mark.parametrize(
    "more",
    [
        {"flow": [{"cc": "bbr1"}, {"cc": "cubic"}, {"cc": "reno"}]}, {"flow": [{"cc": "bbr1"}]},
        {"flow": [{"cc": "cubic"}, {"cc": "reno"}]}, {"flow": [{"cc": "bbr1"}, {"cc": "bbr3"}]},
        {"flow": [{"cc": "bbr1"}, {"cc": "cubic", "rtt": "60ms"}]},
        {"flow": [{"cc": "bbr1"}, {"cc": "cubic", "start": "500ms"}]}, {"path": {"qdisc": "red"}},
    ],
)  # fmt: skip
def test_other_scenarios_have_none(more: dict[str, Any]) -> None:
    found = predict(plan(**{"duration": "1s", "flow": [{"cc": "bbr1"}, {"cc": "cubic"}], **more}))
    assert not [one for one in found if one.model.startswith("steady")]


def test_predictions_are_in_bytes_goodput_and_by_name() -> None:
    flows = [{"cc": "bbr3"}, {"cc": "cubic", "count": 2}]
    (steady, extended) = predict(plan(flow=flows, duration="8s"), 4)
    reading = read_plan(plan(flow=flows, duration="8s"))
    run, _ = extended_run(reading, 4)
    (expected,) = run_extended([run], (1,))
    assert extended.queue_bytes == pytest.approx(expected.queue_segments * 1514)
    assert extended.shares["cubic"] == pytest.approx(sum(expected.goodput_share[1:]))
    pairs = list(zip(expected.loss, expected.wire_share, strict=True))
    assert extended.loss == pytest.approx(
        sum(loss * share for loss, share in pairs) / sum(expected.wire_share)
    )
    assert steady.model == "steady state of BBRv3"
    fluids = predict(plan(flow=[{"cc": "reno"}, {"cc": "bbr1"}], duration="0.5s"), 0.3)
    fluid = fluids[-1]
    # Of 0.5 s the window begins at 4/9, before the warm-up of 0.3 s ends.
    run2, order, _ = fluid_run(read_plan(
        plan(flow=[{"cc": "reno"}, {"cc": "bbr1"}], duration="0.5s")), 0.5 * 4 / 9)  # fmt: skip
    (expected2,) = run_fluid([run2])
    assert fluid.model == "fluid model" and order == [1, 0]
    assert fluid.shares["bbr1"] == pytest.approx(expected2.delivery_share[0] * 1448 / 1514)
    assert fluid.queue_bytes == pytest.approx(expected2.queue_segments * 1514)


def test_a_share_is_by_the_model_that_fits_best_unless_told() -> None:
    assert version_of("kernel:bbr") == "bbr1" and version_of("BBR3-Linux") == "bbr3"
    found = predict_share(contest(cc="bbr"))
    assert found.model == "steady state of BBRv1"
    assert found.share == pytest.approx(bbr1_share(contest()).share)
    assert found.details["probe_time"] == pytest.approx(0.032)
    v3 = predict_share(contest(cc="bbr3"), "steady")
    assert v3.share == pytest.approx(bbr3_share(contest(cc="bbr3")).share)
    for cc, model in (("bbr2", "steady"), ("bbr3", "fluid"), ("bbr1", "extended"), ("bbr1", "x")):
        with pytest.raises(UserError):
            predict_share(contest(cc=cc), model)
    with pytest.raises(UserError):
        version_of("cubic")


HEAD = "figure,bbr_version,loss_cca,capacity_mbps,rtt_ms,n_bbr,buffer_bdp,link_share\n"


def test_observed_shares_are_read_in_base_units(tmp_path: Path) -> None:
    file = tmp_path / "seen.csv"
    file.write_text(HEAD + "2a,v1,cubic,50,40,2,1.5,0.75\n2a,v3,reno,50,40,1,2,1\n"
                    "2a,v1,cubic,50,40,2,3,0\n")  # fmt: skip
    one, other = read_observed(file)
    assert (one.figure, one.version, len(one.points)) == ("2a", "bbr1", 2)
    assert (other.version, other.points[0].share) == ("bbr3", 1)
    point = one.points[0]
    assert point.contest == contest(flows=2, rate_bps=50e6, buffer_bdp=1.5) and point.share == 0.75
    for bad in (
        "2a,v4,cubic,50,40,2,1,0.5", "2a,v1,cubic,50,40,2,1,1.01", "2a,v1,cubic,50,40,2,1,-0.01",
        "2a,v1,cubic,50,40,1.5,1,0.5", "2a,v1,cubic,x,40,2,1,0.5", "2a,v1,cubic,50,40,0,1,0.5",
        "2a,v1,bbr1,50,40,1,1,0.5", "2a,v1,cubic,inf,40,1,1,0.5",
    ):  # fmt: skip
        file.write_text(HEAD + bad + "\n")
        with pytest.raises(UserError, match="line 2"):
            read_observed(file)
    file.write_text(HEAD)
    with pytest.raises(UserError, match="no observations"):
        read_observed(file)
    file.write_text(HEAD.replace("n_bbr", "n"))
    with pytest.raises(UserError, match="column n_bbr is missing"):
        read_observed(file)


def test_errors_of_models_are_mean_squares() -> None:
    points = tuple(Observation(contest(), share) for share in (0.5, 0.7))
    panel, other = Panel("2a", points), Panel("9", points[:1])
    line = Line("m", panel, (0.6, 0.5))
    assert line.squared_errors == pytest.approx((0.01, 0.04)) and line.mse == pytest.approx(0.025)
    found = Validation((line, Line("m", other, (0.5,))))
    assert found.overall() == {("m", "bbr1"): (pytest.approx(0.05 / 3), 3)}
    assert found.missing_panels() == ["2b", "2c"]
