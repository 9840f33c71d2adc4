"""Round trips that differ from seed to seed, where a scenario asks for it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.plan.resolve import resolve
from fullpipe.plan.seeds import rtt_offset_ns
from fullpipe.recording.recording import Recording
from fullpipe.report.provenance import facts
from fullpipe.report.runs import grouped, read_run
from fullpipe.scenario.model import make_scenario

#: What a packet of 1514 bytes takes at 10 Mbit/s.
PACKET_NS = 1_211_200
DOCUMENT: dict[str, Any] = {
    "duration": "2s",
    "path": {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"},
    "flow": [{"cc": "cubic"}, {"cc": "reno", "rtt": "50ms"}],
    "traffic": [{"cc": "reno", "load": 0.01, "sizes": "3KB", "senders": 2,
                 "rtts": ["30ms", "70ms"]}],
}  # fmt: skip
ROW: dict[str, Any] = {
    "duration": "2s",
    "link": [{"name": "a", "rate": "10mbit", "delay": "5ms"},
             {"name": "b", "rate": "20mbit", "delay": "5ms"}],
    "flow": [{"cc": "cubic", "amount": "3KB"}, {"cc": "reno", "rtt": "50ms", "amount": "3KB"}],
    "probe": [{"kind": "ping", "interval": "100ms", "start": "500ms"}],
}  # fmt: skip


def drawn(seed: int, spread: str) -> int:
    """By how much the path's round trip is longer than written."""
    path = resolve(make_scenario({**DOCUMENT, "rtt_spread": spread}), seed)["path"]
    return int(path["forward_delay_ns"] + path["reverse_delay_ns"]) - 20_000_000


def least_ms(recording: Recording) -> tuple[float, list[float]]:
    """The least RTT of the probe and of each flow."""
    pings = recording.table("ping_samples")["rtt_us"].to_pylist()
    samples = recording.table("flow_samples").to_pylist()
    flows = [
        min(row["min_rtt_us"] for row in samples if row["flow_id"] == flow and row["min_rtt_us"])
        for flow in (0, 1)
    ]
    return min(one for one in pings if one) / 1000, [one / 1000 for one in flows]


def test_each_seed_draws_its_own_round_trip_evenly_over_what_a_packet_takes() -> None:
    found = [drawn(seed, "1pkt") for seed in range(1000)]
    assert min(found) >= 0 and max(found) <= PACKET_NS
    tenths = [sum(10 * one // PACKET_NS == tenth for one in found) for tenth in range(10)]
    assert all(70 <= count <= 130 for count in tenths)  # 100, three standard deviations of 9.5
    assert drawn(7, "1pkt") == found[7]
    assert max(drawn(seed, "40us") for seed in range(1000)) <= 40_000


def test_without_a_spread_and_when_runs_are_repeated_round_trips_are_as_written() -> None:
    scenario = make_scenario(DOCUMENT).repeated()
    paths = [resolve(scenario, seed)["path"] for seed in (1, 2)]
    assert paths[0] == paths[1]
    assert paths[0]["reverse_delay_ns"] == 20_000_000
    assert drawn(1, "0") == 0


def test_the_spread_changes_nothing_but_the_way_back_of_all_alike() -> None:
    spread = resolve(make_scenario({**DOCUMENT, "rtt_spread": "1pkt"}), 3)
    plain = resolve(make_scenario(DOCUMENT), 3)
    more_ns = rtt_offset_ns(PACKET_NS, 3)
    assert more_ns
    flow, sender = spread["flows"][1], spread["traffic"][0]["senders"][1]
    assert flow["reverse_delay_ns"] == 50_000_000 + more_ns
    assert sender["reverse_delay_ns"] == 70_000_000 + more_ns
    assert spread["flows"][0]["reverse_delay_ns"] is None
    delayed = [spread["access"], spread["path"], flow, *spread["traffic"][0]["senders"]]
    for one in delayed:
        one["reverse_delay_ns"] -= more_ns
    assert spread == plain


@pytest.mark.parametrize("document", [ROW, {**ROW, "link": [], "path": DOCUMENT["path"]}])
def test_a_ping_and_every_flow_take_so_much_longer(
    document: dict[str, Any], tmp_path: Path
) -> None:
    found = []
    for spread in ("0", "5ms"):
        scenario = make_scenario({**document, "rtt_spread": spread, "seed": 4})
        (one,) = run_scenario(scenario, "", [tmp_path / spread]).recordings
        found.append(least_ms(one))
    more_ms = rtt_offset_ns(5_000_000, 4) / 1e6
    assert more_ms > 1
    (ping, flows), (longer_ping, longer_flows) = found
    assert longer_ping - ping == pytest.approx(more_ms, abs=0.002)
    for before, after in zip(flows, longer_flows, strict=True):
        assert after - before == pytest.approx(more_ms, abs=0.002)


def test_runs_with_round_trips_of_their_own_can_be_run_again_alone_and_are_one_group(
    tmp_path: Path,
) -> None:
    toml = """\
rtt_spread = "1pkt"
duration = "1s"
path = { rate = "10mbit", rtt = "20ms" }
flow = [{ cc = "cubic" }, { cc = "reno", rtt = "50ms" }]
"""
    folders = [tmp_path / "a", tmp_path / "b"]
    runs = run_scenario(make_scenario(tomllib.loads(toml)), toml, folders, jobs=1).recordings
    rtts = [one.table("flows")["base_rtt_us"].to_pylist() for one in runs]
    assert rtts[0] != rtts[1]
    assert all(rtt_us[1] - rtt_us[0] == 30_000 for rtt_us in rtts)
    alone = make_scenario({**tomllib.loads(runs[1].scenario_toml), "seed": 2})
    again = run_scenario(alone, "", [tmp_path / "again"]).recordings[0]
    assert again.table("flow_samples").equals(runs[1].table("flow_samples"))
    (group,) = grouped([read_run(one) for one in runs])
    assert len(group.runs) == 2
    first_ms, second_ms = sorted(rtt_us[0] / 1000 for rtt_us in rtts)
    assert f"base RTT {first_ms:.4g} ms to {second_ms:.4g} ms" in dict(facts(group))["path"]


@pytest.mark.parametrize("value", ["-1pkt", "1001pkt", "packet", "5", 1, "1bdp"])
def test_a_spread_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(UserError, match=r"rtt_spread: .*such as 1pkt"):
        make_scenario({**DOCUMENT, "rtt_spread": value})


def test_packets_that_take_longer_than_a_week_are_refused() -> None:
    slow = {**DOCUMENT, "path": {"rate": "1bit", "rtt": "20ms"}, "rtt_spread": "100pkt"}
    with pytest.raises(UserError, match=r"rtt_spread: .*more than a week"):
        make_scenario(slow)
