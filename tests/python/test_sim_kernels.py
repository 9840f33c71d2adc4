"""The simulator held against real kernels: shares on hardware, traces in virtual time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from helpers import column, measured, simulate

#: tests/data/README.md: fq on the sender, htb and bfifo at the router, ARP over the delayed path.
TESTBED: dict[str, Any] = {"pacing": "fq", "arp": True}


def kernel_goodputs(run: str) -> list[float]:
    """bit/s of each flow from 3 s to the end, by bytes acknowledged."""
    rates = [
        float(row["goodput_bps"]) for row in measured("kernel_goodputs.csv") if row["run"] == run
    ]
    assert rates, run
    return rates


def simulated_goodputs(**document: Any) -> list[float]:
    raw = simulate(**{"sample_interval": "50ms", "host": TESTBED, **document})
    times, flows, volumes = (
        column(raw, "flow_samples", name) for name in ("t_us", "flow_id", "bytes_acked")
    )
    rates = []
    for flow in range(int(flows.max()) + 1):
        mine = (flows == flow) & (times >= 3_000_000)
        span_s = (times[mine][-1] - times[mine][0]) / 1e6
        rates.append(8 * float(volumes[mine][-1] - volumes[mine][0]) / span_s)
    return rates


@pytest.mark.parametrize(
    ("run", "document"),
    [
        ("s01_1bbr_100M_50ms_8bdp", {
            "duration": "30s", "path": {"rate": "100mbit", "rtt": "50ms", "buffer": "5000000B"},
            "flow": [{"cc": "bbr3-linux"}]}),
        ("s02_2bbr_100M_10ms_8bdp", {
            "duration": "20s", "path": {"rate": "100mbit", "rtt": "10ms", "buffer": "1000000B"},
            "flow": [{"cc": "bbr3-linux", "count": 2}]}),
        ("s04_1bbr_1cubic_10M_40ms_1bdp", {
            "duration": "120s", "path": {"rate": "10mbit", "rtt": "40ms", "buffer": "50000B"},
            "flow": [{"cc": "bbr3-linux"}, {"cc": "cubic"}]}),
    ],
)  # fmt: skip
def test_bbr3_shares_a_link_as_googles_kernel_does(run: str, document: dict[str, Any]) -> None:
    # One trace is one draw, where CUBIC competes of a chaotic contest: the mean of eight seeds is
    # held against it.
    real = np.array(kernel_goodputs(run))
    ours = np.mean([simulated_goodputs(seed=seed, **document) for seed in range(1, 9)], axis=0)
    assert ours.sum() == pytest.approx(real.sum(), rel=0.03)
    assert np.abs(ours / ours.sum() - real / real.sum()).max() < 0.05


@pytest.mark.parametrize(
    ("run", "document"),
    [
        ("t01_1bbr2_100M_50ms_8bdp", {
            "duration": "30s", "path": {"rate": "100mbit", "rtt": "50ms", "buffer": "5000000B"},
            "flow": [{"cc": "bbr2"}]}),
        ("t02_2bbr2_100M_10ms_8bdp", {
            "duration": "20s", "path": {"rate": "100mbit", "rtt": "10ms", "buffer": "1000000B"},
            "flow": [{"cc": "bbr2", "count": 2}]}),
        ("t04_1bbr2_1cubic_10M_40ms_1bdp", {
            "duration": "120s", "path": {"rate": "10mbit", "rtt": "40ms", "buffer": "50000B"},
            "flow": [{"cc": "bbr2"}, {"cc": "cubic"}]}),
    ],
)  # fmt: skip
def test_bbr2_shares_a_link_as_the_v2_kernel_does(run: str, document: dict[str, Any]) -> None:
    real = np.array(kernel_goodputs(run))
    ours = np.mean([simulated_goodputs(seed=seed, **document) for seed in range(1, 9)], axis=0)
    bbr = slice(0, max(1, len(real) - 1))
    assert ours.sum() == pytest.approx(real.sum(), rel=0.03)
    share_ours, share_real = ours[bbr].sum() / ours.sum(), real[bbr].sum() / real.sum()
    assert abs(share_ours - share_real) < 0.07


def flows_in_order(cc: str, *starts_us: int) -> list[dict[str, str]]:
    """One CUBIC flow after several of `cc`, begun in the order of the trace's first samples: whose
    initial window comes first at the bottleneck decides its first estimate of the RTT."""
    ccs = [cc] * (len(starts_us) - 1) + ["cubic"]
    return [{"cc": cc, "start": f"{us}us"} for cc, us in zip(ccs, starts_us, strict=True)]


DEEP = {"rate": "10mbit", "rtt": "40ms", "buffer": "800000B"}


@pytest.mark.parametrize(
    ("run", "document"),
    [
        ("s06_4bbr_1cubic_10M_40ms_16bdp", {
            "duration": "120s", "path": DEEP,
            "flow": flows_in_order("bbr3-linux", 750, 1000, 500, 0, 250)}),
        ("t06_4bbr2_1cubic_10M_40ms_16bdp", {
            "duration": "120s", "path": DEEP,
            "flow": flows_in_order("bbr2", 750, 1000, 250, 0, 500)}),
        ("s12_2bbr_delayed_50M_20ms_4bdp", {
            "duration": "30s", "path": {"rate": "50mbit", "rtt": "20ms", "buffer": "500000B"},
            "flow": [{"cc": "bbr3-linux"}, {"cc": "bbr3-linux", "start": "5s"}]}),
    ],
)  # fmt: skip
def test_a_kernels_share_of_a_chaotic_contest_is_one_of_ours(
    run: str, document: dict[str, Any]
) -> None:
    # Two minutes over 16 BDP hang on the phase of each flow when CUBIC first fills the queue, so
    # that our seeds differ by 0.054 (96 of them): the kernel's one draw must not be told from them.
    real = np.array(kernel_goodputs(run))
    ours = np.array([
        simulated_goodputs(seed=seed, start_spread="5ms", **document) for seed in range(1, 49)
    ])  # fmt: skip
    assert ours.sum(axis=1).mean() == pytest.approx(real.sum(), rel=0.03)
    shares = ours[:, :-1].sum(axis=1) / ours.sum(axis=1)
    share = real[:-1].sum() / real.sum()
    # Student's 95 % prediction interval of one more draw.
    quantile = stats.t.ppf(0.975, len(shares) - 1) * np.sqrt(1 + 1 / len(shares))
    assert abs(share - shares.mean()) < quantile * shares.std(ddof=1)
    assert shares.std(ddof=1) < 0.06


def test_bbr3s_goodput_where_whole_bursts_are_lost_is_one_of_ours() -> None:
    # netem at the sender loses GSO packets whole: about seven segments at this rate. How many
    # losses fall into the rounds of ProbeRTT decides a run, ours as the kernel's.
    (real,) = kernel_goodputs("s08_1bbr_100M_40ms_1bdp_loss1")
    ours = np.array([
        simulated_goodputs(
            seed=seed, duration="20s", flow=[{"cc": "bbr3-linux"}],
            path={"rate": "100mbit", "rtt": "40ms", "buffer": "500000B",
                  "loss": 0.01, "loss_per": "burst"},
            host={"arp": True, "pacing": "internal"},
        )[0]
        for seed in range(1, 49)
    ])  # fmt: skip
    assert abs(real - ours.mean()) < 2 * ours.std(ddof=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "cc", "most"),
    [("2a", "bbr1", 0.005), ("3a", "bbr2", 0.01), ("5a", "bbr3-linux", 0.01)],
)
def test_shares_against_one_cubic_flow_are_those_of_real_kernels(
    figure: str, cc: str, most: float
) -> None:
    # How it was measured: tests/data/README.md. tc's kb is 1024 bytes, so limits are 2.4 % larger.
    rows = [row for row in measured("link_share_observed.csv") if row["figure"] == figure]
    assert len(rows) == 42
    errors = []
    for row in rows:
        count = int(row["n_bbr"])
        raw = simulate(
            duration="1000s", sample_interval="200s",
            path={"rate": "10mbit", "rtt": "40ms",
                  "buffer": f"{round(float(row['buffer_bdp']) * 51200)}B"},
            flow=[{"cc": cc, "count": count}, {"cc": "cubic"}],
        )  # fmt: skip
        times, flows, volumes = (
            column(raw, "flow_samples", name) for name in ("t_us", "flow_id", "bytes_delivered")
        )
        bbr = flows < count
        late = volumes[bbr & (times == 1000_000_000)].sum()
        early = volumes[bbr & (times == 600_000_000)].sum()
        share = 8 * float(late - early) / 400 / 1e7
        errors.append((share - float(row["link_share"])) ** 2)
    assert np.mean(errors) <= most
