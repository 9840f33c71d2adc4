"""A recording that a killed program had moved aside comes back."""

from __future__ import annotations

import os
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


def test_what_was_moved_aside_goes_where_there_is_a_new_recording(tmp_path: Path) -> None:
    new = _recording(tmp_path / "run", "new")
    _recording(tmp_path / f".run.{_dead()}.replaced", "old")
    restore(new)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (new / "metadata.json").read_text() == "new"


def test_what_a_running_program_moved_aside_stays(tmp_path: Path) -> None:
    aside = _recording(tmp_path / f".run.{os.getpid()}.replaced")
    restore(tmp_path / "run")
    assert aside.is_dir() and not (tmp_path / "run").exists()
