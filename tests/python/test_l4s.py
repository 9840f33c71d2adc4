"""L4S in the simulator: Prague and CUBIC over DualPI2, against RFC 9332's law; BBRv3's marks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.ecn import refuse_accurate_ecn
from fullpipe.engines.vm import VmEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from helpers import column, simulate

L4S = {"rate": "40mbit", "rtt": "10ms", "qdisc": "dualpi2", "ecn": "l4s"}


def late(raw: dict[str, Any], flow: int, since_s: float) -> dict[str, np.ndarray]:
    """A flow's samples from a time on."""
    times, flows = column(raw, "flow_samples", "t_us"), column(raw, "flow_samples", "flow_id")
    mine = (flows == flow) & (times >= since_s * 1e6)
    names = ("t_us", "cwnd_packets", "srtt_us", "packets_delivered", "packets_delivered_ce")
    return {name: column(raw, "flow_samples", name)[mine].astype(float) for name in names}


def packets_per_s(samples: dict[str, np.ndarray]) -> float:
    span_s = (samples["t_us"][-1] - samples["t_us"][0]) / 1e6
    return float(samples["packets_delivered"][-1] - samples["packets_delivered"][0]) / span_s


def marked(samples: dict[str, np.ndarray]) -> float:
    grown = [samples[name][-1] - samples[name][0]
             for name in ("packets_delivered_ce", "packets_delivered")]  # fmt: skip
    return float(grown[0] / grown[1])


def test_prague_and_cubic_share_a_coupled_queue_and_prague_waits_less_than_two_ms() -> None:
    ratios = []
    for seed in range(8, 0, -1):
        raw = simulate(duration="45s", sample_interval="10ms", path=L4S, seed=seed,
                       flow=[{"cc": "prague"}, {"cc": "cubic"}])  # fmt: skip
        prague, cubic = (late(raw, flow, 15) for flow in (0, 1))
        ratios.append(packets_per_s(prague) / packets_per_s(cubic))
    # RFC 9332: about equal rates where CUBIC's round trip with its queue is Prague's virtual one.
    # A run's standard deviation is 0.09.
    assert np.mean(ratios) == pytest.approx(1, abs=0.2)
    # DCTCP's law of random marks, of the virtual round trip of 25 ms: 2 / p a round trip.
    law = 2 / marked(prague) / 0.025
    assert packets_per_s(prague) == pytest.approx(law, rel=0.2)
    # CUBIC in its Reno-friendly region (RFC 9438 section 4.3): 1.22 / sqrt(p) packets a round trip.
    window = float(cubic["cwnd_packets"].mean())
    assert window == pytest.approx(np.sqrt(1.5 / marked(cubic)), rel=0.2)
    assert np.percentile(prague["srtt_us"], 99) - 10_000 < 2000
    assert cubic["srtt_us"].mean() - 10_000 > 10_000


@pytest.mark.parametrize("rate", ["40mbit", "100mbit"])
def test_prague_alone_fills_the_link_without_a_queue(rate: str) -> None:
    raw = simulate(duration="25s", sample_interval="10ms", path={**L4S, "rate": rate},
                   flow=[{"cc": "prague"}])  # fmt: skip
    samples = late(raw, 0, 10)
    most = float(rate.removesuffix("mbit")) * 1e6 / 8 / 1514
    assert packets_per_s(samples) > 0.97 * most
    assert np.percentile(samples["srtt_us"], 99) - 10_000 < 2000
    assert column(raw, "flows", "packets_lost").sum() == 0


def test_bbr3_answers_early_marks_only_as_the_set_of_marking_routes() -> None:
    def queue_us(cc: str, ecn: object) -> float:
        path = {"rate": "100mbit", "rtt": "4ms", "qdisc": "dualpi2", "ecn": ecn}
        flows = [{"cc": cc, "count": 4}]
        raw = simulate(duration="5s", sample_interval="5ms", path=path, flow=flows)
        assert column(raw, "flows", "bytes_delivered").sum() > 0.9 * 5 * 100e6 / 8
        return float(np.mean(late(raw, 0, 1)["srtt_us"])) - 4000

    assert queue_us("bbr3-ecn", "l4s") < 0.25 * queue_us("bbr3-linux", "accecn")
    # Where the host knows that the path marks early, Google's rules are the same.
    assert queue_us("bbr3-linux", "l4s") == queue_us("bbr3-ecn", "l4s")


def on_kernels(*flows: dict[str, Any]) -> None:
    """Asks the virtual machine whether it would run them over DualPI2."""
    VmEngine().check(resolve(make_scenario({
        "name": "l4s", "duration": "1s", "path": L4S, "flow": list(flows),
    })))  # fmt: skip


def test_kernel_engines_say_that_they_send_no_ect_1() -> None:
    with pytest.raises(UserError, match=r"flow\.1\.ecn: 'l4s' is ECT\(1\), and .* send ECT\(0\)"):
        on_kernels({"cc": "prague"}, {"cc": "cubic"})


def test_accurate_ecn_is_refused_on_kernels_that_do_not_negotiate_it() -> None:
    plan = resolve(make_scenario({
        "name": "accecn", "duration": "1s", "flow": [{"cc": "cubic", "ecn": True}, {"cc": "reno"}],
        "path": {"rate": "1mbit", "rtt": "1ms", "ecn": "accecn"},
    }))  # fmt: skip
    for release in ("6.1.0-56-cloud-amd64", "6.12.117+deb12", "6.18.44", "6.19.2"):
        told = rf"flow\.1\.ecn: 'accecn' .* 7\.0 or later.*{re.escape(release)}"
        with pytest.raises(UserError, match=told):
            refuse_accurate_ecn(plan, release)
    for release in ("7.0.1", "7.3.4+deb13-cloud-amd64", "10.0"):
        refuse_accurate_ecn(plan, release)


def test_kernel_engines_let_nobody_but_prague_be_marked_over_dualpi2() -> None:
    for flow in ({"cc": "cubic", "ecn": True}, {"cc": "dctcp", "ecn": False}):
        with pytest.raises(UserError, match=r"flow\.1: over dualpi2 on vm only prague may use ECN"):
            on_kernels({"cc": "prague"}, flow)


def test_the_plan_of_classic_ecn_is_what_it_was() -> None:
    def flow(ecn: object) -> dict[str, Any]:
        document = {"name": "ecn", "duration": "1s", "flow": [{"cc": "cubic"}],
                    "path": {"rate": "1mbit", "rtt": "1ms", "ecn": ecn}}  # fmt: skip
        found: dict[str, Any] = resolve(make_scenario(document))["flows"][0]
        return found

    assert flow(True) == flow("classic")
    assert "ecn_kind" not in flow(False) and flow("l4s")["ecn_kind"] == "l4s"
