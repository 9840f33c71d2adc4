"""What the tests of engine `live` share: short plans, and running one where this kernel can."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fullpipe.base.errors import RunError
from fullpipe.engines.base import RunResult
from fullpipe.engines.live import LiveEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


def plan_of(*flows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Two seconds at 20 Mbit/s, unless `more` says otherwise."""
    path = {"rate": "20mbit", "rtt": "10ms", "buffer": "2bdp"}
    network = {} if "link" in more else {"path": path}
    return resolve(
        make_scenario({"name": "live", "duration": "2s", **network, **more, "flow": list(flows)})
    )


def wire_bytes(payload_bytes: float) -> float:
    """On Ethernet, in full packets with timestamps."""
    return payload_bytes * 1514 / 1448


def run_here(plan: dict[str, Any]) -> RunResult:
    """A run that did not fail, or a skip where this kernel lacks what a path needs."""
    try:
        result = LiveEngine().run(plan, lambda _done: True, {})
    except RunError as error:
        if lacking := re.search(r"does this kernel have (sch_\w+)", str(error)):
            pytest.skip(f"this host's kernel lacks {lacking[1]}")
        raise
    assert result.failure is None
    return result
