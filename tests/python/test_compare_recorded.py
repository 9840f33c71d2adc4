"""`compare` of folders of recordings, imported from other tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fullpipe.cli.app import app
from test_iperf3 import result, stream


def imported(folder: Path, name: str, *sizes: int) -> str:
    """A folder with a recording for each size: what two streams had in each second."""
    for index, size in enumerate(sizes):
        intervals = [{"streams": [stream(5, at, bytes=size)]} for at in range(3)]
        file = folder / f"{name}{index}.json"
        file.write_text(json.dumps(result(intervals=intervals, end={})))
        command = ["flent", "import", str(file), "--out", str(folder / name)]
        assert CliRunner().invoke(app, command).exit_code == 0
    return str(folder / name)


def test_imported_recordings_are_compared_by_their_bytes(tmp_path: Path) -> None:
    groups = [
        imported(tmp_path, "a", 1_000_000, 1_010_000, 1_020_000),
        imported(tmp_path, "b", 2_000_000, 2_010_000, 2_020_000),
    ]
    done = CliRunner().invoke(app, ["compare", *groups, "--json", "--out", str(tmp_path / "page")])
    assert done.exit_code == 0, done.output
    rows = {row["metric"]: row for row in json.loads(done.stdout)["metrics"]}
    means = [rows["goodput"]["cells"][name]["mean"] for name in groups]
    # 1.01 and 2.01 MB a second.
    assert means == pytest.approx([8.08, 16.08])
    assert (tmp_path / "page/report.html").is_file()


def test_folders_and_names_do_not_mix_and_take_no_options_of_runs(tmp_path: Path) -> None:
    group = imported(tmp_path, "a", 1_000_000)
    for more, words in ((["cubic"], "cubic: is no folder"), (["--rate", "1mbit"], "as they are")):
        done = CliRunner().invoke(app, ["compare", group, *more])
        assert done.exit_code != 0
        assert words in f"{done.output}{done.exception}"
