"""The simulator held against formulas: RFC 5681's square root, RFC 9438's table, seed 004."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers import column, simulate

MSS_BYTES = 1448


@pytest.mark.parametrize("policy", ["every_packet", "linux"])
@pytest.mark.parametrize("loss", [0.001, 0.005, 0.01])
def test_reno_under_random_loss_follows_the_square_root_formula(policy: str, loss: float) -> None:
    # MSS/RTT sqrt(3 / (2 b p)). Linux counts acknowledged packets, not ACKs (RFC 3465), so b is 1
    # whatever the ACK policy.
    rates = []
    for seed in range(1, 4):
        raw = simulate(
            duration="600s", seed=seed, sample_interval="100s",
            path={"rate": "1gbit", "rtt": "40ms", "buffer": "100bdp", "loss": loss},
            flow=[{"cc": "reno"}], host={"ack_policy": policy},
        )  # fmt: skip
        rates.append(8 * int(column(raw, "flows", "bytes_delivered")[0]) / 600)
    expected = 8 * MSS_BYTES / 0.04 * math.sqrt(3 / (2 * loss))
    assert np.mean(rates) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("rtt", "loss", "window"),
    [
        # RFC 9438 section 5.1, tables 1 and 2, C = 0.4: RTT 0.1 s and 0.01 s.
        ("100ms", 1e-2, 12), ("100ms", 1e-5, 1054),
        ("10ms", 1e-3, 38), ("10ms", 1e-4, 120), ("10ms", 1e-5, 379),
    ],
)  # fmt: skip
def test_cubic_under_random_loss_has_the_window_of_the_rfc(
    rtt: str, loss: float, window: float
) -> None:
    means = []
    for seed in range(1, 6):
        raw = simulate(
            duration="600s", seed=seed,
            path={"rate": "10gbit", "rtt": rtt, "buffer": "1000bdp", "loss": loss},
            flow=[{"cc": "cubic"}], host={"ack_policy": "every_packet"},
            cc={"cubic": {"hystart": 0}},
        )  # fmt: skip
        settled = column(raw, "flow_samples", "t_us") > 60e6
        means.append(column(raw, "flow_samples", "cwnd_packets")[settled].mean())
    assert np.mean(means) == pytest.approx(window, rel=0.1)


@pytest.mark.parametrize(
    ("cc", "low", "high"), [("bbr3", 0.85, 1.05), ("bbr3-linux", 0.85, 1.05), ("bbr1", 0.25, 0.35)]
)
def test_one_bbr_flow_queues_in_up_what_seed_004_measured(cc: str, low: float, high: float) -> None:
    # Section IV.A: 100 Mbit/s, 50 ms, 8 BDP; (1.25)^3 - 1 = 0.95 RTTmin for BBRv3.
    raw = simulate(
        duration="60s", sample_interval="20ms",
        path={"rate": "100mbit", "rtt": "50ms", "buffer": "8bdp"}, flow=[{"cc": cc}],
    )  # fmt: skip
    settled = column(raw, "queue_samples", "t_us") > 3e6
    delay_rttmin = column(raw, "queue_samples", "queue_bytes")[settled] * 8 / 1e8 / 0.05
    assert low <= delay_rttmin.max() <= high


@pytest.mark.parametrize("rate_mbit", [100, 1000])
@pytest.mark.parametrize("rtt_ms", [10, 50])
@pytest.mark.parametrize(("buffer", "least"), [(0.8, 0.4), (1, 0.5), (2, 1.0), (8, 1.0)])
def test_two_bbr3_flows_queue_what_seed_004_figure_8_shows(
    rate_mbit: int, rtt_ms: int, buffer: float, least: float
) -> None:
    raw = simulate(
        duration="30s", sample_interval="100ms",
        path={"rate": f"{rate_mbit}mbit", "rtt": f"{rtt_ms}ms", "buffer": f"{buffer}bdp"},
        flow=[{"cc": "bbr3-linux", "count": 2}],
    )  # fmt: skip
    settled = column(raw, "queue_samples", "t_us") > 5e6
    queue_bytes = column(raw, "queue_samples", "queue_bytes")[settled]
    median = np.median(queue_bytes) * 8 / (rate_mbit * 1e6) / (rtt_ms / 1e3)
    assert median > least


def test_runs_repeat_to_the_byte_and_seeds_differ() -> None:
    document = {
        "duration": "10s",
        "path": {"rate": "20mbit", "rtt": "30ms", "loss": 0.002, "jitter": "2ms"},
        "flow": [{"cc": "bbr3"}, {"cc": "cubic", "start": "1s"}],
        "probe": [{"kind": "ping"}],
    }
    first, again = simulate(**document), simulate(**document)
    assert first == again
    assert simulate(**document, seed=2) != first


def test_an_application_slower_than_the_path_is_never_queued() -> None:
    raw = simulate(
        duration="20s", path={"rate": "50mbit", "rtt": "20ms"},
        flow=[{"cc": "bbr3", "app_rate": "5mbit"}],
    )  # fmt: skip
    goodput = 8 * int(column(raw, "flows", "bytes_delivered")[0]) / 20
    assert goodput == pytest.approx(5e6, rel=0.02)
    assert column(raw, "queue_samples", "queue_bytes").max() <= 20 * 1514


def test_a_receive_window_caps_the_rate_at_window_over_rtt() -> None:
    raw = simulate(
        duration="20s", path={"rate": "100mbit", "rtt": "40ms"},
        flow=[{"cc": "cubic", "receive_window": "64KB"}],
    )  # fmt: skip
    goodput = 8 * int(column(raw, "flows", "bytes_delivered")[0]) / 20
    window_bits = 65536 // MSS_BYTES * MSS_BYTES * 8
    # A window sent in bursts takes up to its own serialization longer than the base RTT.
    assert window_bits / (0.04 + 1.05 * window_bits / 1e8) < goodput < window_bits / 0.04


def test_an_amount_completes_and_is_delivered_exactly() -> None:
    raw = simulate(
        duration="20s", path={"rate": "10mbit", "rtt": "20ms"},
        flow=[{"cc": "cubic", "amount": "1000001B"}],
    )  # fmt: skip
    assert column(raw, "flows", "bytes_delivered")[0] == 1_000_001
    wire_s = math.ceil(1_000_001 / MSS_BYTES) * 1514 * 8 / 1e7
    took_s = column(raw, "flows", "completion_us")[0] / 1e6
    assert wire_s < took_s < wire_s + 0.2


def test_fair_queueing_divides_a_link_evenly_and_keeps_pings_short() -> None:
    raw = simulate(
        duration="30s", path={"rate": "20mbit", "rtt": "30ms", "qdisc": "fq_codel"},
        flow=[{"cc": "bbr3"}, {"cc": "cubic"}, {"cc": "reno"}], probe=[{"kind": "ping"}],
    )  # fmt: skip
    volumes = column(raw, "flows", "bytes_delivered").astype(float)
    assert volumes.min() / volumes.max() > 0.85
    assert np.quantile(column(raw, "ping_samples", "rtt_us")[10:-2], 0.95) < 45_000
