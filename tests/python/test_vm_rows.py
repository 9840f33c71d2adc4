"""Rows of links in the virtual machine: namespaces in a row whose rates and delays change, and
damage by netem. One run shows all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.base import engine
from fullpipe.engines.rows import refuse_links, with_steps
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


def plan_of(*links: dict[str, Any], **document: Any) -> dict[str, Any]:
    rows = [{"name": f"link{index}", **link} for index, link in enumerate(links)]
    return resolve(make_scenario({"duration": "6s", "link": rows, **document}))


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ({"gemodel": {"good": "1s", "bad": "50ms"}}, "link.0.gemodel.good"),
        ({"wifi_jitter": "7ms"}, "link.0.wifi_jitter"),
        ({"reverse": {"hold": {"time": "1ms", "packets": 4}}}, "link.0.reverse.hold.packets"),
        ({"loss": "1%", "loss_marks": True}, "link.0.loss_marks"),
        # 1 MiB at 10 kbit/s are 839 s.
        ({"policer": {"rate": "10kbit", "burst": "1MB"}}, "link.0.policer.burst"),
    ],
)
def test_what_kernels_lack_is_refused_by_its_key(link: dict[str, Any], key: str) -> None:
    plan = plan_of({"rate": "5mbit", **link}, flow=[{"cc": "reno"}])
    with pytest.raises(UserError, match=key.replace(".", r"\.")):
        refuse_links(plan, "vm")


def test_traces_are_steps_for_a_kernel_and_pass_as_much(tmp_path: Any) -> None:
    (tmp_path / "rate").write_text("".join(f"{ms}\n" for ms in [*range(1, 400, 2), 1000]))
    (tmp_path / "delay").write_text("0 10\n1000 20\n3000 0\n")
    link = {"rate_trace": str(tmp_path / "rate"), "delay_trace": str(tmp_path / "delay")}
    plan = plan_of(link, flow=[{"cc": "reno"}])
    wire = with_steps(plan)["links"][0]["medium"]["forward"]
    assert "rate_trace" not in wire
    ends = [at for at, _ in wire["rate_steps"][1:]] + [6 * 10**9]
    bits = sum(
        rate * (end - at) / 1e9 for (at, rate), end in zip(wire["rate_steps"], ends, strict=True)
    )
    assert bits == pytest.approx(6 * 201 * 1514 * 8, rel=0.01)
    assert [at for at, _ in wire["delay_steps"]] == [0, 10**9, 3 * 10**9, 4 * 10**9]


@pytest.mark.vm
def test_a_kernel_polices_a_flow_as_the_simulator_does() -> None:
    plan = plan_of(
        {
            "rate": "50mbit", "delay": "10ms", "loss": "0.1%",
            "policer": {"rate": "10mbit", "burst": "64KB"},
        },
        flow=[{"cc": "bbr3"}], duration="6s",
    )  # fmt: skip
    delivered, dropped, lost = [], [], []
    for name in ("sim", "vm"):
        result = engine(name).run(plan, lambda _done: True, {})
        assert result.failure is None
        rows = result.tables["queue_samples"].to_pylist()
        forward = [row for row in rows if row["queue"] == "link0.forward"][-1]
        delivered.append(result.tables["flows"].to_pylist()[0]["bytes_delivered"])
        dropped.append(forward["dropped_packets"])
        lost.append(forward["random_lost_packets"])
        # The bucket passes its rate, and once what it holds.
        assert forward["sent_bytes"] * 8 <= 6 * 10e6 + 8 * 65536
    assert delivered[1] == pytest.approx(delivered[0], rel=0.03)
    assert dropped[1] == pytest.approx(dropped[0], rel=0.3) and min(dropped) > 50
    assert max(lost) < 30  # a thousandth of 5,000 packets; the policer's drops are not among them


@pytest.mark.vm
def test_a_row_in_the_machine_has_the_rates_delays_and_damage_of_its_links() -> None:
    plan = plan_of(
        {
            "rate": "2mbit", "delay": "10ms", "buffer": "30KB",
            "rate_steps": [["2s", "4mbit"]], "outage": [["4s", "500ms"]],
            "delay_steps": [["1s", "25ms"]],
        },
        {
            "rate": "6mbit", "delay": "5ms", "gemodel": {"p": "0.3%", "r": "40%"},
            "duplicate": "1%", "reorder": "1%", "reverse": {"hold": {"time": "3ms"}},
        },
        flow=[
            {"cc": "bbr3", "start": "1500ms"},
            {"cc": "reno", "enter": "link1", "start": "1500ms", "stop": "3s"},
        ],
        probe=[
            {"name": "long", "interval": "50ms"},
            {"name": "short", "interval": "50ms", "enter": "link1"},
        ],
    )  # fmt: skip
    result = engine("vm").run(plan, lambda _done: True, {})
    assert result.failure is None
    pings = result.tables["ping_samples"].to_pydict()
    told = list(zip(pings["probe"], pings["t_us"], pings["rtt_us"], strict=True))

    def rtt_ms(name: str, start_s: float, end_s: float) -> float:
        found = [rtt for probe, at, rtt in told if probe == name and start_s < at / 1e6 < end_s]
        return float(np.median([rtt for rtt in found if rtt is not None])) / 1000

    # Before flows: the links' delays, with 3 ms of the ACKs' slot; then 15 ms more one way.
    assert rtt_ms("long", 0, 0.9) == pytest.approx(33, abs=1)
    assert rtt_ms("short", 0, 0.9) == pytest.approx(13, abs=1)
    assert rtt_ms("long", 1.05, 1.45) == pytest.approx(48, abs=1)
    queues = result.tables["queue_samples"].to_pydict()
    rows = list(zip(queues["queue"], queues["t_us"], queues["sent_bytes"], strict=True))
    sent = {at // 100_000: count for queue, at, count in rows if queue == "link0.forward"}

    def rate_mbps(start_s: float, end_s: float) -> float:
        return float(sent[round(end_s * 10)] - sent[round(start_s * 10)]) * 8e-6 / (end_s - start_s)

    assert rate_mbps(2.5, 4) == pytest.approx(4, rel=0.06)
    assert rate_mbps(4.1, 4.5) < 0.1
    assert rate_mbps(4.9, 6) > 1
    lost = {
        queue: count
        for queue, count in zip(queues["queue"], queues["random_lost_packets"], strict=True)
    }
    assert lost["link1.forward"] > 0
    assert lost["link0.forward"] == 0
    assert set(queues["queue"]) == {"link0.forward", "link1.forward"}


@pytest.mark.vm
def test_no_small_packet_passes_an_outage_in_the_machine_and_none_waits_beyond_its_end() -> None:
    plan = plan_of(
        {"rate": "2mbit", "delay": "20ms", "outage": [["1s", "1s"]]},
        duration="3s",
        probe=[{"interval": "100ms"}],
        flow=[{"cc": "cubic", "start": "2500ms", "amount": "20KB"}],
    )
    told = []
    for name in ("sim", "vm"):
        result = engine(name).run(plan, lambda _done: True, {})
        assert result.failure is None
        pings = result.tables["ping_samples"].to_pydict()
        sent = zip(pings["t_us"], pings["rtt_us"], strict=True)
        told.append([(at + rtt) / 1e3 for at, rtt in sent if 0.95e6 < at < 2.2e6 and rtt])
    simulated, kernels = told
    # Those of the outage pass the forward direction at 2 s, and the reverse one, whose outage has
    # ended too.
    assert min(kernels) == pytest.approx(2040, abs=1)
    assert kernels == pytest.approx(simulated, abs=5)


@pytest.mark.vm
def test_pages_and_streams_pass_their_links_in_the_machine_as_in_the_simulator() -> None:
    both = {"rate": "20mbit", "buffer": "100KB"}
    narrow = {"rate": "5mbit", "buffer": "100KB"}
    page = {"cc": "cubic", "levels": [["20KB"], ["100KB", "50KB"]], "lookup": "once", "loads": 1}
    stream = {"rate": "64kbit", "payload": "160B"}
    plan = plan_of(
        {**both, "delay": "10ms", "reverse": both},
        {**narrow, "delay": "5ms", "reverse": narrow},
        duration="2s",
        page=[
            {**page, "name": "long", "start": "300ms"},
            {**page, "name": "short", "enter": "link1", "start": "1s"},
        ],
        udp=[
            {**stream, "name": "all", "stop": "200ms"},
            {**stream, "name": "first", "leave": "link0", "start": "5ms", "stop": "200ms"},
        ],
    )
    made = {}
    for name in ("sim", "vm"):
        result = engine(name).run(plan, lambda _done: True, {})
        assert result.failure is None
        loads = result.tables["page_loads"].to_pydict()
        took = np.subtract(loads["done_us"], loads["start_us"]) / 1000
        sent = result.tables["datagrams"].to_pydict()
        pairs = list(zip(sent["stream_id"], sent["delay_us"], strict=True))
        delays = [[us / 1000 for which, us in pairs if which == one] for one in (0, 1)]
        assert [len(one) for one in delays] == [10, 10]
        made[name] = [*took, *(np.median(one) for one in delays)]
    assert made["vm"] == pytest.approx(made["sim"], rel=0.02, abs=0.2)
    # The delays of both links, and of the first.
    assert made["vm"][2:] == pytest.approx([15, 10], abs=0.5)


@pytest.mark.vm
def test_a_limit_of_netem_drops_in_the_machine_what_it_drops_in_the_simulator() -> None:
    plan = plan_of(
        {"rate": "100mbit", "delay": "100ms", "delay_limit": 100},
        duration="3s",
        flow=[{"cc": "cubic", "start": "2900ms"}],
        udp=[{"rate": "20mbit", "payload": "1250B"}],
    )
    dropped = []
    for name in ("sim", "vm"):
        result = engine(name).run(plan, lambda _done: True, {})
        assert result.failure is None
        queues = result.tables["queue_samples"].to_pydict()
        dropped.append(max(queues["dropped_packets"]))
    # 2000 packets come a second, and 100 leave in each 100 ms.
    assert dropped == pytest.approx([3000, 3000], rel=0.02)


@pytest.mark.vm
def test_jitter_of_netem_has_the_same_moments_and_disorder_in_the_machine() -> None:
    plan = plan_of(
        {"rate": "100mbit", "delay": "30ms", "delay_jitter": "3ms",
         "delay_distribution": "paretonormal"},
        duration="4s",
        flow=[{"cc": "reno", "start": "3900ms"}],
        udp=[{"rate": "4mbit", "payload": "500B", "stop": "3500ms"}],
    )  # fmt: skip
    found = []
    for name in ("sim", "vm"):
        result = engine(name).run(plan, lambda _done: True, {})
        assert result.failure is None
        sent = result.tables["datagrams"].to_pydict()
        delays = np.array(sent["delay_us"], dtype=float) / 1000
        assert delays.size > 3400
        lag = np.corrcoef(delays[:-1], delays[1:])[0, 1]
        overtaking = (np.diff(np.array(sent["t_us"]) / 1000 + delays) < 0).mean()
        found.append((delays.mean(), delays.std(), lag, overtaking))
    for sim, vm, tolerance in zip(*found, (0.3, 0.2, 0.08, 0.05), strict=True):
        assert vm == pytest.approx(sim, abs=tolerance)
