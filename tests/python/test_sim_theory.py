"""The simulator held against formulas: RFC 5681's square root, RFC 9438's table, bless2025."""

from __future__ import annotations

import math
import random

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


#: RFC 9438 section 5.1, tables 1 and 2, C = 0.4: RTT in ms, loss ratio, mean window.
CUBIC_TABLE = [
    (100, 1e-2, 12), (100, 1e-3, 38), (100, 1e-4, 187), (100, 1e-5, 1054),
    (10, 1e-2, 12), (10, 1e-3, 38), (10, 1e-4, 120), (10, 1e-5, 379),
]  # fmt: skip


def cubic_law_window(rtt_s: float, loss: float, *, even: bool) -> float:
    """Mean window of RFC 9438's equations 1 to 4, real-valued and round by round, over 4000 losses.

    After a loss an RTT of recovery passes at the reduced window. `even`: losses are evenly spaced,
    as the RFC's tables assume; else each packet is lost with the same probability.
    """
    scale, beta = 0.4, 0.7
    alpha = 3 * (1 - beta) / (1 + beta)
    draw = random.Random(1)
    window = maximum = reno = 10.0
    since = rise = area = time = 0.0

    def gap() -> float:
        return 1 / loss if even else math.log(1 - draw.random()) / math.log(1 - loss) + 1

    left = gap()
    for _ in range(4000):
        while left > 0:
            part, left = min(1.0, left / window), left - window
            since += rtt_s * part
            reno += alpha * part
            target = scale * (since + rtt_s - rise) ** 3 + maximum
            grown = window + (min(max(target, window), 1.5 * window) - window) * part
            grown = max(grown, reno)
            area += (window + grown) / 2 * rtt_s * part
            time += rtt_s * part
            window = grown
        maximum = window * (1 + beta) / 2 if window < maximum else window
        window = reno = max(beta * window, 2.0)
        area += window * rtt_s
        time += rtt_s
        since, rise = 0.0, max((maximum - window) / scale, 0.0) ** (1 / 3)
        left = max(gap() - window, 1.0)
    return area / time


@pytest.mark.parametrize(("rtt_ms", "loss", "window"), CUBIC_TABLE)
def test_the_cubic_law_under_even_losses_has_the_windows_of_the_rfc(
    rtt_ms: int, loss: float, window: float
) -> None:
    assert cubic_law_window(rtt_ms / 1e3, loss, even=True) == pytest.approx(window, rel=0.05)


#: Left out: 10 ms and 1 %, where Linux's rule that an unchanged window's growth rests for HZ/32
#: (three RTTs) costs a window of ten packets 7 % (docs/evidence/fidelity.md).
@pytest.mark.parametrize(
    ("rtt_ms", "loss", "window"),
    [
        # A loss in 100,000 packets needs long runs.
        pytest.param(*row, marks=pytest.mark.slow if row[1] < 1e-4 else ())
        for row in CUBIC_TABLE
        if row[:2] != (10, 1e-2)
    ],
)
def test_cubic_under_random_loss_has_the_window_of_its_law(
    rtt_ms: int, loss: float, window: float
) -> None:
    # Random losses instead of even ones raise the law's own mean, by 14 % where the cubic region
    # rules (RTT 0.1 s): so much lies between the tables and any CUBIC. Elsewhere they agree.
    # The mean over 300 losses lies off the law's by 4 % at 100 ms, by 2 % at 10 ms, where as many
    # come in less time: the rows of few losses last until they have had so many.
    duration_s, settled_us = (600, 60e6) if rtt_ms == 100 else (240, 6e6)
    if (rtt_ms, loss) == (100, 1e-5):
        duration_s = 1000
    means = []
    for seed in range(1, 4):
        raw = simulate(
            duration=f"{duration_s}s", seed=seed,
            path={"rate": "10gbit", "rtt": f"{rtt_ms}ms", "buffer": "1000bdp", "loss": loss},
            flow=[{"cc": "cubic"}], host={"ack_policy": "every_packet"},
            cc={"cubic": {"hystart": 0}},
        )  # fmt: skip
        settled = column(raw, "flow_samples", "t_us") > settled_us
        means.append(column(raw, "flow_samples", "cwnd_packets")[settled].mean())
    law = cubic_law_window(rtt_ms / 1e3, loss, even=False)
    assert np.mean(means) == pytest.approx(law, rel=0.1)
    if law == pytest.approx(window, rel=0.1):
        assert np.mean(means) == pytest.approx(window, rel=0.1)


@pytest.mark.parametrize(
    ("cc", "low", "high"), [("bbr3", 0.85, 1.05), ("bbr3-linux", 0.85, 1.05), ("bbr1", 0.25, 0.35)]
)
def test_one_bbr_flow_queues_in_up_what_bless2025_measured(
    cc: str, low: float, high: float
) -> None:
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
def test_two_bbr3_flows_queue_what_bless2025_figure_8_shows(
    rate_mbit: int, rtt_ms: int, buffer: float, least: float
) -> None:
    # A contest is one draw: in 1 BDP at 100 Mbit/s and 10 ms 24 of them have 0.56, standard
    # deviation 0.05, and the least 0.44.
    runs = {(100, 10): 8, (100, 50): 3}.get((rate_mbit, rtt_ms), 1)
    medians = []
    for seed in range(1, runs + 1):
        raw = simulate(
            duration="30s", sample_interval="100ms", seed=seed, start_spread="5ms",
            path={"rate": f"{rate_mbit}mbit", "rtt": f"{rtt_ms}ms", "buffer": f"{buffer}bdp"},
            flow=[{"cc": "bbr3-linux", "count": 2}],
        )  # fmt: skip
        settled = column(raw, "queue_samples", "t_us") > 5e6
        medians.append(np.median(column(raw, "queue_samples", "queue_bytes")[settled]))
    mean = np.mean(medians) * 8 / (rate_mbit * 1e6) / (rtt_ms / 1e3)
    assert mean > least


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
    window_bits = 65536 * 8
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
