"""A metric is one number: what a run prints and what a store keeps are equal, and no link carries
more than it can."""

from __future__ import annotations

import json
import math
import os
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fullpipe import _native, cli
from fullpipe.engines.runner import run_scenario
from fullpipe.hunt.trials import run_trials
from fullpipe.metrics import View, summarise
from fullpipe.metrics.summary import nested
from fullpipe.plan.bottleneck import link_capacity
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.measures import measured, recorded
from sweep_files import filled, sweep

#: Scenarios that are drawn: fewer where they are the same in every run (conftest.py).
EXAMPLES = 120 if "FULLPIPE_DRAW_FREELY" in os.environ else 40
#: The second flow is there for half of the time.
LATE = {
    "duration": "20s", "start_spread": 0,
    "path": {"rate": "10mbit", "rtt": "{rtt}", "buffer": "1bdp"},
    "flow": [{"cc": "cubic"}, {"cc": "cubic", "start": "10s"}],
}  # fmt: skip


def fullpipe(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command."""
    monkeypatch.setattr("sys.argv", ["fullpipe", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code


def test_run_and_query_print_the_same_metrics_of_a_late_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "late.toml"
    path = {**LATE["path"], "rtt": "40ms"}  # type: ignore[dict-item]
    scenario.write_text(tomli_w.dumps({**LATE, "path": path}))
    fullpipe(
        ["run", str(scenario), "--json", "--no-report", "--out", str(tmp_path / "r")], monkeypatch
    )
    run = json.loads(capsys.readouterr().out)
    swept = tmp_path / "sweep.toml"
    found = {"scenario": LATE, "axis": {"rtt": ["40ms"]}, "sweep": {"seeds": 1}}
    swept.write_text(tomli_w.dumps(found))
    fullpipe(["sweep", str(swept), "--out", str(tmp_path / "store")], monkeypatch)
    capsys.readouterr()
    sql = "select * from runs"
    fullpipe(["query", str(tmp_path / "store"), sql, "--json"], monkeypatch)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["goodput_bps"] == run["goodput_bps"]
    assert row["jain"] == run["jain"]
    # A packet of 1514 bytes on the wire has 1448 of payload.
    assert 0.98 < run["goodput_bps"] / (10e6 * 1448 / 1514) <= 1
    rates = [flow["goodput_bps"] for flow in run["flows"]]
    assert run["jain"] == pytest.approx(sum(rates) ** 2 / 2 / sum(rate**2 for rate in rates))


def test_the_shipped_link_that_changes_says_what_its_packets_met(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "scenarios" / "changing-rate.toml").read_text()
    run_scenario(make_scenario(tomllib.loads(text)), text, [tmp_path / "run"], jobs=1)
    recording = Recording.open(tmp_path / "run")
    found = summarise(recording)
    samples = recording.table("queue_samples").to_pandas()
    mine = samples[samples["queue"] == "radio.forward"].set_index("t_us")["sent_bytes"]
    # From 2 to 40 s: 50 Mbit/s for 8 s, 5 for 10 s, 50 for 10 s, none for 2 s, 50 for 8 s.
    carried = 8e6 * 50 + 10e6 * 5 + 10e6 * 50 + 8e6 * 50
    sent = 8 * (mine[40_000_000] - mine[2_000_000])
    assert found["path"]["utilisation"] == pytest.approx(sent / carried)
    # A ping waits in the same queue, and takes a base RTT of 40 to 60 ms besides.
    for at in ("p95", "max"):
        waited_ms = found["path"]["queue_delay_ms"][at]
        assert 20 < found["ping_ms"][at] - waited_ms < 80
    assert found["links"][0]["queue_delay_ms"] == found["path"]["queue_delay_ms"]


def test_every_stored_metric_is_the_one_of_the_recording(tmp_path: Path) -> None:
    store, outcome = filled(tmp_path / "store", sweep(sweep={"seeds": 2, "keep": "recordings"}))
    assert outcome.ran == 12
    tables = {name: store.table(name).to_pylist() for name in ("runs", "flows", "path")}
    for run in tables["runs"]:
        mine = {name: [r for r in rows if r["key"] == run["key"]] for name, rows in tables.items()}
        agree(summarise(Recording.open(store.recording(run["key"]))), mine)


def agree(summary: dict[str, Any], rows: dict[str, list[dict[str, Any]]]) -> None:
    """Every metric of the rows is the one of the summary."""
    for table, kind, where in (
        ("runs", "run", [summary]), ("flows", "flow", summary["flows"]),
        ("path", "queue", [summary["path"]]),
    ):  # fmt: skip
        for row, known in zip(rows[table], where, strict=True):
            names = [name for name, *_ in _native.metrics.TABLES[kind]]
            values = {name: math.nan if row[name] is None else row[name] for name in names}
            printed = nested(kind, values)
            assert printed == {name: known[name] for name in printed}
            for name in {"queue", "flow", "cc", "direction", "seed"} & row.keys():
                assert row[name] == known[name]


def milliseconds(least: int, most: int) -> st.SearchStrategy[str]:
    """A time."""
    return st.integers(least, most).map(lambda ms: f"{ms}ms")


@st.composite
def flows(draw: st.DrawFn, links: int) -> dict[str, Any]:
    """A flow: from the start or later, for ever, for so much, or with a limited application."""
    flow: dict[str, Any] = {
        "cc": draw(st.sampled_from(["cubic", "bbr3", "reno", "bbr1"])),
        "direction": draw(st.sampled_from(["up", "up", "down"])),
    }
    if draw(st.booleans()):
        flow["start"] = draw(milliseconds(0, 1600))
    kind = draw(st.sampled_from(["", "", "amount", "app_rate", "stop"]))
    if kind == "amount":
        flow["amount"] = f"{draw(st.integers(1, 300))}kB"
    elif kind == "app_rate":
        flow["app_rate"] = f"{draw(st.integers(100, 2000))}kbit"
    elif kind == "stop":
        flow["stop"] = draw(milliseconds(1700, 2500))
    if links > 1 and draw(st.booleans()):
        enter, leave = sorted(draw(st.tuples(*[st.integers(0, links - 1)] * 2)))
        flow |= {"enter": f"link{enter}", "leave": f"link{leave}"}
    return flow


RATES = st.integers(500, 8000).map(lambda kbps: f"{kbps}kbit")


@st.composite
def ways(draw: st.DrawFn, folder: Path) -> dict[str, Any]:
    """One direction of a link: a rate, a rate in steps with outages, or a trace."""
    kind = draw(st.sampled_from(["constant", "steps", "trace"]))
    found: dict[str, Any] = {"buffer": draw(st.sampled_from(["20kB", "60kB", "10pkt"]))}
    if kind == "trace":
        gaps = draw(st.lists(st.integers(0, 9), min_size=1, max_size=30))
        times = [int(time) for time in 1 + np.cumsum(gaps)]
        file = folder / f"{'-'.join(map(str, gaps))}.trace"
        file.write_text("".join(f"{time}\n" for time in times))
        return {**found, "rate_trace": str(file)}
    found |= {"rate": draw(RATES), "qdisc": draw(st.sampled_from(["fifo", "fq_codel", "codel"]))}
    if found["qdisc"] != "fifo":
        del found["buffer"]
    if kind == "steps":
        times = sorted(draw(st.sets(st.integers(1, 2400), max_size=4)))
        found["rate_steps"] = [[f"{time}ms", draw(RATES)] for time in times]
        if draw(st.booleans()):
            found["outage"] = [[draw(milliseconds(100, 2200)), draw(milliseconds(1, 500))]]
    return found


@st.composite
def scenarios(draw: st.DrawFn, folder: Path) -> dict[str, Any]:
    """A scenario of a path or a row of links."""
    document: dict[str, Any] = {
        "duration": "2500ms", "seed": draw(st.integers(1, 99)),
        "warmup": draw(st.sampled_from(["0s", "333ms", "1s"])),
        "sample_interval": draw(st.sampled_from(["100ms", "33ms"])),
        "probe": [{"kind": "ping"}] if draw(st.booleans()) else [],
    }  # fmt: skip
    count = draw(st.integers(0, 3))
    if count:
        document["link"] = [
            {
                "name": f"link{place}", "delay": draw(milliseconds(0, 30)),
                **draw(ways(folder)), "reverse": draw(ways(folder)),
            }
            for place in range(count)
        ]  # fmt: skip
    else:
        document["path"] = {
            "rate": draw(RATES), "rtt": draw(milliseconds(1, 80)),
            "buffer": draw(st.sampled_from(["0.5bdp", "2bdp", "30pkt"])),
            "loss": draw(st.sampled_from([0, 0.02])),
        }  # fmt: skip
    # The first flow passes every link.
    document["flow"] = [draw(flows(0)), *draw(st.lists(flows(count), max_size=3))]
    return document


FOLDER = TemporaryDirectory(prefix="fullpipe-traces-")


def full_trace(folder: Path) -> dict[str, Any]:
    """A trace that is full and has delivery opportunities at the window's edges."""
    (folder / "edges.trace").write_text("8\n8\n")
    return {
        "duration": "2500ms", "seed": 1, "warmup": "333ms", "sample_interval": "100ms",
        "probe": [{"kind": "ping"}], "flow": [{"cc": "cubic", "direction": "down"}],
        "link": [{
            "name": "link0", "delay": "0ms", "buffer": "20kB", "rate": "500kbit",
            "reverse": {"buffer": "20kB", "rate_trace": str(folder / "edges.trace")},
        }],
    }  # fmt: skip


@settings(max_examples=EXAMPLES)
@example(full_trace(Path(FOLDER.name)))
@given(scenarios(Path(FOLDER.name)))
def test_every_road_gives_the_same_metrics_within_what_links_can_carry(
    document: dict[str, Any],
) -> None:
    (in_memory,) = run_trials([document], 1)
    assert in_memory is not None
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        run_scenario(make_scenario(document), tomli_w.dumps(document), [out], jobs=1)
        recording = Recording.open(out)
        summary, view = summarise(recording), View(recording)
        json.dumps(summary, allow_nan=False)
        stored = {
            name: table.to_pylist() for name, table in measured([recorded("0", recording)]).items()
        }
        for name, table in in_memory.items():
            assert without_key(table.to_pylist()) == without_key(stored[name])
        agree(summary, stored)
        bounds(summary, view)


def without_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a table without the key of their run."""
    return [{name: value for name, value in row.items() if name != "key"} for row in rows]


#: Of a shaper that was idle: what it saved, and the packet with which it is overdrawn.
CREDIT_BYTES = 1600 + 1514


def bounds(summary: dict[str, Any], view: View) -> None:
    """No link carries more than it can, nor do flows get more through it; shares sum to 1."""
    plan, metrics = view.plan, view.flow_metrics
    for direction in ("up", "down"):
        shares = [f["share"] for f in summary["flows"] if f["direction"] == direction]
        known = [share for share in shares if share is not None]
        assert len(known) in (0, len(shares))
        assert not known or sum(known) == pytest.approx(1)
    for row in summary["links"]:
        place = [link["name"] for link in plan["links"]].index(row["link"])
        link = plan["links"][place]
        planned = link_capacity(link, row["direction"])
        capacity = _native.metrics.Capacity(planned)
        most = carried(capacity, view.start_s, view.end_s)
        # Each outage may leave a shaper its credit.
        credit = CREDIT_BYTES * max(1, len(planned.rates))
        sent = row["throughput_bps"] * (view.end_s - view.start_s) / 8
        assert 0 <= sent <= most + credit
        assert row["utilisation"] is None or row["utilisation"] * most == pytest.approx(sent)
        # What is delivered in the window may have passed the link before it.
        if view.start_s > 0 and not (len(plan["links"]) == 1 and planned.is_constant):
            most = carried(capacity, 0, view.end_s)
        through = [
            metrics[flow]["delivered_bytes"]
            for flow, about in enumerate(plan["flows"])
            if (about["direction"] == "up") == (row["direction"] == "forward")
            and about["route"]["enter"] <= place <= about["route"]["leave"]
        ]
        assert sum(through) <= most + credit


def carried(capacity: _native.Capacity, start_s: float, end_s: float) -> float:
    """Bytes."""
    edges = np.array([start_s, end_s])
    return float(np.frombuffer(capacity.bits(edges.tobytes()))[0]) / 8
