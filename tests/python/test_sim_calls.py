"""The simulator's trace of calls has the kernel's form: replayed, every call gives the same
outputs, whichever facts the algorithms were told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fullpipe import kernel
from fullpipe.base.errors import UserError
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

ALGORITHMS = (
    "reno", "cubic", "dctcp", "prague", "bbr1", "bbr2", "bbr3", "bbr3-linux", "bbrnplus", "tarn",
)  # fmt: skip


def run(document: dict[str, Any], out: Path) -> dict[str, Any]:
    """Runs it with a trace; returns the columns of flows."""
    plan = resolve(make_scenario({"name": "calls", "duration": "2s", "seed": 7, **document}))
    ended = SimEngine().run(plan, lambda _done: True, {"cc_trace": str(out)})
    return ended.tables["flows"].to_pydict()


@pytest.mark.parametrize("facts", ["google", "stock"])
def test_every_call_that_the_simulator_makes_replays_bit_for_bit(
    facts: str, tmp_path: Path
) -> None:
    out = tmp_path / "calls"
    path = {"rate": "40mbit", "rtt": "4ms", "buffer": "4bdp", "loss": "0.3%"}
    flows = [{"cc": name} for name in ALGORITHMS]
    columns = run({"path": path, "host": {"cc_facts": facts}, "flow": flows}, out)
    found = kernel.replay(out)
    assert [item.kernel_name for item in found.algorithms] == list(ALGORITHMS)
    assert not found.is_cut_off
    for item in found.algorithms:
        assert item.release == "simulator"
        assert item.difference is None
        assert (item.connections, item.skipped, item.lost) == (1, 0, 0)
        assert item.calls > item.acks > 100
    assert all(count > 0 for count in columns["packets_retransmitted"])


def test_connections_that_are_used_again_are_not_traced(tmp_path: Path) -> None:
    document = {
        "path": {"rate": "10mbit", "rtt": "10ms"},
        "traffic": [{"cc": "cubic", "load": 0.2, "sizes": "30KB"}],
    }
    with pytest.raises(UserError, match="--cc-trace: not with \\[\\[traffic\\]\\]"):
        run(document, tmp_path / "calls")
