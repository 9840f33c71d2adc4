"""A run has a folder of its own, whatever the clock says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fullpipe.cli.folders import new_folder


def test_runs_of_one_second_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _form: "20261025-023000")
    folders = []
    for _ in range(3):
        folders.append(new_folder("demo"))
        folders[-1].mkdir(parents=True)
    assert [folder.as_posix() for folder in folders] == [
        "recordings/demo-20261025-023000",
        "recordings/demo-20261025-023000-2",
        "recordings/demo-20261025-023000-3",
    ]
    assert new_folder("other") == Path("recordings/other-20261025-023000")
