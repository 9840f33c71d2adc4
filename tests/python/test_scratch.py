"""What a killed run leaves among the temporary files goes with the next run, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fullpipe.base.scratch import scratch

HOLD = """
import sys, tempfile
from fullpipe.base.scratch import scratch
tempfile.tempdir = sys.argv[1]
with scratch("run-") as folder:
    (folder / "big").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holder(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, temporary],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_folder_of_a_killed_program_goes_and_that_of_a_living_one_stays(
    temporary: Path,
) -> None:
    killed, left = holder(temporary)
    living, used = holder(temporary)
    try:
        end(killed)
        assert left.is_dir()
        with scratch("run-") as own:
            assert own.is_dir()
            assert not left.exists()
            assert (used / "big").is_file()
        assert not own.exists()
    finally:
        end(living)


def test_what_is_not_a_run_of_ours_is_not_touched(temporary: Path) -> None:
    (temporary / "run-of-somebody").mkdir()
    (temporary / "run-file").write_text("")
    target = temporary / "elsewhere"
    target.mkdir()
    (target / "owner.lock").write_text("")
    (temporary / "run-link").symlink_to(target)
    with scratch("run-"):
        pass
    names = {path.name for path in temporary.iterdir()}
    assert names == {"run-of-somebody", "run-file", "elsewhere", "run-link"}
    assert (target / "owner.lock").exists()
