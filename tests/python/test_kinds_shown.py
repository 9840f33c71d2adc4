"""Every kind of traffic has its figures in every place. Figures of links count what their layers
add and what ACK filters take."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fullpipe.agreement.expected import brief
from fullpipe.cli.run_tables import path_line, run_tables
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import summarise
from fullpipe.metrics.carrying import Carrying
from fullpipe.metrics.kinds import KINDS, Kind
from fullpipe.metrics.limiting import limiting_link
from fullpipe.metrics.probes import probes
from fullpipe.plan.bottleneck import bottleneck_of
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.report.comparison import compare_runs
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario

DOCUMENT = {
    "duration": "6s", "warmup": "1s",
    "path": {"rate": "10mbit", "rtt": "20ms"},
    "flow": [{"cc": "cubic", "direction": "down"}],
    "page": [{"cc": "cubic", "name": "news", "levels": [["20KB"]]}],
    "udp": [{"name": "call", "rate": "100kbit", "direction": "down"}],
    "probe": [{"name": "echo", "kind": "ping"}],
    "traffic": [{"name": "web", "cc": "cubic", "flows_per_s": 5, "sizes": "20KB"}],
}  # fmt: skip
NAMES = {"pages": "news", "streams": "call", "probes": "echo", "traffic": "web"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    folder = tmp_path_factory.mktemp("kinds") / "run"
    [made] = run_scenario(make_scenario(DOCUMENT), "warmup = '1s'", [folder]).recordings
    yield made


@pytest.fixture(scope="module")
def page(recorded: Recording, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report([recorded], tmp_path_factory.mktemp("page") / "report.html").read_text()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.key)
def test_a_kind_is_shown_in_every_place(recorded: Recording, page: str, kind: Kind) -> None:
    summary = summarise(recorded)
    [row] = summary[kind.key]
    assert row[kind.named].startswith(NAMES[kind.key])
    screen = Console(file=StringIO(), width=200)
    for table in run_tables([summary]):
        screen.print(table)
    printed = screen.file.getvalue()  # type: ignore[attr-defined]
    assert f"<h2>{kind.title}</h2>" in page
    compared = {row.metric for row in compare_runs({"run": [summary, summary]})}
    for figure in kind.figures:
        value = figure.read(row)
        if value is not None:
            assert f"{value:.{figure.digits}f}" in printed and f"{value:.{figure.digits}f}" in page
            if figure.compared:
                assert f"{kind.word} {row[kind.named]}: {figure.compared}" in compared


def _link(name: str, drops: int, p95_ms: float | None, wait_bytes: float) -> dict[str, Any]:
    return {
        "link": name, "direction": "forward", "drops": drops, "marks": 0, "utilisation": 0.5,
        "throughput_bps": 8e6, "queue_bytes": {"mean": wait_bytes},
        "queue_delay_ms": {"p95": p95_ms},
    }  # fmt: skip


def test_the_link_that_drops_or_makes_wait_is_the_one_that_limits() -> None:
    wire, wifi = _link("wire", 0, 0.1, 100.0), _link("wifi", 38, None, 2e5)
    found = limiting_link([wifi, wire], wire)
    assert (found["link"], found["wait_ms"]) == ("wifi", 200.0)
    assert limiting_link([_link("other", 0, 5.0, 0.0), wire], wire)["link"] == "other"
    # An aliased sample of an idle link is no limit beside one that drops.
    assert limiting_link([_link("idle", 0, None, 1e6), wifi], wifi)["link"] == "wifi"


def test_a_policer_is_the_rate_of_its_link(tmp_path: Path) -> None:
    document = {
        "duration": "8s", "warmup": "2s",
        "link": [{"name": "isp", "rate": "1gbit", "delay": "5ms", "buffer": "1MB",
                  "policer": {"rate": "10mbit", "burst": "64KB"}}],
        "flow": [{"cc": "bbr3"}],
    }  # fmt: skip
    [made] = run_scenario(make_scenario(document), "warmup = '2s'", [tmp_path / "run"]).recordings
    summary = summarise(made)
    assert 0.8 < summary["limit"]["utilisation"] <= 1.01
    assert summary["links"][0]["rate_bps"] == 10e6
    assert "utilisation 8" in path_line(summary) or "utilisation 9" in path_line(summary)


@pytest.mark.parametrize("buffer", ["0.5bdp", "1bdp", "4bdp", "30bdp"])
@pytest.mark.parametrize("rate", ["1mbit", "20mbit", "999mbit"])
def test_what_is_said_of_kernels_in_the_terminal_is_one_line(buffer: str, rate: str) -> None:
    document = {
        "duration": "6s",
        "path": {"rate": rate, "rtt": "41ms", "buffer": buffer},
        "flow": [{"cc": "cubic"}, {"cc": "bbr3"}],
    }
    text = brief(make_scenario(document))
    assert len(text) <= 100 and "docs/evidence/map.md" in text


def test_a_request_under_way_when_the_run_ends_is_not_lost() -> None:
    sent_us = np.array([0.0, 1e6, 2e6, 2.95e6, 2.99e6])
    pings = {"probe": np.array(["echo"] * 5, dtype=object), "t_us": sent_us,
             "rtt_us": np.array([4e4, np.nan, 6e4, np.nan, np.nan])}  # fmt: skip
    [found] = probes(pings, 3.0)
    assert (found["sent"], found["loss_ratio"]) == (3, pytest.approx(1 / 3))
    pings["rtt_us"][:] = np.nan
    [found] = probes(pings, 3.0)
    assert (found["sent"], found["loss_ratio"]) == (5, 1.0)


ATM = {"framing": "atm", "overhead": 10}
FULL_LINES = {
    "CAKE counts": {"path": {"qdisc": "cake", "qdisc_options": ATM}},
    "the link counts": {"path": ATM},
    "the link counts for CAKE": {"path": {"qdisc": "cake", **ATM}},
    "named": {"path": {"overhead": "pppoe-vcmux"}},
    "a link of a row": {"link": [{"name": "dsl", "rate": "840kbit", "delay": "15ms", **ATM}]},
    "datagrams of 200 B": {"path": {"overhead": 38, "mpu": 84}, "flow": [],
                           "udp": [{"rate": "2mbit", "payload": "200B"}]},
    "ACKs alone": {"path": {"rate": "100mbit", "reverse_rate": "400kbit", "overhead": 0,
                            "mpu": 120}},
}  # fmt: skip


@pytest.mark.parametrize("line", FULL_LINES)
def test_a_full_line_is_used_wholly_whatever_its_layer_adds(line: str, tmp_path: Path) -> None:
    document = {"duration": "30s", "warmup": "10s", "flow": [{"cc": "cubic"}], **FULL_LINES[line]}
    if path := document.get("path"):
        document["path"] = {"rate": "840kbit", "rtt": "30ms", **path}
    [made] = run_scenario(make_scenario(document), "warmup = '10s'", [tmp_path / "r"]).recordings
    links = summarise(made)["links"]
    fullest = max(link["utilisation"] for link in links)
    assert fullest == pytest.approx(1.0, abs=0.01)


def test_the_delay_of_a_queue_of_acks_counts_what_their_layer_adds() -> None:
    line = {"rate": "100mbit", "reverse_rate": "400kbit", "rtt": "30ms", "mpu": 120, "overhead": 0}
    plan = resolve(make_scenario({"duration": "1s", "path": line, "flow": [{"cc": "cubic"}]}), 1)
    carrying = Carrying(bottleneck_of(plan, "reverse").capacity)
    acks = carrying.in_full_packets(np.array([10 * 66.0]), np.array([10.0]))
    assert carrying.drain_s(np.array([0.0]), acks) == pytest.approx(10 * 120 * 8 / 400e3)


@pytest.mark.parametrize("links", ["path", "row"])
def test_filtered_acks_are_counted_apart_from_loss(tmp_path: Path, links: str) -> None:
    aqm = {"qdisc": "cake", "qdisc_options": {"ack_filter": "aggressive"}}
    line = {"rate": "100kbit", **aqm}
    where = {
        "path": {"path": {"rtt": "40ms", "reverse_rate": "20mbit", **line}},
        "row": {"link": [{"name": "dsl", "delay": "20ms", "reverse": {"rate": "20mbit"}, **line}]},
    }[links]
    document = {
        "duration": "12s", "warmup": "2s", "flow": [{"cc": "cubic", "direction": "down"}], **where,
    }  # fmt: skip
    [made] = run_scenario(make_scenario(document), "warmup = '2s'", [tmp_path / "r"]).recordings
    summary = summarise(made)
    up = next(link for link in summary["links"] if link["direction"] == "forward")
    assert up["filtered_acks"] > 1000
    assert up["drops"] == 0 and up["loss_ratio"] == 0.0
    samples = made.table("queue_samples").to_pydict()
    counted = zip(samples["queue"], samples["filtered_packets"], strict=True)
    assert max(count for queue, count in counted if "forward" in queue) >= up["filtered_acks"]
