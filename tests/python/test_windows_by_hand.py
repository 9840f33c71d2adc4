"""Throughput, fairness and the window that counts, against figures done by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fullpipe.metrics import (
    View,
    coefficient_of_variation,
    completion_s,
    convergence_time_s,
    flow_groups,
    goodput_bps,
    jain,
    jain_over_time,
    latency_under_load_ms,
    link_share,
    phase_shares,
    ping_ms,
    queue_delay_rttmin,
    slowdown,
    summarise,
    throughput_over_time,
)
from fullpipe.metrics.flows import spread
from fullpipe.metrics.harm import harm
from fullpipe.metrics.summary import has_names
from fullpipe.metrics.titles import title_of
from made_recordings import flow, of_a_link, queue, recorded, samples

MB = 1_000_000


def test_harm_is_what_is_lost_over_what_there_was() -> None:
    # Ware et al., HotNets 2019: (alone - beside) / alone, or (beside - alone) / beside.
    assert harm(10, 4, "more") == pytest.approx(0.6)
    assert harm(10, 12, "more") == pytest.approx(-0.2)
    assert harm(10, 40, "less") == pytest.approx(0.75)
    assert harm(40, 10, "less") == pytest.approx(-3)
    assert math.isnan(harm(0, 1, "more")) and math.isnan(harm(0, 0, "less"))
    assert harm(10, 0, "more") == 1
    # A download that never ends leaves nothing; one that did not end alone says nothing.
    assert harm(10, math.inf, "less") == 1
    assert math.isnan(harm(math.inf, math.inf, "less"))


def test_jains_index_by_hand() -> None:
    assert jain(np.array([1.0, 1, 1])) == pytest.approx(1)
    assert jain(np.array([3.0, 0, 0])) == pytest.approx(1 / 3)
    assert jain(np.array([1.0, 3, math.nan])) == pytest.approx(16 / (2 * 10))
    assert math.isnan(jain(np.array([]))) and math.isnan(jain(np.array([0.0, 0])))


def test_a_spread_has_what_its_keys_name_of_the_known_values() -> None:
    values = np.array([1.0, 2, 3, 4, 5, math.nan])
    keys = ("max", "mean", "min", "p5", "p50", "p95", "p99")
    assert spread(values, keys) == pytest.approx(
        {"max": 5, "mean": 3, "min": 1, "p5": 1.2, "p50": 3, "p95": 4.8, "p99": 4.96}
    )
    assert list(spread(values, keys)) == list(keys)
    assert spread(np.array([math.nan]), ("mean", "p50")) == {"mean": None, "p50": None}


def test_throughput_is_bytes_in_whole_windows_times_eight(tmp_path: Path) -> None:
    rows = samples(0, [1 * MB, 3 * MB, 6 * MB, 10 * MB, 15 * MB])
    view = recorded(tmp_path, flows=[flow(0), flow(1)], flow_samples=rows)
    ends, rates = throughput_over_time(view, 2)
    # The fifth second makes no whole window; the second flow delivered nothing.
    assert ends == pytest.approx([2, 4])
    assert rates.tolist() == [[12e6, 28e6], [0, 0]]
    ends, rates = throughput_over_time(view)
    assert rates[0] == pytest.approx([8e6, 16e6, 24e6, 32e6, 40e6])


def test_windows_begin_after_the_warm_up(tmp_path: Path) -> None:
    rows = samples(0, [1 * MB, 3 * MB, 6 * MB, 10 * MB])
    view = recorded(tmp_path, 2, flows=[flow(0)], flow_samples=rows)
    ends, rates = throughput_over_time(view)
    assert ends == pytest.approx([3, 4]) and rates[0] == pytest.approx([24e6, 32e6])
    assert goodput_bps(view) == pytest.approx([8 * 7 * MB / 2])
    part = view.between(1, 3)
    assert throughput_over_time(part)[1][0] == pytest.approx([16e6, 24e6])


def test_fairness_counts_flows_that_started_before_a_window_and_ended_after_it(
    tmp_path: Path,
) -> None:
    rows = samples(0, [1 * MB, 2 * MB, 3 * MB, 4 * MB]) + samples(1, [0, 3 * MB, 6 * MB, 6 * MB])
    flows = [flow(0), flow(1, start_us=1_000_000, completion_us=3_000_000)]
    _, values = jain_over_time(recorded(tmp_path, flows=flows, flow_samples=rows))
    # 1; (1 + 3)^2 / (2 x 10) twice; the second flow has gone.
    assert values == pytest.approx([1, 0.8, 0.8, 1])
    late = [flow(0, start_us=1_500_000)]
    _, values = jain_over_time(recorded(tmp_path / "late", flows=late, flow_samples=rows[:4]))
    assert np.isnan(values[:2]).all() and values[2:] == pytest.approx([1, 1])


def test_convergence_needs_the_threshold_to_hold_to_the_end_for_so_long(tmp_path: Path) -> None:
    # Jain of 1 and 0.5: 0.9 exactly; of 1 and 0.4: 0.845.
    second = [0.4, 0.5, 0.5, 0.5]
    one = [MB * (n + 1) for n in range(4)]
    other = [int(MB * sum(second[: n + 1])) for n in range(4)]
    rows = samples(0, one) + samples(1, other)
    view = recorded(tmp_path, flows=[flow(0), flow(1)], flow_samples=rows)
    assert convergence_time_s(view, 0.9 - 1e-9, hold_s=3) == pytest.approx(1)
    assert convergence_time_s(view, 0.9 - 1e-9, hold_s=3.1) is None
    assert convergence_time_s(view, 0.91, hold_s=1) is None
    assert convergence_time_s(view, 0.8, hold_s=4) == pytest.approx(0)
    # By default 5 s, and this run has 4.
    assert convergence_time_s(view, 0.8) is None
    # Windows before the last start do not count, however fair they were.
    even = samples(0, one) + samples(1, [0, 0, MB, 2 * MB])
    late = recorded(tmp_path / "late", flows=[flow(0), flow(1, start_us=2 * MB)], flow_samples=even)
    assert convergence_time_s(late, 0.9, hold_s=2) == 0
    assert convergence_time_s(late, 0.9, hold_s=2.1) is None


def test_variation_is_of_whole_windows_in_which_a_flow_was_active(tmp_path: Path) -> None:
    rows = samples(0, [1 * MB, 4 * MB, 5 * MB, 8 * MB, 8 * MB])
    flows = [flow(0, start_us=1_000_000, completion_us=4_000_000), flow(1)]
    rows += samples(1, [0] * 5)
    view = recorded(tmp_path, flows=flows, flow_samples=rows)
    found = coefficient_of_variation(view)
    # 3, 1, 3 MB: mean 7/3, variance (n - 1) 4/3.
    assert found[0] == pytest.approx(math.sqrt(4 / 3) / (7 / 3)) and math.isnan(found[1])
    one = [flow(0, start_us=3_000_000, completion_us=4_000_000)]
    view = recorded(tmp_path / "one", flows=one, flow_samples=rows[:5])
    assert np.isnan(coefficient_of_variation(view)).all()
    two = [flow(0, start_us=2_000_000, completion_us=4_000_000)]
    view = recorded(tmp_path / "two", flows=two, flow_samples=rows[:5])
    # 1 and 3 MB: mean 2, standard deviation (n - 1) sqrt(2).
    assert coefficient_of_variation(view) == pytest.approx([math.sqrt(2) / 2])


def test_the_share_of_a_link_is_goodput_over_what_it_could_carry(tmp_path: Path) -> None:
    rows = samples(0, [MB // 4] * 2) + samples(1, [MB // 2] * 2) + samples(2, [MB // 8] * 2)
    flows = [flow(0), flow(1, cc="cubic"), flow(2)]
    view = recorded(tmp_path, flows=flows, flow_samples=rows)
    # 8 Mbit/s for 2 s are 2 MB.
    assert link_share(view, "bbr3") == pytest.approx(3 / 16)
    assert link_share(view, "cubic") == pytest.approx(1 / 4)


def test_completion_counts_from_the_flows_own_start(tmp_path: Path) -> None:
    flows = [flow(0, start_us=2_000_000, completion_us=3_500_000, bytes_delivered=MB), flow(1)]
    view = recorded(tmp_path, flows=flows, flow_samples=samples(0, [0] * 4))
    found = completion_s(view)
    assert found[0] == pytest.approx(1.5) and math.isnan(found[1])
    # 1 MB of payload is 1514/1448 MB on the wire, at 1 MB/s.
    assert slowdown(view)[0] == pytest.approx(1.5 / (1514 / 1448 + 0.03))


def test_phases_are_shares_of_a_flows_samples_in_the_window(tmp_path: Path) -> None:
    names = ["startup", "drain", "up", "up"]
    rows = [{"t_us": (n + 1) * MB, "flow_id": 0, "phase": name} for n, name in enumerate(names)]
    more = [{"t_us": MB, "flow_id": 1, "phase": "down"}]
    ticks = samples(0, [0] * 4)
    view = recorded(tmp_path, flows=[flow(0), flow(1)], cc_samples=rows + more, flow_samples=ticks)
    assert phase_shares(view, 0) == {"startup": 0.25, "drain": 0.25, "up": 0.5}
    assert phase_shares(view, 1) == {"down": 1.0}
    later = view.between(2, 4)
    assert phase_shares(later, 0) == {"up": 1.0} and phase_shares(later, 1) == {}


def test_pings_are_in_ms_and_lost_ones_left_out(tmp_path: Path) -> None:
    rtts = [None, 21_500, 40_000]
    pings = [{"t_us": n * MB + MB, "probe": "a", "seq": n, "rtt_us": rtts[n]} for n in range(3)]
    ticks = samples(0, [0] * 3)
    view = recorded(tmp_path, 1, flows=[flow(0)], ping_samples=pings, flow_samples=ticks)
    assert ping_ms(view) == pytest.approx([21.5, 40])


def test_load_begins_with_a_flow_and_ends_with_it(tmp_path: Path) -> None:
    pings = [{"t_us": n * MB, "probe": "a", "seq": n, "rtt_us": 1000 * n} for n in range(6)]
    flows = [flow(0, start_us=2 * MB, completion_us=4 * MB)]
    ticks = samples(0, [0] * 5)
    view = recorded(tmp_path, flows=flows, ping_samples=pings, flow_samples=ticks)
    # Sent at the start: under load; sent at the end: not.
    assert latency_under_load_ms(view) == pytest.approx([2, 3])


def test_a_delay_in_base_rtts_is_backlog_over_rate_over_the_rtt(tmp_path: Path) -> None:
    view = recorded(tmp_path, queue_samples=queue([0, 10_000, 20_000, 60_000]))
    # 1 MB/s and 20 ms: 20,000 B are one RTT.
    assert queue_delay_rttmin(view) == pytest.approx([0, 0.5, 1, 3])
    assert view.rtt_min_s == pytest.approx(0.02) and view.rate_bps == 8e6


def test_a_flow_is_active_from_its_start_to_its_end_within_the_window(tmp_path: Path) -> None:
    flows = [
        flow(0, start_us=2 * MB, completion_us=3 * MB), flow(1, start_us=0),
        flow(2, start_us=0, completion_us=MB // 2), flow(3, start_us=9 * MB),
    ]  # fmt: skip
    view = recorded(tmp_path, 1, flows=flows, flow_samples=samples(0, [0] * 5))
    assert [view.active_s(n) for n in range(4)] == [(2, 3), (1, 5), (1, 1), (9, 9)]


def test_a_window_excludes_its_start_and_includes_its_end(tmp_path: Path) -> None:
    rows = samples(0, [1, 2, 3, 4]) + samples(2, [5, 6, 7, 8])
    view = recorded(tmp_path, 1, flows=[flow(0)], flow_samples=rows).between(1, 3)
    assert view.flow_samples(0)["t_us"].tolist() == [2 * MB, 3 * MB]
    assert view.flow_samples(2)["bytes_delivered"].tolist() == [6, 7]
    assert view.flow_samples(1)["t_us"].size == 0
    assert view.samples("flow_samples")["flow_id"].tolist() == [0, 0, 2, 2]
    assert (view.start_s, view.end_s) == (1, 3)
    whole = View(view.recording)
    assert (whole.start_s, whole.end_s) == (1, 4)
    # No later than the plan's end.
    assert whole.between(0, 99).end_s == 4


def test_downloads_make_the_reverse_queue_the_bottleneck(tmp_path: Path) -> None:
    plan = of_a_link()
    reverse = {"rate_bps": 4_000_000, "qdisc": {"limit_bytes": 5}}
    medium = {**plan["links"][0]["medium"], "reverse": reverse}
    plan = {**plan, "links": [{"name": "path", "medium": medium}]}
    down = recorded(tmp_path, plan=plan, flows=[flow(0, direction="down")])
    assert (down.main_queue, down.rate_bps) == ("reverse", 4e6)
    assert down.main_qdisc == {"limit_bytes": 5} and list(down.bottlenecks) == ["down"]
    both = recorded(tmp_path / "both", plan=plan, flows=[flow(0), flow(1, direction="down")])
    assert both.main_queue == "forward" and list(both.bottlenecks) == ["up", "down"]


def test_flows_of_an_entry_are_a_group(tmp_path: Path) -> None:
    flows = [flow(0, flow="web.1"), flow(1, flow="web.2"), flow(2, flow="bulk")]
    text = "[[flow]]\ncount = 2\n[[flow]]\n"
    view = recorded(tmp_path, flows=flows, scenario=text)
    assert [(one.name, one.members) for one in flow_groups(view)] == [
        ("web.1-2", (0, 1)), ("bulk", (2,)),
    ]  # fmt: skip
    for number, bad in enumerate(
        ("", "[[flow]]\ncount = 2\n", "flow = 3\n", "[[flow]]\ncount=0\n")
    ):
        view = recorded(tmp_path / str(number), flows=flows, scenario=bad)
        assert [one.members for one in flow_groups(view)] == [(0,), (1,), (2,)]


def test_a_summary_has_counts_as_integers_and_null_for_what_is_not_there(tmp_path: Path) -> None:
    rows = samples(0, [MB, 2 * MB], packets_sent=[9, 20], packets_retransmitted=[0, 5],
                   srtt_us=[30_000, 50_000], min_rtt_us=[21_000, 20_500])  # fmt: skip
    view = recorded(
        tmp_path, 0, flows=[flow(0, completion_us=1_500_000)], flow_samples=rows,
        queue_samples=queue([0, 0], sent_packets=[1, 2], dropped_packets=[0, 3]),
        metadata={"seed": 7, "interrupted": True, "failure": "why"},
    )  # fmt: skip
    found = summarise(view.recording)
    assert (found["engine"], found["seed"], found["scenario"]) == ("sim", 7, "by hand")
    assert (found["interrupted"], found["failure"]) == (True, "why")
    (one,) = found["flows"]
    assert (one["flow"], one["cc"], one["direction"]) == ("f0", "bbr3", "up")
    # The flow ended at 1.5 s: what was sampled after it does not count.
    assert one["rtt_us"]["min"] == 21_000 and one["rtt_us"]["mean"] == 30_000
    assert one["retransmitted_packets"] == 5 and type(one["retransmitted_packets"]) is int
    assert found["ping_ms"]["p50"] is None and type(found["path"]["drops"]) is int
    assert found["path"]["queue"] == "forward" and found["links"] == []
    assert [group["group"] for group in found["groups"]] == ["f0"]
    assert "pages" not in found and "traffic" not in found
    assert not has_names([{"link": "path"}]) and has_names([{"link": "path"}, {"link": "wan"}])


@pytest.mark.parametrize(
    ("metric", "title", "divisor"),
    [
        ("queue_delay_p95_rttmin", "Queueing delay, 95th percentile (RTTmin)", 1),
        ("goodput_all_bps", "Goodput, all flows (Mbit/s)", 1e6),
        ("queue_bytes_max", "Backlog, maximum (KiB)", 1024),
        ("loss_ratio", "Loss (%)", 0.01),
        ("rtt_p50_us", "Smoothed RTT, median (ms)", 1e3),
        ("ping_p99_ms", "Ping RTT, 99th percentile (ms)", 1),
        ("completion_mean_s", "Completion time, mean (s)", 1),
        ("cwnd_mean_packets", "Congestion window, mean (packets)", 1),
        ("jain", "Jain's index", 1),
        ("share", "Share of goodput", 1),
        ("my_own_thing", "my own thing", 1),
    ],
)
def test_a_metrics_title_names_quantity_statistic_and_unit(
    metric: str, title: str, divisor: float
) -> None:
    assert title_of(metric) == (title, divisor)
