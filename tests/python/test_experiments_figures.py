"""What entries draw: every plot once, all lines named, the same bytes every time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from experiment_entries import SMALL, MadeStore, entry_of
from fullpipe.experiments import judge
from fullpipe.experiments.figures import figures
from fullpipe.experiments.store import StoredRun
from fullpipe.experiments.verdicts import Results

PLOTS = """
[[plot]]
of = "goodput"
x = "rate"
by = ["rtt"]
log_x = true

[[plot]]
kind = "cdf"
of = "queue_delay_rttmin"
by = ["rate"]
panel = ["rtt"]

[[plot]]
kind = "box"
of = "goodput_mbps"
x = "rate"

[[plot]]
kind = "cdf"
of = "ping_ms"
"""


class Drawn(MadeStore):
    """Runs with distributions: delays evenly from 0 to 1, two flows, no ping."""

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        assert run is not None
        delays = [i / 100 for i in range(101)]
        kept: dict[str, list[float]] = {
            "queue_delay_rttmin": delays, "goodput_mbps": [1.0, 2.0], "ping_ms": [],
        }  # fmt: skip
        return StoredRun(run.seed, run.metrics, kept)


def results(folder: Path) -> Results:
    entry = entry_of(folder, SMALL + PLOTS)
    return judge(entry, Drawn(folder, lambda plan, _: plan["path"]["rate_bps"] / 1e6)).results


def test_every_plot_is_drawn_once_with_its_lines_named(tmp_path: Path) -> None:
    drawn = figures(results(tmp_path))
    titles = [figure.title for figure in drawn]
    assert titles[:2] == ["Share of one", "Goodput"]
    assert len(drawn) == 4, "the three above with something to see, and the small entry's own"
    texts = [" ".join(ET.fromstring(figure.svg).itertext()) for figure in drawn]
    assert "rtt 10" in texts[1]
    assert "rtt 20" in texts[1]
    assert "goodput (Mbit/s)" in texts[1]
    assert "queueing delay (RTTmin)" in texts[2]
    assert "rate 4" in texts[2]


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (figures(results(tmp_path)) for _ in range(2))
    assert first == second


def test_nothing_run_draws_nothing(tmp_path: Path) -> None:
    class Empty(MadeStore):
        def read(self, key: str, expressions: Mapping[str, str]) -> None:
            """Nothing was run."""

    entry = entry_of(tmp_path, SMALL + PLOTS)
    assert figures(judge(entry, Empty(tmp_path, lambda *_: 0.0)).results) == []
