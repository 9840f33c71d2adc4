"""A recording that a killed program had moved aside comes back."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe.recording.recording import Recording, RecordingError
from fullpipe.recording.replacing import restore

_KILLED = """
import os, signal, sys
from pathlib import Path
from fullpipe.recording.replacing import replaced
with replaced(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _recording(folder: Path, text: str = "{}") -> Path:
    folder.mkdir()
    (folder / "metadata.json").write_text(text)
    return folder


@pytest.mark.slow
def test_a_recording_comes_back_when_its_replacement_was_killed(tmp_path: Path) -> None:
    folder = _recording(tmp_path / "[a] run.1")
    subprocess.run([sys.executable, "-c", _KILLED, str(folder)], check=False)
    assert not folder.exists()
    with pytest.raises(RecordingError, match="format_version"):  # it is there again, and read
        Recording.open(folder)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def _dead() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def _aside(name: str, pid: int) -> str:
    return f".{name}.{pid}.{platform.node()}.replaced"


def test_what_was_moved_aside_stays_beside_what_may_be_half_of_a_new_one(tmp_path: Path) -> None:
    new = _recording(tmp_path / "run", "new")
    aside = _recording(tmp_path / _aside("run", _dead()), "old")
    assert restore(new) == [aside]
    assert (new / "metadata.json").read_text() == "new"
    assert (aside / "metadata.json").read_text() == "old"


def test_what_a_running_program_moved_aside_stays(tmp_path: Path) -> None:
    aside = _recording(tmp_path / _aside("run", os.getpid()))
    assert restore(tmp_path / "run") == []
    assert aside.is_dir() and not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["run.v3", "q"], ids=["a name that goes on", "another name"])
def test_a_recording_of_another_name_or_host_is_left_alone(tmp_path: Path, name: str) -> None:
    others = [
        _recording(tmp_path / _aside(name, _dead())),
        _recording(tmp_path / f".run.{_dead()}.elsewhere.replaced"),
    ]
    assert restore(tmp_path / "run") == []
    assert all(other.is_dir() for other in others) and not (tmp_path / "run").exists()
