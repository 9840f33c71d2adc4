"""A line or two name what the machine lacks: a place to write to, memory, a folder."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forks

SCENARIO = """
duration = "1s"
[path]
rate = "10mbit"
rtt = "20ms"
[[flow]]
cc = "cubic"
"""
PROGRAM = "import sys; from fullpipe.cli import main; sys.exit(main())"


def command(folder: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=folder, text=True, check=False, **options
    )


def refused(folder: Path, *words: str) -> str:
    """What a command says that is refused: a line or two, and no traceback."""
    status, said = forks.command(words, folder, os.environ)
    assert status == 2, said
    assert 1 <= len(said.splitlines()) <= 2 and "Traceback" not in said
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ok.toml").write_text(SCENARIO)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("run", "ok.toml", "--out", "run", "--no-report"),
        ("run", "ok.toml", "--out", "run", "--no-report", "--json"),
        ("cc", "list"), ("schema",), ("--help",), ("--version",),
    ],
)  # fmt: skip
def test_a_full_disk_behind_standard_output_is_said(folder: Path, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = command(folder, *words, stdout=full)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("recording: ")]
    assert done.returncode == 1 and lines == ["fullpipe: No space left on device"]


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_output_is_no_failure(folder: Path, closed: int) -> None:
    done = command(folder, "cc", "list", preexec_fn=lambda: os.close(closed))
    assert "Traceback" not in done.stderr


def test_a_working_directory_that_was_removed_is_said(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    words = ("run", str(folder / "ok.toml"), "--out", "x")
    done = command(folder, *words, preexec_fn=_left(gone))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "working directory was removed" in done.stderr


def _left(gone: Path) -> Callable[[], None]:
    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    return leave


def test_too_little_memory_is_said_in_a_line(folder: Path) -> None:
    """With any limit the command works or says so."""

    def limited(size: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))

    for mebibytes in (450, 550):
        done = command(
            folder, "run", "ok.toml", "--out", f"run{mebibytes}", "--no-report",
            preexec_fn=limited(mebibytes << 20),
        )  # fmt: skip
        assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("cc", ["/dev/zero", "./pipe.h", "./pipe.py:Mine", "./huge.h"])
def test_an_algorithm_that_is_no_plain_file_is_refused_unread(folder: Path, cc: str) -> None:
    for name in ("pipe.h", "pipe.py"):
        os.mkfifo(folder / name)
    with (folder / "huge.h").open("wb") as huge:
        huge.truncate(1 << 40)
    (folder / "bad.toml").write_text(SCENARIO.replace("cubic", cc))
    said = refused(folder, "run", "bad.toml", "--out", "run")
    assert "not a file; name" in said or "1 MiB" in said


@pytest.mark.parametrize(
    "nested", ["[" + ".".join("a" * 900) + "]", "a = " + "[" * 900 + "]" * 900]
)
def test_tables_and_lists_nested_deeply_are_refused(folder: Path, nested: str) -> None:
    (folder / "bad.toml").write_text(f"{SCENARIO}\n{nested}\n")
    assert "nested" in refused(folder, "run", "bad.toml", "--out", "run")
    deep = ".".join("a" * 900)
    assert "more than 16" in refused(folder, "run", "ok.toml", "--set", f"{deep}=1")


@pytest.mark.parametrize("value", ['"3"', "true", '""'])
def test_text_and_truths_are_no_numbers(folder: Path, value: str) -> None:
    (folder / "bad.toml").write_text(f"{SCENARIO}count = {value}\n")
    found = refused(folder, "run", "bad.toml", "--out", "run")
    assert "flow.0.count" in found and "must be a number" in found


@pytest.mark.slow
def test_a_recordings_scenario_that_is_no_text_is_named(folder: Path) -> None:
    command(folder, "run", "ok.toml", "--out", "run", "--no-report")
    (folder / "run" / "scenario.toml").write_bytes(b"\xff\xfe")
    assert "scenario.toml: damaged" in refused(folder, "report", "run")
    (folder / "run" / "checksums.json").unlink()
    assert "scenario.toml: not a text file" in refused(folder, "report", "run")
