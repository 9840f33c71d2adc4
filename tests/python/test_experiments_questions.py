"""experiments/questions: the entries run, and the page has their cells."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fullpipe.engines.base import engine
from fullpipe.experiments.catalogue import load_catalogue
from fullpipe.experiments.entry import Entry
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

ROOT = Path(__file__).parents[2]
ENTRIES = load_catalogue(ROOT / "experiments" / "questions")
EVIDENCE = ROOT / "docs" / "evidence"
PAGE = (EVIDENCE / "open_questions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_cell_is_a_scenario_and_the_page_tells_of_it(entry: Entry) -> None:
    cells = entry.cells("default")
    for cell in cells:
        make_scenario(cell.document)
    if entry.id == "ack_phase":  # 80 rows: the page sums them up
        return
    name = f"cells/question_{entry.id}.csv"
    assert f"[Its {len(cells)} cells]({name})" in PAGE
    with (EVIDENCE / name).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(cells)
    assert {*entry.metric} <= {*rows[0]}
    assert (ROOT / "docs" / "images" / "questions" / f"{entry.id}.svg").is_file()


def inflation(constants: str) -> float:
    """The largest min_rtt in ProbeRTT over the base RTT, of four flows whose ProbeRTT and filter of
    min_rtt both last 10 s."""
    document = {
        "duration": "40s", "seed": 3, "start_spread": "100ms", "rtt_spread": "1pkt",
        "path": {"rate": "50mbit", "rtt": "40ms", "buffer": "4bdp"},
        "flow": [{"cc": f"bbr3[probe_rtt_interval_us=10000000{constants}]", "count": 4}],
    }  # fmt: skip
    tables = engine("sim").run(resolve(make_scenario(document)), lambda _done: True, {}).tables
    samples = tables["cc_samples"].to_pylist()
    seen = [row["min_rtt_us"] for row in samples if row["phase"] == "probe_rtt"]
    return float(np.max(seen)) / 40e3


def test_min_rtt_is_inflated_in_probe_rtt_unless_it_outlives_it() -> None:
    # draft-ietf-ccwg-bbr, issue 109. In the queue of four flows, RTTs are more than twice the base.
    assert inflation("") > 2
    assert inflation(",proposals=1") < 1.01
