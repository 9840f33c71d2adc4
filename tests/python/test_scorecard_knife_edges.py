"""A scorecard names results that a little jitter changes, though all runs agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fullpipe.scorecard.comparing import Settings
from fullpipe.scorecard.items import Item
from fullpipe.scorecard.knife_edges import knife_edges
from fullpipe.sweep.store import Store

MEASURES = [
    {"id": "goodput", "title": "goodput", "unit": "Mbit/s", "better": "more",
     "column": "flows.goodput_bps", "group": "subject", "scale": 1e-6},
    {"id": "harm", "title": "harm", "column": "flows.goodput_bps", "group": "subject",
     "better": "more", "harm": True},
]  # fmt: skip


def _item(path: dict[str, Any], qdiscs: list[str], name: str = "edge") -> Item:
    return Item.model_validate({
        "id": name, "source": "", "title": "",
        "scenario": {
            "duration": "20s", "warmup": "8s", "path": {**path, "qdisc": "{qdisc}"},
            "flow": [{"cc": "{cc.name}", "count": "{cc.n}", "name": "subject"}],
        },
        "axis": {"qdisc": qdiscs}, "sweep": {"seeds": 3}, "measure": MEASURES,
    })  # fmt: skip


def test_an_item_names_the_cell_and_what_jitter_makes_of_it(tmp_path: Path) -> None:
    """One CUBIC on CAKE at 100 Mbit/s and 80 ms has another goodput where packets come 100 us
    later (test_knife_edge.py); behind a FIFO it has not."""
    line = {"rate": "100mbit", "rtt": "80ms"}
    store = Store(tmp_path / "store", create=True)
    said = knife_edges("cubic", [_item(line, ["cake", "fifo"])], store, Settings())
    assert list(said) == ["edge"]
    assert said["edge"].startswith("knife edge: goodput is ")
    assert " at qdisc cake in all 3 runs, and " in said["edge"]
    assert said["edge"].endswith(" Mbit/s with a jitter of 100us")
    assert "fifo" not in said["edge"] and "harm" not in said["edge"]


@pytest.mark.parametrize(
    "path",
    [
        {"rate": "100mbit", "rtt": "80ms", "jitter": "100us"},
        {"rate": "1gbit", "rtt": "4ms"},
    ],
    ids=["jitter of its own", "an RTT to which it is not little"],
)
def test_where_jitter_says_nothing_it_is_not_tried(path: dict[str, Any], tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    assert knife_edges("reno", [_item(path, ["cake"])], store, Settings(quick=True)) == {}
    assert len(store.table("runs")) in (0, 3), "the runs of the card alone"
