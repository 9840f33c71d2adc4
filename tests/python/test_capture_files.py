"""Captures and traces of calls are there when they are complete, and otherwise not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.traffic import captures

SCENARIO = {
    "duration": "1s", "path": {"rate": "10mbit", "rtt": "20ms"}, "flow": [{"cc": "cubic"}],
}  # fmt: skip


@pytest.mark.parametrize("option", ["pcap", "cc_trace"])
def test_a_run_that_fails_leaves_the_file_that_was_there_or_none(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    plan, file = resolve(make_scenario(SCENARIO)), tmp_path / "file"
    monkeypatch.setattr(_native.sim, "run", fails)
    with pytest.raises(UserError, match="No space left"):
        SimEngine().run(plan, lambda _done: True, {option: str(file)})
    assert list(tmp_path.iterdir()) == []
    file.write_text("good")
    with pytest.raises(UserError, match="No space left"):
        SimEngine().run(plan, lambda _done: True, {option: str(file)})
    assert file.read_text() == "good" and list(tmp_path.iterdir()) == [file]
    monkeypatch.undo()
    SimEngine().run(plan, lambda _done: True, {option: str(file)})
    assert file.stat().st_size > 1000


def test_a_capture_is_read_back_as_the_traffic_of_the_run(tmp_path: Path) -> None:
    udp = {"rate": "1mbit", "direction": "down", "stop": "500ms"}
    scenario = make_scenario({
        "duration": "1s", "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": "cubic", "amount": "20KB", "start": "100ms"}],
        "udp": [udp, {"rate": "8mbit", "payload": "1000B", "start": "900ms", "stop": "901500us"}],
        "probe": [{"kind": "ping"}],
    })  # fmt: skip
    capture = tmp_path / "run.pcap"
    run_scenario(scenario, "", [tmp_path / "run"], "sim", {"pcap": str(capture)})
    found = {name: values.tolist() for name, values in captures.read(capture).items()}
    # 1 Mbit/s are 1200 B each 9.6 ms: 53 until 500 ms. 8 Mbit/s are 1000 B a ms.
    assert found["bytes"] == [53 * 1200, 20 * 1024, 2 * 1000]
    # A round trip of 20 ms before TCP's data.
    assert found["start_us"] == [0, 120_000, 900_000]
