"""Pages loaded by curl from lighttpd take as long as those that the agent loads."""

from __future__ import annotations

import numpy as np
import pytest

from fullpipe.engines.vm import VmEngine, web
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

PATH = {"rate": "20mbit", "rtt": "20ms", "buffer": "1bdp"}


def test_curl_and_lighttpd_take_as_long_as_the_agent() -> None:
    page = {"cc": "cubic", "levels": [["20000B"] * 3], "lookup": "none", "interval": "500ms",
            "start": "500ms", "loads": 4, "request": f"{web.REQUEST_BYTES}B"}  # fmt: skip
    plan = resolve(make_scenario({"duration": "3s", "path": PATH, "page": [page]}))
    took = []
    for options in ({}, {"web": True}):
        ended = VmEngine().run(plan, lambda _done: True, options)
        assert ended.failure is None and ended.health["problems"] == []
        loads = ended.tables["page_loads"].to_pydict()
        assert len(loads["load"]) == 4
        took.append(np.array(loads["done_us"]) - np.array(loads["start_us"]))
    # A server's first load is not yet in its caches.
    assert took[1][1:] == pytest.approx(took[0][1:], rel=0.03)
