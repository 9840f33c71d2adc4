"""Flows of one entry are one line; short flows are not taken for idle ones; fairness is asked of
flows that want the same."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from rich.console import Console

from fullpipe.cli.run_tables import run_tables
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import View, goodput_bps, summarise
from fullpipe.recording.recording import Recording
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario

#: Two that always send, and forty pages, of which some are over before the warm-up is.
DOCUMENT: dict[str, Any] = {
    "name": "pages beside uploads", "duration": "10s", "warmup": "3s",
    "path": {"rate": "20mbit", "rtt": "20ms", "qdisc": "fq_codel"},
    "flow": [
        {"cc": "cubic"},
        {"cc": "reno"},
        {"cc": "cubic", "name": "page", "count": 40, "start_step": "200ms", "amount": "64KB"},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The run of DOCUMENT."""
    out = tmp_path_factory.mktemp("groups") / "run"
    run_scenario(make_scenario(DOCUMENT), tomli_w.dumps(DOCUMENT), [out])
    return Recording.open(out)


def shown(summary: dict[str, Any], per_flow: bool = False) -> list[str]:
    """The lines of the first table on a screen of 80 columns."""
    out = io.StringIO()
    Console(file=out, width=80).print(next(run_tables([summary], per_flow)))
    return out.getvalue().splitlines()


def test_an_entry_of_the_scenario_is_one_line_with_its_count(recording: Recording) -> None:
    summary = summarise(recording)
    assert [(g["group"], g["flows"]) for g in summary["groups"]] == [
        ("cubic.1", 1), ("reno.1", 1), ("page.1-40", 40),
    ]  # fmt: skip
    lines = shown(summary)
    assert len(lines) == 2 + 3
    assert "page.1-40" in lines[4]
    assert len(shown(summary, per_flow=True)) == 2 + 42
    json.dumps(summary, allow_nan=False)


def test_a_completion_time_is_from_the_flows_own_start(recording: Recording) -> None:
    flows = recording.table("flows").to_pylist()
    took = [(row["completion_us"] - row["start_us"]) / 1e6 for row in flows[2:]]
    summary = summarise(recording)
    pages = summary["groups"][2]
    assert pages["finished"] == 40
    assert pages["completion_s"]["mean"] == pytest.approx(np.mean(took))
    assert pages["completion_s"]["p95"] == pytest.approx(np.quantile(took, 0.95))
    assert [flow["completion_s"] for flow in summary["flows"][2:]] == pytest.approx(took)
    assert max(took) < 2  # the last one starts 7.8 s after the first


def test_a_flow_that_ended_in_the_warm_up_has_no_rate_rather_than_none_at_all(
    recording: Recording,
) -> None:
    view = View(recording)
    ended = view.flows["completion_us"] < 3e6
    assert 5 < ended.sum() < 20
    assert np.array_equal(np.isnan(goodput_bps(view)), ended)
    summary = summarise(recording)
    assert all(
        (f["goodput_bps"] is None) == e for f, e in zip(summary["flows"], ended, strict=True)
    )
    assert summary["groups"][2]["goodput_bps"]["p5"] > 0
    assert not any(re.search(r" 0\.00 [^%]", line) for line in shown(summary, per_flow=True))


def test_jain_is_asked_of_flows_of_equal_demand(recording: Recording) -> None:
    summary = summarise(recording)
    one, other = (flow["goodput_bps"] for flow in summary["flows"][:2])
    assert summary["jain_flows"] == 2
    assert summary["jain"] == pytest.approx((one + other) ** 2 / (2 * (one**2 + other**2)))
    assert summary["groups"][0]["jain"] is None
    assert summary["groups"][2]["jain"] <= 1


def test_the_goodput_of_a_run_is_bytes_over_time(recording: Recording) -> None:
    samples = recording.table("flow_samples").to_pylist()
    total = {row["flow_id"]: row["bytes_delivered"] for row in samples}
    before = {r["flow_id"]: r["bytes_delivered"] for r in samples if r["t_us"] <= 3_000_000}
    volume = sum(total.values()) - sum(before.values())
    assert summarise(recording)["goodput_bps"] == pytest.approx(8 * volume / 7)


@pytest.mark.parametrize(
    ("flows", "count"),
    [
        ([{"cc": "cubic"}], 0),
        ([{"cc": "cubic"}, {"cc": "reno", "start": "1s", "rtt": "40ms"}], 2),
        ([{"cc": "cubic"}, {"cc": "reno", "amount": "64KB"}], 0),
        ([{"cc": "cubic", "amount": "64KB"}, {"cc": "reno", "amount": "64KB"}], 2),
        ([{"cc": "cubic", "app_rate": "1mbit"}, {"cc": "reno", "app_rate": "2mbit"}], 0),
        ([{"cc": "cubic", "count": 2}, {"cc": "cubic", "direction": "down", "count": 3}], 3),
    ],
)
def test_which_flows_want_the_same(tmp_path: Path, flows: list[dict[str, Any]], count: int) -> None:
    document = {"duration": "2s", "path": {"rate": "5mbit", "rtt": "20ms"}, "flow": flows}
    run_scenario(make_scenario(document), tomli_w.dumps(document), [tmp_path / "run"])
    summary = summarise(Recording.open(tmp_path / "run"))
    assert summary["jain_flows"] == count
    assert (summary["jain"] is None) == (count == 0)


def test_the_page_has_the_groups_and_each_flow_folded_away(
    recording: Recording, tmp_path: Path
) -> None:
    page = write_report([recording], tmp_path / "report.html").read_text()
    assert page.count('<td class="text">page.1-40</td><td>40</td>') == 1
    assert page.index("<summary>Each flow</summary>") < page.index('<td class="text">page.40</td>')
    assert "(2 flows of equal demand)" in page
