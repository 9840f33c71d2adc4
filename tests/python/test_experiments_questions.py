"""experiments/questions: the entries run, and the page has their tables."""

from __future__ import annotations

import re
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
PAGE = (ROOT / "docs" / "evidence" / "open_questions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_cell_is_a_scenario_and_the_page_tells_of_it(entry: Entry) -> None:
    cells = entry.cells("default")
    for cell in cells:
        make_scenario(cell.document)
    table = re.search(rf"<!-- table {entry.id} -->\n(.*?)<!-- end -->", PAGE, re.S)
    if entry.id == "ack_phase":  # 80 rows: the page sums them up
        assert table is None
        return
    assert table is not None
    assert len(table[1].splitlines()) == 2 + len(cells)
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
