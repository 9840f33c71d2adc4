"""Backlog, loss, latency under load, slowdown and steadiness, against figures done by hand."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from fullpipe.metrics import (
    View,
    added_latency_ms,
    backlog,
    cdf,
    coefficient_of_variation,
    convergence_time_s,
    idle_latency_ms,
    jain_over_time,
    latency_under_load_ms,
    queue_delay_ms,
    slowdown,
)
from made_recordings import flow, of_a_link, queue, recorded, samples


def test_backlog_is_bytes_and_share_of_time_not_an_integral(tmp_path: Path) -> None:
    # As in ahsan2026's CAKE runs: nearly always empty, one large sample.
    lengths = [0, 0, 0, 60_000, 0, 0, 20_000, 0, 0, 0]
    found = backlog(recorded(tmp_path, queue_samples=queue(lengths)))
    assert (found.max_bytes, found.mean_bytes, found.share_nonzero) == (60_000, 8_000, 0.2)


def test_backlog_leaves_the_warm_up_out(tmp_path: Path) -> None:
    lengths = [90_000, 90_000, 10_000, 30_000]
    found = backlog(recorded(tmp_path, 2, queue_samples=queue(lengths)))
    assert (found.max_bytes, found.mean_bytes, found.share_nonzero) == (30_000, 20_000, 1)
    assert np.isnan(backlog(recorded(tmp_path / "none")).max_bytes)


def test_queueing_delay_is_backlog_over_rate_and_its_cdf_rises_to_one(tmp_path: Path) -> None:
    view = recorded(tmp_path, queue_samples=queue([0, 1_000, 5_000, 1_000]))
    delays = queue_delay_ms(view)
    assert delays == pytest.approx([0, 1, 5, 1])
    points, shares = cdf(delays)
    assert points == pytest.approx([0, 1, 5]) and shares == pytest.approx([0.25, 0.75, 1])
    assert cdf(np.array([np.nan]))[0].size == 0


def test_a_link_whose_rate_changes_is_measured_by_the_rates_that_it_had(tmp_path: Path) -> None:
    # 8 Mbit/s, 4 from 4 s on, none from 6 s on, 16 from 7 s on: 32 + 8 + 0 + 48 Mbit in 10 s.
    steps = [[4 * 10**9, 4_000_000], [6 * 10**9, 0], [7 * 10**9, 16_000_000]]
    backlog = [0, 0, 1_500_000, 0, 0, 1_000_000, 0, 0, 0, 1_000_000]
    sent = [0] * 9 + [5_500_000]
    rows = queue(backlog, sent_bytes=sent)
    view = recorded(tmp_path, plan=of_a_link(rate_steps=steps), queue_samples=rows)
    assert view.path_metrics["utilisation"] == pytest.approx(0.5)
    assert view.mean_rate_bps == pytest.approx(8.8e6)
    # At 3 s 12 Mbit: 8 in a second, 4 in the next. At 6 s 8 Mbit: an outage, and half a second.
    delays_ms = queue_delay_ms(view)
    assert delays_ms == pytest.approx([0, 0, 2000, 0, 0, 1500, 0, 0, 0, 500])
    assert view.path_metrics["queue_delay_max_rttmin"] == pytest.approx(100)
    assert view.path_metrics["queue_delay_max_ms"] == pytest.approx(2000)


def test_a_backlog_that_never_drains_has_no_delay(tmp_path: Path) -> None:
    rows = queue([1_000_000, 1_000_000, 1_000_000])
    plan = of_a_link(rate_steps=[[2 * 10**9, 0]])
    view = recorded(tmp_path, plan=plan, queue_samples=rows)
    assert queue_delay_ms(view)[0] == pytest.approx(1000)
    assert np.isnan(queue_delay_ms(view)[1:]).all()
    assert np.isnan(view.path_metrics["queue_delay_max_ms"])


def test_a_link_of_a_trace_is_measured_by_its_opportunities(tmp_path: Path) -> None:
    # Every 10 ms one packet of 1514 bytes, and two at the end of a second.
    file = tmp_path / "trace"
    file.write_text("".join(f"{10 * number}\n" for number in [*range(1, 101), 100]))
    known = {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    plan = of_a_link(rate_trace=known)
    rows = queue([0, 3 * 1514, 101 * 1514, 0], sent_bytes=[0, 0, 0, 2 * 101 * 1514])
    view = recorded(tmp_path, plan={**plan, "duration_ns": 4 * 10**9}, queue_samples=rows)
    # 202 packets. In four seconds there are 404 opportunities, but the last two come after the
    # sample at 4 s.
    assert view.path_metrics["utilisation"] == pytest.approx(202 / 402)
    # Two packets may leave at the time of the sample, and one every 10 ms after it.
    assert queue_delay_ms(view) == pytest.approx([0, 10, 990, 0])
    # Another file of that name says nothing of this run.
    file.write_text("1\n")
    other = View(view.recording)
    assert np.isnan(other.path_metrics["utilisation"]) and np.isnan(queue_delay_ms(other)).all()


def test_loss_counts_drops_and_random_loss_over_what_was_offered(tmp_path: Path) -> None:
    view = recorded(
        tmp_path, 1,
        queue_samples=queue([0, 0, 0], sent_packets=[100, 500, 990],
                            dropped_packets=[7, 10, 17], random_lost_packets=[3, 40, 103]),
    )  # fmt: skip
    # After the first second: 890 sent on, 10 dropped, 100 lost; 110 of 1000.
    assert view.path_metrics["loss_ratio"] == pytest.approx(0.11)


def test_retransmissions_are_a_share_of_what_each_flow_sent(tmp_path: Path) -> None:
    view = recorded(
        tmp_path, 1, flows=[flow(0), flow(1)],
        flow_samples=samples(0, [0, 0], packets_sent=[50, 150], packets_retransmitted=[5, 10])
        + samples(1, [0, 0], packets_sent=[10, 310], packets_retransmitted=[0, 15]),
    )  # fmt: skip
    ratios = [flow["retransmit_ratio"] for flow in view.flow_metrics]
    assert ratios == pytest.approx([0.05, 0.05])
    # Within the window, which begins with the first sample.
    assert [flow["retransmitted_packets"] for flow in view.flow_metrics] == [5, 15]
    assert view.run_metrics["retransmit_ratio"] == pytest.approx(20 / 400)
    silent = recorded(tmp_path / "silent", flows=[flow(0)])
    assert np.isnan(silent.run_metrics["retransmit_ratio"])


def test_latency_under_load_counts_probes_while_flows_were_at_work(tmp_path: Path) -> None:
    rtts_ms = [20, 22, 60, 80, None, 24]
    pings = [
        {"t_us": second * 1_000_000, "probe": "ping", "seq": second,
         "rtt_us": None if rtt is None else rtt * 1000}
        for second, rtt in enumerate(rtts_ms)
    ]  # fmt: skip
    view = recorded(
        tmp_path, flows=[flow(0, start_us=2_000_000, completion_us=5_000_000)], ping_samples=pings
    )
    assert latency_under_load_ms(view) == pytest.approx([60, 80])
    assert idle_latency_ms(view) == pytest.approx(21)
    assert added_latency_ms(view) == pytest.approx([39, 59])


def test_without_probes_before_the_load_the_base_rtt_stands_for_them(tmp_path: Path) -> None:
    pings = [{"t_us": 3_000_000, "probe": "ping", "seq": 0, "rtt_us": 50_000}]
    view = recorded(tmp_path, flows=[flow(0)], ping_samples=pings)
    view.end_s = 10.0
    assert idle_latency_ms(view) == pytest.approx(20)
    assert added_latency_ms(view) == pytest.approx([30])


def test_slowdown_is_completion_over_the_ideal(tmp_path: Path) -> None:
    # 144,800 B are 100 packets of 1514 B: 151.4 ms at 1 MB/s, and 1.5 RTTs of 20 ms: 181.4 ms.
    row = flow(0, bytes_delivered=144_800, completion_us=362_800)
    assert slowdown(recorded(tmp_path, flows=[row])) == pytest.approx([2.0])


def test_variation_is_the_windows_standard_deviation_over_their_mean(tmp_path: Path) -> None:
    # 1, 3, 1, 3 MB a second: mean 2, standard deviation (n - 1) 2 / sqrt(3).
    delivered = samples(0, [1_000_000, 4_000_000, 5_000_000, 8_000_000])
    view = recorded(tmp_path, flows=[flow(0)], flow_samples=delivered)
    assert coefficient_of_variation(view) == pytest.approx([1 / np.sqrt(3)])


def test_convergence_counts_from_the_last_start_to_the_last_unfair_window(tmp_path: Path) -> None:
    # The second flow starts at 2 s and gets 0.1, 0.2 and then all that the first gets.
    first = [1_000_000 * n for n in range(1, 11)]
    shares = [0, 0, 0.1, 0.2, 1, 1, 1, 1, 1, 1]
    second = [int(1_000_000 * sum(shares[: n + 1])) for n in range(10)]
    view = recorded(
        tmp_path, flows=[flow(0), flow(1, start_us=2_000_000)],
        flow_samples=samples(0, first) + samples(1, second),
    )  # fmt: skip
    _, values = jain_over_time(view)
    by_hand = [1, 1, 1.1**2 / (2 * 1.01), 1.2**2 / (2 * 1.04), *[1] * 6]
    assert values == pytest.approx(by_hand, rel=1e-6)
    assert convergence_time_s(view, threshold=0.9) == pytest.approx(2)
    assert convergence_time_s(view, threshold=0.9, hold_s=7) is None
