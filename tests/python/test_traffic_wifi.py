"""Flows that come and go over a Wi-Fi channel: at the stations that they name, over all links of
their row, as processor sharing of what the channel carries, and without losing a packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.engines.base import RunResult
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: MCS 0 has a tenth of MCS 7's rate.
STATIONS = [{"name": "near", "mcs": 7}, {"name": "far", "mcs": 0}]
CHANNEL: dict[str, Any] = {"standard": "n", "station": STATIONS}
PATH = {"rate": "1gbit", "reverse_rate": "1gbit", "rtt": "10ms", "buffer": "1MB"}
S_US = 1_000_000


def run(**document: Any) -> RunResult:
    document = {"duration": "20s", "path": PATH, "wifi": CHANNEL} | document
    return SimEngine().run(resolve(make_scenario(document)), lambda _done: True, {})


def column(done: RunResult, table: str, name: str) -> npt.NDArray[np.float64]:
    """One column of flows in the order of their coming; NaN for null."""
    rows = done.tables[table]
    values = np.array(rows[name].to_numpy(zero_copy_only=False), dtype=float)
    return values[np.argsort(rows["number"].to_numpy())] if table == "traffic" else values


def trace(folder: Path, *starts_us: int, size: int = 200_000) -> str:
    """A file of single flows of this size."""
    path = folder / f"{len(starts_us)}.csv"
    rows = "".join(f"{flow},{at_us},0,{size}\n" for flow, at_us in enumerate(starts_us))
    path.write_text(f"flow,start_us,pause_us,bytes\n{rows}")
    return str(path)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_flow_of_traffic_takes_what_a_plain_flow_takes_at_each_station(
    tmp_path: Path, direction: str
) -> None:
    at = {"cc": "cubic", "direction": direction}
    took = []
    for station in ("near", "far"):
        one = {**at, "trace": trace(tmp_path, S_US), "station": station}
        (traffic,) = column(run(traffic=[one]), "traffic", "completion_us")
        plain = {**at, "amount": "200000B", "start": "1s", "station": station}
        (flow,) = column(run(flow=[plain]), "flows", "completion_us")
        assert traffic == flow
        took.append(traffic - S_US)
    # 200 kB at 6.5 Mbit/s alone take 246 ms, at 65 a tenth of it; handshake and slow start are
    # some six round trips.
    assert 246_000 < took[1] < 246_000 / 0.8 + 60_000
    assert 25_000 < took[0] < 25_000 / 0.8 + 60_000


def test_a_connection_that_is_used_again_is_at_its_new_flows_station(tmp_path: Path) -> None:
    first = {"cc": "cubic", "station": "far", "trace": trace(tmp_path, S_US)}
    later = {"cc": "cubic", "station": "near", "trace": trace(tmp_path, S_US), "start": "3s"}
    done = run(traffic=[first, later])
    took = column(done, "traffic", "completion_us") - column(done, "traffic", "start_us")
    assert done.health["traffic_connections"] == 1
    assert took.min() < took.max() / 2


def test_traffic_takes_the_whole_row_of_links_around_a_channel(tmp_path: Path) -> None:
    # A queue each way in front of the channel, and a wire behind it: the slowest link of either
    # way bounds the time, and the wire's delay is in all of it.
    links = [
        {
            "name": "home", "kind": "wifi", "wifi": CHANNEL, "rate": "4mbit",
            "reverse": {"rate": "2mbit"},
        },
        {"name": "wire", "rate": "1gbit", "delay": "20ms"},
    ]  # fmt: skip
    for direction, rate_bps in (("up", 4e6), ("down", 2e6)):
        one = {"cc": "bbr3", "trace": trace(tmp_path, S_US), "direction": direction}
        done = run(link=links, path={}, wifi=None, traffic=[one])
        took_s = (column(done, "traffic", "completion_us")[0] - S_US) / 1e6
        least_s = 200_000 * 8 * 1514 / 1448 / rate_bps
        assert least_s < took_s < 1.2 * least_s + 0.3
        assert column(done, "traffic", "base_rtt_us").tolist() == [40_000]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_poisson_arrivals_share_what_the_channel_carries(tmp_path: Path, direction: str) -> None:
    bulk = {"cc": "cubic", "count": 4, "direction": direction}
    samples = run(flow=[bulk]).tables["flow_samples"].to_pandas()
    bytes_at = samples.groupby("t_us")["bytes_delivered"].sum()
    capacity_bps = 8 * (bytes_at[20 * S_US] - bytes_at[5 * S_US]) / 15
    size, load = 1_000_000, 0.4
    group = {"cc": "bbr3", "direction": direction}
    apart = trace(tmp_path, *range(S_US, 16 * S_US, S_US + 13_000), size=size)
    alone = run(traffic=[{**group, "trace": apart}])
    alone_s = np.mean(column(alone, "traffic", "completion_us")
                      - column(alone, "traffic", "start_us")) / 1e6  # fmt: skip
    drawn = {"flows_per_s": load * capacity_bps / 8 / size, "sizes": f"{size}B", "stop": "55s"}
    done = run(duration="60s", traffic=[{**group, **drawn}])
    start_s = column(done, "traffic", "start_us") / 1e6
    took_s = column(done, "traffic", "completion_us") / 1e6 - start_s
    work_s = np.full(start_s.size, size * 8 / capacity_bps)
    shared = _native.traffic.fluid("ps", start_s.tobytes(), work_s.tobytes())
    # What sharing adds to a flow's time alone, for these very arrivals.
    added_s = float(np.mean(np.frombuffer(shared) - work_s))
    assert took_s.size > 80
    assert took_s.mean() == pytest.approx(alone_s + added_s, rel=0.06)


def test_no_packet_disappears_over_a_channel_and_runs_repeat() -> None:
    lost = ended = 0
    for seed in range(4):
        queue = {"kind": "driver", "packets": 30}
        wifi = {**CHANNEL, "queue": queue, "error_rate": "20%", "block_ack_retry_limit": 3}
        groups = [
            {"cc": cc, "flows_per_s": 20, "sizes": "pareto", "pareto_min": "2KB", "stop": "5s",
             "pareto_max": "400KB", "station": station, "direction": direction, "senders": 2,
             "name": name}
            for name, cc, station, direction in (
                ("a", "cubic", "near", "up"), ("b", "bbr3", "near", "down"),
                ("c", "reno", "far", "up"),
            )
        ]  # fmt: skip
        document = {"seed": seed, "duration": "60s", "wifi": wifi, "traffic": groups}
        done, again = run(**document), run(**document)
        assert all(table.equals(again.tables[name]) for name, table in done.tables.items())
        health = done.health
        sent = int(column(done, "traffic", "packets_sent").sum())
        counted = sum(health[f"packets_{end}"] for end in ("delivered", "lost", "in_flight"))
        assert sent == counted
        completed = ~np.isnan(column(done, "traffic", "completion_us"))
        assert health["packets_in_flight"] == 0 or not completed.all()
        assert health["traffic_connections"] < health["traffic_flows"]
        lost += health["packets_lost"]
        ended += int(completed.sum())
    assert lost > 100
    assert ended > 1000


@pytest.mark.parametrize("kind", ["traffic", "page", "udp"])
def test_a_station_that_is_none_is_refused_with_those_that_are(kind: str) -> None:
    one = {
        "traffic": {"cc": "cubic", "flows_per_s": 1, "sizes": "1KB"},
        "page": {"cc": "cubic", "levels": [["1KB"]]},
        "udp": {"rate": "1mbit"},
    }[kind]
    with pytest.raises(UserError, match=rf"{kind}\.0\.station: 'attic' is not one of near, far"):
        run(**{kind: [{**one, "station": "attic"}]})
