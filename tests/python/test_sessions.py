"""A process is ended with all that it started, whenever its user is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.sessions import session
from helpers import await_ends

#: Starts a child that never ends and writes its id.
SHELL = "sleep 1000000 & echo $!; wait"


def test_an_exception_in_the_block_ends_children_too() -> None:
    with (
        pytest.raises(LookupError),
        session(["sh", "-c", SHELL], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        watched = [os.pidfd_open(int(process.stdout.readline())), os.pidfd_open(process.pid)]
        raise LookupError
    await_ends(watched)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_process_starts_leaves_none(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """As where a loaded machine runs the child before its parent is back from fork."""
    started = []

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(os.pidfd_open(self.pid))
            signal.raise_signal(number)

    before = signal.signal(number, signal.default_int_handler)
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    try:
        with pytest.raises(KeyboardInterrupt), session(["sleep", "1000000"]):
            pytest.fail("the block is not entered")
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert len(started) == 1
    await_ends(started)


def test_a_program_that_is_not_there_is_the_error_of_popen(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), session([str(tmp_path / "none")]):
        pytest.fail("the block is not entered")


def test_what_ends_by_itself_has_its_status() -> None:
    with session([sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"]) as process:
        assert process.wait() == 3
