"""Captures and traces of calls are there when they are complete, and otherwise not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

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
