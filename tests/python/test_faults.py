"""scripts/faults.py says which faults a command sees, and leaves no fault behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from repository_scripts import script

TEXT = "limit = 4\nname = 'limit'\n"


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("limit = 4", "limit = 5", "killed"),
        ("'limit'", "'most'", "survived"),
        ("limit", "most", "stale"),
        ("limit = 6", "limit = 5", "stale"),
    ],
)
def test_a_fault_is_killed_if_the_command_fails_with_it(
    old: str, new: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = script("faults")
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    judge = "import sys; exec(open('code.py').read()); sys.exit(limit != 4)"
    fault = {"file": "code.py", "old": old, "new": new}
    assert faults.outcome(fault, [sys.executable, "-c", judge]) == outcome
    assert file.read_text() == TEXT


def test_a_loop_that_a_fault_makes_endless_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = script("faults")
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    monkeypatch.setattr(faults, "CPU_S", 1)
    (tmp_path / "code.py").write_text("while number < 4: number += 1\n")
    judge = "number = 0; exec(open('code.py').read())"
    fault = {"file": "code.py", "old": "+= 1", "new": "+= 0"}
    assert faults.outcome(fault, [sys.executable, "-c", judge]) == "killed"
