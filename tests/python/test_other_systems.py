"""What a system other than Linux on x86-64 runs and refuses. Such a system is stood in for by one
without Linux's calls; nothing here knows that it compiles there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: As macOS: no affinity, no death signal of a parent, no /proc, no sandbox in the native module.
_MACOS = """
import os, pathlib, platform
platform.system = lambda: "Darwin"
del os.sched_getaffinity
is_dir = pathlib.Path.is_dir
pathlib.Path.is_dir = lambda self, **k: not str(self).startswith("/proc") and is_dir(self, **k)
import fullpipe._native
del fullpipe._native.sandbox
"""
_AARCH64 = """
import platform
platform.machine = lambda: "aarch64"
"""
_MAIN = "\nfrom fullpipe.cli import main\nmain()\n"

_SCENARIO = """
duration = "1s"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
cc = "bbr3"
"""
_SWEEP = """
[scenario]
duration = "1s"
path = { rate = "10mbit", rtt = "{rtt}", buffer = "1bdp" }
flow = [{ cc = "bbr3" }]
[axis]
rtt = ["10ms", "20ms"]
"""
_CLASS = """
import os
import fullpipe
os.system("touch ran")
class Mine(fullpipe.Controller):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenario.toml").write_text(_SCENARIO)
    (tmp_path / "sweep.toml").write_text(_SWEEP)
    return tmp_path


def _fullpipe(system: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", system + _MAIN, *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "scenario.toml", "--out", "one"),
        ("run", "scenario.toml", "--repeat", "2", "--out", "two", "--no-report"),
        ("compare", "reno", "cubic", "--path", "scenario.toml", "--repeat", "2"),
        ("sweep", "sweep.toml", "--out", "store"),
        ("model", "fluid", "scenario.toml"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_simulator_needs_nothing_of_linux(folder: Path, words: tuple[str, ...]) -> None:
    done = _fullpipe(_MACOS, folder, *words)
    assert done.returncode == 0, done.stderr


def test_an_algorithm_in_a_file_and_the_kernel_engines_are_refused_elsewhere(folder: Path) -> None:
    (folder / "mine.py").write_text(_CLASS)
    for words in (
        ("run", "scenario.toml", "--cc", "./mine.py"),
        ("run", "scenario.toml", "--engine", "vm"),
        ("run", "scenario.toml", "--engine", "live"),
    ):
        done = _fullpipe(_MACOS, folder, *words)
        assert done.returncode == 2, done.stderr
        assert "needs Linux, and this is Darwin" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (folder / "ran").exists()


def test_the_virtual_machine_is_refused_on_another_processor(folder: Path) -> None:
    done = _fullpipe(_AARCH64, folder, "run", "scenario.toml", "--engine", "vm")
    assert done.returncode == 2, done.stderr
    assert "x86-64" in done.stderr and "aarch64" in done.stderr
    assert _fullpipe(_AARCH64, folder, "run", "scenario.toml", "--no-report").returncode == 0
