"""Nothing is half written, and nothing is run whose result could not be kept."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.base.writing import claimed, write_text

PROGRAM = "import sys; sys.argv[0] = 'fullpipe'; from fullpipe.cli import main; main()"
SCENARIO = """
duration = "2s"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
cc = "bbr3"
"""


def fullpipe(folder: Path, *words: str, largest: int | None = None) -> tuple[int, str]:
    """Exit status and what it says on stderr, in `folder`; no file grows beyond `largest` bytes."""

    def limit() -> None:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    (folder / "scenario.toml").write_text(SCENARIO)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True, text=True, check=False, cwd=folder, preexec_fn=limit,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_second_run_into_a_folder_is_refused_before_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with claimed([out]):
        status, said = fullpipe(tmp_path, "run", "scenario.toml", "--out", "out", "--no-report")
        assert status == 2 and "another run is writing it" in said
        assert not out.exists()
    # Whoever claimed it is gone, and left nothing.
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.toml"]
    with claimed([out]):
        pass


def test_figures_into_a_file_are_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for words in (
        ("run", "scenario.toml", "--out", "out"),
        ("compare", "bbr3", "--duration", "2s", "--warmup", "0s", "--repeat", "1", "--out", "out"),
    ):
        status, said = fullpipe(tmp_path, *words, "--figures", "taken")
        assert status == 2 and "--figures taken" in said and "name a folder" in said
        assert not (tmp_path / "out").exists()


def test_a_page_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    run = ("run", "scenario.toml", "--out", "out", "--no-report")
    assert fullpipe(tmp_path, *run)[0] == 0
    page = tmp_path / "page.html"
    page.write_text("the old one")
    status, said = fullpipe(tmp_path, "report", "out", "--out", "page.html", largest=200_000)
    assert status == 2 and "page.html: cannot be written" in said
    assert page.read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "page.html", "scenario.toml"]


def test_a_file_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_text(tmp_path / ("x" * 300), "text")
    write_text(tmp_path / "new" / "file", "text")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]
