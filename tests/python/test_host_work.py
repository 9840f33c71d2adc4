"""What packets cost the hosts at their ends, and readers that are kept away, against the rates that
a processor allows and what a link carries meanwhile."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

import capture
from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.sim import SimEngine
from fullpipe.metrics import summarise
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from helpers import column, simulate

#: A full packet takes 121 us of the wire.
PATH = {"rate": "100mbit", "rtt": "10ms", "buffer": "2bdp"}


def goodputs_mbps(folder: Path, host: dict[str, Any], *flows: dict[str, Any]) -> list[float]:
    scenario = make_scenario({
        "duration": "5s", "warmup": "1s", "path": PATH, "host": host,
        "flow": list(flows),
    })  # fmt: skip
    recording = run_scenario(scenario, "", [folder / "run"]).recordings[0]
    return [flow["goodput_bps"] / 1e6 for flow in summarise(recording)["flows"]]


@pytest.mark.parametrize(
    ("host", "packet_us"),
    [
        ({"packet_cost": "200us"}, 200),
        # An ACK for every packet, made by the host that handles the packet.
        ({"packet_cost": "150us", "ack_cost": "50us", "ack_policy": "every_packet"}, 200),
        # ... and for every second one.
        ({"packet_cost": "150us", "ack_cost": "100us", "ack_policy": "every_second"}, 200),
        # ACKs alone, of which sender and receiver have as many.
        ({"ack_cost": "200us", "ack_policy": "every_packet"}, 200),
        # A sender makes packets, and takes an ACK for every second one.
        ({"send_cost": "150us", "ack_cost": "100us", "ack_policy": "every_second"}, 200),
    ],
)
def test_a_processor_that_is_the_limit_decides_the_goodput(
    tmp_path: Path, host: dict[str, Any], packet_us: float
) -> None:
    # A window that does not grow: what waits at a sender has been received already.
    [goodput] = goodputs_mbps(tmp_path, host, {"cc": "cubic", "receive_window": "256KB"})
    assert goodput == pytest.approx(1448 * 8 / packet_us, rel=0.01)


def test_flows_to_one_host_share_its_processor_and_flows_to_two_do_not(tmp_path: Path) -> None:
    host = {"packet_cost": "200us"}
    both = goodputs_mbps(tmp_path / "one", host, {"cc": "cubic"}, {"cc": "cubic"})
    assert sum(both) == pytest.approx(1448 * 8 / 200, rel=0.01)
    apart = [{"cc": "cubic"}, {"cc": "cubic", "far_host": 1}]
    assert sum(goodputs_mbps(tmp_path / "two", host, *apart)) > 90


def later_us(folder: Path, path: dict[str, Any], host: dict[str, Any], packets: int) -> int:
    """How much later a flow of so many packets is done over such hosts than over idle ones."""
    done_us = []
    for name, given in (("busy", host), ("idle", {})):
        scenario = make_scenario({
            "duration": "1s", "path": path, "host": given,
            "flow": [{"cc": "cubic", "amount": f"{packets * 1448}B"}],
        })  # fmt: skip
        recording = run_scenario(scenario, "", [folder / name]).recordings[0]
        done_us.append(recording.table("flows").column("completion_us")[0].as_py())
    return int(done_us[0] - done_us[1])


def test_a_burst_leaves_when_all_of_it_is_made(tmp_path: Path) -> None:
    # Ten packets, which take the path a microsecond.
    path = {"rate": "100gbit", "rtt": "10ms", "buffer": "1MB"}
    assert later_us(tmp_path, path, {"send_cost": "100us"}, 10) == pytest.approx(10 * 100, abs=2)


def test_an_ack_leaves_when_it_is_made_and_is_known_when_it_is_taken(tmp_path: Path) -> None:
    path = {"rate": "100mbit", "rtt": "10ms", "buffer": "1MB"}
    # A flow is done when the ACK of its last packet has come.
    assert later_us(tmp_path, path, {"ack_cost": "100us"}, 1) == pytest.approx(2 * 100, abs=2)


def test_a_connection_opens_later_where_its_handshake_is_work(tmp_path: Path) -> None:
    path = {"rate": "100mbit", "rtt": "10ms", "buffer": "1MB"}
    # SYN and SYN-ACK; the ACK of that is handled before the data behind it.
    late_us = later_us(tmp_path, path, {"handshake_cost": "2ms"}, 1)
    assert late_us == pytest.approx(3 * 2000, abs=150)


def test_what_fq_holds_back_is_made_when_it_lets_it_go(tmp_path: Path) -> None:
    document = {
        "duration": "4s", "path": {"rate": "100mbit", "rtt": "50ms", "buffer": "8bdp"},
        "host": {"pacing": "fq", "send_cost": "20us"}, "flow": [{"cc": "bbr3-linux"}],
    }  # fmt: skip
    free = {**document, "host": {"pacing": "fq"}}
    rtt_us = []
    for name, one in (("busy", document), ("free", free)):
        recording = run_scenario(make_scenario(one), "", [tmp_path / name]).recordings[0]
        samples = recording.table("flow_samples").to_pandas()
        rtt_us.append(samples[samples["t_us"] > 2e6]["srtt_us"].median())
    # tcp_tso_autosize(): what leaves together at 0.99 and at 1.25 of the link's rate.
    least, most = (int(gain * 100e6 * 1448 / 1514 / 8 / 2**10 / 1448) for gain in (0.99, 1.25))
    assert least <= (rtt_us[0] - rtt_us[1]) / 20 <= most + 1


def test_a_processor_that_keeps_up_costs_no_goodput(tmp_path: Path) -> None:
    flow = {"cc": "cubic"}
    free = goodputs_mbps(tmp_path / "free", {}, flow)
    busy = goodputs_mbps(tmp_path / "busy", {"packet_cost": "80us", "ack_cost": "10us"}, flow)
    assert busy == pytest.approx(free, rel=0.005)


def test_hosts_cost_nothing_unless_told_and_a_cost_is_a_time() -> None:
    flows = [{"cc": "cubic"}]
    document = {"duration": "5s", "path": PATH, "flow": flows}
    assert "work" not in resolve(make_scenario(document))["host"]
    told = resolve(make_scenario({**document, "host": {"ack_cost": "500ns"}}))
    assert told["host"]["work"] == {"packet_ns": 0, "ack_ns": 500}
    sends = resolve(make_scenario({**document, "host": {"send_cost": "2us"}}))
    assert sends["host"]["work"] == {"packet_ns": 0, "ack_ns": 0, "send_ns": 2000}
    opens = resolve(make_scenario({**document, "host": {"handshake_cost": "20us"}}))
    assert opens["host"]["work"] == {"packet_ns": 0, "ack_ns": 0, "handshake_ns": 20_000}
    for wrong in ("-1us", "2s", "fast"):
        with pytest.raises(UserError, match="packet_cost"):
            make_scenario({**document, "host": {"packet_cost": wrong}})


def extra_acked_packets(folder: Path, host: dict[str, Any]) -> float:
    """Median of what BBR says comes acknowledged at once beyond its bandwidth."""
    scenario = make_scenario({
        "duration": "6s", "path": {"rate": "100mbit", "rtt": "50ms", "buffer": "8bdp"},
        "host": host, "flow": [{"cc": "bbr3-linux"}],
    })  # fmt: skip
    recording = run_scenario(scenario, "", [folder / "run"]).recordings[0]
    samples = recording.table("cc_samples").to_pandas()
    return float(samples[samples["t_us"] > 3e6]["extra_acked_packets"].median())


def test_bbr_sees_what_the_link_carries_while_nobody_reads(tmp_path: Path) -> None:
    without = extra_acked_packets(tmp_path / "there", {})
    carried_in_1ms = 100e6 * 1e-3 / (8 * 1514)
    away = extra_acked_packets(tmp_path / "away", {"reader_pause": "3ms"})
    # A maximum over some rounds: of the packets that arrive in a pause one more or less.
    assert 3 * carried_in_1ms - 1 <= away <= 3 * carried_in_1ms + without + 1
    host = {"reader_pause": "3ms", "reader_pause_spread": "1ms"}
    drawn = extra_acked_packets(tmp_path / "drawn", host)
    # The largest of the two to five pauses that those rounds have is mostly above the mean.
    assert away < drawn <= 4 * carried_in_1ms + without + 1


def test_readers_that_are_away_cost_no_goodput_on_a_link_that_is_the_limit(tmp_path: Path) -> None:
    flow = {"cc": "cubic"}
    there = goodputs_mbps(tmp_path / "there", {}, flow)
    away = goodputs_mbps(tmp_path / "away", {"reader_pause": "2ms"}, flow)
    assert away == pytest.approx(there, rel=0.005)


def test_a_reader_is_back_before_it_leaves_again() -> None:
    document = {"duration": "5s", "path": PATH, "flow": [{"cc": "cubic"}]}
    assert "reader_pauses" not in resolve(make_scenario(document))["host"]
    host = {"reader_pause": "3ms", "reader_pause_every": "110ms"}
    told = resolve(make_scenario({**document, "host": host}))["host"]["reader_pauses"]
    assert told == {"every_ns": 110_000_000, "for_ns": 3_000_000}
    for wrong in (
        {"reader_pause": "100ms"}, {"reader_pause": "1ms", "reader_pause_every": "1ms"},
        {"reader_pause": "60ms", "reader_pause_spread": "40ms"},
    ):  # fmt: skip
        with pytest.raises(UserError, match="must be less than reader_pause_every, 1"):
            make_scenario({**document, "host": wrong})
    for wrong in (
        {"reader_pause": "1ms", "reader_pause_spread": "2ms"},
        {"reader_pause_spread": "1ms"},
    ):
        with pytest.raises(
            UserError, match=r"reader_pause_spread: .* must be at most reader_pause, "
        ):
            make_scenario({**document, "host": wrong})


def test_acks_leave_a_host_in_the_order_in_which_it_makes_them(tmp_path: Path) -> None:
    # Timers ask for ACKs while the processor is busy with data, whose ACKs are due when it is free.
    document = {
        "duration": "2s",
        "path": {"rate": "50mbit", "rtt": "1ms"},
        "host": {"packet_cost": "500us", "receive_aggregation": "1300us"},
        "flow": [{"cc": "reno", "count": 3}],
    }
    plan = resolve(make_scenario(document))
    SimEngine().run(plan, lambda _done: True, {"pcap": str(tmp_path / "run.pcap")})
    for segments in capture.read(tmp_path / "run.pcap").values():
        acks = [one.ack for one in segments if not one.leaves]
        assert len(acks) > 100
        assert acks == sorted(acks)


def late_rtt_ms(seed: int, host: dict[str, Any]) -> float:
    """Median smoothed RTT of BBRv1 whose ACKs are held for up to 25 ms, from 12 s on."""
    raw = simulate(
        duration="20s", seed=seed, start_spread="100ms", host=host,
        link=[{
            "name": "held", "rate": "100mbit", "delay": "5ms", "buffer": "400pkt",
            "reverse": {"hold": {"time": "25ms"}},
        }],
        flow=[{"cc": "bbr1"}],
    )  # fmt: skip
    t_us, srtt_us = (column(raw, "flow_samples", name) for name in ("t_us", "srtt_us"))
    return float(np.median(srtt_us[t_us > 12e6])) / 1000


def test_held_acks_keep_a_queue_where_a_host_handles_them_one_after_another() -> None:
    """BBRv1 has a median RTT of 28.3 ms in Linux 6.12.117, whose hosts take 6.5 us for an ACK
    (docs/evidence/agreement.md). A host without cost takes 200 held ACKs at one instant: 12.2."""
    costly_ms, free_ms = (
        mean(late_rtt_ms(seed, host) for seed in (1, 2, 3)) for host in ({"ack_cost": "6500ns"}, {})
    )
    assert costly_ms == pytest.approx(28.3, abs=3)
    assert free_ms < 14
