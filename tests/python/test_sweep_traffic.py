"""Sweeps of scenarios without [[flow]]: traffic, pages, datagrams; files that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fullpipe.sweep.chart import Request, make_chart
from fullpipe.sweep.file import Sweep, read_sweep
from fullpipe.sweep.query import ask
from sweep_files import filled

TRACE = "flow,start_us,pause_us,bytes\n1,0,0,200000\n2,500000,0,20000\n2,500000,50000,20000\n"
PAGE = {"cc": "cubic", "levels": [["20KB"], ["10KB", "10KB"]], "start": "1s"}


def _sweep(source: str = "test.toml", **senders: Any) -> Sweep:
    path = {"rate": "10mbit", "rtt": "{rtt}", "buffer": "1bdp"}
    scenario = {"duration": "2s", "path": path, **senders}
    return read_sweep({"scenario": scenario, "axis": {"rtt": ["10ms", "20ms"]}}, source)


def _traffic(file: Path) -> Sweep:
    return _sweep(traffic=[{"cc": "cubic", "trace": str(file)}])


@pytest.mark.parametrize("kind", ["traffic", "page", "udp"])
def test_runs_without_flows_have_measures_of_the_path_and_plots(tmp_path: Path, kind: str) -> None:
    (tmp_path / "flows.csv").write_text(TRACE)
    sent = {
        "traffic": {"cc": "cubic", "trace": str(tmp_path / "flows.csv")},
        "page": PAGE | {"loads": 1},
        "udp": {"rate": "1mbit"},
    }[kind]
    store, outcome = filled(tmp_path / "store", _sweep(**{kind: [sent]}))
    assert (outcome.ran, outcome.failures) == (2, [])
    rows = ask(store, "select goodput_bps, utilisation from runs join path using (key)").to_pylist()
    assert [row["goodput_bps"] for row in rows] == [None, None], "there is no flow to speak of"
    # Bytes that traffic or page have or that a rate makes, over the two seconds at 10 Mbit/s.
    least = {"traffic": 240_000 * 8 / 20e6, "page": 40_000 * 8 / 20e6, "udp": 0.1}[kind]
    assert all(least <= row["utilisation"] < 1.2 * least + 0.05 for row in rows)
    chart = make_chart(store, Request("utilisation", "rtt", None, None, "line", None))
    assert chart is not None


def test_a_trace_of_traffic_counts_by_what_it_holds_not_by_where_it_lies(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(TRACE)
    other.write_text(TRACE)
    assert filled(tmp_path / "store", _traffic(one))[1].ran == 2
    assert filled(tmp_path / "store", _traffic(other))[1].reused == 2
    other.write_text(TRACE.replace("200000", "300000"))
    assert filled(tmp_path / "store", _traffic(other))[1].ran == 2
